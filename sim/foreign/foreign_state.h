// States: objects of a registered type that the stages of a foreign function create for later
// stages.
#ifndef MINIPOD_SIM_FOREIGN_FOREIGN_STATE_H_
#define MINIPOD_SIM_FOREIGN_FOREIGN_STATE_H_

#include "sim/base/status.h"
#include "sim/foreign/foreign_abi.h"

// The state that one stage has created; {0} is none.
typedef struct {
  XLA_FFI_TypeId type;
  void *object;  // owned: its type's deleter ends it
} mp_foreign_state_t;

// The states of a run. (That of the instantiate stage belongs to the call.)
typedef struct {
  mp_foreign_state_t prepare, initialize;
} mp_foreign_states_t;

// Takes the object. ALREADY_EXISTS when there is one, INVALID_ARGUMENT when the type is not
// registered; then the object stays the caller's.
MP_NODISCARD mp_status_t mp_foreign_state_set(mp_foreign_state_t *state, XLA_FFI_TypeId type,
                                              void *object);
// Lends the object. NOT_FOUND when there is none, INVALID_ARGUMENT when its type is another one.
MP_NODISCARD mp_status_t mp_foreign_state_get(const mp_foreign_state_t *state, XLA_FFI_TypeId type,
                                              void **out_object);
// Ends the object, if there is one; afterwards there is none.
void mp_foreign_state_clear(mp_foreign_state_t *state);
// The same for both states of a run.
void mp_foreign_states_clear(mp_foreign_states_t *states);

#endif  // MINIPOD_SIM_FOREIGN_FOREIGN_STATE_H_
