// The logger: one lower-case line per event to stderr. The level is the option `log_level`
// (MINIPOD_LOG_LEVEL); by default only warnings and errors are printed; a correct use causes none.
// Hot paths ask mp_log_enabled first, one load. Thread-safe; lines are cut after about a thousand
// characters.
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

// Sets the level of the process: events of this level and of more important ones are printed.
void mp_log_set_level(mp_log_level_t level);
mp_log_level_t mp_log_level(void);
// Whether events of this level are printed.
bool mp_log_enabled(mp_log_level_t level);
// Prints "minipod: <level>: <message>\n" if the level is enabled.
MP_PRINTF(2, 3) void mp_log(mp_log_level_t level, const char *format, ...);

// Prints each line of a text that is not empty as such an event, behind two spaces.
void mp_log_lines(mp_log_level_t level, const char *text);

// Prints "minipod: <message>\n" whatever the level, for the few things that a user must see without
// asking for them.
MP_PRINTF(1, 2) void mp_log_notice(const char *format, ...);

#endif  // MINIPOD_SIM_BASE_LOG_H_
