// The program of a device. sim/plan makes it from a per-device module, and sim/runtime runs it.
//
// Control flow is jumps between commands. The state of a device that runs a program is a command
// number, an arena and pointers to parameters and results, so it can stop at any command (such as a
// collective inside of a loop) without holding a thread. All devices of an execution run the same
// program; only their logical numbers (REPLICA_ID and PARTITION_ID commands) and buffers differ.
//
// A program is constant and owned by its executable. It owns its arena (kernels, collectives,
// constants), its calls of foreign functions, and the module from which it was made, because
// messages need its texts.
#ifndef MINIPOD_SIM_PLAN_PROGRAM_H_
#define MINIPOD_SIM_PLAN_PROGRAM_H_

#include <stdbool.h>
#include <stdint.h>

#include "collectives/collective.h"
#include "sim/base/arena.h"
#include "sim/foreign/foreign_call.h"
#include "sim/ir/module.h"
#include "sim/kernels/kernel.h"
#include "sim/loops/loop.h"
#include "sim/spmd/partition/partition.h"
#include "topology/pod.h"

// Where a value's bytes are.
typedef enum {
  MP_SLOT_NONE,      // tokens and arrays without elements: mp_empty_array()
  MP_SLOT_ARENA,     // the arena of the run, at `offset`
  MP_SLOT_PARAM,     // parameter `index`
  MP_SLOT_RESULT,    // result `index`, or, before it is written, at `offset` in its memory
  MP_SLOT_CONSTANT,  // program->constants[index]
} mp_slot_kind_t;

typedef struct {
  mp_slot_kind_t kind;
  uint32_t index;
  uint64_t offset;  // bytes, 64-byte aligned for ARENA and RESULT
} mp_slot_t;

// Kinds of commands, with their names in texts.
// clang-format off
#define MP_COMMANDS(X)                                                                            \
  X(LAUNCH, launch)               /* run a kernel */                                              \
  X(CALL, call)                   /* call a foreign function */                                   \
  X(COLLECTIVE, collective)       /* do a collective with the other devices of the group */       \
  X(SEND, send)                   /* hand `operands` to the partner of collective->pairs */       \
  X(RECV, recv)                   /* wait for the partner's data */                               \
  X(TALK, talk)                   /* run a kernel that communicates (sim/kernels/talk.h) */       \
  X(COPY, copy)                   /* results[0] = operands[0], `bytes`, in mp_copy_num_parts */   \
  X(REPLICA_ID, replica_id)       /* results[0] (u32) = replica id */                             \
  X(PARTITION_ID, partition_id)                                                                   \
  X(JUMP, jump)                   /* to targets[0] */                                             \
  X(BRANCH_UNLESS, branch_unless) /* to targets[0] if operands[0] (bool) is false */              \
  X(SWITCH, switch)               /* to targets[i], i = operands[0] (s32), or to the last */      \
  X(LOOP, loop)                   /* run a small loop, made of the commands `body` */             \
  X(DONE, done)
// clang-format on

typedef enum {
#define MP_CMD_ENUM(name, text) MP_CMD_##name,
  MP_COMMANDS(MP_CMD_ENUM)
#undef MP_CMD_ENUM
} mp_cmd_kind_t;

// The most commands that one LOOP has.
enum { MP_LOOP_MOST_COMMANDS = 512 };

// A back edge of a LOOP command: one for each `while` in it, the outermost one last.
typedef struct {
  uint32_t control;  // of which op (mp_op_t.control)
  // The edge of the `while` whose body or condition contains this one; its own number: the
  // outermost one.
  uint32_t outer;
  bool is_in_condition;
} mp_loop_edge_t;

