#include "sim/ir/type.h"

#include <inttypes.h>
#include <string.h>

#include "sim/base/assert.h"
#include "sim/numeric/dims.h"

mp_status_t mp_type_tensor(mp_arena_t *arena, mp_dtype_t dtype, const int64_t *dims, uint32_t rank,
                           const mp_type_t **out_type) {
  MP_ASSERT(dims != NULL || rank == 0);
  mp_type_t *type = MP_ARENA_NEW(arena, mp_type_t);
  MP_RETURN_IF_NULL(type);
  int64_t *copy = mp_arena_copy(arena, dims, rank * sizeof(int64_t));
  MP_RETURN_IF_NULL(copy);
  *type = (mp_type_t){.kind = MP_TYPE_TENSOR, .dtype = dtype, .rank = rank, .dims = copy};
  *out_type = type;
  return NULL;
}

const mp_type_t *mp_type_token(void) {
  static const mp_type_t token = {.kind = MP_TYPE_TOKEN};
  return &token;
}

mp_status_t mp_type_compound(mp_arena_t *arena, mp_type_kind_t kind,
                             const mp_type_t *const *elements, uint32_t num_elements,
                             const mp_type_t **out_type) {
  MP_ASSERT(kind == MP_TYPE_TUPLE || kind == MP_TYPE_FUTURE || kind == MP_TYPE_FUNCTION);
  mp_type_t *type = MP_ARENA_NEW(arena, mp_type_t);
  MP_RETURN_IF_NULL(type);
  void *copy = mp_arena_copy(arena, elements, num_elements * sizeof(elements[0]));
  MP_RETURN_IF_NULL(copy);
  *type = (mp_type_t){.kind = kind, .num_elements = num_elements, .elements = copy};
  *out_type = type;
  return NULL;
}

static bool type_dims_equal(const int64_t *a, const int64_t *b, uint32_t rank) {
  if (a == NULL || b == NULL) return a == b || rank == 0;
  return memcmp(a, b, rank * sizeof(int64_t)) == 0;
}

static bool type_quant_equal(const mp_quant_t *a, const mp_quant_t *b) {
  if (a == NULL || b == NULL) return a == b;
  if (a->storage != b->storage || a->expressed != b->expressed || a->flags != b->flags ||
      a->axis != b->axis || a->storage_min != b->storage_min || a->storage_max != b->storage_max ||
      a->num_scales != b->num_scales)
    return false;
  return a->num_scales == 0 ||
         (memcmp(a->scales, b->scales, a->num_scales * sizeof(double)) == 0 &&
          memcmp(a->zero_points, b->zero_points, a->num_scales * sizeof(int64_t)) == 0);
}

bool mp_type_equal(const mp_type_t *a, const mp_type_t *b) {
  if (a == b) return true;
  if (a->kind != b->kind || a->dtype != b->dtype || a->rank != b->rank ||
      a->num_elements != b->num_elements || a->num_inputs != b->num_inputs)
    return false;
  if (!type_dims_equal(a->dims, b->dims, a->rank) ||
      !type_dims_equal(a->bounds, b->bounds, a->rank) || !type_quant_equal(a->quant, b->quant))
    return false;
  for (uint32_t i = 0; i < a->num_elements; ++i)
    if (!mp_type_equal(a->elements[i], b->elements[i])) return false;
  return true;
}

bool mp_type_same_shape(const mp_type_t *a, const mp_type_t *b) {
  return a->kind == MP_TYPE_TENSOR && b->kind == MP_TYPE_TENSOR && a->rank == b->rank &&
         type_dims_equal(a->dims, b->dims, a->rank);
}

bool mp_type_is_static(const mp_type_t *type) {
  if (type->kind != MP_TYPE_TENSOR || type->quant != NULL) return false;
  for (uint32_t i = 0; i < type->rank; ++i)
    if (type->dims[i] < 0) return false;
  return true;
}

bool mp_type_num_elements(const mp_type_t *type, int64_t *out_count) {
  return mp_dims_count(type->dims, 0, type->rank, out_count);
}

bool mp_type_num_bytes(const mp_type_t *type, int64_t *out_bytes) {
  if (type->kind == MP_TYPE_TOKEN) {
    *out_bytes = 0;
    return true;
  }
  int64_t count, bytes;
  if (!mp_type_num_elements(type, &count) ||
      __builtin_mul_overflow(count, (int64_t)mp_dtype_size(type->dtype), &bytes))
    return false;
  *out_bytes = bytes;
  return true;
}

static void type_print_dim(int64_t dim, mp_strbuf_t *out) {
  if (dim == MP_DYNAMIC)
    mp_strbuf_putc(out, '?');
  else
    mp_strbuf_printf(out, "%" PRId64, dim);
}

