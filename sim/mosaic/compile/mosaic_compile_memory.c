// Loads, stores, and views.
#include "sim/mosaic/compile/mosaic_compiler.h"
#include "sim/mosaic/run/mosaic_view.h"

// ---- parts ----

typedef struct {
  uint32_t first, count;  // operands that are indices
  uint32_t first_dynamic, num_dynamic;
  const mp_mosaic_type_t *shape;  // of the part
  const char *steps;              // an attribute; NULL: none
} part_spec_t;

static mp_status_t mosaic_compile_memory_registers(mp_mosaic_compiler_t *c,
                                                   const mp_mosaic_op_t *op, uint32_t first,
                                                   uint32_t count, const uint32_t **out) {
  uint32_t *registers = MP_ARENA_ARRAY(c->arena, uint32_t, count);
  MP_RETURN_IF_NULL(registers);
  for (uint32_t i = 0; i < count; ++i) {
    mp_mosaic_place_t place;
    MP_RETURN_IF_ERROR(mp_mosaic_need(c, op->operands[first + i], &place));
    if (place.kind != MP_MOSAIC_IN_REGISTER) {
      return mp_mosaic_op_error(op, MP_UNIMPLEMENTED, "indices that are not scalars");
    }
    registers[i] = place.index;
  }
  *out = registers;
  return NULL;
}

static mp_status_t mosaic_compile_memory_steps(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op,
                                               const char *name, uint32_t rank,
                                               const int64_t **out_steps) {
  const mp_mosaic_attr_t *attr = name == NULL ? NULL : mp_mosaic_op_attr(op, name);
  *out_steps = NULL;
  if (attr == NULL || attr->kind != MP_MOSAIC_INTS || attr->ints.count == 0) return NULL;
  if (attr->ints.count != rank) {
    return mp_mosaic_op_error(op, MP_UNIMPLEMENTED, "strides of some dimensions alone");
  }
  for (uint32_t d = 0; d < rank; ++d) {
    const int64_t least = op->code == MP_MOSAIC_STRIDED_LOAD ? 0 : 1;  // 0: one element, repeated
    if (attr->ints.values[d] < least) {
      return mp_mosaic_op_error(op, MP_UNIMPLEMENTED, "strides that are not positive");
    }
  }
  *out_steps = mp_arena_copy(c->arena, attr->ints.values, rank * sizeof(int64_t));
  MP_RETURN_IF_NULL(*out_steps);
  return NULL;
}

static mp_status_t mosaic_compile_memory_part(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op,
                                              const mp_mosaic_type_t *whole,
                                              const part_spec_t *spec,
                                              const mp_mosaic_part_t **out_part) {
  mp_mosaic_part_t *part = MP_ARENA_NEW(c->arena, mp_mosaic_part_t);
  MP_RETURN_IF_NULL(part);
  const uint32_t rank = spec->shape == NULL ? 0 : spec->shape->rank;
  if (spec->count != whole->rank || rank > whole->rank) {
    return mp_mosaic_op_error(op, MP_INVALID_ARGUMENT, "it has %u indices for %u dimensions",
                              spec->count, whole->rank);
  }
  *part = (mp_mosaic_part_t){
      .num_indices = spec->count, .rank = rank, .is_slice = op->code == MP_MOSAIC_MEMREF_SLICE};
  if (rank != 0) {
    part->sizes = mp_arena_copy(c->arena, spec->shape->dims, rank * sizeof(int64_t));
    MP_RETURN_IF_NULL(part->sizes);
  }
  uint32_t dynamic = 0;
  for (uint32_t d = 0; d < rank; ++d) dynamic += part->sizes[d] == MP_MOSAIC_DYNAMIC;
  if (dynamic != spec->num_dynamic) {
    return mp_mosaic_op_error(op, MP_INVALID_ARGUMENT, "it has %u sizes for %u dimensions",
                              spec->num_dynamic, dynamic);
  }
  MP_RETURN_IF_ERROR(
      mosaic_compile_memory_registers(c, op, spec->first, spec->count, &part->indices));
  MP_RETURN_IF_ERROR(mosaic_compile_memory_registers(c, op, spec->first_dynamic, spec->num_dynamic,
                                                     &part->dynamic));
  MP_RETURN_IF_ERROR(mosaic_compile_memory_steps(c, op, spec->steps, whole->rank, &part->steps));
  *out_part = part;
  return NULL;
}

