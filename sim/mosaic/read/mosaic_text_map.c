// Affine maps (MLIR's affine dialect, "Affine Maps").
#include "sim/mosaic/read/mosaic_text.h"

// The names of a map's dimensions and symbols.
typedef struct {
  mp_text_tokens_t dims, symbols;
} names_t;

static mp_status_t mosaic_text_map_read_name(mp_text_t *t, mp_token_t *out_token) {
  if (t->tok.kind != MP_TOKEN_WORD) return mp_text_expected(t, "a name");
  *out_token = t->tok;
  mp_text_advance(t);
  return NULL;
}

static mp_status_t mosaic_text_map_make(mp_text_t *t, mp_mosaic_affine_t value,
                                        const mp_mosaic_affine_t **out_expr) {
  *out_expr = mp_arena_copy(t->arena, &value, sizeof(value));
  MP_RETURN_IF_NULL(*out_expr);
  return NULL;
}

static mp_status_t mosaic_text_map_constant(mp_text_t *t, int64_t value,
                                            const mp_mosaic_affine_t **out_expr) {
  return mosaic_text_map_make(
      t, (mp_mosaic_affine_t){.kind = MP_MOSAIC_AFFINE_CONSTANT, .value = value}, out_expr);
}

static mp_status_t mosaic_text_map_binary(mp_text_t *t, mp_mosaic_affine_kind_t kind,
                                          const mp_mosaic_affine_t *lhs,
                                          const mp_mosaic_affine_t *rhs,
                                          const mp_mosaic_affine_t **out_expr) {
  return mosaic_text_map_make(t, (mp_mosaic_affine_t){.kind = kind, .lhs = lhs, .rhs = rhs},
                              out_expr);
}

static mp_status_t mosaic_text_map_read_sum(mp_text_t *t, const names_t *names,
                                            const mp_mosaic_affine_t **out_expr);

static mp_status_t mosaic_text_map_read_variable(mp_text_t *t, const names_t *names,
                                                 const mp_mosaic_affine_t **out_expr) {
  const mp_text_tokens_t *const lists[] = {&names->dims, &names->symbols};
  for (int k = 0; k < 2; ++k) {
    for (uint32_t i = 0; i < lists[k]->count; ++i) {
      if (!mp_str_equal(lists[k]->items[i].text, t->tok.text)) continue;
      mp_text_advance(t);
      return mosaic_text_map_make(
          t,
          (mp_mosaic_affine_t){.kind = k == 0 ? MP_MOSAIC_AFFINE_DIM : MP_MOSAIC_AFFINE_SYMBOL,
                               .value = i},
          out_expr);
    }
  }
  return mp_text_expected(t, "a dimension or a symbol of the map");
}

// A number, a name, -x or (x).
static mp_status_t mosaic_text_map_read_operand(mp_text_t *t, const names_t *names,
                                                const mp_mosaic_affine_t **out_expr) {
  MP_RETURN_IF_ERROR(mp_text_enter(t));
  if (mp_text_accept(t, '(')) {
    MP_RETURN_IF_ERROR(mosaic_text_map_read_sum(t, names, out_expr));
    MP_RETURN_IF_ERROR(mp_text_expect(t, ')'));
  } else if (t->tok.kind == MP_TOKEN_WORD) {
    MP_RETURN_IF_ERROR(mosaic_text_map_read_variable(t, names, out_expr));
  } else if (mp_text_is(t, '-') && mp_text_peek(t).kind != MP_TOKEN_INTEGER) {
    const mp_mosaic_affine_t *operand = NULL, *minus = NULL;
    mp_text_advance(t);
    MP_RETURN_IF_ERROR(mosaic_text_map_read_operand(t, names, &operand));
    MP_RETURN_IF_ERROR(mosaic_text_map_constant(t, -1, &minus));
    MP_RETURN_IF_ERROR(mosaic_text_map_binary(t, MP_MOSAIC_AFFINE_MUL, operand, minus, out_expr));
  } else {
    int64_t value;
    MP_RETURN_IF_ERROR(mp_text_i64(t, &value));
    MP_RETURN_IF_ERROR(mosaic_text_map_constant(t, value, out_expr));
  }
  mp_text_leave(t);
  return NULL;
}

