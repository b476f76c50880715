// What the links of a picture carry, in a line of text.
#ifndef MINIPOD_SIM_MODEL_PICTURE_PICTURE_RATES_H_
#define MINIPOD_SIM_MODEL_PICTURE_PICTURE_RATES_H_

#include "sim/model/network/network.h"
#include "sim/model/picture/picture_layout.h"

// Appends the bandwidths of links by what they join: "45 GB/s between chips, 16 GB/s between chip
// and host, 12.5 to 25 GB/s between hosts, per direction"; nothing where there is no link.
void mp_picture_put_rates(const mp_network_t *network, const mp_picture_layout_t *layout,
                          mp_strbuf_t *out);

#endif  // MINIPOD_SIM_MODEL_PICTURE_PICTURE_RATES_H_
