// Loops: a block for each instruction.
#include "sim/native/module/emit_loop.h"

#include <stdlib.h>

static void emit_loop_move_bytes(const loop_t *l, LLVMValueRef to, LLVMValueRef from,
                                 int64_t bytes) {
  LLVMValueRef count = LLVMConstInt(LLVMInt64TypeInContext(l->e->context), (uint64_t)bytes, false);
  LLVMBuildMemMove(l->e->builder, to, 1, from, 1, count);
}

// ---- instructions ----

// An input of an op, or its known value, if that helps.
static LLVMValueRef emit_loop_input(const loop_t *l, const mp_native_instruction_t *i, uint32_t k) {
  const mp_dtype_t dtype = mp_native_input_type(&i->op, k);
  LLVMValueRef known = emit_uses_known(&i->op) ? emit_read_known(l, i->in[k], dtype, 0) : NULL;
  return known != NULL ? known : emit_read(l, i->in[k], dtype);
}

// Element `number` of an input.
static LLVMValueRef emit_loop_element(const loop_t *l, const mp_native_instruction_t *i, uint32_t k,
                                      uint64_t number) {
  const emit_t *e = l->e;
  const mp_dtype_t dtype = mp_native_input_type(&i->op, k);
  LLVMValueRef value = emit_uses_known(&i->op) ? emit_read_known(l, i->in[k], dtype, number) : NULL;
  if (value != NULL) return value;
  value = emit_read_element(l, i->in[k], emit_memory_type(e, dtype), emit_bytes(dtype), number);
  return emit_fence(e, dtype, emit_from_memory(e, dtype, value));
}

static void emit_loop_compute_singly(const loop_t *l, const mp_native_instruction_t *i) {
  const emit_t *e = l->e;
  LLVMTypeRef ints = LLVMInt32TypeInContext(e->context);
  const unsigned count = (unsigned)i->count;
  LLVMValueRef all = LLVMGetPoison(LLVMVectorType(emit_memory_type(e, i->op.to), count));
  for (unsigned n = 0; n < count; ++n) {
    LLVMValueRef in[MP_NATIVE_MAX_INPUTS] = {NULL};
    for (uint32_t k = 0; k < i->num_inputs; ++k) in[k] = emit_loop_element(l, i, k, n);
    LLVMValueRef value = emit_to_memory(e, i->op.to, emit_op(e, &i->op, in));
    all = LLVMBuildInsertElement(e->builder, all, value, LLVMConstInt(ints, n, false), "");
  }
  emit_write_memory(l, i->out, all, count * emit_bytes(i->op.to));
}

static void emit_loop_compute(const loop_t *l, const mp_native_instruction_t *i) {
  emit_t *e = l->e;
  LLVMValueRef in[MP_NATIVE_MAX_INPUTS] = {NULL};
  e->lanes = (unsigned)i->count;
  for (uint32_t k = 0; k < i->num_inputs; ++k) {
    in[k] = emit_loop_input(l, i, k);
  }
  LLVMValueRef value = emit_to_memory(e, i->op.to, emit_op(e, &i->op, in));
  emit_write_memory(l, i->out, value, (uint64_t)i->count * emit_bytes(i->op.to));
  e->lanes = 1;
}

static void emit_loop_copy(const loop_t *l, const mp_native_instruction_t *i) {
  const uint64_t bytes = (uint64_t)i->count;
  const bool from_memory = emit_is_resident(l, i->in[0], bytes);
  const bool to_memory = emit_is_resident(l, i->out, bytes);
  if (from_memory && to_memory) {
    emit_loop_move_bytes(l, l->pointers[i->out], l->pointers[i->in[0]], i->count);
    return;
  }
  LLVMTypeRef type = emit_moved_type(l, to_memory ? i->in[0] : i->out, bytes);
  emit_write_memory(l, i->out, emit_read_memory(l, i->in[0], type, bytes), bytes);
}

static void emit_loop_fill(const loop_t *l, const mp_native_instruction_t *i) {
  emit_t *e = l->e;
  const uint64_t size = emit_bytes(i->op.from);
  LLVMValueRef one = emit_read_memory(l, i->in[0], emit_memory_type(e, i->op.from), size);
  e->lanes = (unsigned)i->count;
  LLVMValueRef all = emit_splat(e, emit_memory_type(e, i->op.from), one);
  e->lanes = 1;
  emit_write_memory(l, i->out, all, (uint64_t)i->count * size);
}

