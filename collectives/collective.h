// Collectives: computations of a group of devices (StableHLO spec, "Collective ops").
//
// This layer knows groups and algorithms, but not programs: a collective is described once at
// compile time by an mp_collective_t, each participant brings an mp_contribution_t, and
// mp_collective_run does the work when all have arrived. Participants meet at a rendezvous
// (rendezvous.h); if they are in several processes, a schedule (collective_schedule.h) determines
// the messages between them.
//
// Results are deterministic: reductions follow one balanced tree over group positions, with
// partials in the accumulation type, whatever the number of processes, workers or chunks.
//
// Devices are named by their flattened logical number: replica * num_partitions + partition.
// Descriptions are constant and shared; participants own their contributions until the collective
// is done.
#ifndef MINIPOD_COLLECTIVES_COLLECTIVE_H_
#define MINIPOD_COLLECTIVES_COLLECTIVE_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/base/str.h"
#include "sim/base/table.h"
#include "sim/numeric/dtype.h"

// The kinds of group collectives, at which all members meet: enum name, name in options and
// reports, the function for a chunk (mp_..._chunk), and the schedule between processes
// (mp_collective_schedule_...).
#define MP_GROUP_COLLECTIVES(X)                                      \
  X(ALL_REDUCE, "all_reduce", all_reduce, pieces)                    \
  X(ALL_GATHER, "all_gather", all_gather, inputs)                    \
  X(REDUCE_SCATTER, "reduce_scatter", reduce_scatter, pieces)        \
  X(ALL_TO_ALL, "all_to_all", all_to_all, slices)                    \
  X(PERMUTE, "collective_permute", permute, slices)                  \
  X(BROADCAST, "collective_broadcast", broadcast, inputs)            \
  X(RAGGED_ALL_TO_ALL, "ragged_all_to_all", ragged_all_to_all, rows) \
  X(EXCHANGE, "exchange", exchange, slices)
// All kinds. Messages of pairs, the last kind, have neither of the two.
#define MP_COLLECTIVES(X) MP_GROUP_COLLECTIVES(X) X(SEND_RECV, "send", none, none)

typedef enum {
#define MP_COLLECTIVE_ENUM(name, ...) MP_COLLECTIVE_##name,
  MP_COLLECTIVES(MP_COLLECTIVE_ENUM)
#undef MP_COLLECTIVE_ENUM
} mp_collective_kind_t;

#define MP_GROUP_COLLECTIVE_KINDS MP_ROWS(MP_GROUP_COLLECTIVES)
#define MP_COLLECTIVE_KINDS       MP_ROWS(MP_COLLECTIVES)

// "all_reduce", "all_gather" and so on, as in options.
const char *mp_collective_kind_name(mp_collective_kind_t kind);
// The kind with this name; false when there is none.
bool mp_collective_kind_from_name(mp_str_t name, mp_collective_kind_t *out_kind);

// The interpretation of replica_groups (StableHLO spec, "Execution").
typedef enum {
  MP_GROUPS_CROSS_REPLICA,                // replica ids; every partition for itself
  MP_GROUPS_CROSS_PARTITION,              // partition ids; every replica for itself
  MP_GROUPS_CROSS_REPLICA_AND_PARTITION,  // replica ids; those replicas x all partitions
  MP_GROUPS_FLATTENED_IDS,
} mp_group_mode_t;

// The resolved groups: disjoint lists of logical device numbers.
typedef struct {
  uint32_t num_devices;
  uint32_t num_groups;
  const uint32_t *offsets;   // [num_groups + 1] into members
  const uint32_t *members;   // logical numbers in group order
  const int32_t *group_of;   // [num_devices]; -1: in no group
  const uint32_t *position;  // [num_devices] within the group
} mp_groups_t;

// Resolves replica groups to logical device numbers. `table` is row-major [rows][columns], and -1
// pads short rows. No rows: one group of all ids. Ids that no row names are in no group. The result
// is in the arena. INVALID_ARGUMENT names an id that is out of range or named twice.
MP_NODISCARD mp_status_t mp_groups_create(mp_arena_t *arena, mp_group_mode_t mode,
                                          uint32_t num_replicas, uint32_t num_partitions,
                                          const int64_t *table, int64_t rows, int64_t columns,
                                          const mp_groups_t **out_groups);

