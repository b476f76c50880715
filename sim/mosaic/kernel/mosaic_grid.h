// The grid of a kernel: the function runs once for each step, on blocks of the arrays.
//
// A block is copied to the run's memory when its index changes, and blocks of results are copied
// back when theirs does, and at the end. A block that lies in one piece is used where it is.
//
// If the outer dimensions of the grid are parallel, their steps are divided into parts, which may
// run at the same time. A part begins with memory that holds nothing; should a step read such
// memory, because it carries something from one step to the next, then all steps run again, one
// after the other, when the parts are done.
#ifndef MINIPOD_SIM_MOSAIC_KERNEL_MOSAIC_GRID_H_
#define MINIPOD_SIM_MOSAIC_KERNEL_MOSAIC_GRID_H_

#include "sim/mosaic/check/mosaic_check.h"
#include "sim/mosaic/run/mosaic_program.h"
#include "sim/mosaic/run/mosaic_view.h"

enum { MP_MOSAIC_MAX_GRID = 16 };

// An array that the function sees block by block, or as a whole.
typedef struct {
  bool is_result;
  uint32_t array;                    // operand or result of the call
  uint32_t arg;                      // of the function
  uint32_t view;                     // of the argument
  bool is_whole;                     // the argument is the array itself, wherever it lies
  bool is_semaphores;                // the run counts with 64 bits, the array has 32
  bool is_copied;                    // blocks are never used where they are
  bool is_element;                   // the index counts elements instead of blocks
  bool is_constant;                  // a result whose index is the same in all parts
  bool is_array;                     // the argument is an array in VMEM or SMEM, not a copy of it
  bool is_kept;                      // a result's block holds what the array has: revisit_mode any
  uint32_t num_buffers;              // of a block on a TPU; 0: not said
  bool fills;                        // a result that is unset before the first step
  bool unsets;                       // a result whose blocks are unset when the grid comes to them
  bool has_entry;                    // else the index is 0 in each dimension
  mp_mosaic_entry_t entry;           // index of the grid -> index of the block
  int64_t pad[MP_MOSAIC_MAX_RANK];   // is_element: elements before the array
  int64_t dims[MP_MOSAIC_MAX_RANK];  // of the array
  const mp_mosaic_type_t *type;      // of the argument
  int64_t alias;                     // result: the operand whose elements it begins with; or -1
  size_t bytes, offset;              // of the block's copy in the part's memory
} mp_mosaic_window_t;

// Memory of the part that the function sees: scratch, and copies of prefetched operands.
typedef struct {
  uint32_t arg, view;
  uint32_t operand;  // NONE: scratch
  const mp_mosaic_type_t *type;
  size_t bytes, offset;
} mp_mosaic_local_t;

typedef struct {
  mp_kernel_t kernel;  // first
  mp_mosaic_program_t program;
  mp_mosaic_entry_t main;
  const char *name;
  uint32_t rank;                                // of the grid
  int64_t bounds[MP_MOSAIC_MAX_GRID];           // DYNAMIC: an operand
  uint32_t bound_operands[MP_MOSAIC_MAX_GRID];  // of dynamic ones
  uint32_t num_parallel;                        // outer dimensions that parts divide
  int64_t parallel_steps;                       // their product
  uint32_t num_windows, num_locals;
  mp_mosaic_window_t *windows;
  mp_mosaic_local_t *locals;
  size_t part_bytes;                    // of one part's memory, without the state
  size_t run_bytes;                     // with it
  bool has_semaphores;                  // that other kernels use, too
  const mp_mosaic_check_name_t *names;  // by argument, if runs are checked; or NULL
  uint32_t num_args;
  // The dimension of the grid that a checked kernel's target divides between two cores; NONE: none.
  uint32_t divided;
} mp_mosaic_kernel_t;

// A run of some steps, one after the other.
typedef struct mp_mosaic_grid_s mp_mosaic_grid_t;
struct mp_mosaic_grid_s {
  const mp_mosaic_kernel_t *kernel;
  mp_kernel_call_t call;
  mp_mosaic_state_t state;
  struct mp_mosaic_window_state_s *windows;
  int64_t bounds[MP_MOSAIC_MAX_GRID], step[MP_MOSAIC_MAX_GRID];
  mp_mosaic_check_t *check;                   // NULL: none
  bool is_last;                               // no part comes after this
  bool is_inside;                             // of the step: the function has begun
  int64_t num_left;                           // steps, with this one
  void (*has_moved)(mp_mosaic_grid_t *grid);  // called when blocks have moved; NULL: nothing
};

// Prepares a run of all steps, in memory of scratch_bytes (kernel->kernel, or run_bytes if it
// communicates): results are copied from operands or unset.
MP_NODISCARD mp_status_t mp_mosaic_grid_begin(const mp_mosaic_kernel_t *kernel,
                                              const mp_kernel_call_t *call,
                                              mp_mosaic_check_t *check, mp_mosaic_grid_t *out_grid);
