// Counts how often the back edges of a loop are reached.
#include "sim/native/module/emit_loop.h"

bool emit_is_back(const loop_t *l, uint32_t number) {
  const mp_native_kind_t kind = l->loop->instructions[number].kind;
  return kind == MP_NATIVE_BACK || kind == MP_NATIVE_BACK_IF;
}

void emit_count(const loop_t *l, LLVMValueRef counter, uint32_t more) {
  LLVMBuilderRef b = l->e->builder;
  LLVMTypeRef type = LLVMInt64TypeInContext(l->e->context);
  if (counter == NULL) return;
  LLVMValueRef count = LLVMBuildLoad2(b, type, counter, "");
  LLVMBuildStore(b, LLVMBuildAdd(b, count, LLVMConstInt(type, more, false), ""), counter);
}

static LLVMValueRef emit_edges_new_counter(const loop_t *l) {
  LLVMTypeRef type = LLVMInt64TypeInContext(l->e->context);
  LLVMValueRef counter = LLVMBuildAlloca(l->e->builder, type, "");
  LLVMBuildStore(l->e->builder, LLVMConstNull(type), counter);
  return counter;
}

void emit_make_counters(loop_t *l) {
  bool is_first = true;
  l->looked = emit_edges_new_counter(l);
  for (uint32_t n = 0; n < l->loop->num_instructions; ++n) {
    if (!emit_is_back(l, n)) continue;
    if (!is_first) l->taken[n] = emit_edges_new_counter(l);
    if (l->loop->instructions[n].kind == MP_NATIVE_BACK_IF) l->left[n] = emit_edges_new_counter(l);
    is_first = false;
  }
}

// Adds the counter to `sum`, or subtracts it; returns `sum` if the counter is NULL.
static LLVMValueRef emit_edges_sum(const loop_t *l, LLVMValueRef sum, LLVMValueRef counter,
                                   bool minus) {
  LLVMBuilderRef b = l->e->builder;
  if (counter == NULL) return sum;
  LLVMValueRef count = LLVMBuildLoad2(b, LLVMInt64TypeInContext(l->e->context), counter, "");
  return minus ? LLVMBuildSub(b, sum, count, "") : LLVMBuildAdd(b, sum, count, "");
}

// How often the first BACK or BACK_IF was taken: the total minus the others.
static LLVMValueRef emit_edges_taken_first(const loop_t *l) {
  const emit_t *e = l->e;
  LLVMBuilderRef b = e->builder;
  LLVMTypeRef type = LLVMInt64TypeInContext(e->context);
  LLVMValueRef to_look = LLVMBuildLoad2(b, LLVMInt32TypeInContext(e->context), l->edges, "");
  LLVMValueRef taken = LLVMBuildSub(b, LLVMConstInt(type, l->loop->edges_per_look, false),
                                    LLVMBuildZExt(b, to_look, type, ""), "");
  taken = emit_edges_sum(l, taken, l->looked, false);
  for (uint32_t n = 0; n < l->loop->num_instructions; ++n) {
    taken = emit_edges_sum(l, taken, l->taken[n], true);
  }
  return taken;
}

void emit_add_edges(const loop_t *l, LLVMValueRef edges) {
  LLVMBuilderRef b = l->e->builder;
  LLVMTypeRef type = LLVMInt64TypeInContext(l->e->context);
  for (uint32_t n = 0, edge = 0; n < l->loop->num_instructions; ++n) {
    if (!emit_is_back(l, n)) continue;
    LLVMValueRef number = LLVMConstInt(type, edge, false);
    LLVMValueRef at = LLVMBuildGEP2(b, type, edges, &number, 1, "");
    LLVMValueRef sum = LLVMBuildLoad2(b, type, at, "");
    if (edge++ == 0) sum = LLVMBuildAdd(b, sum, emit_edges_taken_first(l), "");
    sum = emit_edges_sum(l, emit_edges_sum(l, sum, l->taken[n], false), l->left[n], false);
    LLVMBuildStore(b, sum, at);
  }
}
