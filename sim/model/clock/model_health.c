// Slow devices and links: what the health of the pod makes of launches and transfers.
#include "sim/base/alloc.h"
#include "sim/base/hash.h"
#include "sim/model/clock/model_impl.h"

void mp_model_take_health(mp_model_t *model, mp_entry_t *entry) {
  mp_health_release(model->health);
  model->health = entry->health;
  entry->health = NULL;
}

// ---- Networks ----

// Frees the replays that know a network.
static void model_health_forget(mp_model_t *model, uint64_t id) {
  for (mp_model_program_t *p = model->programs.first; p != NULL; p = p->next) {
    for (mp_variant_t **at = &p->variants; *at != NULL;) {
      mp_variant_t *variant = *at;
      if (variant->id != id) {
        at = &variant->next;
        continue;
      }
      *at = variant->next;
      if (p->current == variant->replay) p->current = p->replay;
      mp_replay_release(variant->replay);
      mp_free(variant);
    }
  }
}

mp_status_t mp_model_network_now(mp_model_t *model, mp_network_t **out_network) {
  const mp_health_t *health = model->health;
  *out_network = model->network;
  if (health == NULL || health->num_changes == 0) return NULL;
  for (uint32_t i = 0; i < MP_MODEL_NETWORKS; ++i) {
    if (model->changed[i].id != health->changes_id) continue;
    *out_network = model->changed[i].network;
    return NULL;
  }
  mp_network_t *network = NULL;
  MP_RETURN_IF_ERROR(
      mp_network_create_changed(model->network, health->num_changes, health->changes, &network));
  mp_changed_network_t *changed = &model->changed[model->next_changed++ % MP_MODEL_NETWORKS];
  if (changed->network != NULL) model_health_forget(model, changed->id);
  mp_network_release(changed->network);
  *changed = (mp_changed_network_t){health->changes_id, network};
  *out_network = network;
  return NULL;
}

// ---- Launches ----

static mp_status_t model_health_choose_replay(mp_model_program_t *program) {
  mp_model_t *model = program->model;
  mp_network_t *network;
  MP_RETURN_IF_ERROR(mp_model_network_now(model, &network));
  program->current = program->replay;
  if (network == model->network) return NULL;
  const uint64_t id = model->health->changes_id;
  mp_variant_t *variant = program->variants;
  while (variant != NULL && variant->id != id) variant = variant->next;
  if (variant == NULL) {
    variant = mp_calloc(1, sizeof(*variant));
    MP_RETURN_IF_NULL(variant);
    variant->id = id;
    mp_status_t status = mp_replay_create(network, program->chip_program, program->num_devices,
                                          program->ids, &variant->replay);
    if (status != NULL) {
      mp_free(variant);
      return status;
    }
    variant->next = program->variants;
    program->variants = variant;
  }
  program->current = variant->replay;
  return NULL;
}

mp_status_t mp_model_apply_health(mp_model_program_t *program, const double **out_slowness,
                                  uint64_t *inout_hash) {
  const mp_health_t *health = program->model->health;
  *out_slowness = NULL;
  program->current = program->replay;
  if (health == NULL) return NULL;
  MP_RETURN_IF_ERROR(model_health_choose_replay(program));
  *inout_hash = mp_hash_u64(*inout_hash, health->id);
  if (health->num_stragglers != 0) *inout_hash = mp_hash_u64(*inout_hash, program->launches);
  if (health->slowness == NULL && health->num_stragglers == 0) return NULL;
  const uint64_t name = mp_hash_bytes(MP_HASH_START, program->name.data, program->name.size);
  for (uint32_t i = 0; i < program->num_devices; ++i) {
    program->slowness[i] =
        mp_health_slowness(health, (uint32_t)program->ids[i], name, program->launches);
  }
  *out_slowness = program->slowness;
  return NULL;
}

// ---- Ends ----

void mp_model_free_health(mp_model_t *model) {
  mp_health_release(model->health);
  for (uint32_t i = 0; i < MP_MODEL_NETWORKS; ++i) mp_network_release(model->changed[i].network);
}
