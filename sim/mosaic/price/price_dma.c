// DMAs and semaphores.
#include <math.h>

#include "sim/mosaic/price/price_walk.h"

double mp_price_copy(mp_price_walk_t *walk, double bytes) {
  const mp_price_chip_t *chip = walk->chip;
  const double begin = fmax(walk->now, walk->dma_free);
  walk->dma_free = begin + bytes / chip->bandwidth * chip->clock;
  walk->bytes += bytes;
  walk->copies += 1;
  return walk->dma_free + chip->latency * chip->clock;
}

void mp_price_wait(mp_price_walk_t *walk, double until) {
  if (until <= walk->now) return;
  walk->wait += until - walk->now;
  walk->now = until;
}

// ---- DMAs of the kernel itself ----

static bool price_dma_is_far(const mp_mosaic_type_t *type) {
  return type->space == MP_MOSAIC_SPACE_ANY || type->space == MP_MOSAIC_SPACE_HBM ||
         type->space == MP_MOSAIC_SPACE_HOST;
}

static double price_dma_bytes(mp_price_walk_t *walk, const mp_mosaic_type_t *type,
                              const mp_price_view_t *view) {
  double count = 1;
  if (view == NULL || !view->is_sized) walk->is_guessed = true;
  const uint32_t rank = view == NULL ? 0 : view->rank;
  for (uint32_t d = 0; d < rank; ++d) count *= fmax((double)view->dims[d], 0);
  return count * mp_dtype_bits(type->dtype) / 8;
}

static mp_price_semaphore_t *price_dma_semaphore(mp_price_walk_t *walk,
                                                 const mp_price_view_t *view) {
  const mp_price_object_t *object = view == NULL ? NULL : view->object;
  const bool has_offset = view != NULL && view->has_offset;
  const int64_t offset = has_offset ? view->offset : 0;
  for (uint32_t i = 0; i < walk->num_semaphores; ++i) {
    mp_price_semaphore_t *found = &walk->semaphores[i];
    if (found->object == object && found->has_offset == has_offset && found->offset == offset)
      return found;
  }
  // More semaphores than there is room for share the last one.
  if (walk->num_semaphores < MP_PRICE_SEMAPHORES) ++walk->num_semaphores;
  mp_price_semaphore_t *made = &walk->semaphores[walk->num_semaphores - 1];
  *made = (mp_price_semaphore_t){object, has_offset, offset, 0};
  return made;
}

static const mp_price_view_t *price_dma_view(const mp_price_func_t *func,
                                             const mp_mosaic_value_t *value) {
  return value == NULL ? NULL : func->slots[value->id].view;
}

static void price_dma_enqueue(mp_price_walk_t *walk, mp_price_func_t *func,
                              const mp_mosaic_op_t *op) {
  enum { SOURCE, SOURCE_SEMAPHORE, TARGET, TARGET_SEMAPHORE };
  const mp_mosaic_value_t *source = mp_mosaic_op_optional(op, SOURCE);
  const mp_mosaic_value_t *target = mp_mosaic_op_optional(op, TARGET);
  if (source == NULL || target == NULL) return;
  const double bytes = price_dma_bytes(walk, source->type, price_dma_view(func, source));
  double done = walk->now;
  if (price_dma_is_far(source->type) || price_dma_is_far(target->type)) {
    done = mp_price_copy(walk, bytes);
  } else {
    walk->copies += 1;
  }
  for (uint32_t i = SOURCE_SEMAPHORE; i <= TARGET_SEMAPHORE; i += 2) {
    const mp_mosaic_value_t *value = mp_mosaic_op_optional(op, i);
    if (value == NULL) continue;
    mp_price_semaphore_t *semaphore = price_dma_semaphore(walk, price_dma_view(func, value));
    semaphore->done = fmax(semaphore->done, done);
  }
}

void mp_price_async(mp_price_walk_t *walk, mp_price_func_t *func, const mp_mosaic_op_t *op) {
  ++walk->evaluated;
  for (uint32_t i = 0; i < op->num_results; ++i) func->slots[op->results[i].id].is_known = false;
  if (op->code == MP_MOSAIC_ENQUEUE_DMA) {
    price_dma_enqueue(walk, func, op);
    return;
  }
  const mp_mosaic_value_t *semaphore =
      op->code == MP_MOSAIC_SEM_WAIT ? op->operands[0] : mp_mosaic_op_awaited(op).semaphore;
  if (semaphore == NULL) return;
  mp_price_wait(walk, price_dma_semaphore(walk, price_dma_view(func, semaphore))->done);
}
