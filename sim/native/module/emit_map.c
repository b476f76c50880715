// Maps: a loop over vectors of elements, and one over the remaining single elements.
#include "sim/native/module/emit.h"

#include <stdlib.h>
#include <string.h>

// The bytes of the widest vectors. Machines with shorter ones use several. Functions are long
// chains of dependent ops, and processors do not look far enough ahead to fill the gaps with the
// next elements, so several vectors go through them together.
enum { VECTOR_BYTES = 64, VECTORS = 4 };

typedef struct {
  emit_t *e;
  const mp_native_map_t *map;
  LLVMValueRef *pointers;  // [num_values]: the address of a value's elements, if it has an argument
  LLVMValueRef *ones;      // [num_values]: the loaded element, if only one is read
  LLVMValueRef *values;    // [num_values]: in the current body
} map_t;

static bool emit_map_has_functions(const mp_native_map_t *map) {
  for (uint32_t s = 0; s < map->num_steps; ++s) {
    if (emit_is_function(&map->steps[s].op)) return true;
  }
  return false;
}

static unsigned emit_map_lanes(const mp_native_map_t *map) {
  unsigned widest = 1;
  for (uint32_t i = 0; i < map->num_values; ++i) {
    const unsigned bytes = emit_bytes(map->values[i].dtype);
    if (bytes > widest) widest = bytes;
  }
  return VECTOR_BYTES / widest;
}

// In the entry block: the addresses of arguments, and the elements that are the same for all.
static void emit_map_open(const map_t *m, LLVMValueRef arguments) {
  const emit_t *e = m->e;
  LLVMTypeRef pointer = LLVMPointerTypeInContext(e->context, 0);
  LLVMTypeRef index = LLVMInt64TypeInContext(e->context);
  for (uint32_t i = 0; i < m->map->num_values; ++i) {
    const mp_native_value_t *value = &m->map->values[i];
    if (value->argument == MP_NATIVE_NO_ARGUMENT) continue;
    LLVMValueRef number = LLVMConstInt(index, value->argument, false);
    LLVMValueRef at = LLVMBuildGEP2(e->builder, pointer, arguments, &number, 1, "");
    m->pointers[i] = LLVMBuildLoad2(e->builder, pointer, at, "");
    if (!value->is_read || !value->is_one) continue;
    LLVMTypeRef type = emit_memory_type(e, value->dtype);
    LLVMValueRef one = LLVMBuildLoad2(e->builder, type, m->pointers[i], "");
    LLVMSetAlignment(one, emit_bytes(value->dtype));
    m->ones[i] = emit_fence(e, value->dtype, emit_from_memory(e, value->dtype, one));
  }
}

static LLVMValueRef emit_map_place(const map_t *m, uint32_t i, LLVMValueRef index) {
  const emit_t element = {.context = m->e->context, .lanes = 1};
  LLVMTypeRef type = emit_memory_type(&element, m->map->values[i].dtype);
  return LLVMBuildGEP2(m->e->builder, type, m->pointers[i], &index, 1, "");
}

static void emit_map_read(const map_t *m, LLVMValueRef index) {
  const emit_t *e = m->e;
  for (uint32_t i = 0; i < m->map->num_values; ++i) {
    const mp_native_value_t *value = &m->map->values[i];
    if (!value->is_read) continue;
    if (value->is_one) {
      m->values[i] = emit_splat(e, emit_value_type(e, value->dtype), m->ones[i]);
      continue;
    }
    LLVMTypeRef type = emit_memory_type(e, value->dtype);
    LLVMValueRef loaded = LLVMBuildLoad2(e->builder, type, emit_map_place(m, i, index), "");
    LLVMSetAlignment(loaded, emit_bytes(value->dtype));
    m->values[i] = emit_fence(e, value->dtype, emit_from_memory(e, value->dtype, loaded));
  }
}

