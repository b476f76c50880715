// Values of refs: from and to the local variables of cells, or memory if cells are resident.
#include "sim/native/module/emit_loop.h"

// ---- cells ----

static LLVMTypeRef emit_memory_vector(LLVMTypeRef element, uint64_t count) {
  return count == 1 ? element : LLVMVectorType(element, (unsigned)count);
}

static LLVMTypeRef emit_memory_ints(const loop_t *l, uint64_t bytes) {
  const uint64_t size = bytes % 4 == 0 && bytes != 8 ? 4 : bytes == 2 || bytes == 8 ? bytes : 1;
  return emit_memory_vector(LLVMIntTypeInContext(l->e->context, (unsigned)(8 * size)),
                            bytes / size);
}

static LLVMTypeRef emit_memory_cell_type(const loop_t *l, const cell_t *cell) {
  const uint64_t bytes = cell->end - cell->begin;
  if (cell->dtype == MP_DTYPE_INVALID || bytes % emit_bytes(cell->dtype) != 0) {
    return emit_memory_ints(l, bytes);
  }
  const emit_t of_cell = {.context = l->e->context,
                          .lanes = (unsigned)(bytes / emit_bytes(cell->dtype))};
  return emit_memory_type(&of_cell, cell->dtype);
}

// The address at `offset` from the begin of a ref.
static LLVMValueRef emit_memory_at(const loop_t *l, uint32_t ref, uint64_t offset) {
  LLVMTypeRef index = LLVMInt64TypeInContext(l->e->context);
  LLVMValueRef number = LLVMConstInt(index, offset, false);
  return LLVMBuildGEP2(l->e->builder, LLVMInt8TypeInContext(l->e->context), l->pointers[ref],
                       &number, 1, "");
}

static LLVMValueRef emit_memory_cell_pointer(const loop_t *l, const cell_t *cell) {
  return emit_memory_at(l, cell->ref, cell->begin - l->loop->refs[cell->ref].offset);
}

static void emit_memory_save(const loop_t *l, const cell_t *cell) {
  LLVMBuilderRef b = l->e->builder;
  LLVMValueRef value = LLVMBuildLoad2(b, cell->type, cell->variable, "");
  LLVMSetAlignment(LLVMBuildStore(b, value, emit_memory_cell_pointer(l, cell)), 1);
}

static void emit_memory_load(const loop_t *l, const cell_t *cell) {
  LLVMBuilderRef b = l->e->builder;
  LLVMValueRef value = LLVMBuildLoad2(b, cell->type, emit_memory_cell_pointer(l, cell), "");
  LLVMSetAlignment(value, 1);
  LLVMBuildStore(b, value, cell->variable);
}

// Whether the cell is live at an instruction where a run may begin.
static bool emit_memory_is_entered(const loop_t *l, uint32_t cell) {
  bool is_entered = emit_is_live(l, 0, cell);
  for (uint32_t n = 0; n < l->loop->num_instructions && !is_entered; ++n) {
    is_entered = emit_is_back(l, n) && emit_is_live(l, l->loop->instructions[n].stop, cell);
  }
  return is_entered;
}

void emit_make_variables(loop_t *l) {
  for (uint32_t c = 0; c < l->num_cells; ++c) {
    cell_t *cell = &l->cells[c];
    if (cell->is_resident) continue;
    cell->type = emit_memory_cell_type(l, cell);
    cell->variable = LLVMBuildAlloca(l->e->builder, cell->type, "");
  }
  for (uint32_t c = 0; c < l->num_cells; ++c) {
    if (l->cells[c].is_resident || !emit_memory_is_entered(l, c)) continue;
    emit_memory_load(l, &l->cells[c]);
  }
}

// ---- loads and stores for the outside ----

void emit_save_live(const loop_t *l, uint32_t at) {
  for (uint32_t c = 0; c < l->num_cells; ++c) {
    const cell_t *cell = &l->cells[c];
    if (!cell->is_resident && cell->is_written && emit_is_live(l, at, c)) emit_memory_save(l, cell);
  }
}

