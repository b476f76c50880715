// The attributes of a kernel: its grid, its scalars, its windows, its scratch memory.
#include "sim/mosaic/ir/mosaic_verify.h"

// What the attributes say, and the arguments of the kernel: grid indices, prefetched scalars,
// operands (one for each window), scratch memory.
typedef struct {
  const mp_mosaic_module_t *module;
  const mp_mosaic_func_t *func;
  uint32_t grid, prefetch, scratch;
} kernel_t;

#define KERNEL_CHECK(k, holds, ...)                                                           \
  do {                                                                                        \
    if (!(holds))                                                                             \
      return mosaic_verify_kernel_error(k, mp_status_make(MP_INVALID_ARGUMENT, __VA_ARGS__)); \
  } while (0)

static mp_status_t mosaic_verify_kernel_error(const kernel_t *k, mp_status_t status) {
  return mp_status_annotate(status, "Mosaic kernel %.*s", MP_STR_SHOWN(k->func->name, 100));
}

static const mp_mosaic_attr_t *mosaic_verify_kernel_attr(const kernel_t *k, const char *name) {
  return mp_mosaic_attr(k->func->attrs, k->func->num_attrs, name);
}

static mp_status_t mosaic_verify_kernel_count(const kernel_t *k, const char *name,
                                              uint32_t *out_count) {
  const mp_mosaic_attr_t *attr = mosaic_verify_kernel_attr(k, name);
  *out_count = 0;
  if (attr == NULL) return NULL;
  KERNEL_CHECK(
      k, attr->kind == MP_MOSAIC_INT && attr->i64 >= 0 && attr->i64 <= k->func->type->num_inputs,
      "%s is not a number of arguments", name);
  *out_count = (uint32_t)attr->i64;
  return NULL;
}

// A bound is positive or 0, or dynamic.
static mp_status_t mosaic_verify_kernel_grid(kernel_t *k) {
  const mp_mosaic_attr_t *attr = mosaic_verify_kernel_attr(k, "iteration_bounds");
  mp_mosaic_ints_t bounds = {0};
  k->grid = 0;
  if (attr == NULL) return NULL;
  KERNEL_CHECK(k, mp_mosaic_ints_of(attr, &bounds) && bounds.count <= k->func->type->num_inputs,
               "iteration_bounds is not a list of the grid's sizes");
  for (uint32_t i = 0; i < bounds.count; ++i) {
    const int64_t bound = mp_mosaic_int_at(bounds, i);
    KERNEL_CHECK(k, bound >= 0 || bound == MP_MOSAIC_DYNAMIC, "iteration_bounds[%u] is %lld", i,
                 (long long)bound);
    KERNEL_CHECK(k, mp_mosaic_is_scalar_int(k->func->type->elements[i]),
                 "argument %u, an index of the grid, is not a number", i);
  }
  k->grid = bounds.count;
  return NULL;
}

static mp_status_t mosaic_verify_kernel_semantics(const kernel_t *k) {
  static const char *const words[] = {"parallel", "arbitrary", "core_parallel", "subcore_parallel"};
  const mp_mosaic_attr_t *list = mosaic_verify_kernel_attr(k, "dimension_semantics");
  if (list == NULL) return NULL;
  KERNEL_CHECK(k, list->kind == MP_MOSAIC_ARRAY && list->list.count == k->grid,
               "dimension_semantics does not have a word for each dimension of the grid");
  for (uint32_t i = 0; i < list->list.count; ++i) {
    const mp_mosaic_attr_t *item = list->list.items[i].value;
    bool known = false;
    for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); ++w)
      known |= item->kind == MP_MOSAIC_DIALECT && item->list.count == 1 &&
               item->list.items[0].value->kind == MP_MOSAIC_STRING &&
               mp_str_is(item->list.items[0].value->str, words[w]);
    KERNEL_CHECK(k, known, "dimension_semantics[%u] is not known", i);
  }
  return NULL;
}

// ---- windows ----

// The index function gets the grid's indices and the prefetched scalars, and makes an index for
// each dimension of the operand.
static mp_status_t mosaic_verify_kernel_function(const kernel_t *k, mp_str_t name, uint32_t window,
                                                 uint32_t rank) {
  const mp_mosaic_func_t *func = mp_mosaic_find_func(k->module, name);
  KERNEL_CHECK(k, func != NULL, "window %u has the index function %.*s, which does not exist",
               window, MP_STR_SHOWN(name, 60));
  const mp_mosaic_type_t *type = func->type;
  bool fits =
      type->num_inputs == k->grid + k->prefetch && type->num_elements - type->num_inputs == rank;
  for (uint32_t i = 0; fits && i < type->num_inputs; ++i)
    fits = mp_mosaic_type_equal(type->elements[i], k->func->type->elements[i]);
  for (uint32_t i = type->num_inputs; fits && i < type->num_elements; ++i)
    fits = mp_mosaic_is_scalar_int(type->elements[i]);
  KERNEL_CHECK(k, fits, "the index function %.*s of window %u does not fit the grid",
               MP_STR_SHOWN(name, 60), window);
  return NULL;
}

