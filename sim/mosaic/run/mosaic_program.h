// A compiled Mosaic function: instructions with jumps, and the state of a run.
//
// A run keeps all it knows in mp_mosaic_state_t, so that it can stop at any instruction and go on
// later, on any thread. A program is made once, then never changed, and may be shared.
//
//   registers  scalars: integers sign-extended to 64 bits (i1: 0 or 1), floats as their bits
//   vectors    places in the run's memory, row-major, elements as sim/numeric/dtype.h stores them
//   views      memrefs: an address, sizes and distances
#ifndef MINIPOD_SIM_MOSAIC_RUN_MOSAIC_PROGRAM_H_
#define MINIPOD_SIM_MOSAIC_RUN_MOSAIC_PROGRAM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/kernels/kernel.h"
#include "sim/mosaic/ir/mosaic_ir.h"

enum { MP_MOSAIC_MAX_RANK = 8 };
#define MP_MOSAIC_NONE    UINT32_MAX
#define MP_MOSAIC_BARRIER (UINT32_MAX - 1)  // root: the device's semaphore for barriers
#define MP_MOSAIC_ENDS    (UINT32_MAX - 2)  // root: how many devices have ended the kernel
// The most operands and results of a kernel.
enum { MP_MOSAIC_MOST_ARRAYS = 256 };

// ---- memrefs ----

// Elements may be seen as another type than they are stored as (tpu.memref_bitcast). Then an
// element consists of `pack` stored ones, which are `pack_step` bytes apart, the lowest bits first;
// or `split` elements along dimension `split_dim` are the parts of one stored element, each of
// `element` bytes. Groups of `split` elements that follow at another distance than the groups do,
// as a row of 256 seen as two rows of 128 (tpu.memref_reshape), are such parts, too.
//
// An array in HBM lies in tiles on a TPU, and a DMA may reach into what fills up the last one:
// `room` elements behind the array, of which `beyond` are the view's last ones
// (mosaic_view_padding.c). They have no memory here.
typedef struct {
  char *base;  // of the first element
  uint32_t rank;
  uint32_t element;  // bytes of an element as it is seen
  uint32_t pack;     // 1: not packed
  uint32_t split;    // 1: not split
  uint32_t split_dim;
  uint32_t phase;      // split: the number of the first element in its stored one
  uint32_t part_bits;  // packed: the bits that count of each stored byte; 0: stored elements have
                       // whole bytes
  uint32_t root;       // the argument of which it is a part; NONE, BARRIER: none
  int64_t pack_step;
  int64_t split_step;  // bytes between the parts of a stored element
  int64_t dims[MP_MOSAIC_MAX_RANK];
  int64_t strides[MP_MOSAIC_MAX_RANK];  // bytes; split_dim: of stored elements
  uint16_t room[MP_MOSAIC_MAX_RANK];
  uint16_t beyond[MP_MOSAIC_MAX_RANK];
} mp_mosaic_view_t;

// ---- instructions ----

