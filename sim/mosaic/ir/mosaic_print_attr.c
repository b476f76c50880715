// Prints attributes, affine maps and types as MLIR does.
#include <inttypes.h>

#include "sim/ir/print/print_parts.h"
#include "sim/mosaic/ir/mosaic_print.h"

// ---- types ----

static void mosaic_print_attr_size(int64_t size, mp_strbuf_t *out) {
  if (size == MP_MOSAIC_DYNAMIC)
    mp_strbuf_putc(out, '?');
  else
    mp_strbuf_printf(out, "%" PRId64, size);
}

static void mosaic_print_attr_layout(const mp_mosaic_type_t *type, mp_strbuf_t *out) {
  static const char *const spaces[] = {
      [MP_MOSAIC_SPACE_ANY] = "any",   [MP_MOSAIC_SPACE_VMEM] = "vmem",
      [MP_MOSAIC_SPACE_SMEM] = "smem", [MP_MOSAIC_SPACE_HBM] = "hbm",
      [MP_MOSAIC_SPACE_CMEM] = "cmem", [MP_MOSAIC_SPACE_SEMAPHORE_MEM] = "semaphore_mem",
      [MP_MOSAIC_SPACE_HOST] = "host", [MP_MOSAIC_SPACE_VMEM_SHARED] = "vmem_shared"};
  if (type->strides != NULL) {
    mp_strbuf_puts(out, ", strided<[");
    for (uint32_t i = 0; i < type->rank; ++i) {
      if (i > 0) mp_strbuf_puts(out, ", ");
      mosaic_print_attr_size(type->strides[i], out);
    }
    mp_strbuf_putc(out, ']');
    if (type->offset != 0) {
      mp_strbuf_puts(out, ", offset: ");
      mosaic_print_attr_size(type->offset, out);
    }
    mp_strbuf_putc(out, '>');
  }
  mp_strbuf_printf(out, ", #tpu.memory_space<%s>", spaces[type->space]);
}

static void mosaic_print_attr_element(const mp_mosaic_type_t *type, mp_strbuf_t *out) {
  static const char *const names[] = {[MP_MOSAIC_SEMAPHORE] = "!tpu.semaphore",
                                      [MP_MOSAIC_DMA_SEMAPHORE] = "!tpu.dma_semaphore",
                                      [MP_MOSAIC_BARRIER_SEMAPHORE] = "!tpu.barrier_semaphore"};
  const bool is_number = type->element == MP_MOSAIC_NUMBER;
  mp_strbuf_puts(out, is_number ? mp_dtype_name(type->dtype) : names[type->element]);
}

static void mosaic_print_attr_types(const mp_mosaic_type_t *const *types, uint32_t count,
                                    mp_strbuf_t *out) {
  mp_strbuf_putc(out, '(');
  for (uint32_t i = 0; i < count; ++i) {
    if (i > 0) mp_strbuf_puts(out, ", ");
    mp_mosaic_type_print(types[i], out);
  }
  mp_strbuf_putc(out, ')');
}

static void mosaic_print_attr_function(const mp_mosaic_type_t *type, mp_strbuf_t *out) {
  const mp_mosaic_type_t *const *results = type->elements + type->num_inputs;
  const uint32_t num_results = type->num_elements - type->num_inputs;
  mosaic_print_attr_types(type->elements, type->num_inputs, out);
  mp_strbuf_puts(out, " -> ");
  if (num_results == 1 && results[0]->kind != MP_MOSAIC_FUNCTION)
    mp_mosaic_type_print(results[0], out);
  else
    mosaic_print_attr_types(results, num_results, out);
}

void mp_mosaic_type_print(const mp_mosaic_type_t *type, mp_strbuf_t *out) {
  if (type->kind == MP_MOSAIC_FUNCTION) {
    mosaic_print_attr_function(type, out);
    return;
  }
  if (type->kind == MP_MOSAIC_SCALAR) {
    mosaic_print_attr_element(type, out);
    return;
  }
  mp_strbuf_puts(out, type->kind == MP_MOSAIC_VECTOR ? "vector<" : "memref<");
  for (uint32_t i = 0; i < type->rank; ++i) {
    mosaic_print_attr_size(type->dims[i], out);
    mp_strbuf_putc(out, 'x');
  }
  mosaic_print_attr_element(type, out);
  if (type->kind == MP_MOSAIC_MEMREF) mosaic_print_attr_layout(type, out);
  mp_strbuf_putc(out, '>');
}

// ---- affine maps ----

