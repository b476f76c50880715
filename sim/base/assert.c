#include "sim/base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void mp_assert_fail(const char *file, int line, const char *function, const char *what,
                    const char *format, ...) {
  // The text is built on the stack and written with one system call, because the heap or stdio may
  // be what is broken.
  char text[1024];
  size_t size = 0;
  const int head = snprintf(text, sizeof(text) - 1, "minipod: %s:%d: %s: %s is broken%s", file,
                            line, function, what, format == NULL ? "" : ": ");
  if (head > 0) size = (size_t)head < sizeof(text) - 1 ? (size_t)head : sizeof(text) - 2;
  if (format != NULL) {
    va_list args;
    va_start(args, format);
    const int tail = vsnprintf(text + size, sizeof(text) - 1 - size, format, args);
    va_end(args);
    if (tail > 0) size += (size_t)tail;
    if (size > sizeof(text) - 2) size = sizeof(text) - 2;
  }
  text[size++] = '\n';
  const ssize_t written = write(STDERR_FILENO, text, size);
  (void)written;  // nothing can be done if it failed
  abort();
}
