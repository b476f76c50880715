// The distances between the devices of a pod.
#ifndef MINIPOD_PJRT_COMMAND_TOPO_MATRIX_H_
#define MINIPOD_PJRT_COMMAND_TOPO_MATRIX_H_

#include "sim/base/str.h"
#include "sim/model/network/network.h"

// Appends the number of links that a message takes from each device to each other one, and the
// bandwidth of the path without other traffic: two tables, or with `is_json` one object of two
// lists of lists ("hops", and "bandwidth" in bytes/s; null from a device to itself).
// INVALID_ARGUMENT for pods with too many devices to read (more than 1,024).
MP_NODISCARD mp_status_t mp_topo_matrix_write(mp_network_t *network, bool is_json,
                                              mp_strbuf_t *out);

#endif  // MINIPOD_PJRT_COMMAND_TOPO_MATRIX_H_
