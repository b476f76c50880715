// DMAs, semaphores and barriers.
#include "sim/mosaic/ir/mosaic_verify.h"

// Operand `i` is one semaphore: a memref of rank 0, or with one element.
static mp_status_t mosaic_verify_async_semaphore(const mp_mosaic_op_t *op, uint32_t i,
                                                 bool only_dma) {
  int64_t count = 0;
  const mp_mosaic_type_t *type = mp_mosaic_in(op, i);
  MP_MOSAIC_CHECK(
      op, mp_mosaic_is_semaphore(type) && mp_mosaic_num_elements(type, &count) && count == 1,
      "operand %u is not a semaphore", i);
  MP_MOSAIC_CHECK(op, !only_dma || type->element == MP_MOSAIC_DMA_SEMAPHORE,
                  "operand %u is not a semaphore of DMAs", i);
  return NULL;
}

// What is copied to what: memrefs of numbers, of the same elements.
static mp_status_t mosaic_verify_async_copy(const mp_mosaic_op_t *op, uint32_t from, uint32_t to) {
  const mp_mosaic_type_t *source = mp_mosaic_in(op, from), *target = mp_mosaic_in(op, to);
  MP_MOSAIC_CHECK(op, mp_mosaic_is_numbers(source) && mp_mosaic_is_numbers(target),
                  "source and target are not memrefs of numbers");
  MP_MOSAIC_CHECK(op, source->dtype == target->dtype && mp_mosaic_same_dims(source, target),
                  "source and target have different types");
  return NULL;
}

// Source, its semaphore, target, its semaphore, device, core, subcore.
static mp_status_t mosaic_verify_async_dma(const mp_mosaic_op_t *op) {
  uint32_t sizes[7] = {0}, at = 1;
  MP_RETURN_IF_ERROR(mp_mosaic_segments(op, 7, 0, 1u << 0 | 1u << 2, sizes));
  if (sizes[1] == 1) MP_RETURN_IF_ERROR(mosaic_verify_async_semaphore(op, at++, false));
  MP_RETURN_IF_ERROR(mosaic_verify_async_copy(op, 0, at++));
  if (sizes[3] == 1) MP_RETURN_IF_ERROR(mosaic_verify_async_semaphore(op, at++, false));
  MP_MOSAIC_CHECK(op, sizes[1] + sizes[3] > 0, "it has no semaphore");
  return mp_mosaic_check_indices(op, at, op->num_operands - at);
}

// The operands of the DMA. The attribute says whether its arrival is waited for, or the end of its
// reads.
static mp_status_t mosaic_verify_async_wait(const mp_mosaic_op_t *op) {
  MP_RETURN_IF_ERROR(mosaic_verify_async_dma(op));
  const mp_mosaic_attr_t *which = mp_mosaic_op_attr(op, "wait_target");
  MP_MOSAIC_CHECK(op, which != NULL && which->kind == MP_MOSAIC_BOOL,
                  "the attribute 'wait_target' is missing");
  const mp_mosaic_value_t *semaphore = mp_mosaic_op_awaited(op).semaphore;
  MP_MOSAIC_CHECK(op, semaphore != NULL, "it has no semaphore for what it waits for");
  MP_MOSAIC_CHECK(op, semaphore->type->element == MP_MOSAIC_DMA_SEMAPHORE,
                  "it waits at a semaphore that is not one of DMAs");
  return NULL;
}

// Semaphore, source, target, device, core.
static mp_status_t mosaic_verify_async_wait2(const mp_mosaic_op_t *op) {
  uint32_t sizes[5] = {0};
  MP_RETURN_IF_ERROR(mp_mosaic_segments(op, 5, 0, 7, sizes));
  MP_RETURN_IF_ERROR(mosaic_verify_async_semaphore(op, 0, true));
  MP_RETURN_IF_ERROR(mosaic_verify_async_copy(op, 1, 2));
  return mp_mosaic_check_indices(op, 3, op->num_operands - 3);
}

