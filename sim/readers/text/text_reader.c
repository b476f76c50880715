// The module and what stands in it: functions, meshes, aliases.
#include "sim/readers/text/text.h"

#include "sim/readers/text/text_parser.h"

// ---- functions ----

typedef struct {
  mp_str_t name;
  mp_str_t visibility;
  mp_text_tokens_t arg_names;  // none in a declaration
  mp_text_types_t arg_types, result_types;
  mp_text_attrs_t arg_attrs, result_attrs;
  const mp_attr_t *attrs;
} signature_t;

// {name = value, ...}?; for an empty dictionary the result is NULL, as for none.
static mp_status_t text_reader_read_optional_dict(mp_text_t *t, const mp_attr_t **out_dict) {
  *out_dict = NULL;
  if (!mp_text_is(t, '{')) return NULL;
  MP_RETURN_IF_ERROR(mp_text_dict(t, out_dict));
  if ((*out_dict)->u.dict.count == 0) *out_dict = NULL;
  return NULL;
}

static mp_status_t text_reader_add_typed(mp_text_t *t, bool with_attrs, mp_text_types_t *types,
                                         mp_text_attrs_t *attrs) {
  const mp_type_t *type = NULL;
  const mp_attr_t *dict = NULL;
  MP_RETURN_IF_ERROR(mp_text_type(t, &type));
  if (with_attrs) MP_RETURN_IF_ERROR(text_reader_read_optional_dict(t, &dict));
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, types, type));
  return MP_ARRAY_PUSH(t->scratch, attrs, dict);
}

// (%a: T {...}, ...); a declaration has no names.
static mp_status_t text_reader_read_args(mp_text_t *t, signature_t *s) {
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  while (!mp_text_is(t, ')')) {
    const mp_loc_t *loc = NULL;
    if (s->arg_types.count > 0) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    if (t->tok.kind == MP_TOKEN_VALUE) {
      MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &s->arg_names, t->tok));
      mp_text_advance(t);
      MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
    }
    MP_RETURN_IF_ERROR(text_reader_add_typed(t, true, &s->arg_types, &s->arg_attrs));
    MP_RETURN_IF_ERROR(mp_text_optional_loc(t, &loc));
  }
  if (s->arg_names.count != 0 && s->arg_names.count != s->arg_types.count)
    return mp_text_expected(t, "a name for every argument");
  mp_text_advance(t);
  return NULL;
}

// -> T, or -> (T {...}, ...). Results without parentheses have no attributes: what looks like a
// dictionary behind a bare type is the body.
static mp_status_t text_reader_read_results(mp_text_t *t, signature_t *s) {
  if (t->tok.kind != MP_TOKEN_ARROW) return NULL;
  mp_text_advance(t);
  if (!mp_text_accept(t, '('))
    return text_reader_add_typed(t, false, &s->result_types, &s->result_attrs);
  while (!mp_text_is(t, ')')) {
    if (s->result_types.count > 0) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    MP_RETURN_IF_ERROR(text_reader_add_typed(t, true, &s->result_types, &s->result_attrs));
  }
  mp_text_advance(t);
  return NULL;
}

static mp_status_t text_reader_make_func(mp_text_t *t, const mp_token_t *token,
                                         const signature_t *s, mp_func_t **out_func) {
  // Outside of functions the table of names holds the names of the functions. No body sees them,
  // because a body is an isolated region.
  if (mp_text_is_defined(t, s->name))
    return mp_text_error(t, token, MP_INVALID_ARGUMENT, "the function @%.*s is defined twice",
                         MP_STR_ARG(s->name));
  mp_token_t name = *token;
  name.text = s->name;
  MP_RETURN_IF_ERROR(mp_text_define(t, &name, NULL, 0));
  mp_func_t *func = NULL;
  MP_RETURN_IF_ERROR(mp_func_create(t->module, s->name, s->arg_types.count, s->arg_types.items,
                                    s->result_types.count, s->result_types.items, &func));
  func->visibility = s->visibility;
  func->attrs = s->attrs;
  for (uint32_t i = 0; i < s->arg_attrs.count; ++i) func->arg_attrs[i] = s->arg_attrs.items[i];
  for (uint32_t i = 0; i < s->result_attrs.count; ++i)
    func->result_attrs[i] = s->result_attrs.items[i];
  *out_func = func;
  return NULL;
}

