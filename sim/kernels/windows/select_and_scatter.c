// stablehlo.select_and_scatter: each window selects one of its elements, and the window's source
// value is combined into the result at that place. Windows are done in row-major order.
#include <string.h>

#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/elementwise/region.h"
#include "sim/kernels/lanes.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/strided.h"
#include "sim/kernels/windows/window.h"
#include "sim/kernels/windows/windows_makers.h"

enum { LANES = MP_REGION_MAX_LANES, NUM_ARRAYS = 3 };

typedef struct {
  mp_kernel_t base;
  mp_window_t window;
  const mp_region_fn_t *select, *scatter;
  bool is_binary;  // the scatter region is one op: `binary`
  mp_ew_t binary;
  size_t size;         // the bytes of an element
  int64_t num_slices;  // parts are cut along dimension 0 if its windows are plain; otherwise 1
  int64_t slice_elements, slice_windows;
} select_t;

typedef struct {
  char *selected, *candidate, *present;  // [LANES] elements
  uint8_t *keep;                         // [LANES]
  int64_t *place;                        // [LANES] selected element's offset; -1: none yet
  void *lanes;                           // mp_window_lanes_t's
  void *registers;
} work_t;

static size_t select_and_scatter_work_bytes(const select_t *kernel) {
  return LANES * (NUM_ARRAYS * 16 + sizeof(uint8_t) + sizeof(int64_t)) +
         mp_window_lanes_bytes(&kernel->window);
}

static void select_and_scatter_lay_out(const select_t *kernel, void *scratch, work_t *out_work) {
  char *memory = scratch;
  out_work->selected = memory;
  out_work->candidate = memory + LANES * 16;
  out_work->present = memory + LANES * 32;
  memory += LANES * 48;
  out_work->place = (int64_t *)(void *)memory;
  memory += LANES * sizeof(int64_t);
  out_work->keep = (uint8_t *)memory;
  memory += LANES;
  out_work->lanes = memory;
  out_work->registers = (char *)scratch + mp_round_up_64(select_and_scatter_work_bytes(kernel));
}

// Lets the windows that have the current element compare it with the one that they have selected.
static void select_and_scatter_offer(const select_t *kernel, const mp_kernel_call_t *call,
                                     const work_t *work, const mp_window_lanes_t *lanes) {
  int64_t inside = lanes->num_inside, from[LANES], to[LANES], num_changed = 0;
  mp_lanes_gather(kernel->size, inside, call->operands[0], lanes->offsets, work->candidate);
  // A window without a selected element takes any, so that its comparison does not matter.
  mp_lanes_gather(kernel->size, inside, work->selected, lanes->where, work->present);
  const void *in[] = {work->present, work->candidate};
  void *out = work->keep;
  mp_region_fn_run(kernel->select, inside, in, call->operands + 3, &out, work->registers);
  for (int64_t i = 0; i < inside; ++i) {
    int64_t lane = lanes->where[i];
    bool changes = work->place[lane] < 0 || work->keep[i] == 0;
    work->place[lane] = changes ? lanes->offsets[i] : work->place[lane];
    from[num_changed] = i;
    to[num_changed] = lane;
    num_changed += changes;
  }
  mp_lanes_gather(kernel->size, num_changed, work->candidate, from, work->present);
  mp_lanes_scatter(kernel->size, num_changed, work->present, to, work->selected);
}

static void select_and_scatter_scatter(const select_t *kernel, const mp_kernel_call_t *call,
                                       const work_t *work, int64_t first, int64_t count) {
  int64_t size = (int64_t)kernel->size;
  for (int64_t i = 0; i < count; ++i) {
    if (work->place[i] < 0) continue;
    void *to = (char *)call->results[0] + work->place[i] * size;
    const void *in[] = {to, (const char *)call->operands[1] + (first + i) * size};
    if (kernel->is_binary) {
      mp_ew_run(&kernel->binary, 1, in, to);
    } else {
      mp_region_fn_run(kernel->scatter, 1, in, call->operands + 3, &to, work->registers);
    }
  }
}

