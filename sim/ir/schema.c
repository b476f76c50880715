#include "sim/ir/schema.h"

#define KIND(name) (1u << MP_KIND_##name)

// ---- the table; one macro per kind of attribute ----

#define ROW(attr, kind_bits, absent, ...) \
  { .name = MP_ATTR_##attr, .kinds = (kind_bits), .when_absent = MP_DEFAULT_##absent, __VA_ARGS__ }
#define I64(attr, absent)                 ROW(attr, KIND(INT), absent, .dtype = MP_DTYPE_S64)
#define I32(attr, absent)                 ROW(attr, KIND(INT), absent, .dtype = MP_DTYPE_S32)
#define F32(attr, absent)                 ROW(attr, KIND(FLOAT), absent, .dtype = MP_DTYPE_F32)
#define ENUM(attr, which, absent)         ROW(attr, KIND(ENUM), absent, .enum_kind = MP_ENUM_##which)
#define SYMBOL(attr, absent)              ROW(attr, KIND(STRING), absent, .is_symbol = true)
#define SYMBOLS(attr, absent)             ROW(attr, KIND(ARRAY), absent, .is_symbol = true)
#define OF_KINDS(attr, kind_bits, absent) ROW(attr, kind_bits, absent, .is_symbol = false)
#define BOOL(attr, absent)                OF_KINDS(attr, KIND(BOOL), absent)
#define STRING(attr, absent)              OF_KINDS(attr, KIND(STRING), absent)
#define INTS(attr, absent)                OF_KINDS(attr, KIND(INTS), absent)
#define BOOLS(attr, absent)               OF_KINDS(attr, KIND(BOOLS), absent)

#define PRECISIONS   ROW(PRECISION_CONFIG, KIND(ARRAY), PRECISION, .enum_kind = MP_ENUM_PRECISION)
#define GROUPS       OF_KINDS(REPLICA_GROUPS, KIND(INTS) | KIND(MESH_GROUPS), REQUIRED)
#define ACCURACY     OF_KINDS(RESULT_ACCURACY, KIND(RESULT_ACCURACY), ZERO)
#define OUT_SHARDING OF_KINDS(OUT_SHARDING, KIND(SHARDING), REQUIRED)

#define ATTRS(code, ...)                                                          \
  [MP_OP_##code] = {                                                              \
      sizeof((const mp_schema_attr_t[]){__VA_ARGS__}) / sizeof(mp_schema_attr_t), \
      (const mp_schema_attr_t[]){__VA_ARGS__},                                    \
  }

#define CONVOLUTION_NUMBERS                                                                  \
  I64(INPUT_BATCH_DIMENSION, REQUIRED), I64(INPUT_FEATURE_DIMENSION, REQUIRED),              \
      INTS(INPUT_SPATIAL_DIMENSIONS, ZERO), I64(KERNEL_INPUT_FEATURE_DIMENSION, REQUIRED),   \
      I64(KERNEL_OUTPUT_FEATURE_DIMENSION, REQUIRED), INTS(KERNEL_SPATIAL_DIMENSIONS, ZERO), \
      INTS(LHS_DILATION, ONES), I64(OUTPUT_BATCH_DIMENSION, REQUIRED),                       \
      I64(OUTPUT_FEATURE_DIMENSION, REQUIRED), INTS(OUTPUT_SPATIAL_DIMENSIONS, ZERO)

// clang-format off
static const mp_schema_t schemas[MP_OP_COUNT] = {
    ATTRS(ALL_GATHER, I64(ALL_GATHER_DIM, REQUIRED), I64(CHANNEL_ID, ZERO), GROUPS,
          BOOL(USE_GLOBAL_DEVICE_IDS, ZERO)),
    ATTRS(ALL_REDUCE, I64(CHANNEL_ID, ZERO), GROUPS, BOOL(USE_GLOBAL_DEVICE_IDS, ZERO)),
    ATTRS(ALL_TO_ALL, I64(CHANNEL_ID, ZERO), I64(CONCAT_DIMENSION, REQUIRED), GROUPS,
          I64(SPLIT_COUNT, REQUIRED), I64(SPLIT_DIMENSION, REQUIRED)),
    ATTRS(BATCH_NORM_GRAD, F32(EPSILON, REQUIRED), I64(FEATURE_INDEX, REQUIRED)),
    ATTRS(BATCH_NORM_INFERENCE, F32(EPSILON, REQUIRED), I64(FEATURE_INDEX, REQUIRED)),
    ATTRS(BATCH_NORM_TRAINING, F32(EPSILON, REQUIRED), I64(FEATURE_INDEX, REQUIRED)),
    ATTRS(BROADCAST, INTS(BROADCAST_SIZES, REQUIRED)),
    ATTRS(BROADCAST_IN_DIM, INTS(BROADCAST_DIMENSIONS, REQUIRED)),
    ATTRS(CBRT, ACCURACY),
    ATTRS(CHOLESKY, BOOL(LOWER, ZERO)),
    ATTRS(COLLECTIVE_BROADCAST, I64(CHANNEL_ID, ZERO), BOOL(HAS_DYNAMIC_ROOT, ZERO), GROUPS),
    ATTRS(COLLECTIVE_PERMUTE, I64(CHANNEL_ID, ZERO), INTS(SOURCE_TARGET_PAIRS, REQUIRED)),
    ATTRS(COLLECTIVE_REDUCE, I64(CHANNEL_ID, ZERO), BOOL(HAS_DYNAMIC_ROOT, ZERO), GROUPS,
          BOOL(USE_GLOBAL_DEVICE_IDS, ZERO)),
    ATTRS(COMPARE, ENUM(COMPARE_TYPE, COMPARISON_TYPE, ZERO),
          ENUM(COMPARISON_DIRECTION, COMPARISON_DIRECTION, REQUIRED)),
    ATTRS(COMPOSITE, OF_KINDS(COMPOSITE_ATTRIBUTES, KIND(DICT), ZERO),
          SYMBOL(DECOMPOSITION, REQUIRED), STRING(NAME, REQUIRED), I32(VERSION, ZERO)),
    ATTRS(CONCATENATE, I64(DIMENSION, REQUIRED)),
    ATTRS(CONSTANT, OF_KINDS(VALUE, KIND(DENSE), REQUIRED)),
    ATTRS(CONVOLUTION, I64(BATCH_GROUP_COUNT, ONE), I64(FEATURE_GROUP_COUNT, ONE),
          CONVOLUTION_NUMBERS, INTS(PADDING, NO_PADDING), PRECISIONS, INTS(RHS_DILATION, ONES),
          BOOLS(WINDOW_REVERSAL, ZEROS), INTS(WINDOW_STRIDES, ONES)),
    ATTRS(COSINE, ACCURACY),
    ATTRS(CROSS_REPLICA_SUM, GROUPS),
    ATTRS(CUSTOM_CALL, ENUM(API_VERSION, API_VERSION, ONE),
          OF_KINDS(BACKEND_CONFIG, KIND(STRING) | KIND(DICT), ZERO),
          STRING(CALL_TARGET_NAME, REQUIRED), SYMBOLS(CALLED_COMPUTATIONS, ZERO),
          BOOL(HAS_SIDE_EFFECT, ZERO), OF_KINDS(OPERAND_LAYOUTS, KIND(ARRAY), ZERO),
          OF_KINDS(OUTPUT_OPERAND_ALIASES, KIND(ARRAY), ZERO),
          OF_KINDS(RESULT_LAYOUTS, KIND(ARRAY), ZERO),
          OF_KINDS(RESULT_TILINGS, KIND(ARRAY), ABSENT)),
    ATTRS(DOT, PRECISIONS),
    ATTRS(DOT_GENERAL, OF_KINDS(ACCUMULATION_TYPE, KIND(TYPE), ABSENT),
          BOOL(ALLOW_IMPRECISE_ACCUMULATION, ABSENT), INTS(LHS_BATCHING_DIMENSIONS, ZERO),
          I64(LHS_COMPONENT_COUNT, ABSENT), INTS(LHS_CONTRACTING_DIMENSIONS, ZERO),
          OF_KINDS(LHS_PRECISION_TYPE, KIND(TYPE), ABSENT),
          I64(NUM_PRIMITIVE_OPERATIONS, ABSENT), PRECISIONS, INTS(RHS_BATCHING_DIMENSIONS, ZERO),
          I64(RHS_COMPONENT_COUNT, ABSENT), INTS(RHS_CONTRACTING_DIMENSIONS, ZERO),
          OF_KINDS(RHS_PRECISION_TYPE, KIND(TYPE), ABSENT)),
    ATTRS(DYNAMIC_BROADCAST_IN_DIM, INTS(BROADCAST_DIMENSIONS, REQUIRED),
          INTS(KNOWN_EXPANDING_DIMENSIONS, ZERO), INTS(KNOWN_NONEXPANDING_DIMENSIONS, ZERO)),
    ATTRS(DYNAMIC_CONV, I64(BATCH_GROUP_COUNT, ONE), I64(FEATURE_GROUP_COUNT, ONE),
          CONVOLUTION_NUMBERS, PRECISIONS, INTS(RHS_DILATION, ONES),
          BOOLS(WINDOW_REVERSAL, ZEROS), INTS(WINDOW_STRIDES, ONES)),
    ATTRS(DYNAMIC_GATHER, INTS(COLLAPSED_SLICE_DIMS, ZERO), I64(INDEX_VECTOR_DIM, ZERO),
          BOOL(INDICES_ARE_SORTED, ZERO), INTS(OFFSET_DIMS, ZERO),
          INTS(OPERAND_BATCHING_DIMS, ZERO), INTS(START_INDEX_MAP, ZERO),
          INTS(START_INDICES_BATCHING_DIMS, ZERO)),
    ATTRS(DYNAMIC_IOTA, I64(IOTA_DIMENSION, REQUIRED)),
    ATTRS(DYNAMIC_SLICE, INTS(SLICE_SIZES, REQUIRED)),
    ATTRS(EINSUM, STRING(EINSUM_CONFIG, REQUIRED)),
    ATTRS(EXPONENTIAL, ACCURACY),
    ATTRS(EXPONENTIAL_MINUS_ONE, ACCURACY),
    ATTRS(FFT, INTS(FFT_LENGTH, REQUIRED), ENUM(FFT_TYPE, FFT_TYPE, REQUIRED), I64(KEPT, ABSENT)),
    ATTRS(GATHER, INTS(COLLAPSED_SLICE_DIMS, ZERO), I64(INDEX_VECTOR_DIM, ZERO),
          BOOL(INDICES_ARE_SORTED, ZERO), INTS(OFFSET_DIMS, ZERO),
          INTS(OPERAND_BATCHING_DIMS, ZERO), INTS(SLICE_SIZES, REQUIRED),
          INTS(START_INDEX_MAP, ZERO), INTS(START_INDICES_BATCHING_DIMS, ZERO)),
    ATTRS(GET_DIMENSION_SIZE, I64(DIMENSION, REQUIRED)),
    ATTRS(GET_TUPLE_ELEMENT, I32(INDEX, REQUIRED)),
    ATTRS(INFEED, STRING(INFEED_CONFIG, ZERO), OF_KINDS(LAYOUT, KIND(ARRAY), ZERO)),
    ATTRS(IOTA, I64(IOTA_DIMENSION, REQUIRED)),
    ATTRS(LOG, ACCURACY),
    ATTRS(LOG_PLUS_ONE, ACCURACY),
    ATTRS(LOGISTIC, ACCURACY),
    ATTRS(MAP, INTS(DIMENSIONS, REQUIRED)),
    ATTRS(OUTFEED, STRING(OUTFEED_CONFIG, ZERO)),
    ATTRS(PAD, INTS(EDGE_PADDING_HIGH, REQUIRED), INTS(EDGE_PADDING_LOW, REQUIRED),
          INTS(INTERIOR_PADDING, REQUIRED)),
    ATTRS(RECV, I64(CHANNEL_ID, REQUIRED), I64(CHANNEL_TYPE, REQUIRED),
          BOOL(IS_HOST_TRANSFER, ZERO), INTS(SOURCE_TARGET_PAIRS, ABSENT)),
    ATTRS(REDUCE, INTS(DIMENSIONS, REQUIRED)),
    ATTRS(REDUCE_PRECISION, I32(EXPONENT_BITS, REQUIRED), I32(MANTISSA_BITS, REQUIRED)),
    ATTRS(REDUCE_SCATTER, I64(CHANNEL_ID, ZERO), GROUPS, I64(SCATTER_DIMENSION, REQUIRED),
          BOOL(USE_GLOBAL_DEVICE_IDS, ZERO)),
    ATTRS(REDUCE_WINDOW, INTS(BASE_DILATIONS, ONES), INTS(PADDING, NO_PADDING),
          INTS(WINDOW_DILATIONS, ONES), INTS(WINDOW_DIMENSIONS, REQUIRED),
          INTS(WINDOW_STRIDES, ONES)),
    ATTRS(REVERSE, INTS(DIMENSIONS, REQUIRED)),
    ATTRS(RNG, ENUM(RNG_DISTRIBUTION, RNG_DISTRIBUTION, REQUIRED)),
    ATTRS(RNG_BIT_GENERATOR, ENUM(RNG_ALGORITHM, RNG_ALGORITHM, REQUIRED)),
    ATTRS(RSQRT, ACCURACY),
    ATTRS(SCATTER, I64(INDEX_VECTOR_DIM, ZERO), BOOL(INDICES_ARE_SORTED, ZERO),
          INTS(INPUT_BATCHING_DIMS, ZERO), INTS(INSERTED_WINDOW_DIMS, ZERO),
          INTS(SCATTER_DIMS_TO_OPERAND_DIMS, ZERO), INTS(SCATTER_INDICES_BATCHING_DIMS, ZERO),
          BOOL(UNIQUE_INDICES, ZERO), INTS(UPDATE_WINDOW_DIMS, ZERO)),
    ATTRS(SELECT_AND_SCATTER, INTS(PADDING, NO_PADDING), INTS(WINDOW_DIMENSIONS, REQUIRED),
          INTS(WINDOW_STRIDES, ONES)),
    ATTRS(SEND, I64(CHANNEL_ID, REQUIRED), I64(CHANNEL_TYPE, REQUIRED),
          BOOL(IS_HOST_TRANSFER, ZERO), INTS(SOURCE_TARGET_PAIRS, ABSENT)),
    ATTRS(SET_DIMENSION_SIZE, I64(DIMENSION, REQUIRED)),
    ATTRS(SINE, ACCURACY),
    ATTRS(SLICE, INTS(LIMIT_INDICES, REQUIRED), INTS(START_INDICES, REQUIRED),
          INTS(STRIDES, REQUIRED)),
    ATTRS(SORT, I64(DIMENSION, MINUS_ONE), BOOL(IS_STABLE, ZERO), I64(FIRST, ABSENT)),
    ATTRS(SQRT, ACCURACY),
    ATTRS(TAN, ACCURACY),
    ATTRS(TANH, ACCURACY),
    ATTRS(TORCH_INDEX_SELECT, I64(BATCH_DIMS, REQUIRED), I64(DIM, REQUIRED)),
    ATTRS(TRANSPOSE, INTS(PERMUTATION, REQUIRED)),
    ATTRS(TRIANGULAR_SOLVE, BOOL(LEFT_SIDE, REQUIRED), BOOL(LOWER, REQUIRED),
          ENUM(TRANSPOSE_A, TRANSPOSE, REQUIRED), BOOL(UNIT_DIAGONAL, REQUIRED)),
    ATTRS(UNARY_EINSUM, STRING(EINSUM_CONFIG, REQUIRED)),
    ATTRS(CALL, SYMBOL(CALLEE, REQUIRED)),
    ATTRS(SDY_ALL_GATHER, OF_KINDS(GATHERING_AXES, KIND(AXES_LISTS), REQUIRED), OUT_SHARDING),
    ATTRS(SDY_ALL_REDUCE, OUT_SHARDING, OF_KINDS(REDUCTION_AXES, KIND(AXES), REQUIRED)),
    ATTRS(SDY_ALL_SLICE, OUT_SHARDING, OF_KINDS(SLICING_AXES, KIND(AXES_LISTS), REQUIRED)),
    ATTRS(SDY_ALL_TO_ALL, OUT_SHARDING, OF_KINDS(PARAMS, KIND(ALL_TO_ALL_PARAMS), REQUIRED)),
    ATTRS(SDY_COLLECTIVE_PERMUTE, OUT_SHARDING),
    ATTRS(SDY_CONSTANT, OF_KINDS(VALUE, KIND(DENSE), REQUIRED)),
    ATTRS(SDY_DATA_FLOW_EDGE, OF_KINDS(SHARDING, KIND(SHARDING), ABSENT)),
    ATTRS(SDY_MANUAL_COMPUTATION, OF_KINDS(IN_SHARDINGS, KIND(SHARDINGS), REQUIRED),
          OF_KINDS(MANUAL_AXES, KIND(AXES), REQUIRED),
          OF_KINDS(OUT_SHARDINGS, KIND(SHARDINGS), REQUIRED)),
    ATTRS(SDY_NAMED_COMPUTATION, OF_KINDS(IN_SHARDINGS, KIND(SHARDINGS), ABSENT),
          STRING(NAME, REQUIRED), OF_KINDS(OUT_SHARDINGS, KIND(SHARDINGS), ABSENT)),
    ATTRS(SDY_PROPAGATION_BARRIER, I32(ALLOWED_DIRECTION, REQUIRED)),
    ATTRS(SDY_REDUCE_SCATTER, OUT_SHARDING,
          OF_KINDS(REDUCE_SCATTER_AXES, KIND(AXES_LISTS), REQUIRED)),
    ATTRS(SDY_REPLICATED_TO_UNREDUCED, OF_KINDS(AXES, KIND(AXES), REQUIRED), OUT_SHARDING),
    ATTRS(SDY_RESHARD, OF_KINDS(SHARDING, KIND(SHARDING), REQUIRED)),
    ATTRS(SDY_SHARDED_TO_UNREDUCED, OF_KINDS(AXES, KIND(AXES_LISTS), REQUIRED), OUT_SHARDING),
    ATTRS(SDY_SHARDING_CONSTRAINT, OF_KINDS(SHARDING, KIND(SHARDING), REQUIRED)),
    ATTRS(SDY_SHARDING_GROUP, I64(GROUP_ID, REQUIRED)),
    ATTRS(EXCHANGE, OF_KINDS(SOURCE, KIND(BOXES), REQUIRED),
          OF_KINDS(TARGET, KIND(BOXES), REQUIRED)),
};
// clang-format on
// Most ops have no attributes and no row, so a forgotten row cannot be distinguished from those.
_Static_assert(MP_OP_COUNT == 137, "a new op: write its attributes above, if it has any");

mp_schema_t mp_schema_of(mp_opcode_t code) {
  return schemas[code];
}

const mp_schema_attr_t *mp_schema_find(mp_opcode_t code, mp_attr_name_t name) {
  if (name == MP_ATTR_OTHER) return NULL;
  for (uint32_t i = 0; i < schemas[code].count; ++i)
    if (schemas[code].attrs[i].name == name) return &schemas[code].attrs[i];
  return NULL;
}

// ---- defaults ----

static const mp_attr_t *schema_find(const mp_named_attr_t *attrs, uint32_t count,
                                    mp_attr_name_t name) {
  for (uint32_t i = 0; i < count; ++i)
    if (attrs[i].name == name) return attrs[i].value;
  return NULL;
}

// The number of dimensions of the op's window, from the attribute of the op that is always given.
static size_t schema_window_rank(mp_opcode_t code, const mp_named_attr_t *attrs, uint32_t count) {
  bool convolution = code == MP_OP_CONVOLUTION || code == MP_OP_DYNAMIC_CONV;
  const mp_attr_t *dims = schema_find(
      attrs, count, convolution ? MP_ATTR_INPUT_SPATIAL_DIMENSIONS : MP_ATTR_WINDOW_DIMENSIONS);
  return dims != NULL && dims->kind == MP_KIND_INTS ? dims->u.ints.count : 0;
}

static mp_status_t schema_make_filled(mp_arena_t *arena, mp_attr_kind_t kind, int64_t value,
                                      size_t count, mp_attr_t *attr) {
  int64_t *values = MP_ARENA_ARRAY(arena, int64_t, count);
  MP_RETURN_IF_NULL(values);
  for (size_t i = 0; i < count; ++i) values[i] = value;
  attr->kind = kind;
  attr->u.ints.values = values;
  attr->u.ints.count = count;
  attr->u.ints.rank = 1;
  attr->u.ints.dims[0] = (int64_t)count;
  return NULL;
}

static mp_status_t schema_make_precisions(mp_arena_t *arena, mp_attr_t *attr) {
  const mp_attr_t **items = MP_ARENA_ARRAY(arena, const mp_attr_t *, 2);
  MP_RETURN_IF_NULL(items);
  MP_RETURN_IF_ERROR(mp_attr_make_enum(arena, MP_ENUM_PRECISION, MP_PRECISION_DEFAULT, &items[0]));
  items[1] = items[0];
  attr->kind = MP_KIND_ARRAY;
  attr->u.array.items = items;
  attr->u.array.count = 2;
  return NULL;
}

// A row may allow several kinds; the first of them is the usual one.
static mp_attr_kind_t schema_usual_kind(const mp_schema_attr_t *row) {
  return (mp_attr_kind_t)__builtin_ctz(row->kinds);
}

static mp_status_t schema_make_default(mp_arena_t *arena, const mp_schema_attr_t *row, size_t rank,
                                       const mp_attr_t **out_attr) {
  mp_attr_t *attr = MP_ARENA_NEW(arena, mp_attr_t);
  MP_RETURN_IF_NULL(attr);
  // In zeroed memory every kind is zero, false, "" or an empty list already.
  attr->kind = schema_usual_kind(row);
  attr->dtype = row->dtype;
  int64_t number = row->when_absent == MP_DEFAULT_ONE ? 1 : 0;
  if (row->when_absent == MP_DEFAULT_MINUS_ONE) number = -1;
  if (attr->kind == MP_KIND_INT) attr->u.i64 = number;
  if (attr->kind == MP_KIND_STRING) attr->u.str = MP_STR("");
  if (attr->kind == MP_KIND_INTS) attr->u.ints.rank = 1;
  if (attr->kind == MP_KIND_ENUM) {
    attr->u.enumeration.kind = row->enum_kind;
    attr->u.enumeration.value = (uint32_t)number;
  }
  switch (row->when_absent) {
    case MP_DEFAULT_ZEROS:
      MP_RETURN_IF_ERROR(schema_make_filled(arena, schema_usual_kind(row), 0, rank, attr));
      break;
    case MP_DEFAULT_ONES:
      MP_RETURN_IF_ERROR(schema_make_filled(arena, schema_usual_kind(row), 1, rank, attr));
      break;
    case MP_DEFAULT_NO_PADDING:
      MP_RETURN_IF_ERROR(schema_make_filled(arena, MP_KIND_INTS, 0, rank * 2, attr));
      attr->u.ints.rank = 2;
      attr->u.ints.dims[0] = (int64_t)rank;
      attr->u.ints.dims[1] = 2;
      break;
    case MP_DEFAULT_PRECISION:
      MP_RETURN_IF_ERROR(schema_make_precisions(arena, attr));
      break;
    default:
      break;
  }
  *out_attr = attr;
  return NULL;
}

static bool schema_is_empty_array(const mp_attr_t *attr) {
  return attr->kind == MP_KIND_ARRAY && attr->u.array.count == 0;
}

mp_status_t mp_schema_complete(mp_arena_t *arena, mp_opcode_t code, const mp_named_attr_t *attrs,
                               uint32_t num_attrs, mp_named_attr_t **out_attrs,
                               uint32_t *out_count) {
  mp_schema_t schema = schemas[code];
  mp_named_attr_t *list = MP_ARENA_ARRAY(arena, mp_named_attr_t, (size_t)schema.count + num_attrs);
  MP_RETURN_IF_NULL(list);
  uint32_t count = 0;
  for (uint32_t i = 0; i < schema.count; ++i) {
    const mp_schema_attr_t *row = &schema.attrs[i];
    const mp_attr_t *value = schema_find(attrs, num_attrs, row->name);
    if (value != NULL && row->when_absent == MP_DEFAULT_PRECISION && schema_is_empty_array(value))
      value = NULL;
    if (value == NULL && row->when_absent > MP_DEFAULT_ABSENT)
      MP_RETURN_IF_ERROR(
          schema_make_default(arena, row, schema_window_rank(code, attrs, num_attrs), &value));
    if (value == NULL) continue;
    list[count++] = (mp_named_attr_t){row->name, mp_str(mp_attr_name_text(row->name)), value};
  }
  for (uint32_t i = 0; i < num_attrs; ++i)
    if (mp_schema_find(code, attrs[i].name) == NULL) list[count++] = attrs[i];
  *out_attrs = list;
  *out_count = count;
  return NULL;
}

// ---- is it a default? ----

static bool schema_is_filled(const mp_attr_t *attr, size_t count, int64_t value) {
  if (attr->kind != MP_KIND_INTS && attr->kind != MP_KIND_BOOLS) return false;
  if (attr->u.ints.count != count) return false;
  for (size_t i = 0; i < attr->u.ints.count; ++i)
    if (attr->u.ints.values[i] != value) return false;
  return true;
}

static bool schema_is_number(const mp_attr_t *attr, int64_t value) {
  if (attr->kind == MP_KIND_INT) return attr->u.i64 == value;
  return attr->kind == MP_KIND_ENUM && (int64_t)attr->u.enumeration.value == value;
}

static bool schema_is_zero(const mp_attr_t *attr) {
  switch (attr->kind) {
    case MP_KIND_BOOL:
      return !attr->u.boolean;
    case MP_KIND_INT:
    case MP_KIND_ENUM:
      return schema_is_number(attr, 0);
    case MP_KIND_STRING:
      return attr->u.str.size == 0;
    case MP_KIND_INTS:
    case MP_KIND_BOOLS:
      return attr->u.ints.count == 0 && attr->u.ints.rank == 1;
    case MP_KIND_ARRAY:
      return attr->u.array.count == 0;
    case MP_KIND_DICT:
      return attr->u.dict.count == 0;
    case MP_KIND_RESULT_ACCURACY:
      return attr->u.accuracy.atol == 0 && attr->u.accuracy.rtol == 0 &&
             attr->u.accuracy.ulps == 0 && attr->u.accuracy.mode == MP_ACCURACY_DEFAULT;
    default:
      return false;
  }
}

static bool schema_are_default_precisions(const mp_attr_t *attr) {
  if (attr->kind != MP_KIND_ARRAY || attr->u.array.count != 2) return false;
  for (int i = 0; i < 2; ++i) {
    const mp_attr_t *item = attr->u.array.items[i];
    if (item->kind != MP_KIND_ENUM || item->u.enumeration.kind != MP_ENUM_PRECISION ||
        item->u.enumeration.value != MP_PRECISION_DEFAULT)
      return false;
  }
  return true;
}

bool mp_schema_is_default(const mp_op_t *op, const mp_schema_attr_t *row, const mp_attr_t *value) {
  size_t rank = schema_window_rank(op->code, op->attrs, op->num_attrs);
  switch (row->when_absent) {
    case MP_DEFAULT_REQUIRED:
    case MP_DEFAULT_ABSENT:
      return false;
    // An empty dictionary where a string is usual is not the same as an absent attribute.
    case MP_DEFAULT_ZERO:
      return value->kind == schema_usual_kind(row) && schema_is_zero(value);
    case MP_DEFAULT_ONE:
      return schema_is_number(value, 1);
    case MP_DEFAULT_MINUS_ONE:
      return schema_is_number(value, -1);
    case MP_DEFAULT_ZEROS:
      return schema_is_filled(value, rank, 0);
    case MP_DEFAULT_ONES:
      return schema_is_filled(value, rank, 1);
    case MP_DEFAULT_NO_PADDING:
      return value->u.ints.rank == 2 && schema_is_filled(value, rank * 2, 0);
    case MP_DEFAULT_PRECISION:
      return schema_are_default_precisions(value);
  }
  return false;
}

const char *mp_attr_kind_name(mp_attr_kind_t kind) {
  static const char *const names[] = {
      [MP_KIND_UNIT] = "a unit attribute",
      [MP_KIND_BOOL] = "a boolean",
      [MP_KIND_INT] = "an integer",
      [MP_KIND_FLOAT] = "a float",
      [MP_KIND_STRING] = "a string",
      [MP_KIND_ENUM] = "an enumeration value",
      [MP_KIND_INTS] = "a list of integers",
      [MP_KIND_BOOLS] = "a list of booleans",
      [MP_KIND_DENSE] = "a dense constant",
      [MP_KIND_TYPE] = "a type",
      [MP_KIND_ARRAY] = "an array",
      [MP_KIND_DICT] = "a dictionary",
      [MP_KIND_RESULT_ACCURACY] = "a result accuracy",
      [MP_KIND_OUTPUT_ALIAS] = "an output operand alias",
      [MP_KIND_MESH_GROUPS] = "mesh replica groups",
      [MP_KIND_MESH] = "a mesh",
      [MP_KIND_SHARDING] = "a sharding",
      [MP_KIND_SHARDINGS] = "a list of shardings",
      [MP_KIND_AXES] = "a list of axes",
      [MP_KIND_AXES_LISTS] = "lists of axes",
      [MP_KIND_ALL_TO_ALL_PARAMS] = "all-to-all parameters",
      [MP_KIND_SHARDING_RULE] = "a sharding rule",
      [MP_KIND_BOXES] = "boxes",
  };
  return names[kind];
}
