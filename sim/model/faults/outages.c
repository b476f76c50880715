// Slices, hosts and devices that are gone: which of them a device belongs to, and when outages that
// a seed chooses are.
#include "sim/base/hash.h"
#include "sim/model/faults/faults_impl.h"

uint64_t mp_fault_unit(const mp_pod_t *pod, mp_pod_fault_kind_t kind, uint32_t device) {
  const mp_pod_device_t *info = mp_pod_device(pod, (int32_t)device);
  if (kind == MP_POD_FAULT_SLICE) return (uint64_t)info->slice_index;
  if (kind == MP_POD_FAULT_HOST) return (uint64_t)info->host_index;
  return device;
}

mp_pod_fault_kind_t mp_fault_outage_kind(const mp_pod_fault_t *what) {
  return what->outage_of[0] == 's'   ? MP_POD_FAULT_SLICE
         : what->outage_of[0] == 'h' ? MP_POD_FAULT_HOST
                                     : MP_POD_FAULT_DEVICE;
}

// The launch with which the outage of a stretch begins; stretches are counted from 0.
static uint64_t outages_begin(const mp_pod_fault_t *what, uint64_t unit, uint64_t stretch) {
  const uint64_t chosen =
      mp_hash_u64(mp_hash_u64(mp_hash_u64(MP_HASH_START, what->outage_seed), unit), stretch);
  return 1 + stretch * what->outage_every + chosen % what->outage_every;
}

// An outage may go on in the stretch behind its own.
bool mp_fault_is_out(const mp_pod_fault_t *what, uint64_t unit, uint64_t step) {
  const uint64_t stretch = (step - 1) / what->outage_every;
  for (uint64_t i = 0; i < 2 && i <= stretch; ++i) {
    const uint64_t begin = outages_begin(what, unit, stretch - i);
    if (step >= begin && step - begin < what->outage_length) return true;
  }
  return false;
}
