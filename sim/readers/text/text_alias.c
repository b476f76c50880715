// Aliases.
#include <stdlib.h>

#include "sim/readers/text/text_parser.h"

// Whether the line at the lexer defines an alias, as MLIR prints definitions. Nothing else that
// begins with one of these marks is followed by '='.
static bool text_alias_is_alias(mp_lexer_t lexer, mp_text_alias_t *out_alias) {
  mp_token_t name = mp_lexer_next(&lexer);
  mp_token_t equals = mp_lexer_next(&lexer);
  if ((name.kind != MP_TOKEN_HASH && name.kind != MP_TOKEN_BANG) || equals.kind != MP_TOKEN_PUNCT ||
      equals.text.data[0] != '=')
    return false;
  *out_alias = (mp_text_alias_t){.name = name.text, .is_type = name.kind == MP_TOKEN_BANG};
  out_alias->value_token = mp_lexer_next(&lexer);
  out_alias->value = lexer;
  return true;
}

static int text_alias_compare_alias(const mp_text_alias_t *alias, mp_str_t name, bool is_type) {
  if (alias->is_type != is_type) return alias->is_type ? 1 : -1;
  return mp_str_compare(alias->name, name);
}

static int text_alias_compare(const void *a, const void *b) {
  const mp_text_alias_t *other = b;
  return text_alias_compare_alias(a, other->name, other->is_type);
}

mp_status_t mp_text_find_aliases(mp_text_t *t, const char *text, size_t size) {
  mp_lexer_t lexer = mp_lexer_start(text, size);
  MP_ARRAY(mp_text_alias_t) aliases = {0};
  for (const char *line = text, *end = text + size; line < end;) {
    const char *at = line;
    while (at < end && (*at == ' ' || *at == '\t')) ++at;
    mp_text_alias_t alias;
    lexer.at = at;
    lexer.line_start = line;
    if (at < end && (*at == '#' || *at == '!') && text_alias_is_alias(lexer, &alias))
      MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &aliases, alias));
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    line = newline != NULL ? newline + 1 : end;
    ++lexer.line;
  }
  t->aliases = aliases.items;
  t->num_aliases = aliases.count;
  if (aliases.count > 0)
    qsort(aliases.items, aliases.count, sizeof(mp_text_alias_t), text_alias_compare);
  for (uint32_t i = 1; i < aliases.count; ++i)
    if (text_alias_compare(&t->aliases[i - 1], &t->aliases[i]) == 0)
      return mp_text_error(t, &t->aliases[i].value_token, MP_INVALID_ARGUMENT,
                           "the alias '%.*s' is defined twice", MP_STR_ARG(t->aliases[i].name));
  return NULL;
}

mp_text_alias_t *mp_text_find_alias(mp_text_t *t, mp_str_t name, bool is_type) {
  // mp_text_find_aliases sorted them.
  uint32_t low = 0, high = t->num_aliases;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    int order = text_alias_compare_alias(&t->aliases[middle], name, is_type);
    if (order == 0) return &t->aliases[middle];
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}

mp_status_t mp_text_read_alias(mp_text_t *t, mp_text_alias_t *alias, mp_text_alias_reader_t read) {
  if (alias->state == MP_ALIAS_READING)
    return mp_text_error(t, &t->tok, MP_INVALID_ARGUMENT, "the alias '%.*s' is defined by itself",
                         MP_STR_ARG(alias->name));
  if (alias->state == MP_ALIAS_READ) return mp_text_add_weight(t, alias->weight);
  alias->state = MP_ALIAS_READING;
  MP_RETURN_IF_ERROR(mp_text_enter(t));
  uint64_t weight = t->weight;
  mp_lexer_t lexer = t->lex;
  mp_token_t token = t->tok;
  t->lex = alias->value;
  t->tok = alias->value_token;
  MP_RETURN_IF_ERROR(read(t, alias));
  t->lex = lexer;
  t->tok = token;
  alias->weight = t->weight - weight + 1;
  alias->state = MP_ALIAS_READ;
  mp_text_leave(t);
  return NULL;
}
