#include "sim/base/visible.h"

#include <string.h>

#include "sim/base/str.h"

size_t mp_visible(const char *text, char *out, size_t room) {
  static const char digits[] = "0123456789abcdef";
  size_t size = 0, written = 0;
  unsigned char before = 0;
  for (; *text != '\0'; ++text) {
    const unsigned char c = (unsigned char)*text;
    const bool is_hidden = c != '\n' && c != '\t' && mp_char_is_control(before, c);
    const char escaped[4] = {'\\', 'x', digits[c >> 4], digits[c & 15]};
    const size_t count = is_hidden ? sizeof(escaped) : 1;
    if (written == size && size + count < room) {
      memcpy(out + size, is_hidden ? escaped : text, count);
      written += count;
    }
    size += count;
    before = c;
  }
  if (room > 0) out[written] = '\0';
  return size;
}
