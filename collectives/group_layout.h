// Group layouts: the distribution of a group's members over processes.
//
// A position is a member's place in its group. A *piece* is a largest subtree of the reductions'
// tree (collective.h) whose leaves all belong to one process: that process can reduce it alone
// without changing a bit of the result.
//
// Several processes may be on one host. If every host has equally many processes of the group (and
// there are several hosts, with several processes on each), they form a *grid*: process j of host h
// is in *column* j, and data between hosts are sent along columns. Otherwise all processes count as
// being on one host, each in its own column.
//
// Immutable after creation.
#ifndef MINIPOD_COLLECTIVES_GROUP_LAYOUT_H_
#define MINIPOD_COLLECTIVES_GROUP_LAYOUT_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

typedef struct {
  uint32_t begin, count;  // positions [begin, begin + count)
  uint32_t process;
  uint32_t index;  // among the pieces of its process
} mp_piece_t;

typedef struct mp_group_layout_s mp_group_layout_t;
struct mp_group_layout_s {
  uint32_t size;           // of the group
  uint32_t num_processes;  // processes that have members
  uint32_t self;           // this process among them
  uint32_t num_pieces;
  const uint32_t *ranks;            // [num_processes] ascending
  const uint32_t *process_of;       // [size]
  const uint32_t *index_of;         // [size] among the positions of its process
  const uint32_t *offsets;          // [num_processes + 1] into positions
  const uint32_t *positions;        // [size] by process, ascending within
  const uint32_t *pieces_of;        // [num_processes] how many
  const mp_piece_t *pieces;         // [num_pieces] ascending by begin
  bool spans_hosts;                 // members are on several hosts, in a grid or not
  uint32_t num_hosts, num_columns;  // of the grid
  const uint32_t *host_of;          // [num_processes] in the grid
  const uint32_t *column_of;        // [num_processes]
  const uint32_t *grid;             // [num_hosts][num_columns] processes
  // The layout of the same group over hosts, in which "processes" are hosts; owned. NULL: one host.
  mp_group_layout_t *hosts;
};

// The layout of a group of `size` members. `ranks_of[position]` is the rank that a member belongs
// to, `hosts_of[position]` its host (NULL: all are on one); `self` is one of the ranks. The arrays
// are borrowed during the call. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_group_layout_create(uint32_t size, const uint32_t *ranks_of,
                                                const uint32_t *hosts_of, uint32_t self,
                                                mp_group_layout_t **out_layout);
// Frees the layout. NULL: nothing.
void mp_group_layout_release(mp_group_layout_t *layout);

// The number in the layout of the process with this rank, or -1.
int64_t mp_group_layout_find(const mp_group_layout_t *layout, uint32_t rank);

// The number of leaves of the left part of a tree of `count` > 1 leaves: the largest power of two
// below `count`.
static inline uint32_t mp_tree_left(uint32_t count) {
  uint32_t left = 1;
  while (left * 2 < count) left *= 2;
  return left;
}

// The number of members of the group in a process.
static inline uint32_t mp_group_layout_num_members(const mp_group_layout_t *layout,
                                                   uint32_t process) {
  return layout->offsets[process + 1] - layout->offsets[process];
}
// The positions of a process' members, ascending.
static inline const uint32_t *mp_group_layout_members(const mp_group_layout_t *layout,
                                                      uint32_t process) {
  return layout->positions + layout->offsets[process];
}
// True when all pieces of the process are single leaves: it can reduce nothing by itself.
static inline bool mp_group_layout_has_leaves_only(const mp_group_layout_t *layout,
                                                   uint32_t process) {
  return layout->pieces_of[process] == mp_group_layout_num_members(layout, process);
}
// The process at a place of the grid.
static inline uint32_t mp_group_layout_process_at(const mp_group_layout_t *layout, uint32_t host,
                                                  uint32_t column) {
  return layout->grid[host * layout->num_columns + column];
}
// True when the process is on this host.
static inline bool mp_group_layout_is_near(const mp_group_layout_t *layout, uint32_t process) {
  return layout->host_of[process] == layout->host_of[layout->self];
}
// True when the process is in this process's column.
static inline bool mp_group_layout_is_in_column(const mp_group_layout_t *layout, uint32_t process) {
  return layout->column_of[process] == layout->column_of[layout->self];
}
// True when the member at this position belongs to this process.
static inline bool mp_group_layout_is_local(const mp_group_layout_t *layout, uint32_t position) {
  return layout->process_of[position] == layout->self;
}

#endif  // MINIPOD_COLLECTIVES_GROUP_LAYOUT_H_
