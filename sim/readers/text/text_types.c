// Types (MLIR language reference, builtin types; StableHLO's and quant's).
#include <stdio.h>

#include "sim/readers/text/text_parser.h"

// ---- scalars ----

mp_status_t mp_text_dtype(mp_text_t *t, mp_dtype_t *out_dtype) {
  if (t->tok.kind != MP_TOKEN_WORD) return mp_text_expected(t, "an element type");
  mp_token_t token = t->tok;
  if (mp_text_accept_word(t, "complex")) {
    mp_dtype_t part;
    MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
    MP_RETURN_IF_ERROR(mp_text_dtype(t, &part));
    MP_RETURN_IF_ERROR(mp_text_expect(t, '>'));
    if (part != MP_DTYPE_F32 && part != MP_DTYPE_F64)
      return mp_text_error(t, &token, MP_UNIMPLEMENTED, "complex<%s> is not supported",
                           mp_dtype_name(part));
    *out_dtype = part == MP_DTYPE_F32 ? MP_DTYPE_C64 : MP_DTYPE_C128;
    return NULL;
  }
  mp_str_t name = token.text;
  mp_dtype_t dtype = mp_dtype_from_name(name);
  // MLIR may spell a signed type with an s in front: si8.
  if (dtype == MP_DTYPE_INVALID && mp_str_starts_with(name, "si"))
    dtype = mp_dtype_from_name((mp_str_t){name.data + 1, name.size - 1});
  if (dtype == MP_DTYPE_INVALID) return mp_text_expected(t, "an element type");
  mp_text_advance(t);
  *out_dtype = dtype;
  return NULL;
}

// ---- uniform quantisation: <i8<-127:127>:f32:1, {0.1:3, 0.2}> ----

static mp_status_t text_types_read_number(mp_text_t *t, double *out_value) {
  bool negative = mp_text_accept(t, '-');
  if (t->tok.kind != MP_TOKEN_FLOAT && t->tok.kind != MP_TOKEN_INTEGER)
    return mp_text_expected(t, "a number");
  double value;
  if (mp_str_scan_double(t->tok.text, &value) != t->tok.text.size)
    return mp_text_expected(t, "a number");
  mp_text_advance(t);
  *out_value = negative ? -value : value;
  return NULL;
}

static mp_status_t text_types_read_scales(mp_text_t *t, mp_quant_t *quant, bool list) {
  MP_ARRAY(double) scales = {0};
  mp_text_ints_t points = {0};
  do {
    double scale = 0;
    int64_t point = 0;
    MP_RETURN_IF_ERROR(text_types_read_number(t, &scale));
    if (mp_text_accept(t, ':')) MP_RETURN_IF_ERROR(mp_text_i64(t, &point));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &scales, scale));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &points, point));
  } while (list && mp_text_accept(t, ','));
  quant->num_scales = scales.count;
  quant->scales = mp_arena_copy(t->arena, scales.items, scales.count * sizeof(double));
  quant->zero_points = mp_arena_copy(t->arena, points.items, points.count * sizeof(int64_t));
  if (quant->scales == NULL || quant->zero_points == NULL) return mp_status_out_of_memory();
  return NULL;
}

static mp_status_t text_types_read_storage(mp_text_t *t, mp_quant_t *quant) {
  // Quantised types spell unsigned storage u8, where other types have ui8.
  bool is_signed = !(t->tok.kind == MP_TOKEN_WORD && t->tok.text.data[0] == 'u');
  if (t->tok.kind == MP_TOKEN_WORD && t->tok.text.size >= 2 && !is_signed &&
      t->tok.text.data[1] >= '0' && t->tok.text.data[1] <= '9') {
    char name[16];
    (void)snprintf(name, sizeof(name), "ui%.*s", mp_str_precision(t->tok.text.size - 1),
                   t->tok.text.data + 1);
    quant->storage = mp_dtype_from_name(mp_str(name));
    if (quant->storage == MP_DTYPE_INVALID) return mp_text_expected(t, "a storage type");
    mp_text_advance(t);
  } else {
    MP_RETURN_IF_ERROR(mp_text_dtype(t, &quant->storage));
  }
  int bits = mp_dtype_bits(quant->storage);
  if (!mp_dtype_is_integer(quant->storage) || bits > 32)
    return mp_text_error(t, &t->last, MP_UNIMPLEMENTED, "%s is not a storage type",
                         mp_dtype_name(quant->storage));
  quant->flags = is_signed ? 1 : 0;
  quant->storage_min = is_signed ? -((int64_t)1 << (bits - 1)) : 0;
  quant->storage_max = is_signed ? ((int64_t)1 << (bits - 1)) - 1 : ((int64_t)1 << bits) - 1;
  if (!mp_text_accept(t, '<')) return NULL;
  MP_RETURN_IF_ERROR(mp_text_i64(t, &quant->storage_min));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
  MP_RETURN_IF_ERROR(mp_text_i64(t, &quant->storage_max));
  return mp_text_expect(t, '>');
}

