#include "sim/foreign/foreign_state.h"

#include "sim/foreign/foreign_registry.h"

mp_status_t mp_foreign_state_set(mp_foreign_state_t *state, XLA_FFI_TypeId type, void *object) {
  void (*deleter)(void *) = NULL;
  if (object == NULL) return mp_status_make(MP_INVALID_ARGUMENT, "a state must not be NULL");
  if (!mp_foreign_type_deleter(type, &deleter)) {
    return mp_status_make(
        MP_INVALID_ARGUMENT,
        "a state of type %lld, which is not registered: jax.ffi.register_ffi_type",
        (long long)type.type_id);
  }
  if (deleter == NULL) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "a state of type %lld, which has no function to delete it",
                          (long long)type.type_id);
  }
  if (state->object != NULL) {
    return mp_status_make(MP_ALREADY_EXISTS, "there is a state already, of type %lld",
                          (long long)state->type.type_id);
  }
  *state = (mp_foreign_state_t){type, object};
  return NULL;
}

mp_status_t mp_foreign_state_get(const mp_foreign_state_t *state, XLA_FFI_TypeId type,
                                 void **out_object) {
  if (state->object == NULL) return mp_status_make(MP_NOT_FOUND, "there is no state");
  if (state->type.type_id != type.type_id) {
    return mp_status_make(MP_INVALID_ARGUMENT, "the state is of type %lld, not %lld",
                          (long long)state->type.type_id, (long long)type.type_id);
  }
  *out_object = state->object;
  return NULL;
}

void mp_foreign_state_clear(mp_foreign_state_t *state) {
  void (*deleter)(void *) = NULL;
  if (state->object != NULL && mp_foreign_type_deleter(state->type, &deleter)) {
    deleter(state->object);
  }
  *state = (mp_foreign_state_t){0};
}

void mp_foreign_states_clear(mp_foreign_states_t *states) {
  mp_foreign_state_clear(&states->initialize);
  mp_foreign_state_clear(&states->prepare);
}
