#include "sim/readers/hlo/hlo_sharding.h"

#include "sim/spmd/sharding/op_sharding.h"

// ---- shardings ----

enum { TYPE_TUPLE = 2 };

typedef struct {
  int64_t type;
} sharding_t;

MP_HLO_MESSAGE(g_sharding, "OpSharding", MP_HLO_FIELD(1, INT, sharding_t, type));

static mp_status_t hlo_sharding_print_all(mp_hlo_t *h, mp_str_t bytes, uint32_t count,
                                          mp_strbuf_t *out) {
  sharding_t sharding = {0};
  MP_RETURN_IF_ERROR(mp_hlo_decode(&h->source, &g_sharding, bytes, &sharding));
  if (sharding.type != TYPE_TUPLE) return mp_op_sharding_print(bytes, out);
  mp_str_t *elements = MP_ARENA_ARRAY(h->source.arena, mp_str_t, count);
  MP_RETURN_IF_NULL(elements);
  MP_RETURN_IF_ERROR(mp_op_sharding_elements(bytes, count, elements));
  if (count == 1) return mp_op_sharding_print(elements[0], out);
  mp_strbuf_putc(out, '{');
  for (uint32_t i = 0; i < count; ++i) {
    if (i != 0) mp_strbuf_puts(out, ", ");
    MP_RETURN_IF_ERROR(mp_op_sharding_print(elements[i], out));
  }
  mp_strbuf_putc(out, '}');
  return mp_strbuf_status(out);
}

// The sharding of `count` values as a GSPMD string, the value of mhlo.sharding.
static mp_status_t hlo_sharding_read(mp_hlo_t *h, mp_str_t bytes, uint32_t count,
                                     const mp_attr_t **out_attr) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_status_t status = hlo_sharding_print_all(h, bytes, count, &text);
  if (status == NULL) status = mp_strbuf_status(&text);
  if (status == NULL) {
    status = mp_attr_make_string(h->module->arena, (mp_str_t){mp_strbuf_text(&text), text.size},
                                 out_attr);
  }
  mp_strbuf_deinit(&text);
  return mp_status_annotate(status, "sharding");
}

mp_status_t mp_hlo_read_shardings(mp_hlo_t *h, mp_str_t bytes, uint32_t count,
                                  const mp_attr_t **out_attrs) {
  sharding_t sharding = {0};
  mp_str_t *elements = MP_ARENA_ARRAY(h->source.arena, mp_str_t, count);
  MP_RETURN_IF_NULL(elements);
  MP_RETURN_IF_ERROR(
      mp_status_annotate(mp_hlo_decode(&h->source, &g_sharding, bytes, &sharding), "sharding"));
  if (sharding.type != TYPE_TUPLE) {
    for (uint32_t i = 0; i < count; ++i) elements[i] = bytes;
  } else {
    MP_RETURN_IF_ERROR(
        mp_status_annotate(mp_op_sharding_elements(bytes, count, elements), "sharding"));
  }
  for (uint32_t i = 0; i < count; ++i) {
    MP_RETURN_IF_ERROR(hlo_sharding_read(h, elements[i], 1, &out_attrs[i]));
  }
  return NULL;
}

// ---- the frontend's attributes ----

typedef struct {
  mp_hlo_texts_t entries;
} frontend_t;

MP_HLO_MESSAGE(g_frontend, "FrontendAttributes", MP_HLO_FIELD(1, TEXTS, frontend_t, entries));

typedef struct {
  mp_str_t key, value;
} entry_t;

MP_HLO_MESSAGE(g_entry, "FrontendAttributes.MapEntry", MP_HLO_FIELD(1, TEXT, entry_t, key),
               MP_HLO_FIELD(2, TEXT, entry_t, value));

mp_status_t mp_hlo_read_frontend(mp_hlo_t *h, mp_str_t bytes, const mp_attr_t **out_dict) {
  mp_arena_t *arena = h->module->arena;
  frontend_t frontend = {0};
  *out_dict = NULL;
  MP_RETURN_IF_ERROR(mp_status_annotate(mp_hlo_decode(&h->source, &g_frontend, bytes, &frontend),
                                        "frontend_attributes"));
  const uint32_t count = frontend.entries.count;
  if (count == 0) return NULL;
  mp_attr_t *dict = MP_ARENA_NEW(arena, mp_attr_t);
  mp_named_attr_t *items = MP_ARENA_ARRAY(arena, mp_named_attr_t, count);
  if (dict == NULL || items == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < count; ++i) {
    entry_t entry = {.key = MP_STR(""), .value = MP_STR("")};
    MP_RETURN_IF_ERROR(
        mp_status_annotate(mp_hlo_decode(&h->source, &g_entry, frontend.entries.items[i], &entry),
                           "frontend_attributes.map[%u]", i));
    const char *key = mp_arena_strndup(arena, entry.key.data, entry.key.size);
    MP_RETURN_IF_NULL(key);
    items[i].text = (mp_str_t){key, entry.key.size};
    items[i].name = mp_attr_name_from_text(items[i].text);
    MP_RETURN_IF_ERROR(mp_attr_make_string(arena, entry.value, &items[i].value));
  }
  dict->kind = MP_KIND_DICT;
  dict->u.dict.items = items;
  dict->u.dict.count = count;
  *out_dict = dict;
  return NULL;
}

mp_status_t mp_hlo_frontend_text(mp_hlo_t *h, const mp_hlo_inst_t *inst, const char *key,
                                 mp_str_t *out_text) {
  const mp_attr_t *dict = NULL;
  *out_text = MP_STR("");
  MP_RETURN_IF_ERROR(mp_hlo_error_at(inst, mp_hlo_read_frontend(h, inst->frontend_bytes, &dict)));
  const mp_attr_t *value = mp_attr_dict_get_text(dict, key);
  if (value != NULL) *out_text = value->u.str;
  return NULL;
}

// ---- on operations ----

// Makes room for the attributes behind those of the operation and adds them, by name.
static mp_status_t hlo_sharding_add(mp_hlo_t *h, mp_op_t *op, const mp_attr_t *frontend,
                                    const mp_attr_t *sharding) {
  if (frontend != NULL) {
    MP_RETURN_IF_ERROR(mp_op_set_attr(h->module, op, MP_ATTR_MHLO_FRONTEND_ATTRIBUTES, frontend));
  }
  return sharding == NULL ? NULL : mp_op_set_attr(h->module, op, MP_ATTR_MHLO_SHARDING, sharding);
}

mp_status_t mp_hlo_annotate(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, mp_hlo_leaves_t leaves) {
  mp_op_t *op = b->block->last;
  const mp_attr_t *frontend = NULL, *sharding = NULL;
  if (op == NULL || op->num_results != leaves.count) return NULL;
  for (uint32_t i = 0; i < leaves.count; ++i) {
    if (leaves.items[i] != &op->results[i]) return NULL;
  }
  MP_RETURN_IF_ERROR(
      mp_hlo_error_at(inst, mp_hlo_read_frontend(b->h, inst->frontend_bytes, &frontend)));
  if (inst->sharding_bytes.data != NULL) {
    MP_RETURN_IF_ERROR(mp_hlo_error_at(
        inst, hlo_sharding_read(b->h, inst->sharding_bytes, leaves.count, &sharding)));
  }
  return hlo_sharding_add(b->h, op, frontend, sharding);
}
