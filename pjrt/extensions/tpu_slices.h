// The slices that a platform of TPUs has, and topologies that are parts of others.
#ifndef MINIPOD_PJRT_EXTENSIONS_TPU_SLICES_H_
#define MINIPOD_PJRT_EXTENSIONS_TPU_SLICES_H_

#include "pjrt/c_api/c_api_tpu_topology.h"
#include "pjrt/pjrt_objects.h"

// The slice of a name such as "4x4x8" or "4x4x8_twisted". INVALID_ARGUMENT for platforms and names
// that libtpu does not have: it describes tpu7x only.
MP_NODISCARD mp_status_t mp_tpu_find_slice(mp_str_t platform, mp_str_t name,
                                           PJRT_TpuTopology_SliceConfig *out_slice);
// Writes all slices; INVALID_ARGUMENT if they are more than `capacity`.
MP_NODISCARD mp_status_t mp_tpu_list_slices(mp_str_t platform, PJRT_TpuTopology_SliceConfig *slices,
                                            size_t capacity, size_t *out_count);
MP_NODISCARD mp_status_t mp_tpu_check_platform(mp_str_t platform);

// A new topology with the chips of this one: hosts of `box` chips, as a grid `hosts` of them.
// UNIMPLEMENTED for a pod from a file that names no known chip.
MP_NODISCARD mp_status_t mp_tpu_make_topology(const PJRT_TopologyDescription *topology,
                                              const int32_t *box, const int32_t *hosts,
                                              PJRT_TopologyDescription **out_topology);

#endif  // MINIPOD_PJRT_EXTENSIONS_TPU_SLICES_H_
