// The list: what was given, checked against the pod, and the health that follows from it.
#include "sim/model/faults/faults.h"

#include <inttypes.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/hash.h"
#include "sim/base/log.h"
#include "sim/model/faults/faults_impl.h"
#include "sim/model/network/algorithms/network_options.h"
#include "topology/faults/fault_value.h"
#include "topology/spec.h"

// ---- Ending ----

static void faults_drop_from(mp_faults_t *faults, uint32_t first) {
  while (faults->rules.count > first) mp_free(faults->rules.items[--faults->rules.count].launches);
}

// A flip that no launch has met has changed nothing, which the user has to know. Only the end can
// show it: until then the launch may come. A pod that was not used since is not the one that was
// meant: faults are given to all that live, also to those that something still holds.
static void faults_tell_of_flip(const mp_faults_t *faults, const mp_fault_rule_t *rule) {
  const mp_pod_info_t *info = mp_pod_info(faults->pod);
  const mp_pod_fault_t *what = &rule->what;
  if (what->kind != MP_POD_FAULT_FLIP || rule->was_met || !rule->has_launches) return;
  if (mp_pod_device(faults->pod, (int32_t)what->flip_device)->process_index !=
      info->process_index) {
    return;  // another process knows
  }
  mp_log(MP_LOG_WARNING,
         MP_FAULT_RULE_FORMAT ": no bit was flipped: device %" PRIu64 " had %" PRIu64
                              " launches of %s (the most of any device: %" PRIu64
                              "), the flip is for number %" PRIu64,
         MP_FAULT_RULE_ARGS(rule), what->flip_device, rule->launches[what->flip_device],
         what->program, rule->newest, what->step);
}

static void faults_tell_of_flips(const mp_faults_t *faults) {
  for (uint32_t i = 0; i < faults->rules.count; ++i) {
    faults_tell_of_flip(faults, &faults->rules.items[i]);
  }
}

void mp_faults_release(mp_faults_t *faults) {
  if (faults == NULL) return;
  faults_tell_of_flips(faults);
  faults_drop_from(faults, 0);
  MP_ARRAY_FREE(&faults->rules);
  mp_network_release(faults->network);
  mp_arena_release(faults->arena);
  mp_pod_release(faults->pod);
  mp_lock_deinit(&faults->lock);
  mp_free(faults);
}

// Makes the network if there is none. The caller holds the lock.
static mp_status_t faults_need_network(mp_faults_t *faults) {
  mp_lock_assert_held(&faults->lock);
  return faults->network != NULL
             ? NULL
             : mp_network_create(faults->pod, &faults->algorithms, &faults->network);
}

bool mp_fault_rule_is_slow(const mp_fault_rule_t *rule) {
  return rule->what.kind != MP_POD_FAULT_FLIP && !rule->what.is_dead;
}

// ---- Adding ----

static mp_status_t faults_check_device(const mp_faults_t *faults, const mp_fault_rule_t *rule,
                                       uint64_t device) {
  const int32_t count = mp_pod_info(faults->pod)->num_devices;
  if (device < (uint64_t)count) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT,
                        MP_FAULT_RULE_FORMAT ": key 'device': expected 0 to %d, got %llu",
                        MP_FAULT_RULE_ARGS(rule), count - 1, (unsigned long long)device);
}

static mp_status_t faults_check_unit(const mp_faults_t *faults, const mp_fault_rule_t *rule,
                                     uint64_t unit) {
  const int32_t count = mp_pod_info(faults->pod)->num_devices;
  uint64_t last = 0;
  for (int32_t i = 0; i < count; ++i) {
    const uint64_t has = mp_fault_unit(faults->pod, rule->what.kind, (uint32_t)i);
    if (has > last) last = has;
  }
  if (unit <= last) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT,
                        MP_FAULT_RULE_FORMAT ": key '%s': expected 0 to %" PRIu64 ", got %" PRIu64,
                        MP_FAULT_RULE_ARGS(rule), mp_pod_fault_kind_name(rule->what.kind), last,
                        unit);
}

