// The state of the compiler of Mosaic functions; private to this folder.
//
// Scalars of integers and memrefs become instructions one by one. Vectors, and scalars of floats,
// are collected: consecutive ops that only make values of values are a *segment*, which becomes a
// StableHLO function, which fusion turns into a few kernels. A segment ends before what writes
// memory, before control flow, and before an instruction that needs one of its values.
#ifndef MINIPOD_SIM_MOSAIC_COMPILE_MOSAIC_COMPILER_H_
#define MINIPOD_SIM_MOSAIC_COMPILE_MOSAIC_COMPILER_H_

#include "sim/base/containers/array.h"
#include "sim/mosaic/run/mosaic_program.h"

// Where a value is.
typedef enum {
  MP_MOSAIC_NOWHERE,
  MP_MOSAIC_IN_REGISTER,
  MP_MOSAIC_IN_VECTOR,
  MP_MOSAIC_IN_VIEW,
} mp_mosaic_where_t;

typedef struct {
  mp_mosaic_where_t kind;
  uint32_t index;
  uint32_t root;  // of views: the argument of which it is a part; NONE: none
} mp_mosaic_place_t;

// A vector's memory is its own from the instruction that writes it to the last one that reads it.
typedef struct {
  uint64_t bytes, offset;
  uint32_t start, end;
  const void *known;
} mp_mosaic_vector_t;

typedef struct {
  uint32_t begin;                   // instruction
  MP_ARRAY(uint32_t) kept_vectors;  // vectors from before the loop that it reads
} mp_mosaic_loop_t;

// A call of a function: its values.
typedef struct mp_mosaic_frame_s mp_mosaic_frame_t;
struct mp_mosaic_frame_s {
  const mp_mosaic_func_t *func;
  mp_mosaic_place_t *places;  // by value id
  uint32_t *uses;             // the number of operands that are the value
  // The same, of selects that choose it or not, and of ops that are only chosen so
  // (mosaic_outside.c).
  uint32_t *choices;
  uint32_t *inner_uses;       // the number of operands in the segment
  uint32_t *segments;         // the segment whose op makes the value; 0: none
  mp_value_t **tensors;       // in the segment
  uint32_t *tensor_segments;  // the segment for which `tensors` holds
  mp_mosaic_frame_t *caller;
  uint32_t depth;
};

typedef struct mp_mosaic_compiler_s mp_mosaic_compiler_t;
struct mp_mosaic_compiler_s {
  mp_arena_t *arena;    // of the program
  mp_arena_t *scratch;  // of the compiler
  const mp_mosaic_module_t *module;
  const mp_mosaic_func_t *main;  // the kernel
  MP_ARRAY(mp_mosaic_instruction_t) code;
  MP_ARRAY(int64_t) registers;
  MP_ARRAY(mp_mosaic_vector_t) vectors;
  MP_ARRAY(mp_mosaic_loop_t) loops;
  uint32_t num_views;
  mp_mosaic_frame_t *frame;
  MP_ARRAY(const mp_mosaic_op_t *) pending;  // ops of the open segment
  uint32_t segment;                          // its number, from 1
  size_t scratch_bytes, shared_bytes;
  bool *written;       // by argument of the function: something writes it
  uint32_t num_roots;  // arguments
  bool has_state;      // the function has DMAs, semaphores, random numbers or prints
  // What control flow is made of, set by mp_mosaic_compile_func.
  //
  // Compiles the ops of a block up to its terminator.
  mp_status_t (*compile_block)(mp_mosaic_compiler_t *c, const mp_mosaic_block_t *block,
                               const mp_mosaic_op_t **out_terminator);
  // Instructions of a function whose arguments are at these places; its results' places become
  // those of `results`.
  mp_status_t (*inline_func)(mp_mosaic_compiler_t *c, const mp_mosaic_func_t *func,
                             const mp_mosaic_place_t *args, const mp_mosaic_value_t *results,
                             uint32_t num_results);
};

