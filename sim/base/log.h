// The logger: off by default, to stderr, one lower-case line per event, never in a hot path.
//
// Levels come from the option `log_level` (MINIPOD_LOG_LEVEL): off, error, warning, info, debug.
#ifndef MINIPOD_SIM_BASE_LOG_H_
#define MINIPOD_SIM_BASE_LOG_H_

#include <stdbool.h>

#include "sim/base/status.h"

typedef enum {
  MP_LOG_OFF,
  MP_LOG_ERROR,
  MP_LOG_WARNING,
  MP_LOG_INFO,
  MP_LOG_DEBUG,
} mp_log_level_t;

void mp_log_set_level(mp_log_level_t level);
bool mp_log_enabled(mp_log_level_t level);
// Prints "minipod: <level>: <message>\n" with one write.
MP_PRINTF(2, 3) void mp_log(mp_log_level_t level, const char *format, ...);

// Prints "minipod: <message>\n" with one write, whatever the level: for the few things that a user
// must hear without asking.
MP_PRINTF(1, 2) void mp_log_notice(const char *format, ...);

#endif  // MINIPOD_SIM_BASE_LOG_H_
