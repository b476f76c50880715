// Refs: small ones have *shadows*, local variables that LLVM makes registers. What is written goes
// to memory as well, but for private refs, so that memory is always right: at back edges where a
// run stops, and for what is called.
#include "sim/native/module/emit_loop.h"

// The largest ref that has a shadow.
enum { MAX_SHADOW_BYTES = 256 };

// ---- shadows ----

static void emit_shadow_use(const loop_t *l, uint32_t ref, uint64_t bytes, LLVMTypeRef type) {
  place_t *place = &l->places[ref];
  if (place->has_uses && place->bytes != bytes) place->has_others = true;
  place->has_uses = true;
  place->bytes = bytes;
  if (place->shadow_type == NULL) place->shadow_type = type;
}

// The type of `count` elements in memory; NULL if they are too many for a shadow.
static LLVMTypeRef emit_shadow_type(const loop_t *l, mp_dtype_t dtype, int64_t count) {
  if (count > MP_NATIVE_MAX_LANES || count * (int64_t)emit_bytes(dtype) > MAX_SHADOW_BYTES)
    return NULL;
  const emit_t of_array = {.context = l->e->context, .lanes = (unsigned)count};
  return emit_memory_type(&of_array, dtype);
}

static void emit_shadow_use_element(const loop_t *l, uint32_t ref, mp_dtype_t dtype,
                                    int64_t count) {
  emit_shadow_use(l, ref, (uint64_t)count * emit_bytes(dtype), emit_shadow_type(l, dtype, count));
}

// How an instruction uses its refs.
static void emit_shadow_find_uses(const loop_t *l, const mp_native_instruction_t *i) {
  switch (i->kind) {
    case MP_NATIVE_COMPUTE:
    case MP_NATIVE_BACK_IF:
      for (uint32_t k = 0; k < i->num_inputs; ++k) {
        emit_shadow_use_element(l, i->in[k], mp_native_input_type(&i->op, k), i->count);
      }
      emit_shadow_use_element(l, i->out, i->op.to, i->count);
      l->places[i->out].is_written = true;
      break;
    case MP_NATIVE_UNLESS:
      emit_shadow_use_element(l, i->in[0], MP_DTYPE_BOOL, 1);
      break;
    case MP_NATIVE_SWITCH:
      emit_shadow_use_element(l, i->in[0], MP_DTYPE_S32, 1);
      break;
    case MP_NATIVE_PICK:
      emit_shadow_use_element(l, i->out, i->op.from, i->count);
      l->places[i->out].is_written = true;
      break;
    case MP_NATIVE_FILL:
      emit_shadow_use_element(l, i->in[0], i->op.from, 1);
      emit_shadow_use_element(l, i->out, i->op.from, i->count);
      l->places[i->out].is_written = true;
      break;
    case MP_NATIVE_COPY:
      emit_shadow_use(l, i->in[0], (uint64_t)i->count, NULL);
      emit_shadow_use(l, i->out, (uint64_t)i->count, NULL);
      l->places[i->out].is_written = true;
      break;
    case MP_NATIVE_TAKE:
    case MP_NATIVE_PLACE:
      for (uint32_t k = 0; k < i->num_indices; ++k) {
        emit_shadow_use_element(l, i->in[1 + k], i->index_dtype, 1);
      }
      emit_shadow_use(l, i->kind == MP_NATIVE_TAKE ? i->out : i->in[0], (uint64_t)i->count, NULL);
      l->places[i->kind == MP_NATIVE_TAKE ? i->in[0] : i->out].has_others = true;
      l->places[i->out].is_written = true;
      break;
    default:
      break;
  }
}

// An integer type for what is only copied, if there is one of its size.
LLVMTypeRef emit_copied_type(const loop_t *l, uint64_t bytes) {
  const bool is_simple = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
  return is_simple ? LLVMIntTypeInContext(l->e->context, (unsigned)(8 * bytes)) : NULL;
}