typedef struct mp_cmd_s mp_cmd_t;
struct mp_cmd_s {
  mp_cmd_kind_t kind;
  const mp_loc_t *loc;
  const char *name;  // the op's, for messages and traces
  uint32_t num_operands, num_results, num_targets;
  const mp_slot_t *operands;
  const mp_slot_t *results;
  const uint32_t *targets;  // command numbers; a target <= this command's number is a back edge
  uint64_t bytes;           // COPY
  int64_t
      rounds;  // BRANCH_UNLESS that ends a loop: the loop's number of rounds (sim/work/rounds.h)
  uint32_t control;                   // BRANCH_UNLESS, SWITCH, JUMP: the op (mp_op_t.control)
  const mp_kernel_t *kernel;          // LAUNCH, TALK
  const mp_foreign_call_t *call;      // CALL
  const mp_collective_t *collective;  // COLLECTIVE, SEND, RECV
  // LOOP: a small loop, or, if it has no back edge, a sequence of commands. The operands are all
  // slots that the loop uses, and the results those that it writes. The merged commands are not
  // executed, but kept for messages and checks. Their targets are numbers in `body`; num_body
  // stands for the command after the loop.
  const mp_loop_t *loop;
  const mp_cmd_t *body;
  uint32_t num_body;
  const mp_loop_edge_t *edges;  // [mp_loop_num_edges(loop)]
};

typedef struct {
  const mp_type_t *type;  // per device
  uint64_t bytes;
  mp_memory_space_t memory;
  // Of a parameter: the result that takes over its buffer (tf.aliasing_output, jax.buffer_donor);
  // -1 when it is not donated or no result can use it.
  // Of a result: the parameter whose buffer it takes over, or -1.
  int32_t alias;
  const mp_boxes_t *sharding;  // global view: NULL when every device holds the whole value
  const mp_type_t *global_type;
} mp_program_io_t;

typedef struct {
  const void *data;
  uint64_t bytes;
} mp_program_constant_t;

typedef struct mp_program_s mp_program_t;
struct mp_program_s {
  mp_arena_t *arena;    // owned
  mp_module_t *module;  // owned: the partitioned module, with this machine's fused ops
  // Owned: main before fusion; NULL unless mp_compile_request_t.keep_partitioned. It refers to
  // `module`.
  mp_module_t *partitioned;
  mp_str_t name;
  uint32_t num_replicas, num_partitions;
  uint32_t num_params, num_results;
  const mp_program_io_t *params, *results;
  uint32_t num_constants;
  const mp_program_constant_t *constants;
  uint32_t num_commands;
  const mp_cmd_t *commands;
  uint64_t arena_bytes;    // a run's temporaries
  uint64_t scratch_bytes;  // the largest need of one part or chunk
  uint32_t num_collectives;
  uint32_t num_calls;
  mp_foreign_call_t *const *calls;  // [num_calls], owned; of the CALL commands
  // Per device, loops counted once; for cost analysis. Transcendentals are elements of functions
  // such as sine; they are not among the operations.
  double flops, transcendentals, bytes_accessed;
  // The answers of the client's partitioners (sim/plan/partitioners/), in the module's arena;
  // empty: none was asked. A process without these partitioners can load the program with them.
  mp_str_t answers;
  mp_spmd_report_t report;          // of the partitioner
  const mp_inspected_t *inspected;  // [num_inspected], in the module's arena
  uint32_t num_inspected;
  // Flags of libtpu among the compile options, "name=value", in `arena`.
  const mp_str_t *libtpu_flags;  // [num_libtpu_flags]
  uint32_t num_libtpu_flags;
};

// The number of parts into which a COPY of `bytes` is divided.
uint32_t mp_copy_num_parts(uint64_t bytes);

// The approximate time of a LOOP command in seconds; INFINITY if the number of its rounds is not
// known.
double mp_cmd_loop_seconds(const mp_cmd_t *cmd);

// Frees the program with its calls, its arena and its module. Foreign code may run. NULL is
// allowed.
void mp_program_release(mp_program_t *program);

// Appends the program as text, one line per parameter, result and command.
void mp_program_print(const mp_program_t *program, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_PLAN_PROGRAM_H_
