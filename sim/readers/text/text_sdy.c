// Shardy's attributes (sdy dialect documentation).
#include "sim/readers/text/text_parser.h"

// ---- meshes ----

// Programs have a handful of meshes, so that a list is searched; the limit bounds the time for
// hostile ones. It is that of the bytecode reader.
enum { MAX_MESHES = 1024 };

mp_status_t mp_text_mesh_ref(mp_text_t *t, mp_mesh_t **out_mesh) {
  mp_token_t token = t->tok;
  mp_str_t name;
  int count = 0;
  MP_RETURN_IF_ERROR(mp_text_symbol(t, &name));
  for (mp_text_mesh_t *known = t->meshes; known != NULL; known = known->next, ++count) {
    if (!mp_str_equal(known->mesh->name, name)) continue;
    *out_mesh = known->mesh;
    return NULL;
  }
  if (count >= MAX_MESHES)
    return mp_text_error(t, &token, MP_UNIMPLEMENTED, "more than %d meshes", MAX_MESHES);
  mp_text_mesh_t *entry = MP_ARENA_NEW(t->scratch, mp_text_mesh_t);
  mp_mesh_t *mesh = MP_ARENA_NEW(t->arena, mp_mesh_t);
  if (entry == NULL || mesh == NULL) return mp_status_out_of_memory();
  mesh->name = name;
  *entry = (mp_text_mesh_t){.mesh = mesh, .first_use = token, .next = t->meshes};
  t->meshes = entry;
  *out_mesh = mesh;
  return NULL;
}

mp_status_t mp_text_check_meshes(mp_text_t *t) {
  for (const mp_text_mesh_t *entry = t->meshes; entry != NULL; entry = entry->next)
    if (!entry->defined)
      return mp_text_error(t, &entry->first_use, MP_INVALID_ARGUMENT,
                           "the mesh @%.*s is not defined", MP_STR_ARG(entry->mesh->name));
  return NULL;
}

// "x"=2
static mp_status_t text_sdy_read_mesh_axis(mp_text_t *t, mp_mesh_axis_t *axis) {
  MP_RETURN_IF_ERROR(mp_text_string(t, &axis->name));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
  return mp_text_i64(t, &axis->size);
}

// <["x"=2, "y"=4], device_ids=[...]>
mp_status_t mp_text_mesh_body(mp_text_t *t, mp_mesh_t *out_mesh) {
  MP_ARRAY(mp_mesh_axis_t) axes = {0};
  MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
  MP_TEXT_LIST(t, '[', ']', mp_mesh_axis_t, &axes, text_sdy_read_mesh_axis);
  mp_index_list_t ids = {0};
  if (mp_text_accept(t, ',')) {
    MP_RETURN_IF_ERROR(mp_text_expect_word(t, "device_ids"));
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    MP_RETURN_IF_ERROR(mp_text_index_list(t, &ids));
  }
  out_mesh->num_axes = axes.count;
  out_mesh->axes = mp_arena_copy(t->arena, axes.items, axes.count * sizeof(mp_mesh_axis_t));
  MP_RETURN_IF_NULL(out_mesh->axes);
  out_mesh->num_device_ids = ids.count;
  out_mesh->device_ids = ids.values;
  return mp_text_expect(t, '>');
}

static mp_status_t text_sdy_read_new_mesh(mp_text_t *t, mp_mesh_t **out_mesh) {
  mp_mesh_t *mesh = MP_ARENA_NEW(t->arena, mp_mesh_t);
  MP_RETURN_IF_NULL(mesh);
  mesh->name = MP_STR("");
  MP_RETURN_IF_ERROR(mp_text_mesh_body(t, mesh));
  *out_mesh = mesh;
  return NULL;
}

// ---- axes ----

// "x" or "x":(1)2
static mp_status_t text_sdy_read_axis(mp_text_t *t, mp_axis_ref_t *axis) {
  *axis = (mp_axis_ref_t){.pre_size = 1};
  MP_RETURN_IF_ERROR(mp_text_string(t, &axis->name));
  if (!mp_text_accept(t, ':')) return NULL;
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  MP_RETURN_IF_ERROR(mp_text_i64(t, &axis->pre_size));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
  MP_RETURN_IF_ERROR(mp_text_i64(t, &axis->size));
  if (axis->size <= 0)
    return mp_text_error(t, &t->last, MP_INVALID_ARGUMENT, "a part of an axis has no size");
  return NULL;
}

