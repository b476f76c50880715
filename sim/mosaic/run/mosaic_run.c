#include <string.h>

#include "sim/kernels/shape.h"
#include "sim/mosaic/run/mosaic_peers.h"
#include "sim/mosaic/run/mosaic_poll.h"
#include "sim/mosaic/run/mosaic_program.h"
#include "sim/mosaic/run/mosaic_scalar.h"
#include "sim/mosaic/run/mosaic_step.h"
#include "sim/mosaic/run/mosaic_view.h"

// ---- states ----

typedef struct {
  size_t registers, noted, views, vectors, memory, scratch, shared, all;
} layout_t;

static size_t mosaic_run_take(size_t *at, size_t bytes) {
  const size_t begin = *at;
  *at += mp_round_up_64(bytes);
  return begin;
}

static layout_t mosaic_run_layout(const mp_mosaic_program_t *program) {
  layout_t layout;
  size_t at = 0;
  layout.registers = mosaic_run_take(&at, program->num_registers * sizeof(int64_t));
  layout.noted = at;
  if (program->polls) mosaic_run_take(&at, program->num_registers * sizeof(int64_t));
  layout.views = mosaic_run_take(&at, program->num_views * sizeof(mp_mosaic_view_t));
  layout.vectors = mosaic_run_take(&at, program->num_vectors * sizeof(char *));
  layout.memory = mosaic_run_take(&at, program->memory_bytes);
  layout.scratch = mosaic_run_take(&at, program->scratch_bytes);
  layout.shared = mosaic_run_take(&at, program->shared_bytes);
  layout.all = at;
  return layout;
}

size_t mp_mosaic_state_bytes(const mp_mosaic_program_t *program) {
  return mosaic_run_layout(program).all;
}

void mp_mosaic_state_init(const mp_mosaic_program_t *program, char *memory,
                          mp_mosaic_state_t *out_state) {
  const layout_t layout = mosaic_run_layout(program);
  *out_state = (mp_mosaic_state_t){.registers = (int64_t *)(memory + layout.registers),
                                   .views = (mp_mosaic_view_t *)(memory + layout.views),
                                   .vectors = (char **)(memory + layout.vectors),
                                   .memory = memory + layout.memory,
                                   .scratch = memory + layout.scratch,
                                   .shared = memory + layout.shared,
                                   .poll.registers = (int64_t *)(memory + layout.noted)};
  const size_t bytes = program->num_registers * sizeof(int64_t);
  if (bytes != 0) memcpy(out_state->registers, program->registers, bytes);
  for (uint32_t v = 0; v < program->num_vectors; ++v) {
    const void *known = program->known[v];
    out_state->vectors[v] = known != NULL ? (char *)known : out_state->memory + program->offsets[v];
  }
  if (program->communicates) mp_mosaic_step_unset_allocations(program, out_state);
}

// ---- control flow and scalars ----

static uint32_t mosaic_run_switch(const mp_mosaic_instruction_t *in, int64_t value) {
  const mp_mosaic_cases_t *cases = in->u.cases;
  for (uint32_t i = 0; i < cases->count; ++i) {
    if (cases->cases[i] == value) return cases->targets[i];
  }
  return cases->targets[cases->count];
}

// Does what is done with registers alone; false: the instruction is another one.
static inline bool mosaic_run_scalar(const mp_mosaic_instruction_t *in, mp_mosaic_state_t *state) {
  int64_t *r = state->registers;
  switch (in->kind) {
    case MP_MOSAIC_DO_MOVE:
      r[in->out] = r[in->a];
      return true;
    case MP_MOSAIC_DO_INTEGER:
      if (in->flag && (r[in->a] == MP_MOSAIC_OUTSIDE || r[in->b] == MP_MOSAIC_OUTSIDE)) {
        r[in->out] = MP_MOSAIC_OUTSIDE;
        return true;
      }
      r[in->out] = mp_mosaic_integer((mp_mosaic_opcode_t)in->code, in->bits, r[in->a], r[in->b]);
      return true;
    case MP_MOSAIC_DO_COMPARE:
      r[in->out] = mp_mosaic_compare(in->predicate, in->bits, r[in->a], r[in->b]);
      return true;
    case MP_MOSAIC_DO_SELECT:
      r[in->out] = r[in->a] != 0 ? r[in->b] : r[in->c];
      return true;
    case MP_MOSAIC_DO_EXTEND:
      r[in->out] = in->flag ? (int64_t)mp_mosaic_unsigned(in->bits, r[in->a])
                            : mp_mosaic_signed(in->bits, r[in->a]);
      return true;
    case MP_MOSAIC_DO_BOUND:
      r[in->out] = state->bounds[in->value];
      return true;
    case MP_MOSAIC_DO_DEVICE:
      r[in->out] = state->device;
      return true;
    default:
      return false;
  }
}

static bool mosaic_run_jump(const mp_mosaic_instruction_t *in, const mp_mosaic_state_t *state,
                            uint32_t *pc) {
  switch (in->kind) {
    case MP_MOSAIC_DO_JUMP:
      *pc = in->target;
      return true;
    case MP_MOSAIC_DO_UNLESS:
      *pc = state->registers[in->a] == 0 ? in->target : *pc + 1;
      return true;
    case MP_MOSAIC_DO_SWITCH:
      *pc = mosaic_run_switch(in, state->registers[in->a]);
      return true;
    default:
      return false;
  }
}

