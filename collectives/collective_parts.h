// Shared by the algorithms' files: one function per kind, behind mp_collective_run; and one row of
// functions per kind for what crosses processes, behind collective_schedule.h.
#ifndef MINIPOD_COLLECTIVES_COLLECTIVE_PARTS_H_
#define MINIPOD_COLLECTIVES_COLLECTIVE_PARTS_H_

#include "collectives/collective.h"
#include "collectives/collective_schedule.h"
#include "sim/base/assert.h"
#include "sim/numeric/box.h"

typedef struct {
  const mp_collective_t *collective;
  const uint32_t *members;  // logical numbers, in group order
  uint32_t size;            // of the group
  const mp_contribution_t *contributions;
  const uint32_t *names;  // of the devices, by logical number; NULL: the numbers themselves
  uint32_t chunk, num_chunks;
  void *scratch;
  mp_collective_schedule_t *schedule;  // NULL: all members are in this process
} mp_collective_call_t;

// The part [begin, end) of `total` items that the call's chunk does.
static inline void mp_chunk_range(const mp_collective_call_t *call, int64_t total,
                                  int64_t *out_begin, int64_t *out_end) {
  MP_ASSERT(call->chunk < call->num_chunks && total >= 0);
  *out_begin = total * call->chunk / call->num_chunks;
  *out_end = total * (call->chunk + 1) / call->num_chunks;
}

// Members of other processes have no outputs here.
static inline bool mp_call_writes(const mp_collective_call_t *call, int64_t position) {
  MP_ASSERT(position >= 0 && position < (int64_t)call->size);
  return call->contributions[position].outputs != NULL;
}

// Parts to cut work on so many bytes into.
static inline uint32_t mp_parts_of(double bytes) {
  enum { BYTES_PER_PART = 128 * 1024, MAX_PARTS = 32 };
  const double parts = bytes / BYTES_PER_PART;
  if (parts < 1) return 1;
  return parts > MAX_PARTS ? MAX_PARTS : (uint32_t)parts;
}

// `alignment` is a power of two.
static inline size_t mp_align(size_t bytes, size_t alignment) {
  MP_ASSERT(alignment != 0 && (alignment & (alignment - 1)) == 0);
  return (bytes + alignment - 1) & ~(alignment - 1);
}
static inline size_t mp_align64(size_t bytes) {
  return mp_align(bytes, 64);
}

mp_status_t mp_all_reduce_chunk(const mp_collective_call_t *call);
mp_status_t mp_reduce_scatter_chunk(const mp_collective_call_t *call);
mp_status_t mp_all_gather_chunk(const mp_collective_call_t *call);
mp_status_t mp_all_to_all_chunk(const mp_collective_call_t *call);
mp_status_t mp_permute_chunk(const mp_collective_call_t *call);
mp_status_t mp_broadcast_chunk(const mp_collective_call_t *call);
mp_status_t mp_ragged_all_to_all_chunk(const mp_collective_call_t *call);
mp_status_t mp_exchange_chunk(const mp_collective_call_t *call);

// The group position that sends to logical device `target`, or -1.
int64_t mp_permute_source(const mp_collective_t *collective, uint32_t target);

// What position `source` holds of the box that `destination` wants: its size, and where it begins
// in the two arrays. False: nothing.
typedef struct {
  int64_t size[MP_BOX_MAX_RANK], from[MP_BOX_MAX_RANK], to[MP_BOX_MAX_RANK];
} mp_exchange_part_t;
bool mp_exchange_part(const mp_collective_t *collective, const uint32_t *members, uint32_t source,
                      uint32_t destination, mp_exchange_part_t *out_part);

// ---- Reductions ----

// Pieces that are there already.
typedef struct {
  const mp_group_layout_t *layout;  // NULL: none
  const char **bases;  // [num_processes] the operand's pieces, one after the other; NULL: none
  int64_t count;       // elements of each
  int64_t at;          // the block's first
  uint32_t next;
} mp_piece_source_t;

