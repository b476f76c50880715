// Programs whose kernels run in memory of exactly their arrays' sizes, and whose loops end.
//
// Devices' memory is one mapping, in which AddressSanitizer sees no array's end. guard_program puts
// a kernel around every kernel of a program, which copies the operands to arrays of their own and
// runs the kernel twice: parts in order with zeroed scratch and results, then from the last to the
// first with garbage in both. It fails the launch when the two differ, or when an operand was
// written to: kernels read only bytes that were written, and parts do not depend on each other.
//
// Each back edge takes a unit of fuel, and the launch fails when there is none left.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_GUARDED_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_GUARDED_H_

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kernels/table/kernel_table.h"
#include "sim/plan/program.h"

#define GUARD_OUT_OF_FUEL "the loop went on for too long"

typedef struct {
  mp_kernel_t base;  // first
  const mp_kernel_t *kernel;
  uint32_t num_operands, num_results;
  size_t *operand_bytes;  // [num_operands], captures included
  size_t *result_bytes;   // [num_results]
} guarded_kernel_t;

typedef struct {
  mp_kernel_t base;  // first
  atomic_llong *left;
} guard_fuel_t;

// An array that ends where its allocation ends, aligned as kernels expect.
static inline char *guard_array(size_t bytes, int fill) {
  void *memory = NULL;
  if (posix_memalign(&memory, 64, bytes) != 0) abort();
  memset(memory, fill, bytes);
  return memory;
}

// The arrays of one run. Without elements, an array is the one that the launch gave.
typedef struct {
  const void **operands;
  void **results;
} guard_arrays_t;

static inline void guard_arrays_make(const guarded_kernel_t *self, const mp_kernel_call_t *call,
                                     int fill, guard_arrays_t *arrays) {
  arrays->operands = calloc(self->num_operands + 1, sizeof(*arrays->operands));
  arrays->results = calloc(self->num_results + 1, sizeof(*arrays->results));
  if (arrays->operands == NULL || arrays->results == NULL) abort();
  for (uint32_t r = 0; r < self->num_results; ++r) {
    size_t bytes = self->result_bytes[r];
    arrays->results[r] = bytes == 0 ? call->results[r] : guard_array(bytes, fill);
  }
  for (uint32_t i = 0; i < self->num_operands; ++i) {
    size_t bytes = self->operand_bytes[i];
    arrays->operands[i] = call->operands[i];
    if (bytes == 0) continue;
    bool in_place = self->num_results > 0 && self->result_bytes[0] == bytes &&
                    call->operands[i] == call->results[0];
    char *array = in_place ? arrays->results[0] : guard_array(bytes, 0);
    memcpy(array, call->operands[i], bytes);
    arrays->operands[i] = array;
  }
}

static inline void guard_arrays_free(const guarded_kernel_t *self, guard_arrays_t *arrays) {
  for (uint32_t i = 0; i < self->num_operands; ++i) {
    bool in_place = self->num_results > 0 && arrays->operands[i] == arrays->results[0];
    if (self->operand_bytes[i] != 0 && !in_place) free((void *)(uintptr_t)arrays->operands[i]);
  }
  for (uint32_t r = 0; r < self->num_results; ++r) {
    if (self->result_bytes[r] != 0) free(arrays->results[r]);
  }
  free(arrays->operands);
  free(arrays->results);
}

static inline mp_status_t guard_run_parts(const guarded_kernel_t *self, guard_arrays_t *arrays,
                                          int fill) {
  const mp_kernel_t *kernel = self->kernel;
  mp_status_t status = NULL;
  char *shared = guard_array(kernel->shared_bytes, fill);
  const uint32_t count = kernel->num_parts + (kernel->finish != NULL ? 1 : 0);
  for (uint32_t i = 0; i < count && status == NULL; ++i) {
    const bool is_end = i == kernel->num_parts;
    uint32_t part = is_end ? 0 : fill == 0 ? i : kernel->num_parts - 1 - i;
    char *scratch = guard_array(kernel->scratch_bytes, fill);
    mp_kernel_call_t call = {arrays->operands, arrays->results, scratch, part, shared};
    status = is_end ? kernel->finish(kernel, &call) : kernel->run(kernel, &call);
    free(scratch);
  }
  free(shared);
  return status;
}

static inline mp_status_t guard_compare(const guarded_kernel_t *self, const mp_kernel_call_t *call,
                                        const guard_arrays_t *first, const guard_arrays_t *second) {
  for (uint32_t r = 0; r < self->num_results; ++r) {
    size_t bytes = self->result_bytes[r];
    if (bytes != 0 && memcmp(first->results[r], second->results[r], bytes) != 0) {
      return mp_op_error(self->kernel->op, MP_DATA_LOSS,
                         "result %u depends on the order of the parts or on unset memory", r);
    }
  }
  for (uint32_t i = 0; i < self->num_operands; ++i) {
    if (self->num_results > 0 && first->operands[i] == first->results[0]) continue;
    size_t bytes = self->operand_bytes[i];
    if (bytes != 0 && memcmp(first->operands[i], call->operands[i], bytes) != 0) {
      return mp_op_error(self->kernel->op, MP_DATA_LOSS, "operand %u was written to", i);
    }
  }
  return NULL;
}