static mp_status_t select_and_scatter_run(const mp_kernel_t *base, const mp_kernel_call_t *call) {
  const select_t *kernel = (const select_t *)base;
  int64_t first_slice, end_slice, count;
  mp_part_range(kernel->num_slices, base->num_parts, call->part, &first_slice, &end_slice);
  work_t work;
  select_and_scatter_lay_out(kernel, call->scratch, &work);
  int64_t elements = kernel->slice_elements;
  mp_fill((char *)call->results[0] + (size_t)(first_slice * elements) * kernel->size,
          call->operands[2], kernel->size, (end_slice - first_slice) * elements);
  int64_t begin = first_slice * kernel->slice_windows, end = end_slice * kernel->slice_windows;
  for (; begin < end; begin += count) {
    count = mp_min_i64(end - begin, LANES);
    for (int64_t i = 0; i < count; ++i) work.place[i] = -1;
    memset(work.selected, 0, (size_t)count * kernel->size);
    mp_window_lanes_t lanes;
    for (int64_t w = 0; w < kernel->window.size; ++w) {
      if (w == 0) {
        mp_window_lanes_begin(&kernel->window, begin, count, work.lanes, &lanes);
      } else {
        mp_window_lanes_next(&lanes);
      }
      if (lanes.num_inside > 0) select_and_scatter_offer(kernel, call, &work, &lanes);
    }
    select_and_scatter_scatter(kernel, call, &work, begin, count);
  }
  return NULL;
}

static mp_status_t select_and_scatter_set_regions(select_t *kernel, mp_arena_t *arena,
                                                  const mp_op_t *op) {
  mp_dtype_t dtype = mp_op_operand_type(op, 0)->dtype;
  for (uint32_t r = 0; r < 2; ++r) {
    for (uint32_t i = 0; i < op->regions[r]->num_args; ++i) {
      if (op->regions[r]->args[i].type->dtype == dtype) continue;
      return mp_op_error(op, MP_UNIMPLEMENTED, "the region computes in %s, the operand is %s",
                         mp_dtype_name(op->regions[r]->args[i].type->dtype), mp_dtype_name(dtype));
    }
  }
  if (mp_op_operand_type(op, 1)->dtype != dtype || mp_op_operand_type(op, 2)->dtype != dtype) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "operand, source and start value differ in type");
  }
  MP_RETURN_IF_ERROR(mp_region_fn_create(arena, op->regions[0], &kernel->select));
  MP_RETURN_IF_ERROR(mp_region_fn_create(arena, op->regions[1], &kernel->scatter));
  mp_opcode_t code = mp_reduce_kind_opcode(mp_region_fn_kind(kernel->scatter));
  kernel->is_binary = code != MP_OP_COUNT && mp_ew_bind_binary(code, dtype, &kernel->binary);
  kernel->size = mp_dtype_size(dtype);
  return NULL;
}

enum { GRAIN = 16 * 1024 };

mp_status_t mp_kernel_make_select_and_scatter(mp_arena_t *arena, const mp_op_t *op,
                                              const mp_kernel_t **out_kernel) {
  select_t *kernel = MP_ARENA_NEW(arena, select_t);
  MP_RETURN_IF_NULL(kernel);
  mp_kernel_init(&kernel->base, select_and_scatter_run, op);
  MP_RETURN_IF_ERROR(select_and_scatter_set_regions(kernel, arena, op));
  const mp_type_t *in = mp_op_operand_type(op, 0), *source = mp_op_operand_type(op, 1);
  MP_RETURN_IF_ERROR(mp_window_create(op, in, source, &kernel->window));
  int64_t elements = mp_shape_count(in);
  kernel->num_slices = 1;
  if (in->rank > 0 && kernel->window.dims[0].is_plain && in->dims[0] == source->dims[0]) {
    kernel->num_slices = in->dims[0];
  }
  int64_t slices = mp_max_i64(kernel->num_slices, 1);
  kernel->slice_elements = elements / slices;
  kernel->slice_windows = kernel->window.count / slices;
  int64_t work = mp_max_i64(
      1, mp_min_i64(kernel->slice_windows, GRAIN) * mp_min_i64(kernel->window.size, GRAIN));
  kernel->base.num_parts = mp_part_count(kernel->num_slices, mp_max_i64(1, GRAIN / work));
  size_t select = mp_region_fn_scratch_bytes(kernel->select);
  size_t scatter_bytes = mp_region_fn_scratch_bytes(kernel->scatter);
  kernel->base.scratch_bytes = mp_round_up_64(select_and_scatter_work_bytes(kernel)) +
                               (select > scatter_bytes ? select : scatter_bytes);
  *out_kernel = &kernel->base;
  return NULL;
}
