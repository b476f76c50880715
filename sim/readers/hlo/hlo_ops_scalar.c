// Operations with computations on scalars, with indices, and with random numbers.
#include "sim/readers/hlo/hlo_ops.h"

static mp_status_t hlo_ops_scalar_emit(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                       mp_block_t *region, const mp_hlo_attrs_t *attrs,
                                       mp_hlo_leaves_t *out) {
  mp_hlo_leaves_t operands = {0};
  MP_RETURN_IF_ERROR(mp_hlo_new_leaves(b->h, inst->operand_ids.count, &operands));
  for (uint32_t i = 0; i < operands.count; ++i) {
    MP_RETURN_IF_ERROR(mp_hlo_array(b, inst, i, &operands.items[i]));
  }
  return mp_hlo_emit_whole(b, inst, inst->row->code, operands, &region, region == NULL ? 0 : 1,
                           attrs, out);
}

static mp_status_t hlo_ops_scalar_over_dims(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                            mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  mp_block_t *region = NULL;
  MP_RETURN_IF_ERROR(mp_hlo_build_region(b, inst, 0, &region));
  mp_hlo_put_list(&attrs, MP_ATTR_DIMENSIONS, &inst->dimensions);
  return hlo_ops_scalar_emit(b, inst, region, &attrs, out);
}

mp_status_t mp_hlo_build_reduce(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                mp_hlo_leaves_t *out) {
  return hlo_ops_scalar_over_dims(b, inst, out);
}

// The dimensions are always all dimensions, and old programs omit them.
mp_status_t mp_hlo_build_map(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, mp_hlo_leaves_t *out) {
  int64_t dims[MP_MAX_RANK];
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  mp_block_t *region = NULL;
  MP_RETURN_IF_ERROR(mp_hlo_build_region(b, inst, 0, &region));
  const uint32_t rank = inst->shape->type == NULL ? 0 : inst->shape->type->rank;
  for (uint32_t i = 0; i < rank; ++i) dims[i] = i;
  if (inst->dimensions.count == 0) {
    mp_hlo_put_ints(&attrs, MP_ATTR_DIMENSIONS, dims, rank);
  } else {
    mp_hlo_put_list(&attrs, MP_ATTR_DIMENSIONS, &inst->dimensions);
  }
  return hlo_ops_scalar_emit(b, inst, region, &attrs, out);
}

mp_status_t mp_hlo_build_sort(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  mp_block_t *region = NULL;
  int64_t dim = 0;
  MP_RETURN_IF_ERROR(mp_hlo_one_dimension(inst, &dim));
  MP_RETURN_IF_ERROR(mp_hlo_build_region(b, inst, 0, &region));
  mp_hlo_put_int(&attrs, MP_ATTR_DIMENSION, MP_DTYPE_S64, dim);
  mp_hlo_put_bool(&attrs, MP_ATTR_IS_STABLE, inst->is_stable);
  return hlo_ops_scalar_emit(b, inst, region, &attrs, out);
}

// ---- indices ----

// GatherDimensionNumbers and ScatterDimensionNumbers, whose fields have the same numbers.
typedef struct {
  mp_hlo_ints_t window, inserted, index_map, batching, indices_batching;
  int64_t vector_dim;
} indexing_t;

#define INDEXING_FIELDS                                                                           \
  MP_HLO_FIELD(1, INTS, indexing_t, window), MP_HLO_FIELD(2, INTS, indexing_t, inserted),         \
      MP_HLO_FIELD(3, INTS, indexing_t, index_map), MP_HLO_FIELD(4, INT, indexing_t, vector_dim), \
      MP_HLO_FIELD(5, INTS, indexing_t, batching),                                                \
      MP_HLO_FIELD(6, INTS, indexing_t, indices_batching)
MP_HLO_MESSAGE(g_gather, "GatherDimensionNumbers", INDEXING_FIELDS);
MP_HLO_MESSAGE(g_scatter, "ScatterDimensionNumbers", INDEXING_FIELDS);