static mp_status_t faults_refuse_link(const mp_faults_t *faults, const mp_fault_rule_t *rule) {
  const uint32_t count = mp_network_num_links(faults->network);
  const char **names = mp_calloc(count + 1, sizeof(*names));
  MP_RETURN_IF_NULL(names);
  for (uint32_t i = 0; i < count; ++i) names[i] = mp_network_link(faults->network, i)->name;
  const char *nearest = mp_str_nearest(mp_str(rule->what.link), names, count);
  const char *shown = nearest != NULL ? nearest : count != 0 ? names[0] : "";
  mp_status_t status = mp_status_make(
      MP_INVALID_ARGUMENT, MP_FAULT_RULE_FORMAT ": key 'link': the pod has no link '%s'; %s '%s'%s",
      MP_FAULT_RULE_ARGS(rule), rule->what.link,
      nearest != NULL ? "did you mean" : "its links have names such as", shown,
      nearest != NULL ? "?" : "");
  mp_free(names);
  return status;
}

static mp_status_t faults_check(mp_faults_t *faults, mp_fault_rule_t *rule) {
  if (mp_fault_rule_is_slow(rule) && !faults->has_times) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          MP_FAULT_RULE_FORMAT
                          ": what is slow changes virtual times alone, which need the option time: "
                          "model (MINIPOD_TIME=model)",
                          MP_FAULT_RULE_ARGS(rule));
  }
  switch (rule->what.kind) {
    case MP_POD_FAULT_DEVICE:
      return faults_check_device(faults, rule, rule->what.device);
    case MP_POD_FAULT_FLIP:
      if (faults->has_values) return faults_check_device(faults, rule, rule->what.flip_device);
      return mp_status_make(MP_INVALID_ARGUMENT,
                            MP_FAULT_RULE_FORMAT
                            ": with the option values: shapes there are no bits to flip",
                            MP_FAULT_RULE_ARGS(rule));
    case MP_POD_FAULT_LINK:
      MP_RETURN_IF_ERROR(faults_need_network(faults));
      if (mp_network_find_link(faults->network, rule->what.link, &rule->link)) return NULL;
      return faults_refuse_link(faults, rule);
    case MP_POD_FAULT_HOST:
      return faults_check_unit(faults, rule, rule->what.host);
    case MP_POD_FAULT_SLICE:
      return faults_check_unit(faults, rule, rule->what.slice);
    case MP_POD_FAULT_OUTAGES:
    case MP_POD_FAULT_STRAGGLERS:
    case MP_POD_FAULT_KIND_COUNT:
      break;
  }
  return NULL;
}

static mp_status_t faults_add_rule(mp_faults_t *faults, const mp_pod_fault_list_t *list,
                                   uint32_t i) {
  const size_t count = (size_t)mp_pod_info(faults->pod)->num_devices;
  mp_fault_rule_t rule = {.what = list->items[i], .origin = list->origin};
  MP_RETURN_IF_ERROR(faults_check(faults, &rule));
  rule.launches = mp_calloc(count, sizeof(*rule.launches));
  MP_RETURN_IF_NULL(rule.launches);
  rule.is_on = rule.what.step == 1 && rule.what.program == NULL;
  mp_status_t status = MP_ARRAY_PUSH(NULL, &faults->rules, rule);
  if (status != NULL) mp_free(rule.launches);
  return status;
}

static mp_status_t faults_add_list(mp_faults_t *faults, const mp_pod_fault_list_t *list) {
  mp_status_t status = NULL;
  for (uint32_t i = 0; i < list->count && status == NULL; ++i) {
    status = faults_add_rule(faults, list, i);
  }
  faults->is_changed = true;
  return status;
}

mp_status_t mp_faults_add(mp_faults_t *faults, const char *origin, mp_str_t text) {
  mp_pod_fault_list_t list;
  mp_lock(&faults->lock);
  const uint32_t before = faults->rules.count;
  mp_status_t status = mp_pod_fault_list_read(faults->arena, origin, text, false, &list);
  if (status == NULL) status = faults_add_list(faults, &list);
  if (status != NULL) faults_drop_from(faults, before);
  mp_unlock(&faults->lock);
  return status;
}

// ---- Making ----

// A list in the option itself begins as YAML does, unlike the name of a file.
static bool faults_is_list(const char *option) {
  return option[0] == '[' || option[0] == '{' || (option[0] == '-' && option[1] == ' ');
}