// The most instructions of a program, and depth of calls.
enum { MP_MOSAIC_MOST_INSTRUCTIONS = 4000000, MP_MOSAIC_MOST_DEPTH = 32 };

static inline uint32_t mp_mosaic_here(const mp_mosaic_compiler_t *c) {
  return c->code.count;
}

// ---- mosaic_compile.c ----

// Compiles a function: its arguments get the places that the entry has.
MP_NODISCARD mp_status_t mp_mosaic_compile_func(mp_mosaic_compiler_t *c,
                                                const mp_mosaic_func_t *func,
                                                mp_mosaic_entry_t *out_entry);
// ---- mosaic_emit.c ----

MP_NODISCARD mp_status_t mp_mosaic_emit(mp_mosaic_compiler_t *c,
                                        const mp_mosaic_instruction_t *instruction);
// A new register with a first value; a new vector, which the next instruction writes; a new view.
MP_NODISCARD mp_status_t mp_mosaic_new_register(mp_mosaic_compiler_t *c, int64_t value,
                                                uint32_t *out_register);
MP_NODISCARD mp_status_t mp_mosaic_new_vector(mp_mosaic_compiler_t *c, uint64_t bytes,
                                              uint32_t *out_vector);
// A place for a value of the type.
MP_NODISCARD mp_status_t mp_mosaic_new_place(mp_mosaic_compiler_t *c, const mp_mosaic_type_t *type,
                                             mp_mosaic_place_t *out_place);
// The next instruction reads the vector.
MP_NODISCARD mp_status_t mp_mosaic_use_vector(mp_mosaic_compiler_t *c, uint32_t vector);
// The op's result is at the place.
static inline void mp_mosaic_set_place(mp_mosaic_compiler_t *c, const mp_mosaic_value_t *value,
                                       mp_mosaic_place_t place) {
  c->frame->places[value->id] = place;
}
// A new place for a value, of which an instruction needs the index.
MP_NODISCARD mp_status_t mp_mosaic_new_result(mp_mosaic_compiler_t *c,
                                              const mp_mosaic_value_t *value, uint32_t *out_index);
MP_NODISCARD mp_status_t mp_mosaic_begin_loop(mp_mosaic_compiler_t *c);
// After the instruction that jumps back.
MP_NODISCARD mp_status_t mp_mosaic_end_loop(mp_mosaic_compiler_t *c);
// Errors that do not name the op, because their makers did not know it, get its name.
MP_NODISCARD mp_status_t mp_mosaic_name_op(const mp_mosaic_op_t *op, mp_status_t status);
// A copy of a memref's type without its layout, in the program's arena.
MP_NODISCARD mp_status_t mp_mosaic_copy_type(const mp_mosaic_compiler_t *c,
                                             const mp_mosaic_type_t *type,
                                             const mp_mosaic_type_t **out_type);
// "vector.load, kernel.py:12:7", in the program's arena.
MP_NODISCARD mp_status_t mp_mosaic_where(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op,
                                         const char **out_where);

// ---- mosaic_need.c ----

// Where a value is; the open segment ends if it makes the value. Vectors count as read by the next
// instruction.
MP_NODISCARD mp_status_t mp_mosaic_need(mp_mosaic_compiler_t *c, const mp_mosaic_value_t *value,
                                        mp_mosaic_place_t *out_place);
MP_NODISCARD mp_status_t mp_mosaic_need_index(mp_mosaic_compiler_t *c,
                                              const mp_mosaic_value_t *value, uint32_t *out_index);
// Instructions that move values, all at once, to places.
MP_NODISCARD mp_status_t mp_mosaic_emit_moves(mp_mosaic_compiler_t *c,
                                              mp_mosaic_value_t *const *values, uint32_t count,
                                              const mp_mosaic_place_t *places);

// ---- mosaic_compile_scalar.c ----