mp_status_t mp_hlo_build_gather(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  indexing_t x = {0};
  MP_RETURN_IF_ERROR(mp_hlo_error_at(
      inst, mp_status_annotate(mp_hlo_decode(&b->h->source, &g_gather, inst->gather_bytes, &x),
                               "gather_dimension_numbers")));
  mp_hlo_put_list(&attrs, MP_ATTR_COLLAPSED_SLICE_DIMS, &x.inserted);
  mp_hlo_put_int(&attrs, MP_ATTR_INDEX_VECTOR_DIM, MP_DTYPE_S64, x.vector_dim);
  mp_hlo_put_bool(&attrs, MP_ATTR_INDICES_ARE_SORTED, inst->indices_are_sorted);
  mp_hlo_put_list(&attrs, MP_ATTR_OFFSET_DIMS, &x.window);
  mp_hlo_put_list(&attrs, MP_ATTR_OPERAND_BATCHING_DIMS, &x.batching);
  mp_hlo_put_list(&attrs, MP_ATTR_SLICE_SIZES, &inst->gather_slice_sizes);
  mp_hlo_put_list(&attrs, MP_ATTR_START_INDEX_MAP, &x.index_map);
  mp_hlo_put_list(&attrs, MP_ATTR_START_INDICES_BATCHING_DIMS, &x.indices_batching);
  return hlo_ops_scalar_emit(b, inst, NULL, &attrs, out);
}

mp_status_t mp_hlo_build_scatter(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                 mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  indexing_t x = {0};
  mp_block_t *region = NULL;
  MP_RETURN_IF_ERROR(mp_hlo_error_at(
      inst, mp_status_annotate(mp_hlo_decode(&b->h->source, &g_scatter, inst->scatter_bytes, &x),
                               "scatter_dimension_numbers")));
  MP_RETURN_IF_ERROR(mp_hlo_build_region(b, inst, 0, &region));
  mp_hlo_put_int(&attrs, MP_ATTR_INDEX_VECTOR_DIM, MP_DTYPE_S64, x.vector_dim);
  mp_hlo_put_bool(&attrs, MP_ATTR_INDICES_ARE_SORTED, inst->indices_are_sorted);
  mp_hlo_put_list(&attrs, MP_ATTR_INPUT_BATCHING_DIMS, &x.batching);
  mp_hlo_put_list(&attrs, MP_ATTR_INSERTED_WINDOW_DIMS, &x.inserted);
  mp_hlo_put_list(&attrs, MP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, &x.index_map);
  mp_hlo_put_list(&attrs, MP_ATTR_SCATTER_INDICES_BATCHING_DIMS, &x.indices_batching);
  mp_hlo_put_bool(&attrs, MP_ATTR_UNIQUE_INDICES, inst->unique_indices);
  mp_hlo_put_list(&attrs, MP_ATTR_UPDATE_WINDOW_DIMS, &x.window);
  return hlo_ops_scalar_emit(b, inst, region, &attrs, out);
}

// ---- instructions that are calls in StableHLO ----

// The target name that XLA's converters write.
static mp_status_t hlo_ops_scalar_put_target(const mp_hlo_inst_t *inst, mp_hlo_attrs_t *attrs) {
  mp_strbuf_t target;
  mp_strbuf_init(&target);
  mp_strbuf_printf(&target, "mhlo.%s", inst->row->opcode);
  mp_status_t status = mp_strbuf_status(&target);
  if (status == NULL) {
    mp_hlo_put_string(attrs, MP_ATTR_CALL_TARGET_NAME,
                      (mp_str_t){mp_strbuf_text(&target), target.size});
  }
  mp_strbuf_deinit(&target);
  return status;
}

mp_status_t mp_hlo_build_function(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                  mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  MP_RETURN_IF_ERROR(hlo_ops_scalar_put_target(inst, &attrs));
  return hlo_ops_scalar_emit(b, inst, NULL, &attrs, out);
}