// ---- loads and stores ----

// The base, a register for scalars, and the rest of the instruction.
static mp_status_t mosaic_compile_memory_access(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op,
                                                uint32_t base, const part_spec_t *spec,
                                                mp_mosaic_instruction_t *in) {
  const mp_mosaic_type_t *type = op->operands[base]->type;
  mp_mosaic_place_t view;
  if (type->kind != MP_MOSAIC_MEMREF || type->element != MP_MOSAIC_NUMBER) {
    return mp_mosaic_op_error(op, MP_INVALID_ARGUMENT, "its operand is not a memref of numbers");
  }
  MP_RETURN_IF_ERROR(mp_mosaic_need(c, op->operands[base], &view));
  in->a = view.index;
  in->target = view.root;
  in->dtype = (uint8_t)type->dtype;
  if (mp_mosaic_op_info(op->code)->op_class == MP_MOSAIC_CLASS_WRITE && view.root < c->num_roots) {
    c->written[view.root] = true;
  }
  MP_RETURN_IF_ERROR(mosaic_compile_memory_part(c, op, type, spec, &in->u.part));
  return mp_mosaic_where(c, op, &in->where);
}

static mp_status_t mosaic_compile_memory_load(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  const bool is_scalar = op->results[0].type->kind == MP_MOSAIC_SCALAR;
  // JAX loads what it overwrites. A TPU's compiler drops such loads.
  if (c->frame->uses[op->results[0].id] == 0) return NULL;
  const uint32_t num_indices =
      op->code == MP_MOSAIC_TPU_VECTOR_LOAD ? mp_mosaic_op_segment(op, 1, 0) : op->num_operands - 1;
  const part_spec_t spec = {.first = 1,
                            .count = num_indices,
                            .shape = is_scalar ? NULL : op->results[0].type,
                            .steps = "strides"};
  mp_mosaic_instruction_t in = {.kind = is_scalar ? MP_MOSAIC_DO_LOAD_SCALAR : MP_MOSAIC_DO_LOAD};
  if (num_indices + 1 != op->num_operands) {
    return mp_mosaic_op_error(op, MP_UNIMPLEMENTED, "loads with a mask are not supported");
  }
  MP_RETURN_IF_ERROR(mosaic_compile_memory_access(c, op, 0, &spec, &in));
  const bool may_be_outside = mp_mosaic_may_be_outside(c, &op->results[0]);
  in.flag = is_scalar && may_be_outside;
  in.value = !is_scalar && may_be_outside;
  MP_RETURN_IF_ERROR(mp_mosaic_new_result(c, &op->results[0], &in.out));
  return mp_mosaic_emit(c, &in);
}

static mp_status_t mosaic_compile_memory_store(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  // memref.store and vector.store begin with the value; strided_store too.
  const mp_mosaic_value_t *value = op->operands[0];
  const bool is_scalar = value->type->kind == MP_MOSAIC_SCALAR;
  const bool has_segments = op->code == MP_MOSAIC_TPU_VECTOR_STORE;
  const uint32_t num_indices = has_segments ? mp_mosaic_op_segment(op, 2, 0) : op->num_operands - 2;
  const part_spec_t spec = {.first = 2,
                            .count = num_indices,
                            .shape = is_scalar ? NULL : value->type,
                            .steps = "strides"};
  mp_mosaic_instruction_t in = {.kind = is_scalar ? MP_MOSAIC_DO_STORE_SCALAR : MP_MOSAIC_DO_STORE,
                                .c = MP_MOSAIC_NONE};
  if (mp_mosaic_op_int(op, "add", 0) != 0) {
    return mp_mosaic_op_error(op, MP_UNIMPLEMENTED, "stores that add are not supported");
  }
  MP_RETURN_IF_ERROR(mp_mosaic_end_segment(c));
  MP_RETURN_IF_ERROR(mosaic_compile_memory_access(c, op, 1, &spec, &in));
  if (has_segments && mp_mosaic_op_segment(op, 3, 0) != 0) {
    MP_RETURN_IF_ERROR(mp_mosaic_need_index(c, op->operands[2 + num_indices], &in.c));
  }
  MP_RETURN_IF_ERROR(mp_mosaic_need_index(c, value, &in.b));
  return mp_mosaic_emit(c, &in);
}