static mp_status_t mosaic_verify_kernel_indices(const kernel_t *k, const mp_mosaic_attr_t *indices,
                                                uint32_t window, uint32_t rank) {
  if (indices->kind == MP_MOSAIC_STRING)
    return mosaic_verify_kernel_function(k, indices->str, window, rank);
  KERNEL_CHECK(k, indices->kind == MP_MOSAIC_MAP,
               "transform_indices of window %u is neither a map "
               "nor a function",
               window);
  KERNEL_CHECK(k,
               indices->map->num_dims == k->grid && indices->map->num_symbols == 0 &&
                   indices->map->num_results == rank,
               "the index map of window %u does not fit the grid", window);
  return NULL;
}

// Element windows have two lists of padding.
static mp_status_t mosaic_verify_kernel_kind(const kernel_t *k, const mp_mosaic_attr_t *kind,
                                             uint32_t window, uint32_t rank) {
  if (kind == NULL) return NULL;
  KERNEL_CHECK(k,
               kind->kind == MP_MOSAIC_DIALECT && mp_str_is(kind->str, "tpu.element_window") &&
                   kind->list.count == 2,
               "window_kind of window %u is not known", window);
  for (uint32_t side = 0; side < 2; ++side) {
    mp_mosaic_ints_t padding = {0};
    KERNEL_CHECK(k,
                 mp_mosaic_ints_of(kind->list.items[side].value, &padding) && padding.count == rank,
                 "the padding of window %u does not have a number for each dimension", window);
    for (uint32_t i = 0; i < rank; ++i)
      KERNEL_CHECK(k, mp_mosaic_int_at(padding, i) >= 0, "the padding of window %u is negative",
                   window);
  }
  return NULL;
}

// Window bounds are the shape of the argument, which is one block of the operand.
static mp_status_t mosaic_verify_kernel_window(const kernel_t *k, const mp_mosaic_attr_t *window,
                                               uint32_t i) {
  KERNEL_CHECK(k, window->kind == MP_MOSAIC_DICT, "window %u is not a dictionary", i);
  const mp_mosaic_named_t *items = window->list.items;
  const uint32_t count = window->list.count;
  const mp_mosaic_type_t *type = k->func->type->elements[k->grid + k->prefetch + i];
  KERNEL_CHECK(k, mp_mosaic_is_memref(type), "the argument of window %u is not a memref", i);
  const mp_mosaic_attr_t *indices = mp_mosaic_attr(items, count, "transform_indices");
  const mp_mosaic_attr_t *bounds = mp_mosaic_attr(items, count, "window_bounds");
  const uint32_t rank = type->rank;
  if (bounds != NULL) {
    mp_mosaic_ints_t sizes = {0};
    KERNEL_CHECK(k, mp_mosaic_ints_of(bounds, &sizes) && sizes.count == rank,
                 "window_bounds of window %u does not have a number for each dimension", i);
    for (uint32_t d = 0; d < rank; ++d)
      KERNEL_CHECK(k, mp_mosaic_int_at(sizes, d) == type->dims[d],
                   "window_bounds[%u] of window %u is %lld, the argument has %lld", d, i,
                   (long long)mp_mosaic_int_at(sizes, d), (long long)type->dims[d]);
  }
  MP_RETURN_IF_ERROR(
      mosaic_verify_kernel_kind(k, mp_mosaic_attr(items, count, "window_kind"), i, rank));
  return indices == NULL ? NULL : mosaic_verify_kernel_indices(k, indices, i, rank);
}

static mp_status_t mosaic_verify_kernel_windows(const kernel_t *k) {
  const mp_mosaic_attr_t *windows = mosaic_verify_kernel_attr(k, "window_params");
  if (windows == NULL) return NULL;
  const uint64_t others = (uint64_t)k->grid + k->prefetch + k->scratch;
  KERNEL_CHECK(
      k,
      windows->kind == MP_MOSAIC_ARRAY && windows->list.count + others == k->func->type->num_inputs,
      "window_params do not fit the arguments: %u of %llu others in %u", windows->list.count,
      (unsigned long long)others, k->func->type->num_inputs);
  for (uint32_t i = 0; i < windows->list.count; ++i)
    MP_RETURN_IF_ERROR(mosaic_verify_kernel_window(k, windows->list.items[i].value, i));
  return NULL;
}

mp_status_t mp_mosaic_check_kernel(const mp_mosaic_module_t *module, const mp_mosaic_func_t *func) {
  kernel_t k = {.module = module, .func = func};
  MP_RETURN_IF_ERROR(mosaic_verify_kernel_grid(&k));
  MP_RETURN_IF_ERROR(mosaic_verify_kernel_count(&k, "scalar_prefetch", &k.prefetch));
  MP_RETURN_IF_ERROR(mosaic_verify_kernel_count(&k, "scratch_operands", &k.scratch));
  KERNEL_CHECK(&k, (uint64_t)k.grid + k.prefetch + k.scratch <= func->type->num_inputs,
               "it has fewer arguments than its grid, its scalars and its scratch memory");
  for (uint32_t i = k.grid; i < k.grid + k.prefetch; ++i)
    KERNEL_CHECK(&k, mp_mosaic_is_numbers(func->type->elements[i]),
                 "argument %u, a prefetched scalar, is not a memref", i);
  MP_RETURN_IF_ERROR(mosaic_verify_kernel_semantics(&k));
  return mosaic_verify_kernel_windows(&k);
}
