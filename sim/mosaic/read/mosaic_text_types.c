// Types, and constants, whose elements depend on their type.
#include "sim/mosaic/read/mosaic_text.h"

static const char g_type_words[][8] = {"vector", "memref", "tensor"};

// ---- vectors and memrefs ----

static mp_status_t mosaic_text_types_read_element(mp_text_t *t, mp_mosaic_type_t *type) {
  static const struct {
    const char *name;
    mp_mosaic_element_t element;
  } elements[] = {
      {"tpu.semaphore", MP_MOSAIC_SEMAPHORE},
      {"tpu.dma_semaphore", MP_MOSAIC_DMA_SEMAPHORE},
      {"tpu.barrier_semaphore", MP_MOSAIC_BARRIER_SEMAPHORE},
  };
  if (t->tok.kind != MP_TOKEN_BANG) return mp_text_dtype(t, &type->dtype);
  for (size_t i = 0; i < sizeof(elements) / sizeof(elements[0]); ++i) {
    if (!mp_str_is(t->tok.text, elements[i].name)) continue;
    type->element = elements[i].element;
    mp_text_advance(t);
    return NULL;
  }
  return mp_text_error(t, &t->tok, MP_UNIMPLEMENTED, "the type '!%.*s' is not known",
                       MP_STR_SHOWN(t->tok.text, 60));
}

// <8x128xf32, layout, memory space> from behind the word.
static mp_status_t mosaic_text_types_read_shaped(mp_text_t *t, mp_mosaic_type_kind_t kind,
                                                 const mp_mosaic_type_t **out_type) {
  mp_mosaic_type_t type = {.kind = kind};
  mp_text_ints_t dims = {0};
  if (!mp_text_is(t, '<')) return mp_text_expected(t, "'<'");
  mp_text_advance(t);
  if (mp_text_is(t, '*') || mp_text_is(t, '['))
    return mp_text_error(t, &t->tok, MP_UNIMPLEMENTED, "types without fixed rank or size");
  const mp_token_t start = t->tok;
  MP_RETURN_IF_ERROR(mp_text_dims(t, &dims));
  type.rank = dims.count;
  type.dims = dims.items;
  for (uint32_t i = 0; i < dims.count && kind == MP_MOSAIC_VECTOR; ++i)
    if (dims.items[i] == MP_MOSAIC_DYNAMIC)
      return mp_text_error(t, &start, MP_UNIMPLEMENTED, "a vector without fixed size");
  MP_RETURN_IF_ERROR(mosaic_text_types_read_element(t, &type));
  if (type.element != MP_MOSAIC_NUMBER && kind != MP_MOSAIC_MEMREF)
    return mp_text_error(t, &t->last, MP_INVALID_ARGUMENT, "a vector of semaphores");
  while (kind == MP_MOSAIC_MEMREF && mp_text_accept(t, ',')) {
    const mp_token_t token = t->tok;
    const mp_mosaic_attr_t *attr = NULL;
    MP_RETURN_IF_ERROR(mp_mosaic_text_attr(t, &attr));
    mp_status_t status = mp_mosaic_apply_layout(t->arena, attr, &type);
    if (status != NULL) return mp_status_annotate(status, "%u:%u", token.line, token.column);
  }
  MP_RETURN_IF_ERROR(mp_text_expect(t, '>'));
  return mp_mosaic_type_copy(t->arena, &type, out_type);
}

// ---- functions ----

static mp_status_t mosaic_text_types_read_list(mp_text_t *t, mp_mosaic_types_t *types) {
  for (bool first = true; !mp_text_accept(t, ')'); first = false) {
    const mp_mosaic_type_t *type = NULL;
    if (!first) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    MP_RETURN_IF_ERROR(mp_mosaic_text_type(t, &type));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, types, type));
  }
  return NULL;
}

mp_status_t mp_mosaic_text_function(mp_text_t *t, const mp_mosaic_type_t **out_type) {
  mp_mosaic_types_t types = {0};
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  MP_RETURN_IF_ERROR(mosaic_text_types_read_list(t, &types));
  mp_mosaic_type_t type = {.kind = MP_MOSAIC_FUNCTION, .num_inputs = types.count};
  MP_RETURN_IF_ERROR(mp_text_expect_arrow(t));
  if (mp_text_accept(t, '(')) {
    MP_RETURN_IF_ERROR(mosaic_text_types_read_list(t, &types));
  } else {
    const mp_mosaic_type_t *result = NULL;
    MP_RETURN_IF_ERROR(mp_mosaic_text_type(t, &result));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &types, result));
  }
  type.num_elements = types.count;
  type.elements = types.items;
  return mp_mosaic_type_copy(t->arena, &type, out_type);
}

// ---- all types ----

bool mp_mosaic_text_is_type(const mp_text_t *t) {
  if (t->tok.kind == MP_TOKEN_BANG || mp_text_is(t, '(')) return true;
  if (t->tok.kind != MP_TOKEN_WORD) return false;
  for (size_t i = 0; i < sizeof(g_type_words) / sizeof(g_type_words[0]); ++i)
    if (mp_str_is(t->tok.text, g_type_words[i])) return true;
  return mp_dtype_from_name(t->tok.text) != MP_DTYPE_INVALID;
}

