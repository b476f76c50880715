// What the books of programs come to, as rows of a table: for each program its collectives, with
// the link that each loads most, and its heaviest ops.
//
// Rows outlive the programs: they hold copies. Programs of the same name and shape are one row, so
// that a process which compiles for ever does not grow for ever. Not thread-safe.
#ifndef MINIPOD_SIM_MODEL_REPORT_REPORT_ROWS_H_
#define MINIPOD_SIM_MODEL_REPORT_REPORT_ROWS_H_

#include "sim/base/arena.h"
#include "sim/base/containers/array.h"
#include "sim/chip/schedule/overlap.h"
#include "sim/model/clock/model.h"

enum {
  MP_REPORT_PROGRAMS = 1000,   // rows; further programs are added up in one without details
  MP_REPORT_COLLECTIVES = 32,  // of a program: those on which devices spend most
  MP_REPORT_COPIES = 16,       // likewise
  MP_REPORT_OPS = 256,         // likewise
  MP_REPORT_GUESSES = 16,      // likewise: the first ones
  MP_REPORT_LAYERS = 128,      // likewise, as ops
  MP_REPORT_FINDINGS = 16,     // likewise
  MP_REPORT_NO_LINK = -1,
};

// What a kernel's time is: of computing, of moving bytes, or of beginning at all.
typedef enum {
  MP_BOUND_COMPUTE,
  MP_BOUND_MEMORY,
  MP_BOUND_LATENCY,
} mp_bound_t;

const char *mp_bound_name(mp_bound_t bound);

// Collectives at one place, of one size and the same groups. Sums are over groups, rounds and
// launches.
typedef struct {
  const char *kind;   // "all_reduce"; static text
  const char *place;  // "psum at train.py:5:36"
  const char *axes;   // "data and model"; "": not known
  double bytes;       // of the operands on a device
  uint32_t round;     // meetings or messages that it is when all devices come to it once
  uint32_t members;   // of its largest group; 0: it has pairs
  uint32_t first[2];  // the global ids of the first two of that group, if there are as many
  mp_overlap_t overlap;
  mp_replay_meetings_t met;
  int64_t link;         // the one that its bytes keep busy longest; MP_REPORT_NO_LINK: none is used
  double link_bytes;    // over it
  double link_seconds;  // that it needs for them at its full rate
} mp_report_collective_t;

// The parts of a TPU kernel that is priced by its own program (sim/mosaic/price), of one run.
typedef struct {
  const char *bound;  // what bounds it: "matrix unit", "DMA"; static text. NULL: another kernel
  mp_moment_t fill, compute, wait;
  double vmem;  // bytes
  bool is_guessed;
} mp_report_kernel_t;

// Kernels of the chip at one place, of one size.
typedef struct {
  const char *name;   // "dot_general"
  const char *place;  // "dot_general at train.py:3:5"
  mp_work_class_t work_class;
  mp_bound_t bound;
  uint64_t count;  // times that it was run, on all devices together
  double flops;    // once
  double bytes;    // once
  mp_moment_t time;
  mp_report_kernel_t kernel;
} mp_report_op_t;

// All kernels of one class, also those without a row. Sums over devices and launches.
typedef struct {
  mp_moment_t time;
  double flops;
  double recomputed;  // of these, in kernels that compute again what a checkpoint has dropped
} mp_report_class_t;

// All that was done under one name of the user's framework, without that of the op itself:
// "jit(step)/jvp(layer0)/mlp". Sums over devices and launches.
typedef struct {
  const char *name;
  mp_moment_t work, traffic;  // of collectives what is exposed
} mp_report_layer_t;

// Copies between devices and their hosts at one place, of one size and direction.
typedef struct {
  const char *place;
  bool is_to_host, is_async;
  double bytes;
  mp_replay_copies_t did;
} mp_report_copy_t;

// A choice of the program that was not made but guessed, because the value that decides is absent.
typedef struct {
  const char *place;  // "cond at train.py:3:5"
  uint32_t branches;  // 0: a loop
  uint64_t taken;     // the number of the branch, or how often the loop went round
  int32_t why;        // the branch: mp_pod_time_t.unknown_branch
  uint64_t count;     // on all devices together
} mp_report_guess_t;

