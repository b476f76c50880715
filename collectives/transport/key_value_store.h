// A key-value store that the processes of a job share before they have a world: the service that a
// framework's coordinator offers its processes (jax.distributed, torch_xla's coordinator), as
// functions.
//
// The provider of a store says how long it may be used; the functions are called on the thread that
// got it, and never by two threads at once.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_KEY_VALUE_STORE_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_KEY_VALUE_STORE_H_

#include <stdint.h>

#include "sim/base/status.h"
#include "sim/base/str.h"

typedef struct {
  // Sets the value of a key. ALREADY_EXISTS when it has one.
  mp_status_t (*put)(void *context, const char *key, mp_str_t value);
  // Appends the value of a key to `value`. Blocks for up to `timeout_s` seconds until some process
  // has put it; DEADLINE_EXCEEDED or NOT_FOUND when none has. Other errors: the store is out of
  // reach.
  mp_status_t (*get)(void *context, const char *key, double timeout_s, mp_strbuf_t *value);
  // The same without waiting. NULL: there is no such function.
  mp_status_t (*try_get)(void *context, const char *key, mp_strbuf_t *value);
  // For messages: appends the address of a process, and the name of the setting that has the number
  // of processes. NULL: there are no addresses, and it is num_nodes.
  void (*write_address)(void *context, uint32_t rank, mp_strbuf_t *text);
  const char *counted_by;
  void *context;
} mp_key_value_store_t;

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_KEY_VALUE_STORE_H_
