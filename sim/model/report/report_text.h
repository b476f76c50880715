// Numbers as people read them in tables.
#ifndef MINIPOD_SIM_MODEL_REPORT_REPORT_TEXT_H_
#define MINIPOD_SIM_MODEL_REPORT_REPORT_TEXT_H_

#include "sim/base/str.h"
#include "sim/chip/chip_program.h"

enum { MP_REPORT_NUMBER = 24 };

// Each writes into `out`, which has room for MP_REPORT_NUMBER characters, and returns it.
const char *mp_report_time(mp_moment_t moment, char *out);                // "1.234 ms"
const char *mp_report_scaled(double value, const char *unit, char *out);  // "1.50 GB", "312 Mflop"
const char *mp_report_share(double part, double whole, char *out);        // "12.3 %"; whole 0: "-"

// The text, or its last `most` bytes: of a place that is where the line stands.
mp_str_t mp_report_end_of(mp_str_t text, size_t most);
// Of a place (loc.h) the part that is about the user's line: without ", in " and the library's.
mp_str_t mp_report_user_place(const char *place);

#endif  // MINIPOD_SIM_MODEL_REPORT_REPORT_TEXT_H_
