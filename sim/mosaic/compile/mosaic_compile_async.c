// DMAs, semaphores, random numbers, and the machine's scalars.
#include "sim/mosaic/compile/mosaic_compiler.h"

static mp_status_t mosaic_compile_async_refuse(const mp_mosaic_op_t *op, const char *what) {
  return mp_mosaic_op_error(op, MP_UNIMPLEMENTED, "%s", what);
}

static mp_status_t mosaic_compile_async_emit(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op,
                                             mp_mosaic_instruction_t *in) {
  MP_RETURN_IF_ERROR(mp_mosaic_where(c, op, &in->where));
  return mp_mosaic_emit(c, in);
}

// The device and core of an op on another device, and the instruction for it.
static mp_status_t mosaic_compile_async_remote(mp_mosaic_compiler_t *c, mp_mosaic_value_t *device,
                                               mp_mosaic_value_t *core,
                                               mp_mosaic_instruction_t *in) {
  uint32_t register_of_core = 0;
  in->value = -1;
  if (core != NULL) {
    MP_RETURN_IF_ERROR(mp_mosaic_need_index(c, core, &register_of_core));
    in->value = register_of_core;
  }
  if (device != NULL) return mp_mosaic_need_index(c, device, &in->target);
  // Another core of this device.
  mp_mosaic_instruction_t self = {.kind = MP_MOSAIC_DO_DEVICE};
  MP_RETURN_IF_ERROR(mp_mosaic_new_register(c, 0, &self.out));
  in->target = self.out;
  return mp_mosaic_emit(c, &self);
}

// ---- DMAs ----

static uint8_t mosaic_compile_async_counts(const mp_mosaic_value_t *semaphore,
                                           mp_mosaic_counts_t bit) {
  if (semaphore == NULL || semaphore->type->element == MP_MOSAIC_DMA_SEMAPHORE) return 0;
  return (uint8_t)bit;
}

static mp_status_t mosaic_compile_async_dma(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  enum { SOURCE, SOURCE_SEMAPHORE, TARGET, TARGET_SEMAPHORE, DEVICE, CORE, SUBCORE, COUNT };
  mp_mosaic_value_t *parts[COUNT];
  mp_mosaic_instruction_t in = {.kind = MP_MOSAIC_DO_DMA};
  mp_mosaic_place_t target;
  for (uint32_t i = 0; i < COUNT; ++i) parts[i] = mp_mosaic_op_optional(op, i);
  if (parts[TARGET_SEMAPHORE] == NULL)
    return mosaic_compile_async_refuse(op, "a DMA without semaphore");
  const bool is_remote = parts[DEVICE] != NULL || parts[CORE] != NULL;
  if (parts[SUBCORE] != NULL || (!is_remote && parts[SOURCE_SEMAPHORE] != NULL)) {
    return mosaic_compile_async_refuse(op, "this form of the op is not supported");
  }
  MP_RETURN_IF_ERROR(mp_mosaic_need_index(c, parts[SOURCE], &in.a));
  MP_RETURN_IF_ERROR(mp_mosaic_need(c, parts[TARGET], &target));
  in.b = target.index;
  in.dtype = (uint8_t)parts[SOURCE]->type->dtype;
  if (target.root < c->num_roots) c->written[target.root] = true;
  MP_RETURN_IF_ERROR(mp_mosaic_need_index(c, parts[TARGET_SEMAPHORE], &in.c));
  in.out = MP_MOSAIC_NONE;
  in.bits = mosaic_compile_async_counts(parts[TARGET_SEMAPHORE], MP_MOSAIC_COUNTS_TARGET) |
            mosaic_compile_async_counts(parts[SOURCE_SEMAPHORE], MP_MOSAIC_COUNTS_SOURCE);
  if (is_remote) {
    in.kind = MP_MOSAIC_DO_REMOTE_DMA;
    if (parts[SOURCE_SEMAPHORE] != NULL) {
      MP_RETURN_IF_ERROR(mp_mosaic_need_index(c, parts[SOURCE_SEMAPHORE], &in.out));
    }
    MP_RETURN_IF_ERROR(mosaic_compile_async_remote(c, parts[DEVICE], parts[CORE], &in));
  }
  return mosaic_compile_async_emit(c, op, &in);
}