// The list of the description; empty where no file describes the pod.
static mp_status_t faults_read_described(mp_arena_t *arena, const mp_options_t *options,
                                         mp_pod_fault_list_t *out_list) {
  char path[MP_SPEC_MAX_PATH];
  *out_list = (mp_pod_fault_list_t){0};
  if (!mp_spec_file_of(mp_str(options->topology), path, sizeof(path))) return NULL;
  return mp_pod_fault_list_read_file(arena, path, true, out_list);
}

// The list of the option; empty where it is not given.
static mp_status_t faults_read_option(mp_arena_t *arena, const mp_options_t *options,
                                      mp_pod_fault_list_t *out_list) {
  *out_list = (mp_pod_fault_list_t){0};
  if (options->faults[0] == '\0') return NULL;
  if (!faults_is_list(options->faults)) {
    return mp_pod_fault_list_read_file(arena, options->faults, false, out_list);
  }
  return mp_pod_fault_list_read(arena, "option faults", mp_str(options->faults), false, out_list);
}

static mp_status_t faults_add_options(mp_faults_t *faults, const mp_options_t *options) {
  mp_pod_fault_list_t list;
  MP_RETURN_IF_ERROR(faults_read_described(faults->arena, options, &list));
  MP_RETURN_IF_ERROR(faults_add_list(faults, &list));
  MP_RETURN_IF_ERROR(faults_read_option(faults->arena, options, &list));
  return faults_add_list(faults, &list);
}

static uint64_t faults_hash_bytes(uint64_t hash, const void *member, size_t size) {
  return mp_hash_bytes(hash, member, size);
}

static uint64_t faults_hash_text(uint64_t hash, const void *member, size_t size) {
  (void)size;
  const char *text = *(const char *const *)member;
  return text == NULL ? mp_hash_u64(hash, 0) : mp_hash_bytes(hash, text, strlen(text) + 1);
}

static uint64_t faults_hash_list(uint64_t hash, const mp_pod_fault_list_t *list) {
  for (uint32_t i = 0; i < list->count; ++i) {
    const mp_pod_fault_t *fault = &list->items[i];
    hash = mp_hash_u64(hash, (uint64_t)fault->kind + 1);
#define FAULTS_HASH(member, ...) \
  hash = _Generic(fault->member, const char *: faults_hash_text,                        \
                  default: faults_hash_bytes)(hash, &fault->member, sizeof(fault->member));
    MP_POD_FAULT_KEYS(FAULTS_HASH)
#undef FAULTS_HASH
  }
  return hash;
}

mp_status_t mp_faults_fingerprint(const mp_options_t *options, uint64_t *out_fingerprint) {
  mp_arena_t *arena = NULL;
  mp_pod_fault_list_t described, given;
  MP_RETURN_IF_ERROR(mp_arena_create(&arena));
  mp_status_t status = faults_read_described(arena, options, &described);
  if (status == NULL) status = faults_read_option(arena, options, &given);
  if (status == NULL) {
    const bool is_any = described.count + given.count != 0;
    const uint64_t hash = faults_hash_list(faults_hash_list(MP_HASH_START, &described), &given);
    *out_fingerprint = is_any ? hash : 0;
  }
  mp_arena_release(arena);
  return status;
}

static mp_status_t faults_make(mp_faults_t *faults, const mp_options_t *options) {
  MP_RETURN_IF_ERROR(mp_arena_create(&faults->arena));
  mp_pod_time_t time;
  MP_RETURN_IF_ERROR(mp_pod_read_time(faults->pod, options, &time));
  faults->has_times = time.mode != MP_TIME_OFF;
  faults->has_values = time.values == MP_VALUES_MODE_REAL;
  MP_RETURN_IF_ERROR(
      mp_pod_blame_time(faults->pod, options, MP_OPTION_ID_algorithms,
                        mp_network_options_read(mp_str(time.algorithms), &faults->algorithms)));
  // It has no other users yet; the code that adds a rule asserts the lock all the same.
  mp_lock(&faults->lock);
  mp_status_t status = faults_add_options(faults, options);
  mp_unlock(&faults->lock);
  return status;
}