typedef enum {
  MP_MOSAIC_DO_RETURN,
  MP_MOSAIC_DO_JUMP,    // to `target`
  MP_MOSAIC_DO_UNLESS,  // to `target` if register a is 0
  MP_MOSAIC_DO_SWITCH,  // to targets[i] for the first i with cases[i] = register a; else the last
  MP_MOSAIC_DO_MOVE,    // registers: out = a
  MP_MOSAIC_DO_MOVE_VIEW,
  MP_MOSAIC_DO_COPY,  // vectors: out = a, `value` bytes
  // out = a (op) b, of `bits` bits; flag: MP_MOSAIC_OUTSIDE if one of them is
  MP_MOSAIC_DO_INTEGER,
  MP_MOSAIC_DO_COMPARE,      // out = a (predicate) b
  MP_MOSAIC_DO_SELECT,       // out = a ? b : c
  MP_MOSAIC_DO_EXTEND,       // out = a as an integer of `bits` bits, unsigned if `flag`
  MP_MOSAIC_DO_TO_VECTOR,    // vector out = register a, an element of `value` bytes
  MP_MOSAIC_DO_FROM_VECTOR,  // register out = vector a, an element of `dtype`
  MP_MOSAIC_DO_KERNEL,
  MP_MOSAIC_DO_LOAD,   // vector out = part of view a
  MP_MOSAIC_DO_STORE,  // part of view a = vector b, where mask c is true
  // register out = element of view a; flag: or MP_MOSAIC_OUTSIDE, if there is none
  MP_MOSAIC_DO_LOAD_SCALAR,
  MP_MOSAIC_DO_STORE_SCALAR,
  MP_MOSAIC_DO_SLICE,    // views: out = part of a; flag: only its size counts
  MP_MOSAIC_DO_SQUEEZE,  // without dimensions of size 1
  MP_MOSAIC_DO_RESHAPE,
  MP_MOSAIC_DO_BITCAST,
  MP_MOSAIC_DO_ALLOCATE,  // view out = memory of vector a
  MP_MOSAIC_DO_SIZE,      // register out = size of dimension `value` of view a
  MP_MOSAIC_DO_BOUND,     // register out = bound `value` of the grid
  MP_MOSAIC_DO_DMA,       // view b = view a, of `dtype`, signals view c
  // The same on the device of register `target`, whose semaphore c is; also signals `out` (NONE:
  // nothing) here.
  MP_MOSAIC_DO_REMOTE_DMA,
  MP_MOSAIC_DO_WAIT_DMA,  // waits for the bytes of view a, of `dtype`, at semaphore c
  MP_MOSAIC_DO_SEM_READ,
  MP_MOSAIC_DO_SEM_SIGNAL,
  MP_MOSAIC_DO_SEM_WAIT,
  MP_MOSAIC_DO_REMOTE_SIGNAL,  // of the device of register `target`
  MP_MOSAIC_DO_BARRIER,        // view out = the device's semaphore for barriers
  MP_MOSAIC_DO_DEVICE,         // register out = the number of the device in the program
  MP_MOSAIC_DO_SEED,           // of random numbers: registers of `indices`
  MP_MOSAIC_DO_RANDOM,         // vector out = `value` bytes
  MP_MOSAIC_DO_ASSERT,
  MP_MOSAIC_DO_NOT_OUTSIDE,  // register a is not MP_MOSAIC_OUTSIDE
  MP_MOSAIC_DO_LOG,
  MP_MOSAIC_DO_NUM_KINDS,
} mp_mosaic_do_t;

// What a load of 32 bits or less cannot give.
#define MP_MOSAIC_OUTSIDE (INT64_MIN + 1)

// Semaphores of a DMA that count it as 1, and not its bytes: those that are not for DMAs.
typedef enum { MP_MOSAIC_COUNTS_TARGET = 1, MP_MOSAIC_COUNTS_SOURCE = 2 } mp_mosaic_counts_t;

// A part of a view.
typedef struct {
  uint32_t num_indices;
  const uint32_t *indices;  // registers
  uint32_t rank;
  const int64_t *sizes;     // MP_MOSAIC_DYNAMIC: in the next register of `dynamic`
  const uint32_t *dynamic;  // registers
  const int64_t *steps;     // NULL: all are 1
  bool is_slice;            // and not loaded or stored: it may have padding
} mp_mosaic_part_t;

// A result that is stored to memory, and may be computed right there: by the later instruction
// `store`. Not if the memory is, in part, that of one of the vectors `others`, which are read by
// this kernel or later; the kernel may overwrite the operands `operands` (bits) element by element.
typedef struct {
  uint32_t result, store;
  uint32_t num_others;
  const uint32_t *others;
  uint32_t operands;
} mp_mosaic_direct_t;

typedef struct {
  uint32_t num_directs;
  const mp_mosaic_direct_t *directs;
  const mp_kernel_t *kernel;
  uint32_t num_operands, num_results;
  const uint32_t *operands, *results;  // vectors
} mp_mosaic_kernel_call_t;

typedef struct {
  uint32_t count;
  const int64_t *cases;
  const uint32_t *targets;  // [count + 1]
} mp_mosaic_cases_t;

// What a kernel prints: a text with values, or one memref.
typedef struct {
  uint32_t index;  // of a register, vector or view
  mp_dtype_t dtype;
  bool is_vector, is_view;
} mp_mosaic_logged_t;

typedef struct {
  const char *text;
  bool is_formatted;  // "$0" in the text is the first value; otherwise values follow the text
  uint32_t count;
  const mp_mosaic_logged_t *values;
} mp_mosaic_log_t;

typedef struct {
  uint8_t kind;       // mp_mosaic_do_t
  uint8_t bits;       // of integers; DMA, REMOTE_DMA: mp_mosaic_counts_t
  uint8_t predicate;  // of comparisons: arith.cmpi's
  uint8_t dtype;      // mp_dtype_t
  uint16_t code;      // INTEGER: mp_mosaic_opcode_t
  bool flag;
  uint32_t out, a, b, c;
  uint32_t target;  // of jumps; LOAD, STORE: the argument of which view a is a part, or NONE
  int64_t value;    // REMOTE_: the register of the core, or -1
  union {
    const mp_mosaic_part_t *part;
    const mp_mosaic_kernel_call_t *call;
    const mp_mosaic_type_t *type;  // of a view: a copy, since the module goes
    const mp_mosaic_cases_t *cases;
    const char *text;  // ASSERT
    const mp_mosaic_log_t *log;
  } u;
  const char *where;  // for messages: "vector.load, kernel.py:12:7"; NULL: cannot fail
} mp_mosaic_instruction_t;

