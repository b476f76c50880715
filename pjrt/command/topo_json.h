// A pod and its network as JSON, for programs.
#ifndef MINIPOD_PJRT_COMMAND_TOPO_JSON_H_
#define MINIPOD_PJRT_COMMAND_TOPO_JSON_H_

#include "sim/base/str.h"
#include "sim/model/network/network.h"

// Appends one object: what all devices have in common, the machine, a list of devices, and a list
// of links with their ends, bandwidths (bytes/s) and latencies (s) as the model of time has them.
// Memory without a limit is null. Whether memory was short the buffer knows.
void mp_topo_json_write(const mp_network_t *network, mp_strbuf_t *out);

#endif  // MINIPOD_PJRT_COMMAND_TOPO_JSON_H_