static void emit_map_store(const map_t *m, LLVMValueRef index) {
  const emit_t *e = m->e;
  for (uint32_t i = 0; i < m->map->num_values; ++i) {
    const mp_native_value_t *value = &m->map->values[i];
    if (!value->is_stored) continue;
    LLVMValueRef stored = emit_to_memory(e, value->dtype, m->values[i]);
    LLVMSetAlignment(LLVMBuildStore(e->builder, stored, emit_map_place(m, i, index)),
                     emit_bytes(value->dtype));
  }
}

static void emit_map_body(const map_t *m, LLVMValueRef index) {
  emit_map_read(m, index);
  for (uint32_t s = 0; s < m->map->num_steps; ++s) {
    const mp_native_step_t *step = &m->map->steps[s];
    LLVMValueRef in[MP_NATIVE_MAX_INPUTS];
    for (uint32_t k = 0; k < MP_NATIVE_MAX_INPUTS; ++k) {
      const mp_native_value_t *value = &m->map->values[step->in[k]];
      const bool is_known = value->is_known && emit_uses_known(&step->op);
      LLVMValueRef known = is_known ? emit_known(m->e, value->dtype, value->known) : NULL;
      in[k] = known != NULL ? known : m->values[step->in[k]];
    }
    m->values[step->out] = emit_op(m->e, &step->op, in);
  }
  emit_map_store(m, index);
}

// The elements [begin, limit), `lanes` at a time; continues after it.
static void emit_map_range(const map_t *m, unsigned lanes, LLVMValueRef begin, LLVMValueRef limit) {
  emit_t *e = m->e;
  LLVMBuilderRef b = e->builder;
  LLVMTypeRef type = LLVMTypeOf(begin);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
  LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(e->context, e->function, "");
  LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(e->context, e->function, "");
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULT, begin, limit, ""), body, after);
  LLVMPositionBuilderAtEnd(b, body);
  LLVMValueRef index = LLVMBuildPhi(b, type, "");
  e->lanes = lanes;
  emit_map_body(m, index);
  e->lanes = 1;
  LLVMValueRef next = LLVMBuildAdd(b, index, LLVMConstInt(type, lanes, false), "");
  LLVMValueRef values[] = {begin, next};
  LLVMBasicBlockRef blocks[] = {before, body};
  LLVMAddIncoming(index, values, blocks, 2);
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULT, next, limit, ""), body, after);
  LLVMPositionBuilderAtEnd(b, after);
}

// The same for the largest multiple of `lanes`, a power of two, up to `count`. Returns the number
// of elements done.
static LLVMValueRef emit_map_whole(const map_t *m, unsigned lanes, LLVMValueRef begin,
                                   LLVMValueRef count) {
  LLVMTypeRef type = LLVMTypeOf(count);
  LLVMValueRef mask = LLVMConstInt(type, ~(uint64_t)(lanes - 1), false);
  LLVMValueRef whole = LLVMBuildAnd(m->e->builder, count, mask, "");
  emit_map_range(m, lanes, begin, whole);
  return whole;
}

bool emit_map(emit_t *e, const mp_native_map_t *map) {
  const size_t room = (map->num_values + 1) * sizeof(LLVMValueRef);
  map_t m = {e, map, malloc(room), malloc(room), malloc(room)};
  const bool is_ok = m.pointers != NULL && m.ones != NULL && m.values != NULL;
  if (is_ok) {
    for (uint32_t i = 0; i < map->num_values; ++i) m.values[i] = NULL;
    LLVMValueRef count = LLVMGetParam(e->function, 1);
    LLVMTypeRef type = LLVMTypeOf(count);
    const unsigned lanes = emit_map_lanes(map);
    e->lanes = 1;
    emit_map_open(&m, LLVMGetParam(e->function, 0));
    LLVMValueRef done = LLVMConstNull(type);
    if (emit_map_has_functions(map)) done = emit_map_whole(&m, VECTORS * lanes, done, count);
    done = emit_map_whole(&m, lanes, done, count);
    emit_map_range(&m, 1, done, count);
    LLVMBuildRetVoid(e->builder);
  }
  free(m.pointers);
  free(m.ones);
  free(m.values);
  return is_ok;
}