// The k largest or smallest of each row.
mp_status_t mp_hlo_build_topk(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  mp_attr_t *dict = mp_hlo_new_attr(&attrs, MP_KIND_DICT);
  mp_named_attr_t *item = MP_ARENA_NEW(attrs.arena, mp_named_attr_t);
  if (dict == NULL || item == NULL) return mp_status_out_of_memory();
  item->text = MP_STR("largest");
  item->name = mp_attr_name_from_text(item->text);
  MP_RETURN_IF_ERROR(mp_attr_make_bool(attrs.arena, inst->largest, &item->value));
  dict->u.dict.items = item;
  dict->u.dict.count = 1;
  MP_RETURN_IF_ERROR(hlo_ops_scalar_put_target(inst, &attrs));
  mp_hlo_put(&attrs, MP_ATTR_MHLO_ATTRIBUTES, dict);
  return hlo_ops_scalar_emit(b, inst, NULL, &attrs, out);
}

// ---- random numbers and batch normalisation ----

mp_status_t mp_hlo_build_batch_norm(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                    mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  mp_attr_t *epsilon = mp_hlo_new_attr(&attrs, MP_KIND_FLOAT);
  if (epsilon != NULL) epsilon->dtype = MP_DTYPE_F32;
  if (epsilon != NULL) epsilon->u.f64 = (double)inst->epsilon;
  mp_hlo_put(&attrs, MP_ATTR_EPSILON, epsilon);
  mp_hlo_put_int(&attrs, MP_ATTR_FEATURE_INDEX, MP_DTYPE_S64, inst->feature_index);
  return hlo_ops_scalar_emit(b, inst, NULL, &attrs, out);
}

// StableHLO's rng has the shape of its result as an operand.
mp_status_t mp_hlo_build_rng(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  mp_hlo_leaves_t operands = {0};
  const mp_type_t *result = inst->shape->type, *type = NULL;
  if (inst->distribution != MP_RNG_UNIFORM && inst->distribution != MP_RNG_NORMAL) {
    return mp_hlo_error(inst, MP_UNIMPLEMENTED, "distribution: %lld is not supported",
                        (long long)inst->distribution);
  }
  if (result == NULL || result->kind != MP_TYPE_TENSOR) {
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT, "shape: it is not an array");
  }
  const int64_t rank = result->rank;
  MP_RETURN_IF_ERROR(mp_hlo_new_leaves(b->h, 3, &operands));
  for (uint32_t i = 0; i < 2; ++i) {
    MP_RETURN_IF_ERROR(mp_hlo_array(b, inst, i, &operands.items[i]));
  }
  MP_RETURN_IF_ERROR(mp_hlo_tensor(b, MP_DTYPE_S64, &rank, 1, &type));
  MP_RETURN_IF_ERROR(mp_hlo_emit_constant(
      b, inst, type, result->dims, (size_t)rank * sizeof(int64_t), false, &operands.items[2]));
  mp_hlo_put_enum(&attrs, MP_ATTR_RNG_DISTRIBUTION, MP_ENUM_RNG_DISTRIBUTION,
                  (uint32_t)inst->distribution);
  return mp_hlo_emit_whole(b, inst, MP_OP_RNG, operands, NULL, 0, &attrs, out);
}

mp_status_t mp_hlo_build_rng_bit_generator(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                           mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  if (inst->rng_algorithm < MP_RNG_DEFAULT || inst->rng_algorithm > MP_RNG_PHILOX) {
    return mp_hlo_error(inst, MP_UNIMPLEMENTED, "rng_algorithm: %lld is not supported",
                        (long long)inst->rng_algorithm);
  }
  mp_hlo_put_enum(&attrs, MP_ATTR_RNG_ALGORITHM, MP_ENUM_RNG_ALGORITHM,
                  (uint32_t)inst->rng_algorithm);
  return hlo_ops_scalar_emit(b, inst, NULL, &attrs, out);
}
