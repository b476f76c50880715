#include "sim/readers/hlo/hlo_literal.h"

#include <string.h>

enum { FIELD_SHAPE = 1, FIELD_TUPLE = 10, FIELD_SPARSE = 14 };

// The encoding of the elements in the field of their type. FIELD_BYTES: as stored; elements of less
// than a byte may be packed, the first one lowest.
typedef enum { FIELD_BYTES, FIELD_VARINTS, FIELD_FIXED } literal_form_t;

static literal_form_t hlo_literal_form(mp_dtype_t dtype) {
  if (dtype == MP_DTYPE_BOOL) return FIELD_VARINTS;
  if (mp_dtype_size(dtype) < 4) return FIELD_BYTES;
  return mp_dtype_is_integer(dtype) ? FIELD_VARINTS : FIELD_FIXED;
}

// Elements in the order of the literal's own layout.
typedef struct {
  mp_dtype_t dtype;
  size_t size;   // bytes of an element
  size_t count;  // of elements
  size_t units;  // numbers of the field: two for each complex element
  size_t at;     // of the numbers
  char *data;
} elements_t;

static mp_status_t hlo_literal_count_error(const elements_t *e, size_t found) {
  return mp_status_make(MP_INVALID_ARGUMENT, "literal: %zu numbers for %zu elements of %s", found,
                        e->count, mp_dtype_name(e->dtype));
}

static mp_status_t hlo_literal_read_numbers(mp_proto_reader_t *reader,
                                            const mp_proto_field_t *field, mp_proto_wire_t wire,
                                            elements_t *e) {
  const size_t size = e->size * e->count / (e->units == 0 ? 1 : e->units);
  mp_proto_values_t values = mp_proto_values(reader, field, wire);
  for (uint64_t bits = 0; mp_proto_values_next(&values, &bits); ++e->at) {
    if (e->at >= e->units) return hlo_literal_count_error(e, e->at + 1);
    if (e->dtype == MP_DTYPE_BOOL) bits = bits != 0;
    memcpy(e->data + e->at * size, &bits, size);  // the machine is little-endian, as the format
  }
  return NULL;
}

static mp_status_t hlo_literal_read_bytes(mp_str_t bytes, elements_t *e) {
  const int bits = mp_dtype_bits(e->dtype);
  const uint8_t mask = (uint8_t)((1u << (bits < 8 ? bits : 8)) - 1);
  const size_t per_byte = bits == 2 ? 4 : 2;
  if (bytes.size == e->count * e->size) {
    if (bytes.size != 0) memcpy(e->data, bytes.data, bytes.size);
    for (size_t i = 0; bits < 8 && i < e->count; ++i) e->data[i] = (char)(e->data[i] & mask);
  } else if ((bits == 2 || bits == 4) && bytes.size == (e->count + per_byte - 1) / per_byte) {
    for (size_t i = 0; i < e->count; ++i) {
      const unsigned byte = (uint8_t)bytes.data[i / per_byte];
      e->data[i] = (char)(byte >> (i % per_byte * (size_t)bits) & mask);
    }
  } else {
    return mp_status_make(MP_INVALID_ARGUMENT, "literal: %zu bytes for %zu elements of %s",
                          bytes.size, e->count, mp_dtype_name(e->dtype));
  }
  e->at = e->units;
  return NULL;
}

// Reads the fields that hold the elements. The size is trusted only if the message is long enough
// for it.
static mp_status_t hlo_literal_read_elements(mp_hlo_build_t *b, mp_str_t bytes,
                                             const mp_type_t *type, elements_t *e) {
  int64_t count = 0;
  const literal_form_t form = hlo_literal_form(type->dtype);
  if (!mp_type_num_elements(type, &count) || (uint64_t)count > (uint64_t)bytes.size * 4) {
    return mp_status_make(MP_INVALID_ARGUMENT, "literal: the elements of its shape are not in it");
  }
  *e = (elements_t){.dtype = type->dtype, .size = mp_dtype_size(type->dtype)};
  e->count = (size_t)count;
  e->units = mp_dtype_is_complex(type->dtype) ? e->count * 2 : e->count;
  e->data = mp_arena_alloc_array(b->h->source.arena, e->count, e->size);
  MP_RETURN_IF_NULL(e->data);
  mp_proto_wire_t wire = MP_PROTO_VARINT;
  if (form == FIELD_FIXED) {
    wire =
        mp_dtype_size(mp_dtype_real_part(type->dtype)) == 4 ? MP_PROTO_FIXED32 : MP_PROTO_FIXED64;
  }
  mp_proto_reader_t reader = mp_hlo_proto_reader(&b->h->source, bytes, "LiteralProto");
  mp_proto_field_t field;
  const int number = mp_dtype_number(type->dtype, MP_NUMBERS_LITERAL);
  while (mp_proto_next(&reader, &field)) {
    if (field.number == FIELD_SPARSE) {
      return mp_status_make(MP_UNIMPLEMENTED, "literal: sparse literals are not supported");
    }
    if (field.number != (uint32_t)number) continue;
    if (form == FIELD_BYTES) {
      const mp_str_t text = mp_proto_bytes(&reader, &field);
      if (reader.fault == NULL) MP_RETURN_IF_ERROR(hlo_literal_read_bytes(text, e));
    } else {
      MP_RETURN_IF_ERROR(hlo_literal_read_numbers(&reader, &field, wire, e));
    }
  }
  MP_RETURN_IF_ERROR(mp_proto_reader_status(&reader));
  return e->at == e->units ? NULL : hlo_literal_count_error(e, e->at);
}

