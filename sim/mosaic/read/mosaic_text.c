// The module and its functions.
#include "sim/mosaic/read/mosaic_text.h"

// What is read beside the parser's own state.
typedef struct {
  mp_text_t text;
  mp_mosaic_module_t *module;
  mp_mosaic_items_t attrs;  // of the module
  mp_str_t kernel;          // the function that is being read, once its name is known
} reader_t;

// ---- functions ----

// "func.func"() ({...}) {...} : () -> (), from behind the name.
static mp_status_t mosaic_text_read_func(reader_t *r, const mp_token_t *token) {
  mp_text_t *t = &r->text;
  mp_mosaic_items_t attrs = {0};
  mp_mosaic_block_t *body = NULL;
  const mp_mosaic_type_t *type = NULL;
  const mp_loc_t *loc = NULL;
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
  if (mp_text_accept(t, '<')) {
    MP_RETURN_IF_ERROR(mp_mosaic_text_dict(t, &attrs));
    MP_RETURN_IF_ERROR(mp_text_expect(t, '>'));
    const mp_mosaic_attr_t *name = mp_mosaic_attr(attrs.items, attrs.count, "sym_name");
    if (name != NULL) r->kernel = name->str;
  }
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  MP_RETURN_IF_ERROR(mp_mosaic_text_region(t, true, &body));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
  if (mp_text_is(t, '{')) MP_RETURN_IF_ERROR(mp_mosaic_text_dict(t, &attrs));
  MP_RETURN_IF_ERROR(mp_mosaic_text_sort(t, token, &attrs));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
  MP_RETURN_IF_ERROR(mp_mosaic_text_function(t, &type));
  MP_RETURN_IF_ERROR(mp_text_optional_loc(t, &loc));
  r->kernel = MP_STR("");
  mp_status_t status = mp_mosaic_func_create(r->module, attrs.items, attrs.count, body, loc);
  return status == NULL ? NULL : mp_status_annotate(status, "%u:%u", token->line, token->column);
}

// {functions}
static mp_status_t mosaic_text_read_funcs(reader_t *r) {
  mp_text_t *t = &r->text;
  MP_RETURN_IF_ERROR(mp_text_expect(t, '{'));
  while (!mp_text_accept(t, '}')) {
    const mp_token_t token = t->tok;
    const bool is_func =
        token.kind == MP_TOKEN_STRING && (mp_str_is(token.text, "\"stable_mosaic.func.func\"") ||
                                          mp_str_is(token.text, "\"func.func\""));
    if (!is_func) return mp_text_expected(t, "\"stable_mosaic.func.func\"");
    mp_text_advance(t);
    MP_RETURN_IF_ERROR(mosaic_text_read_func(r, &token));
  }
  return NULL;
}

// ---- the module ----

// module @name attributes {...} {...}, from behind `module`.
static mp_status_t mosaic_text_read_module(reader_t *r) {
  mp_text_t *t = &r->text;
  if (t->tok.kind == MP_TOKEN_SYMBOL) MP_RETURN_IF_ERROR(mp_text_symbol(t, &r->module->name));
  if (mp_text_accept_word(t, "attributes")) MP_RETURN_IF_ERROR(mp_mosaic_text_dict(t, &r->attrs));
  return mosaic_text_read_funcs(r);
}

// "builtin.module"() <{...}> ({...}) {...} : () -> (), from behind the name.
static mp_status_t mosaic_text_read_generic_module(reader_t *r) {
  mp_text_t *t = &r->text;
  const mp_mosaic_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
  if (mp_text_accept(t, '<')) {
    MP_RETURN_IF_ERROR(mp_mosaic_text_dict(t, &r->attrs));
    MP_RETURN_IF_ERROR(mp_text_expect(t, '>'));
  }
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  MP_RETURN_IF_ERROR(mosaic_text_read_funcs(r));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
  if (mp_text_is(t, '{')) MP_RETURN_IF_ERROR(mp_mosaic_text_dict(t, &r->attrs));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
  return mp_mosaic_text_function(t, &type);
}

// #name = ...: definitions were found before; reading one again finds its end.
static mp_status_t mosaic_text_read_definition(mp_text_t *t) {
  const bool is_type = t->tok.kind == MP_TOKEN_BANG;
  const mp_mosaic_attr_t *attr = NULL;
  const mp_mosaic_type_t *type = NULL;
  const mp_loc_t *loc = NULL;
  mp_text_advance(t);
  MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
  if (is_type) return mp_mosaic_text_type(t, &type);
  if (mp_text_is_word(t, "loc")) return mp_text_optional_loc(t, &loc);
  return mp_mosaic_text_attr(t, &attr);
}

