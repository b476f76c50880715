// The network of a pod as a picture (SVG): chips at their places in the grid, slices and hosts
// around them, links between them, coloured by load where loads are known.
//
// Pure functions; nothing depends on the machine or the locale.
#ifndef MINIPOD_SIM_MODEL_PICTURE_PICTURE_H_
#define MINIPOD_SIM_MODEL_PICTURE_PICTURE_H_

#include "sim/base/status.h"
#include "sim/base/str.h"
#include "sim/model/network/network.h"

// Appends a whole SVG document. loads[link] is the part of the time in which a link is busy, 0 to
// 1, or anything else for which 1 is much (it counts as 1 then); NULL: all links are drawn alike.
// Links between devices and their hosts are drawn only where they have a load, for there is one of
// each kind per device. Titles, which viewers show under the pointer, have names, figures and
// loads.
MP_NODISCARD mp_status_t mp_picture_write(const mp_network_t *network, const double *loads,
                                          mp_strbuf_t *out_svg);

// Reads loads: a line for each link that has one, with its name, ':' or a tab, and its load as a
// number or percentage ("slice 0 (1,2,0) +x: 0.83"); the rest of a line after '#' is a comment. The
// loads of all other links become 0. `out_loads` has mp_network_num_links(network) places.
// INVALID_ARGUMENT
// "<origin>:<line>: …" for what it cannot read, and for a name that no link has, with the nearest
// one.
MP_NODISCARD mp_status_t mp_picture_read_loads(const mp_network_t *network, const char *origin,
                                               mp_str_t text, double *out_loads);

#endif  // MINIPOD_SIM_MODEL_PICTURE_PICTURE_H_
