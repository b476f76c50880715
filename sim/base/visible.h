// Texts as a terminal may have them.
#ifndef MINIPOD_SIM_BASE_VISIBLE_H_
#define MINIPOD_SIM_BASE_VISIBLE_H_

#include <stddef.h>

// Writes a message with the control characters that could steer a terminal as "\x1b"; newlines and
// tabs stay. Writes at most `room` bytes, NUL included, and returns how long the whole text is.
size_t mp_visible(const char *text, char *out, size_t room);

#endif  // MINIPOD_SIM_BASE_VISIBLE_H_
