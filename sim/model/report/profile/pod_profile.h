// What a profiler gets of the pod: an XPlane for each device, with virtual times.
//
// The plane of a described TPU is "/device:TPU:<id>", with what XProf's pages want of a TPU's own
// profiler: the chip's peaks, a step for each launch, and of each kernel its program, category,
// operations and bytes. Another device's is "/device:CUSTOM:MINIPOD:<id>" (XProf shows no devices
// of other names), of which there is a time line alone.
//
// The lines: launches ("Steps"), their programs ("XLA Modules"), what they did ("XLA Ops": kernels,
// waiting, collectives), and collectives beside that ("Async XLA Ops"). Virtual time stands still
// where the profile begins at the real time of that moment.
#ifndef MINIPOD_SIM_MODEL_REPORT_PROFILE_POD_PROFILE_H_
#define MINIPOD_SIM_MODEL_REPORT_PROFILE_POD_PROFILE_H_

#include "sim/model/report/report.h"

typedef struct mp_pod_profile_s mp_pod_profile_t;

// Begins to record what the host does from now on. `now` is the real time, nanoseconds since 1970.
MP_NODISCARD mp_status_t mp_pod_profile_start(mp_report_t *report, int64_t now,
                                              mp_pod_profile_t **out_profile);
// Ends recording if it is of this report, which is not used any more; else there is no effect.
void mp_pod_profile_stop(mp_pod_profile_t *profile, mp_report_t *report);
// Appends the planes of all devices that did something to an XSpace message.
void mp_pod_profile_print(const mp_pod_profile_t *profile, mp_strbuf_t *space);
// Frees it; it is stopped, or its report is gone. NULL has no effect.
void mp_pod_profile_release(mp_pod_profile_t *profile);

#endif  // MINIPOD_SIM_MODEL_REPORT_PROFILE_POD_PROFILE_H_
