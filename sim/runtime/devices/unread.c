#include "sim/runtime/devices/unread.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "sim/base/os/lock.h"
#include "sim/base/os/process.h"

// The first errors are the causes; errors that follow from them are not kept.
enum { UNREAD_KEPT = 4 };

typedef struct {
  mp_status_t error;         // owned
  uint64_t owed, delivered;  // deliveries to ends of launches; in total
} unread_t;

static mp_lock_t g_lock = MP_LOCK_INITIALIZER(MP_LOCK_UNREAD);
static unread_t g_errors[UNREAD_KEPT];  // under the lock
static atomic_uint g_count;             // of g_errors; written under the lock
// The generation of the process that had these errors. A forked child checks it before it takes the
// lock, which a thread of its parent may have held.
static atomic_uint g_generation;
static atomic_bool g_ends_are_told;

void mp_unread_expect_ends(bool are_told) {
  if (atomic_load_explicit(&g_ends_are_told, memory_order_relaxed) != are_told) {
    atomic_store_explicit(&g_ends_are_told, are_told, memory_order_relaxed);
  }
}

// Whether there are errors of this process.
static bool unread_has_any(void) {
  return atomic_load(&g_count) != 0 && atomic_load(&g_generation) == mp_process_generation();
}

static unread_t *unread_find(mp_status_t error) {
  for (uint32_t i = 0; i < atomic_load(&g_count); ++i) {
    if (strcmp(mp_status_message(g_errors[i].error), mp_status_message(error)) == 0) {
      return &g_errors[i];
    }
  }
  return NULL;
}

void mp_unread_add(mp_status_t error) {
  if (error == NULL || mp_status_code(error) == MP_CANCELLED) return;
  mp_lock(&g_lock);
  const uint32_t count = atomic_load(&g_count);
  if (count == 0) atomic_store(&g_generation, mp_process_generation());
  unread_t *found = unread_find(error);
  if (found == NULL && count < UNREAD_KEPT) {
    found = &g_errors[count];
    *found = (unread_t){.error = mp_status_retain(error)};
    atomic_store(&g_count, count + 1);
  }
  if (found != NULL) found->owed += atomic_load(&g_ends_are_told);
  mp_unlock(&g_lock);
}

void mp_unread_deliver(mp_status_t error) {
  if (error == NULL || !unread_has_any()) return;
  mp_lock(&g_lock);
  for (uint32_t i = 0; i < atomic_load(&g_count); ++i) {
    const char *kept = mp_status_message(g_errors[i].error);
    g_errors[i].delivered += strstr(mp_status_message(error), kept) != NULL;
  }
  mp_unlock(&g_lock);
}

// The first error has probably caused the others, so one line of each of those is enough.
static void unread_put(mp_status_t error, bool is_whole, mp_strbuf_t *out) {
  const char *message = mp_status_message(error);
  const size_t size = is_whole ? strlen(message) : strcspn(message, "\n");
  mp_strbuf_printf(out, "%s: %.*s\n", mp_status_code_name(mp_status_code(error)),
                   mp_str_precision(size), message);
}

void mp_unread_take(mp_strbuf_t *out_text) {
  if (!unread_has_any()) return;
  bool is_first = true;
  mp_lock(&g_lock);
  for (uint32_t i = 0; i < atomic_load(&g_count); ++i) {
    const unread_t *each = &g_errors[i];
    if (each->delivered <= each->owed) unread_put(each->error, is_first, out_text);
    is_first &= each->delivered > each->owed;
    mp_status_release(each->error);
  }
  atomic_store(&g_count, 0);
  mp_unlock(&g_lock);
}