// What could be done otherwise (report_findings.c).
typedef enum {
  MP_FINDING_REPEATED,   // several devices compute the same
  MP_FINDING_BATCH,      // the same, of an argument that is not cut although others are
  MP_FINDING_ATTENTION,  // scores of attention go through memory: there is no fused kernel
  MP_FINDING_SCATTER,    // of an all_reduce each device uses its part alone
  MP_FINDING_EXPOSED,    // devices wait for collectives of one kind along one axis
  MP_FINDING_BLOCKS,     // overhead of the steps of a kernel of Pallas
} mp_finding_t;

const char *mp_finding_name(mp_finding_t finding);

typedef struct {
  mp_finding_t finding;
  // "argument 2 (256x1024xbf16)", "scores of 8x16x2048x2048xf32", "all_gather along x",
  // "4096 steps (grid 64x64, blocks of 8x128)"
  const char *what;
  const char *place;  // "dot_general at train.py:8:5"
  uint32_t devices;   // REPEATED, BATCH: that compute the same
  mp_moment_t time;   // of all devices together: what is spent for nothing, or in this way
} mp_report_finding_t;

typedef struct {
  const char *name;  // without control characters
  uint64_t key;      // equal for equal programs
  uint64_t serial;   // of programs in the order in which they were made; of several the first
  uint32_t number;   // among programs of its name, from 1 on, in this order; 0: the only one
  uint32_t num_devices;
  uint64_t launches;
  uint64_t runs;                       // devices that took part in these, together
  mp_moment_t time;                    // of the device that took longest, summed
  mp_moment_t available;               // of all devices that took part
  mp_moment_t transfers;               // that these waited for arguments before they began
  mp_rhythm_t rhythm;                  // of equal programs: of the one with most launches
  mp_moment_t work, waiting, traffic;  // of all devices together; of collectives what is exposed
  mp_moment_t hidden;                  // of collectives and copies, overlapped
  bool is_cut;
  uint64_t collectives;                // meetings of all collectives, also of those without a row
  double collective_bytes;             // of their operands, on one device for each meeting
  uint32_t num_collectives;            // rows
  mp_report_collective_t *collective;  // the one on which most time is spent first
  uint32_t num_copies;
  mp_report_copy_t *copy;  // likewise
  mp_chip_memory_t memory;
  mp_report_class_t classes[MP_WORK_CLASS_COUNT];
  double by_figure[MP_FIGURE_COUNT];  // moments of kernels, by the parameter that decides each
  uint32_t num_ops;
  mp_report_op_t *op;  // likewise
  uint32_t num_layers;
  mp_report_layer_t *layer;  // likewise
  // In the order in which they came first. The texts ("train.py:12:5", "blocks.0.up at
  // train.py:12") are the row's, without control characters.
  MP_ARRAY(mp_model_caller_books_t) callers;
  uint64_t guessed;          // choices, also those without a row
  uint32_t num_guesses;      // rows
  mp_report_guess_t *guess;  // in the order of the program
  uint32_t num_findings;
  mp_report_finding_t *findings;  // [MP_REPORT_FINDINGS], the heaviest first
  int64_t link;                   // as of a collective
  double link_bytes, link_seconds;
} mp_report_program_t;

// Devices that take part in a launch, on the average and rounded, at least one: clients without
// SPMD launch what is compiled for all devices on one of them at a time.
uint32_t mp_report_partners(const mp_report_program_t *row);

typedef struct {
  mp_arena_t *arena;  // borrowed
  MP_ARRAY(mp_report_program_t) programs;
  uint32_t num_devices;               // of the pod
  mp_replay_device_books_t *devices;  // [num_devices] by global id, over all programs
} mp_report_rows_t;

// Rows of no program yet, in `arena`, for a pod of so many devices.
MP_NODISCARD mp_status_t mp_report_rows_init(mp_arena_t *arena, uint32_t num_devices,
                                             mp_report_rows_t *out_rows);

// Adds the books of a program, which are read under the model's lock. RESOURCE_EXHAUSTED when
// memory is short.
MP_NODISCARD mp_status_t mp_report_rows_add(mp_report_rows_t *rows, const mp_model_t *model,
                                            const mp_model_program_books_t *books);
// Adds a copy of one program's row, to the row of the same program if there is one.
MP_NODISCARD mp_status_t mp_report_rows_merge_one(mp_report_rows_t *rows,
                                                  const mp_report_program_t *row);
// Adds up all of `other`, rows of the same pod.
MP_NODISCARD mp_status_t mp_report_rows_merge(mp_report_rows_t *rows,
                                              const mp_report_rows_t *other);

#endif  // MINIPOD_SIM_MODEL_REPORT_REPORT_ROWS_H_