// The state of one operand's way through the tree. A block of elements goes through the whole tree
// before the next one; partials are kept on a stack.
typedef struct {
  const mp_collective_t *collective;
  const mp_contribution_t *contributions;
  const mp_collective_operand_t *operand;
  uint32_t number;  // of the operand
  size_t level_bytes;
  char *partials;  // the stack, bottom first
  void *reducer_scratch;
  uint32_t depth;               // partials on the stack
  int64_t count;                // elements of the block in work
  mp_piece_source_t far, near;  // of hosts, of processes
} mp_reduction_t;

size_t mp_reduce_scratch_bytes(const mp_collective_t *collective, uint32_t group_size,
                               uint32_t num_processes);
int64_t mp_reduce_block_elements(const mp_collective_t *collective);
// Without pieces; the sources' bases have room for `num_processes` each.
mp_reduction_t mp_reduction_start(const mp_collective_t *collective,
                                  const mp_contribution_t *contributions, uint32_t group_size,
                                  uint32_t number, uint32_t num_processes, void *scratch);
// Reduces elements [leaf, leaf + count) of the members' inputs over the positions [begin, begin +
// positions), a subtree; far.at and near.at are the same elements of the pieces. The result is the
// bottom partial, in the accumulation type.
void mp_reduction_run(mp_reduction_t *reduction, uint32_t begin, uint32_t positions, int64_t leaf,
                      int64_t count);
// Where a piece that is there already has its elements.
const void *mp_piece_data(const mp_piece_source_t *source, const mp_piece_t *piece,
                          const mp_collective_operand_t *operand);
// The bottom partial in the operand's type.
void mp_reduction_store(const mp_reduction_t *reduction, void *to);
// At element `offset` of a member's output.
void mp_reduction_store_at(const mp_reduction_t *reduction, const mp_contribution_t *member,
                           int64_t offset);

// Bytes of an element of the process' pieces.
static inline size_t mp_piece_element_bytes(const mp_group_layout_t *layout, uint32_t process,
                                            const mp_collective_operand_t *operand) {
  const bool is_plain = mp_group_layout_has_leaves_only(layout, process);
  return mp_dtype_size(is_plain ? operand->dtype : operand->accumulation);
}

// ---- Schedules ----

// What a kind does when its group is spread over processes. `part` of `num_parts` is a share of the
// work, as small as the kind likes.
typedef struct {
  uint32_t (*num_phases)(const mp_collective_schedule_t *schedule);
  mp_status_t (*plan)(mp_collective_schedule_t *schedule, uint32_t phase, bool *out_is_shared);
  void (*pack)(const mp_collective_schedule_t *schedule, uint32_t phase, uint32_t part,
               uint32_t num_parts, void *scratch);
  // Of phases after the first.
  bool (*awaits)(const mp_collective_schedule_t *schedule, uint32_t phase, uint32_t process);
  // What the process' payload must weigh; MP_SIZE_BY_CONTENT: `open` looks.
  size_t (*expected)(const mp_collective_schedule_t *schedule, uint32_t phase, uint32_t process);
  // Everything has come and is to be read, from its beginning. NULL: nothing to do.
  mp_status_t (*open)(mp_collective_schedule_t *schedule);
} mp_collective_schedule_kind_t;

#define MP_SIZE_BY_CONTENT SIZE_MAX

extern const mp_collective_schedule_kind_t mp_collective_schedule_pieces,
    mp_collective_schedule_inputs, mp_collective_schedule_slices, mp_collective_schedule_rows;

// mp_collective_run for our members of a schedule.
mp_status_t mp_collective_run_schedule(mp_collective_schedule_t *schedule, uint32_t chunk,
                                       void *scratch);

// The next `bytes` that the process of `source` packed for our member `destination`: reads on in
// the order of packing. A destination belongs to one chunk, so nobody else reads there.
const void *mp_collective_schedule_take(mp_collective_schedule_t *schedule, uint32_t source,
                                        uint32_t destination, size_t bytes, size_t alignment);

uint32_t mp_collective_schedule_one_phase(const mp_collective_schedule_t *schedule);

// all_reduce and reduce_scatter for our members.
void mp_all_reduce_schedule(const mp_collective_call_t *call);
void mp_reduce_scatter_schedule(const mp_collective_call_t *call);

#endif  // MINIPOD_COLLECTIVES_COLLECTIVE_PARTS_H_
