#include "sim/chip/cost/vector_cost.h"

#include <math.h>

#include "sim/chip/fuse/chip_fusion_kinds.h"

// ---- registers ----

// A vector register has a tile of 32-bit words. Narrower elements are unpacked to be moved.
#define VMEM_TILE       (MP_TILE_LANES * MP_TILE_SUBLANES)
#define VMEM_TILE_BYTES (4 * VMEM_TILE)

// What a kernel does: operations on registers, registers that are loaded and stored, and seconds.
typedef struct {
  const mp_chip_t *chip;
  const mp_chip_figures_t *figures;
  const mp_layouts_t *layouts;
  double vector, loads, stores;
  double lanes;    // of the unit that moves elements across lanes
  double update;   // of writes to places that are no whole tiles
  double moved;    // of kernels before that change layouts
  double chain;    // of sums of which each waits for the one before
  double latency;  // until the first result of the lanes' unit
} vmem_work_t;

static double vmem_cost_registers(const vmem_work_t *work, const mp_value_t *value) {
  const double bits = mp_dtype_bits(value->type->dtype);
  return mp_layouts_bytes(work->layouts, value) * 8 / bits / VMEM_TILE;
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

// Whether a place along a dimension is inside of a tile.
static bool vmem_cost_is_between(mp_tile_layout_t layout, int32_t dim, int64_t offset) {
  return (dim == layout.lane && offset % MP_TILE_LANES != 0) ||
         (dim == layout.sublane && offset % MP_TILE_SUBLANES != 0);
}

// Registers of an array that starts elsewhere in its tiles: they are rotated, and two neighbours
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

// Each operand is extended to the whole by minus infinity, and of all the largest is taken. Of
// operands that are whole tiles only the one that is there is read.
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

// An element for each row goes into all of its lanes.
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

// Registers are reduced to one along the lanes or sublanes, and then within it: across lanes in one
// step of that unit, across sublanes by three rotations.
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
  work->chain = fmax(work->chain, each * mp_figure_or(work->figures->vmem_chain, 0));
}

// Elements of a register in the opposite order: along lanes that takes as long as a transpose.
static void vmem_cost_reverse(vmem_work_t *work, const mp_op_t *op) {
  enum { ROTATES_AND_SELECTS = 6 };
  const mp_index_list_t dims = mp_op_ints(op, MP_ATTR_DIMENSIONS);
  const mp_tile_layout_t layout = vmem_cost_layout(work, &op->results[0]);
  const double registers = vmem_cost_registers(work, &op->results[0]);
  for (uint32_t i = 0; i < dims.count; ++i) {
    if (dims.values[i] == layout.lane) {
      vmem_cost_add_lanes(work, registers, work->figures->vmem_transpose);
    } else if (dims.values[i] == layout.sublane) {
      work->vector += ROTATES_AND_SELECTS * registers;
    }
  }
}

// A cumulative op: the dimension is moved out of the tiles, blocks of 128 are done in steps by
// powers of two, and then the results of earlier blocks are added.
static void vmem_cost_scan(vmem_work_t *work, const mp_op_t *op) {
  const int64_t along = mp_chip_fusion_cumulative(op);
  if (along < 0) return;
  const double line = (double)op->operands[0]->type->dims[along];
  const double steps = ceil(log2(fmax(fmin(line, MP_TILE_LANES), 1))) + 1;
  const double each = 1 + mp_vector_region_operations(work->chip, op->regions[0], 1);
  const double registers = vmem_cost_registers(work, &op->results[0]) * op->num_results;
  work->vector += registers * steps * each;
  work->moved += registers * mp_figure_or(work->figures->vmem_transpose, 0);
}

// ---- updates ----

// The elements that an update has along a dimension of the array.
static int64_t vmem_cost_updated(const mp_op_t *op, const mp_type_t *update, int32_t dim) {
  if (dim < 0) return 1;
  if (op->code == MP_OP_DYNAMIC_UPDATE_SLICE) return update->dims[dim];
  const mp_index_list_t inserted = mp_op_ints(op, MP_ATTR_INSERTED_WINDOW_DIMS);
  const mp_index_list_t window = mp_op_ints(op, MP_ATTR_UPDATE_WINDOW_DIMS);
  uint32_t at = (uint32_t)dim;
  if (mp_index_list_has(inserted, dim)) return 1;
  for (uint32_t i = 0; i < inserted.count; ++i) at -= inserted.values[i] < dim;
  return at < window.count ? update->dims[window.values[at]] : 1;
}

// Of an array whose tiles an update does not fill, parts of registers are written.
static void vmem_cost_update(vmem_work_t *work, const mp_op_t *op) {
  enum { STEPS = 3 };
  if (!mp_chip_fusion_sets_window(op)) return;
  const mp_chip_figures_t *figures = work->figures;
  const bool is_slice = op->code == MP_OP_DYNAMIC_UPDATE_SLICE;
  const mp_type_t *type = op->operands[0]->type;
  const mp_type_t *update = op->operands[is_slice ? 1 : op->num_operands / 2 + 1]->type;
  const mp_tile_layout_t layout = vmem_cost_layout(work, op->operands[0]);
  const double lanes = (double)vmem_cost_updated(op, update, layout.lane);
  const double rows = (double)vmem_cost_updated(op, update, layout.sublane);
  const bool is_column = layout.lane >= 0 && lanes < (double)type->dims[layout.lane];
  const bool is_row = layout.sublane >= 0 && rows < (double)type->dims[layout.sublane];
  int64_t count = 0;
  if (!(is_column || is_row) || !mp_type_num_elements(update, &count)) return;
  const double registers = (double)count / fmax(lanes * rows, 1) * ceil(lanes / MP_TILE_LANES) *
                           ceil(rows / MP_TILE_SUBLANES);
  work->update +=
      registers * mp_figure_or(is_column ? figures->vmem_columns : figures->vmem_rows, 0);
  if (is_column) work->latency = STEPS * mp_figure_or(figures->vmem_lanes_latency, 0);
}