static bool emit_shadow_overlaps(const mp_native_ref_t *ref, uint32_t memory, uint64_t begin,
                                 uint64_t end) {
  return ref->memory == memory && ref->offset < end && begin < ref->offset + ref->bytes;
}

// Nobody else looks at a private ref, and no other ref has bytes of it.
static bool emit_shadow_is_private(const loop_t *l, uint32_t ref) {
  const mp_native_ref_t *of = &l->loop->refs[ref];
  bool is_alone = of->is_private && l->places[ref].is_written;
  for (uint32_t r = 0; r < l->loop->num_refs && is_alone; ++r) {
    is_alone = r == ref || !emit_shadow_overlaps(&l->loop->refs[r], of->memory, of->offset,
                                                 of->offset + of->bytes);
  }
  return is_alone;
}

void emit_make_shadows(const loop_t *l) {
  for (uint32_t n = 0; n < l->loop->num_instructions; ++n) {
    emit_shadow_find_uses(l, &l->loop->instructions[n]);
  }
  for (uint32_t r = 0; r < l->loop->num_refs; ++r) {
    place_t *place = &l->places[r];
    if (!place->has_uses || place->has_others) continue;
    // What is picked from may be more than what else is used of it.
    if (place->bytes < l->loop->refs[r].bytes) continue;
    if (place->shadow_type == NULL) place->shadow_type = emit_copied_type(l, place->bytes);
    if (place->shadow_type == NULL) continue;
    place->shadow = LLVMBuildAlloca(l->e->builder, place->shadow_type, "");
    place->is_local = emit_shadow_is_private(l, r);
  }
}

void emit_reload(const loop_t *l, uint32_t ref) {
  const place_t *place = &l->places[ref];
  if (place->shadow == NULL || place->is_local) return;
  LLVMValueRef value = LLVMBuildLoad2(l->e->builder, place->shadow_type, place->pointer, "");
  LLVMSetAlignment(value, 1);
  LLVMBuildStore(l->e->builder, value, place->shadow);
}

void emit_reload_overlapping(const loop_t *l, uint32_t but, uint64_t bytes) {
  const mp_native_ref_t *written = &l->loop->refs[but];
  for (uint32_t r = 0; r < l->loop->num_refs; ++r) {
    if (r == but) continue;
    if (emit_shadow_overlaps(&l->loop->refs[r], written->memory, written->offset,
                             written->offset + bytes)) {
      emit_reload(l, r);
    }
  }
}

// ---- values ----

LLVMValueRef emit_read_memory(const loop_t *l, uint32_t ref, LLVMTypeRef type) {
  const place_t *place = &l->places[ref];
  LLVMBuilderRef b = l->e->builder;
  if (place->shadow != NULL) {
    LLVMValueRef value = LLVMBuildLoad2(b, place->shadow_type, place->shadow, "");
    return LLVMBuildBitCast(b, value, type, "");
  }
  LLVMValueRef value = LLVMBuildLoad2(b, type, place->pointer, "");
  LLVMSetAlignment(value, 1);
  return value;
}

// The number that is known to be there; NULL if it is none.
static LLVMValueRef emit_shadow_known(const loop_t *l, uint32_t ref, mp_dtype_t dtype) {
  const void *known = l->loop->refs[ref].known;
  if (known == NULL || l->e->lanes != 1 || emit_is_float(dtype)) return NULL;
  uint64_t number = 0;
  const unsigned char *bytes = known;
  for (unsigned i = emit_bytes(dtype); i-- > 0;) number = number << 8 | bytes[i];
  return LLVMConstInt(emit_value_type(l->e, dtype), number, false);
}

// Elements of the current number of lanes.
LLVMValueRef emit_read(const loop_t *l, uint32_t ref, mp_dtype_t dtype) {
  const emit_t *e = l->e;
  LLVMValueRef known = emit_shadow_known(l, ref, dtype);
  if (known != NULL) return known;
  LLVMValueRef value = emit_read_memory(l, ref, emit_memory_type(e, dtype));
  return emit_fence(e, dtype, emit_from_memory(e, dtype, value));
}

