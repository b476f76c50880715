#include "sim/chip/cost/vector_cost.h"

#include <math.h>

#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/rules/chip_policy.h"

// ---- registers ----

// A vector register has a tile of 32-bit words. Narrower elements are unpacked to be moved.
#define VMEM_TILE_BYTES (4 * MP_TILE_ELEMENTS)

// The work of a kernel: operations on registers, registers that are loaded and stored, seconds.
typedef struct {
  const mp_chip_figures_t *figures;
  const mp_layouts_t *layouts;
  double vector, loads, stores;
  double lanes;    // of the unit that moves elements across lanes
  double latency;  // until the first result of the lanes' unit
} vmem_work_t;

static double vmem_cost_registers(const vmem_work_t *work, const mp_value_t *value) {
  const double bits = mp_dtype_bits(value->type->dtype);
  return mp_layouts_bytes(work->layouts, value) * 8 / bits / MP_TILE_ELEMENTS;
}

static mp_tile_layout_t vmem_cost_layout(const vmem_work_t *work, const mp_value_t *value) {
  return work->layouts->values[value->id];
}

// Tiles along a dimension; 1 if none is there.
static double vmem_cost_tiles(const mp_type_t *type, int32_t dim, double tile) {
  return dim < 0 ? 1 : fmax(ceil((double)type->dims[dim] / tile), 1);
}

static void vmem_cost_add_lanes(vmem_work_t *work, double registers, double each) {
  if (registers == 0) return;
  work->lanes += registers * mp_figure_or(each, 0);
  work->latency = mp_figure_or(work->figures->vmem_lanes_latency, 0);
}

// ---- shifts ----

// Whether an offset along a dimension is inside of a tile.
static bool vmem_cost_is_between(mp_tile_layout_t layout, int32_t dim, int64_t offset) {
  return (dim == layout.lane && offset % MP_TILE_LANES != 0) ||
         (dim == layout.sublane && offset % MP_TILE_SUBLANES != 0);
}

// If an array starts at another offset in its tiles, its registers are rotated, and two neighbours
// are joined. In other dimensions nothing moves.
static void vmem_cost_shift(vmem_work_t *work, mp_tile_layout_t layout, int32_t dim, int64_t offset,
                            double registers) {
  enum { ROTATES_AND_SELECTS = 2 };
  if (!vmem_cost_is_between(layout, dim, offset)) return;
  if (dim == layout.lane) {
    vmem_cost_add_lanes(work, registers, work->figures->vmem_rotate);
  } else {
    work->vector += ROTATES_AND_SELECTS * registers;
  }
}

static void vmem_cost_slice(vmem_work_t *work, const mp_op_t *op) {
  const mp_index_list_t starts = mp_op_ints(op, MP_ATTR_START_INDICES);
  const double registers = vmem_cost_registers(work, &op->results[0]);
  for (uint32_t i = 0; i < starts.count; ++i) {
    vmem_cost_shift(work, vmem_cost_layout(work, op->operands[0]), (int32_t)i, starts.values[i],
                    registers);
  }
  work->loads += registers;
}

// libtpu pads each operand with minus infinity to the size of the result, and takes the maximum of
// all. Of operands with whole tiles it reads one per tile.
enum { VMEM_PAD_SELECTS = 2 };

static void vmem_cost_concatenate(vmem_work_t *work, const mp_op_t *op) {
  const int32_t dim = (int32_t)mp_op_int(op, MP_ATTR_DIMENSION, 0);
  const mp_tile_layout_t layout = vmem_cost_layout(work, &op->results[0]);
  const double whole = vmem_cost_registers(work, &op->results[0]);
  const double size = (double)op->results[0].type->dims[dim];
  int64_t offset = 0;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const int64_t part = op->operands[i]->type->dims[dim];
    const double share = (double)part / size;
    const bool is_tiles = !vmem_cost_is_between(layout, dim, offset) &&
                          !vmem_cost_is_between(layout, dim, offset + part);
    vmem_cost_shift(work, layout, dim, offset, whole * share);
    work->vector += is_tiles ? 0 : VMEM_PAD_SELECTS * whole;
    work->loads += is_tiles ? whole * share : whole;
    offset += part;
  }
}

static void vmem_cost_pad(vmem_work_t *work, const mp_op_t *op) {
  const mp_index_list_t low = mp_op_ints(op, MP_ATTR_EDGE_PADDING_LOW);
  const double whole = vmem_cost_registers(work, &op->results[0]);
  for (uint32_t i = 0; i < low.count; ++i) {
    vmem_cost_shift(work, vmem_cost_layout(work, &op->results[0]), (int32_t)i, low.values[i],
                    whole);
  }
  work->vector += VMEM_PAD_SELECTS * whole;
  work->loads += whole;
}

// ---- rows ----

