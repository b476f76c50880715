// Makes attributes; reads nothing.
#include <stdlib.h>

#include "sim/readers/text/text_parser.h"

mp_status_t mp_text_new_attr(mp_text_t *t, mp_attr_kind_t kind, mp_attr_t **out_attr) {
  mp_attr_t *attr = MP_ARENA_NEW(t->arena, mp_attr_t);
  MP_RETURN_IF_NULL(attr);
  attr->kind = kind;
  *out_attr = attr;
  return NULL;
}

mp_status_t mp_text_named_attr(mp_text_t *t, mp_str_t name, const mp_attr_t *value,
                               mp_named_attr_t *out_attr) {
  (void)t;
  *out_attr = (mp_named_attr_t){mp_attr_name_from_text(name), name, value};
  return NULL;
}

static int text_attr_make_compare_items(const void *a, const void *b) {
  return mp_str_compare(((const mp_named_attr_t *)a)->text, ((const mp_named_attr_t *)b)->text);
}

mp_status_t mp_text_make_dict(mp_text_t *t, const mp_token_t *token, const mp_named_attr_t *items,
                              uint32_t count, const mp_attr_t **out_dict) {
  mp_attr_t *dict = NULL;
  MP_RETURN_IF_ERROR(mp_text_new_attr(t, MP_KIND_DICT, &dict));
  mp_named_attr_t *sorted = mp_arena_copy(t->arena, items, count * sizeof(items[0]));
  MP_RETURN_IF_NULL(sorted);
  if (count > 1) qsort(sorted, count, sizeof(sorted[0]), text_attr_make_compare_items);
  for (uint32_t i = 1; i < count; ++i)
    if (text_attr_make_compare_items(&sorted[i - 1], &sorted[i]) == 0)
      return mp_text_error(t, token, MP_INVALID_ARGUMENT, "'%.*s' is given twice",
                           MP_STR_ARG(sorted[i].text));
  dict->u.dict.items = sorted;
  dict->u.dict.count = count;
  *out_dict = dict;
  return NULL;
}