static void emit_loop_pick(const loop_t *l, const mp_native_instruction_t *i) {
  emit_t *e = l->e;
  LLVMBuilderRef b = e->builder;
  const unsigned size = emit_bytes(i->op.from);
  LLVMTypeRef ints = LLVMInt32TypeInContext(e->context), one = emit_memory_type(e, i->op.from);
  LLVMValueRef value =
      i->count == 1 ? NULL : LLVMGetPoison(LLVMVectorType(one, (unsigned)i->count));
  for (unsigned k = 0; k < i->count; ++k) {
    LLVMValueRef element =
        emit_read_element(l, i->in[0], one, size, (uint64_t)l->loop->places[i->target + k]);
    value = value == NULL
                ? element
                : LLVMBuildInsertElement(b, value, element, LLVMConstInt(ints, k, false), "");
  }
  emit_write_memory(l, i->out, value, (uint64_t)i->count * size);
}

// The address of the row in the array at `base`.
static LLVMValueRef emit_loop_row(const loop_t *l, const mp_native_instruction_t *i,
                                  LLVMValueRef base) {
  const emit_t *e = l->e;
  LLVMBuilderRef b = e->builder;
  LLVMTypeRef type = LLVMInt64TypeInContext(e->context);
  LLVMValueRef place = LLVMConstNull(type);
  for (uint32_t k = 0; k < i->num_indices; ++k) {
    LLVMValueRef index = emit_read_known(l, i->in[1 + k], i->index_dtype, 0);
    if (index == NULL) index = emit_read(l, i->in[1 + k], i->index_dtype);
    const bool is_signed = emit_is_signed(i->index_dtype);
    index = LLVMBuildIntCast2(b, index, type, is_signed, "");
    LLVMValueRef low[] = {index, LLVMConstNull(type)};
    if (is_signed) index = emit_intrinsic(e, "llvm.smax", type, NULL, low, 2);
    LLVMValueRef high[] = {index, LLVMConstInt(type, (uint64_t)i->most[k], false)};
    index = emit_intrinsic(e, "llvm.umin", type, NULL, high, 2);
    LLVMValueRef stride = LLVMConstInt(type, (uint64_t)i->stride[k], false);
    place = LLVMBuildAdd(b, place, LLVMBuildMul(b, index, stride, ""), "");
  }
  return LLVMBuildGEP2(b, LLVMInt8TypeInContext(e->context), base, &place, 1, "");
}

static void emit_loop_take(const loop_t *l, const mp_native_instruction_t *i) {
  const uint64_t bytes = (uint64_t)i->count;
  LLVMValueRef from = emit_loop_row(l, i, l->pointers[i->in[0]]);
  if (emit_is_resident(l, i->out, bytes)) {
    emit_loop_move_bytes(l, l->pointers[i->out], from, i->count);
    return;
  }
  LLVMValueRef value = LLVMBuildLoad2(l->e->builder, emit_moved_type(l, i->out, bytes), from, "");
  LLVMSetAlignment(value, 1);
  emit_write_memory(l, i->out, value, bytes);
}

static void emit_loop_place(const loop_t *l, const mp_native_instruction_t *i) {
  const uint64_t bytes = (uint64_t)i->count;
  LLVMValueRef to = emit_loop_row(l, i, l->pointers[i->out]);
  if (emit_is_resident(l, i->in[0], bytes)) {
    emit_loop_move_bytes(l, to, l->pointers[i->in[0]], i->count);
    return;
  }
  LLVMValueRef value = emit_read_memory(l, i->in[0], emit_moved_type(l, i->in[0], bytes), bytes);
  LLVMSetAlignment(LLVMBuildStore(l->e->builder, value, to), 1);
}

// The field of the frame at `offset`, which is a pointer.
static LLVMValueRef emit_loop_field(const loop_t *l, size_t offset) {
  const emit_t *e = l->e;
  LLVMValueRef number = LLVMConstInt(LLVMInt64TypeInContext(e->context), offset, false);
  LLVMValueRef at =
      LLVMBuildGEP2(e->builder, LLVMInt8TypeInContext(e->context), l->frame, &number, 1, "");
  return LLVMBuildLoad2(e->builder, LLVMPointerTypeInContext(e->context, 0), at, "");
}

