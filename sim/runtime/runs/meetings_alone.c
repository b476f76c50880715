// A run at a collective whose other members are on devices of processes that do not exist (option
// `bootstrap`: absent). Each of them counts as bringing what this device brings, unless the launch
// says otherwise (mp_others_t). So this device has the results of collectives that give the same to
// all members, if its operands have values.
#include "sim/base/alloc.h"
#include "sim/runtime/runs/run.h"
#include "sim/runtime/runs/shapes_impl.h"

static mp_status_t meetings_alone_run_chunks(const mp_collective_t *collective, uint32_t group,
                                             const mp_contribution_t *members) {
  const size_t bytes = mp_collective_scratch_bytes(collective, group);
  void *scratch = mp_aligned_malloc(64, bytes + 1);
  mp_status_t status = scratch == NULL ? mp_status_out_of_memory() : NULL;
  const uint32_t count = mp_collective_num_chunks(collective, group);
  for (uint32_t chunk = 0; chunk < count && status == NULL; ++chunk) {
    status = mp_collective_run(collective, group, members, NULL, chunk, scratch);
  }
  mp_free(scratch);
  return status;
}

// The contributions of a group's members: `own` at this device's position, `others` elsewhere.
static void meetings_alone_fill(const mp_groups_t *groups, uint32_t logical, mp_contribution_t own,
                                mp_contribution_t others, mp_contribution_t *members) {
  const uint32_t begin = groups->offsets[groups->group_of[logical]];
  const uint32_t end = groups->offsets[groups->group_of[logical] + 1];
  for (uint32_t i = begin; i < end; ++i) {
    members[i - begin] = groups->members[i] == logical ? own : others;
  }
}

// Arrays of zeros in the place of all operands. `out_inputs` is one allocation.
static mp_status_t meetings_alone_make_zeros(const mp_collective_t *collective,
                                             const void ***out_inputs) {
  const size_t list = collective->num_operands * sizeof(void *);
  char *memory = mp_calloc(1, list + 64 + mp_message_bytes(collective));
  MP_RETURN_IF_NULL(memory);
  // No operand is larger than all together, and none is written.
  const uintptr_t zeros = ((uintptr_t)memory + list + 63) & ~(uintptr_t)63;
  *out_inputs = (const void **)(void *)memory;
  for (uint32_t i = 0; i < collective->num_operands; ++i) (*out_inputs)[i] = (const void *)zeros;
  return NULL;
}

static mp_status_t meetings_alone_run(const mp_collective_t *collective, uint32_t logical,
                                      mp_contribution_t own, mp_others_t kind) {
  const mp_groups_t *groups = collective->groups;
  if (groups->group_of[logical] < 0) {
    mp_collective_zero_outputs(collective, &(mp_arrival_t){.contribution = own});
    return NULL;
  }
  const uint32_t group = (uint32_t)groups->group_of[logical];
  const uint32_t count = groups->offsets[group + 1] - groups->offsets[group];
  mp_contribution_t *members = mp_calloc(count, sizeof(*members));
  MP_RETURN_IF_NULL(members);
  const void **zeros = NULL;
  mp_status_t status =
      kind == MP_OTHERS_ZERO ? meetings_alone_make_zeros(collective, &zeros) : NULL;
  if (status == NULL) {
    mp_contribution_t others = own;
    if (zeros != NULL) others.inputs = zeros;
    meetings_alone_fill(groups, logical, own, others, members);
    status = meetings_alone_run_chunks(collective, group, members);
  }
  mp_free(zeros);
  mp_free(members);
  return status;
}

// Whether all members get the same, and this device knows what. The first member of a group is the
// source of a broadcast.
static bool meetings_alone_gives_same(const mp_collective_t *collective, uint32_t logical,
                                      mp_others_t others) {
  if (others == MP_OTHERS_UNKNOWN) return false;
  if (collective->kind == MP_COLLECTIVE_BROADCAST) {
    return collective->groups->group_of[logical] < 0 || collective->groups->position[logical] == 0;
  }
  return collective->kind == MP_COLLECTIVE_ALL_REDUCE ||
         (collective->kind == MP_COLLECTIVE_ALL_GATHER && others == MP_OTHERS_EQUAL);
}

mp_status_t mp_shape_run_meet_alone(mp_run_t *run, uint32_t pc) {
  mp_contribution_t own = {run->inputs, run->outputs};
  const mp_collective_t *collective = mp_shape_run_part(run, pc, &own);
  if (collective == NULL || !meetings_alone_gives_same(collective, run->logical, run->others)) {
    mp_shape_run_forget_results(run->shape_run, pc);
    return NULL;
  }
  MP_RETURN_IF_ERROR(meetings_alone_run(collective, run->logical, own, run->others));
  mp_shape_run_know_part(run->shape_run, pc, run->shape_run->shapes->commands[pc].meeting);
  return NULL;
}
