// A run at a collective whose other members are on devices of processes that do not exist (option
// `bootstrap`: absent). Each of them counts as bringing what this device brings. So this device has
// the results of collectives that give the same to all members, if its operands have values.
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

static mp_status_t meetings_alone_run(const mp_collective_t *collective, uint32_t logical,
                                      mp_contribution_t own) {
  const mp_groups_t *groups = collective->groups;
  if (groups->group_of[logical] < 0) {
    mp_collective_zero_outputs(collective, &(mp_arrival_t){.contribution = own});
    return NULL;
  }
  const uint32_t group = (uint32_t)groups->group_of[logical];
  const uint32_t count = groups->offsets[group + 1] - groups->offsets[group];
  mp_contribution_t *members = mp_calloc(count, sizeof(*members));
  MP_RETURN_IF_NULL(members);
  for (uint32_t i = 0; i < count; ++i) members[i] = own;
  mp_status_t status = meetings_alone_run_chunks(collective, group, members);
  mp_free(members);
  return status;
}

static bool meetings_alone_gives_same(mp_collective_kind_t kind) {
  return kind == MP_COLLECTIVE_ALL_REDUCE || kind == MP_COLLECTIVE_ALL_GATHER ||
         kind == MP_COLLECTIVE_BROADCAST;
}

mp_status_t mp_shape_run_meet_alone(mp_run_t *run, uint32_t pc) {
  mp_contribution_t own = {run->inputs, run->outputs};
  const mp_collective_t *collective = mp_shape_run_part(run, pc, &own);
  if (collective == NULL || !meetings_alone_gives_same(collective->kind)) {
    mp_shape_run_forget_results(run->shape_run, pc);
    return NULL;
  }
  MP_RETURN_IF_ERROR(meetings_alone_run(collective, run->logical, own));
  mp_shape_run_know_part(run->shape_run, pc, run->shape_run->shapes->commands[pc].meeting);
  return NULL;
}
