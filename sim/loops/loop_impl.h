// Shared by the files of sim/loops: the form of a loop, and of its builder.
#ifndef MINIPOD_SIM_LOOPS_LOOP_IMPL_H_
#define MINIPOD_SIM_LOOPS_LOOP_IMPL_H_

#include "sim/base/containers/array.h"
#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/fused/tile/view.h"
#include "sim/loops/loop.h"
#include "sim/loops/scalar_ops.h"
#include "sim/native/native.h"

// The kinds of steps. Each row of scalar_ops.h has a scalar kind.
// clang-format changes these macros again each time it runs.
// clang-format off
#define MP_STEPS(X)                                                                              \
  X(EXIT)       /* the loop, or the steps before it, are over */                                 \
  X(JUMP)       /* to the target */                                                              \
  X(BACK)       /* to the target, a back edge */                                                 \
  X(UNLESS)     /* to the target if *in[0] (bool) is false */                                    \
  X(SWITCH)     /* to one of the `count` targets, by *in[0] (s32) */                             \
  X(COPY_1)     /* *out = *in[0], 1, 4 or 8 bytes */                                             \
  X(COPY_4)                                                                                      \
  X(COPY_8)                                                                                      \
  X(COPY)       /* `count` bytes */                                                              \
  X(FILL)       /* out = the element *in[0], `size` bytes, `count` times */                      \
  X(VIEW)       /* out = `count` elements of in[0] through the view */                           \
  X(LOOP)       /* out = the elementwise loop over `count` elements of the inputs */             \
  X(KERNEL)     /* all parts of a kernel */                                                      \
  X(TAKE_ROW)   /* out = `count` bytes of in[0], at the row's place */                           \
  X(PLACE_ROW)  /* `count` bytes of in[0] to out, at the row's place */                          \
  X(TAKE_4)     /* the same for 4 bytes and one index of s32 */                                  \
  X(PLACE_4)                                                                                     \
  X(DIVIDE_BY_S32)     /* by the constant *in[1], whose reciprocal is `count` */                 \
  X(REMAINDER_BY_S32)

// All steps, by name. BACK_IF_... ends most rounds: a comparison, and, if it is true, a back edge
// to the target; otherwise the loop continues with step `size`.
#define MP_ALL_STEPS(X)                                 \
  MP_STEPS(X)                                           \
  MP_SCALAR_UNARY(MP_STEP_OF_OP) MP_SCALAR_BINARY(MP_STEP_OF_OP) \
  MP_SCALAR_COMPARE(MP_STEP_OF_COMPARE)                 \
  MP_SCALAR_COMPARE(MP_STEP_OF_BACK_IF)                 \
  MP_SCALAR_CONVERT(MP_STEP_OF_CONVERT)                 \
  MP_SCALAR_SELECT(MP_STEP_OF_SELECT)
#define MP_STEP_OF_OP(kind, op, dtype) MP_STEP_X(op##_##dtype)
#define MP_STEP_OF_COMPARE(direction, operator, dtype) MP_STEP_X(direction##_##dtype)
#define MP_STEP_OF_BACK_IF(direction, operator, dtype) MP_STEP_X(BACK_IF_##direction##_##dtype)
#define MP_STEP_OF_CONVERT(from, to) MP_STEP_X(from##_TO_##to)
#define MP_STEP_OF_SELECT(bytes, dtype) MP_STEP_X(SELECT_##bytes)
// clang-format on

// Users of MP_ALL_STEPS(MP_STEP_X) define MP_STEP_X.
#define MP_STEP_X(name) MP_DO_##name,
enum { MP_ALL_STEPS(MP_STEP_X) MP_DO_COUNT };
#undef MP_STEP_X

enum { MP_ROW_MAX_INDICES = 3 };

// Estimated times, in seconds, of a step and of a moved byte: they determine how often to check
// whether a loop has to stop.
#define MP_LOOP_STEP_SECONDS 2e-9
#define MP_LOOP_BYTE_SECONDS 0.5e-9

// The offset of a row in an array: the sum over its indices, each limited to [0, most], times
// stride.
typedef struct {
  uint32_t count;
  mp_dtype_t dtype;  // of the indices, which are in[1], in[2], in[3]
  struct {
    int64_t most, stride;  // stride in bytes
  } indices[MP_ROW_MAX_INDICES];
} mp_loop_row_t;

// The bytes at `offset` from the beginning of a slot; of the loop's own memory when `base` is
// num_slots; or, when it is num_slots + 1, those at the address `offset`.
typedef struct {
  uint32_t base;
  uintptr_t offset;
} mp_loop_ref_t;