// {"x", "y"}. If `open` is not NULL, {"x", ?} and {?} are allowed too and set `*open`.
static mp_status_t text_sdy_read_axes(mp_text_t *t, mp_axis_list_t *out_axes, bool *open) {
  MP_ARRAY(mp_axis_ref_t) axes = {0};
  MP_RETURN_IF_ERROR(mp_text_expect(t, '{'));
  for (bool first = true; !mp_text_is(t, '}'); first = false) {
    if (!first) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    if (open != NULL && mp_text_accept(t, '?')) {
      *open = true;
      break;
    }
    mp_axis_ref_t axis;
    MP_RETURN_IF_ERROR(text_sdy_read_axis(t, &axis));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &axes, axis));
  }
  MP_RETURN_IF_ERROR(mp_text_expect(t, '}'));
  out_axes->count = axes.count;
  out_axes->axes = mp_arena_copy(t->arena, axes.items, axes.count * sizeof(mp_axis_ref_t));
  MP_RETURN_IF_NULL(out_axes->axes);
  return NULL;
}

// A list of axes, {"x", "y":(1)2}.
static mp_status_t text_sdy_axes(mp_text_t *t, mp_axis_list_t *out_axes) {
  return text_sdy_read_axes(t, out_axes, NULL);
}

mp_status_t mp_text_axes_attr(mp_text_t *t, const mp_attr_t **out_attr) {
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_text_new_attr(t, MP_KIND_AXES, &attr));
  MP_RETURN_IF_ERROR(text_sdy_axes(t, &attr->u.axes));
  *out_attr = attr;
  return NULL;
}

// [{"x"}, {}]
mp_status_t mp_text_axes_lists(mp_text_t *t, const mp_attr_t **out_attr) {
  MP_ARRAY(mp_axis_list_t) lists = {0};
  MP_TEXT_LIST(t, '[', ']', mp_axis_list_t, &lists, text_sdy_axes);
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_text_new_attr(t, MP_KIND_AXES_LISTS, &attr));
  attr->u.axes_lists.count = lists.count;
  attr->u.axes_lists.lists =
      mp_arena_copy(t->arena, lists.items, lists.count * sizeof(mp_axis_list_t));
  MP_RETURN_IF_NULL(attr->u.axes_lists.lists);
  *out_attr = attr;
  return NULL;
}

// {"x"}: 0->1
static mp_status_t text_sdy_read_all_to_all(mp_text_t *t, mp_all_to_all_param_t *param) {
  MP_RETURN_IF_ERROR(text_sdy_axes(t, &param->axes));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
  MP_RETURN_IF_ERROR(mp_text_i64(t, &param->source_dim));
  MP_RETURN_IF_ERROR(mp_text_expect_arrow(t));
  return mp_text_i64(t, &param->target_dim);
}

// [{"x"}: 0->1]
mp_status_t mp_text_all_to_all(mp_text_t *t, const mp_attr_t **out_attr) {
  MP_ARRAY(mp_all_to_all_param_t) params = {0};
  MP_TEXT_LIST(t, '[', ']', mp_all_to_all_param_t, &params, text_sdy_read_all_to_all);
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_text_new_attr(t, MP_KIND_ALL_TO_ALL_PARAMS, &attr));
  attr->u.all_to_all_params.count = params.count;
  attr->u.all_to_all_params.params =
      mp_arena_copy(t->arena, params.items, params.count * sizeof(mp_all_to_all_param_t));
  MP_RETURN_IF_NULL(attr->u.all_to_all_params.params);
  *out_attr = attr;
  return NULL;
}

// ---- shardings ----

// {"x", ?}p1
static mp_status_t text_sdy_read_dim(mp_text_t *t, mp_dim_sharding_t *dim) {
  *dim = (mp_dim_sharding_t){.priority = -1};
  MP_RETURN_IF_ERROR(text_sdy_read_axes(t, &dim->axes, &dim->is_open));
  if (t->tok.kind != MP_TOKEN_WORD || t->tok.text.data[0] != 'p') return NULL;
  long long priority;
  mp_str_t digits = {t->tok.text.data + 1, t->tok.text.size - 1};
  if (!mp_str_parse_i64(digits, &priority) || priority < 0)
    return mp_text_expected(t, "a priority");
  dim->priority = priority;
  mp_text_advance(t);
  return NULL;
}

