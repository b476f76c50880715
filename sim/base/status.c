#include "sim/base/status.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/base/visible.h"

#undef mp_status_make  // those that locate what they make
#undef mp_status_vmake

struct mp_status_s {
  atomic_int references;  // the number of owners; -1 for a static status, which is never freed
  mp_status_code_t code;
  int line;
  const char *file;  // where it was made; NULL: not known
  char message[];
};

// A flexible array member cannot be initialised portably, so the static status has a type of its
// own that begins with the same members.
static struct {
  atomic_int references;
  mp_status_code_t code;
  int line;
  const char *file;
  char message[32];
} g_out_of_memory = {-1, MP_RESOURCE_EXHAUSTED, 0, NULL, "out of host memory"};

mp_status_t mp_status_out_of_memory(void) {
  return (mp_status_t)(void *)&g_out_of_memory;
}

static mp_status_t status_new(mp_status_code_t code, size_t length) {
  mp_status_t status = mp_malloc(sizeof(*status) + length + 1);
  if (status == NULL) return mp_status_out_of_memory();
  atomic_init(&status->references, 1);
  status->code = code;
  status->line = 0;
  status->file = NULL;
  status->message[0] = '\0';
  return status;
}

// Messages quote names that programs choose, and end in terminals.
static mp_status_t status_show(mp_status_t status) {
  const size_t length = strlen(status->message);
  const size_t visible = mp_visible(status->message, NULL, 0);
  if (visible == length) return status;
  mp_status_t shown = status_new(status->code, visible);
  if (shown == mp_status_out_of_memory()) return status;
  mp_visible(status->message, shown->message, visible + 1);
  mp_status_release(status);
  return shown;
}

mp_status_t mp_status_vmake(mp_status_code_t code, const char *format, va_list args) {
  MP_ASSERT(code != MP_OK);
  va_list again;
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  if (length < 0) length = 0;
  mp_status_t status = status_new(code, (size_t)length);
  if (status == mp_status_out_of_memory()) return status;
  vsnprintf(status->message, (size_t)length + 1, format, args);
  return status_show(status);
}

mp_status_t mp_status_make(mp_status_code_t code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  mp_status_t status = mp_status_vmake(code, format, args);
  va_end(args);
  return status;
}

mp_status_t mp_status_annotate(mp_status_t status, const char *format, ...) {
  if (status == NULL) return NULL;
  va_list args;
  va_start(args, format);
  mp_status_t context = mp_status_vmake(status->code, format, args);
  va_end(args);
  // When memory is short, the error without its context is better than no error.
  if (context == mp_status_out_of_memory()) return status;
  mp_status_t joined = mp_status_make(status->code, "%s: %s", context->message, status->message);
  mp_status_release(context);
  if (joined == mp_status_out_of_memory()) return status;
  joined->file = status->file;
  joined->line = status->line;
  mp_status_release(status);
  return joined;
}

mp_status_t mp_status_locate(mp_status_t status, const char *file, int line) {
  if (status == mp_status_out_of_memory()) return status;  // shared by all
  status->file = file;
  status->line = line;
  return status;
}

const char *mp_status_origin(mp_status_t status, int *out_line) {
  if (status == NULL || status->file == NULL) return NULL;
  *out_line = status->line;
  return status->file;
}

mp_status_t mp_status_retain(mp_status_t status) {
  // Relaxed: the caller has a reference already, and that a status is static never changes.
  if (status != NULL && atomic_load_explicit(&status->references, memory_order_relaxed) >= 0) {
    const int before = atomic_fetch_add_explicit(&status->references, 1, memory_order_relaxed);
    MP_ASSERT(before > 0);
  }
  return status;
}

void mp_status_release(mp_status_t status) {
  if (status == NULL) return;
  if (atomic_load_explicit(&status->references, memory_order_relaxed) < 0) return;
  // Freeing comes after all that others have read of it.
  const int before = atomic_fetch_sub_explicit(&status->references, 1, memory_order_acq_rel);
  MP_ASSERT(before > 0);
  if (before == 1) mp_free(status);
}

mp_status_code_t mp_status_code(mp_status_t status) {
  return status == NULL ? MP_OK : status->code;
}

const char *mp_status_message(mp_status_t status) {
  return status == NULL ? "" : status->message;
}

const char *mp_status_code_name(mp_status_code_t code) {
  switch (code) {
#define MP_STATUS_NAME(name, value) \
  case MP_##name:                   \
    return #name;
    MP_STATUS_CODES(MP_STATUS_NAME)
#undef MP_STATUS_NAME
  }
  return "UNKNOWN";
}