// The semaphore is this device's, whatever device the DMA has.
static mp_status_t mosaic_compile_async_wait_dma(mp_mosaic_compiler_t *c,
                                                 const mp_mosaic_op_t *op) {
  const mp_mosaic_awaited_t awaited = mp_mosaic_op_awaited(op);
  mp_mosaic_instruction_t in = {.kind = MP_MOSAIC_DO_WAIT_DMA};
  MP_RETURN_IF_ERROR(mp_mosaic_need_index(c, awaited.semaphore, &in.c));
  MP_RETURN_IF_ERROR(mp_mosaic_need_index(c, awaited.view, &in.a));
  in.dtype = (uint8_t)awaited.view->type->dtype;
  return mosaic_compile_async_emit(c, op, &in);
}

// ---- semaphores ----

// Semaphore, amount, device, core, subcore.
static mp_status_t mosaic_compile_async_signal(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op,
                                               mp_mosaic_instruction_t *in) {
  enum { SEMAPHORE, AMOUNT, DEVICE, CORE, SUBCORE };
  if (op->num_operands == 2) return NULL;
  if (mp_mosaic_op_optional(op, SUBCORE) != NULL) {
    return mosaic_compile_async_refuse(op, "this form of the op is not supported");
  }
  in->kind = MP_MOSAIC_DO_REMOTE_SIGNAL;
  return mosaic_compile_async_remote(c, mp_mosaic_op_optional(op, DEVICE),
                                     mp_mosaic_op_optional(op, CORE), in);
}

static mp_status_t mosaic_compile_async_semaphore(mp_mosaic_compiler_t *c,
                                                  const mp_mosaic_op_t *op) {
  mp_mosaic_instruction_t in = {.kind = op->code == MP_MOSAIC_SEM_READ     ? MP_MOSAIC_DO_SEM_READ
                                        : op->code == MP_MOSAIC_SEM_SIGNAL ? MP_MOSAIC_DO_SEM_SIGNAL
                                                                           : MP_MOSAIC_DO_SEM_WAIT};
  MP_RETURN_IF_ERROR(mp_mosaic_need_index(c, op->operands[0], &in.c));
  if (op->code == MP_MOSAIC_SEM_READ) {
    MP_RETURN_IF_ERROR(mp_mosaic_new_result(c, &op->results[0], &in.out));
    return mosaic_compile_async_emit(c, op, &in);
  }
  MP_RETURN_IF_ERROR(mp_mosaic_need_index(c, op->operands[1], &in.a));
  if (op->code == MP_MOSAIC_SEM_SIGNAL) {
    MP_RETURN_IF_ERROR(mosaic_compile_async_signal(c, op, &in));
  }
  return mosaic_compile_async_emit(c, op, &in);
}

// The view of the semaphore that all kernels with the call's collective_id have in common.
static mp_status_t mosaic_compile_async_barrier(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  mp_mosaic_instruction_t in = {.kind = MP_MOSAIC_DO_BARRIER};
  MP_RETURN_IF_ERROR(mp_mosaic_new_result(c, &op->results[0], &in.out));
  MP_RETURN_IF_ERROR(mp_mosaic_copy_type(c, op->results[0].type, &in.u.type));
  return mosaic_compile_async_emit(c, op, &in);
}

static mp_status_t mosaic_compile_async_allocate(mp_mosaic_compiler_t *c,
                                                 const mp_mosaic_op_t *op) {
  int64_t count = 0;
  if (!mp_mosaic_num_elements(op->results[0].type, &count) || count > (1 << 20)) {
    return mosaic_compile_async_refuse(op, "so many semaphores are not supported");
  }
  return mp_mosaic_compile_allocate(c, op, (uint64_t)count * 8);
}

// ---- random numbers ----

static mp_status_t mosaic_compile_async_seed(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  mp_mosaic_part_t *part = MP_ARENA_NEW(c->arena, mp_mosaic_part_t);
  uint32_t *registers = MP_ARENA_ARRAY(c->arena, uint32_t, op->num_operands);
  if (part == NULL || registers == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(mp_mosaic_need_index(c, op->operands[i], &registers[i]));
  }
  *part = (mp_mosaic_part_t){.num_indices = op->num_operands, .indices = registers};
  mp_mosaic_instruction_t in = {.kind = MP_MOSAIC_DO_SEED, .u.part = part};
  return mosaic_compile_async_emit(c, op, &in);
}