// The arguments of a kernel; its pointers are loop->refs[first_ref], operands first.
typedef struct {
  const mp_kernel_t *kernel;
  uint32_t num_operands, num_results, first_ref;
} mp_loop_call_t;

// Facts about a scalar step or a LOOP that only machine code needs.
typedef struct {
  uint64_t in_bytes[MP_EW_MAX_INPUTS + 1], out_bytes;  // that the step reads and writes
  mp_native_op_t op;  // the op; MP_OP_COUNT if machine code cannot compute it
} mp_loop_detail_t;

// A step while the loop is not running. It is read whole for each run, so it is small.
typedef struct {
  uint32_t what;
  // FILL, VIEW: of an element; TAKE_ROW, PLACE_ROW: 1 if there is one index, of s32; BACK_IF: a
  // step
  uint32_t size;
  uint32_t target;    // jumps: the number of a command, later of a step; SWITCH: the first target
  uint32_t num_refs;  // used of `in`
  mp_loop_ref_t in[MP_EW_MAX_INPUTS + 1], out;
  int64_t count;
  const mp_loop_detail_t *detail;  // scalars and LOOP; NULL in sequences, which stay interpreted
  union {
    mp_ew_loop_t loop;         // LOOP
    const mp_view_t *view;     // VIEW
    const mp_loop_row_t *row;  // TAKE_ROW, PLACE_ROW
    uint32_t call;             // KERNEL: its number
  } u;
} mp_loop_step_t;

// 64 bytes of the loop's own memory.
typedef struct {
  uint32_t first;  // the first of the pieces that were allocated together
  bool is_fixed;   // in first pieces: the contents are the same in all rounds
  // In first pieces: the scalar's value, if it is known at this time; else NULL.
  const void *known;
} mp_loop_piece_t;

// Machine code of the loop, once it is hot.
typedef struct {
  mp_native_heat_t heat;
  _Atomic(mp_native_loop_fn_t) run;
  bool has_calls;  // `run` calls steps
  uint32_t num_refs;
  mp_loop_ref_t *refs;  // room for all steps of the loop
} mp_loop_native_t;

struct mp_loop_s {
  uint32_t num_slots;
  const mp_loop_slot_t *slots;
  uint32_t num_steps;         // steps of the loop; followed by those that are done before it
  uint32_t num_steps_before;  // they compute values that are the same in all rounds
  const mp_loop_step_t *steps;
  uint32_t num_edges;  // back edges among its steps
  uint32_t num_calls, num_refs;
  const mp_loop_call_t *calls;
  const mp_loop_ref_t *refs;
  const uint32_t *targets;  // of SWITCH: numbers of steps
  uint32_t num_targets;
  uint32_t edges_per_look;  // back edges between two calls of must_stop
  double seconds;           // of a round, roughly
  uint32_t num_pieces;
  const mp_loop_piece_t *pieces;
  mp_loop_native_t *native;
  // The parts of the scratch memory, in bytes from its beginning: prepared steps, pointers and
  // calls, the addresses for machine code, the loop's own memory, kernels' scratch memory.
  size_t pointers_at, calls_at, natives_at, own_at, kernel_at, scratch_bytes;
};

struct mp_loop_builder_s {
  mp_arena_t *arena;
  uint32_t num_slots, num_commands, command;
  const mp_loop_slot_t *slots;
  uint32_t *starts;  // [num_commands + 1]: the first step of a command
  MP_ARRAY(mp_loop_step_t) steps, before;
  MP_ARRAY(mp_loop_call_t) calls;
  MP_ARRAY(mp_loop_ref_t) refs;
  MP_ARRAY(uint32_t) targets;
  MP_ARRAY(mp_loop_piece_t) pieces;  // the loop's own memory, from its beginning
  // No command passes its own memory to the next one, so each can use it all; num_taken pieces are
  // the current one's.
  bool is_straight;
  uint32_t num_taken;
  size_t kernel_bytes;
  double seconds;  // of a round, roughly
};

// ---- between the files ----

// The ref of an address, and of `bytes` bytes of new memory that the loop owns.
mp_loop_ref_t mp_loop_address_ref(const mp_loop_builder_t *b, const void *address);
MP_NODISCARD mp_status_t mp_loop_own_ref(mp_loop_builder_t *b, size_t bytes,
                                         mp_loop_ref_t *out_ref);
// The bytes of a ref whose value is known now; otherwise NULL.
const void *mp_loop_constant(const mp_loop_builder_t *b, mp_loop_ref_t ref);

