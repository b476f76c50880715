#include "sim/readers/hlo/hlo_entry.h"

#include "sim/readers/hlo/hlo_build.h"
#include "sim/readers/hlo/hlo_sharding.h"

// The properties of a parameter or result of main.
typedef struct {
  const mp_attr_t *sharding, *layout, *alias;
  bool is_donated;
} border_t;

typedef struct {
  mp_hlo_t *h;
  border_t *params, *results;  // by leaf
  uint32_t num_params, num_results;
} entry_t;

// ---- layouts ----

// The order of dimensions in the form of mhlo.layout_mode.
static mp_status_t hlo_entry_layout(mp_hlo_t *h, const mp_hlo_shape_t *leaf,
                                    const mp_attr_t **out_attr) {
  if (leaf->is_tiled || leaf->memory_space != 0) {
    return mp_status_make(MP_UNIMPLEMENTED, "layout: tiles and memory spaces are not supported");
  }
  if (leaf->minor_to_major == NULL) return NULL;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  for (uint32_t i = 0; i < leaf->type->rank; ++i) {
    mp_strbuf_printf(&text, "%s%lld", i == 0 ? "{" : ",", (long long)leaf->minor_to_major[i]);
  }
  mp_strbuf_putc(&text, '}');
  mp_status_t status = mp_strbuf_status(&text);
  if (status == NULL) {
    status = mp_attr_make_string(h->module->arena, (mp_str_t){mp_strbuf_text(&text), text.size},
                                 out_attr);
  }
  mp_strbuf_deinit(&text);
  return status;
}

static mp_status_t hlo_entry_shape_layouts(mp_hlo_t *h, const mp_hlo_shape_t *stated,
                                           const mp_hlo_shape_t *real, border_t *borders) {
  bool is_same = stated->num_leaves == real->num_leaves;
  for (uint32_t i = 0; is_same && i < real->num_leaves; ++i) {
    is_same = mp_type_equal(stated->types[i], real->types[i]);
  }
  if (!is_same) {
    return mp_status_make(MP_INVALID_ARGUMENT, "it is not the shape that the computation has");
  }
  for (uint32_t i = 0; i < real->num_leaves; ++i) {
    MP_RETURN_IF_ERROR(hlo_entry_layout(h, stated->leaves[i], &borders[i].layout));
  }
  return NULL;
}

// Only a configuration has the layouts that the client requires. Those of the instructions and of
// host_program_shape are intermediate results of some compiler, and XLA drops them, too.
static mp_status_t hlo_entry_read_layouts(entry_t *e) {
  mp_hlo_t *h = e->h;
  const mp_hlo_comp_t *comp = h->entry;
  mp_hlo_program_shape_t shape;
  if (h->entry_layout_bytes.data == NULL) return NULL;
  MP_RETURN_IF_ERROR(mp_status_annotate(
      mp_hlo_read_program_shape(&h->source, h->module->arena, h->entry_layout_bytes, &shape),
      "config.entry_computation_layout"));
  if (shape.num_params != comp->num_params) {
    return mp_status_make(
        MP_INVALID_ARGUMENT,
        "config.entry_computation_layout: %u parameters, the entry computation has %u",
        shape.num_params, comp->num_params);
  }
  for (uint32_t i = 0; i < shape.num_params; ++i) {
    MP_RETURN_IF_ERROR(
        mp_status_annotate(hlo_entry_shape_layouts(h, shape.params[i], comp->params[i]->shape,
                                                   e->params + comp->param_leaf[i]),
                           "config.entry_computation_layout.parameters[%u]", i));
  }
  if (shape.result == NULL) return NULL;
  return mp_status_annotate(hlo_entry_shape_layouts(h, shape.result, comp->root->shape, e->results),
                            "config.entry_computation_layout.result");
}

// ---- shardings ----

static mp_status_t hlo_entry_put_shardings(entry_t *e, mp_str_t bytes, uint32_t count,
                                           border_t *borders) {
  const mp_attr_t **attrs = MP_ARENA_ARRAY(e->h->source.arena, const mp_attr_t *, count);
  MP_RETURN_IF_NULL(attrs);
  MP_RETURN_IF_ERROR(mp_hlo_read_shardings(e->h, bytes, count, attrs));
  for (uint32_t i = 0; i < count; ++i) borders[i].sharding = attrs[i];
  return NULL;
}