// ---- views ----

static mp_status_t mosaic_compile_memory_new_view(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op,
                                                  uint32_t root, mp_mosaic_instruction_t *in) {
  mp_mosaic_place_t place;
  MP_RETURN_IF_ERROR(mp_mosaic_new_place(c, op->results[0].type, &place));
  place.root = root;
  mp_mosaic_set_place(c, &op->results[0], place);
  in->out = place.index;
  MP_RETURN_IF_ERROR(mp_mosaic_where(c, op, &in->where));
  return mp_mosaic_emit(c, in);
}

// Whether a memref is only waited for: then its size counts, and it may be larger than the memory
// of which it is a part. Uses that are far away count as others.
static bool mosaic_compile_memory_is_waited(const mp_mosaic_compiler_t *c,
                                            const mp_mosaic_value_t *value, uint32_t depth) {
  enum { FARTHEST = 64, DEEPEST = 8 };
  uint32_t left = c->frame->uses[value->id], near = 0;
  if (depth > DEEPEST || value->type->element != MP_MOSAIC_NUMBER) return false;
  for (const mp_mosaic_op_t *op = value->op->next; op != NULL && left > 0; op = op->next) {
    if (++near > FARTHEST) return false;
    uint32_t count = 0;
    for (uint32_t i = 0; i < op->num_operands; ++i) count += op->operands[i] == value;
    left -= count;
    if (count == 0 || mp_mosaic_op_awaited(op).view != NULL) continue;
    if (mp_mosaic_op_info(op->code)->op_class != MP_MOSAIC_CLASS_VIEW || op->num_results != 1 ||
        !mosaic_compile_memory_is_waited(c, &op->results[0], depth + 1)) {
      return false;
    }
  }
  return left == 0;
}

static mp_status_t mosaic_compile_memory_slice(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  const uint32_t count = mp_mosaic_op_segment(op, 1, op->num_operands - 1);
  const part_spec_t spec = {.first = 1,
                            .count = count,
                            .first_dynamic = 1 + count,
                            .num_dynamic = op->num_operands - 1 - count,
                            .shape = op->results[0].type};
  mp_mosaic_instruction_t in = {.kind = MP_MOSAIC_DO_SLICE,
                                .flag = mosaic_compile_memory_is_waited(c, &op->results[0], 0)};
  mp_mosaic_place_t view;
  MP_RETURN_IF_ERROR(mp_mosaic_need(c, op->operands[0], &view));
  in.a = view.index;
  MP_RETURN_IF_ERROR(mosaic_compile_memory_part(c, op, op->operands[0]->type, &spec, &in.u.part));
  return mosaic_compile_memory_new_view(c, op, view.root, &in);
}

static mp_status_t mosaic_compile_memory_cast(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op,
                                              uint8_t kind) {
  mp_mosaic_instruction_t in = {.kind = kind, .dtype = (uint8_t)op->operands[0]->type->dtype};
  mp_mosaic_place_t view;
  for (uint32_t d = 0; kind == MP_MOSAIC_DO_RESHAPE && d < op->results[0].type->rank; ++d) {
    if (op->results[0].type->dims[d] == MP_MOSAIC_DYNAMIC) {
      return mp_mosaic_op_error(op, MP_UNIMPLEMENTED, "a shape that is not known");
    }
  }
  MP_RETURN_IF_ERROR(mp_mosaic_need(c, op->operands[0], &view));
  in.a = view.index;
  MP_RETURN_IF_ERROR(mp_mosaic_copy_type(c, op->results[0].type, &in.u.type));
  return mosaic_compile_memory_new_view(c, op, view.root, &in);
}

