// The groups of processes that a collective works in, in the four forms that HLO has for them.
#ifndef MINIPOD_SIM_READERS_HLO_HLO_GROUPS_H_
#define MINIPOD_SIM_READERS_HLO_HLO_GROUPS_H_

#include "sim/readers/hlo/hlo_build.h"

// The instruction's groups as an attribute: a table with a row per group, or axes of a mesh. An
// empty table means all processes. INVALID_ARGUMENT for a malformed list of groups.
MP_NODISCARD mp_status_t mp_hlo_read_groups(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                            const mp_attr_t **out_groups);
// Whether each process is alone in its group, so that the collective does nothing. Such groups may
// name more processes than the program has; torch_xla writes them for replicas that it does not
// start.
bool mp_hlo_groups_are_alone(const mp_hlo_inst_t *inst, const mp_attr_t *groups);
// The pairs of processes of a collective-permute, as a table of two columns.
MP_NODISCARD mp_status_t mp_hlo_read_pairs(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                           const mp_attr_t **out_pairs);

#endif  // MINIPOD_SIM_READERS_HLO_HLO_GROUPS_H_