// replicated={...} and unreduced={...}, unreduced=max{...}
static mp_status_t text_sdy_read_sharding_rest(mp_text_t *t, mp_sdy_sharding_t *sharding) {
  while (mp_text_accept(t, ',')) {
    bool replicated = mp_text_accept_word(t, "replicated");
    if (!replicated) MP_RETURN_IF_ERROR(mp_text_expect_word(t, "unreduced"));
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    if (!replicated && mp_text_accept_word(t, "max")) sharding->unreduced_kind = MP_UNREDUCED_MAX;
    if (!replicated && mp_text_accept_word(t, "min")) sharding->unreduced_kind = MP_UNREDUCED_MIN;
    MP_RETURN_IF_ERROR(text_sdy_axes(t, replicated ? &sharding->replicated : &sharding->unreduced));
  }
  return NULL;
}

// <@mesh, [{"x"}, {}]>
static mp_status_t text_sdy_read_sharding(mp_text_t *t, mp_sdy_sharding_t *sharding) {
  mp_mesh_t *mesh = NULL;
  MP_ARRAY(mp_dim_sharding_t) dims = {0};
  *sharding = (mp_sdy_sharding_t){0};
  MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
  if (mp_text_accept_word(t, "mesh"))
    MP_RETURN_IF_ERROR(text_sdy_read_new_mesh(t, &mesh));
  else
    MP_RETURN_IF_ERROR(mp_text_mesh_ref(t, &mesh));
  sharding->mesh = mesh;
  MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
  MP_TEXT_LIST(t, '[', ']', mp_dim_sharding_t, &dims, text_sdy_read_dim);
  sharding->rank = dims.count;
  sharding->dims = mp_arena_copy(t->arena, dims.items, dims.count * sizeof(mp_dim_sharding_t));
  MP_RETURN_IF_NULL(sharding->dims);
  MP_RETURN_IF_ERROR(text_sdy_read_sharding_rest(t, sharding));
  return mp_text_expect(t, '>');
}

mp_status_t mp_text_sharding(mp_text_t *t, const mp_attr_t **out_attr) {
  mp_attr_t *attr = NULL;
  mp_sdy_sharding_t *sharding = MP_ARENA_NEW(t->arena, mp_sdy_sharding_t);
  MP_RETURN_IF_NULL(sharding);
  MP_RETURN_IF_ERROR(mp_text_new_attr(t, MP_KIND_SHARDING, &attr));
  MP_RETURN_IF_ERROR(text_sdy_read_sharding(t, sharding));
  attr->u.sharding = sharding;
  *out_attr = attr;
  return NULL;
}

// [<@mesh, ...>, ...]
mp_status_t mp_text_shardings(mp_text_t *t, const mp_attr_t **out_attr) {
  MP_ARRAY(mp_sdy_sharding_t) list = {0};
  MP_TEXT_LIST(t, '[', ']', mp_sdy_sharding_t, &list, text_sdy_read_sharding);
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_text_new_attr(t, MP_KIND_SHARDINGS, &attr));
  attr->u.shardings.count = list.count;
  attr->u.shardings.shardings =
      mp_arena_copy(t->arena, list.items, list.count * sizeof(mp_sdy_sharding_t));
  MP_RETURN_IF_NULL(attr->u.shardings.shardings);
  *out_attr = attr;
  return NULL;
}

// ---- sharding rules ----

// Reads one factor at the front of `text`: a letter from i to z, or z_1, z_2, ... Returns the
// number of characters that it takes, 0 if there is no factor.
static size_t text_sdy_scan_factor(mp_str_t text, int64_t *out_factor) {
  if (text.size == 0 || text.data[0] < 'i' || text.data[0] > 'z') return 0;
  *out_factor = text.data[0] - 'i';
  if (text.data[0] != 'z' || text.size < 2 || text.data[1] != '_') return 1;
  size_t size = 2;
  int64_t number = 0;
  for (; size < text.size && text.data[size] >= '0' && text.data[size] <= '9'; ++size) {
    number = number * 10 + (text.data[size] - '0');
    if (number > INT32_MAX) return 0;
  }
  *out_factor += number;
  return size > 2 && number > 0 ? size : 0;
}

