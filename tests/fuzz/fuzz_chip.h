// What described chips would take for what a fuzzer made: the chip program of a program on each of
// the known chips must have times, bytes and steps that make sense.
#ifndef MINIPOD_TESTS_FUZZ_FUZZ_CHIP_H_
#define MINIPOD_TESTS_FUZZ_FUZZ_CHIP_H_

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/base/hash.h"
#include "sim/chip/chip_program.h"
#include "topology/pod.h"

// Chips of every compiler, and one that nothing is known of.
static const char *const k_fuzz_pods[] = {
    "torus:2x2", "v4:2x2x1", "v4-megacore:2x2x1", "v5e:2x2",
    "v5p:2x2x1", "v6e:2x2",  "7x:2x2x1",          "a100:4",
    "h100:4",    "b200:4",
};
enum { FUZZ_NUM_CHIPS = sizeof(k_fuzz_pods) / sizeof(k_fuzz_pods[0]) };

static inline void fuzz_chip_fail(const mp_program_t *program, const char *pod, const char *what) {
  fprintf(stderr, "twin of %.*s on %s: %s\n", MP_STR_ARG(program->name), pod, what);
  __builtin_trap();
}

static inline const mp_chip_t *fuzz_chip(uint32_t number) {
  static mp_chip_t chips[FUZZ_NUM_CHIPS];
  static bool is_there[FUZZ_NUM_CHIPS];
  if (is_there[number]) return &chips[number];
  mp_pod_t *pod = NULL;
  mp_status_t status = mp_pod_create_from_name(mp_str(k_fuzz_pods[number]), "fuzzer", &pod);
  if (status == NULL) status = mp_chip_from_pod(mp_pod_info(pod), &chips[number]);
  if (status != NULL) {
    fprintf(stderr, "no chip of %s: %s\n", k_fuzz_pods[number], mp_status_message(status));
    abort();
  }
  mp_pod_release(pod);
  is_there[number] = true;
  return &chips[number];
}

// A network with arbitrary times.
static inline mp_status_t fuzz_link_seconds(void *context, const mp_collective_t *collective,
                                            double *out_seconds) {
  const uint64_t *seed = context;
  const uint64_t drawn = mp_hash_bytes(*seed, &collective->kind, sizeof(collective->kind));
  *out_seconds = (double)(drawn % 1000) * 1e-6;
  return NULL;
}

static inline mp_chip_spread_t fuzz_link_spread(void *context, const mp_collective_t *collective) {
  const uint64_t *seed = context;
  return (mp_chip_spread_t){collective->groups->offsets[1], (uint32_t)(*seed % 4)};
}

static inline bool fuzz_is_amount(double value) {
  return isfinite(value) && value >= 0;
}

static inline void fuzz_check_kernels(const mp_chip_program_t *chip_program, const char *pod) {
  for (uint32_t i = 0; i < chip_program->num_kernels; ++i) {
    const mp_chip_kernel_t *kernel = &chip_program->kernels[i];
    if (!fuzz_is_amount(kernel->seconds) || !fuzz_is_amount(kernel->bytes) ||
        !fuzz_is_amount(kernel->flops) || !fuzz_is_amount(kernel->transcendentals)) {
      fprintf(stderr, "%s: %g s, %g bytes, %g operations, %g functions\n", kernel->name,
              kernel->seconds, kernel->bytes, kernel->flops, kernel->transcendentals);
      fuzz_chip_fail(chip_program->program, pod, "a kernel takes what nothing can take");
    }
  }
}

static inline void fuzz_check_steps(const mp_chip_program_t *chip_program, const char *pod) {
  const mp_program_t *program = chip_program->program;
  uint32_t num_started = 0;
  for (uint32_t i = 0; i < chip_program->num_steps; ++i) {
    const mp_chip_step_t *step = &chip_program->steps[i];
    if (step->first > step->end || step->end > chip_program->num_kernels) {
      fuzz_chip_fail(program, pod, "a step has kernels that are not there");
    }
    for (uint32_t t = 0; t < step->num_targets; ++t) {
      if (step->targets[t] >= chip_program->num_steps)
        fuzz_chip_fail(program, pod, "a jump to nowhere");
    }
    num_started += step->kind == MP_CHIP_STEP_START;
    num_started -= step->kind == MP_CHIP_STEP_DONE;
    if (num_started > chip_program->most_started) {
      fuzz_chip_fail(program, pod, "an end without a start, or too many starts");
    }
  }
  if (num_started != 0) fuzz_chip_fail(program, pod, "a collective that nobody waits for");
  if (chip_program->num_steps == 0 ||
      chip_program->steps[chip_program->num_steps - 1].kind != MP_CHIP_STEP_END) {
    fuzz_chip_fail(program, pod, "no end");
  }
}

static inline void fuzz_check_memory(const mp_chip_program_t *chip_program, const char *pod) {
  const mp_chip_space_t *memory = &chip_program->memory.device;
  if (memory->aliased > memory->arguments || memory->aliased > memory->results) {
    fuzz_chip_fail(chip_program->program, pod,
                   "more results in arguments than there are of either");
  }
  for (uint32_t i = 0; i < memory->num_places; ++i) {
    const mp_memory_place_t *place = &memory->places[i];
    if (place->first > place->last || place->offset + place->bytes > memory->temporaries) {
      fuzz_chip_fail(chip_program->program, pod, "a place outside of the temporaries");
    }
  }
}

// Makes the chip program on each chip, with a network or without, as `seed` says.
static inline void fuzz_chips(const mp_program_t *program, uint64_t seed) {
  const mp_chip_links_t links = {.seconds = fuzz_link_seconds,
                                 .spread = fuzz_link_spread,
                                 .context = &seed,
                                 .bandwidth = (double)(seed % 7) * 1e10};
  for (uint32_t i = 0; i < FUZZ_NUM_CHIPS; ++i) {
    mp_arena_t *arena = NULL;
    const mp_chip_program_t *chip_program = NULL;
    mp_status_t status = mp_arena_create(&arena);
    if (status == NULL) {
      const bool is_linked = seed >> i & 1;
      status = mp_chip_program_create(fuzz_chip(i), program, is_linked ? &links : NULL, arena,
                                      &chip_program);
    }
    if (status == NULL) {
      fuzz_check_kernels(chip_program, k_fuzz_pods[i]);
      fuzz_check_steps(chip_program, k_fuzz_pods[i]);
      fuzz_check_memory(chip_program, k_fuzz_pods[i]);
    } else if (mp_status_code(status) != MP_RESOURCE_EXHAUSTED) {
      fuzz_chip_fail(program, k_fuzz_pods[i], mp_status_message(status));
    }
    mp_status_release(status);
    mp_arena_release(arena);
  }
}

#endif  // MINIPOD_TESTS_FUZZ_FUZZ_CHIP_H_
