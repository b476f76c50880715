// The option `algorithms`: which algorithm each kind of collective has.
#ifndef MINIPOD_SIM_MODEL_NETWORK_ALGORITHMS_NETWORK_OPTIONS_H_
#define MINIPOD_SIM_MODEL_NETWORK_ALGORITHMS_NETWORK_OPTIONS_H_

#include "sim/model/network/network.h"

// Reads "all_reduce:ring,all_gather:direct"; an empty text changes nothing. INVALID_ARGUMENT names
// the kind or the algorithm that is not known, those that are, and the nearest one.
MP_NODISCARD mp_status_t mp_network_options_read(mp_str_t text, mp_network_options_t *options);

#endif  // MINIPOD_SIM_MODEL_NETWORK_ALGORITHMS_NETWORK_OPTIONS_H_
