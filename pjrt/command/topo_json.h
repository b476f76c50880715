// A pod and its network as JSON, for programs.
#ifndef MINIPOD_PJRT_COMMAND_TOPO_JSON_H_
#define MINIPOD_PJRT_COMMAND_TOPO_JSON_H_

#include "sim/base/str.h"
#include "sim/model/network/network.h"

// Appends one object: the common properties of all devices, the machine, a list of devices, and a
// list of links with their ends, and the model's bandwidths (bytes/s) and latencies (s). Unlimited
// memory is null. The buffer records whether memory was short.
void mp_topo_json_write(const mp_network_t *network, mp_strbuf_t *out);

#endif  // MINIPOD_PJRT_COMMAND_TOPO_JSON_H_
