// Machine code for frequently executed programs.
//
// The interpreters of fused ops (sim/kernels/fused) and of small loops (sim/loops) do one step at a
// time, and pass values between steps through memory. When a program has run for some time, its
// interpreter passes it to this room as *code*, a short program of elementwise ops, and gets a
// machine function that keeps these values in registers. LLVM compiles it; LLVM is in a module of
// its own (module/), which is opened at the first compilation. Without the module, and for ops that
// code does not have, the interpreters continue.
//
// The results have the bits of the interpreters' loops (sim/kernels/elementwise), except for NaNs:
// of two NaN operands either may become the result, and a signalling NaN may become quiet.
//
// Equal code is compiled once per process, and stays until the process ends. All functions may be
// called from any thread.
#ifndef MINIPOD_SIM_NATIVE_NATIVE_H_
#define MINIPOD_SIM_NATIVE_NATIVE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/ir/module.h"
#include "sim/numeric/dtype.h"

// ---- ops ----

// An op on single elements: an elementwise op on computing types, a conversion from or to bf16 or
// f16, a bitcast between types of the same size, or a rotation.
typedef struct {
  mp_opcode_t code;
  mp_dtype_t from;     // of the operands; of SELECT's last two
  mp_dtype_t to;       // of the result
  uint32_t direction;  // COMPARE: MP_CMP_EQ, ...; never in total order
  bool
      is_rotation;  // SHIFT_LEFT, by less than the width: the shifted-out bits come in on the right
} mp_native_op_t;

enum { MP_NATIVE_MAX_INPUTS = 3 };

// Whether code can have the op.
bool mp_native_knows(const mp_native_op_t *op);

// The type of the op's input `k`.
static inline mp_dtype_t mp_native_input_type(const mp_native_op_t *op, uint32_t k) {
  return op->code == MP_OP_SELECT && k == 0 ? MP_DTYPE_BOOL : op->from;
}

// A type for elements of `bytes` bytes that are only moved; INVALID if there is none.
mp_dtype_t mp_native_moved_type(size_t bytes);

// ---- maps ----
//
// A map computes values for each element of a tile from others of the same element.

#define MP_NATIVE_NO_ARGUMENT UINT32_MAX

typedef struct {
  mp_dtype_t dtype;
  uint32_t argument;  // the argument with its elements, if it is read or stored; else NO_ARGUMENT
  bool is_read;       // before the first step
  bool is_one;        // read: one element for all of the tile
  bool is_stored;
  bool is_known;   // is_one: the element is the same in each run, and its bytes are
  uint64_t known;  // these, in the lowest ones
} mp_native_value_t;

typedef struct {
  mp_native_op_t op;
  uint32_t in[MP_NATIVE_MAX_INPUTS], out;  // values
} mp_native_step_t;

typedef struct {
  uint32_t num_values, num_steps;
  const mp_native_value_t *values;
  const mp_native_step_t *steps;
} mp_native_map_t;

// Does the steps for the elements [0, n) of each argument. A stored argument may be the same array
// as a read one.
typedef void (*mp_native_map_fn_t)(char *const *arguments, int64_t n);

// ---- loops ----

// The most elements that one instruction computes.
enum { MP_NATIVE_MAX_LANES = 64 };

// A loop is a sequence of instructions with jumps. Their operands and results are *refs*: places in
// memory.

typedef struct {
  // Refs with the same `memory` overlap if their bytes do. Other refs never overlap while both hold
  // values that will be read.
  uint32_t memory;
  uint64_t offset, bytes;
  const void *known;  // the bytes, if they are known and the same in each run; else NULL
  bool is_temporary;  // no command reads the bytes after a run before they are rewritten
} mp_native_ref_t;

// A ref that a CALL reads or writes.
typedef struct {
  uint32_t ref;
  uint64_t bytes;  // bytes of the ref, from its beginning; more than it has if unknown
  bool is_written;
  bool is_part;  // written: some of the bytes may stay unchanged
} mp_native_use_t;