// Calls a function of the frame that takes the context, and `number` if there is one; the result is
// an i1.
static LLVMValueRef emit_loop_ask(const loop_t *l, size_t offset, const uint32_t *number) {
  const emit_t *e = l->e;
  LLVMTypeRef ints = LLVMInt32TypeInContext(e->context);
  LLVMTypeRef types[] = {LLVMPointerTypeInContext(e->context, 0), ints};
  const unsigned count = number == NULL ? 1 : 2;
  LLVMTypeRef function = LLVMFunctionType(LLVMInt8TypeInContext(e->context), types, count, false);
  LLVMValueRef callee = emit_loop_field(l, offset);
  LLVMValueRef arguments[] = {emit_loop_field(l, offsetof(mp_native_frame_t, context)),
                              LLVMConstInt(ints, number == NULL ? 0 : *number, false)};
  LLVMValueRef answer = LLVMBuildCall2(e->builder, function, callee, arguments, count, "");
  LLVMValueRef bit = LLVMBuildTrunc(e->builder, answer, LLVMInt1TypeInContext(e->context), "");
  return bit;
}

static LLVMBasicBlockRef emit_loop_new_block(const loop_t *l) {
  return LLVMAppendBasicBlockInContext(l->e->context, l->e->function, "");
}

static void emit_loop_call(const loop_t *l, uint32_t number) {
  LLVMBuilderRef b = l->e->builder;
  const mp_native_instruction_t *i = &l->loop->instructions[number];
  LLVMBasicBlockRef next = emit_loop_new_block(l);
  emit_save_for_call(l, i);
  LLVMValueRef is_done = emit_loop_ask(l, offsetof(mp_native_frame_t, call), &number);
  LLVMBuildCondBr(b, is_done, next, l->failed);
  LLVMPositionBuilderAtEnd(b, next);
  emit_load_after_call(l, i);
}

// Ends the run successfully, with this result.
static void emit_loop_return(const loop_t *l, int64_t result) {
  LLVMTypeRef type = LLVMInt64TypeInContext(l->e->context);
  LLVMBuildStore(l->e->builder, LLVMConstInt(type, (uint64_t)result, true), l->result);
  LLVMBuildBr(l->e->builder, l->leave);
}

// A back edge to instruction `target`: counts, and periodically checks whether to stop.
static void emit_loop_back(const loop_t *l, uint32_t number) {
  const mp_native_instruction_t *i = &l->loop->instructions[number];
  const emit_t *e = l->e;
  LLVMBuilderRef b = e->builder;
  emit_count(l, l->taken[number], 1);
  LLVMTypeRef ints = LLVMInt32TypeInContext(e->context);
  LLVMBasicBlockRef look = emit_loop_new_block(l), stop = emit_loop_new_block(l);
  LLVMValueRef left =
      LLVMBuildSub(b, LLVMBuildLoad2(b, ints, l->edges, ""), LLVMConstInt(ints, 1, false), "");
  LLVMBuildStore(b, left, l->edges);
  LLVMValueRef is_due = LLVMBuildICmp(b, LLVMIntEQ, left, LLVMConstNull(ints), "");
  LLVMBuildCondBr(b, is_due, look, l->blocks[i->target]);
  LLVMPositionBuilderAtEnd(b, look);
  LLVMBuildStore(b, LLVMConstInt(ints, l->loop->edges_per_look, false), l->edges);
  emit_count(l, l->looked, l->loop->edges_per_look);
  LLVMValueRef must_stop = emit_loop_ask(l, offsetof(mp_native_frame_t, must_stop), NULL);
  LLVMBuildCondBr(b, must_stop, stop, l->blocks[i->target]);
  LLVMPositionBuilderAtEnd(b, stop);
  emit_save_live(l, i->stop);
  emit_loop_return(l, i->stop);
}

