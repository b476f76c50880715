#include "sim/readers/hlo/message/hlo_shape.h"

#include "sim/ir/layout.h"

enum { MAX_TUPLE_DEPTH = 64, TYPE_TUPLE = 13, TYPE_TOKEN = 17 };

typedef struct {
  mp_hlo_ints_t minor_to_major;
  mp_hlo_texts_t tiles, physical_shape;
  int64_t memory_space;
} layout_t;

MP_HLO_MESSAGE(g_layout, "LayoutProto", MP_HLO_FIELD(1, INTS, layout_t, minor_to_major),
               MP_HLO_FIELD(6, TEXTS, layout_t, tiles),
               MP_HLO_FIELD(8, INT, layout_t, memory_space),
               MP_HLO_FIELD(10, TEXTS, layout_t, physical_shape));

typedef struct {
  int64_t element_type;
  mp_hlo_ints_t dimensions, is_dynamic;
  mp_hlo_texts_t tuple_shapes;
  mp_str_t layout;
} shape_proto_t;

MP_HLO_MESSAGE(g_shape, "ShapeProto", MP_HLO_FIELD(2, INT, shape_proto_t, element_type),
               MP_HLO_FIELD(3, INTS, shape_proto_t, dimensions),
               MP_HLO_FIELD(4, TEXTS, shape_proto_t, tuple_shapes),
               MP_HLO_FIELD(5, TEXT, shape_proto_t, layout),
               MP_HLO_FIELD(6, INTS, shape_proto_t, is_dynamic));

typedef struct {
  const mp_hlo_source_t *source;
  mp_arena_t *types;
} shape_reader_t;

static mp_status_t hlo_shape_read_layout(shape_reader_t *r, mp_str_t bytes, mp_hlo_shape_t *shape) {
  layout_t layout = {0};
  const uint32_t rank = shape->type->rank;
  MP_RETURN_IF_ERROR(
      mp_status_annotate(mp_hlo_decode(r->source, &g_layout, bytes, &layout), "layout"));
  shape->memory_space = layout.memory_space;
  shape->is_tiled = layout.tiles.count != 0 || layout.physical_shape.count != 0;
  if (layout.minor_to_major.count == 0) return NULL;
  uint64_t seen = 0;
  bool is_order = layout.minor_to_major.count == rank;
  for (uint32_t i = 0; is_order && i < rank; ++i) {
    const int64_t dim = layout.minor_to_major.items[i];
    is_order = dim >= 0 && dim < rank && (seen >> dim & 1) == 0;
    if (is_order) seen |= UINT64_C(1) << dim;
  }
  if (!is_order) {
    return mp_status_make(MP_INVALID_ARGUMENT, "layout.minor_to_major: no order of %u dimensions",
                          rank);
  }
  if (!mp_layout_is_row_major(layout.minor_to_major.items, rank)) {
    shape->minor_to_major = layout.minor_to_major.items;
  }
  return NULL;
}

static mp_status_t hlo_shape_read_array(shape_reader_t *r, const shape_proto_t *proto,
                                        mp_dtype_t dtype, mp_hlo_shape_t *shape) {
  if (proto->dimensions.count > MP_MAX_RANK) {
    return mp_status_make(MP_UNIMPLEMENTED, "dimensions: %u of them; %d are supported",
                          proto->dimensions.count, MP_MAX_RANK);
  }
  for (uint32_t i = 0; i < proto->dimensions.count; ++i) {
    const int64_t dim = proto->dimensions.items[i];
    if ((i < proto->is_dynamic.count && proto->is_dynamic.items[i] != 0) || dim == INT64_MIN) {
      return mp_status_make(MP_UNIMPLEMENTED,
                            "is_dynamic_dimension[%u]: dynamic dimensions are not supported", i);
    }
    if (dim < 0) {
      return mp_status_make(MP_INVALID_ARGUMENT, "dimensions[%u] is %lld", i, (long long)dim);
    }
  }
  MP_RETURN_IF_ERROR(mp_type_tensor(r->types, dtype, proto->dimensions.items,
                                    proto->dimensions.count, &shape->type));
  return hlo_shape_read_layout(r, proto->layout, shape);
}

static mp_status_t hlo_shape_read(shape_reader_t *r, mp_str_t bytes, int depth,
                                  mp_hlo_shape_t **out_shape);

