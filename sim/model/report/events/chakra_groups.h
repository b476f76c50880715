// The groups of devices that have met, by number: Chakra's process groups.
#ifndef MINIPOD_SIM_MODEL_REPORT_EVENTS_CHAKRA_GROUPS_H_
#define MINIPOD_SIM_MODEL_REPORT_EVENTS_CHAKRA_GROUPS_H_

#include "sim/model/clock/model.h"

typedef struct mp_chakra_groups_s mp_chakra_groups_t;

// For a pod of so many devices. RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_chakra_groups_create(uint32_t num_devices,
                                                 mp_chakra_groups_t **out_groups);
void mp_chakra_groups_release(mp_chakra_groups_t *groups);

// The number, from 1, of the group of a program's collective that a device (by global id) is in;
// equal lists of devices have one number. 0: it is in none, or memory is short.
uint32_t mp_chakra_group_of(mp_chakra_groups_t *groups, const mp_model_program_t *program,
                            const mp_collective_t *collective, uint32_t device);

// Appends all groups as JSON: {"1": [0, 1, 2, 3], ...}.
void mp_chakra_groups_print(const mp_chakra_groups_t *groups, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_MODEL_REPORT_EVENTS_CHAKRA_GROUPS_H_