static mp_str_t text_reader_visibility_of(const mp_text_t *t) {
  static const char *const words[] = {"public", "private", "nested"};
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i)
    if (mp_text_is_word(t, words[i])) return mp_str(words[i]);
  return MP_STR("");
}

// A function from behind `func.func`.
static mp_status_t text_reader_read_func(mp_text_t *t) {
  signature_t s = {.visibility = text_reader_visibility_of(t)};
  if (s.visibility.size > 0) mp_text_advance(t);
  mp_token_t token = t->tok;
  MP_RETURN_IF_ERROR(mp_text_symbol(t, &s.name));
  MP_RETURN_IF_ERROR(text_reader_read_args(t, &s));
  MP_RETURN_IF_ERROR(text_reader_read_results(t, &s));
  if (mp_text_accept_word(t, "attributes"))
    MP_RETURN_IF_ERROR(text_reader_read_optional_dict(t, &s.attrs));
  mp_func_t *func = NULL;
  MP_RETURN_IF_ERROR(text_reader_make_func(t, &token, &s, &func));
  if (mp_text_is(t, '{')) {
    mp_text_scope_t scope = mp_text_open_scope(t, true);
    MP_RETURN_IF_ERROR(mp_text_define_args(t, &s.arg_names, func->body));
    MP_RETURN_IF_ERROR(mp_text_region_of(t, func->body));
    mp_text_close_scope(t, scope);
  }
  return mp_text_optional_loc(t, &func->loc);
}

// ---- the generic forms of module, function and mesh ----

static const mp_attr_t *text_reader_find_item(const mp_text_items_t *items, const char *name) {
  const mp_named_attr_t *list = items->items;
  for (uint32_t i = 0; i < items->count; ++i)
    if (mp_str_is(list[i].text, name)) return list[i].value;
  return NULL;
}

static mp_status_t text_reader_string_item(mp_text_t *t, const mp_token_t *token,
                                           const mp_text_items_t *items, const char *name,
                                           bool required, mp_str_t *out_text) {
  const mp_attr_t *value = text_reader_find_item(items, name);
  *out_text = MP_STR("");
  if (value == NULL && !required) return NULL;
  if (value == NULL || value->kind != MP_KIND_STRING)
    return mp_text_error(t, token, MP_INVALID_ARGUMENT, "%s is missing or no string", name);
  *out_text = value->u.str;
  return NULL;
}

// Turns the attribute that lists the dictionaries of all arguments (or results) into one dictionary
// per argument, NULL for an empty one. The list may be absent or empty.
static mp_status_t text_reader_spread_dicts(mp_text_t *t, const mp_token_t *token,
                                            const mp_attr_t *list, uint32_t count,
                                            mp_text_attrs_t *dicts) {
  bool valid = list == NULL || (list->kind == MP_KIND_ARRAY &&
                                (list->u.array.count == count || list->u.array.count == 0));
  for (uint32_t i = 0; valid && i < count; ++i) {
    const mp_attr_t *dict = list != NULL && list->u.array.count > 0 ? list->u.array.items[i] : NULL;
    valid = dict == NULL || dict->kind == MP_KIND_DICT;
    if (dict != NULL && valid && dict->u.dict.count == 0) dict = NULL;
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, dicts, dict));
  }
  if (valid) return NULL;
  return mp_text_error(t, token, MP_INVALID_ARGUMENT, "malformed attributes of arguments");
}

