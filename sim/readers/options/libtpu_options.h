// The options that clients of TPUs pass to libtpu, and that minipod accepts on a pod of TPUs.
#ifndef MINIPOD_SIM_READERS_OPTIONS_LIBTPU_OPTIONS_H_
#define MINIPOD_SIM_READERS_OPTIONS_LIBTPU_OPTIONS_H_

#include <stddef.h>
#include <stdint.h>

#include "sim/base/options.h"
#include "sim/base/status.h"
#include "sim/base/str.h"

// The create options of libtpu that a client has passed, as a set.
typedef uint32_t mp_libtpu_options_t;

// Takes libtpu's create options out of the list. INVALID_ARGUMENT for a value of another type.
MP_NODISCARD mp_status_t mp_libtpu_options_take(mp_named_value_t *values, size_t *inout_count,
                                                mp_libtpu_options_t *out_options);
// Logs at level info that they have no effect. INVALID_ARGUMENT if the pod has no TPUs, but devices
// of `kind`.
MP_NODISCARD mp_status_t mp_libtpu_options_check(mp_libtpu_options_t options, bool is_tpu,
                                                 const char *pod, const char *kind);
// The bytes of VMEM that libtpu's flags, "--a=true --b" as in LIBTPU_INIT_ARGS, give kernels that
// ask for none (xla_tpu_scoped_vmem_limit_kib); 0: there is no such flag, or its value is no
// number.
uint64_t mp_libtpu_scoped_vmem(mp_str_t flags);

#endif  // MINIPOD_SIM_READERS_OPTIONS_LIBTPU_OPTIONS_H_
