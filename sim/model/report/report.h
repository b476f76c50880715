// The reports of a client's model of time: the table of all programs, also of released ones, and
// observers of the pod (timelines, traces for other simulators).
//
// Thread-safe, but for making and releasing. The report belongs to the client's maker, and is
// released before the model.
#ifndef MINIPOD_SIM_MODEL_REPORT_REPORT_H_
#define MINIPOD_SIM_MODEL_REPORT_REPORT_H_

#include "sim/base/options.h"
#include "sim/model/clock/model.h"

typedef struct mp_report_s mp_report_t;

// Makes the reports of a model, with the files that the options name (`trace`, `chakra`).
// INVALID_ARGUMENT for files that cannot be written.
MP_NODISCARD mp_status_t mp_report_create(mp_model_t *model, const mp_options_t *options,
                                          mp_report_t **out_report);
// Ends the files and takes the report away from the model. NULL has no effect.
void mp_report_release(mp_report_t *report);

// Appends the table (report_table.h) of what the log says by now.
MP_NODISCARD mp_status_t mp_report_print(mp_report_t *report, mp_strbuf_t *out);
// The same as one object of JSON (report_table.h).
MP_NODISCARD mp_status_t mp_report_print_json(mp_report_t *report, mp_strbuf_t *out);
// The latest virtual moment that the host or a device has come to.
mp_moment_t mp_report_now(mp_report_t *report);

// The model that it reports of.
const mp_model_t *mp_report_model(const mp_report_t *report);
// How many devices the pod has.
uint32_t mp_report_num_devices(const mp_report_t *report);
// One more observer (borrowed until it is taken away), besides those that the options ask for. It
// gets the host's actions from now on, until mp_report_unwatch. Observers of one report are called
// one at a time. RESOURCE_EXHAUSTED when there are too many.
MP_NODISCARD mp_status_t mp_report_watch(mp_report_t *report, const mp_model_observer_t *observer);
void mp_report_unwatch(mp_report_t *report, const mp_model_observer_t *observer);

#endif  // MINIPOD_SIM_MODEL_REPORT_REPORT_H_