// The items of a generic op that are not among its own attributes, as a dictionary; NULL if none.
static mp_status_t text_reader_other_items(mp_text_t *t, const mp_token_t *token,
                                           const mp_text_items_t *items, const char *const *own,
                                           size_t num_own, const mp_attr_t **out_dict) {
  mp_text_items_t others = {0};
  const mp_named_attr_t *list = items->items;
  for (uint32_t i = 0; i < items->count; ++i) {
    bool is_own = false;
    for (size_t j = 0; j < num_own; ++j) is_own = is_own || mp_str_is(list[i].text, own[j]);
    if (!is_own) MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &others, list[i]));
  }
  *out_dict = NULL;
  if (others.count == 0) return NULL;
  return mp_text_make_dict(t, token, others.items, others.count, out_dict);
}

// () <{name = value, ...}>?, which is everything between a generic op's name and its regions.
static mp_status_t text_reader_read_generic_head(mp_text_t *t, mp_text_items_t *items) {
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
  if (!mp_text_accept(t, '<')) return NULL;
  MP_RETURN_IF_ERROR(mp_text_dict_items(t, items));
  return mp_text_expect(t, '>');
}

// {name = value, ...}? : () -> (), which stands behind a generic op's regions.
static mp_status_t text_reader_read_generic_tail(mp_text_t *t, mp_text_items_t *items) {
  mp_text_signature_t type;
  if (mp_text_is(t, '{')) MP_RETURN_IF_ERROR(mp_text_dict_items(t, items));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
  return mp_text_signature(t, &type);
}

static mp_status_t text_reader_check_generic_body(mp_text_t *t, const mp_token_t *token,
                                                  const mp_func_t *func, const mp_block_t *body) {
  bool same = body->num_args == func->body->num_args;
  for (uint32_t i = 0; same && i < body->num_args; ++i)
    same = mp_type_equal(body->args[i].type, func->body->args[i].type);
  if (same) return NULL;
  return mp_text_error(t, token, MP_INVALID_ARGUMENT,
                       "the function's body has other arguments than its type");
}

// "func.func"() <{function_type = ..., sym_name = ...}> ({^bb0(...): ...}) {...} : () -> ()
static mp_status_t text_reader_read_generic_func(mp_text_t *t, const mp_token_t *token) {
  static const char *const own[] = {"arg_attrs", "function_type", "res_attrs", "sym_name",
                                    "sym_visibility"};
  signature_t s = {0};
  mp_text_items_t items = {0};
  mp_block_t *body = NULL;
  MP_RETURN_IF_ERROR(text_reader_read_generic_head(t, &items));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  mp_token_t body_token = t->tok;
  MP_RETURN_IF_ERROR(mp_text_generic_region(t, true, &body));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
  MP_RETURN_IF_ERROR(text_reader_read_generic_tail(t, &items));
  MP_RETURN_IF_ERROR(text_reader_string_item(t, token, &items, "sym_name", true, &s.name));
  MP_RETURN_IF_ERROR(
      text_reader_string_item(t, token, &items, "sym_visibility", false, &s.visibility));
  const mp_attr_t *type = text_reader_find_item(&items, "function_type");
  if (type == NULL || type->kind != MP_KIND_TYPE || type->u.type->kind != MP_TYPE_FUNCTION)
    return mp_text_error(t, token, MP_INVALID_ARGUMENT, "function_type is missing or no function");
  const mp_type_t *function = type->u.type;
  for (uint32_t i = 0; i < function->num_elements; ++i) {
    mp_text_types_t *types = i < function->num_inputs ? &s.arg_types : &s.result_types;
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, types, function->elements[i]));
  }
  MP_RETURN_IF_ERROR(text_reader_spread_dicts(t, token, text_reader_find_item(&items, "arg_attrs"),
                                              s.arg_types.count, &s.arg_attrs));
  MP_RETURN_IF_ERROR(text_reader_spread_dicts(t, token, text_reader_find_item(&items, "res_attrs"),
                                              s.result_types.count, &s.result_attrs));
  MP_RETURN_IF_ERROR(
      text_reader_other_items(t, token, &items, own, sizeof(own) / sizeof(own[0]), &s.attrs));
  mp_func_t *func = NULL;
  MP_RETURN_IF_ERROR(text_reader_make_func(t, token, &s, &func));
  // The region of a declaration is empty.
  if (body->num_args > 0 || body->first != NULL) {
    MP_RETURN_IF_ERROR(text_reader_check_generic_body(t, &body_token, func, body));
    func->body = body;
    body->parent_func = func;
  }
  return mp_text_optional_loc(t, &func->loc);
}