static inline mp_status_t guard_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const guarded_kernel_t *self = (const guarded_kernel_t *)kernel;
  guard_arrays_t first, second;
  guard_arrays_make(self, call, 0, &first);
  guard_arrays_make(self, call, 0xA5, &second);
  mp_status_t status = guard_run_parts(self, &first, 0);
  if (status == NULL) status = guard_run_parts(self, &second, 0xA5);
  if (status == NULL) status = guard_compare(self, call, &first, &second);
  for (uint32_t r = 0; r < self->num_results && status == NULL; ++r) {
    if (self->result_bytes[r] != 0) {
      memcpy(call->results[r], first.results[r], self->result_bytes[r]);
    }
  }
  guard_arrays_free(self, &first);
  guard_arrays_free(self, &second);
  return status;
}

static inline mp_status_t guard_burn(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  (void)call;
  if (atomic_fetch_sub(((const guard_fuel_t *)kernel)->left, 1) > 0) return NULL;
  return mp_status_make(MP_CANCELLED, GUARD_OUT_OF_FUEL);
}

static inline size_t guard_bytes(const mp_type_t *type) {
  int64_t bytes = 0;
  return mp_type_is_tensor(type) && mp_type_num_bytes(type, &bytes) ? (size_t)bytes : 0;
}

// The guarded kernel of a launch of a planned program.
static inline mp_status_t guard_kernel(mp_arena_t *arena, const mp_cmd_t *cmd,
                                       const mp_kernel_t **out_kernel) {
  const mp_op_t *op = cmd->kernel->op;
  guarded_kernel_t *self = MP_ARENA_NEW(arena, guarded_kernel_t);
  MP_RETURN_IF_NULL(self);
  mp_value_t **captures = NULL;
  uint32_t num_captures = 0;
  MP_RETURN_IF_ERROR(mp_op_captures(op, arena, &captures, &num_captures));
  *self = (guarded_kernel_t){
      .base = {.run = guard_run, .num_parts = 1, .in_place = cmd->kernel->in_place, .op = op},
      .kernel = cmd->kernel,
      .num_operands = cmd->num_operands,
      .num_results = cmd->num_results,
      .operand_bytes = MP_ARENA_ARRAY(arena, size_t, (size_t)cmd->num_operands + 1),
      .result_bytes = MP_ARENA_ARRAY(arena, size_t, (size_t)cmd->num_results + 1)};
  if (self->operand_bytes == NULL || self->result_bytes == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < cmd->num_operands; ++i) {
    const mp_value_t *value =
        i < op->num_operands ? mp_kernel_operand(op, i) : captures[i - op->num_operands];
    self->operand_bytes[i] = guard_bytes(value->type);
  }
  for (uint32_t r = 0; r < cmd->num_results; ++r) {
    self->result_bytes[r] = guard_bytes(op->results[r].type);
  }
  *out_kernel = &self->base;
  return NULL;
}

static inline bool guard_is_back_edge(const mp_cmd_t *cmd, uint32_t number) {
  for (uint32_t t = 0; t < cmd->num_targets; ++t) {
    if (cmd->targets[t] <= number) return true;
  }
  return false;
}

// Replaces the kernels of a program and puts a command before each back edge, where jumps to the
// edge now go. `fuel` is for all devices and launches together.
static inline mp_status_t guard_program(mp_program_t *program, long long fuel) {
  const uint32_t count = program->num_commands;
  mp_cmd_t *commands = MP_ARENA_ARRAY(program->arena, mp_cmd_t, 2 * (size_t)count);
  uint32_t *numbers = MP_ARENA_ARRAY(program->arena, uint32_t, (size_t)count + 1);
  guard_fuel_t *tank = MP_ARENA_NEW(program->arena, guard_fuel_t);
  atomic_llong *left = MP_ARENA_NEW(program->arena, atomic_llong);
  if (commands == NULL || numbers == NULL || tank == NULL || left == NULL) {
    return mp_status_out_of_memory();
  }
  atomic_init(left, fuel);
  *tank = (guard_fuel_t){{.run = guard_burn, .num_parts = 1}, left};
  uint32_t made = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const mp_cmd_t *cmd = &program->commands[i];
    numbers[i] = made;
    if (guard_is_back_edge(cmd, i)) {
      commands[made++] =
          (mp_cmd_t){.kind = MP_CMD_LAUNCH, .loc = cmd->loc, .name = "fuel", .kernel = &tank->base};
    }
    commands[made] = *cmd;
    if (cmd->kind == MP_CMD_LAUNCH) {
      MP_RETURN_IF_ERROR(guard_kernel(program->arena, cmd, &commands[made].kernel));
    }
    ++made;
  }
  for (uint32_t i = 0; i < made; ++i) {
    uint32_t *targets = mp_arena_copy(program->arena, commands[i].targets,
                                      commands[i].num_targets * sizeof(*commands[i].targets));
    MP_RETURN_IF_NULL(targets);
    for (uint32_t t = 0; t < commands[i].num_targets; ++t) targets[t] = numbers[targets[t]];
    commands[i].targets = targets;
  }
  program->commands = commands;
  program->num_commands = made;
  return NULL;
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_GUARDED_H_
