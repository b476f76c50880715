// A report about a partitioned program: the communication between devices, and the ops that every
// device computes whole although their values are in parts.
#ifndef MINIPOD_SIM_SPMD_PARTITION_PARTITION_REPORT_H_
#define MINIPOD_SIM_SPMD_PARTITION_PARTITION_REPORT_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

// Kinds of communication: name, op.
#define MP_COMM_KINDS(X)                                           \
  X(ALL_GATHER, "all_gather", MP_OP_ALL_GATHER)                    \
  X(ALL_REDUCE, "all_reduce", MP_OP_ALL_REDUCE)                    \
  X(REDUCE_SCATTER, "reduce_scatter", MP_OP_REDUCE_SCATTER)        \
  X(ALL_TO_ALL, "all_to_all", MP_OP_ALL_TO_ALL)                    \
  X(PERMUTE, "collective_permute", MP_OP_COLLECTIVE_PERMUTE)       \
  X(BROADCAST, "collective_broadcast", MP_OP_COLLECTIVE_BROADCAST) \
  X(REDUCE, "collective_reduce", MP_OP_COLLECTIVE_REDUCE)          \
  X(EXCHANGE, "exchange", MP_OP_EXCHANGE)

typedef enum {
#define MP_COMM_ENUM(name, text, op) MP_COMM_##name,
  MP_COMM_KINDS(MP_COMM_ENUM)
#undef MP_COMM_ENUM
      MP_COMM_KIND_COUNT
} mp_comm_kind_t;

// Each op counts once, also in loops. The bytes are those that a device receives, the mean over
// the devices, by the usual algorithms (an all_reduce of b bytes among g devices: 2b(g-1)/g).
typedef struct {
  uint32_t count;
  double bytes;
} mp_comm_t;

// An op that every device computes whole. The location is the module's.
typedef struct {
  mp_opcode_t code;
  const mp_loc_t *loc;
  const char *reason;  // static
} mp_replicated_op_t;

typedef struct {
  uint32_t num_partitions;
  mp_comm_t comm[MP_COMM_KIND_COUNT];
  uint32_t num_replicated;
  const mp_replicated_op_t *replicated;  // [num_replicated], in program order
} mp_spmd_report_t;

// The name of the kind, such as "all_gather".
const char *mp_comm_kind_name(mp_comm_kind_t kind);

// The sum over all kinds.
mp_comm_t mp_spmd_report_total(const mp_spmd_report_t *report);

// Counts the communication of a partitioned module and writes it to `report->comm`.
MP_NODISCARD mp_status_t mp_spmd_count_communication(mp_module_t *module, mp_spmd_report_t *report);

// Appends the report as comment lines ("// ..."); nothing for one partition.
void mp_spmd_report_print(const mp_spmd_report_t *report, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_SPMD_PARTITION_PARTITION_REPORT_H_
