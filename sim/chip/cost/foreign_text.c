#include "sim/chip/cost/foreign_text.h"

#include <string.h>

bool mp_foreign_find_word(mp_str_t text, const char *word, mp_str_t *out_behind) {
  const size_t size = strlen(word);
  for (size_t i = 0; i + size <= text.size; ++i) {
    if (memcmp(text.data + i, word, size) != 0) continue;
    *out_behind = (mp_str_t){text.data + i + size, text.size - i - size};
    return true;
  }
  return false;
}

static bool foreign_text_is_between(char letter) {
  return letter == ' ' || letter == ':' || letter == '"' || letter == '\\' || letter == '[';
}

double mp_foreign_number(mp_str_t text, const char *key) {
  while (mp_foreign_find_word(text, key, &text)) {
    // The key may be the beginning of another one.
    if (text.size == 0 || (text.data[0] != '"' && text.data[0] != '\\')) continue;
    while (text.size != 0 && foreign_text_is_between(text.data[0])) {
      ++text.data;
      --text.size;
    }
    double number = 0;
    return mp_str_scan_double(text, &number) != 0 && number > 0 ? number : 0;
  }
  return 0;
}
