// Semaphores that are not zero when a kernel ends: the next kernel would begin with them.
#include "sim/base/str.h"
#include "sim/mosaic/check/mosaic_check_impl.h"

mp_status_t mp_mosaic_check_add_semaphores(mp_mosaic_check_t *check, const int64_t *values,
                                           int64_t count, uint32_t arg) {
  for (uint32_t i = 0; i < check->semaphores.count; ++i) {
    if (check->semaphores.items[i].values == values) return NULL;
  }
  return MP_ARRAY_PUSH(NULL, &check->semaphores, (mp_mosaic_semaphores_t){values, count, arg});
}

static const mp_mosaic_dma_t *mosaic_check_semaphores_dma(const mp_mosaic_check_t *check,
                                                          const int64_t *semaphore) {
  for (uint32_t i = 0; i < check->dmas.count; ++i) {
    if (check->dmas.items[i].semaphore == semaphore) return &check->dmas.items[i];
  }
  return NULL;
}

static mp_status_t mosaic_check_semaphores_refuse(const mp_mosaic_check_t *check,
                                                  const mp_mosaic_semaphores_t *semaphores,
                                                  int64_t i) {
  const mp_mosaic_dma_t *dma = mosaic_check_semaphores_dma(check, &semaphores->values[i]);
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_puts(&text, "the kernel ends while a semaphore is not zero: number ");
  mp_strbuf_printf(&text, "%lld of ", (long long)i);
  mp_mosaic_check_print_arg(check, semaphores->arg, &text);
  mp_strbuf_printf(&text, " is %lld", (long long)semaphores->values[i]);
  if (dma != NULL) {
    mp_strbuf_puts(&text, "; no wait has shown that the DMA is complete which was started by ");
    mp_mosaic_check_print(check, &dma->start, &text);
  }
  return mp_mosaic_check_error(&text);
}

mp_status_t mp_mosaic_check_end(const mp_mosaic_check_t *check) {
  for (uint32_t s = 0; s < check->semaphores.count && !check->spoils; ++s) {
    const mp_mosaic_semaphores_t *semaphores = &check->semaphores.items[s];
    for (int64_t i = 0; i < semaphores->count; ++i) {
      if (semaphores->values[i] == 0) continue;
      return mosaic_check_semaphores_refuse(check, semaphores, i);
    }
  }
  return NULL;
}