static void mosaic_print_attr_expr(const mp_mosaic_affine_t *e, mp_strbuf_t *out) {
  static const char *const marks[] = {[MP_MOSAIC_AFFINE_ADD] = "+",
                                      [MP_MOSAIC_AFFINE_MUL] = "*",
                                      [MP_MOSAIC_AFFINE_MOD] = "mod",
                                      [MP_MOSAIC_AFFINE_FLOORDIV] = "floordiv",
                                      [MP_MOSAIC_AFFINE_CEILDIV] = "ceildiv"};
  if (e->kind == MP_MOSAIC_AFFINE_CONSTANT) {
    mp_strbuf_printf(out, "%" PRId64, e->value);
  } else if (e->kind == MP_MOSAIC_AFFINE_DIM || e->kind == MP_MOSAIC_AFFINE_SYMBOL) {
    mp_strbuf_printf(out, "%c%" PRId64, e->kind == MP_MOSAIC_AFFINE_DIM ? 'd' : 's', e->value);
  } else {
    mp_strbuf_putc(out, '(');
    mosaic_print_attr_expr(e->lhs, out);
    mp_strbuf_printf(out, " %s ", marks[e->kind]);
    mosaic_print_attr_expr(e->rhs, out);
    mp_strbuf_putc(out, ')');
  }
}

static void mosaic_print_attr_map(const mp_mosaic_map_t *map, mp_strbuf_t *out) {
  mp_strbuf_putc(out, '(');
  for (uint32_t i = 0; i < map->num_dims; ++i) mp_strbuf_printf(out, i > 0 ? ", d%u" : "d%u", i);
  mp_strbuf_putc(out, ')');
  if (map->num_symbols > 0) {
    mp_strbuf_putc(out, '[');
    for (uint32_t i = 0; i < map->num_symbols; ++i)
      mp_strbuf_printf(out, i > 0 ? ", s%u" : "s%u", i);
    mp_strbuf_putc(out, ']');
  }
  mp_strbuf_puts(out, " -> (");
  for (uint32_t i = 0; i < map->num_results; ++i) {
    if (i > 0) mp_strbuf_puts(out, ", ");
    mosaic_print_attr_expr(map->results[i], out);
  }
  mp_strbuf_putc(out, ')');
}

// ---- attributes ----

static void mosaic_print_attr_ints(const mp_mosaic_attr_t *attr, mp_strbuf_t *out) {
  mp_strbuf_printf(out, "array<%s", mp_dtype_name(attr->dtype));
  for (uint32_t i = 0; i < attr->ints.count; ++i) {
    mp_strbuf_puts(out, i == 0 ? ": " : ", ");
    if (attr->dtype == MP_DTYPE_BOOL)
      mp_strbuf_puts(out, attr->ints.values[i] != 0 ? "true" : "false");
    else
      mp_strbuf_printf(out, "%" PRId64, attr->ints.values[i]);
  }
  mp_strbuf_putc(out, '>');
}

// Constants are printed as StableHLO's, but for their type.
static void mosaic_print_attr_dense(const mp_mosaic_attr_t *attr, mp_strbuf_t *out) {
  const mp_mosaic_type_t *type = attr->dense.type;
  const mp_type_t tensor = {
      .kind = MP_TYPE_TENSOR, .dtype = type->dtype, .rank = type->rank, .dims = type->dims};
  int64_t count = 0;
  (void)mp_mosaic_num_elements(type, &count);  // constants have a size
  mp_attr_t plain = {.kind = MP_KIND_DENSE};
  plain.u.dense.type = &tensor;
  plain.u.dense.data = attr->dense.data;
  plain.u.dense.splat = attr->dense.splat;
  plain.u.dense.size = (attr->dense.splat ? 1 : (size_t)count) * mp_dtype_size(type->dtype);
  mp_print_elements(&plain, 0, out);
  mp_strbuf_puts(out, " : ");
  mp_mosaic_type_print(type, out);
}

// Whether a text within an attribute of a dialect reads as a text without quotes.
static bool mosaic_print_attr_is_word(mp_str_t text) {
  static const char *const others[] = {"true",   "false",  "array", "dense",
                                       "vector", "memref", "tensor"};
  for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); ++i)
    if (mp_str_is(text, others[i])) return false;
  for (size_t i = 0; i < text.size; ++i) {
    const char c = text.data[i];
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!is_letter && (i == 0 || !((c >= '0' && c <= '9') || c == '.' || c == '$'))) return false;
  }
  return text.size > 0 && mp_dtype_from_name(text) == MP_DTYPE_INVALID;
}

static void mosaic_print_attr_items(const mp_mosaic_attr_t *attr, bool words, mp_strbuf_t *out);

