// Spreads: how the members of a group lie over processes.
//
// Positions are those of the group. A *piece* is a largest subtree of the reductions' tree
// (collective.h) whose leaves all belong to one process: what that process can reduce by itself
// without changing a bit of the result.
//
// Processes share hosts. When every host has equally many processes of the group (and there are
// several hosts and several processes on each), they form a *grid*: process j of host h is in
// *column* j, and what goes between hosts goes along columns. Otherwise all processes count as on
// one host, each a column of its own.
//
// Immutable after creation.
#ifndef MINIPOD_COLLECTIVES_SPREAD_H_
#define MINIPOD_COLLECTIVES_SPREAD_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

typedef struct {
  uint32_t begin, count;  // positions [begin, begin + count)
  uint32_t process;
  uint32_t index;  // among the pieces of its process
} mp_piece_t;

typedef struct mp_spread_s mp_spread_t;
struct mp_spread_s {
  uint32_t size;           // of the group
  uint32_t num_processes;  // that have members
  uint32_t self;           // this process among them
  uint32_t num_pieces;
  const uint32_t *ranks;            // [num_processes] ascending
  const uint32_t *process_of;       // [size]
  const uint32_t *index_of;         // [size] among the positions of its process
  const uint32_t *offsets;          // [num_processes + 1] into positions
  const uint32_t *positions;        // [size] by process, ascending within
  const uint32_t *pieces_of;        // [num_processes] how many
  const mp_piece_t *pieces;         // [num_pieces] ascending by begin
  uint32_t num_hosts, num_columns;  // of the grid
  const uint32_t *host_of;          // [num_processes] in the grid
  const uint32_t *column_of;        // [num_processes]
  const uint32_t *grid;             // [num_hosts][num_columns] processes
  mp_spread_t *hosts;  // owned: the same group over hosts, "processes" being hosts; NULL: one host
};

// `ranks_of[position]` is the rank that a member belongs to, `hosts_of[position]` its host (NULL:
// all are on one); `self` is one of the ranks.
MP_NODISCARD mp_status_t mp_spread_create(uint32_t size, const uint32_t *ranks_of,
                                          const uint32_t *hosts_of, uint32_t self,
                                          mp_spread_t **out_spread);
void mp_spread_release(mp_spread_t *spread);

// The number of the process with this rank, or -1.
int64_t mp_spread_find(const mp_spread_t *spread, uint32_t rank);

// The size of the left part of a tree of `count` > 1 leaves.
static inline uint32_t mp_tree_left(uint32_t count) {
  uint32_t left = 1;
  while (left * 2 < count) left *= 2;
  return left;
}

static inline uint32_t mp_spread_num_members(const mp_spread_t *spread, uint32_t process) {
  return spread->offsets[process + 1] - spread->offsets[process];
}
static inline const uint32_t *mp_spread_members(const mp_spread_t *spread, uint32_t process) {
  return spread->positions + spread->offsets[process];
}
// No two neighbours can be reduced by the process itself.
static inline bool mp_spread_has_leaves_only(const mp_spread_t *spread, uint32_t process) {
  return spread->pieces_of[process] == mp_spread_num_members(spread, process);
}
static inline uint32_t mp_spread_process_at(const mp_spread_t *spread, uint32_t host,
                                            uint32_t column) {
  return spread->grid[host * spread->num_columns + column];
}
// On our host, or in our column.
static inline bool mp_spread_is_near(const mp_spread_t *spread, uint32_t process) {
  return spread->host_of[process] == spread->host_of[spread->self];
}
static inline bool mp_spread_is_in_line(const mp_spread_t *spread, uint32_t process) {
  return spread->column_of[process] == spread->column_of[spread->self];
}
static inline bool mp_spread_is_local(const mp_spread_t *spread, uint32_t position) {
  return spread->process_of[position] == spread->self;
}

#endif  // MINIPOD_COLLECTIVES_SPREAD_H_