// ---- programs ----

// A function that a run may begin at.
typedef struct {
  uint32_t begin;  // instruction
  uint32_t num_args, num_results;
  const uint32_t *args;     // registers or views, by the argument's type
  const uint32_t *results;  // registers
} mp_mosaic_entry_t;

typedef struct {
  uint32_t num_instructions, num_registers, num_vectors, num_views;
  const mp_mosaic_instruction_t *instructions;
  const int64_t *registers;  // their first values
  const uint64_t *offsets;   // [num_vectors] in the memory; for known ones not used
  const uint64_t *sizes;     // [num_vectors] bytes
  const void *const *known;  // [num_vectors] vectors that are the same in each run; NULL: others
  size_t memory_bytes;       // of vectors and allocations
  size_t scratch_bytes, shared_bytes;  // of kernels
  bool communicates;                   // with runs on other devices
  bool polls;  // may read in a loop what is changed elsewhere (mosaic_poll.h)
} mp_mosaic_program_t;

// How a run has stopped. CARRIES: it reads memory that holds nothing (`unset`). YIELDS: it polls,
// and may continue at once.
typedef enum {
  MP_MOSAIC_DONE,
  MP_MOSAIC_BLOCKED,
  MP_MOSAIC_CARRIES,
  MP_MOSAIC_YIELDS,
} mp_mosaic_outcome_t;

// What is known of a loop that polls (mosaic_poll.h).
typedef struct {
  uint32_t num_idle;   // reads since the run has last stored or signalled anything
  uint32_t num_reads;  // of semaphores, since one has changed
  uint32_t num_looks;  // reads, for looking only now and then
  bool has_note;       // the next three are set: at an earlier read
  uint32_t pc;
  uint64_t noted_changes;
  int64_t *registers;     // [num_registers], if the program polls
  uint64_t seen_changes;  // at the last look
} mp_mosaic_poll_t;

// Sees what a run does: each instruction, after it has run, that is more than arithmetic or a jump.
// Its error ends the run, and gets the instruction's `where`.
typedef struct mp_mosaic_state_s mp_mosaic_state_t;
typedef struct mp_mosaic_watcher_s mp_mosaic_watcher_t;
struct mp_mosaic_watcher_s {
  mp_status_t (*saw)(mp_mosaic_watcher_t *watcher, const mp_mosaic_instruction_t *in,
                     const mp_mosaic_state_t *state);
  // A device starts a DMA to memory of the run; `known` is what it knows of the clock of the run's
  // device (mosaic_clocks.h). Called on that device's thread, under the lock of the peers.
  mp_status_t (*comes)(mp_mosaic_watcher_t *watcher, const mp_mosaic_view_t *target,
                       uint32_t known);
};

// A run. All but `pc` is set by mp_mosaic_state_init and the caller.
struct mp_mosaic_state_s {
  uint32_t pc;
  int64_t *registers;
  mp_mosaic_view_t *views;
  char **vectors;  // their addresses
  char *memory;
  void *scratch, *shared;
  const int64_t *bounds;  // of the grid
  uint64_t seed, draws;   // of random numbers
  // Arguments, in bits, whose memory holds nothing until something is stored to all of it.
  uint64_t unset;
  bool reads_unset;
  const uint32_t *kernel_args;  // the views of the arguments, if any is unset
  // BLOCKED at a wait: the semaphore, and the value that the run waits for. Not with peers.
  int64_t *semaphore, wanted;
  mp_mosaic_watcher_t *watcher;  // NULL: none
  int64_t left;                  // of the semaphore of the last wait that was done
  mp_mosaic_poll_t poll;
  // The runs on other devices, if the program communicates, and the number of this one's device.
  struct mp_mosaic_peers_s *peers;
  uint32_t device;
};

// The bytes that the state's arrays and memories take, 64-byte aligned.
size_t mp_mosaic_state_bytes(const mp_mosaic_program_t *program);
// Sets up a state in such memory. Its views and what lies in its memory are not set.
void mp_mosaic_state_init(const mp_mosaic_program_t *program, char *memory,
                          mp_mosaic_state_t *out_state);

// Runs from state->pc until the function returns, waits for a semaphore or yields. Errors say
// where.
MP_NODISCARD mp_status_t mp_mosaic_run(const mp_mosaic_program_t *program, mp_mosaic_state_t *state,
                                       mp_mosaic_outcome_t *out_outcome);

#endif  // MINIPOD_SIM_MOSAIC_RUN_MOSAIC_PROGRAM_H_
