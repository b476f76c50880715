// Names of values and where they are visible.
#include "sim/readers/text/text_parser.h"

// Inner regions may call their values like outer ones (isolated regions start numbering anew);
// within one region a name is defined once. The newest definition of a bucket comes first, so that
// closing a scope is to drop the newest definitions.

static uint32_t text_scope_bucket_of(const mp_text_t *t, mp_str_t name) {
  // Started from an address, so that nobody can write a program whose names all meet in one bucket.
  uint32_t hash = 2166136261u ^ (uint32_t)((uintptr_t)t >> 4);
  for (size_t i = 0; i < name.size; ++i) hash = (hash ^ (unsigned char)name.data[i]) * 16777619u;
  return (hash ^ hash >> 15) & (t->num_buckets - 1);
}

static mp_status_t text_scope_grow(mp_text_t *t) {
  uint32_t max_defs = t->max_defs == 0 ? 256 : t->max_defs * 2;
  mp_text_def_t *defs = MP_ARENA_ARRAY(t->scratch, mp_text_def_t, max_defs);
  uint32_t *buckets = MP_ARENA_ARRAY(t->scratch, uint32_t, max_defs);
  if (defs == NULL || buckets == NULL) return mp_status_out_of_memory();
  t->num_buckets = max_defs;
  for (uint32_t i = 0; i < t->num_defs; ++i) {
    defs[i] = t->defs[i];
    defs[i].bucket = text_scope_bucket_of(t, defs[i].name);
    defs[i].next = buckets[defs[i].bucket];
    buckets[defs[i].bucket] = i + 1;
  }
  t->defs = defs;
  t->buckets = buckets;
  t->max_defs = max_defs;
  return NULL;
}

mp_text_scope_t mp_text_open_scope(mp_text_t *t, bool isolated) {
  mp_text_scope_t outer = {t->scope_start, t->visible_start, t->num_defs};
  t->scope_start = t->num_defs;
  if (isolated) t->visible_start = t->num_defs;
  return outer;
}

void mp_text_close_scope(mp_text_t *t, mp_text_scope_t scope) {
  while (t->num_defs > scope.num_defs) {
    const mp_text_def_t *def = &t->defs[--t->num_defs];
    t->buckets[def->bucket] = def->next;
  }
  t->scope_start = scope.scope_start;
  t->visible_start = scope.visible_start;
}

// The index of the newest visible definition plus one; 0 when there is none.
static uint32_t text_scope_find(const mp_text_t *t, mp_str_t name) {
  if (t->num_buckets == 0) return 0;
  uint32_t i = t->buckets[text_scope_bucket_of(t, name)];
  while (i > t->visible_start && !mp_str_equal(t->defs[i - 1].name, name)) i = t->defs[i - 1].next;
  return i > t->visible_start ? i : 0;
}

mp_status_t mp_text_define(mp_text_t *t, const mp_token_t *name, mp_value_t **values,
                           uint32_t count) {
  if (text_scope_find(t, name->text) > t->scope_start)
    return mp_text_error(t, name, MP_INVALID_ARGUMENT, "%%%.*s is defined twice",
                         MP_STR_ARG(name->text));
  if (t->num_defs == t->max_defs) MP_RETURN_IF_ERROR(text_scope_grow(t));
  uint32_t bucket = text_scope_bucket_of(t, name->text);
  t->defs[t->num_defs++] = (mp_text_def_t){name->text, values, count, t->buckets[bucket], bucket};
  t->buckets[bucket] = t->num_defs;
  return NULL;
}

bool mp_text_is_defined(const mp_text_t *t, mp_str_t name) {
  return text_scope_find(t, name) != 0;
}

mp_status_t mp_text_use(mp_text_t *t, mp_value_t **out_value) {
  if (t->tok.kind != MP_TOKEN_VALUE) return mp_text_expected(t, "a value '%name'");
  uint32_t found = text_scope_find(t, t->tok.text);
  if (found == 0)
    return mp_text_error(t, &t->tok, MP_INVALID_ARGUMENT, "%%%.*s is not defined here",
                         MP_STR_ARG(t->tok.text));
  const mp_text_def_t *def = &t->defs[found - 1];
  mp_text_advance(t);
  uint32_t index = 0;
  // #k directly behind the name is the k-th of its values.
  bool numbered = t->tok.kind == MP_TOKEN_HASH &&
                  t->tok.start == t->last.text.data + t->last.text.size &&
                  t->tok.text.data[0] >= '0' && t->tok.text.data[0] <= '9';
  if (numbered) {
    for (size_t i = 0; i < t->tok.text.size; ++i) {
      uint32_t digit = (uint32_t)(t->tok.text.data[i] - '0');
      if (digit > 9 || index > def->count) return mp_text_expected(t, "a result number");
      index = index * 10 + digit;
    }
  }
  if (index >= def->count)
    return mp_text_error(t, numbered ? &t->tok : &t->last, MP_INVALID_ARGUMENT,
                         "%%%.*s has %u values", MP_STR_ARG(def->name), def->count);
  if (numbered) mp_text_advance(t);
  *out_value = def->values[index];
  return NULL;
}