// The last of `count` targets is the default.
static void emit_loop_switch(const loop_t *l, const mp_native_instruction_t *i) {
  const uint32_t *targets = l->loop->targets + i->target;
  const unsigned last = (unsigned)i->count - 1;
  LLVMTypeRef ints = LLVMInt32TypeInContext(l->e->context);
  LLVMValueRef number = emit_read(l, i->in[0], MP_DTYPE_S32);
  LLVMValueRef to = LLVMBuildSwitch(l->e->builder, number, l->blocks[targets[last]], last);
  for (unsigned t = 0; t < last; ++t) {
    LLVMAddCase(to, LLVMConstInt(ints, t, false), l->blocks[targets[t]]);
  }
}

// Ends the current block.
static void emit_loop_instruction(const loop_t *l, uint32_t number) {
  const mp_native_instruction_t *i = &l->loop->instructions[number];
  LLVMBuilderRef b = l->e->builder;
  switch (i->kind) {
    case MP_NATIVE_EXIT:
      emit_save_results(l);
      emit_loop_return(l, MP_NATIVE_OVER);
      return;
    case MP_NATIVE_JUMP:
      LLVMBuildBr(b, l->blocks[i->target]);
      return;
    case MP_NATIVE_BACK:
      emit_loop_back(l, number);
      return;
    case MP_NATIVE_BACK_IF: {
      emit_loop_compute(l, i);
      LLVMBasicBlockRef back = emit_loop_new_block(l), leave = emit_loop_new_block(l);
      LLVMBuildCondBr(b, emit_read(l, i->out, MP_DTYPE_BOOL), back, leave);
      LLVMPositionBuilderAtEnd(b, leave);
      emit_count(l, l->left[number], 1);
      LLVMBuildBr(b, l->blocks[i->other]);
      LLVMPositionBuilderAtEnd(b, back);
      emit_loop_back(l, number);
      return;
    }
    case MP_NATIVE_UNLESS:
      LLVMBuildCondBr(b, emit_read(l, i->in[0], MP_DTYPE_BOOL), l->blocks[number + 1],
                      l->blocks[i->target]);
      return;
    case MP_NATIVE_SWITCH:
      emit_loop_switch(l, i);
      return;
    case MP_NATIVE_COMPUTE:
      if (l->is_single[number]) {
        emit_loop_compute_singly(l, i);
      } else {
        emit_loop_compute(l, i);
      }
      break;
    case MP_NATIVE_FILL:
      emit_loop_fill(l, i);
      break;
    case MP_NATIVE_PICK:
      emit_loop_pick(l, i);
      break;
    case MP_NATIVE_COPY:
      emit_loop_copy(l, i);
      break;
    case MP_NATIVE_TAKE:
      emit_loop_take(l, i);
      break;
    case MP_NATIVE_PLACE:
      emit_loop_place(l, i);
      break;
    case MP_NATIVE_CALL:
      emit_loop_call(l, number);
      break;
    case MP_NATIVE_NUM_KINDS:
      break;
  }
  LLVMBuildBr(b, l->blocks[number + 1]);
}

// ---- the whole ----

static void emit_loop_open(loop_t *l) {
  const emit_t *e = l->e;
  LLVMBuilderRef b = e->builder;
  LLVMTypeRef pointer = LLVMPointerTypeInContext(e->context, 0);
  LLVMTypeRef index = LLVMInt64TypeInContext(e->context);
  LLVMValueRef refs = emit_loop_field(l, offsetof(mp_native_frame_t, refs));
  for (uint32_t r = 0; r < l->loop->num_refs; ++r) {
    LLVMValueRef number = LLVMConstInt(index, r, false);
    LLVMValueRef at = LLVMBuildGEP2(b, pointer, refs, &number, 1, "");
    l->pointers[r] = LLVMBuildLoad2(b, pointer, at, "");
  }
  emit_make_variables(l);
  LLVMBuildStore(b,
                 LLVMConstInt(LLVMInt32TypeInContext(e->context), l->loop->edges_per_look, false),
                 l->edges);
}

