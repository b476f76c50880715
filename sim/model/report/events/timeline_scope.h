// Which devices and links have rows of their own in a timeline (option `trace_devices`): on large
// pods few, because a file of all would be full before the first step ends.
#ifndef MINIPOD_SIM_MODEL_REPORT_EVENTS_TIMELINE_SCOPE_H_
#define MINIPOD_SIM_MODEL_REPORT_EVENTS_TIMELINE_SCOPE_H_

#include "sim/model/clock/model.h"

enum {
  MP_TIMELINE_ALL = 64,       // pods of at most so many devices are shown whole
  MP_TIMELINE_FEW = 8,        // of larger ones so many: the first of this process
  MP_TIMELINE_LINKS = 10000,  // up to so many links are summed up where they are not shown
};

// How a link is shown.
typedef enum {
  MP_TIMELINE_LINK_WHOLE,  // each time that it carries bytes: it is one of a traced device or host
  MP_TIMELINE_LINK_SUM,    // once for each launch
  MP_TIMELINE_LINK_NOT,
} mp_timeline_link_t;

typedef struct {
  uint32_t num_devices, num_traced;
  bool *devices;       // [num_devices]
  uint8_t *links;      // [links] mp_timeline_link_t
  bool has_sums;       // some link is summed up
  bool is_by_default;  // no option chose the devices
} mp_timeline_scope_t;

// Reads the option: "auto", "all", or ids such as "0,8-15". INVALID_ARGUMENT where it is none of
// these, or names a device that the pod has not. May be deinitialized in any case.
MP_NODISCARD mp_status_t mp_timeline_scope_init(const mp_model_t *model, const char *option,
                                                mp_timeline_scope_t *out_scope);
void mp_timeline_scope_deinit(mp_timeline_scope_t *scope);

// Appends what is traced: "devices 0-7 of 256".
void mp_timeline_scope_print(const mp_timeline_scope_t *scope, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_MODEL_REPORT_EVENTS_TIMELINE_SCOPE_H_