// Moves the blocks to the current step, if there is one and its function has not begun.
MP_NODISCARD mp_status_t mp_mosaic_grid_enter_step(mp_mosaic_grid_t *grid);
// Runs until all steps are done, or one has to wait (BLOCKED), or reads what is unset (CARRIES).
// Errors name the kernel and the step.
MP_NODISCARD mp_status_t mp_mosaic_grid_go_on(mp_mosaic_grid_t *grid,
                                              mp_mosaic_outcome_t *out_outcome);
// All steps are done, and other devices do not reach the run's memory any more: the semaphores of
// arguments are stored, and the check says what it finds.
MP_NODISCARD mp_status_t mp_mosaic_grid_end(const mp_mosaic_grid_t *grid);
// Appends "kernel 'flash', grid step (0, 1, 2)".
void mp_mosaic_grid_print(const mp_mosaic_grid_t *grid, mp_strbuf_t *out);

// Runs the steps of one part; `finish` runs all of them if a part has found that it must.
MP_NODISCARD mp_status_t mp_mosaic_grid_run(const mp_kernel_t *kernel,
                                            const mp_kernel_call_t *call);
MP_NODISCARD mp_status_t mp_mosaic_grid_finish(const mp_kernel_t *kernel,
                                               const mp_kernel_call_t *call);

// The same with a check; NULL: without one. Kernels that are checked have one part.
MP_NODISCARD mp_status_t mp_mosaic_grid_run_with(const mp_mosaic_kernel_t *kernel,
                                                 const mp_kernel_call_t *call,
                                                 mp_mosaic_check_t *check);

// The index of a window's block at a step of the grid. The views that its function reads are set.
MP_NODISCARD mp_status_t mp_mosaic_window_index(const mp_mosaic_kernel_t *kernel,
                                                const mp_mosaic_window_t *window,
                                                const int64_t *step, mp_mosaic_state_t *state,
                                                int64_t *out_index);

// ---- mosaic_window.c ----

// Where a window is in a run.
typedef struct {
  bool has_block, is_copy;
  int64_t index[MP_MOSAIC_MAX_RANK];
} mp_mosaic_window_block_t;

typedef struct mp_mosaic_window_state_s {
  mp_mosaic_window_block_t block;
  char *array, *copy;
} mp_mosaic_window_state_t;

// Makes the argument's view the block with this index. OUT_OF_RANGE if it is not in the array.
MP_NODISCARD mp_status_t mp_mosaic_window_move(const mp_mosaic_window_t *window,
                                               const int64_t *index,
                                               mp_mosaic_window_state_t *state,
                                               mp_mosaic_view_t *view);
// Whether that would change the block.
bool mp_mosaic_window_moves(const mp_mosaic_window_t *window, const int64_t *index,
                            const mp_mosaic_window_state_t *state);
// The bytes of the window's array, and of an element of it.
size_t mp_mosaic_window_array_bytes(const mp_mosaic_window_t *window);
size_t mp_mosaic_window_element_bytes(const mp_mosaic_window_t *window);
// Copies a result's block back.
void mp_mosaic_window_flush(const mp_mosaic_window_t *window, mp_mosaic_window_state_t *state);

// Sets the run's semaphores to those of the array, or those of a result to 0; and stores them back,
// also to an operand: on a TPU it is the semaphore itself, not its value.
void mp_mosaic_window_load_semaphores(const mp_mosaic_window_t *window,
                                      const mp_mosaic_window_state_t *state);
MP_NODISCARD mp_status_t mp_mosaic_window_store_semaphores(const mp_mosaic_window_t *window,
                                                           const mp_mosaic_window_state_t *state);

// ---- mosaic_grid_check.c ----

// mp_mosaic_grid_run of a kernel whose runs are checked.
MP_NODISCARD mp_status_t mp_mosaic_grid_check(const mp_kernel_t *kernel,
                                              const mp_kernel_call_t *call);

// ---- mosaic_grid_watch.c ----

// A run begins: its views have memory.
MP_NODISCARD mp_status_t mp_mosaic_grid_watch_begin(const mp_mosaic_kernel_t *kernel,
                                                    const mp_mosaic_state_t *state,
                                                    mp_mosaic_check_t *check);
// A step begins: the first one of another core has no memory of the steps before it.
MP_NODISCARD mp_status_t mp_mosaic_grid_watch_step(const mp_mosaic_kernel_t *kernel,
                                                   const int64_t *step, const int64_t *bounds,
                                                   const mp_mosaic_state_t *state,
                                                   mp_mosaic_check_t *check);
// A window has moved to another block.
MP_NODISCARD mp_status_t mp_mosaic_grid_watch_move(const mp_mosaic_window_t *window,
                                                   const mp_mosaic_state_t *state,
                                                   mp_mosaic_check_t *check);

#endif  // MINIPOD_SIM_MOSAIC_KERNEL_MOSAIC_GRID_H_