// Reads all factors of the current word, which stand in it without anything between them.
static mp_status_t text_sdy_read_factors(mp_text_t *t, mp_text_ints_t *factors) {
  if (t->tok.kind != MP_TOKEN_WORD) return mp_text_expected(t, "a factor");
  mp_str_t rest = t->tok.text;
  while (rest.size > 0) {
    int64_t factor;
    size_t size = text_sdy_scan_factor(rest, &factor);
    if (size == 0) return mp_text_expected(t, "a factor (i to z, z_1, ...)");
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, factors, factor));
    rest = (mp_str_t){rest.data + size, rest.size - size};
  }
  mp_text_advance(t);
  return NULL;
}

static mp_status_t text_sdy_keep_indices(mp_text_t *t, const mp_text_ints_t *list,
                                         mp_index_list_t *out) {
  out->count = list->count;
  out->values = mp_arena_copy(t->arena, list->items, list->count * sizeof(int64_t));
  MP_RETURN_IF_NULL(out->values);
  return NULL;
}

// [i, jk]
static mp_status_t text_sdy_read_mapping(mp_text_t *t, mp_tensor_mapping_t *mapping) {
  MP_ARRAY(mp_index_list_t) dims = {0};
  MP_RETURN_IF_ERROR(mp_text_expect(t, '['));
  while (!mp_text_is(t, ']')) {
    mp_text_ints_t factors = {0};
    mp_index_list_t dim;
    if (dims.count > 0) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    MP_RETURN_IF_ERROR(text_sdy_read_factors(t, &factors));
    MP_RETURN_IF_ERROR(text_sdy_keep_indices(t, &factors, &dim));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &dims, dim));
  }
  mp_text_advance(t);
  mapping->rank = dims.count;
  mapping->dims = mp_arena_copy(t->arena, dims.items, dims.count * sizeof(mp_index_list_t));
  MP_RETURN_IF_NULL(mapping->dims);
  return NULL;
}

// ([i, j], [j])
static mp_status_t text_sdy_read_mappings(mp_text_t *t, const mp_tensor_mapping_t **out_mappings,
                                          uint32_t *out_count) {
  MP_ARRAY(mp_tensor_mapping_t) list = {0};
  MP_TEXT_LIST(t, '(', ')', mp_tensor_mapping_t, &list, text_sdy_read_mapping);
  *out_mappings = mp_arena_copy(t->arena, list.items, list.count * sizeof(mp_tensor_mapping_t));
  MP_RETURN_IF_NULL(*out_mappings);
  *out_count = list.count;
  return NULL;
}

// {i=8, j=4}, in the order of the factors.
static mp_status_t text_sdy_read_sizes(mp_text_t *t, mp_index_list_t *out_sizes) {
  mp_text_ints_t sizes = {0};
  MP_RETURN_IF_ERROR(mp_text_expect(t, '{'));
  while (!mp_text_is(t, '}')) {
    mp_text_ints_t factor = {0};
    int64_t size;
    if (sizes.count > 0) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    MP_RETURN_IF_ERROR(text_sdy_read_factors(t, &factor));
    if (factor.count != 1 || factor.items[0] != (int64_t)sizes.count)
      return mp_text_error(t, &t->last, MP_INVALID_ARGUMENT, "factors are not in their order");
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    MP_RETURN_IF_ERROR(mp_text_i64(t, &size));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &sizes, size));
  }
  mp_text_advance(t);
  return text_sdy_keep_indices(t, &sizes, out_sizes);
}

// reduction={i, k}
static mp_status_t text_sdy_read_factor_set(mp_text_t *t, const char *name,
                                            mp_index_list_t *out_factors) {
  if (!mp_text_accept_word(t, name)) return NULL;
  mp_text_ints_t factors = {0};
  MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '{'));
  while (!mp_text_is(t, '}')) {
    if (factors.count > 0) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    MP_RETURN_IF_ERROR(text_sdy_read_factors(t, &factors));
  }
  mp_text_advance(t);
  return text_sdy_keep_indices(t, &factors, out_factors);
}