void emit_save_results(const loop_t *l) {
  for (uint32_t c = 0; c < l->num_cells; ++c) {
    const cell_t *cell = &l->cells[c];
    if (!cell->is_resident && cell->is_written && !cell->is_temporary) emit_memory_save(l, cell);
  }
}

void emit_save_for_call(const loop_t *l, const mp_native_instruction_t *i) {
  access_t access;
  for (uint32_t k = 0; emit_access(l->loop, i, k, &access); ++k) {
    const mp_native_ref_t *ref = &l->loop->refs[access.ref];
    const uint64_t end = ref->offset + access.bytes;
    for (uint32_t c = emit_first_cell(l, ref->memory, ref->offset);
         access.bytes != 0 && emit_cell_meets(l, c, ref->memory, ref->offset, end); ++c) {
      const cell_t *cell = &l->cells[c];
      const bool is_whole = cell->begin >= ref->offset && cell->end <= end && !access.is_part;
      if (cell->is_resident || !cell->is_written || (access.is_written && is_whole)) continue;
      emit_memory_save(l, cell);
    }
  }
}

void emit_load_after_call(const loop_t *l, const mp_native_instruction_t *i) {
  access_t access;
  for (uint32_t k = 0; emit_access(l->loop, i, k, &access); ++k) {
    const mp_native_ref_t *ref = &l->loop->refs[access.ref];
    const uint64_t end = ref->offset + access.bytes;
    if (!access.is_written || access.bytes == 0) continue;
    for (uint32_t c = emit_first_cell(l, ref->memory, ref->offset);
         emit_cell_meets(l, c, ref->memory, ref->offset, end); ++c) {
      if (!l->cells[c].is_resident) emit_memory_load(l, &l->cells[c]);
    }
  }
}

// ---- pieces of values ----

// The type of the pieces into which the cells of `bytes` bytes from `begin` on divide a value of
// `type`: elements, or bytes if a cell splits an element. `out_size` is the size of a piece.
static LLVMTypeRef emit_memory_piece(const loop_t *l, LLVMTypeRef type, uint32_t first,
                                     uint32_t memory, uint64_t begin, uint64_t bytes,
                                     unsigned *out_size) {
  const bool is_vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
  LLVMTypeRef element = is_vector ? LLVMGetElementType(type) : type;
  const uint64_t size = bytes / (is_vector ? LLVMGetVectorSize(type) : 1);
  bool fits = true;
  for (uint32_t c = first; emit_cell_meets(l, c, memory, begin, begin + bytes); ++c) {
    // The first and the last cell may extend beyond the value.
    fits = fits && (int64_t)(l->cells[c].begin - begin) % (int64_t)size == 0;
    fits = fits && (l->cells[c].end - begin) % size == 0;
  }
  *out_size = fits ? (unsigned)size : 1;
  return fits ? element : LLVMInt8TypeInContext(l->e->context);
}

static LLVMValueRef emit_memory_int32(const loop_t *l, uint64_t number) {
  return LLVMConstInt(LLVMInt32TypeInContext(l->e->context), number, false);
}

// Pieces `from`, ... of a value of `count` pieces; the value itself if these are all.
static LLVMValueRef emit_memory_cut(const loop_t *l, LLVMValueRef value, uint64_t from,
                                    uint64_t count) {
  LLVMBuilderRef b = l->e->builder;
  LLVMTypeRef type = LLVMTypeOf(value);
  if (LLVMGetTypeKind(type) != LLVMVectorTypeKind || LLVMGetVectorSize(type) == count) return value;
  if (count == 1) return LLVMBuildExtractElement(b, value, emit_memory_int32(l, from), "");
  LLVMValueRef numbers[256];
  for (unsigned k = 0; k < count; ++k) numbers[k] = emit_memory_int32(l, from + k);
  return LLVMBuildShuffleVector(b, value, LLVMGetPoison(type),
                                LLVMConstVector(numbers, (unsigned)count), "");
}