// A sharding of the parameter or root itself precedes the module's.
static mp_status_t hlo_entry_read_shardings(entry_t *e) {
  mp_hlo_t *h = e->h;
  const mp_hlo_comp_t *comp = h->entry;
  for (uint32_t i = 0; i < comp->num_params; ++i) {
    const mp_hlo_inst_t *param = comp->params[i];
    mp_str_t bytes = param->sharding_bytes;
    if (bytes.data == NULL && i < h->proto.parameter_shardings.count) {
      bytes = h->proto.parameter_shardings.items[i];
    }
    if (bytes.data == NULL) continue;
    MP_RETURN_IF_ERROR(
        mp_hlo_error_at(param, hlo_entry_put_shardings(e, bytes, param->shape->num_leaves,
                                                       e->params + comp->param_leaf[i])));
  }
  mp_str_t bytes = comp->root->sharding_bytes;
  if (bytes.data == NULL) bytes = h->proto.output_sharding_bytes;
  if (bytes.data == NULL) return NULL;
  return mp_hlo_error_at(comp->root, hlo_entry_put_shardings(e, bytes, e->num_results, e->results));
}

// ---- aliases and donations ----

// The leaf at a path of indices into tuples; false when there is none.
static bool hlo_entry_find_leaf(const mp_hlo_shape_t *shape, const mp_hlo_ints_t *path,
                                uint32_t *out_leaf) {
  uint32_t leaf = 0;
  for (uint32_t i = 0; i < path->count; ++i) {
    const int64_t index = path->items[i];
    if (shape->type != NULL || index < 0 || index >= shape->num_elements) return false;
    for (int64_t k = 0; k < index; ++k) leaf += shape->elements[k]->num_leaves;
    shape = shape->elements[index];
  }
  *out_leaf = leaf;
  return shape->type != NULL;
}

typedef struct {
  mp_hlo_ints_t output, index;
  int64_t parameter;
} alias_entry_t;

MP_HLO_MESSAGE(g_alias_entry, "HloInputOutputAliasProto.AliasEntryProto",
               MP_HLO_FIELD(1, INTS, alias_entry_t, output),
               MP_HLO_FIELD(2, INT, alias_entry_t, parameter),
               MP_HLO_FIELD(3, INTS, alias_entry_t, index));
MP_HLO_MESSAGE(g_donor_entry, "HloBufferDonorProto.BufferDonorEntryProto",
               MP_HLO_FIELD(1, INT, alias_entry_t, parameter),
               MP_HLO_FIELD(2, INTS, alias_entry_t, index));

typedef struct {
  mp_hlo_texts_t entries;
} entries_t;

MP_HLO_MESSAGE(g_entries, "HloInputOutputAliasProto", MP_HLO_FIELD(1, TEXTS, entries_t, entries));

static mp_status_t hlo_entry_read_alias(entry_t *e, mp_str_t bytes, const mp_hlo_message_t *message,
                                        bool has_output) {
  const mp_hlo_comp_t *comp = e->h->entry;
  alias_entry_t entry = {0};
  uint32_t param = 0, result = 0;
  MP_RETURN_IF_ERROR(mp_hlo_decode(&e->h->source, message, bytes, &entry));
  if (entry.parameter < 0 || entry.parameter >= comp->num_params ||
      !hlo_entry_find_leaf(comp->params[entry.parameter]->shape, &entry.index, &param)) {
    return mp_status_make(MP_INVALID_ARGUMENT, "parameter_number: there is no such parameter");
  }
  border_t *border = &e->params[comp->param_leaf[entry.parameter] + param];
  if (!has_output) {
    border->is_donated = true;
    return NULL;
  }
  if (!hlo_entry_find_leaf(comp->root->shape, &entry.output, &result)) {
    return mp_status_make(MP_INVALID_ARGUMENT, "output_shape_index: there is no such result");
  }
  return mp_attr_make_int(e->h->module->arena, MP_DTYPE_S32, result, &border->alias);
}

static mp_status_t hlo_entry_read_aliases(entry_t *e, mp_str_t bytes, const char *what,
                                          const mp_hlo_message_t *message, bool has_output) {
  entries_t entries = {0};
  MP_RETURN_IF_ERROR(
      mp_status_annotate(mp_hlo_decode(&e->h->source, &g_entries, bytes, &entries), "%s", what));
  for (uint32_t i = 0; i < entries.entries.count; ++i) {
    MP_RETURN_IF_ERROR(
        mp_status_annotate(hlo_entry_read_alias(e, entries.entries.items[i], message, has_output),
                           "%s.entries[%u]", what, i));
  }
  return NULL;
}