// Adds a step that computes `out` from in[0 .. num_refs). A step whose inputs are the same in all
// rounds, and whose result is in the loop's own memory, runs before the loop.
MP_NODISCARD mp_status_t mp_loop_add_step(mp_loop_builder_t *b, const mp_loop_step_t *step);
// Adds the step that copies `bytes` bytes; none if both are the same.
MP_NODISCARD mp_status_t mp_loop_add_copy_step(mp_loop_builder_t *b, mp_loop_ref_t from,
                                               mp_loop_ref_t to, uint64_t bytes);

// compute_op.c: adds the step that computes `count` elements of the op. For the inputs in `ones`
// the loop reads a single element, which is not known at compile time.
MP_NODISCARD mp_status_t mp_loop_add_op(mp_loop_builder_t *b, const mp_op_t *op, const mp_ew_t *ew,
                                        uint32_t ones, const mp_loop_ref_t *in, mp_loop_ref_t out,
                                        int64_t count);

// The same for an op on computing types; `loop` is its loop.
MP_NODISCARD mp_status_t mp_loop_add_elementwise(mp_loop_builder_t *b, const mp_native_op_t *op,
                                                 mp_ew_loop_t loop, uint32_t num_inputs,
                                                 const mp_loop_ref_t *in, mp_loop_ref_t out,
                                                 int64_t count);

// compute_reduce.c: whether a reduction can be steps (a known one of few elements to one), and the
// function that adds them. `x` refers to the elements, in their order.
MP_NODISCARD mp_status_t mp_loop_can_reduce(const mp_loop_builder_t *b, const mp_op_t *op,
                                            bool *out_can);
MP_NODISCARD mp_status_t mp_loop_add_reduction(mp_loop_builder_t *b, const mp_op_t *op,
                                               mp_loop_ref_t x, mp_loop_ref_t start,
                                               mp_loop_ref_t out);

// Each of these makes steps for a kind of kernel if it can (`out_done`). `operands` and `results`
// are the kernel's.
// compute.c: elementwise ops, small reductions, and regions of both; ops that only move elements.
MP_NODISCARD mp_status_t mp_loop_compute(mp_loop_builder_t *b, const mp_op_t *op,
                                         const mp_loop_ref_t *operands,
                                         const mp_loop_ref_t *results, bool *out_done);
// rows.c: dynamic_slice and dynamic_update_slice of contiguous elements; concatenate.
MP_NODISCARD mp_status_t mp_loop_rows(mp_loop_builder_t *b, const mp_op_t *op,
                                      const mp_loop_ref_t *operands, const mp_loop_ref_t *results,
                                      bool *out_done);

// Computes a step of scalar_ops.h now.
void mp_loop_evaluate(const mp_loop_step_t *step, const void *const *in, void *out);

// Makes machine code of the loop if it can. For one thread at a time.
void mp_loop_make_native(const mp_loop_t *loop);

// Divides the scratch memory, of which `own` and `kernel` bytes are the loop's own and kernels'.
void mp_loop_lay_out(mp_loop_t *loop, size_t own, size_t kernel);

// Whether the step is a BACK_IF_...; there are as many of these as comparisons before them.
enum {
  MP_FIRST_COMPARE = MP_DO_EQ_S32,
  MP_FIRST_BACK_IF = MP_DO_BACK_IF_EQ_S32,
  MP_NUM_COMPARES = MP_FIRST_BACK_IF - MP_FIRST_COMPARE,
};
static inline bool mp_loop_is_back_if(uint32_t what) {
  return what >= MP_FIRST_BACK_IF && what < MP_FIRST_BACK_IF + MP_NUM_COMPARES;
}
static inline bool mp_loop_is_back(uint32_t what) {
  return what == MP_DO_BACK || mp_loop_is_back_if(what);
}
static inline bool mp_loop_is_compare(uint32_t what) {
  return what >= MP_FIRST_COMPARE && what < MP_FIRST_COMPARE + MP_NUM_COMPARES;
}

// Whether the step is a row of scalar_ops.h.
static inline bool mp_loop_is_scalar(uint32_t what) {
  return what > MP_DO_REMAINDER_BY_S32 && !mp_loop_is_back_if(what);
}

// An upper bound of the number of different refs of its steps.
static inline size_t mp_loop_most_refs(const mp_loop_t *loop) {
  return (size_t)loop->num_steps * (MP_EW_MAX_INPUTS + 2) + loop->num_refs;
}

static inline bool mp_loop_same_ref(mp_loop_ref_t a, mp_loop_ref_t b) {
  return a.base == b.base && a.offset == b.offset;
}

#endif  // MINIPOD_SIM_LOOPS_LOOP_IMPL_H_