static mp_status_t text_types_read_quant(mp_text_t *t, const mp_quant_t **out_quant) {
  mp_quant_t *quant = MP_ARENA_NEW(t->arena, mp_quant_t);
  MP_RETURN_IF_NULL(quant);
  quant->axis = -1;
  MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
  MP_RETURN_IF_ERROR(text_types_read_storage(t, quant));
  MP_RETURN_IF_ERROR(mp_text_expect(t, ':'));
  MP_RETURN_IF_ERROR(mp_text_dtype(t, &quant->expressed));
  if (mp_text_accept(t, ':')) {
    MP_RETURN_IF_ERROR(mp_text_i64(t, &quant->axis));
    if (quant->axis < 0) return mp_text_error(t, &t->last, MP_INVALID_ARGUMENT, "negative axis");
  }
  MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
  bool list = quant->axis >= 0;
  if (list) MP_RETURN_IF_ERROR(mp_text_expect(t, '{'));
  MP_RETURN_IF_ERROR(text_types_read_scales(t, quant, list));
  if (list) MP_RETURN_IF_ERROR(mp_text_expect(t, '}'));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '>'));
  *out_quant = quant;
  return NULL;
}

// ---- tensors ----

// A list of dimensions cannot be read as tokens ("0x3xf32" would begin with a hexadecimal number),
// so it is read character by character: "4x?x", up to the element type.
mp_status_t mp_text_dims(mp_text_t *t, mp_text_ints_t *dims) {
  const char *at = t->tok.start, *end = t->lex.end;
  while (at < end && ((*at >= '0' && *at <= '9') || *at == '?')) {
    int64_t dim = 0;
    if (*at == '?') {
      dim = MP_DYNAMIC;
      ++at;
    }
    for (; dim != MP_DYNAMIC && at < end && *at >= '0' && *at <= '9'; ++at)
      if (__builtin_mul_overflow(dim, 10, &dim) || __builtin_add_overflow(dim, *at - '0', &dim))
        return mp_text_error(t, &t->tok, MP_INVALID_ARGUMENT, "a dimension is too large");
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, dims, dim));
    if (at == end || *at != 'x')
      return mp_text_error(t, &t->tok, MP_INVALID_ARGUMENT, "expected 'x' behind a dimension");
    ++at;
  }
  t->lex.at = at;
  t->tok = mp_lexer_next(&t->lex);
  return NULL;
}

static mp_status_t text_types_read_bound(mp_text_t *t, int64_t *out_bound) {
  *out_bound = MP_DYNAMIC;
  if (mp_text_accept(t, '?')) return NULL;
  return mp_text_i64(t, out_bound);
}

