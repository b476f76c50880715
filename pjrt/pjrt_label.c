// Labels of launches, for frameworks that do not pass PJRT's call_location.
#include <stdatomic.h>

#include "pjrt/pjrt_objects.h"
#include "sim/base/alloc.h"

typedef struct label_s label_t;
struct label_s {
  label_t *next;
  char text[];
};

static _Atomic(label_t *) g_labels;  // all that were made; none is ever freed
static _Atomic(const char *) g_label;
static atomic_int g_others;  // mp_others_t

const char *mp_pjrt_label(void) {
  return atomic_load_explicit(&g_label, memory_order_relaxed);
}

const char *mp_pjrt_label_create(const char *text) {
  const size_t size = strlen(text) + 1;
  label_t *label = mp_malloc(sizeof(*label) + size);
  if (label == NULL) return NULL;
  memcpy(label->text, text, size);
  label->next = atomic_load(&g_labels);
  while (!atomic_compare_exchange_weak(&g_labels, &label->next, label)) {
  }
  return label->text;
}

void *mp_pjrt_label_slot(void) {
  return &g_label;
}

mp_others_t mp_pjrt_others(void) {
  return (mp_others_t)atomic_load_explicit(&g_others, memory_order_relaxed);
}

void *mp_pjrt_others_slot(void) {
  return &g_others;
}
