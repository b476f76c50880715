// Which memory is set, and reads of memory that is not.
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/str.h"
#include "sim/mosaic/check/mosaic_check_impl.h"
#include "sim/mosaic/run/mosaic_view.h"

#define ON_THIS_CORE " on this core: the chip divides parallel steps between two"

// ---- regions ----

static mp_status_t mosaic_check_unset_add(mp_mosaic_check_t *check, char *memory, size_t bytes,
                                          uint32_t arg) {
  for (uint32_t i = 0; i < check->regions.count; ++i) {
    mp_mosaic_region_t *region = &check->regions.items[i];
    if (region->memory != memory || region->bytes != bytes) continue;
    memset(region->set, 0, bytes);
    return NULL;
  }
  if (bytes == 0) return NULL;
  mp_mosaic_region_t region = {memory, bytes, arg, mp_calloc(bytes, 1), NULL};
  MP_RETURN_IF_NULL(region.set);
  mp_status_t status = MP_ARRAY_PUSH(NULL, &check->regions, region);
  if (status != NULL) mp_free(region.set);
  return status;
}

mp_status_t mp_mosaic_check_add_region(mp_mosaic_check_t *check, char *memory, size_t bytes,
                                       uint32_t arg) {
  if (check->lock != NULL) mp_lock(check->lock);
  mp_status_t status = mosaic_check_unset_add(check, memory, bytes, arg);
  if (check->lock != NULL) mp_unlock(check->lock);
  return status;
}

void mp_mosaic_check_free_regions(mp_mosaic_check_t *check) {
  for (uint32_t i = 0; i < check->regions.count; ++i) {
    mp_free(check->regions.items[i].set);
    mp_free(check->regions.items[i].used);
  }
  MP_ARRAY_FREE(&check->regions);
}

mp_mosaic_region_t *mp_mosaic_check_find_region(const mp_mosaic_check_t *check, const char *at) {
  for (uint32_t i = 0; i < check->regions.count; ++i) {
    mp_mosaic_region_t *region = &check->regions.items[i];
    if (at >= region->memory && at < region->memory + region->bytes) return region;
  }
  return NULL;
}

// ---- accesses ----

// Where a piece of memory begins in the region; false: it is not in it.
static bool mosaic_check_unset_at(const mp_mosaic_region_t *region, const char *at, size_t bytes,
                                  size_t *out_at) {
  if (at < region->memory || at > region->memory + region->bytes) return false;
  *out_at = (size_t)(at - region->memory);
  return bytes <= region->bytes - *out_at;
}

static mp_status_t mosaic_check_unset_write(void *context, char *at, size_t bytes) {
  mp_mosaic_region_t *region = context;
  size_t begin = 0;
  if (mosaic_check_unset_at(region, at, bytes, &begin)) memset(region->set + begin, 1, bytes);
  return NULL;
}

void mp_mosaic_check_set(const mp_mosaic_check_t *check, const mp_mosaic_piece_t *piece) {
  mp_mosaic_region_t *region = mp_mosaic_check_find_region(check, piece->at);
  if (region != NULL) mp_status_ignore(mosaic_check_unset_write(region, piece->at, piece->bytes));
}

mp_status_t mp_mosaic_check_writes(const mp_mosaic_check_t *check,
                                   const mp_mosaic_access_t *access) {
  mp_mosaic_region_t *region = mp_mosaic_check_find_region(check, access->view->base);
  if (region == NULL) return NULL;
  return mp_mosaic_view_walk(access->view, access->mask, mosaic_check_unset_write, region);
}

typedef struct {
  const mp_mosaic_region_t *region;
  bool is_unset;
} read_t;

static mp_status_t mosaic_check_unset_read(void *context, char *at, size_t bytes) {
  read_t *read = context;
  size_t begin = 0;
  if (mosaic_check_unset_at(read->region, at, bytes, &begin)) {
    read->is_unset |= memchr(read->region->set + begin, 0, bytes) != NULL;
  }
  return NULL;
}

void mp_mosaic_check_suspects(mp_mosaic_check_t *check, const mp_mosaic_instruction_t *in,
                              uint32_t arg) {
  for (uint32_t i = 0; i < check->num_suspects; ++i) {
    if (check->suspects[i].load.in == in && check->suspects[i].arg == arg) return;
  }
  if (check->num_suspects == MP_MOSAIC_CHECK_MOST_SUSPECTS) return;
  mp_mosaic_suspect_t *suspect = &check->suspects[check->num_suspects++];
  mp_mosaic_check_now(check, in, &suspect->load);
  suspect->arg = arg;
  suspect->is_divided = check->is_divided;
}

static mp_status_t mosaic_check_unset_refuse_scalar(const mp_mosaic_check_t *check, uint32_t arg) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_puts(&text, "it reads ");
  mp_mosaic_check_print_arg(check, arg, &text);
  mp_strbuf_puts(&text, ", which nothing has written");
  if (check->is_divided) mp_strbuf_puts(&text, ON_THIS_CORE);
  return mp_mosaic_check_error(&text);
}

mp_status_t mp_mosaic_check_reads(mp_mosaic_check_t *check, const mp_mosaic_access_t *access) {
  read_t read = {.region = mp_mosaic_check_find_region(check, access->view->base)};
  if (read.region == NULL) return NULL;
  MP_RETURN_IF_ERROR(
      mp_mosaic_view_walk(access->view, access->mask, mosaic_check_unset_read, &read));
  if (!read.is_unset) return NULL;
  if (access->in->kind == MP_MOSAIC_DO_LOAD_SCALAR) {
    return mosaic_check_unset_refuse_scalar(check, read.region->arg);
  }
  mp_mosaic_check_suspects(check, access->in, read.region->arg);
  return NULL;
}

// ---- suspects ----

bool mp_mosaic_check_suspect(const mp_mosaic_check_t *check, uint32_t i, uint32_t *out_arg) {
  if (i >= check->num_suspects) return false;
  *out_arg = check->suspects[i].arg;
  return true;
}

mp_status_t mp_mosaic_check_blame(const mp_mosaic_check_t *check, uint32_t arg) {
  uint32_t i = 0;
  while (i + 1 < check->num_suspects && check->suspects[i].arg != arg) ++i;
  const mp_mosaic_suspect_t *suspect = &check->suspects[i];
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_mosaic_check_print(check, &suspect->load, &text);
  mp_strbuf_puts(&text, ": it reads ");
  mp_mosaic_check_print_arg(check, suspect->arg, &text);
  mp_strbuf_puts(&text, ", which nothing has written");
  if (suspect->is_divided) mp_strbuf_puts(&text, ON_THIS_CORE);
  mp_strbuf_puts(&text, ", and the kernel's results depend on it");
  return mp_mosaic_check_error(&text);
}