// Inserts `value`, of `count` pieces, into those of `into` from `at` on.
static LLVMValueRef emit_memory_put(const loop_t *l, LLVMValueRef into, uint64_t at,
                                    LLVMValueRef value, uint64_t count) {
  LLVMBuilderRef b = l->e->builder;
  for (uint64_t k = 0; k < count; ++k) {
    LLVMValueRef one =
        count == 1 ? value : LLVMBuildExtractElement(b, value, emit_memory_int32(l, k), "");
    into = LLVMBuildInsertElement(b, into, one, emit_memory_int32(l, at + k), "");
  }
  return into;
}

// ---- refs ----

static uint32_t emit_memory_first(const loop_t *l, uint32_t ref) {
  return emit_first_cell(l, l->loop->refs[ref].memory, l->loop->refs[ref].offset);
}

bool emit_is_resident(const loop_t *l, uint32_t ref, uint64_t bytes) {
  const mp_native_ref_t *of = &l->loop->refs[ref];
  const uint32_t first = emit_memory_first(l, ref);
  return !emit_cell_meets(l, first, of->memory, of->offset, of->offset + bytes) ||
         l->cells[first].is_resident;
}

// The cell with exactly the bytes of a ref; NULL if there is none.
static const cell_t *emit_memory_only_cell(const loop_t *l, uint32_t ref, uint64_t bytes) {
  const mp_native_ref_t *of = &l->loop->refs[ref];
  const cell_t *cell = &l->cells[emit_memory_first(l, ref)];
  return cell->begin == of->offset && cell->end == of->offset + bytes ? cell : NULL;
}

LLVMTypeRef emit_moved_type(const loop_t *l, uint32_t ref, uint64_t bytes) {
  const cell_t *cell =
      emit_is_resident(l, ref, bytes) ? NULL : emit_memory_only_cell(l, ref, bytes);
  return cell != NULL ? cell->type : emit_memory_ints(l, bytes);
}

// The value of several cells.
static LLVMValueRef emit_memory_gather(const loop_t *l, uint32_t memory, uint64_t begin,
                                       LLVMTypeRef type, uint64_t bytes) {
  LLVMBuilderRef b = l->e->builder;
  const uint32_t first = emit_first_cell(l, memory, begin);
  unsigned size = 0;
  LLVMTypeRef piece = emit_memory_piece(l, type, first, memory, begin, bytes, &size);
  LLVMValueRef all = LLVMGetPoison(LLVMVectorType(piece, (unsigned)(bytes / size)));
  for (uint32_t c = first; emit_cell_meets(l, c, memory, begin, begin + bytes); ++c) {
    const cell_t *cell = &l->cells[c];
    const uint64_t from = cell->begin > begin ? cell->begin : begin;
    const uint64_t to = cell->end < begin + bytes ? cell->end : begin + bytes;
    LLVMValueRef value = LLVMBuildLoad2(b, cell->type, cell->variable, "");
    LLVMTypeRef pieces = emit_memory_vector(piece, (cell->end - cell->begin) / size);
    value = LLVMBuildBitCast(b, value, pieces, "");
    value = emit_memory_cut(l, value, (from - cell->begin) / size, (to - from) / size);
    all = emit_memory_put(l, all, (from - begin) / size, value, (to - from) / size);
  }
  return LLVMBuildBitCast(b, all, type, "");
}

LLVMValueRef emit_read_memory(const loop_t *l, uint32_t ref, LLVMTypeRef type, uint64_t bytes) {
  LLVMBuilderRef b = l->e->builder;
  if (emit_is_resident(l, ref, bytes)) {
    LLVMValueRef value = LLVMBuildLoad2(b, type, l->pointers[ref], "");
    LLVMSetAlignment(value, 1);
    return value;
  }
  const cell_t *cell = emit_memory_only_cell(l, ref, bytes);
  if (cell == NULL) {
    const mp_native_ref_t *of = &l->loop->refs[ref];
    return emit_memory_gather(l, of->memory, of->offset, type, bytes);
  }
  return LLVMBuildBitCast(b, LLVMBuildLoad2(b, cell->type, cell->variable, ""), type, "");
}

