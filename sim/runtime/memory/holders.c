// Holders of memory: labels of allocations, and the table of them in out-of-memory errors.
#include <inttypes.h>
#include <stdlib.h>

#include "sim/base/alloc.h"
#include "sim/runtime/memory/memory.h"

enum { MP_MAX_HOLDERS = 10 };  // rows of the table

static const char *const k_origin_texts[] = {
#define ROW(name, text) [MP_ORIGIN_##name] = text,
    MP_ORIGINS(ROW)
#undef ROW
};

mp_label_t mp_label_make(mp_origin_t origin, mp_dtype_t dtype, const int64_t *dims, uint32_t rank,
                         mp_name_t *name, uint32_t index) {
  mp_label_t label = {.origin = origin, .dtype = dtype, .rank = rank, .index = index, .name = name};
  for (uint32_t i = 0; i < rank && i < MP_LABEL_MAX_RANK; ++i) label.dims[i] = dims[i];
  return label;
}

mp_status_t mp_label_create(const mp_label_t *label, mp_label_t **out_label) {
  mp_label_t *made = mp_malloc(sizeof(*made));
  MP_RETURN_IF_NULL(made);
  *made = *label;
  mp_name_retain(made->name);
  atomic_init(&made->references, 1);
  *out_label = made;
  return NULL;
}

mp_label_t *mp_label_retain(mp_label_t *label) {
  // Relaxed: the caller has a reference already.
  if (label != NULL) atomic_fetch_add_explicit(&label->references, 1, memory_order_relaxed);
  return label;
}

void mp_label_release(mp_label_t *label) {
  if (label == NULL) return;
  // As all counts of references: the last one frees it after the others.
  if (atomic_fetch_sub_explicit(&label->references, 1, memory_order_acq_rel) != 1) return;
  mp_name_release(label->name);
  mp_free(label);
}

typedef struct {
  const mp_label_t *label;
  uint64_t bytes;
  uint64_t count;
} holder_t;

static int holders_compare_labels(const mp_label_t *a, const mp_label_t *b) {
  if (a->origin != b->origin) return a->origin < b->origin ? -1 : 1;
  if (a->dtype != b->dtype) return a->dtype < b->dtype ? -1 : 1;
  if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
  if (a->index != b->index) return a->index < b->index ? -1 : 1;
  if (a->name != b->name) {
    int order = strcmp(a->name == NULL ? "" : a->name->text, b->name == NULL ? "" : b->name->text);
    if (order != 0) return order;
  }
  return memcmp(a->dims, b->dims, sizeof(a->dims));
}

static int holders_by_label(const void *a, const void *b) {
  return holders_compare_labels(((const holder_t *)a)->label, ((const holder_t *)b)->label);
}

static int holders_by_bytes(const void *a, const void *b) {
  uint64_t x = ((const holder_t *)a)->bytes, y = ((const holder_t *)b)->bytes;
  return x > y ? -1 : x < y;
}

void mp_label_print(const mp_label_t *label, mp_strbuf_t *out) {
  if (label->origin != MP_ORIGIN_TEMPORARY) {
    mp_strbuf_printf(out, "%s[", mp_dtype_name(label->dtype));
    for (uint32_t i = 0; i < label->rank; ++i) {
      if (i == MP_LABEL_MAX_RANK) {
        mp_strbuf_puts(out, ",...");
        break;
      }
      mp_strbuf_printf(out, "%s%" PRId64, i == 0 ? "" : ",", label->dims[i]);
    }
    mp_strbuf_puts(out, "], ");
  }
  mp_strbuf_puts(out, k_origin_texts[label->origin]);
  if (label->origin == MP_ORIGIN_RESULT) mp_strbuf_printf(out, " %" PRIu32, label->index);
  if (label->name != NULL) mp_strbuf_printf(out, " of %s", label->name->text);
}

// Groups equal labels; returns the number of groups.
static size_t holders_merge_equal(holder_t *holders, size_t count) {
  qsort(holders, count, sizeof(*holders), holders_by_label);
  size_t groups = 0;
  for (size_t i = 0; i < count; ++i) {
    if (groups != 0 && holders_compare_labels(holders[groups - 1].label, holders[i].label) == 0) {
      holders[groups - 1].bytes += holders[i].bytes;
      holders[groups - 1].count += 1;
    } else {
      holders[groups++] = holders[i];
    }
  }
  qsort(holders, groups, sizeof(*holders), holders_by_bytes);
  return groups;
}

void mp_memory_describe_holders(const mp_memory_t *memory, mp_strbuf_t *out) {
  mp_lock_assert_held(&memory->lock);
  size_t count = 0;
  for (const mp_span_t *b = memory->live.first; b != NULL; b = b->list_next) ++count;
  holder_t *holders = mp_calloc(count, sizeof(*holders));
  if (count == 0 || holders == NULL) {
    mp_free(holders);
    return;
  }
  size_t n = 0;
  for (const mp_span_t *b = memory->live.first; b != NULL; b = b->list_next) {
    holders[n++] = (holder_t){b->label, b->charged, 1};
  }
  size_t groups = holders_merge_equal(holders, count);
  mp_strbuf_printf(out, "\nlive buffers of device %" PRIu32 ", largest first:", memory->device_id);
  uint64_t rest = 0;
  for (size_t i = 0; i < groups; ++i) {
    if (i >= MP_MAX_HOLDERS) {
      rest += holders[i].bytes;
      continue;
    }
    mp_strbuf_printf(out, "\n  %12" PRIu64 " bytes  ", holders[i].bytes);
    if (holders[i].count > 1) mp_strbuf_printf(out, "%" PRIu64 " x ", holders[i].count);
    mp_label_print(holders[i].label, out);
  }
  if (rest != 0) {
    mp_strbuf_printf(out, "\n  %12" PRIu64 " bytes  in %zu other groups", rest,
                     groups - MP_MAX_HOLDERS);
  }
  mp_free(holders);
}