static mp_status_t mosaic_text_types_read_alias_value(mp_text_t *t, mp_text_alias_t *alias) {
  const mp_mosaic_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_mosaic_text_type(t, &type));
  alias->other = type;
  return NULL;
}

static mp_status_t mosaic_text_types_read_alias(mp_text_t *t, const mp_mosaic_type_t **out_type) {
  mp_text_alias_t *alias = mp_text_find_alias(t, t->tok.text, true);
  if (alias == NULL)
    return mp_text_error(t, &t->tok, MP_UNIMPLEMENTED, "the type '!%.*s' is not known",
                         MP_STR_SHOWN(t->tok.text, 60));
  MP_RETURN_IF_ERROR(mp_text_read_alias(t, alias, mosaic_text_types_read_alias_value));
  mp_text_advance(t);
  *out_type = alias->other;
  return NULL;
}

// !tpu.semaphore alone, as the tables of bytecode have it; no value has this type.
static mp_status_t mosaic_text_types_read_semaphore(mp_text_t *t,
                                                    const mp_mosaic_type_t **out_type) {
  mp_mosaic_type_t type = {.kind = MP_MOSAIC_SCALAR};
  MP_RETURN_IF_ERROR(mosaic_text_types_read_element(t, &type));
  return mp_mosaic_type_copy(t->arena, &type, out_type);
}

static mp_status_t mosaic_text_types_read_type(mp_text_t *t, const mp_mosaic_type_t **out_type) {
  mp_dtype_t dtype;
  if (t->tok.kind == MP_TOKEN_BANG && mp_str_starts_with(t->tok.text, "tpu."))
    return mosaic_text_types_read_semaphore(t, out_type);
  if (t->tok.kind == MP_TOKEN_BANG) return mosaic_text_types_read_alias(t, out_type);
  if (mp_text_is(t, '(')) return mp_mosaic_text_function(t, out_type);
  if (mp_text_accept_word(t, "vector"))
    return mosaic_text_types_read_shaped(t, MP_MOSAIC_VECTOR, out_type);
  if (mp_text_accept_word(t, "memref"))
    return mosaic_text_types_read_shaped(t, MP_MOSAIC_MEMREF, out_type);
  MP_RETURN_IF_ERROR(mp_text_dtype(t, &dtype));
  return mp_mosaic_scalar_type(t->arena, dtype, out_type);
}

mp_status_t mp_mosaic_text_type(mp_text_t *t, const mp_mosaic_type_t **out_type) {
  MP_RETURN_IF_ERROR(mp_text_enter(t));
  MP_RETURN_IF_ERROR(mosaic_text_types_read_type(t, out_type));
  mp_text_leave(t);
  return NULL;
}

// ---- constants ----

// A vector's or tensor's type as a tensor type, of which the elements are read.
static mp_status_t mosaic_text_types_read_dense_type(mp_text_t *t, const mp_type_t **out_type) {
  const mp_mosaic_type_t *type = NULL;
  if (mp_text_is_word(t, "tensor")) return mp_text_type(t, out_type);
  const mp_token_t token = t->tok;
  MP_RETURN_IF_ERROR(mp_mosaic_text_type(t, &type));
  if (type->kind != MP_MOSAIC_VECTOR)
    return mp_text_error(t, &token, MP_INVALID_ARGUMENT, "a constant that is not a vector");
  return mp_type_tensor(t->arena, type->dtype, type->dims, type->rank, out_type);
}

// Whether the type of a constant is a vector, not a tensor. `t` is behind `dense`.
static bool mosaic_text_types_is_vector(const mp_text_t *t) {
  mp_lexer_t ahead = t->lex;
  mp_token_t token = t->tok;
  while (token.kind != MP_TOKEN_END && token.kind != MP_TOKEN_ERROR &&
         !(token.kind == MP_TOKEN_PUNCT && token.text.data[0] == '>'))
    token = mp_lexer_next(&ahead);
  (void)mp_lexer_next(&ahead);  // ':'
  token = mp_lexer_next(&ahead);
  return token.kind == MP_TOKEN_BANG || mp_str_is(token.text, "vector");
}

mp_status_t mp_mosaic_text_dense(mp_text_t *t, const mp_mosaic_attr_t **out_attr) {
  const mp_token_t token = t->tok;
  const bool is_vector = mosaic_text_types_is_vector(t);
  const mp_attr_t *plain = NULL;
  const mp_mosaic_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_text_dense_of(t, mosaic_text_types_read_dense_type, &plain));
  if (is_vector) {
    const mp_type_t *tensor = plain->u.dense.type;
    const mp_mosaic_type_t vector = {.kind = MP_MOSAIC_VECTOR,
                                     .dtype = tensor->dtype,
                                     .rank = tensor->rank,
                                     .dims = tensor->dims};
    MP_RETURN_IF_ERROR(mp_mosaic_type_copy(t->arena, &vector, &type));
  }
  mp_status_t status = mp_mosaic_from_plain(t->arena, plain, type, out_attr);
  return status == NULL ? NULL : mp_status_annotate(status, "%u:%u", token.line, token.column);
}
