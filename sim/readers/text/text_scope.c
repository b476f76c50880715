// Names of values and where they are visible.
#include "sim/base/assert.h"
#include "sim/base/hash.h"
#include "sim/readers/text/text_parser.h"

// A region may use a name of an outer region again (printers number the values of an isolated
// region from 0), but within one region a name is defined once. `defs` is a stack of definitions.
// Each name knows its newest definition, and each definition knows the one that it hides, so that
// closing a scope only has to pop the definitions that were made in it.

static uint64_t text_scope_hash(const mp_text_t *t, mp_str_t name) {
  // The hash starts from an address, which differs from run to run, so a program cannot be written
  // whose names all have the same hash.
  return mp_hash_bytes((uint64_t)(uintptr_t)t, name.data, name.size);
}

// The name with this text; NULL when it was never defined.
static mp_text_name_t *text_scope_find_name(const mp_text_t *t, uint64_t hash, mp_str_t name) {
  const mp_text_name_entry_t *entry;
  MP_HASH_MAP_EACH(&t->names_by_text, hash, entry) {
    mp_text_name_t *known = &t->names.items[entry->name];
    if (mp_str_equal(known->text, name)) return known;
  }
  return NULL;
}

static mp_status_t text_scope_add_name(mp_text_t *t, uint64_t hash, mp_str_t name,
                                       mp_text_name_t **out_name) {
  const mp_text_name_entry_t entry = {hash, t->names.count};
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &t->names, (mp_text_name_t){name, 0}));
  *out_name = &t->names.items[entry.name];
  return MP_HASH_MAP_ADD(t->scratch, &t->names_by_text, &entry);
}

mp_text_scope_t mp_text_open_scope(mp_text_t *t, bool isolated) {
  mp_text_scope_t outer = {t->scope_start, t->visible_start, t->defs.count};
  t->scope_start = t->defs.count;
  if (isolated) t->visible_start = t->defs.count;
  return outer;
}

void mp_text_close_scope(mp_text_t *t, mp_text_scope_t scope) {
  MP_ASSERT(scope.num_defs <= t->defs.count && t->scope_start == scope.num_defs);
  while (t->defs.count > scope.num_defs) {
    const mp_text_def_t *def = &t->defs.items[--t->defs.count];
    MP_ASSERT(t->names.items[def->name].newest == t->defs.count + 1);  // scopes close inside out
    t->names.items[def->name].newest = def->older;
  }
  t->scope_start = scope.scope_start;
  t->visible_start = scope.visible_start;
}

// The newest visible definition; NULL when there is none.
static const mp_text_def_t *text_scope_find(const mp_text_t *t, mp_str_t name) {
  const mp_text_name_t *known = text_scope_find_name(t, text_scope_hash(t, name), name);
  if (known == NULL || known->newest <= t->visible_start) return NULL;
  MP_ASSERT(known->newest <= t->defs.count);
  return &t->defs.items[known->newest - 1];
}

mp_status_t mp_text_define(mp_text_t *t, const mp_token_t *name, const void *values,
                           uint32_t count) {
  const uint64_t hash = text_scope_hash(t, name->text);
  mp_text_name_t *known = text_scope_find_name(t, hash, name->text);
  if (known == NULL) MP_RETURN_IF_ERROR(text_scope_add_name(t, hash, name->text, &known));
  if (known->newest > t->scope_start)
    return mp_text_error(t, name, MP_INVALID_ARGUMENT, "%%%.*s is defined twice",
                         MP_STR_ARG(name->text));
  const mp_text_def_t def = {(uint32_t)(known - t->names.items), values, count, known->newest};
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &t->defs, def));
  known->newest = t->defs.count;
  return NULL;
}

bool mp_text_is_defined(const mp_text_t *t, mp_str_t name) {
  return text_scope_find(t, name) != NULL;
}

mp_status_t mp_text_use(mp_text_t *t, void *out_value) {
  if (t->tok.kind != MP_TOKEN_VALUE) return mp_text_expected(t, "a value '%name'");
  const mp_text_def_t *def = text_scope_find(t, t->tok.text);
  if (def == NULL)
    return mp_text_error(t, &t->tok, MP_INVALID_ARGUMENT, "%%%.*s is not defined here",
                         MP_STR_ARG(t->tok.text));
  mp_text_advance(t);
  uint32_t index = 0;
  // `#k` directly behind the name selects the k-th of its values.
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
                         "%%%.*s has %u values", MP_STR_ARG(t->names.items[def->name].text),
                         def->count);
  if (numbered) mp_text_advance(t);
  memcpy(out_value, (const char *)def->values + index * sizeof(void *), sizeof(void *));
  return NULL;
}
