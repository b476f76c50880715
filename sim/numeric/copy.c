#include "sim/numeric/copy.h"

#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

void mp_copy_cached(void *to, const void *from, size_t bytes) {
  if (bytes != 0) memcpy(to, from, bytes);
}

#ifdef __SSE2__
enum { COPY_LINE = 64 };

// Whole lines, to where lines begin. Four stores of 16 bytes fill a line, which the processor
// gathers and writes at once; wider stores gain nothing.
static void copy_lines(char *to, const char *from, size_t lines) {
  for (; lines != 0; --lines, to += COPY_LINE, from += COPY_LINE) {
    const __m128i a = _mm_loadu_si128((const __m128i *)from);
    const __m128i b = _mm_loadu_si128((const __m128i *)(from + 16));
    const __m128i c = _mm_loadu_si128((const __m128i *)(from + 32));
    const __m128i d = _mm_loadu_si128((const __m128i *)(from + 48));
    _mm_stream_si128((__m128i *)to, a);
    _mm_stream_si128((__m128i *)(to + 16), b);
    _mm_stream_si128((__m128i *)(to + 32), c);
    _mm_stream_si128((__m128i *)(to + 48), d);
  }
  // Such stores come in any order; what follows must not be seen before them.
  _mm_sfence();
}

void mp_copy_past_caches(void *to, const void *from, size_t bytes) {
  size_t head = -(uintptr_t)to % COPY_LINE;
  if (bytes < 8 * COPY_LINE) head = bytes;  // a row so short is not worth the fence
  mp_copy_cached(to, from, head);
  if (head == bytes) return;
  char *line = (char *)to + head;
  const char *source = (const char *)from + head;
  const size_t lines = (bytes - head) / COPY_LINE;
  copy_lines(line, source, lines);
  const size_t done = lines * COPY_LINE;
  mp_copy_cached(line + done, source + done, bytes - head - done);
}
#else
void mp_copy_past_caches(void *to, const void *from, size_t bytes) {
  mp_copy_cached(to, from, bytes);
}
#endif

mp_copy_fn_t mp_copy_for(double total_bytes) {
  const double caches = 32 << 20;
  return total_bytes < caches ? mp_copy_cached : mp_copy_past_caches;
}