// ---- meshes ----

static mp_status_t text_reader_define_mesh(mp_text_t *t, const mp_token_t *token, mp_mesh_t *mesh,
                                           const mp_mesh_t *value) {
  for (mp_text_mesh_t *entry = t->meshes; entry != NULL; entry = entry->next) {
    if (entry->mesh != mesh) continue;
    if (entry->defined)
      return mp_text_error(t, token, MP_INVALID_ARGUMENT, "the mesh @%.*s is defined twice",
                           MP_STR_ARG(mesh->name));
    entry->defined = true;
  }
  mp_str_t name = mesh->name;
  *mesh = *value;
  mesh->name = name;
  return mp_module_add_mesh(t->module, mesh);
}

// sdy.mesh @name = <["x"=2]> {...}?
static mp_status_t text_reader_read_mesh(mp_text_t *t) {
  mp_token_t token = t->tok;
  mp_mesh_t *mesh, value = {0};
  MP_RETURN_IF_ERROR(mp_text_mesh_ref(t, &mesh));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
  MP_RETURN_IF_ERROR(mp_text_mesh_body(t, &value));
  MP_RETURN_IF_ERROR(text_reader_define_mesh(t, &token, mesh, &value));
  // In their dictionary other tools repeat the mesh in forms of their own.
  const mp_attr_t *ignored = NULL;
  MP_RETURN_IF_ERROR(text_reader_read_optional_dict(t, &ignored));
  const mp_loc_t *loc = NULL;
  return mp_text_optional_loc(t, &loc);
}

static mp_mesh_t *text_reader_known_mesh(const mp_text_t *t, mp_str_t name) {
  for (mp_text_mesh_t *entry = t->meshes; entry != NULL; entry = entry->next)
    if (mp_str_equal(entry->mesh->name, name)) return entry->mesh;
  return NULL;
}

static mp_status_t text_reader_read_generic_mesh(mp_text_t *t, const mp_token_t *token) {
  mp_text_items_t items = {0};
  mp_str_t name;
  MP_RETURN_IF_ERROR(text_reader_read_generic_head(t, &items));
  MP_RETURN_IF_ERROR(text_reader_read_generic_tail(t, &items));
  MP_RETURN_IF_ERROR(text_reader_string_item(t, token, &items, "sym_name", true, &name));
  const mp_attr_t *value = text_reader_find_item(&items, "mesh");
  if (value == NULL || value->kind != MP_KIND_MESH)
    return mp_text_error(t, token, MP_INVALID_ARGUMENT, "mesh is missing or no mesh");
  mp_mesh_t *mesh = text_reader_known_mesh(t, name);
  if (mesh == NULL) {
    mp_text_mesh_t *entry = MP_ARENA_NEW(t->scratch, mp_text_mesh_t);
    mesh = MP_ARENA_NEW(t->arena, mp_mesh_t);
    if (entry == NULL || mesh == NULL) return mp_status_out_of_memory();
    mesh->name = name;
    *entry = (mp_text_mesh_t){.mesh = mesh, .first_use = *token, .next = t->meshes};
    t->meshes = entry;
  }
  MP_RETURN_IF_ERROR(text_reader_define_mesh(t, token, mesh, value->u.mesh));
  const mp_loc_t *loc = NULL;
  return mp_text_optional_loc(t, &loc);
}

// ---- the module ----

static mp_status_t text_reader_set_count(mp_text_t *t, const mp_token_t *token,
                                         const mp_named_attr_t *attr, uint32_t *out_count) {
  if (attr->value->kind != MP_KIND_INT || attr->value->u.i64 < 1 || attr->value->u.i64 > INT32_MAX)
    return mp_text_error(t, token, MP_INVALID_ARGUMENT, "%.*s is not a positive integer",
                         MP_STR_ARG(attr->text));
  *out_count = (uint32_t)attr->value->u.i64;
  return NULL;
}

