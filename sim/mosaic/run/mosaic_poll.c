#include "sim/mosaic/run/mosaic_poll.h"

#include <string.h>

#include "sim/mosaic/run/mosaic_peers.h"

enum {
  MOSAIC_POLL_PATIENCE = 64,          // reads in a row before registers are compared
  MOSAIC_POLL_READS_PER_LOOK = 1024,  // before the run looks for changes and yields
  // Reads without a change of a run that is not proved to wait. No kernel is known that reads a
  // semaphore so often, and then does without the change.
  MOSAIC_POLL_MOST_SEMAPHORES = 1 << 20,
  MOSAIC_POLL_MOST_LOADS = 1 << 26,
};

// ---- what instructions do ----

typedef enum {
  MOSAIC_POLL_READS,    // what another device may change
  MOSAIC_POLL_DERIVES,  // computes a value from registers and values alone
  MOSAIC_POLL_ACTS,     // anything else
  MOSAIC_POLL_SIGNALS,  // changes or awaits a semaphore
} effect_t;

// Values that a loop carries are moved (COPY, MOVE_VIEW), which acts. So values that are only
// derived are the same in the next round if the registers and what is read are.
static effect_t mosaic_poll_effect(const mp_mosaic_instruction_t *in) {
  switch (in->kind) {
    case MP_MOSAIC_DO_SEM_READ:
    case MP_MOSAIC_DO_LOAD_SCALAR:
    case MP_MOSAIC_DO_LOAD:
      return MOSAIC_POLL_READS;
    case MP_MOSAIC_DO_SLICE:
    case MP_MOSAIC_DO_SQUEEZE:
    case MP_MOSAIC_DO_RESHAPE:
    case MP_MOSAIC_DO_BITCAST:
    case MP_MOSAIC_DO_SIZE:
    case MP_MOSAIC_DO_TO_VECTOR:
    case MP_MOSAIC_DO_FROM_VECTOR:
    case MP_MOSAIC_DO_BARRIER:
    case MP_MOSAIC_DO_ASSERT:
    case MP_MOSAIC_DO_NOT_OUTSIDE:
      return MOSAIC_POLL_DERIVES;
    case MP_MOSAIC_DO_KERNEL:  // a direct result is stored to memory
      return in->u.call->num_directs == 0 ? MOSAIC_POLL_DERIVES : MOSAIC_POLL_ACTS;
    case MP_MOSAIC_DO_DMA:
    case MP_MOSAIC_DO_REMOTE_DMA:
    case MP_MOSAIC_DO_WAIT_DMA:
    case MP_MOSAIC_DO_SEM_SIGNAL:
    case MP_MOSAIC_DO_REMOTE_SIGNAL:
    case MP_MOSAIC_DO_SEM_WAIT:
      return MOSAIC_POLL_SIGNALS;
    default:
      return MOSAIC_POLL_ACTS;
  }
}

// ---- waiting ----

static uint64_t mosaic_poll_changes(const mp_mosaic_state_t *state) {
  return state->peers == NULL ? 0 : mp_mosaic_peers_changes(state->peers, state->device);
}

static void mosaic_poll_forget(mp_mosaic_poll_t *poll) {
  poll->has_note = false;
  poll->num_idle = 0;
  poll->num_reads = 0;
}

// The run waits for a change since `changes`, unless there was one.
static mp_mosaic_outcome_t mosaic_poll_wait(const mp_mosaic_instruction_t *in,
                                            mp_mosaic_state_t *state, uint64_t changes) {
  const int64_t *semaphore =
      in->kind == MP_MOSAIC_DO_SEM_READ ? (const int64_t *)state->views[in->c].base : NULL;
  mosaic_poll_forget(&state->poll);
  state->semaphore = NULL;
  const bool waits = state->peers == NULL ||
                     mp_mosaic_peers_await_change(state->peers, state->device, semaphore, changes);
  return waits ? MP_MOSAIC_BLOCKED : MP_MOSAIC_DONE;
}

// ---- reads ----

static void mosaic_poll_note(const mp_mosaic_program_t *program, mp_mosaic_state_t *state,
                             uint32_t pc) {
  mp_mosaic_poll_t *poll = &state->poll;
  poll->has_note = true;
  poll->pc = pc;
  poll->noted_changes = mosaic_poll_changes(state);
  memcpy(poll->registers, state->registers, program->num_registers * sizeof(int64_t));
}

static bool mosaic_poll_is_round(const mp_mosaic_program_t *program, const mp_mosaic_state_t *state,
                                 uint32_t pc) {
  const mp_mosaic_poll_t *poll = &state->poll;
  return poll->has_note && poll->pc == pc &&
         memcmp(poll->registers, state->registers, program->num_registers * sizeof(int64_t)) == 0;
}

// Now and then: lets others go on, unless the run has read too often without a change.
static mp_mosaic_outcome_t mosaic_poll_look(const mp_mosaic_instruction_t *in,
                                            mp_mosaic_state_t *state) {
  mp_mosaic_poll_t *poll = &state->poll;
  const uint64_t changes = mosaic_poll_changes(state);
  if (changes != poll->seen_changes) mosaic_poll_forget(poll);
  poll->seen_changes = changes;
  const bool loads_too_often = state->peers != NULL && poll->num_idle >= MOSAIC_POLL_MOST_LOADS;
  if (poll->num_reads >= MOSAIC_POLL_MOST_SEMAPHORES || loads_too_often) {
    return mosaic_poll_wait(in, state, changes);
  }
  return state->peers == NULL ? MP_MOSAIC_DONE : MP_MOSAIC_YIELDS;
}

static mp_mosaic_outcome_t mosaic_poll_read(const mp_mosaic_program_t *program,
                                            const mp_mosaic_instruction_t *in,
                                            mp_mosaic_state_t *state, uint32_t pc) {
  mp_mosaic_poll_t *poll = &state->poll;
  ++poll->num_idle;
  if (in->kind == MP_MOSAIC_DO_SEM_READ) ++poll->num_reads;
  if (poll->num_idle >= MOSAIC_POLL_PATIENCE) {
    if (mosaic_poll_is_round(program, state, pc)) {
      return mosaic_poll_wait(in, state, poll->noted_changes);
    }
    // At powers of two: so a round with any number of reads is found.
    if ((poll->num_idle & (poll->num_idle - 1)) == 0) mosaic_poll_note(program, state, pc);
  }
  if (++poll->num_looks % MOSAIC_POLL_READS_PER_LOOK != 0) return MP_MOSAIC_DONE;
  return mosaic_poll_look(in, state);
}

mp_mosaic_outcome_t mp_mosaic_poll(const mp_mosaic_program_t *program,
                                   const mp_mosaic_instruction_t *in, mp_mosaic_state_t *state,
                                   uint32_t pc) {
  mp_mosaic_poll_t *poll = &state->poll;
  switch (mosaic_poll_effect(in)) {
    case MOSAIC_POLL_READS:
      return mosaic_poll_read(program, in, state, pc);
    case MOSAIC_POLL_DERIVES:
      break;
    case MOSAIC_POLL_SIGNALS:
      mosaic_poll_forget(poll);
      break;
    case MOSAIC_POLL_ACTS:
      poll->has_note = false;
      poll->num_idle = 0;
      break;
  }
  return MP_MOSAIC_DONE;
}