// ---- in place ----

static bool vmem_cost_reads_elsewhere(const mp_chip_fusions_t *fusions,
                                      const mp_chip_fusion_t *fusion, const mp_value_t *value) {
  for (uint32_t at = fusion->first_member; at != MP_CHIP_FUSION_NONE;) {
    const mp_op_t *op = fusions->members.items[at].op;
    at = fusions->members.items[at].next;
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      const bool is_read = mp_chip_fusion_root(op->operands[i]) == value;
      if (is_read && !mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) return true;
    }
  }
  return false;
}

// Whether a kernel of a loop's body reads a carried value element by element and makes the next
// one, which is written over it.
static bool vmem_cost_is_in_place(const mp_chip_fusions_t *fusions,
                                  const mp_chip_fusion_t *fusion) {
  const mp_op_t *loop = fusion->block->parent_op;
  if (loop == NULL || loop->code != MP_OP_WHILE || loop->regions[1] != fusion->block) return false;
  const mp_chip_fusion_access_t *reads = mp_chip_fusion_accesses(fusions, fusion);
  const mp_op_t *end = mp_block_terminator(fusion->block);
  for (uint32_t r = 0; r < fusion->num_reads; ++r) {
    const mp_value_t *now = mp_chip_fusion_root(reads[r].value);
    if (now->op != NULL || now->block != fusion->block || reads[r].space == MP_SPACE_HBM) continue;
    const mp_value_t *next = mp_chip_fusion_root(end->operands[now->index]);
    for (uint32_t w = fusion->num_reads; w < fusion->num_reads + fusion->num_writes; ++w) {
      const bool is_next = mp_chip_fusion_root(reads[w].value) == next;
      if (is_next && !vmem_cost_reads_elsewhere(fusions, fusion, now)) return true;
    }
  }
  return false;
}

// Nothing is loaded before what comes earlier is stored: arithmetic does not overlap with stores,
// and functions wait for their results.
static double vmem_cost_in_place(const vmem_work_t *work, const mp_chip_fusions_t *fusions,
                                 const mp_chip_fusion_t *fusion) {
  bool has_function = false;
  if (!vmem_cost_is_in_place(fusions, fusion)) return 0;
  for (uint32_t at = fusion->first_member; at != MP_CHIP_FUSION_NONE;) {
    const mp_chip_fusion_member_t *member = &fusions->members.items[at];
    mp_work_t done;
    mp_work_of_op(member->op, &done);
    has_function |= done.vector_transcendentals > 0;
    at = member->next;
  }
  const double wait = has_function ? mp_figure_or(work->figures->vmem_in_place, 0) : 0;
  return work->stores * (work->figures->vmem_store + wait);
}

// ---- kernels ----

typedef void (*vmem_op_t)(vmem_work_t *work, const mp_op_t *op);

static const vmem_op_t g_ops[MP_OP_COUNT] = {
    [MP_OP_SLICE] = vmem_cost_slice,
    [MP_OP_CONCATENATE] = vmem_cost_concatenate,
    [MP_OP_PAD] = vmem_cost_pad,
    [MP_OP_BROADCAST_IN_DIM] = vmem_cost_broadcast,
    [MP_OP_REDUCE] = vmem_cost_reduce,
    [MP_OP_DYNAMIC_UPDATE_SLICE] = vmem_cost_update,
    [MP_OP_SCATTER] = vmem_cost_update,
    [MP_OP_REVERSE] = vmem_cost_reverse,
    [MP_OP_REDUCE_WINDOW] = vmem_cost_scan,
};

bool mp_vmem_is_known(const mp_chip_t *chip) {
  return chip->figures.compiler == MP_CHIP_COMPILER_TPU && !isnan(chip->figures.vmem_store);
}

mp_vmem_seconds_t mp_vmem_seconds(const mp_chip_t *chip, const mp_chip_fusions_t *fusions,
                                  const mp_chip_fusion_t *fusion) {
  if (!mp_vmem_is_known(chip)) return (mp_vmem_seconds_t){0};
  const mp_chip_figures_t *figures = &chip->figures;
  vmem_work_t work = {.chip = chip, .figures = figures, .layouts = &fusions->layouts};
  for (uint32_t at = fusion->first_member; at != MP_CHIP_FUSION_NONE;) {
    const mp_chip_fusion_member_t *member = &fusions->members.items[at];
    if (g_ops[member->op->code] != NULL) g_ops[member->op->code](&work, member->op);
    at = member->next;
  }
  const mp_chip_fusion_access_t *accesses = mp_chip_fusion_accesses(fusions, fusion);
  for (uint32_t i = 0; i < fusion->num_reads + fusion->num_writes; ++i) {
    const double registers = accesses[i].bytes / VMEM_TILE_BYTES;
    *(i < fusion->num_reads ? &work.loads : &work.stores) += registers;
  }
  const double loads = work.loads * mp_figure_or(figures->vmem_load, 0);
  const double stores = work.stores * figures->vmem_store + work.update;
  return (mp_vmem_seconds_t){
      .vector = work.vector * VMEM_TILE / mp_vector_rate(chip) + work.moved +
                vmem_cost_in_place(&work, fusions, fusion),
      .others = fmax(fmax(work.lanes, work.chain), fmax(loads, stores)),
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
  return elements / VMEM_TILE * mp_figure_or(chip->figures.vmem_transpose, 0) +
         mp_figure_or(chip->figures.vmem_latency, chip->op_latency);
}