// The counts of replicas and partitions go into the module's fields, the rest into its attributes.
static mp_status_t text_reader_set_module_attrs(mp_text_t *t, const mp_token_t *token,
                                                const mp_text_items_t *items) {
  static const char *const own[] = {
      "sym_name",          "sym_visibility",           "mhlo.num_partitions",
      "mhlo.num_replicas", "stablehlo.num_partitions", "stablehlo.num_replicas"};
  const mp_named_attr_t *list = items->items;
  for (uint32_t i = 0; i < items->count; ++i) {
    if (mp_str_is(list[i].text, own[2]) || mp_str_is(list[i].text, own[4]))
      MP_RETURN_IF_ERROR(text_reader_set_count(t, token, &list[i], &t->module->num_partitions));
    if (mp_str_is(list[i].text, own[3]) || mp_str_is(list[i].text, own[5]))
      MP_RETURN_IF_ERROR(text_reader_set_count(t, token, &list[i], &t->module->num_replicas));
  }
  return text_reader_other_items(t, token, items, own, sizeof(own) / sizeof(own[0]),
                                 &t->module->attrs);
}

// `#name = ...` and `!name = ...`: the definitions were found before; here, where they stand, their
// values are read even if nothing uses them, so that mistakes in them are reported.
static mp_status_t text_reader_read_alias_definition(mp_text_t *t) {
  mp_text_alias_t *alias = mp_text_find_alias(t, t->tok.text, t->tok.kind == MP_TOKEN_BANG);
  if (alias == NULL) return mp_text_expected(t, "a function or an alias's definition");
  mp_text_advance(t);
  MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
  // A value that was read before is read once more, because only reading finds its end.
  const mp_type_t *type = NULL;
  const mp_attr_t *attr = NULL;
  const mp_loc_t *loc = NULL;
  if (alias->is_type) return mp_text_type(t, &type);
  if (mp_text_is_word(t, "loc")) return mp_text_optional_loc(t, &loc);
  return mp_text_attr(t, &attr);
}

static mp_status_t text_reader_read_symbol_op(mp_text_t *t, bool *out_found) {
  *out_found = true;
  mp_token_t token = t->tok;
  if (mp_text_accept_word(t, "func.func") || mp_text_accept_word(t, "func"))
    return text_reader_read_func(t);
  if (mp_text_accept_word(t, "sdy.mesh")) return text_reader_read_mesh(t);
  if (t->tok.kind == MP_TOKEN_STRING) {
    bool func = mp_str_is(t->tok.text, "\"func.func\"");
    if (func || mp_str_is(t->tok.text, "\"sdy.mesh\"")) {
      mp_text_advance(t);
      return func ? text_reader_read_generic_func(t, &token)
                  : text_reader_read_generic_mesh(t, &token);
    }
  }
  *out_found = false;
  return NULL;
}

static mp_status_t text_reader_read_module_body(mp_text_t *t) {
  MP_RETURN_IF_ERROR(mp_text_expect(t, '{'));
  while (!mp_text_is(t, '}')) {
    bool found;
    MP_RETURN_IF_ERROR(text_reader_read_symbol_op(t, &found));
    if (!found) return mp_text_expected(t, "func.func or sdy.mesh");
  }
  mp_text_advance(t);
  return NULL;
}

// A module from behind `module`.
static mp_status_t text_reader_read_module(mp_text_t *t) {
  mp_text_items_t items = {0};
  const mp_loc_t *loc = NULL;
  mp_token_t token = t->tok;
  if (t->tok.kind == MP_TOKEN_SYMBOL) MP_RETURN_IF_ERROR(mp_text_symbol(t, &t->module->name));
  if (mp_text_accept_word(t, "attributes")) MP_RETURN_IF_ERROR(mp_text_dict_items(t, &items));
  MP_RETURN_IF_ERROR(text_reader_set_module_attrs(t, &token, &items));
  MP_RETURN_IF_ERROR(text_reader_read_module_body(t));
  return mp_text_optional_loc(t, &loc);
}