static mp_status_t mosaic_text_read_top(reader_t *r) {
  mp_text_t *t = &r->text;
  bool seen = false;
  while (t->tok.kind != MP_TOKEN_END) {
    if (t->tok.kind == MP_TOKEN_HASH || t->tok.kind == MP_TOKEN_BANG) {
      MP_RETURN_IF_ERROR(mosaic_text_read_definition(t));
      continue;
    }
    const mp_loc_t *loc = NULL;
    const bool generic =
        t->tok.kind == MP_TOKEN_STRING && mp_str_is(t->tok.text, "\"builtin.module\"");
    if (seen || (!generic && !mp_text_is_word(t, "module")))
      return mp_text_expected(t, seen ? "the end of the text" : "a module");
    seen = true;
    mp_text_advance(t);
    MP_RETURN_IF_ERROR(generic ? mosaic_text_read_generic_module(r) : mosaic_text_read_module(r));
    MP_RETURN_IF_ERROR(mp_text_optional_loc(t, &loc));
  }
  if (!seen) return mp_text_expected(t, "a module");
  return mp_mosaic_finish_module(r->module, r->attrs.items, r->attrs.count);
}

// ---- what stands alone ----

static mp_text_t mosaic_text_start(mp_arena_t *arena, mp_arena_t *scratch, mp_str_t text) {
  mp_text_t t = {.arena = arena,
                 .scratch = scratch,
                 .lex = mp_lexer_start(text.data, text.size),
                 .max_weight = ((uint64_t)1 << 10) + text.size};
  mp_text_advance(&t);
  return t;
}

static mp_status_t mosaic_text_finish(const mp_text_t *t) {
  return t->tok.kind == MP_TOKEN_END ? NULL : mp_text_expected(t, "the end of the text");
}

mp_status_t mp_mosaic_parse_attr(mp_arena_t *arena, mp_arena_t *scratch, mp_str_t text,
                                 const mp_mosaic_attr_t **out_attr) {
  mp_text_t t = mosaic_text_start(arena, scratch, text);
  MP_RETURN_IF_ERROR(mp_mosaic_text_attr(&t, out_attr));
  return mosaic_text_finish(&t);
}

mp_status_t mp_mosaic_parse_type(mp_arena_t *arena, mp_arena_t *scratch, mp_str_t text,
                                 const mp_mosaic_type_t **out_type) {
  mp_text_t t = mosaic_text_start(arena, scratch, text);
  MP_RETURN_IF_ERROR(mp_mosaic_text_type(&t, out_type));
  return mosaic_text_finish(&t);
}

// ---- errors ----

// In most texts a function has its name behind its body, so that of the kernel in which an error is
// found is the next one.
static mp_str_t mosaic_text_find_kernel(const reader_t *r) {
  mp_lexer_t ahead = r->text.lex;
  mp_token_t token = r->text.tok;
  if (r->kernel.size > 0) return r->kernel;
  while (token.kind != MP_TOKEN_END && token.kind != MP_TOKEN_ERROR) {
    const bool is_name = token.kind == MP_TOKEN_WORD && mp_str_is(token.text, "sym_name");
    token = mp_lexer_next(&ahead);
    if (!is_name) continue;
    token = mp_lexer_next(&ahead);
    if (token.kind == MP_TOKEN_STRING) return (mp_str_t){token.text.data + 1, token.text.size - 2};
  }
  return MP_STR("");
}

static mp_status_t mosaic_text_name_kernel(const reader_t *r, mp_status_t status) {
  const mp_str_t kernel = mosaic_text_find_kernel(r);
  if (kernel.size == 0) return mp_status_annotate(status, "Mosaic module");
  return mp_status_annotate(status, "Mosaic kernel %.*s", MP_STR_SHOWN(kernel, 100));
}

static mp_status_t mosaic_text_read_program(reader_t *r, const char *text, size_t size) {
  mp_text_t *t = &r->text;
  t->lex = mp_lexer_start(text, size);
  MP_RETURN_IF_ERROR(mp_text_find_aliases(t, text, size));
  mp_text_advance(t);
  return mosaic_text_read_top(r);
}

mp_status_t mp_mosaic_read_text(const char *text, size_t size, mp_mosaic_module_t **out_module) {
  const size_t limit = ((size_t)4 << 20) + size * 512;
  reader_t r = {.text = {.max_weight = ((uint64_t)1 << 20) + (uint64_t)size * 256}};
  MP_RETURN_IF_ERROR(mp_mosaic_module_create(&r.module));
  r.text.arena = r.module->arena;
  mp_status_t status = mp_arena_create(&r.text.scratch);
  if (status == NULL) {
    mp_arena_set_limit(r.text.arena, limit);
    mp_arena_set_limit(r.text.scratch, limit);
    status = mosaic_text_read_program(&r, size > 0 ? text : "", size);
    if (status != NULL) status = mosaic_text_name_kernel(&r, status);
    mp_arena_set_limit(r.module->arena, 0);
  }
  mp_arena_release(r.text.scratch);
  if (status != NULL) {
    mp_mosaic_module_release(r.module);
    return status;
  }
  *out_module = r.module;
  return NULL;
}