// Elements narrower than a byte have bytes of their own here: they can be the parts of words
// (run/mosaic_view_narrow.c), but memory of words does not become such elements.
static mp_status_t mosaic_compile_memory_bitcast(mp_mosaic_compiler_t *c,
                                                 const mp_mosaic_op_t *op) {
  const int from = mp_dtype_bits(op->operands[0]->type->dtype);
  const int to = mp_dtype_bits(op->results[0].type->dtype);
  if (from != to && to < 8) {
    return mp_mosaic_op_error(op, MP_UNIMPLEMENTED,
                              "memory of %d-bit elements that is seen as %d-bit ones", from, to);
  }
  return mosaic_compile_memory_cast(c, op, MP_MOSAIC_DO_BITCAST);
}

static mp_status_t mosaic_compile_memory_same(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  mp_mosaic_place_t view;
  MP_RETURN_IF_ERROR(mp_mosaic_need(c, op->operands[0], &view));
  mp_mosaic_set_place(c, &op->results[0], view);
  return NULL;
}

mp_status_t mp_mosaic_compile_allocate(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op,
                                       uint64_t bytes) {
  mp_mosaic_instruction_t in = {.kind = MP_MOSAIC_DO_ALLOCATE};
  MP_RETURN_IF_ERROR(mp_mosaic_new_vector(c, bytes, &in.a));
  c->vectors.items[in.a].start = 0;
  c->vectors.items[in.a].end = UINT32_MAX;
  MP_RETURN_IF_ERROR(mp_mosaic_copy_type(c, op->results[0].type, &in.u.type));
  return mosaic_compile_memory_new_view(c, op, MP_MOSAIC_NONE, &in);
}

static mp_status_t mosaic_compile_memory_allocate(mp_mosaic_compiler_t *c,
                                                  const mp_mosaic_op_t *op) {
  const mp_mosaic_type_t *type = op->results[0].type;
  int64_t count = 0;
  if (!mp_mosaic_num_elements(type, &count) || count > (INT64_C(1) << 32)) {
    return mp_mosaic_op_error(op, MP_UNIMPLEMENTED, "the size of the memory is not known");
  }
  return mp_mosaic_compile_allocate(c, op, (uint64_t)count * mp_mosaic_element_bytes(type));
}

mp_status_t mp_mosaic_compile_memory(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op) {
  switch (op->code) {
    case MP_MOSAIC_MEMREF_LOAD:
    case MP_MOSAIC_VECTOR_LOAD:
    case MP_MOSAIC_TPU_VECTOR_LOAD:
    case MP_MOSAIC_STRIDED_LOAD:
      return mosaic_compile_memory_load(c, op);
    case MP_MOSAIC_MEMREF_STORE:
    case MP_MOSAIC_VECTOR_STORE:
    case MP_MOSAIC_TPU_VECTOR_STORE:
    case MP_MOSAIC_STRIDED_STORE:
      return mosaic_compile_memory_store(c, op);
    case MP_MOSAIC_MEMREF_SLICE:
      return mosaic_compile_memory_slice(c, op);
    case MP_MOSAIC_MEMREF_SQUEEZE:
      return mosaic_compile_memory_cast(c, op, MP_MOSAIC_DO_SQUEEZE);
    case MP_MOSAIC_MEMREF_RESHAPE:
      return mosaic_compile_memory_cast(c, op, MP_MOSAIC_DO_RESHAPE);
    case MP_MOSAIC_MEMREF_BITCAST:
      return mosaic_compile_memory_bitcast(c, op);
    case MP_MOSAIC_ERASE_MEMREF_LAYOUT:
    case MP_MOSAIC_MEMREF_CAST:
      return mosaic_compile_memory_same(c, op);
    case MP_MOSAIC_ALLOCA:
      return mosaic_compile_memory_allocate(c, op);
    default:
      return mp_mosaic_op_error(op, MP_UNIMPLEMENTED, "this op is not supported");
  }
}