// ---- the function ----

// The attributes of a parameter or result, by name; NULL when it has none.
static mp_status_t hlo_entry_make_dict(mp_hlo_t *h, const border_t *border,
                                       const mp_attr_t **out_dict) {
  mp_arena_t *arena = h->module->arena;
  const mp_attr_t *donated = NULL;
  // A parameter that aliases a result is donated, even if it is not marked so.
  if (border->is_donated && border->alias == NULL) {
    MP_RETURN_IF_ERROR(mp_attr_make_bool(arena, true, &donated));
  }
  const mp_named_attr_t all[] = {
      {.name = MP_ATTR_JAX_BUFFER_DONOR, .value = donated},
      {.name = MP_ATTR_MHLO_LAYOUT_MODE, .value = border->layout},
      {.name = MP_ATTR_MHLO_SHARDING, .value = border->sharding},
      {.name = MP_ATTR_TF_ALIASING_OUTPUT, .value = border->alias},
  };
  enum { NUM_ALL = sizeof(all) / sizeof(all[0]) };
  mp_named_attr_t *items = MP_ARENA_ARRAY(arena, mp_named_attr_t, NUM_ALL);
  mp_attr_t *dict = MP_ARENA_NEW(arena, mp_attr_t);
  if (items == NULL || dict == NULL) return mp_status_out_of_memory();
  dict->kind = MP_KIND_DICT;
  dict->u.dict.items = items;
  for (size_t i = 0; i < NUM_ALL; ++i) {
    if (all[i].value == NULL) continue;
    items[dict->u.dict.count] = all[i];
    items[dict->u.dict.count++].text = mp_str(mp_attr_name_text(all[i].name));
  }
  *out_dict = dict->u.dict.count == 0 ? NULL : dict;
  return NULL;
}

static mp_status_t hlo_entry_make_func(entry_t *e) {
  mp_hlo_t *h = e->h;
  mp_hlo_comp_t *comp = h->entry;
  mp_func_t *func = NULL;
  mp_hlo_leaves_t args = {0}, root = {0};
  MP_RETURN_IF_ERROR(mp_func_create(h->module, MP_STR("main"), comp->num_leaves, comp->types,
                                    e->num_results, comp->root->shape->types, &func));
  func->visibility = MP_STR("public");
  func->loc = comp->root->loc;
  h->module->main = func;
  for (uint32_t i = 0; i < e->num_params; ++i) {
    MP_RETURN_IF_ERROR(hlo_entry_make_dict(h, &e->params[i], &func->arg_attrs[i]));
  }
  for (uint32_t i = 0; i < e->num_results; ++i) {
    MP_RETURN_IF_ERROR(hlo_entry_make_dict(h, &e->results[i], &func->result_attrs[i]));
  }
  MP_RETURN_IF_ERROR(mp_hlo_new_leaves(h, comp->num_leaves, &args));
  for (uint32_t i = 0; i < args.count; ++i) args.items[i] = &func->body->args[i];
  MP_RETURN_IF_ERROR(mp_hlo_build_comp(h, comp, func->body, args, &root));
  return mp_hlo_build_return(h, func->body, comp->root->loc, root);
}

mp_status_t mp_hlo_build_entry(mp_hlo_t *h) {
  entry_t e = {
      .h = h, .num_params = h->entry->num_leaves, .num_results = h->entry->root->shape->num_leaves};
  e.params = MP_ARENA_ARRAY(h->source.arena, border_t, e.num_params);
  e.results = MP_ARENA_ARRAY(h->source.arena, border_t, e.num_results);
  if (e.params == NULL || e.results == NULL) return mp_status_out_of_memory();
  MP_RETURN_IF_ERROR(hlo_entry_read_layouts(&e));
  MP_RETURN_IF_ERROR(hlo_entry_read_shardings(&e));
  MP_RETURN_IF_ERROR(
      hlo_entry_read_aliases(&e, h->proto.alias_bytes, "input_output_alias", &g_alias_entry, true));
  MP_RETURN_IF_ERROR(
      hlo_entry_read_aliases(&e, h->proto.donor_bytes, "buffer_donor", &g_donor_entry, false));
  return hlo_entry_make_func(&e);
}
