// Google Cloud's names of TPUs and their slices: "tpu-v6e-slice", "v5litepod-16", "v4-8".
#ifndef MINIPOD_TOPOLOGY_PRESETS_CLOUD_NAMES_H_
#define MINIPOD_TOPOLOGY_PRESETS_CLOUD_NAMES_H_

#include <stdbool.h>

#include "sim/base/str.h"

enum { MP_CLOUD_SHAPE = 32 };  // bytes of a shape

// The preset and the grid of chips of such a name: "v5e" and "4x4", "v4" and "2x2x1". The number in
// the name counts chips or, for v2, v3, v4 and v5p, cores, of which a chip has two; the grid is
// Cloud's default for this number. False: it is no such name, or its number is no power of two.
bool mp_cloud_name_read(mp_str_t name, const char **out_preset, char *out_shape);

// The preset for Google's or Kubernetes Engine's name of a chip kind: "v5e" for
// "tpu-v5-lite-podslice", "v6e" of "tpu-v6e-slice", "tpu-v6e" and "trillium", "h200" of
// "nvidia-h200-141gb". Other names are returned unchanged.
mp_str_t mp_cloud_name_preset(mp_str_t name);

#endif  // MINIPOD_TOPOLOGY_PRESETS_CLOUD_NAMES_H_