// Jumps to the start of the run: the first instruction, or the one where it has stopped.
static void emit_loop_enter(const loop_t *l) {
  const emit_t *e = l->e;
  LLVMTypeRef ints = LLVMInt32TypeInContext(e->context);
  LLVMValueRef at = LLVMGetParam(e->function, 1);
  LLVMValueRef to = LLVMBuildSwitch(e->builder, at, l->blocks[0], l->loop->num_instructions);
  for (uint32_t n = 0; n < l->loop->num_instructions; ++n) {
    const mp_native_instruction_t *i = &l->loop->instructions[n];
    if (!emit_is_back(l, n)) continue;
    bool is_first = i->stop != 0;
    for (uint32_t m = 0; m < n && is_first; ++m) {
      is_first = !emit_is_back(l, m) || l->loop->instructions[m].stop != i->stop;
    }
    if (is_first) LLVMAddCase(to, LLVMConstInt(ints, i->stop, false), l->blocks[i->stop]);
  }
}

// Adds the counts to the frame's edges, if it has any, and returns.
static void emit_loop_close(const loop_t *l) {
  const emit_t *e = l->e;
  LLVMBuilderRef b = e->builder;
  LLVMTypeRef type = LLVMInt64TypeInContext(e->context);
  LLVMBasicBlockRef add = emit_loop_new_block(l), end = emit_loop_new_block(l);
  LLVMPositionBuilderAtEnd(b, l->leave);
  LLVMValueRef edges = emit_loop_field(l, offsetof(mp_native_frame_t, edges));
  LLVMBuildCondBr(b, LLVMBuildIsNull(b, edges, ""), end, add);
  LLVMPositionBuilderAtEnd(b, add);
  emit_add_edges(l, edges);
  LLVMBuildBr(b, end);
  LLVMPositionBuilderAtEnd(b, end);
  LLVMBuildRet(b, LLVMBuildLoad2(b, type, l->result, ""));
}

static void emit_loop_all(loop_t *l) {
  const emit_t *e = l->e;
  LLVMBuilderRef b = e->builder;
  l->frame = LLVMGetParam(e->function, 0);
  l->edges = LLVMBuildAlloca(b, LLVMInt32TypeInContext(e->context), "");
  l->result = LLVMBuildAlloca(b, LLVMInt64TypeInContext(e->context), "");
  emit_make_counters(l);
  for (uint32_t n = 0; n < l->loop->num_instructions; ++n) {
    l->blocks[n] = emit_loop_new_block(l);
  }
  l->failed = emit_loop_new_block(l);
  l->leave = emit_loop_new_block(l);
  emit_loop_open(l);
  emit_loop_enter(l);
  for (uint32_t n = 0; n < l->loop->num_instructions; ++n) {
    LLVMPositionBuilderAtEnd(b, l->blocks[n]);
    emit_loop_instruction(l, n);
  }
  LLVMPositionBuilderAtEnd(b, l->failed);
  LLVMBuildRet(b, LLVMConstInt(LLVMInt64TypeInContext(e->context),
                               (uint64_t)(int64_t)MP_NATIVE_FAILED, true));
  emit_loop_close(l);
}

// Finds the cells, without types and variables, and where they are live. False if memory is short.
static bool emit_loop_find_cells(loop_t *l) {
  if (!emit_cut_cells(l)) return false;
  if (emit_find_single(l) && !emit_cut_cells(l)) return false;
  emit_describe_cells(l);
  return emit_find_live(l);
}

bool emit_loop(emit_t *e, const mp_native_loop_t *loop) {
  loop_t l = {.e = e,
              .loop = loop,
              .taken = calloc(loop->num_instructions + 1, sizeof(LLVMValueRef)),
              .left = calloc(loop->num_instructions + 1, sizeof(LLVMValueRef)),
              .is_single = calloc(loop->num_instructions + 1, sizeof(bool)),
              .pointers = calloc(loop->num_refs + 1, sizeof(LLVMValueRef)),
              .blocks = calloc(loop->num_instructions + 1, sizeof(LLVMBasicBlockRef))};
  const bool is_ok = l.taken != NULL && l.left != NULL && l.is_single != NULL &&
                     l.pointers != NULL && l.blocks != NULL && emit_loop_find_cells(&l);
  if (is_ok) emit_loop_all(&l);
  free(l.taken);
  free(l.left);
  free(l.is_single);
  free(l.pointers);
  free(l.cells);
  free(l.live);
  free(l.blocks);
  return is_ok;
}