// ---- writing ----

// The bytes of a value as integers of `granule` bytes, as a vector.
static LLVMValueRef emit_shadow_granules(const loop_t *l, LLVMValueRef value, uint64_t bytes,
                                         unsigned granule) {
  LLVMTypeRef type =
      LLVMVectorType(LLVMIntTypeInContext(l->e->context, 8 * granule), (unsigned)(bytes / granule));
  return LLVMBuildBitCast(l->e->builder, value, type, "");
}

// `count` granules of `from`, from `first` on, in place of those of `into` from `at` on.
static LLVMValueRef emit_shadow_insert(const loop_t *l, LLVMValueRef into, unsigned at,
                                       LLVMValueRef from, unsigned first, unsigned count) {
  LLVMBuilderRef b = l->e->builder;
  LLVMTypeRef ints = LLVMInt32TypeInContext(l->e->context);
  for (unsigned i = 0; i < count; ++i) {
    LLVMValueRef element =
        LLVMBuildExtractElement(b, from, LLVMConstInt(ints, first + i, false), "");
    into = LLVMBuildInsertElement(b, into, element, LLVMConstInt(ints, at + i, false), "");
  }
  return into;
}

// Brings the shadow of a ref up to date after the `bytes` bytes of another one have been written,
// which has its bytes among them, or which are among its bytes. False if neither is so.
static bool emit_shadow_update(const loop_t *l, uint32_t ref, uint32_t written, LLVMValueRef value,
                               uint64_t bytes) {
  const place_t *place = &l->places[ref];
  const uint64_t of_ref = l->loop->refs[ref].offset, of_written = l->loop->refs[written].offset;
  const bool is_part = of_ref >= of_written && of_ref + place->bytes <= of_written + bytes;
  const bool is_whole = of_written >= of_ref && of_written + bytes <= of_ref + place->bytes;
  if (!is_part && !is_whole) return false;
  const uint64_t apart = is_part ? of_ref - of_written : of_written - of_ref;
  const unsigned granule = (apart | bytes | place->bytes) % 4 == 0 ? 4 : 1;
  LLVMBuilderRef b = l->e->builder;
  LLVMValueRef from = emit_shadow_granules(l, value, bytes, granule);
  LLVMTypeRef type = LLVMVectorType(LLVMIntTypeInContext(l->e->context, 8 * granule),
                                    (unsigned)(place->bytes / granule));
  LLVMValueRef into = LLVMGetPoison(type);
  const unsigned at = (unsigned)(apart / granule);
  if (is_part) {
    into = emit_shadow_insert(l, into, 0, from, at, (unsigned)(place->bytes / granule));
  } else {
    into = LLVMBuildBitCast(b, LLVMBuildLoad2(b, place->shadow_type, place->shadow, ""), type, "");
    into = emit_shadow_insert(l, into, at, from, 0, (unsigned)(bytes / granule));
  }
  LLVMBuildStore(b, LLVMBuildBitCast(b, into, place->shadow_type, ""), place->shadow);
  return true;
}

void emit_write_memory(const loop_t *l, uint32_t ref, LLVMValueRef value, uint64_t bytes) {
  const place_t *place = &l->places[ref];
  const mp_native_ref_t *of = &l->loop->refs[ref];
  LLVMBuilderRef b = l->e->builder;
  if (place->shadow != NULL) {
    LLVMBuildStore(b, LLVMBuildBitCast(b, value, place->shadow_type, ""), place->shadow);
  }
  if (place->is_local) return;
  LLVMSetAlignment(LLVMBuildStore(b, value, place->pointer), 1);
  for (uint32_t r = 0; r < l->loop->num_refs; ++r) {
    if (r == ref || l->places[r].shadow == NULL ||
        !emit_shadow_overlaps(&l->loop->refs[r], of->memory, of->offset, of->offset + bytes)) {
      continue;
    }
    if (!emit_shadow_update(l, r, ref, value, bytes)) emit_reload(l, r);
  }
}