// Prints the limits of the storage type, if they are not the type's whole range.
static void type_print_quant_limits(const mp_quant_t *q, mp_strbuf_t *out) {
  int bits = mp_dtype_bits(q->storage);
  bool is_signed = (q->flags & 1) != 0;
  int64_t low = is_signed ? -((int64_t)1 << (bits - 1)) : 0;
  int64_t high = is_signed ? ((int64_t)1 << (bits - 1)) - 1 : ((int64_t)1 << bits) - 1;
  if (q->storage_min != low || q->storage_max != high)
    mp_strbuf_printf(out, "<%" PRId64 ":%" PRId64 ">", q->storage_min, q->storage_max);
}

static void type_print_quant(const mp_quant_t *q, mp_strbuf_t *out) {
  mp_strbuf_printf(out, "!quant.uniform<%s", mp_dtype_name(q->storage));
  if (mp_dtype_bits(q->storage) <= 32) type_print_quant_limits(q, out);
  mp_strbuf_printf(out, ":%s", mp_dtype_name(q->expressed));
  if (q->axis >= 0) mp_strbuf_printf(out, ":%" PRId64, q->axis);
  mp_strbuf_puts(out, q->axis >= 0 ? ", {" : ", ");
  for (uint32_t i = 0; i < q->num_scales; ++i) {
    mp_strbuf_printf(out, "%s%.17e", i > 0 ? "," : "", q->scales[i]);
    if (q->zero_points[i] != 0) mp_strbuf_printf(out, ":%" PRId64, q->zero_points[i]);
  }
  mp_strbuf_puts(out, q->axis >= 0 ? "}>" : ">");
}

static void type_print_shaped(const mp_type_t *type, const char *keyword, mp_strbuf_t *out) {
  mp_strbuf_printf(out, "%s<", keyword);
  if (type->kind == MP_TYPE_UNRANKED) mp_strbuf_puts(out, "*x");
  for (uint32_t i = 0; i < type->rank; ++i) {
    type_print_dim(type->dims[i], out);
    mp_strbuf_putc(out, 'x');
  }
  if (type->quant != NULL)
    type_print_quant(type->quant, out);
  else
    mp_strbuf_puts(out, mp_dtype_name(type->dtype));
  if (type->bounds != NULL) {
    mp_strbuf_puts(out, ", #stablehlo.bounds<");
    for (uint32_t i = 0; i < type->rank; ++i) {
      if (i > 0) mp_strbuf_puts(out, ", ");
      type_print_dim(type->bounds[i], out);
    }
    mp_strbuf_putc(out, '>');
  }
  mp_strbuf_putc(out, '>');
}

static void type_print_list(const mp_type_t *const *types, uint32_t count, mp_strbuf_t *out) {
  for (uint32_t i = 0; i < count; ++i) {
    if (i > 0) mp_strbuf_puts(out, ", ");
    mp_type_print(types[i], out);
  }
}

static void type_print_function(const mp_type_t *type, mp_strbuf_t *out) {
  uint32_t num_results = type->num_elements - type->num_inputs;
  const mp_type_t *const *results = type->elements + type->num_inputs;
  mp_strbuf_putc(out, '(');
  type_print_list(type->elements, type->num_inputs, out);
  mp_strbuf_puts(out, ") -> ");
  bool bare = num_results == 1 && results[0]->kind != MP_TYPE_FUNCTION;
  if (!bare) mp_strbuf_putc(out, '(');
  type_print_list(results, num_results, out);
  if (!bare) mp_strbuf_putc(out, ')');
}

void mp_type_print(const mp_type_t *type, mp_strbuf_t *out) {
  switch (type->kind) {
    case MP_TYPE_TENSOR:
    case MP_TYPE_UNRANKED:
      type_print_shaped(type, "tensor", out);
      break;
    case MP_TYPE_BUFFER:
      type_print_shaped(type, "memref", out);
      break;
    case MP_TYPE_TOKEN:
      mp_strbuf_puts(out, "!stablehlo.token");
      break;
    case MP_TYPE_TUPLE:
    case MP_TYPE_FUTURE:
      mp_strbuf_puts(out, type->kind == MP_TYPE_TUPLE ? "tuple<" : "!stablehlo.future<");
      type_print_list(type->elements, type->num_elements, out);
      mp_strbuf_putc(out, '>');
      break;
    case MP_TYPE_FUNCTION:
      type_print_function(type, out);
      break;
    case MP_TYPE_NONE:
      mp_strbuf_puts(out, "none");
      break;
  }
}