static void mosaic_print_attr_part(const mp_mosaic_attr_t *attr, bool words, mp_strbuf_t *out) {
  if (attr->kind == MP_MOSAIC_STRING && words && mosaic_print_attr_is_word(attr->str)) {
    mp_strbuf_append(out, attr->str.data, attr->str.size);
  } else if (attr->kind == MP_MOSAIC_INT && attr->dtype == MP_DTYPE_S64) {
    mp_strbuf_printf(out, "%" PRId64, attr->i64);
  } else if (attr->kind == MP_MOSAIC_ARRAY) {
    mp_strbuf_putc(out, '[');
    mosaic_print_attr_items(attr, words, out);
    mp_strbuf_putc(out, ']');
  } else {
    mp_mosaic_print_attr(attr, out);
  }
}

static void mosaic_print_attr_items(const mp_mosaic_attr_t *attr, bool words, mp_strbuf_t *out) {
  for (uint32_t i = 0; i < attr->list.count; ++i) {
    const mp_mosaic_named_t *item = &attr->list.items[i];
    if (i > 0) mp_strbuf_puts(out, ", ");
    if (item->name.size > 0) mp_strbuf_printf(out, "%.*s = ", MP_STR_ARG(item->name));
    mosaic_print_attr_part(item->value, words, out);
  }
}

static void mosaic_print_attr_dialect(const mp_mosaic_attr_t *attr, mp_strbuf_t *out) {
  if (mp_str_is(attr->str, "builtin.strided")) {
    mp_strbuf_puts(out, "strided<[");
    for (uint32_t i = 0; i + 1 < attr->ints.count; ++i) {
      if (i > 0) mp_strbuf_puts(out, ", ");
      mosaic_print_attr_size(attr->ints.values[i], out);
    }
    mp_strbuf_puts(out, "], offset: ");
    mosaic_print_attr_size(attr->ints.values[attr->ints.count - 1], out);
    mp_strbuf_putc(out, '>');
    return;
  }
  mp_strbuf_printf(out, "#%.*s", MP_STR_ARG(attr->str));
  if (attr->list.count == 0) return;
  mp_strbuf_putc(out, '<');
  mosaic_print_attr_items(attr, true, out);
  mp_strbuf_putc(out, '>');
}

void mp_mosaic_print_attr(const mp_mosaic_attr_t *attr, mp_strbuf_t *out) {
  switch (attr->kind) {
    case MP_MOSAIC_UNIT:
      mp_strbuf_puts(out, "unit");
      break;
    case MP_MOSAIC_BOOL:
      mp_strbuf_puts(out, attr->i64 != 0 ? "true" : "false");
      break;
    case MP_MOSAIC_INT:
      mp_strbuf_printf(out, "%" PRId64 " : %s", attr->i64, mp_dtype_name(attr->dtype));
      break;
    case MP_MOSAIC_FLOAT:
      mp_print_float(attr->dtype, attr->f64, out);
      mp_strbuf_printf(out, " : %s", mp_dtype_name(attr->dtype));
      break;
    case MP_MOSAIC_STRING:
      mp_print_quoted(attr->str, out);
      break;
    case MP_MOSAIC_INTS:
      mosaic_print_attr_ints(attr, out);
      break;
    case MP_MOSAIC_DENSE:
      mosaic_print_attr_dense(attr, out);
      break;
    case MP_MOSAIC_TYPE:
      mp_mosaic_type_print(attr->type, out);
      break;
    case MP_MOSAIC_ARRAY:
      mosaic_print_attr_part(attr, false, out);
      break;
    case MP_MOSAIC_DICT:
      mp_strbuf_puts(out, attr->list.count == 0 ? "{}" : "");
      mp_mosaic_print_attrs(attr->list.items, attr->list.count, out);
      break;
    case MP_MOSAIC_MAP:
      mp_strbuf_puts(out, "affine_map<");
      mosaic_print_attr_map(attr->map, out);
      mp_strbuf_putc(out, '>');
      break;
    case MP_MOSAIC_LOC:
      mp_strbuf_puts(out, "loc(");
      mp_loc_describe(attr->loc, out);
      mp_strbuf_putc(out, ')');
      break;
    case MP_MOSAIC_DIALECT:
      mosaic_print_attr_dialect(attr, out);
      break;
  }
}

void mp_mosaic_print_attrs(const mp_mosaic_named_t *items, uint32_t count, mp_strbuf_t *out) {
  if (count == 0) return;
  mp_strbuf_putc(out, '{');
  for (uint32_t i = 0; i < count; ++i) {
    if (i > 0) mp_strbuf_puts(out, ", ");
    mp_print_name(items[i].name, out);
    if (items[i].value->kind == MP_MOSAIC_UNIT) continue;
    mp_strbuf_puts(out, " = ");
    mp_mosaic_print_attr(items[i].value, out);
  }
  mp_strbuf_putc(out, '}');
}
