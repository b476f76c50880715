// Shared by the files of algorithms: one function per kind for mp_collective_run, and one row of
// functions per kind for transfers between processes (collective_schedule.h).
#ifndef MINIPOD_COLLECTIVES_COLLECTIVE_PARTS_H_
#define MINIPOD_COLLECTIVES_COLLECTIVE_PARTS_H_

#include "collectives/collective.h"
#include "collectives/collective_schedule.h"
#include "sim/base/assert.h"
#include "sim/numeric/box.h"
#include "sim/numeric/dims.h"

// The arguments of an algorithm: one chunk of a collective of one group. Everything is borrowed
// during the call.
typedef struct {
  const mp_collective_t *collective;
  const uint32_t *members;  // logical numbers, in group order
  uint32_t size;            // of the group
  const mp_contribution_t *contributions;
  const uint32_t *names;  // of the devices, by logical number; NULL: the numbers themselves
  uint32_t chunk, num_chunks;
  void *scratch;                       // mp_collective_scratch_bytes, or the schedule's
  mp_collective_schedule_t *schedule;  // NULL: all members are in this process
  mp_copy_fn_t copy;                   // the function that writes results
} mp_collective_call_t;

// The range [begin, end) of `total` items of the call's chunk.
static inline void mp_chunk_range(const mp_collective_call_t *call, int64_t total,
                                  int64_t *out_begin, int64_t *out_end) {
  MP_ASSERT(call->chunk < call->num_chunks && total >= 0);
  *out_begin = total * call->chunk / call->num_chunks;
  *out_end = total * (call->chunk + 1) / call->num_chunks;
}

// True when the member at this group position has outputs here: members of other processes have
// none.
static inline bool mp_call_writes(const mp_collective_call_t *call, int64_t position) {
  MP_ASSERT(position >= 0 && position < (int64_t)call->size);
  return call->contributions[position].outputs != NULL;
}

// The bytes of a member's array of an operand, with its own dimensions or the result's.
static inline size_t mp_operand_bytes(const mp_collective_operand_t *operand, const int64_t *dims) {
  return (size_t)mp_dims_product(dims, 0, operand->rank) * mp_dtype_size(operand->dtype);
}

// The elements of a member's array of an operand.
static inline int64_t mp_operand_elements(const mp_collective_operand_t *operand) {
  return mp_dims_product(operand->dims, 0, operand->rank);
}
// The bytes of a member's arrays of all operands.
static inline double mp_operands_bytes(const mp_collective_t *collective) {
  double bytes = 0;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    const mp_collective_operand_t *operand = &collective->operands[i];
    bytes += (double)mp_operand_bytes(operand, operand->dims);
  }
  return bytes;
}

// The bytes of a member's arrays of all results.
static inline double mp_results_bytes(const mp_collective_t *collective) {
  double bytes = 0;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    const mp_collective_operand_t *operand = &collective->operands[i];
    bytes += (double)mp_operand_bytes(operand, operand->result_dims);
  }
  return bytes;
}

// The number of parts for work on `bytes`: one per 128 KiB, at least 1 and at most 32.
static inline uint32_t mp_parts_of(double bytes) {
  enum { BYTES_PER_PART = 128 * 1024, MAX_PARTS = 32 };
  const double parts = bytes / BYTES_PER_PART;
  if (parts < 1) return 1;
  return parts > MAX_PARTS ? MAX_PARTS : (uint32_t)parts;
}

// `bytes` rounded up to a multiple of `alignment`, a power of two.
static inline size_t mp_align(size_t bytes, size_t alignment) {
  MP_ASSERT(alignment != 0 && (alignment & (alignment - 1)) == 0);
  return (bytes + alignment - 1) & ~(alignment - 1);
}
// The same for 64, the alignment of blocks within payloads and scratch memory.
static inline size_t mp_align64(size_t bytes) {
  return mp_align(bytes, 64);
}

