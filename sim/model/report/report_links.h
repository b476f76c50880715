// How much each collective of a program loads the links, and along which axes of a mesh it goes.
#ifndef MINIPOD_SIM_MODEL_REPORT_REPORT_LINKS_H_
#define MINIPOD_SIM_MODEL_REPORT_REPORT_LINKS_H_

#include "sim/ir/module.h"
#include "sim/model/network/network.h"

typedef struct {
  int64_t link;    // -1: no link is used
  double bytes;    // over it
  double seconds;  // that it needs for them at its full rate
} mp_busiest_t;

// The link that is busy longest of those in `bytes`: the first `count` of the network. The first
// one of several.
mp_busiest_t mp_busiest_of(const mp_network_t *network, const double *bytes, uint32_t count);

// The same of one round of a collective: all its groups, or all its messages, once. `ids` are the
// global ids of logical devices. `scratch` has room for [links of the network], and is all zero
// before and afterwards. The caller may use the network.
MP_NODISCARD mp_status_t mp_busiest_of_collective(mp_network_t *network,
                                                  const mp_collective_t *collective,
                                                  const int32_t *ids, double *scratch,
                                                  mp_busiest_t *out_busiest);

// How many meetings, or messages, one round of it is.
uint32_t mp_report_collective_round(const mp_collective_t *collective);

// Appends the axes of the program's own meshes in which the devices differ that a collective
// brings together: "data", "data and model"; nothing where it has no mesh of `num_devices`. Groups
// that are not all devices along these axes are "part of data".
MP_NODISCARD mp_status_t mp_report_axes(const mp_module_t *module, uint32_t num_devices,
                                        const mp_collective_t *collective, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_MODEL_REPORT_REPORT_LINKS_H_