// ---- kernels ----

static mp_status_t mosaic_run_kernel(const mp_mosaic_program_t *program,
                                     const mp_mosaic_kernel_call_t *call,
                                     mp_mosaic_state_t *state) {
  const void *operands[MP_MOSAIC_MOST_ARRAYS];
  void *results[MP_MOSAIC_MOST_ARRAYS];
  const mp_kernel_t *kernel = call->kernel;
  for (uint32_t i = 0; i < call->num_directs; ++i) {
    const mp_mosaic_direct_t *direct = &call->directs[i];
    state->vectors[call->results[direct->result]] =
        mp_mosaic_step_direct(program, call, direct, state);
  }
  for (uint32_t i = 0; i < call->num_operands; ++i) operands[i] = state->vectors[call->operands[i]];
  for (uint32_t i = 0; i < call->num_results; ++i) results[i] = state->vectors[call->results[i]];
  mp_kernel_call_t part = {operands, results, state->scratch, 0, state->shared};
  for (; part.part < kernel->num_parts; ++part.part) {
    MP_RETURN_IF_ERROR(kernel->run(kernel, &part));
  }
  if (kernel->finish == NULL) return NULL;
  part.part = 0;
  return kernel->finish(kernel, &part);
}

static mp_status_t mosaic_run_other(const mp_mosaic_program_t *program,
                                    const mp_mosaic_instruction_t *in, mp_mosaic_state_t *state,
                                    bool *out_blocks) {
  switch (in->kind) {
    case MP_MOSAIC_DO_KERNEL:
      return mosaic_run_kernel(program, in->u.call, state);
    case MP_MOSAIC_DO_COPY:
      memcpy(state->vectors[in->out], state->vectors[in->a], (size_t)in->value);
      return NULL;
    case MP_MOSAIC_DO_TO_VECTOR:
      memcpy(state->vectors[in->out], &state->registers[in->a], (size_t)in->value);
      return NULL;
    case MP_MOSAIC_DO_FROM_VECTOR:
      state->registers[in->out] =
          mp_mosaic_scalar_load((mp_dtype_t)in->dtype, state->vectors[in->a]);
      return NULL;
    case MP_MOSAIC_DO_SEED:
    case MP_MOSAIC_DO_RANDOM:
      mp_mosaic_step_random(in, state);
      return NULL;
    case MP_MOSAIC_DO_ASSERT:
      if (state->registers[in->a] != 0) return NULL;
      return mp_status_make(MP_FAILED_PRECONDITION, "an assertion does not hold: %s", in->u.text);
    case MP_MOSAIC_DO_LOG:
      return mp_mosaic_step_log(in->u.log, state);
    case MP_MOSAIC_DO_NOT_OUTSIDE:
      if (state->registers[in->a] != MP_MOSAIC_OUTSIDE) return NULL;
      return mp_status_make(MP_OUT_OF_RANGE, "the element is outside of its memref");
    case MP_MOSAIC_DO_DMA:
    case MP_MOSAIC_DO_WAIT_DMA:
    case MP_MOSAIC_DO_SEM_READ:
    case MP_MOSAIC_DO_SEM_SIGNAL:
    case MP_MOSAIC_DO_SEM_WAIT:
    case MP_MOSAIC_DO_REMOTE_DMA:
    case MP_MOSAIC_DO_REMOTE_SIGNAL:
    case MP_MOSAIC_DO_BARRIER:
      if (state->peers != NULL) return mp_mosaic_peers_step(in, state, out_blocks);
      return mp_mosaic_step_async(in, state, out_blocks);
    default:
      return mp_mosaic_step_memory(program, in, state);
  }
}

mp_status_t mp_mosaic_run(const mp_mosaic_program_t *program, mp_mosaic_state_t *state,
                          mp_mosaic_outcome_t *out_outcome) {
  uint32_t pc = state->pc;
  for (;;) {
    const mp_mosaic_instruction_t *in = &program->instructions[pc];
    if (mosaic_run_scalar(in, state)) {
      ++pc;
      continue;
    }
    if (mosaic_run_jump(in, state, &pc)) continue;
    if (in->kind == MP_MOSAIC_DO_RETURN) break;
    bool blocks = false;
    mp_status_t status = mosaic_run_other(program, in, state, &blocks);
    if (state->watcher != NULL && status == NULL && !blocks) {
      status = state->watcher->saw(state->watcher, in, state);
    }
    if (status != NULL) {
      return in->where == NULL ? status : mp_status_annotate(status, "%s", in->where);
    }
    *out_outcome = blocks               ? MP_MOSAIC_BLOCKED
                   : state->reads_unset ? MP_MOSAIC_CARRIES
                   : program->polls     ? mp_mosaic_poll(program, in, state, pc)
                                        : MP_MOSAIC_DONE;
    if (*out_outcome == MP_MOSAIC_YIELDS) ++pc;
    if (*out_outcome != MP_MOSAIC_DONE) {
      state->pc = pc;
      return NULL;
    }
    ++pc;
  }
  state->pc = pc;
  *out_outcome = MP_MOSAIC_DONE;
  return NULL;
}