static mp_status_t text_sdy_read_rule(mp_text_t *t, const mp_attr_t **out_attr) {
  mp_sharding_rule_t *rule = MP_ARENA_NEW(t->arena, mp_sharding_rule_t);
  MP_RETURN_IF_NULL(rule);
  MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
  MP_RETURN_IF_ERROR(text_sdy_read_mappings(t, &rule->operands, &rule->num_operands));
  MP_RETURN_IF_ERROR(mp_text_expect_arrow(t));
  MP_RETURN_IF_ERROR(text_sdy_read_mappings(t, &rule->results, &rule->num_results));
  if (mp_text_is(t, '{')) MP_RETURN_IF_ERROR(text_sdy_read_sizes(t, &rule->factor_sizes));
  MP_RETURN_IF_ERROR(text_sdy_read_factor_set(t, "reduction", &rule->reduction));
  MP_RETURN_IF_ERROR(text_sdy_read_factor_set(t, "need_replication", &rule->need_replication));
  MP_RETURN_IF_ERROR(text_sdy_read_factor_set(t, "permutation", &rule->permutation));
  MP_RETURN_IF_ERROR(
      text_sdy_read_factor_set(t, "blocked_propagation", &rule->blocked_propagation));
  if (mp_text_accept(t, ',')) {
    MP_RETURN_IF_ERROR(mp_text_expect_word(t, "custom"));
    rule->is_custom = true;
  }
  MP_RETURN_IF_ERROR(mp_text_expect(t, '>'));
  mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_text_new_attr(t, MP_KIND_SHARDING_RULE, &attr));
  attr->u.rule = rule;
  *out_attr = attr;
  return NULL;
}

// ---- by name: #sdy.sharding<...>, #sdy<manual_axes{...}> ----

static mp_status_t text_sdy_read_mesh_attr(mp_text_t *t, const mp_attr_t **out_attr) {
  mp_attr_t *attr = NULL;
  mp_mesh_t *mesh = NULL;
  MP_RETURN_IF_ERROR(mp_text_new_attr(t, MP_KIND_MESH, &attr));
  MP_RETURN_IF_ERROR(text_sdy_read_new_mesh(t, &mesh));
  attr->u.mesh = mesh;
  *out_attr = attr;
  return NULL;
}

static mp_status_t text_sdy_read_per_value(mp_text_t *t, const mp_attr_t **out_attr) {
  MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
  MP_RETURN_IF_ERROR(mp_text_shardings(t, out_attr));
  return mp_text_expect(t, '>');
}

mp_status_t mp_text_sdy_attr(mp_text_t *t, mp_str_t name, const mp_attr_t **out_attr) {
  static const struct {
    const char *name;
    mp_status_t (*read)(mp_text_t *t, const mp_attr_t **out_attr);
  } readers[] = {
      {"mesh", text_sdy_read_mesh_attr},
      {"sharding", mp_text_sharding},
      {"sharding_per_value", text_sdy_read_per_value},
      {"op_sharding_rule", text_sdy_read_rule},
      {"manual_axes", mp_text_axes_attr},
      {"axis_ref_list", mp_text_axes_attr},
      {"list_of_axis_ref_lists", mp_text_axes_lists},
      {"all_to_all_param_list", mp_text_all_to_all},
  };
  // The name may also stand inside of the brackets: #sdy<sharding ...>.
  bool inside = name.size == 0;
  mp_token_t token = t->tok;
  if (inside) {
    MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
    if (t->tok.kind != MP_TOKEN_WORD) return mp_text_expected(t, "an attribute's name");
    token = t->tok;
    name = t->tok.text;
    mp_text_advance(t);
  }
  for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); ++i) {
    if (!mp_str_is(name, readers[i].name)) continue;
    MP_RETURN_IF_ERROR(readers[i].read(t, out_attr));
    return inside ? mp_text_expect(t, '>') : NULL;
  }
  return mp_text_error(t, &token, MP_UNIMPLEMENTED, "the attribute '#sdy.%.*s' is not known",
                       MP_STR_ARG(name));
}
