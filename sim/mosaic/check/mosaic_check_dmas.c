// DMAs in flight, and what races with them.
#include <stdlib.h>

#include "sim/base/str.h"
#include "sim/mosaic/check/mosaic_check_impl.h"
#include "sim/mosaic/run/mosaic_view.h"

// ---- pieces of memory ----

static mp_status_t mosaic_check_dmas_add_piece(void *context, char *at, size_t bytes) {
  mp_mosaic_pieces_t *pieces = context;
  mp_mosaic_piece_t *last = pieces->count == 0 ? NULL : &pieces->items[pieces->count - 1];
  if (last != NULL && last->at + last->bytes == at) {
    last->bytes += bytes;
    return NULL;
  }
  return MP_ARRAY_PUSH(NULL, pieces, (mp_mosaic_piece_t){at, bytes});
}

static int mosaic_check_dmas_compare(const void *a, const void *b) {
  const mp_mosaic_piece_t *x = a, *y = b;
  return x->at < y->at ? -1 : x->at > y->at;
}

static mp_status_t mosaic_check_dmas_find_pieces(const mp_mosaic_view_t *view,
                                                 mp_mosaic_pieces_t *out) {
  if (view == NULL) return NULL;
  MP_RETURN_IF_ERROR(mp_mosaic_view_walk(view, NULL, mosaic_check_dmas_add_piece, out));
  if (out->count > 1) {
    qsort(out->items, out->count, sizeof(*out->items), mosaic_check_dmas_compare);
  }
  return NULL;
}

// Whether one of the pieces has a byte of [at, at + bytes).
static bool mosaic_check_dmas_hits(const mp_mosaic_pieces_t *pieces, const char *at, size_t bytes) {
  uint32_t begin = 0, end = pieces->count;
  while (begin < end) {  // the first piece that ends after `at`
    const uint32_t middle = begin + (end - begin) / 2;
    const mp_mosaic_piece_t *piece = &pieces->items[middle];
    if (piece->at + piece->bytes > at) {
      end = middle;
    } else {
      begin = middle + 1;
    }
  }
  return begin < pieces->count && pieces->items[begin].at < at + bytes;
}

// ---- races ----

typedef struct {
  const mp_mosaic_check_t *check;
  mp_mosaic_access_kind_t kind;
  const mp_mosaic_dma_t *dma;  // the one that is hit; NULL: none
  bool hits_target;
} race_t;

static mp_status_t mosaic_check_dmas_see(void *context, char *at, size_t bytes) {
  race_t *race = context;
  const mp_mosaic_check_t *check = race->check;
  for (uint32_t i = 0; i < check->dmas.count && race->dma == NULL; ++i) {
    const mp_mosaic_dma_t *dma = &check->dmas.items[i];
    if (race->kind == MP_MOSAIC_ACCESS_ALLOCATES && dma->from != MP_MOSAIC_NONE) continue;
    race->hits_target = mosaic_check_dmas_hits(&dma->target, at, bytes);
    // Another device may have got what a DMA to it has read: its clock says so
    // (mosaic_check_used.c).
    const bool is_told = race->kind == MP_MOSAIC_ACCESS_COMES && dma->target.count == 0;
    const bool may_hit = race->kind != MP_MOSAIC_ACCESS_READS && !is_told;
    const bool hits_source = may_hit && mosaic_check_dmas_hits(&dma->source, at, bytes);
    if (race->hits_target || hits_source) race->dma = dma;
  }
  return NULL;
}

// "race: it reads scratch memory 0 (...), which a DMA may still write: ... tpu.enqueue_dma, ...".
static mp_status_t mosaic_check_dmas_refuse(const race_t *race, const char *verb) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_printf(&text, "race: it %s ", verb);
  mp_mosaic_check_print_arg(
      race->check, race->hits_target ? race->dma->target_arg : race->dma->source_arg, &text);
  mp_strbuf_printf(&text,
                   ", which a DMA may still %s: no wait has shown that the DMA is complete which "
                   "was started by ",
                   race->hits_target ? "write" : "read");
  if (race->dma->from != MP_MOSAIC_NONE) {
    const char *where = race->dma->start.in->where;
    mp_strbuf_printf(&text, "device %u: %s", race->dma->from, where == NULL ? "" : where);
    return mp_mosaic_check_error(&text);
  }
  mp_mosaic_check_print(race->check, &race->dma->start, &text);
  return mp_mosaic_check_error(&text);
}

mp_status_t mp_mosaic_check_races(const mp_mosaic_check_t *check, const mp_mosaic_access_t *access,
                                  mp_mosaic_access_kind_t kind) {
  static const char *const verbs[] = {"reads", "writes", "allocates", "writes"};
  race_t race = {.check = check, .kind = kind};
  if (check->dmas.count == 0) return NULL;
  MP_RETURN_IF_ERROR(mp_mosaic_view_walk(access->view, access->mask, mosaic_check_dmas_see, &race));
  return race.dma == NULL ? NULL : mosaic_check_dmas_refuse(&race, verbs[kind]);
}

mp_status_t mp_mosaic_check_move(const mp_mosaic_check_t *check, char *memory, size_t bytes) {
  race_t race = {.check = check, .kind = MP_MOSAIC_ACCESS_WRITES};
  if (check->spoils || bytes == 0) return NULL;
  MP_RETURN_IF_ERROR(mosaic_check_dmas_see(&race, memory, bytes));
  if (race.dma == NULL) return NULL;
  return mosaic_check_dmas_refuse(&race, "begins with another block of");
}

// ---- begin and end ----

static void mosaic_check_dmas_free(mp_mosaic_dma_t *dma) {
  MP_ARRAY_FREE(&dma->source);
  MP_ARRAY_FREE(&dma->target);
}

mp_status_t mp_mosaic_check_start(mp_mosaic_check_t *check, const mp_mosaic_instruction_t *in,
                                  const mp_mosaic_view_t *source, const mp_mosaic_view_t *target,
                                  const int64_t *semaphore, int64_t bytes, uint32_t from) {
  mp_mosaic_dma_t dma = {.source_arg = source == NULL ? MP_MOSAIC_NONE : source->root,
                         .target_arg = target == NULL ? MP_MOSAIC_NONE : target->root,
                         .semaphore = semaphore,
                         .bytes = bytes,
                         .from = from};
  mp_mosaic_check_now(check, in, &dma.start);
  mp_status_t status = mosaic_check_dmas_find_pieces(source, &dma.source);
  if (status == NULL) status = mosaic_check_dmas_find_pieces(target, &dma.target);
  if (status == NULL) status = MP_ARRAY_PUSH(NULL, &check->dmas, dma);
  if (status != NULL) mosaic_check_dmas_free(&dma);
  return status;
}

void mp_mosaic_check_waited(mp_mosaic_check_t *check, const int64_t *semaphore, int64_t left) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < check->dmas.count; ++i) {
    mp_mosaic_dma_t *dma = &check->dmas.items[i];
    // If this DMA were not complete, what is left would be its bytes and those of others.
    if (dma->semaphore == semaphore && dma->bytes > left) {
      mosaic_check_dmas_free(dma);
    } else {
      check->dmas.items[count++] = *dma;
    }
  }
  check->dmas.count = count;
}

void mp_mosaic_check_free_dmas(mp_mosaic_check_t *check) {
  for (uint32_t i = 0; i < check->dmas.count; ++i) mosaic_check_dmas_free(&check->dmas.items[i]);
  MP_ARRAY_FREE(&check->dmas);
}