static bool mosaic_text_map_accept_factor(mp_text_t *t, mp_mosaic_affine_kind_t *out_kind) {
  *out_kind = MP_MOSAIC_AFFINE_MUL;
  if (mp_text_accept(t, '*')) return true;
  *out_kind = MP_MOSAIC_AFFINE_MOD;
  if (mp_text_accept_word(t, "mod")) return true;
  *out_kind = MP_MOSAIC_AFFINE_FLOORDIV;
  if (mp_text_accept_word(t, "floordiv")) return true;
  *out_kind = MP_MOSAIC_AFFINE_CEILDIV;
  return mp_text_accept_word(t, "ceildiv");
}

static mp_status_t mosaic_text_map_read_product(mp_text_t *t, const names_t *names,
                                                const mp_mosaic_affine_t **out_expr) {
  mp_mosaic_affine_kind_t kind;
  const mp_mosaic_affine_t *left = NULL;
  MP_RETURN_IF_ERROR(mosaic_text_map_read_operand(t, names, &left));
  while (mosaic_text_map_accept_factor(t, &kind)) {
    const mp_mosaic_affine_t *right = NULL;
    MP_RETURN_IF_ERROR(mosaic_text_map_read_operand(t, names, &right));
    // What walks the expression is as deep as it is nested, so factors count.
    MP_RETURN_IF_ERROR(mp_text_enter(t));
    MP_RETURN_IF_ERROR(mosaic_text_map_binary(t, kind, left, right, &left));
  }
  *out_expr = left;
  return NULL;
}

static mp_status_t mosaic_text_map_read_sum(mp_text_t *t, const names_t *names,
                                            const mp_mosaic_affine_t **out_expr) {
  const mp_mosaic_affine_t *left = NULL;
  MP_RETURN_IF_ERROR(mosaic_text_map_read_product(t, names, &left));
  while (mp_text_is(t, '+') || mp_text_is(t, '-')) {
    const bool minus = mp_text_is(t, '-');
    const mp_mosaic_affine_t *right = NULL, *factor = NULL;
    mp_text_advance(t);
    MP_RETURN_IF_ERROR(mp_text_enter(t));
    MP_RETURN_IF_ERROR(mosaic_text_map_read_product(t, names, &right));
    if (minus) {
      MP_RETURN_IF_ERROR(mosaic_text_map_constant(t, -1, &factor));
      MP_RETURN_IF_ERROR(mosaic_text_map_binary(t, MP_MOSAIC_AFFINE_MUL, right, factor, &right));
    }
    MP_RETURN_IF_ERROR(mosaic_text_map_binary(t, MP_MOSAIC_AFFINE_ADD, left, right, &left));
  }
  *out_expr = left;
  return NULL;
}

typedef MP_ARRAY(const mp_mosaic_affine_t *) results_t;

static mp_status_t mosaic_text_map_read_results(mp_text_t *t, const names_t *names,
                                                results_t *results) {
  MP_RETURN_IF_ERROR(mp_text_expect(t, '('));
  for (bool first = true; !mp_text_accept(t, ')'); first = false) {
    const mp_mosaic_affine_t *result = NULL;
    if (!first) MP_RETURN_IF_ERROR(mp_text_expect(t, ','));
    const int depth = t->depth;
    MP_RETURN_IF_ERROR(mosaic_text_map_read_sum(t, names, &result));
    t->depth = depth;
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(t->scratch, results, result));
  }
  return NULL;
}

mp_status_t mp_mosaic_text_map(mp_text_t *t, const mp_mosaic_map_t **out_map) {
  names_t names = {0};
  results_t results = {0};
  MP_TEXT_LIST(t, '(', ')', mp_token_t, &names.dims, mosaic_text_map_read_name);
  if (mp_text_is(t, '['))
    MP_TEXT_LIST(t, '[', ']', mp_token_t, &names.symbols, mosaic_text_map_read_name);
  MP_RETURN_IF_ERROR(mp_text_expect_arrow(t));
  MP_RETURN_IF_ERROR(mosaic_text_map_read_results(t, &names, &results));
  MP_RETURN_IF_ERROR(mp_text_expect(t, '>'));
  mp_mosaic_map_t *map = MP_ARENA_NEW(t->arena, mp_mosaic_map_t);
  MP_RETURN_IF_NULL(map);
  *map = (mp_mosaic_map_t){.num_dims = names.dims.count,
                           .num_symbols = names.symbols.count,
                           .num_results = results.count};
  map->results = mp_arena_copy(t->arena, results.items, results.count * sizeof(results.items[0]));
  MP_RETURN_IF_NULL(map->results);
  *out_map = map;
  return NULL;
}