static mp_status_t hlo_shape_read_tuple(shape_reader_t *r, const shape_proto_t *proto, int depth,
                                        mp_hlo_shape_t *shape) {
  mp_arena_t *arena = r->source->arena;
  if (depth >= MAX_TUPLE_DEPTH) {
    return mp_status_make(MP_INVALID_ARGUMENT, "tuples are nested more than %d deep",
                          MAX_TUPLE_DEPTH);
  }
  shape->num_elements = proto->tuple_shapes.count;
  shape->elements = MP_ARENA_ARRAY(arena, const mp_hlo_shape_t *, shape->num_elements);
  MP_RETURN_IF_NULL(shape->elements);
  for (uint32_t i = 0; i < shape->num_elements; ++i) {
    mp_hlo_shape_t *element = NULL;
    MP_RETURN_IF_ERROR(
        mp_status_annotate(hlo_shape_read(r, proto->tuple_shapes.items[i], depth + 1, &element),
                           "tuple_shapes[%u]", i));
    shape->elements[i] = element;
    shape->num_leaves += element->num_leaves;  // each takes bytes of the message
  }
  shape->leaves = MP_ARENA_ARRAY(arena, const mp_hlo_shape_t *, shape->num_leaves);
  shape->types = MP_ARENA_ARRAY(arena, const mp_type_t *, shape->num_leaves);
  if (shape->leaves == NULL || shape->types == NULL) return mp_status_out_of_memory();
  uint32_t count = 0;
  for (uint32_t i = 0; i < shape->num_elements; ++i) {
    for (uint32_t k = 0; k < shape->elements[i]->num_leaves; ++k) {
      shape->leaves[count] = shape->elements[i]->leaves[k];
      shape->types[count++] = shape->elements[i]->types[k];
    }
  }
  return NULL;
}

// A shape that is no tuple is its only leaf.
static mp_status_t hlo_shape_make_leaf(shape_reader_t *r, mp_hlo_shape_t *shape) {
  shape->num_leaves = 1;
  shape->leaves = MP_ARENA_NEW(r->source->arena, const mp_hlo_shape_t *);
  shape->types = MP_ARENA_NEW(r->source->arena, const mp_type_t *);
  if (shape->leaves == NULL || shape->types == NULL) return mp_status_out_of_memory();
  shape->leaves[0] = shape;
  shape->types[0] = shape->type;
  return NULL;
}

static mp_status_t hlo_shape_read(shape_reader_t *r, mp_str_t bytes, int depth,
                                  mp_hlo_shape_t **out_shape) {
  shape_proto_t proto = {0};
  mp_hlo_shape_t *shape = MP_ARENA_NEW(r->source->arena, mp_hlo_shape_t);
  MP_RETURN_IF_NULL(shape);
  MP_RETURN_IF_ERROR(mp_hlo_decode(r->source, &g_shape, bytes, &proto));
  *out_shape = shape;
  if (proto.element_type == TYPE_TUPLE) return hlo_shape_read_tuple(r, &proto, depth, shape);
  if (proto.element_type == TYPE_TOKEN) {
    shape->type = mp_type_token();
    return hlo_shape_make_leaf(r, shape);
  }
  const uint64_t number = (uint64_t)proto.element_type;
  const mp_dtype_t dtype = mp_dtype_from_number(MP_NUMBERS_XLA, number);
  if (dtype == MP_DTYPE_INVALID) {
    return mp_status_make(
        number == 0 ? MP_INVALID_ARGUMENT : MP_UNIMPLEMENTED,
        number == 0 ? "element_type is missing" : "element_type %lld is not supported",
        (long long)proto.element_type);
  }
  MP_RETURN_IF_ERROR(hlo_shape_read_array(r, &proto, dtype, shape));
  return hlo_shape_make_leaf(r, shape);
}

mp_status_t mp_hlo_read_shape(const mp_hlo_source_t *source, mp_arena_t *types, mp_str_t bytes,
                              const mp_hlo_shape_t **out_shape) {
  shape_reader_t r = {source, types};
  mp_hlo_shape_t *shape = NULL;
  MP_RETURN_IF_ERROR(hlo_shape_read(&r, bytes, 0, &shape));
  *out_shape = shape;
  return NULL;
}

typedef struct {
  mp_hlo_texts_t params, result;
} program_shape_t;

MP_HLO_MESSAGE(g_program_shape, "ProgramShapeProto",
               MP_HLO_FIELD(1, TEXTS, program_shape_t, params),
               MP_HLO_FIELD(2, TEXTS, program_shape_t, result));

mp_status_t mp_hlo_read_program_shape(const mp_hlo_source_t *source, mp_arena_t *types,
                                      mp_str_t bytes, mp_hlo_program_shape_t *out_shape) {
  program_shape_t proto = {0};
  mp_hlo_program_shape_t shape = {0};
  MP_RETURN_IF_ERROR(mp_hlo_decode(source, &g_program_shape, bytes, &proto));
  shape.num_params = proto.params.count;
  shape.params = MP_ARENA_ARRAY(source->arena, const mp_hlo_shape_t *, shape.num_params);
  MP_RETURN_IF_NULL(shape.params);
  for (uint32_t i = 0; i < shape.num_params; ++i) {
    MP_RETURN_IF_ERROR(mp_status_annotate(
        mp_hlo_read_shape(source, types, proto.params.items[i], &shape.params[i]), "parameters[%u]",
        i));
  }
  if (proto.result.count != 0) {
    MP_RETURN_IF_ERROR(mp_status_annotate(
        mp_hlo_read_shape(source, types, proto.result.items[proto.result.count - 1], &shape.result),
        "result"));
  }
  *out_shape = shape;
  return NULL;
}