// The algorithms, one per kind of group (StableHLO spec, the op of the same name; that of exchanges
// is minipod.exchange's): mp_all_reduce_chunk and so on. Each does the call's chunk and writes
// outputs of members of this process only. Only the ragged one can fail, with INVALID_ARGUMENT when
// the members' sizes are inconsistent.
#define MP_COLLECTIVE_CHUNK(name, text, run, schedule) \
  mp_status_t mp_##run##_chunk(const mp_collective_call_t *call);
MP_GROUP_COLLECTIVES(MP_COLLECTIVE_CHUNK)
#undef MP_COLLECTIVE_CHUNK

// Whether it reduces, and needs memory for partial results.
static inline bool mp_collective_reduces(const mp_collective_t *collective) {
  return collective->kind == MP_COLLECTIVE_ALL_REDUCE ||
         collective->kind == MP_COLLECTIVE_REDUCE_SCATTER;
}

// The group position that sends to logical device `target` in a PERMUTE, or -1.
int64_t mp_permute_source(const mp_collective_t *collective, uint32_t target);

// A box that one device gives to another in an EXCHANGE: its size, and its start in the arrays of
// both.
typedef struct {
  int64_t size[MP_BOX_MAX_RANK], from[MP_BOX_MAX_RANK], to[MP_BOX_MAX_RANK];
} mp_exchange_part_t;
// The part that the group position `source` has of the box that position `destination` needs.
// False: nothing.
bool mp_exchange_part(const mp_collective_t *collective, const uint32_t *members, uint32_t source,
                      uint32_t destination, mp_exchange_part_t *out_part);

// ---- Schedules ----

// The functions of a kind of collective when its group has members in several processes. They
// implement those in collective_schedule.h with the same names.
typedef struct {
  uint32_t (*num_phases)(const mp_collective_schedule_t *schedule);
  // Sets the sizes of the phase's payloads, which are initially MP_NO_PAYLOAD.
  mp_status_t (*plan)(mp_collective_schedule_t *schedule, uint32_t phase, bool *out_is_shared);
  // Writes share `part` of `num_parts` of the payloads.
  void (*pack)(const mp_collective_schedule_t *schedule, uint32_t phase, uint32_t part,
               uint32_t num_parts, void *scratch);
  // Whether another process sends a payload in a phase after the first; in phase 0 all do.
  bool (*awaits)(const mp_collective_schedule_t *schedule, uint32_t phase, uint32_t process);
  // The required size of the process' payload; MP_SIZE_BY_CONTENT: `open` checks it.
  size_t (*expected)(const mp_collective_schedule_t *schedule, uint32_t phase, uint32_t process);
  // Called once when everything has come, before it is read. NULL: nothing to do.
  mp_status_t (*open)(mp_collective_schedule_t *schedule);
} mp_collective_schedule_kind_t;

#define MP_SIZE_BY_CONTENT SIZE_MAX

// Payloads that hold pieces of reductions; whole inputs; slices for each destination; ragged rows.
extern const mp_collective_schedule_kind_t mp_collective_schedule_pieces,
    mp_collective_schedule_inputs, mp_collective_schedule_slices, mp_collective_schedule_rows;

// The next `bytes` that the process of position `source` packed for this process's member at
// position `destination`: each call continues in the order of packing. A destination belongs to one
// chunk, so no other thread reads there.
const void *mp_collective_schedule_take(mp_collective_schedule_t *schedule, uint32_t source,
                                        uint32_t destination, size_t bytes, size_t alignment);

// The num_phases of kinds that need one phase: 1.
uint32_t mp_collective_schedule_one_phase(const mp_collective_schedule_t *schedule);

// The chunk of a call with a schedule, for the members of this process: mp_all_reduce_schedule and
// mp_reduce_scatter_schedule.
void mp_all_reduce_schedule(const mp_collective_call_t *call);
void mp_reduce_scatter_schedule(const mp_collective_call_t *call);

#endif  // MINIPOD_COLLECTIVES_COLLECTIVE_PARTS_H_
