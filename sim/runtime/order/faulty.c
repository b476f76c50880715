#include "sim/runtime/order/faulty.h"

#include "sim/runtime/devices/client_impl.h"
#include "sim/runtime/order/launch_order.h"

// Notifies the time model when the pod's health has changed. Under the launch lock, so that in the
// model's log each launch is entirely before or entirely after the change.
static void faulty_tell_model(mp_client_t *client) {
  mp_health_t *health;
  if (client->model == NULL || !mp_faults_take_health(client->faults, &health)) return;
  mp_model_set_health(client->model, health);
}

mp_status_t mp_client_make_faults(mp_client_t *client, const mp_options_t *options) {
  MP_RETURN_IF_ERROR(mp_faults_create(client->pod, options, &client->faults));
  if (mp_faults_count(client->faults) == 0) return NULL;
  atomic_store(&client->is_faulty, true);  // no other thread has the client yet
  faulty_tell_model(client);
  return NULL;
}

mp_status_t mp_client_inject(mp_client_t *client, const char *origin, mp_str_t text) {
  MP_RETURN_IF_ERROR(mp_client_check(client));
  mp_lock(&client->launches->lock);
  mp_status_t status = mp_faults_add(client->faults, origin, text);
  if (mp_faults_count(client->faults) != 0) atomic_store(&client->is_faulty, true);
  if (status == NULL) faulty_tell_model(client);
  mp_unlock(&client->launches->lock);
  return status;
}

mp_status_t mp_client_heal(mp_client_t *client) {
  MP_RETURN_IF_ERROR(mp_client_check(client));
  mp_lock(&client->launches->lock);
  mp_faults_clear(client->faults);
  atomic_store(&client->is_faulty, false);
  faulty_tell_model(client);
  mp_unlock(&client->launches->lock);
  return NULL;
}

mp_status_t mp_client_meet_faults(mp_client_t *client, const mp_faults_launch_t *launch,
                                  uint32_t *out_num_flips, mp_faults_flip_t **out_flips) {
  mp_lock_assert_held(&client->launches->lock);
  mp_status_t status = mp_faults_meet_launch(client->faults, launch, out_num_flips, out_flips);
  faulty_tell_model(client);
  return status;
}
