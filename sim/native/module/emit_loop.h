// What the files of loops share: where refs lie, and their values.
#ifndef MINIPOD_SIM_NATIVE_MODULE_EMIT_LOOP_H_
#define MINIPOD_SIM_NATIVE_MODULE_EMIT_LOOP_H_

#include "sim/native/module/emit.h"

typedef struct {
  LLVMValueRef pointer;
  LLVMValueRef shadow;      // NULL if it has none
  LLVMTypeRef shadow_type;  // of the local variable
  uint64_t bytes;           // of the shadow
  bool has_uses;            // which all have as many bytes, unless has_others
  bool has_others;          // is used with different sizes, or as part of an array (but for PICK)
  bool is_written;
  bool is_local;  // the ref is private and written: memory need not be right
} place_t;

typedef struct {
  emit_t *e;
  const mp_native_loop_t *loop;
  LLVMValueRef frame, edges;
  LLVMValueRef result;  // what the function will return: a local variable, as all that follow
  // How many back edges have passed up to the last look. With those since then, which `edges` says,
  // these are all that were taken. Of these the first BACK or BACK_IF's, mostly the innermost and
  // hottest one, are those that are no others': it need not count.
  LLVMValueRef looked;
  LLVMValueRef *taken;        // [num_instructions]; of other BACKs and BACK_IFs
  LLVMValueRef *left;         // [num_instructions]; of a BACK_IF: how often it was not taken
  place_t *places;            // [num_refs]
  LLVMBasicBlockRef *blocks;  // [num_instructions]
  LLVMBasicBlockRef failed, leave;
} loop_t;

// Whether an instruction is a back edge.
bool emit_is_back(const loop_t *l, uint32_t number);
// Makes the counters of the back edges.
void emit_make_counters(loop_t *l);
// Adds to a counter; nothing if it is NULL.
void emit_count(const loop_t *l, LLVMValueRef counter, uint32_t more);
// Adds what was counted to the array at `edges`, which has an element for each back edge.
void emit_add_edges(const loop_t *l, LLVMValueRef edges);

// Finds out which refs can have shadows, and makes them. Afterwards each has to be loaded.
void emit_make_shadows(const loop_t *l);

// Loads a ref's shadow from memory, if it has one and memory is right.
void emit_reload(const loop_t *l, uint32_t ref);
// The same for all other refs that share the first `bytes` bytes of this one.
void emit_reload_overlapping(const loop_t *l, uint32_t but, uint64_t bytes);

// A ref's value as one of a type as it lies in memory; what is written has `bytes` bytes.
LLVMValueRef emit_read_memory(const loop_t *l, uint32_t ref, LLVMTypeRef type);
void emit_write_memory(const loop_t *l, uint32_t ref, LLVMValueRef value, uint64_t bytes);
// A ref's value; the current number of lanes says how many elements.
LLVMValueRef emit_read(const loop_t *l, uint32_t ref, mp_dtype_t dtype);

// An integer type for what is only copied; NULL if there is none of its size.
LLVMTypeRef emit_copied_type(const loop_t *l, uint64_t bytes);

#endif  // MINIPOD_SIM_NATIVE_MODULE_EMIT_LOOP_H_
