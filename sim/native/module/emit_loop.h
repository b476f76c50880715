// Shared by the files of loops: which bytes are local variables, and values of refs.
#ifndef MINIPOD_SIM_NATIVE_MODULE_EMIT_LOOP_H_
#define MINIPOD_SIM_NATIVE_MODULE_EMIT_LOOP_H_

#include "sim/native/module/emit.h"

// Bytes that no access splits: each access has all of them or none. They are a local variable,
// which LLVM puts into registers, unless they are *resident* in memory: part of an array that is
// too large, or of which an instruction accesses a part that is known only at run time.
typedef struct {
  uint32_t memory, ref;  // a ref that has the bytes
  uint64_t begin, end;   // in the memory
  bool is_resident;
  bool is_single;     // an instruction reads or writes its elements one by one
  bool is_written;    // by some instruction
  bool is_temporary;  // no command reads them after the run
  mp_dtype_t dtype;   // type of an op that computes with them; INVALID: they are only moved
  LLVMTypeRef type;
  LLVMValueRef variable;  // NULL if they are resident
} cell_t;

typedef struct {
  emit_t *e;
  const mp_native_loop_t *loop;
  LLVMValueRef frame, edges;
  LLVMValueRef result;  // the function's result: a local variable, like all that follow
  // The number of back edges taken up to the last check; `edges` has those since. The first BACK or
  // BACK_IF, mostly the innermost and hottest one, has no counter: it was taken as often as the
  // total minus the others.
  LLVMValueRef looked;
  LLVMValueRef *taken;     // [num_instructions]; of other BACKs and BACK_IFs
  LLVMValueRef *left;      // [num_instructions]; of a BACK_IF: how often it was not taken
  LLVMValueRef *pointers;  // [num_refs]
  uint32_t num_cells;
  cell_t *cells;    // in the order of their bytes
  bool *is_single;  // [num_instructions]: computed element by element (emit_single.c)
  // [num_instructions][num_words]: a bit for each cell that is live before the instruction
  // (emit_live.c).
  uint64_t *live;
  uint32_t num_words;
  LLVMBasicBlockRef *blocks;  // [num_instructions]
  LLVMBasicBlockRef failed, leave;
} loop_t;

// ---- emit_edges.c ----

// Whether an instruction is a back edge.
bool emit_is_back(const loop_t *l, uint32_t number);
// Makes the counters of the back edges.
void emit_make_counters(loop_t *l);
// Adds to a counter; nothing if it is NULL.
void emit_count(const loop_t *l, LLVMValueRef counter, uint32_t more);
// Adds what was counted to the array at `edges`, which has an element for each back edge.
void emit_add_edges(const loop_t *l, LLVMValueRef edges);

// ---- emit_access.c ----

// An access of an instruction to bytes.
typedef struct {
  uint32_t ref;
  uint64_t bytes;
  bool is_written;
  bool is_part;      // only some of the bytes, unknown which
  bool is_call;      // by a called step, not by this code
  mp_dtype_t dtype;  // type of the elements that the op computes with; INVALID: they are only moved
} access_t;

// The k-th access of an instruction, reads first; false if it has no more than `k`.
bool emit_access(const mp_native_loop_t *loop, const mp_native_instruction_t *i, uint32_t k,
                 access_t *out_access);

// ---- emit_cells.c ----

// Cuts all bytes into cells, in place of any earlier ones. False if memory is short.
bool emit_cut_cells(loop_t *l);
// Finds out what instructions do with the cells, and drops cells that no instruction uses.
void emit_describe_cells(loop_t *l);
// The first cell that does not end before the bytes of `memory` from `begin` on; num_cells if there
// is none.
uint32_t emit_first_cell(const loop_t *l, uint32_t memory, uint64_t begin);
// Whether the cell has some of these bytes. From emit_first_cell on, all such cells are
// consecutive.
bool emit_cell_meets(const loop_t *l, uint32_t cell, uint32_t memory, uint64_t begin, uint64_t end);

// ---- emit_single.c ----

// Finds the instructions that are computed element by element, from cells that are cut for all
// others. False if there are none.
bool emit_find_single(const loop_t *l);

// ---- emit_live.c ----

// Finds the cells that are live before each instruction. False if memory is short.
bool emit_find_live(loop_t *l);
bool emit_is_live(const loop_t *l, uint32_t instruction, uint32_t cell);

// ---- emit_memory.c ----

// Makes the variables of the cells, and loads those that are live where a run may begin.
void emit_make_variables(loop_t *l);

// Stores the cells that instruction `at` and later ones read, before the run stops there.
void emit_save_live(const loop_t *l, uint32_t at);
// Stores the cells that are read after the run.
void emit_save_results(const loop_t *l);
// The same before a CALL, and reloads the cells that it writes afterwards.
void emit_save_for_call(const loop_t *l, const mp_native_instruction_t *i);
void emit_load_after_call(const loop_t *l, const mp_native_instruction_t *i);

// Whether the ref's first `bytes` bytes are in memory; otherwise they are local variables.
bool emit_is_resident(const loop_t *l, uint32_t ref, uint64_t bytes);
// A type for `bytes` bytes of a ref that are only moved.
LLVMTypeRef emit_moved_type(const loop_t *l, uint32_t ref, uint64_t bytes);

// A ref's value with a type in memory form; written values have `bytes` bytes.
LLVMValueRef emit_read_memory(const loop_t *l, uint32_t ref, LLVMTypeRef type, uint64_t bytes);
void emit_write_memory(const loop_t *l, uint32_t ref, LLVMValueRef value, uint64_t bytes);
// A ref's value, with as many elements as there are lanes.
LLVMValueRef emit_read(const loop_t *l, uint32_t ref, mp_dtype_t dtype);
// The same from element `number` on as a constant, if it is known to be one number in all lanes;
// else NULL.
LLVMValueRef emit_read_known(const loop_t *l, uint32_t ref, mp_dtype_t dtype, uint64_t number);
// Element `number` of a ref, with a type in memory form, of `size` bytes.
LLVMValueRef emit_read_element(const loop_t *l, uint32_t ref, LLVMTypeRef type, unsigned size,
                               uint64_t number);

#endif  // MINIPOD_SIM_NATIVE_MODULE_EMIT_LOOP_H_
