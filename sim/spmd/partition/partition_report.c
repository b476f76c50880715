#include "sim/spmd/partition/partition_report.h"

#include "sim/numeric/dtype.h"
#include "sim/spmd/reshard/reshard_plan.h"

static const struct {
  const char *name;
  mp_opcode_t code;
} g_kinds[MP_COMM_KIND_COUNT] = {
#define MP_COMM_ROW(name, text, op) {text, op},
    MP_COMM_KINDS(MP_COMM_ROW)
#undef MP_COMM_ROW
};

const char *mp_comm_kind_name(mp_comm_kind_t kind) {
  return g_kinds[kind].name;
}

mp_comm_t mp_spmd_report_total(const mp_spmd_report_t *report) {
  mp_comm_t total = {0};
  for (int kind = 0; kind < MP_COMM_KIND_COUNT; ++kind) {
    total.count += report->comm[kind].count;
    total.bytes += report->comm[kind].bytes;
  }
  return total;
}

// ---- counting ----

static double partition_report_tensor_bytes(const mp_type_t *type) {
  int64_t elements = 0;
  if (!mp_type_is_tensor(type) || !mp_type_num_elements(type, &elements)) return 0;
  return (double)elements * (double)mp_dtype_size(type->dtype);
}

// The number of devices in a group of the op; all devices when the op has no groups.
static double partition_report_group_size(const mp_module_t *module, const mp_op_t *op) {
  const mp_attr_t *groups = mp_op_attr(op, MP_ATTR_REPLICA_GROUPS);
  const double all = (double)module->num_partitions * module->num_replicas;
  if (groups == NULL || groups->kind != MP_KIND_INTS || groups->u.ints.count == 0) return all;
  const int64_t size = groups->u.ints.rank == 2 ? groups->u.ints.dims[1] : 1;
  return size == 0 ? all : (double)size;
}

// The share of the devices that get data from another one.
static double partition_report_moving_share(const mp_module_t *module, const mp_op_t *op) {
  const mp_attr_t *pairs = mp_op_attr(op, MP_ATTR_SOURCE_TARGET_PAIRS);
  if (pairs == NULL || pairs->kind != MP_KIND_INTS) return 1;
  double moving = 0;
  for (size_t i = 0; i + 1 < pairs->u.ints.count; i += 2) {
    if (pairs->u.ints.values[i] != pairs->u.ints.values[i + 1]) ++moving;
  }
  return moving / module->num_partitions;
}

static double partition_report_received_bytes(const mp_module_t *module, const mp_op_t *op,
                                              mp_comm_kind_t kind) {
  double in = 0;
  double out = 0;
  for (uint32_t i = 0; i < op->num_operands; ++i)
    in += partition_report_tensor_bytes(op->operands[i]->type);
  for (uint32_t i = 0; i < op->num_results; ++i)
    out += partition_report_tensor_bytes(op->results[i].type);
  const double others = 1 - 1 / partition_report_group_size(module, op);
  switch (kind) {
    case MP_COMM_ALL_REDUCE:
      return 2 * in * others;
    case MP_COMM_PERMUTE:
      return in * partition_report_moving_share(module, op);
    case MP_COMM_EXCHANGE:
      return mp_reshard_exchange_bytes(op->results[0].type, mp_op_attr(op, MP_ATTR_SOURCE)->u.boxes,
                                       mp_op_attr(op, MP_ATTR_TARGET)->u.boxes);
    case MP_COMM_ALL_GATHER:
    case MP_COMM_BROADCAST:
      return out * others;
    default:
      return in * others;
  }
}

typedef struct {
  const mp_module_t *module;
  mp_spmd_report_t *report;
} counter_t;

static mp_status_t partition_report_count_op(void *context, mp_op_t *op) {
  const counter_t *counter = context;
  for (int kind = 0; kind < MP_COMM_KIND_COUNT; ++kind) {
    if (g_kinds[kind].code != op->code) continue;
    ++counter->report->comm[kind].count;
    counter->report->comm[kind].bytes +=
        partition_report_received_bytes(counter->module, op, (mp_comm_kind_t)kind);
  }
  return NULL;
}

mp_status_t mp_spmd_count_communication(mp_module_t *module, mp_spmd_report_t *report) {
  report->num_partitions = module->num_partitions;
  for (int kind = 0; kind < MP_COMM_KIND_COUNT; ++kind) report->comm[kind] = (mp_comm_t){0};
  counter_t counter = {module, report};
  return mp_module_walk(module, partition_report_count_op, &counter);
}

// ---- as text ----

// The most ops that are named; a large program without shardings may have very many.
enum { MP_MAX_NAMED_OPS = 100 };

void mp_spmd_report_print(const mp_spmd_report_t *report, mp_strbuf_t *out) {
  if (report->num_partitions <= 1) return;
  const mp_comm_t total = mp_spmd_report_total(report);
  mp_strbuf_printf(out, "// %u partitions; communication: %u ops, %.0f bytes to each device\n",
                   report->num_partitions, total.count, total.bytes);
  for (int kind = 0; kind < MP_COMM_KIND_COUNT; ++kind) {
    const mp_comm_t *comm = &report->comm[kind];
    if (comm->count == 0) continue;
    mp_strbuf_printf(out, "//   %s: %u, %.0f bytes\n", g_kinds[kind].name, comm->count,
                     comm->bytes);
  }
  mp_strbuf_printf(out, "// computed whole on every device: %u ops\n", report->num_replicated);
  for (uint32_t i = 0; i < report->num_replicated && i < MP_MAX_NAMED_OPS; ++i) {
    const mp_replicated_op_t *op = &report->replicated[i];
    mp_strbuf_printf(out, "//   %s, ", mp_op_info(op->code)->name);
    mp_loc_describe(op->loc, out);
    mp_strbuf_printf(out, ": %s\n", op->reason);
  }
  if (report->num_replicated > MP_MAX_NAMED_OPS) {
    mp_strbuf_printf(out, "//   and %u more\n", report->num_replicated - MP_MAX_NAMED_OPS);
  }
}