// #stablehlo.bounds<8, ?> or #stablehlo.type_extensions<bounds = [8, ?]>
static mp_status_t text_types_read_bounds(mp_text_t *t, mp_type_t *type) {
  bool is_short = t->tok.kind == MP_TOKEN_HASH && mp_str_is(t->tok.text, "stablehlo.bounds");
  if (!is_short &&
      !(t->tok.kind == MP_TOKEN_HASH && mp_str_is(t->tok.text, "stablehlo.type_extensions")))
    return mp_text_error(t, &t->tok, MP_UNIMPLEMENTED, "a tensor encoding other than bounds");
  mp_text_advance(t);
  MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
  if (!is_short) {
    MP_RETURN_IF_ERROR(mp_text_expect_word(t, "bounds"));
    MP_RETURN_IF_ERROR(mp_text_expect(t, '='));
    MP_RETURN_IF_ERROR(mp_text_expect(t, '['));
  }
  int64_t *bounds = MP_ARENA_ARRAY(t->arena, int64_t, type->rank);
  MP_RETURN_IF_NULL(bounds);
  for (uint32_t i = 0; i < type->rank; ++i) {
    if (i > 0) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    MP_RETURN_IF_ERROR(text_types_read_bound(t, &bounds[i]));
  }
  if (!is_short) MP_RETURN_IF_ERROR(mp_text_expect(t, ']'));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '>'));
  type->bounds = bounds;
  return NULL;
}

static mp_status_t text_types_read_element(mp_text_t *t, mp_type_t *type) {
  if (t->tok.kind == MP_TOKEN_BANG && mp_str_is(t->tok.text, "quant.uniform")) {
    mp_text_advance(t);
    MP_RETURN_IF_ERROR(text_types_read_quant(t, &type->quant));
    type->dtype = type->quant->storage;
    return NULL;
  }
  return mp_text_dtype(t, &type->dtype);
}

static mp_status_t text_types_read_shaped(mp_text_t *t, mp_type_kind_t kind,
                                          const mp_type_t **out_type) {
  mp_type_t *type = MP_ARENA_NEW(t->arena, mp_type_t);
  MP_RETURN_IF_NULL(type);
  type->kind = kind;
  if (!mp_text_is(t, '<')) return mp_text_expected(t, "'<'");
  mp_text_advance(t);
  mp_text_ints_t dims = {0};
  if (mp_text_is(t, '*')) {
    type->kind = MP_TYPE_UNRANKED;
    if (t->lex.at == t->lex.end || *t->lex.at != 'x') return mp_text_expected(t, "'*x'");
    ++t->lex.at;
    t->tok = mp_lexer_next(&t->lex);
  } else {
    MP_RETURN_IF_ERROR(mp_text_dims(t, &dims));
  }
  type->rank = dims.count;
  type->dims = mp_arena_copy(t->arena, dims.items, dims.count * sizeof(int64_t));
  MP_RETURN_IF_NULL(type->dims);
  MP_RETURN_IF_ERROR(text_types_read_element(t, type));
  if (mp_text_accept(t, ',')) MP_RETURN_IF_ERROR(text_types_read_bounds(t, type));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '>'));
  *out_type = type;
  return NULL;
}

// ---- compounds ----

static mp_status_t text_types_read_type_list(mp_text_t *t, char end, mp_text_types_t *types) {
  while (!mp_text_is(t, end)) {
    const mp_type_t *type = NULL;
    if (types->count > 0) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    MP_RETURN_IF_ERROR(mp_text_type(t, &type));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, types, type));
  }
  mp_text_advance(t);
  return NULL;
}

static mp_status_t text_types_read_compound(mp_text_t *t, mp_type_kind_t kind,
                                            const mp_type_t **out_type) {
  mp_text_types_t types = {0};
  MP_RETURN_IF_ERROR(mp_text_expect(t, '<'));
  MP_RETURN_IF_ERROR(text_types_read_type_list(t, '>', &types));
  return mp_type_compound(t->arena, kind, types.items, types.count, out_type);
}

mp_status_t mp_text_signature(mp_text_t *t, mp_text_signature_t *out_signature) {
  mp_text_types_t inputs = {0}, results = {0};
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  MP_RETURN_IF_ERROR(text_types_read_type_list(t, ')', &inputs));
  MP_RETURN_IF_ERROR(mp_text_expect_arrow(t));
  if (mp_text_accept(t, '(')) {
    MP_RETURN_IF_ERROR(text_types_read_type_list(t, ')', &results));
  } else {
    const mp_type_t *type = NULL;
    MP_RETURN_IF_ERROR(mp_text_type(t, &type));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, &results, type));
  }
  *out_signature = (mp_text_signature_t){inputs.items, inputs.count, results.items, results.count};
  return NULL;
}