// An element per row is broadcast into the lanes.
static void vmem_cost_broadcast(vmem_work_t *work, const mp_op_t *op) {
  const mp_value_t *from = op->operands[0], *to = &op->results[0];
  const int32_t lane = vmem_cost_layout(work, to).lane;
  const mp_index_list_t dims = mp_op_ints(op, MP_ATTR_BROADCAST_DIMENSIONS);
  bool is_spread = lane >= 0 && mp_chip_fusion_value_count(from) > 1;
  for (uint32_t i = 0; i < dims.count; ++i) {
    is_spread &= dims.values[i] != lane || from->type->dims[i] == 1;
  }
  const double rows =
      vmem_cost_registers(work, to) / vmem_cost_tiles(to->type, lane, MP_TILE_LANES);
  vmem_cost_add_lanes(work, is_spread ? rows : 0, work->figures->vmem_broadcast);
}

// Registers along the lanes or sublanes are reduced to one, and then the elements of that one:
// across lanes in one step of their unit, across sublanes by three rotations.
static void vmem_cost_reduce(vmem_work_t *work, const mp_op_t *op) {
  enum { ROTATES_AND_ADDS = 6 };
  const mp_index_list_t dims = mp_op_ints(op, MP_ATTR_DIMENSIONS);
  const mp_type_t *type = op->operands[0]->type;
  const mp_tile_layout_t layout = vmem_cost_layout(work, op->operands[0]);
  const double all = vmem_cost_registers(work, op->operands[0]) * op->num_results;
  bool is_lane = false, is_sublane = false;
  double each = 1;
  for (uint32_t i = 0; i < dims.count; ++i) {
    const int32_t dim = (int32_t)dims.values[i];
    is_lane |= dim == layout.lane;
    is_sublane |= dim == layout.sublane;
    each *= vmem_cost_tiles(type, dim,
                            dim == layout.lane      ? MP_TILE_LANES
                            : dim == layout.sublane ? MP_TILE_SUBLANES
                                                    : 1);
  }
  vmem_cost_add_lanes(work, is_lane ? all / each : 0, work->figures->vmem_reduce);
  if (is_sublane) work->vector += ROTATES_AND_ADDS * all / each;
}

// ---- kernels ----

typedef void (*vmem_op_t)(vmem_work_t *work, const mp_op_t *op);

static const vmem_op_t g_ops[MP_OP_COUNT] = {
    [MP_OP_SLICE] = vmem_cost_slice,   [MP_OP_CONCATENATE] = vmem_cost_concatenate,
    [MP_OP_PAD] = vmem_cost_pad,       [MP_OP_BROADCAST_IN_DIM] = vmem_cost_broadcast,
    [MP_OP_REDUCE] = vmem_cost_reduce,
};

bool mp_vmem_is_known(const mp_chip_t *chip) {
  return mp_chip_policy(&chip->figures)->has_tiles && !isnan(chip->figures.vmem_store);
}

mp_vmem_seconds_t mp_vmem_seconds(const mp_chip_t *chip, const mp_chip_fusions_t *fusions,
                                  const mp_chip_fusion_t *fusion) {
  if (!mp_vmem_is_known(chip)) return (mp_vmem_seconds_t){0};
  const mp_chip_figures_t *figures = &chip->figures;
  vmem_work_t work = {.figures = figures, .layouts = &fusions->layouts};
  for (const mp_chip_fusion_member_t *m = NULL; mp_chip_fusion_visit(fusions, fusion, &m);) {
    if (g_ops[m->op->code] != NULL) g_ops[m->op->code](&work, m->op);
  }
  const mp_chip_fusion_access_t *accesses = mp_chip_fusion_accesses(fusions, fusion);
  for (uint32_t i = 0; i < fusion->num_reads + fusion->num_writes; ++i) {
    const double registers = accesses[i].bytes / VMEM_TILE_BYTES;
    *(i < fusion->num_reads ? &work.loads : &work.stores) += registers;
  }
  const double loads = work.loads * mp_figure_or(figures->vmem_load, 0);
  const double stores = work.stores * figures->vmem_store;
  return (mp_vmem_seconds_t){
      .vector = work.vector * MP_TILE_ELEMENTS / mp_vector_rate(chip),
      .others = fmax(work.lanes, fmax(loads, stores)),
      .latency = work.latency,
  };
}

double mp_vmem_padding(const mp_chip_t *chip, const mp_op_t *op) {
  const mp_value_t *value = op->code == MP_OP_REDUCE ? op->operands[0] : &op->results[0];
  if (!mp_vmem_is_known(chip) || op->num_results == 0 || !mp_type_is_tensor(value->type)) return 1;
  return mp_tile_padding(value->type, mp_tile_layout_compact(value->type));
}

double mp_vmem_copy_seconds(const mp_chip_t *chip, double bytes) {
  return bytes / VMEM_TILE_BYTES * mp_figure_or(chip->figures.vmem_store, 0) +
         mp_figure_or(chip->figures.vmem_latency, chip->op_latency);
}

double mp_vmem_transpose_seconds(const mp_chip_t *chip, double elements) {
  return elements / MP_TILE_ELEMENTS * mp_figure_or(chip->figures.vmem_transpose, 0) +
         mp_figure_or(chip->figures.vmem_latency, chip->op_latency);
}