// out[i] = a[i] (op) b[i] for i < count. `out` may be `a` or `b`. A variadic reduction applies it
// to each operand separately. Elements are of the operand's accumulation type.
typedef struct {
  void (*combine)(const void *context, int64_t count, const void *a, const void *b, void *out,
                  void *scratch);
  const void *context;
  size_t scratch_bytes;
  int64_t max_count;  // elements per call at most
  uint64_t digest;    // of its computation: equal in all processes for equal reductions
} mp_reducer_t;

typedef struct {
  mp_dtype_t dtype;         // of operand and result
  mp_dtype_t accumulation;  // the type of partials: f32 for sums and products of bf16/f16
  uint32_t rank;
  const int64_t *dims;         // operand
  const int64_t *result_dims;  // result
} mp_collective_operand_t;

// The boxes of an EXCHANGE: the part of the whole tensor that device i has (source) or needs
// (target). `owner[i]` is the first device of i's group that has the same box (i itself if it is
// the first). Source boxes of devices of one group are equal or do not overlap.
typedef struct {
  const int64_t *starts;  // [num_devices * rank]
  const int64_t *sizes;   // [num_devices * rank]
  const uint32_t *owner;  // [num_devices]; source only
} mp_collective_boxes_t;

typedef struct {
  mp_collective_kind_t kind;
  const char *name;      // "stablehlo.all_reduce", for messages
  const char *location;  // "psum at train.py:12:7"
  int64_t channel_id;
  uint32_t ordinal;  // number of this collective in the program
  const mp_groups_t *groups;
  uint32_t num_operands;
  const mp_collective_operand_t *operands;
  mp_reducer_t reducer;                  // ALL_REDUCE, REDUCE_SCATTER
  int64_t dimension;                     // ALL_GATHER, REDUCE_SCATTER; ALL_TO_ALL: split
  int64_t concat_dimension;              // ALL_TO_ALL
  uint32_t num_pairs;                    // PERMUTE, SEND_RECV: logical (source, target)
  const uint32_t *pairs;                 // [num_pairs * 2], ascending by target
  mp_collective_boxes_t source, target;  // EXCHANGE
  // The result of mp_collective_digest, which the caller that made the description stores; 0: not
  // known yet.
  uint64_t digest;
} mp_collective_t;

// A fingerprint of everything that participants must agree on (collective_traits.h): all but names,
// places in programs, and groups. Equal in all processes for equal descriptions; never 0.
uint64_t mp_collective_digest(const mp_collective_t *collective);

// The arrays of one participant, dense and row-major.
typedef struct {
  const void *const *inputs;  // [num_operands] (RAGGED_ALL_TO_ALL: its six operands)
  void *const *outputs;       // [num_operands] (RAGGED_ALL_TO_ALL: one)
} mp_contribution_t;

// The number of chunks of a group's collective, so that several workers can share it. It depends
// only on the description and the group's size.
uint32_t mp_collective_num_chunks(const mp_collective_t *collective, uint32_t group);
// The bytes of scratch memory that one chunk needs, 64-byte aligned.
size_t mp_collective_scratch_bytes(const mp_collective_t *collective, uint32_t group);

// Does chunk `chunk` of the collective of `group`, whose members are all in this process;
// `contributions` are in group order. Different chunks may run at the same time, each with scratch
// memory of its own. No output may overlap an input of any participant. Errors name participants by
// names[logical number]; `names` NULL: by their logical numbers. INVALID_ARGUMENT when the data are
// inconsistent (RAGGED_ALL_TO_ALL), INTERNAL for SEND_RECV, which is no group collective.
MP_NODISCARD mp_status_t mp_collective_run(const mp_collective_t *collective, uint32_t group,
                                           const mp_contribution_t *contributions,
                                           const uint32_t *names, uint32_t chunk, void *scratch);

#endif  // MINIPOD_COLLECTIVES_COLLECTIVE_H_