// "builtin.module"() <{sym_name = "x"}> ({...}) {...} : () -> ()
static mp_status_t text_reader_read_generic_module(mp_text_t *t, const mp_token_t *token) {
  mp_text_items_t items = {0};
  const mp_loc_t *loc = NULL;
  MP_RETURN_IF_ERROR(text_reader_read_generic_head(t, &items));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  MP_RETURN_IF_ERROR(text_reader_read_module_body(t));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
  MP_RETURN_IF_ERROR(text_reader_read_generic_tail(t, &items));
  MP_RETURN_IF_ERROR(
      text_reader_string_item(t, token, &items, "sym_name", false, &t->module->name));
  MP_RETURN_IF_ERROR(text_reader_set_module_attrs(t, token, &items));
  return mp_text_optional_loc(t, &loc);
}

static mp_status_t text_reader_read_top(mp_text_t *t) {
  bool module_seen = false;
  while (t->tok.kind != MP_TOKEN_END) {
    mp_token_t token = t->tok;
    bool generic = token.kind == MP_TOKEN_STRING && mp_str_is(token.text, "\"builtin.module\"");
    bool found;
    if (generic || mp_text_is_word(t, "module") || mp_text_is_word(t, "builtin.module")) {
      if (module_seen) return mp_text_error(t, &token, MP_UNIMPLEMENTED, "more than one module");
      module_seen = true;
      mp_text_advance(t);
      MP_RETURN_IF_ERROR(generic ? text_reader_read_generic_module(t, &token)
                                 : text_reader_read_module(t));
    } else if (token.kind == MP_TOKEN_HASH || token.kind == MP_TOKEN_BANG) {
      MP_RETURN_IF_ERROR(text_reader_read_alias_definition(t));
    } else {
      MP_RETURN_IF_ERROR(text_reader_read_symbol_op(t, &found));
      if (!found) return mp_text_expected(t, "a module or a function");
    }
  }
  return NULL;
}

// The function named main. If there is only one function, it may have another name.
static mp_status_t text_reader_find_main(mp_text_t *t) {
  mp_module_t *module = t->module;
  module->main = mp_module_find_func(module, MP_STR("main"));
  if (module->main == NULL && module->funcs.first == module->funcs.last)
    module->main = module->funcs.first;
  if (module->main != NULL) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT, "the program has no function 'main'");
}

// The memory that a program of `size` bytes may take: far more than real programs need.
static size_t text_reader_memory_limit(size_t size) {
  return ((size_t)4 << 20) + size * 512;
}

static mp_status_t text_reader_read_program(mp_text_t *t, const char *text, size_t size) {
  t->lex = mp_lexer_start(text, size);
  MP_RETURN_IF_ERROR(mp_text_find_aliases(t, text, size));
  mp_text_advance(t);
  MP_RETURN_IF_ERROR(text_reader_read_top(t));
  MP_RETURN_IF_ERROR(mp_text_check_meshes(t));
  return text_reader_find_main(t);
}

mp_status_t mp_read_text(const char *text, size_t size, mp_module_t **out_module) {
  // A caller may have counted the NUL that ends its string.
  while (size > 0 && text[size - 1] == '\0') --size;
  mp_text_t t = {.pretty = mp_text_pretty,
                 .max_weight = ((uint64_t)1 << 20) + (uint64_t)size * 256};
  MP_RETURN_IF_ERROR(mp_module_create(&t.module));
  t.arena = t.module->arena;
  mp_status_t status = mp_arena_create(&t.scratch);
  if (status == NULL) {
    mp_arena_set_limit(t.arena, text_reader_memory_limit(size));
    mp_arena_set_limit(t.scratch, text_reader_memory_limit(size));
    status = text_reader_read_program(&t, size > 0 ? text : "", size);
    mp_arena_set_limit(t.arena, 0);
  }
  mp_arena_release(t.scratch);
  if (status != NULL) {
    mp_module_release(t.module);
    return status;
  }
  *out_module = t.module;
  return NULL;
}
