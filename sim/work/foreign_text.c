#include "sim/work/foreign_text.h"

#include <string.h>

bool mp_foreign_find_word(mp_str_t text, const char *word, mp_str_t *out_behind) {
  // Texts may be long: a kernel's whole program stands in some.
  const size_t size = strlen(word);
  if (text.size < size) return false;
  const char *last = text.data + (text.size - size);
  for (const char *at = text.data; at <= last; ++at) {
    at = memchr(at, word[0], (size_t)(last - at) + 1);
    if (at == NULL) return false;
    if (memcmp(at, word, size) != 0) continue;
    *out_behind = (mp_str_t){at + size, (size_t)(last - at)};
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

static mp_str_t foreign_text_object(const mp_op_t *op, const char *key) {
  mp_str_t rest;
  if (op->code != MP_OP_CUSTOM_CALL) return MP_STR("");
  const mp_str_t config = mp_op_str(op, MP_ATTR_BACKEND_CONFIG);
  return mp_foreign_find_word(config, key, &rest) ? mp_str_cut(&rest, '}') : MP_STR("");
}

mp_str_t mp_foreign_estimate(const mp_op_t *op) {
  return foreign_text_object(op, "\"cost_estimate\"");
}

mp_str_t mp_foreign_counted(const mp_op_t *op) {
  return foreign_text_object(op, "\"kernel\"");
}

double mp_foreign_bytes(const mp_op_t *op) {
  const double said = mp_foreign_number(mp_foreign_estimate(op), "\"bytes_accessed");
  return said > 0 ? said : mp_foreign_number(mp_foreign_counted(op), "\"bytes_accessed");
}