// Semaphore, amount, device, core, subcore.
static mp_status_t mosaic_verify_async_signal(const mp_mosaic_op_t *op) {
  uint32_t sizes[5] = {0};
  MP_RETURN_IF_ERROR(mp_mosaic_segments(op, 5, 0, 3, sizes));
  MP_RETURN_IF_ERROR(mosaic_verify_async_semaphore(op, 0, false));
  return mp_mosaic_check_indices(op, 1, op->num_operands - 1);
}

static mp_status_t mosaic_verify_async_sem_wait(const mp_mosaic_op_t *op) {
  MP_RETURN_IF_ERROR(mosaic_verify_async_semaphore(op, 0, false));
  return mp_mosaic_check_indices(op, 1, 1);
}

static mp_status_t mosaic_verify_async_sem_read(const mp_mosaic_op_t *op) {
  MP_RETURN_IF_ERROR(mosaic_verify_async_semaphore(op, 0, false));
  MP_MOSAIC_CHECK(op, mp_mosaic_is_scalar_int(mp_mosaic_out(op, 0)), "it does not make a number");
  return NULL;
}

static mp_status_t mosaic_verify_async_sem_make(const mp_mosaic_op_t *op) {
  int64_t count = 0;
  MP_MOSAIC_CHECK(op,
                  mp_mosaic_is_semaphore(mp_mosaic_out(op, 0)) &&
                      mp_mosaic_num_elements(mp_mosaic_out(op, 0), &count),
                  "it does not make semaphores");
  return NULL;
}

static mp_status_t mosaic_verify_async_scalar(const mp_mosaic_op_t *op) {
  MP_MOSAIC_CHECK(op, mp_mosaic_is_scalar_int(mp_mosaic_out(op, 0)), "it does not make a number");
  return NULL;
}

static mp_status_t mosaic_verify_async_same(const mp_mosaic_op_t *op) {
  MP_MOSAIC_CHECK(op, mp_mosaic_type_equal(mp_mosaic_in(op, 0), mp_mosaic_out(op, 0)),
                  "it changes the type of a value");
  return NULL;
}

static mp_status_t mosaic_verify_async_message(const mp_mosaic_op_t *op) {
  const mp_mosaic_attr_t *message = mp_mosaic_op_attr(op, "message");
  MP_MOSAIC_CHECK(op, message != NULL && message->kind == MP_MOSAIC_STRING, "it has no message");
  return NULL;
}

mp_mosaic_check_t mp_mosaic_check_async(mp_mosaic_opcode_t code) {
  switch (code) {
    case MP_MOSAIC_ENQUEUE_DMA:
      return mosaic_verify_async_dma;
    case MP_MOSAIC_WAIT_DMA:
      return mosaic_verify_async_wait;
    case MP_MOSAIC_WAIT_DMA2:
      return mosaic_verify_async_wait2;
    case MP_MOSAIC_SEM_SIGNAL:
      return mosaic_verify_async_signal;
    case MP_MOSAIC_SEM_WAIT:
      return mosaic_verify_async_sem_wait;
    case MP_MOSAIC_SEM_READ:
      return mosaic_verify_async_sem_read;
    case MP_MOSAIC_SEM_ALLOC:
    case MP_MOSAIC_SEM_BARRIER:
      return mosaic_verify_async_sem_make;
    case MP_MOSAIC_DEVICE_ID:
    case MP_MOSAIC_CORE_ID:
    case MP_MOSAIC_SUBCORE_ID:
    case MP_MOSAIC_ITERATION_BOUND:
      return mosaic_verify_async_scalar;
    case MP_MOSAIC_ASSUME_MULTIPLE:
      return mosaic_verify_async_same;
    case MP_MOSAIC_TRACE_START:
      return mosaic_verify_async_message;
    default:
      return NULL;
  }
}