typedef enum {
  MP_NATIVE_EXIT,
  MP_NATIVE_JUMP,     // to `target`
  MP_NATIVE_BACK,     // the same, as a back edge; a run can stop here
  MP_NATIVE_BACK_IF,  // COMPUTE, which is a comparison; then, if true, BACK; else JUMP to `other`
  MP_NATIVE_UNLESS,   // JUMP if in[0] (bool) is false
  MP_NATIVE_COMPUTE,  // out = op of `count` elements
  MP_NATIVE_SWITCH,   // JUMP to targets[target + i], i = in[0] (s32) if 0 <= i < count - 1, else
                      // count - 1
  MP_NATIVE_FILL,     // out = the element in[0], of type op.from, `count` times
  MP_NATIVE_PICK,     // out = elements of in[0], of type op.from: those at places[target], ...,
                      // `count`
  MP_NATIVE_COPY,     // out = in[0], `count` bytes
  MP_NATIVE_TAKE,     // out = `count` bytes of in[0], at the row's place
  MP_NATIVE_PLACE,    // `count` bytes of in[0] to out, at the row's place
  MP_NATIVE_CALL,     // mp_native_frame_t's `call` does it, by its number; what it reads and
                      // writes are uses[target], ..., `count`
  MP_NATIVE_NUM_KINDS,
} mp_native_kind_t;

enum { MP_NATIVE_MAX_INDICES = 3 };

typedef struct {
  mp_native_kind_t kind;
  mp_native_op_t op;
  uint32_t num_inputs;
  uint32_t in[MP_NATIVE_MAX_INPUTS + 1], out;  // refs
  uint32_t target, other;                      // instructions
  uint32_t stop;  // BACK, BACK_IF: the instruction with which a run that has stopped here continues
  int64_t count;
  // TAKE, PLACE: the indices are in[1], in[2], in[3], each limited to [0, most].
  uint32_t num_indices;
  mp_dtype_t index_dtype;
  int64_t most[MP_NATIVE_MAX_INDICES], stride[MP_NATIVE_MAX_INDICES];
} mp_native_instruction_t;

typedef struct {
  uint32_t num_refs, num_instructions;
  const mp_native_ref_t *refs;
  const mp_native_instruction_t *instructions;
  const uint32_t *targets;      // of SWITCH: instructions
  const int64_t *places;        // of PICK: numbers of elements
  const mp_native_use_t *uses;  // of CALL
  uint32_t num_targets, num_places, num_uses;
  uint32_t edges_per_look;  // back edges between two calls of must_stop
} mp_native_loop_t;

// The arguments of a run.
typedef struct {
  void *const *refs;  // the addresses
  bool (*must_stop)(void *context);
  bool (*call)(void *context, uint32_t instruction);  // false: an error; the run ends
  void *context;
  // Counters of how often each BACK and BACK_IF was reached, in the order of the instructions, to
  // which the run adds; NULL: not counted. An error adds nothing.
  uint64_t *edges;
} mp_native_frame_t;

enum { MP_NATIVE_OVER = -1, MP_NATIVE_FAILED = -2 };

// Runs from instruction `at`, which is 0 or a `stop`. Returns OVER, FAILED (then its results are
// invalid), or the instruction where it has stopped.
typedef int64_t (*mp_native_loop_fn_t)(const mp_native_frame_t *frame, uint32_t at);

// ---- making ----

// The function for the code; NULL if it cannot be compiled. May take some tens of milliseconds.
mp_native_map_fn_t mp_native_compile_map(const mp_native_map_t *map);
mp_native_loop_fn_t mp_native_compile_loop(const mp_native_loop_t *loop);

// ---- when ----

typedef enum {
  MP_NATIVE_NEVER,
  MP_NATIVE_WHEN_HOT,  // code that has run for about as long as compiling takes
  MP_NATIVE_AT_ONCE,   // for tests
} mp_native_policy_t;

// For the whole process; WHEN_HOT by default.
void mp_native_set_policy(mp_native_policy_t policy);

// Sets the file of the module; `path` must stay valid. The default is a file next to the library.
// For tests, before anything is compiled.
void mp_native_set_module(const char *path);

// The estimated total time of some code; shared by threads. Begins as {0}.
typedef struct {
  _Atomic uint64_t nanoseconds;
} mp_native_heat_t;

// Adds to the time. True for exactly one caller: that one should compile the code, which has about
// `num_steps` steps.
bool mp_native_heat(mp_native_heat_t *heat, uint64_t nanoseconds, uint32_t num_steps);

#endif  // MINIPOD_SIM_NATIVE_NATIVE_H_