// Converts elements from the order of the shape's layout to row-major order.
static mp_status_t hlo_literal_reorder(mp_hlo_build_t *b, const mp_hlo_shape_t *shape,
                                       elements_t *e) {
  const uint32_t rank = shape->type->rank;
  const int64_t *dims = shape->type->dims;
  int64_t index[MP_MAX_RANK] = {0}, strides[MP_MAX_RANK], stride = 1;
  if (shape->minor_to_major == NULL || e->count == 0) return NULL;
  char *data = mp_arena_alloc_array(b->h->source.arena, e->count, e->size);
  MP_RETURN_IF_NULL(data);
  for (uint32_t i = 0; i < rank; ++i) {
    strides[shape->minor_to_major[i]] = stride;
    stride *= dims[shape->minor_to_major[i]];
  }
  for (size_t i = 0; i < e->count; ++i) {
    int64_t from = 0;
    for (uint32_t d = 0; d < rank; ++d) from += index[d] * strides[d];
    memcpy(data + i * e->size, e->data + (size_t)from * e->size, e->size);
    for (uint32_t d = rank; d-- > 0 && ++index[d] == dims[d];) index[d] = 0;
  }
  e->data = data;
  return NULL;
}

static mp_status_t hlo_literal_build_leaf(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                          mp_str_t bytes, const mp_hlo_shape_t *shape,
                                          mp_value_t **out_value) {
  elements_t elements;
  if (shape->type->kind == MP_TYPE_TOKEN) {
    return mp_hlo_emit_one(b, inst, MP_OP_AFTER_ALL, NULL, 0, shape->type, NULL, out_value);
  }
  if (shape->is_tiled) {
    return mp_status_make(MP_UNIMPLEMENTED, "literal: a tiled layout is not supported");
  }
  MP_RETURN_IF_ERROR(hlo_literal_read_elements(b, bytes, shape->type, &elements));
  MP_RETURN_IF_ERROR(hlo_literal_reorder(b, shape, &elements));
  return mp_hlo_emit_constant(b, inst, shape->type, elements.data, elements.count * elements.size,
                              false, out_value);
}

typedef struct {
  mp_str_t shape;
  mp_hlo_texts_t elements;
} literal_t;

MP_HLO_MESSAGE(g_literal, "LiteralProto", MP_HLO_FIELD(FIELD_SHAPE, TEXT, literal_t, shape),
               MP_HLO_FIELD(FIELD_TUPLE, TEXTS, literal_t, elements));

// Appends the leaves of a literal of this shape to `out`.
static mp_status_t hlo_literal_build(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, mp_str_t bytes,
                                     const mp_hlo_shape_t *shape, mp_hlo_leaves_t *out) {
  if (shape->type != NULL) {
    MP_RETURN_IF_ERROR(hlo_literal_build_leaf(b, inst, bytes, shape, &out->items[out->count]));
    ++out->count;
    return NULL;
  }
  literal_t literal = {0};
  MP_RETURN_IF_ERROR(mp_hlo_decode(&b->h->source, &g_literal, bytes, &literal));
  if (literal.elements.count != shape->num_elements) {
    return mp_status_make(MP_INVALID_ARGUMENT, "literal: %u tuple_literals for a tuple of %u",
                          literal.elements.count, shape->num_elements);
  }
  for (uint32_t i = 0; i < shape->num_elements; ++i) {
    MP_RETURN_IF_ERROR(
        hlo_literal_build(b, inst, literal.elements.items[i], shape->elements[i], out));
  }
  return NULL;
}

// The literal's own shape has the order of its elements.
mp_status_t mp_hlo_build_literal(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                 mp_hlo_leaves_t *out) {
  literal_t literal = {0};
  const mp_hlo_shape_t *shape = inst->shape;
  if (inst->literal_bytes.data == NULL) {
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT, "literal is missing");
  }
  MP_RETURN_IF_ERROR(mp_hlo_error_at(
      inst, mp_hlo_decode(&b->h->source, &g_literal, inst->literal_bytes, &literal)));
  if (literal.shape.data != NULL) {
    MP_RETURN_IF_ERROR(mp_hlo_error_at(
        inst, mp_status_annotate(
                  mp_hlo_read_shape(&b->h->source, b->h->module->arena, literal.shape, &shape),
                  "literal.shape")));
  }
  MP_RETURN_IF_ERROR(mp_hlo_new_leaves(b->h, shape->num_leaves, out));
  out->count = 0;
  return mp_hlo_error_at(inst, hlo_literal_build(b, inst, inst->literal_bytes, shape, out));
}
