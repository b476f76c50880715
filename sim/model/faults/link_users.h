// Which collective of a program goes over a link.
//
// Routes are static, so this is known of a program on its devices once and for all.
#ifndef MINIPOD_SIM_MODEL_FAULTS_LINK_USERS_H_
#define MINIPOD_SIM_MODEL_FAULTS_LINK_USERS_H_

#include "sim/model/network/network.h"
#include "sim/plan/program.h"

typedef struct mp_link_users_s mp_link_users_t;

// Finds the users of all links; `ids` are the global ids of the program's `num_devices` devices.
// The network belongs to the caller meanwhile, and the program must live as long as the users.
MP_NODISCARD mp_status_t mp_link_users_create(mp_network_t *network, const mp_program_t *program,
                                              uint32_t num_devices, const uint32_t *ids,
                                              mp_link_users_t **out_users);
// NULL is allowed.
void mp_link_users_release(mp_link_users_t *users);

// The first collective, send or receive of the program that goes over the link; NULL: none.
const mp_collective_t *mp_link_users_find(const mp_link_users_t *users, uint32_t link);

#endif  // MINIPOD_SIM_MODEL_FAULTS_LINK_USERS_H_
