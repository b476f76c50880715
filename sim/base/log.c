#include "sim/base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/assert.h"
#include "sim/base/str.h"
#include "sim/base/visible.h"

// Read with every message, in order with nothing: while it changes, a message more or less is right
// either way.
static atomic_int g_level = MP_LOG_WARNING;

void mp_log_set_level(mp_log_level_t level) {
  atomic_store(&g_level, (int)level);
}

mp_log_level_t mp_log_level(void) {
  return (mp_log_level_t)atomic_load_explicit(&g_level, memory_order_relaxed);
}

bool mp_log_enabled(mp_log_level_t level) {
  return level <= mp_log_level();
}

enum { LOG_MESSAGE = 1024 };

// One call for the whole line, under the stream's own lock, so that those of two threads never mix.
static void log_print(const char *name, const char *between, const char *message) {
  char shown[4 * LOG_MESSAGE];
  mp_visible(message, shown, sizeof(shown));
  fprintf(stderr, "minipod: %s%s%s\n", name, between, shown);
}

void mp_log(mp_log_level_t level, const char *format, ...) {
  static const char *const names[] = {"off", "error", "warning", "info", "debug"};
  MP_ASSERT((unsigned)level < sizeof(names) / sizeof(names[0]));
  if (level == MP_LOG_OFF || !mp_log_enabled(level)) return;
  char message[LOG_MESSAGE];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof(message), format, args);
  va_end(args);
  log_print(names[level], ": ", message);
}

void mp_log_lines(mp_log_level_t level, const char *text) {
  while (*text != '\0') {
    const size_t size = strcspn(text, "\n");
    if (size != 0) mp_log(level, "  %.*s", mp_str_precision(size), text);
    text += size + (text[size] == '\n');
  }
}

void mp_log_notice(const char *format, ...) {
  char message[LOG_MESSAGE];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof(message), format, args);
  va_end(args);
  log_print("", "", message);
}