static mp_status_t text_types_read_function(mp_text_t *t, const mp_type_t **out_type) {
  mp_text_signature_t signature;
  MP_RETURN_IF_ERROR(mp_text_signature(t, &signature));
  uint32_t count = signature.num_inputs + signature.num_results;
  mp_type_t *type = MP_ARENA_NEW(t->arena, mp_type_t);
  const mp_type_t **elements = MP_ARENA_ARRAY(t->arena, const mp_type_t *, count);
  if (type == NULL || elements == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < signature.num_inputs; ++i) elements[i] = signature.inputs[i];
  for (uint32_t i = 0; i < signature.num_results; ++i)
    elements[signature.num_inputs + i] = signature.results[i];
  *type = (mp_type_t){.kind = MP_TYPE_FUNCTION,
                      .num_elements = count,
                      .num_inputs = signature.num_inputs,
                      .elements = elements};
  *out_type = type;
  return NULL;
}

// A scalar that stands by itself is a tensor of rank 0, as in the bytecode reader.
static mp_status_t text_types_read_scalar(mp_text_t *t, const mp_type_t **out_type) {
  mp_dtype_t dtype;
  MP_RETURN_IF_ERROR(mp_text_dtype(t, &dtype));
  return mp_type_tensor(t->arena, dtype, NULL, 0, out_type);
}

static mp_status_t text_types_read_alias(mp_text_t *t, mp_text_alias_t *alias) {
  return mp_text_type(t, &alias->type);
}

static mp_status_t text_types_read_dialect_type(mp_text_t *t, const mp_type_t **out_type) {
  mp_str_t name = t->tok.text;
  if (mp_str_is(name, "stablehlo.token") || mp_str_is(name, "mhlo.token")) {
    mp_text_advance(t);
    *out_type = mp_type_token();
    return NULL;
  }
  if (mp_str_is(name, "stablehlo.future")) {
    mp_text_advance(t);
    return text_types_read_compound(t, MP_TYPE_FUTURE, out_type);
  }
  mp_text_alias_t *alias = mp_text_find_alias(t, name, true);
  if (alias == NULL)
    return mp_text_error(t, &t->tok, MP_UNIMPLEMENTED, "the type '!%.*s' is not known",
                         MP_STR_ARG(name));
  MP_RETURN_IF_ERROR(mp_text_read_alias(t, alias, text_types_read_alias));
  mp_text_advance(t);
  *out_type = alias->type;
  return NULL;
}

bool mp_text_is_type(const mp_text_t *t) {
  if (t->tok.kind == MP_TOKEN_BANG || mp_text_is(t, '(')) return true;
  if (t->tok.kind != MP_TOKEN_WORD) return false;
  static const char *const words[] = {"tensor", "memref", "tuple", "none", "complex"};
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i)
    if (mp_str_is(t->tok.text, words[i])) return true;
  return mp_dtype_from_name(t->tok.text) != MP_DTYPE_INVALID ||
         mp_str_starts_with(t->tok.text, "si");
}

static mp_status_t text_types_read_type(mp_text_t *t, const mp_type_t **out_type) {
  static const mp_type_t none = {.kind = MP_TYPE_NONE};
  if (t->tok.kind == MP_TOKEN_BANG) return text_types_read_dialect_type(t, out_type);
  if (mp_text_is(t, '(')) return text_types_read_function(t, out_type);
  if (mp_text_accept_word(t, "tensor")) return text_types_read_shaped(t, MP_TYPE_TENSOR, out_type);
  if (mp_text_accept_word(t, "memref")) return text_types_read_shaped(t, MP_TYPE_BUFFER, out_type);
  if (mp_text_accept_word(t, "tuple")) return text_types_read_compound(t, MP_TYPE_TUPLE, out_type);
  if (mp_text_accept_word(t, "none")) {
    *out_type = &none;
    return NULL;
  }
  if (mp_text_is_type(t)) return text_types_read_scalar(t, out_type);
  return mp_text_expected(t, "a type");
}

mp_status_t mp_text_type(mp_text_t *t, const mp_type_t **out_type) {
  MP_RETURN_IF_ERROR(mp_text_enter(t));
  MP_RETURN_IF_ERROR(text_types_read_type(t, out_type));
  mp_text_leave(t);
  return NULL;
}
