// Prints names, strings and lists of numbers.
#include <inttypes.h>

#include "sim/ir/print/print_parts.h"

void mp_print_quoted(mp_str_t text, mp_strbuf_t *out) {
  mp_strbuf_putc(out, '"');
  for (size_t i = 0; i < text.size; ++i) {
    unsigned char c = (unsigned char)text.data[i];
    if (c == '\\')
      mp_strbuf_puts(out, "\\\\");
    else if (c >= 0x20 && c < 0x7F && c != '"')
      mp_strbuf_putc(out, (char)c);
    else
      mp_strbuf_printf(out, "\\%02X", c);
  }
  mp_strbuf_putc(out, '"');
}

static bool print_names_is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool print_names_is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Whether the text can be printed without quotes.
static bool print_names_is_bare(mp_str_t text) {
  if (text.size == 0 || !print_names_is_letter(text.data[0])) return false;
  for (size_t i = 1; i < text.size; ++i) {
    char c = text.data[i];
    if (!print_names_is_letter(c) && !print_names_is_digit(c) && c != '$' && c != '.') return false;
  }
  return true;
}

void mp_print_name(mp_str_t name, mp_strbuf_t *out) {
  if (print_names_is_bare(name))
    mp_strbuf_append(out, name.data, name.size);
  else
    mp_print_quoted(name, out);
}

void mp_print_symbol(mp_str_t name, mp_strbuf_t *out) {
  mp_strbuf_putc(out, '@');
  mp_print_name(name, out);
}

// ---- lists ----

void mp_print_index_list(mp_index_list_t list, mp_strbuf_t *out) {
  mp_strbuf_putc(out, '[');
  for (uint32_t i = 0; i < list.count; ++i)
    mp_strbuf_printf(out, "%s%" PRId64, i > 0 ? ", " : "", list.values[i]);
  mp_strbuf_putc(out, ']');
}
