// The events of a YAML text, one after the other, with messages that name the text and the line.
//
// Used by one thread at a time.
#ifndef MINIPOD_TOPOLOGY_YAML_EVENTS_H_
#define MINIPOD_TOPOLOGY_YAML_EVENTS_H_

#include <yaml.h>

#include "sim/base/status.h"
#include "sim/base/str.h"

typedef struct {
  yaml_parser_t parser;
  yaml_event_t event;  // the current one, always initialised or zeroed
  const char *origin;  // what messages call the text
} mp_yaml_t;

// Begins at the start of a text. `origin` and `text` are borrowed until mp_yaml_end, which is
// called only when this has succeeded.
MP_NODISCARD mp_status_t mp_yaml_begin(mp_yaml_t *yaml, const char *origin, mp_str_t text);
void mp_yaml_end(mp_yaml_t *yaml);

// Goes to the next event. INVALID_ARGUMENT "<origin>:<line>: not YAML: ...".
MP_NODISCARD mp_status_t mp_yaml_advance(mp_yaml_t *yaml);
// Advances to the last event of the value whose first event is the current one.
MP_NODISCARD mp_status_t mp_yaml_skip(mp_yaml_t *yaml);
// Advances past the current document, whose last value was read: an error when another one follows.
MP_NODISCARD mp_status_t mp_yaml_finish_document(mp_yaml_t *yaml);

// The line of the current event, from 1.
int mp_yaml_line(const mp_yaml_t *yaml);
// The text of the current event, which is a scalar.
mp_str_t mp_yaml_scalar(const mp_yaml_t *yaml);

#endif  // MINIPOD_TOPOLOGY_YAML_EVENTS_H_
