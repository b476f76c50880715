// Affine maps in the builtin dialect's own encoding, which MLIR writes from version 24 on. Before,
// bytecode holds them as text.
//
//   map:  varint dims << 2 | form
//   form: 0: the identity
//         1: a permutation: the dimension of each result
//         2: a choice: count, dimensions
//         3: number of symbols, count, expressions
//   expression: its kind, then a dimension, a symbol, a constant (zigzag), or two expressions
#include "sim/mosaic/read/mosaic_bytecode.h"

enum { FORM_IDENTITY, FORM_PERMUTATION, FORM_CHOICE, FORM_EXPRESSIONS };
enum { EXPR_DIM, EXPR_SYMBOL, EXPR_CONSTANT, EXPR_ADD, EXPR_MUL, EXPR_MOD, EXPR_FLOORDIV };
enum { EXPR_CEILDIV = EXPR_FLOORDIV + 1, EXPR_COUNT };
// An identity of any size takes a byte, and expressions nest.
enum { MAX_DIMS = 256, MAX_DEPTH = 64 };

static const mp_mosaic_affine_kind_t g_kinds[EXPR_COUNT] = {
    [EXPR_DIM] = MP_MOSAIC_AFFINE_DIM,           [EXPR_SYMBOL] = MP_MOSAIC_AFFINE_SYMBOL,
    [EXPR_CONSTANT] = MP_MOSAIC_AFFINE_CONSTANT, [EXPR_ADD] = MP_MOSAIC_AFFINE_ADD,
    [EXPR_MUL] = MP_MOSAIC_AFFINE_MUL,           [EXPR_MOD] = MP_MOSAIC_AFFINE_MOD,
    [EXPR_FLOORDIV] = MP_MOSAIC_AFFINE_FLOORDIV, [EXPR_CEILDIV] = MP_MOSAIC_AFFINE_CEILDIV};

static mp_status_t mosaic_bytecode_maps_make(mp_bc_reader_t *r, mp_mosaic_affine_t value,
                                             const mp_mosaic_affine_t **out_expr) {
  mp_mosaic_affine_t *expr = MP_ARENA_NEW(r->arena, mp_mosaic_affine_t);
  MP_RETURN_IF_NULL(expr);
  *expr = value;
  *out_expr = expr;
  return NULL;
}

static mp_status_t mosaic_bytecode_maps_read_place(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                   mp_mosaic_affine_kind_t kind, uint32_t count,
                                                   const mp_mosaic_affine_t **out_expr) {
  const mp_bc_cursor_t before = *c;
  uint64_t place = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &place));
  if (place >= count) return mp_bc_fail(&before, "an affine map has no such dimension or symbol");
  return mosaic_bytecode_maps_make(r, (mp_mosaic_affine_t){.kind = kind, .value = (int64_t)place},
                                   out_expr);
}

static mp_status_t mosaic_bytecode_maps_read_expr(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                  const mp_mosaic_map_t *map, int depth,
                                                  const mp_mosaic_affine_t **out_expr) {
  const mp_bc_cursor_t before = *c;
  uint64_t code = 0, value = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &code));
  if (code >= EXPR_COUNT) return mp_bc_unknown(&before, "this affine expression is not read");
  if (depth > MAX_DEPTH) return mp_bc_unknown(&before, "an affine map nests too deeply");
  mp_mosaic_affine_t expr = {.kind = g_kinds[code]};
  if (code == EXPR_DIM || code == EXPR_SYMBOL)
    return mosaic_bytecode_maps_read_place(
        r, c, expr.kind, code == EXPR_DIM ? map->num_dims : map->num_symbols, out_expr);
  if (code == EXPR_CONSTANT) {
    MP_RETURN_IF_ERROR(mp_bc_varint(c, &value));
    expr.value = (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
  } else {
    MP_RETURN_IF_ERROR(mosaic_bytecode_maps_read_expr(r, c, map, depth + 1, &expr.lhs));
    MP_RETURN_IF_ERROR(mosaic_bytecode_maps_read_expr(r, c, map, depth + 1, &expr.rhs));
  }
  return mosaic_bytecode_maps_make(r, expr, out_expr);
}

static mp_status_t mosaic_bytecode_maps_read_result(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                                                    const mp_mosaic_map_t *map, int form,
                                                    uint32_t number,
                                                    const mp_mosaic_affine_t **out_expr) {
  if (form == FORM_EXPRESSIONS) return mosaic_bytecode_maps_read_expr(r, c, map, 0, out_expr);
  if (form != FORM_IDENTITY)
    return mosaic_bytecode_maps_read_place(r, c, MP_MOSAIC_AFFINE_DIM, map->num_dims, out_expr);
  return mosaic_bytecode_maps_make(
      r, (mp_mosaic_affine_t){.kind = MP_MOSAIC_AFFINE_DIM, .value = number}, out_expr);
}

mp_status_t mp_mosaic_bc_map(mp_bc_reader_t *r, mp_bc_cursor_t *c,
                             const mp_mosaic_map_t **out_map) {
  const mp_bc_cursor_t before = *c;
  uint64_t head = 0, symbols = 0;
  MP_RETURN_IF_ERROR(mp_bc_varint(c, &head));
  const int form = (int)(head & 3);
  if (form == FORM_EXPRESSIONS) MP_RETURN_IF_ERROR(mp_bc_varint(c, &symbols));
  if (head >> 2 > MAX_DIMS || symbols > MAX_DIMS)
    return mp_bc_unknown(&before, "an affine map of more than %d dimensions", MAX_DIMS);
  size_t count = (size_t)(head >> 2);
  if (form >= FORM_CHOICE) MP_RETURN_IF_ERROR(mp_bc_count(c, "results of a map", &count));
  mp_mosaic_map_t *map = MP_ARENA_NEW(r->arena, mp_mosaic_map_t);
  MP_RETURN_IF_NULL(map);
  const mp_mosaic_affine_t **results = MP_ARENA_ARRAY(r->arena, const mp_mosaic_affine_t *, count);
  MP_RETURN_IF_NULL(results);
  *map = (mp_mosaic_map_t){.num_dims = (uint32_t)(head >> 2),
                           .num_symbols = (uint32_t)symbols,
                           .num_results = (uint32_t)count,
                           .results = results};
  for (uint32_t i = 0; i < map->num_results; ++i)
    MP_RETURN_IF_ERROR(mosaic_bytecode_maps_read_result(r, c, map, form, i, &results[i]));
  *out_map = map;
  return NULL;
}
