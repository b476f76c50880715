// Shared by the files of runs without values: the state per program and per run.
#ifndef MINIPOD_SIM_RUNTIME_RUNS_SHAPES_IMPL_H_
#define MINIPOD_SIM_RUNTIME_RUNS_SHAPES_IMPL_H_

#include "sim/runtime/runs/shapes.h"

// Slots are numbered; the first one is special.
enum {
  MP_SHAPES_ALWAYS = 0,  // constants and what has no bytes
  MP_SHAPES_FIRST = 1,
};

#define MP_SHAPES_NONE UINT32_MAX  // no command

// The part of a collective that is computed: all of it, or its operands that can have values.
typedef struct {
  const mp_collective_t *vote;  // where the members agree on it
  const mp_collective_t *part;
  uint32_t num_operands;  // of the part
  const uint32_t
      *operands;  // [num_operands] their numbers in the command, and those of their results
} mp_shape_meeting_t;

typedef struct {
  const uint32_t *operands;  // [num_operands] slot numbers
  const uint32_t *results;   // [num_results]
  // [num_results] the operands that each depends on, in bits; NULL: each on all.
  const uint64_t *needs;
  bool is_small;  // small enough to be computed
  // Of a choice: the commands [begin, join) depend on it. Whatever its outcome, the run reaches
  // `join`. MP_SHAPES_NONE: it is no choice, or one with a single outcome.
  uint32_t begin, join;
  uint32_t branch;        // SWITCH: the branch that is guessed
  uint32_t loop;          // BRANCH_UNLESS: its number among loops
  uint32_t next_joined;   // the next choice with the same join; MP_SHAPES_NONE: there is none
  uint32_t first_joined;  // of any command: the first choice that has its join here
  const mp_shape_meeting_t *meeting;  // COLLECTIVE; NULL: it is never computed
} mp_shape_cmd_t;

struct mp_shapes_s {
  mp_arena_t *arena;
  const mp_program_t *program;
  const mp_model_program_t *timed;  // borrowed while it is made
  uint64_t trip_count;              // rounds of loops whose end is guessed
  uint32_t num_slots, num_loops;
  uint32_t most_operands;    // of the parts of collectives
  mp_shape_cmd_t *commands;  // [program->num_commands]
  const uint32_t *params;    // [num_params] slot numbers
  const uint32_t *results;   // [num_results]
  mp_name_t **makers;        // [num_results] references: which op makes each
  // [num_results] references: the record that all arrays of a result share if it is too large to
  // have values; NULL: each array has its own record.
  mp_values_t **absent;
};

// A vote is the maximum over the members, word by word. The members run different programs if the
// maxima of the last two words are not each other's complements.
enum { MP_SHAPE_VOTE_ABSENT, MP_SHAPE_VOTE_PROGRAM, MP_SHAPE_VOTE_INVERSE, MP_SHAPE_VOTE_WORDS };

struct mp_shape_run_s {
  const mp_shapes_t *shapes;
  uint64_t *known;       // a bit per slot: it has a value
  uint64_t *guessed;     // a bit per choice: it was guessed, and its join is still ahead
  uint32_t num_guessed;  // bits in it
  uint64_t *rounds;      // of each loop that the run is in: how often it went round
  uint32_t num_params, num_results;  // added so far
  mp_values_t **values;              // [params, then results] references
  // ---- At a collective ----
  const void **inputs;                  // [most_operands] of its part
  void **outputs;                       // [most_operands]
  bool has_voted;                       // the vote is over
  uint64_t said[MP_SHAPE_VOTE_WORDS];   // by this run
  uint64_t heard[MP_SHAPE_VOTE_WORDS];  // of all
  const void *vote_input;
  void *vote_output;
};

static inline bool mp_shapes_get(const uint64_t *bits, uint32_t i) {
  return (bits[i / 64] >> (i % 64) & 1) != 0;
}

static inline void mp_shapes_set(uint64_t *bits, uint32_t i, bool value) {
  const uint64_t bit = UINT64_C(1) << (i % 64);
  bits[i / 64] = value ? bits[i / 64] | bit : bits[i / 64] & ~bit;
}

static inline size_t mp_shapes_words(uint32_t bits) {
  return ((size_t)bits + 63) / 64;
}

// Records which results of a command get values. True when none does.
bool mp_shape_run_note_results(mp_shape_run_t *run, const mp_cmd_t *cmd,
                               const mp_shape_cmd_t *shape);
// The part of a collective that is computed, and its `contribution`, which is at first that of the
// whole; NULL: the operands of the part have no values.
const mp_collective_t *mp_shape_run_part(mp_run_t *run, uint32_t pc,
                                         mp_contribution_t *contribution);
// Records that none of the command's results has a value.
void mp_shape_run_forget_results(mp_shape_run_t *run, uint32_t number);
// Records that only this part of the command's results has values.
void mp_shape_run_know_part(mp_shape_run_t *run, uint32_t number,
                            const mp_shape_meeting_t *meeting);
// Records that all results of the command have values.
void mp_shape_run_know_results(mp_shape_run_t *run, uint32_t number);
// Ends the guesses at choices that have their join here (shapes.c).
void mp_shape_run_join(mp_shape_run_t *run, uint32_t pc);
// Records that the choice is guessed, until its join.
void mp_shape_run_guess(mp_shape_run_t *run, uint32_t pc);

#endif  // MINIPOD_SIM_RUNTIME_RUNS_SHAPES_IMPL_H_