static mp_status_t mosaic_compile_async_random(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  mp_mosaic_instruction_t in = {.kind = MP_MOSAIC_DO_RANDOM};
  mp_mosaic_place_t place;
  MP_RETURN_IF_ERROR(mp_mosaic_new_place(c, op->results[0].type, &place));
  if (place.kind != MP_MOSAIC_IN_VECTOR || mp_dtype_bits(op->results[0].type->dtype) != 32) {
    return mosaic_compile_async_refuse(op, "random bits other than a vector of 32-bit integers");
  }
  mp_mosaic_set_place(c, &op->results[0], place);
  in.out = place.index;
  in.value = (int64_t)c->vectors.items[place.index].bytes;
  return mosaic_compile_async_emit(c, op, &in);
}

// ---- the machine ----

static mp_status_t mosaic_compile_async_scalar(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op,
                                               mp_mosaic_instruction_t *in) {
  MP_RETURN_IF_ERROR(mp_mosaic_new_result(c, &op->results[0], &in->out));
  return mosaic_compile_async_emit(c, op, in);
}

static mp_status_t mosaic_compile_async_size(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  mp_mosaic_instruction_t in = {.kind = MP_MOSAIC_DO_SIZE};
  mp_mosaic_place_t dim;
  MP_RETURN_IF_ERROR(mp_mosaic_need_index(c, op->operands[0], &in.a));
  MP_RETURN_IF_ERROR(mp_mosaic_need(c, op->operands[1], &dim));
  in.value = c->registers.items[dim.index];
  const mp_mosaic_op_t *constant = op->operands[1]->op;
  if (constant == NULL || constant->code != MP_MOSAIC_CONSTANT || in.value < 0 ||
      in.value >= (int64_t)op->operands[0]->type->rank) {
    return mosaic_compile_async_refuse(op, "a dimension that is not known");
  }
  return mosaic_compile_async_scalar(c, op, &in);
}

static mp_status_t mosaic_compile_async_bound(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  mp_mosaic_instruction_t in = {.kind = MP_MOSAIC_DO_BOUND,
                                .value = mp_mosaic_op_int(op, "dim", -1)};
  const mp_mosaic_attr_t *bounds =
      mp_mosaic_attr(c->main->attrs, c->main->num_attrs, "iteration_bounds");
  if (bounds == NULL || in.value < 0 || in.value >= (int64_t)bounds->ints.count) {
    return mosaic_compile_async_refuse(op, "the grid has no such dimension");
  }
  return mosaic_compile_async_scalar(c, op, &in);
}

static mp_status_t mosaic_compile_async_device(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  mp_mosaic_instruction_t in = {.kind = MP_MOSAIC_DO_DEVICE};
  return mosaic_compile_async_scalar(c, op, &in);
}

mp_status_t mp_mosaic_compile_async(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  uint32_t zero = 0;  // the register of a core's number
  MP_RETURN_IF_ERROR(mp_mosaic_end_segment(c));
  switch (op->code) {
    case MP_MOSAIC_ENQUEUE_DMA:
      return mosaic_compile_async_dma(c, op);
    case MP_MOSAIC_WAIT_DMA:
    case MP_MOSAIC_WAIT_DMA2:
      return mosaic_compile_async_wait_dma(c, op);
    case MP_MOSAIC_SEM_READ:
    case MP_MOSAIC_SEM_SIGNAL:
    case MP_MOSAIC_SEM_WAIT:
      return mosaic_compile_async_semaphore(c, op);
    case MP_MOSAIC_SEM_ALLOC:
      return mosaic_compile_async_allocate(c, op);
    case MP_MOSAIC_SEM_BARRIER:
      return mosaic_compile_async_barrier(c, op);
    case MP_MOSAIC_DEVICE_ID:
      return mosaic_compile_async_device(c, op);
    case MP_MOSAIC_PRNG_SET_SEED:
      return mosaic_compile_async_seed(c, op);
    case MP_MOSAIC_PRNG_RANDOM_BITS:
      return mosaic_compile_async_random(c, op);
    case MP_MOSAIC_MEMREF_DIM:
      return mosaic_compile_async_size(c, op);
    case MP_MOSAIC_ITERATION_BOUND:
      return mosaic_compile_async_bound(c, op);
    case MP_MOSAIC_CORE_ID:
    case MP_MOSAIC_SUBCORE_ID:
      return mp_mosaic_new_result(c, &op->results[0], &zero);
    default:
      return mosaic_compile_async_refuse(op, "this op is not supported");
  }
}