static void emit_memory_scatter(const loop_t *l, uint32_t ref, LLVMValueRef value, uint64_t bytes) {
  const mp_native_ref_t *of = &l->loop->refs[ref];
  LLVMBuilderRef b = l->e->builder;
  const uint32_t first = emit_memory_first(l, ref);
  unsigned size = 0;
  LLVMTypeRef piece =
      emit_memory_piece(l, LLVMTypeOf(value), first, of->memory, of->offset, bytes, &size);
  value = LLVMBuildBitCast(b, value, LLVMVectorType(piece, (unsigned)(bytes / size)), "");
  for (uint32_t c = first; emit_cell_meets(l, c, of->memory, of->offset, of->offset + bytes); ++c) {
    const cell_t *cell = &l->cells[c];
    LLVMValueRef part = emit_memory_cut(l, value, (cell->begin - of->offset) / size,
                                        (cell->end - cell->begin) / size);
    LLVMBuildStore(b, LLVMBuildBitCast(b, part, cell->type, ""), cell->variable);
  }
}

void emit_write_memory(const loop_t *l, uint32_t ref, LLVMValueRef value, uint64_t bytes) {
  LLVMBuilderRef b = l->e->builder;
  if (emit_is_resident(l, ref, bytes)) {
    LLVMSetAlignment(LLVMBuildStore(b, value, l->pointers[ref]), 1);
    return;
  }
  const cell_t *cell = emit_memory_only_cell(l, ref, bytes);
  if (cell == NULL) {
    emit_memory_scatter(l, ref, value, bytes);
  } else {
    LLVMBuildStore(b, LLVMBuildBitCast(b, value, cell->type, ""), cell->variable);
  }
}

// ---- elements ----

// Element `i` of bytes, in the lowest bits.
static uint64_t emit_memory_bits(const unsigned char *bytes, unsigned size, uint64_t i) {
  uint64_t bits = 0;
  for (unsigned k = size; k-- > 0;) bits = bits << 8 | bytes[i * size + k];
  return bits;
}

LLVMValueRef emit_read_known(const loop_t *l, uint32_t ref, mp_dtype_t dtype, uint64_t number) {
  const void *known = l->loop->refs[ref].known;
  if (known == NULL) return NULL;
  const unsigned size = emit_bytes(dtype);
  const uint64_t bits = emit_memory_bits(known, size, number);
  for (unsigned i = 1; i < l->e->lanes; ++i) {
    if (emit_memory_bits(known, size, number + i) != bits) return NULL;
  }
  return emit_known(l->e, dtype, bits);
}

LLVMValueRef emit_read(const loop_t *l, uint32_t ref, mp_dtype_t dtype) {
  const emit_t *e = l->e;
  LLVMValueRef value =
      emit_read_memory(l, ref, emit_memory_type(e, dtype), (uint64_t)e->lanes * emit_bytes(dtype));
  return emit_fence(e, dtype, emit_from_memory(e, dtype, value));
}

LLVMValueRef emit_read_element(const loop_t *l, uint32_t ref, LLVMTypeRef type, unsigned size,
                               uint64_t number) {
  const mp_native_ref_t *of = &l->loop->refs[ref];
  LLVMBuilderRef b = l->e->builder;
  const uint64_t begin = of->offset + number * size, end = begin + size;
  const uint32_t c = emit_first_cell(l, of->memory, begin);
  if (!emit_cell_meets(l, c, of->memory, begin, end) || l->cells[c].is_resident) {
    LLVMValueRef value = LLVMBuildLoad2(b, type, emit_memory_at(l, ref, number * size), "");
    LLVMSetAlignment(value, 1);
    return value;
  }
  const cell_t *cell = &l->cells[c];
  const uint64_t bytes = cell->end - cell->begin;
  const bool is_inside = cell->begin <= begin && end <= cell->end && bytes % size == 0 &&
                         (begin - cell->begin) % size == 0;
  if (!is_inside) return emit_memory_gather(l, of->memory, begin, type, size);
  LLVMValueRef all = LLVMBuildLoad2(b, cell->type, cell->variable, "");
  all = LLVMBuildBitCast(b, all, emit_memory_vector(type, bytes / size), "");
  return emit_memory_cut(l, all, (begin - cell->begin) / size, 1);
}
