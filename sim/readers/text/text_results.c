#include "sim/readers/text/text_parser.h"

mp_status_t mp_text_result_names(mp_text_t *t, mp_text_result_names_t *names) {
  if (t->tok.kind != MP_TOKEN_VALUE) return NULL;
  do {
    mp_text_result_name_t name = {t->tok, 1};
    if (t->tok.kind != MP_TOKEN_VALUE) return mp_text_expected(t, "a result '%name'");
    mp_text_advance(t);
    if (mp_text_accept(t, ':')) {
      int64_t count;
      MP_RETURN_IF_ERROR(mp_text_i64(t, &count));
      if (count < 1 || count > INT32_MAX)
        return mp_text_error(t, &t->last, MP_INVALID_ARGUMENT, "a number of results from 1 on");
      name.count = (uint32_t)count;
    }
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, names, name));
  } while (mp_text_accept(t, ','));
  return mp_text_expect(t, '=');
}

mp_status_t mp_text_define_results(mp_text_t *t, mp_str_t op, const mp_text_result_names_t *names,
                                   const void *values, uint32_t num_values) {
  const mp_text_result_name_t *items = names->items;
  uint64_t total = 0;
  for (uint32_t i = 0; i < names->count; ++i) total += items[i].count;
  if (total != num_values && names->count > 0)
    return mp_text_error(t, &items[0].token, MP_INVALID_ARGUMENT,
                         "%llu results are named, '%.*s' has %u", (unsigned long long)total,
                         MP_STR_ARG(op), num_values);
  const char *first = values;
  for (uint32_t i = 0; i < names->count; ++i) {
    MP_RETURN_IF_ERROR(mp_text_define(t, &items[i].token, first, items[i].count));
    first += items[i].count * sizeof(void *);
  }
  return NULL;
}
