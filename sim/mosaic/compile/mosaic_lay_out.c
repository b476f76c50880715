// The memory of vectors: those that are needed at the same time do not share any.
#include <stdlib.h>
#include <string.h>

#include "sim/kernels/shape.h"
#include "sim/mosaic/compile/mosaic_compiler.h"

// ---- loads that need no copy ----

static bool mosaic_lay_out_writes(const mp_mosaic_instruction_t *in) {
  switch (in->kind) {
    case MP_MOSAIC_DO_STORE:
    case MP_MOSAIC_DO_STORE_SCALAR:
    case MP_MOSAIC_DO_DMA:
    case MP_MOSAIC_DO_WAIT_DMA:
    case MP_MOSAIC_DO_SEM_WAIT:
    case MP_MOSAIC_DO_REMOTE_DMA:  // other devices may answer at once
    case MP_MOSAIC_DO_REMOTE_SIGNAL:
      return true;
    default:
      return false;
  }
}

// A loaded vector can be the memory itself if nothing is written until it was read last.
static void mosaic_lay_out_find_views(mp_mosaic_compiler_t *c) {
  uint32_t next_write = UINT32_MAX;
  for (uint32_t i = c->code.count; i-- > 0;) {
    mp_mosaic_instruction_t *in = &c->code.items[i];
    if (mosaic_lay_out_writes(in)) next_write = i;
    if (in->kind == MP_MOSAIC_DO_LOAD) in->flag = c->vectors.items[in->out].end < next_write;
  }
}

// ---- places ----

typedef struct {
  uint32_t start, vector;
} begin_t;

static int mosaic_lay_out_compare(const void *a, const void *b) {
  const begin_t *x = a, *y = b;
  if (x->start != y->start) return x->start < y->start ? -1 : 1;
  return x->vector < y->vector ? -1 : x->vector > y->vector;
}

typedef struct {
  uint32_t *vectors;  // that are needed now, by offset
  uint32_t count;
} live_t;

static void mosaic_lay_out_drop(const mp_mosaic_compiler_t *c, live_t *live, uint32_t start) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < live->count; ++i) {
    if (c->vectors.items[live->vectors[i]].end < start) continue;
    live->vectors[count++] = live->vectors[i];
  }
  live->count = count;
}

// The first gap that is wide enough.
static void mosaic_lay_out_place(mp_mosaic_compiler_t *c, live_t *live, uint32_t vector) {
  mp_mosaic_vector_t *placed = &c->vectors.items[vector];
  const uint64_t bytes = mp_round_up_64(placed->bytes == 0 ? 1 : placed->bytes);
  uint64_t at = 0;
  uint32_t i = 0;
  for (; i < live->count; ++i) {
    const mp_mosaic_vector_t *other = &c->vectors.items[live->vectors[i]];
    if (other->offset >= at + bytes) break;
    at = other->offset + mp_round_up_64(other->bytes == 0 ? 1 : other->bytes);
  }
  placed->offset = at;
  memmove(&live->vectors[i + 1], &live->vectors[i], (live->count - i) * sizeof(uint32_t));
  live->vectors[i] = vector;
  ++live->count;
}

mp_status_t mp_mosaic_lay_out(mp_mosaic_compiler_t *c, size_t *out_bytes) {
  begin_t *begins = MP_ARENA_ARRAY(c->scratch, begin_t, c->vectors.count);
  live_t live = {MP_ARENA_ARRAY(c->scratch, uint32_t, (size_t)c->vectors.count + 1), 0};
  if (begins == NULL || live.vectors == NULL) return mp_status_out_of_memory();
  mosaic_lay_out_find_views(c);
  MP_RETURN_IF_ERROR(mp_mosaic_find_directs(c));
  uint32_t count = 0;
  for (uint32_t v = 0; v < c->vectors.count; ++v) {
    if (c->vectors.items[v].known != NULL) continue;
    begins[count++] = (begin_t){c->vectors.items[v].start, v};
  }
  qsort(begins, count, sizeof(*begins), mosaic_lay_out_compare);
  uint64_t most = 0;
  for (uint32_t i = 0; i < count; ++i) {
    mosaic_lay_out_drop(c, &live, begins[i].start);
    mosaic_lay_out_place(c, &live, begins[i].vector);
    const mp_mosaic_vector_t *placed = &c->vectors.items[begins[i].vector];
    const uint64_t end = placed->offset + mp_round_up_64(placed->bytes == 0 ? 1 : placed->bytes);
    if (end > most) most = end;
  }
  *out_bytes = (size_t)most;
  return NULL;
}