// Whether the op computes integers alone, none of them a vector.
bool mp_mosaic_is_scalar_op(const mp_mosaic_op_t *op);
MP_NODISCARD mp_status_t mp_mosaic_compile_scalar(mp_mosaic_compiler_t *c,
                                                  const mp_mosaic_op_t *op);
// Instructions for an affine expression of registers.
MP_NODISCARD mp_status_t mp_mosaic_compile_affine(mp_mosaic_compiler_t *c,
                                                  const mp_mosaic_affine_t *expression,
                                                  const uint32_t *dims, uint32_t num_dims,
                                                  uint32_t *out_register);

// ---- mosaic_compile_flow.c ----

MP_NODISCARD mp_status_t mp_mosaic_compile_flow(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op);

// ---- mosaic_compile_log.c ----

MP_NODISCARD mp_status_t mp_mosaic_compile_log(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op);

// ---- mosaic_compile_memory.c ----

MP_NODISCARD mp_status_t mp_mosaic_compile_memory(mp_mosaic_compiler_t *c,
                                                  const mp_mosaic_op_t *op);

// Memory of `bytes` bytes that stays for the whole run; the op's result is all of it.
MP_NODISCARD mp_status_t mp_mosaic_compile_allocate(mp_mosaic_compiler_t *c,
                                                    const mp_mosaic_op_t *op, uint64_t bytes);

// ---- mosaic_outside.c ----

// Whether the op is a sum or product of integers, or other bits or another shape of a vector, that
// is only an operand of selects, or of others of its kind.
bool mp_mosaic_only_chosen(const mp_mosaic_frame_t *frame, const mp_mosaic_op_t *op);
// Whether the value may be MP_MOSAIC_OUTSIDE: a load that is only used so, of an element that is
// outside of its memref, or a sum or product of one. A vector is not, but the same holds for it.
bool mp_mosaic_may_be_outside(const mp_mosaic_compiler_t *c, const mp_mosaic_value_t *value);

// ---- mosaic_choices.c ----

// Fills frame->choices; frame->uses is filled.
MP_NODISCARD mp_status_t mp_mosaic_count_choices(mp_mosaic_frame_t *frame, mp_arena_t *arena);

// ---- mosaic_compile_async.c ----

MP_NODISCARD mp_status_t mp_mosaic_compile_async(mp_mosaic_compiler_t *c, const mp_mosaic_op_t *op);

// ---- mosaic_segment.c ----

// Adds an op to the open segment.
MP_NODISCARD mp_status_t mp_mosaic_add_to_segment(mp_mosaic_compiler_t *c,
                                                  const mp_mosaic_op_t *op);
// Ends the open segment: its kernels become instructions.
MP_NODISCARD mp_status_t mp_mosaic_end_segment(mp_mosaic_compiler_t *c);
// Makes a value alone that segments make again for each use: a constant, an iota.
MP_NODISCARD mp_status_t mp_mosaic_make_again(mp_mosaic_compiler_t *c,
                                              const mp_mosaic_value_t *value,
                                              mp_mosaic_place_t *out_place);
bool mp_mosaic_is_made_again(const mp_mosaic_value_t *value);

// ---- mosaic_segment_emit.c ----

// A vector for each argument and (set here) each result of the function.
MP_NODISCARD mp_status_t mp_mosaic_emit_segment(mp_mosaic_compiler_t *c, mp_module_t *module,
                                                const uint32_t *arg_vectors,
                                                uint32_t *out_result_vectors);

// ---- mosaic_direct.c ----

// Finds results of kernels that can be computed where they are stored, when loads are known that
// need no copy.
MP_NODISCARD mp_status_t mp_mosaic_find_directs(mp_mosaic_compiler_t *c);

// ---- mosaic_lay_out.c ----

// Decides where each vector lies, and which loads need no copy.
MP_NODISCARD mp_status_t mp_mosaic_lay_out(mp_mosaic_compiler_t *c, size_t *out_bytes);

#endif  // MINIPOD_SIM_MOSAIC_COMPILE_MOSAIC_COMPILER_H_