mp_status_t mp_faults_create(mp_pod_t *pod, const mp_options_t *options, mp_faults_t **out_faults) {
  mp_faults_t *faults = mp_calloc(1, sizeof(*faults));
  MP_RETURN_IF_NULL(faults);
  mp_lock_init(&faults->lock, MP_LOCK_FAULTS);
  faults->pod = mp_pod_retain(pod);
  mp_status_t status = faults_make(faults, options);
  if (status != NULL) {
    mp_faults_release(faults);
    return status;
  }
  *out_faults = faults;
  return NULL;
}

void mp_faults_clear(mp_faults_t *faults) {
  mp_lock(&faults->lock);
  faults_tell_of_flips(faults);
  faults_drop_from(faults, 0);
  mp_arena_reset(faults->arena);
  faults->is_changed = true;
  mp_unlock(&faults->lock);
}

uint32_t mp_faults_count(mp_faults_t *faults) {
  mp_lock(&faults->lock);
  const uint32_t count = faults->rules.count;
  mp_unlock(&faults->lock);
  return count;
}

// ---- Health ----

// A health under construction; arrays for all that the rules may say.
typedef struct {
  mp_health_t health;
  double *slowness;
  mp_network_change_t *changes;
  mp_stragglers_t *stragglers;
} sick_t;

static void faults_add_change(sick_t *sick, const mp_fault_rule_t *rule) {
  uint32_t i = 0;
  while (i < sick->health.num_changes && sick->changes[i].link != rule->link) ++i;
  if (i == sick->health.num_changes) {
    sick->changes[i] = (mp_network_change_t){.link = rule->link, .bandwidth = 1};
    sick->health.num_changes += 1;
  }
  const mp_pod_fault_t *what = &rule->what;
  mp_network_change_add(&sick->changes[i], what->bandwidth, what->loss, what->latency);
}

static void faults_add_to_health(sick_t *sick, const mp_fault_rule_t *rule) {
  const mp_pod_fault_t *what = &rule->what;
  if (what->kind == MP_POD_FAULT_LINK) {
    faults_add_change(sick, rule);
  } else if (what->kind == MP_POD_FAULT_STRAGGLERS) {
    sick->stragglers[sick->health.num_stragglers++] =
        (mp_stragglers_t){what->seed, what->spread, what->share};
  } else {
    for (uint32_t i = 0; i < sick->health.num_devices && sick->health.slowness == NULL; ++i)
      sick->slowness[i] = 1;
    sick->health.slowness = sick->slowness;
    sick->slowness[what->device] *= what->slow;
  }
}

static mp_status_t faults_make_health(const mp_faults_t *faults, mp_health_t **out_health) {
  const uint32_t rules = faults->rules.count;
  const uint32_t devices = (uint32_t)mp_pod_info(faults->pod)->num_devices;
  sick_t sick = {.health.num_devices = devices,
                 .slowness = mp_calloc(devices, sizeof(*sick.slowness)),
                 .changes = mp_calloc(rules + 1, sizeof(*sick.changes)),
                 .stragglers = mp_calloc(rules + 1, sizeof(*sick.stragglers))};
  mp_status_t status = NULL;
  bool is_sick = false;
  if (sick.slowness == NULL || sick.changes == NULL || sick.stragglers == NULL) {
    status = mp_status_out_of_memory();
  }
  for (uint32_t i = 0; i < rules && status == NULL; ++i) {
    const mp_fault_rule_t *rule = &faults->rules.items[i];
    if (!rule->is_on || !mp_fault_rule_is_slow(rule)) continue;
    is_sick = true;
    faults_add_to_health(&sick, rule);
  }
  sick.health.changes = sick.changes;
  sick.health.stragglers = sick.stragglers;
  if (status == NULL && is_sick) status = mp_health_create(&sick.health, out_health);
  mp_free(sick.slowness);
  mp_free(sick.changes);
  mp_free(sick.stragglers);
  return status;
}

bool mp_faults_take_health(mp_faults_t *faults, mp_health_t **out_health) {
  *out_health = NULL;
  mp_lock(&faults->lock);
  bool is_taken = faults->has_times && faults->is_changed;
  if (is_taken) {
    mp_status_t status = faults_make_health(faults, out_health);
    is_taken = status == NULL;  // otherwise the next launch tries again
    mp_status_ignore(status);
  }
  if (is_taken) faults->is_changed = false;
  mp_unlock(&faults->lock);
  return is_taken;
}
