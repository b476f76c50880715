// What launches and transfers meet.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/model/faults/faults_impl.h"

// A launch that meets the faults one after the other.
typedef struct {
  mp_faults_t *faults;
  const mp_faults_launch_t *launch;
  uint32_t num_flips;
  mp_faults_flip_t *flips;  // room for one per rule; NULL: none so far
} meeting_t;

// ---- Counting ----

// The name of a program is that of the user's function with what it was made by before it:
// "jit_step", "pmap_step".
static bool faults_meet_is_program(mp_str_t name, const char *wanted) {
  if (mp_str_is(name, wanted)) return true;
  const size_t size = strlen(wanted);
  if (name.size <= size || memcmp(name.data + name.size - size, wanted, size) != 0) return false;
  const mp_str_t before = {name.data, name.size - size};
  return mp_str_is(before, "jit_") || mp_str_is(before, "pmap_");
}

// Counts the launch on its devices; 0: it does not count.
static uint64_t faults_meet_count(mp_fault_rule_t *rule, const mp_faults_launch_t *launch) {
  const char *wanted = rule->what.program;
  if (wanted != NULL && !faults_meet_is_program(launch->program->name, wanted)) return 0;
  uint64_t newest = 0;
  for (uint32_t i = 0; i < launch->num_shares; ++i) {
    uint64_t *launches = &rule->launches[launch->ids[launch->logical[i]]];
    *launches += 1;
    if (*launches > newest) newest = *launches;
  }
  return newest;
}

// Whether the fault is in force at this launch, whose number is `step`.
static bool faults_meet_is_on(mp_faults_t *faults, mp_fault_rule_t *rule, uint64_t step) {
  if (step == 0) return rule->is_on;
  const bool is_on = step >= rule->what.step && step <= rule->what.until;
  if (step <= rule->newest) return is_on;
  rule->newest = step;
  faults->is_changed |= is_on != rule->is_on && mp_fault_rule_is_slow(rule);
  rule->is_on = is_on;
  return is_on;
}

// ---- The dead ----

// "jit_step (launch 5): device 3 is dead (faults.yaml:2)", and what needs it.
// Elastic managers know the loss of a slice or host by DATA_LOSS: what was in its memory is gone.
static mp_status_code_t faults_meet_code(mp_pod_fault_kind_t kind) {
  return kind == MP_POD_FAULT_SLICE || kind == MP_POD_FAULT_HOST ? MP_DATA_LOSS : MP_UNAVAILABLE;
}

static mp_status_t faults_meet_dead(const mp_faults_launch_t *launch, const mp_fault_rule_t *rule,
                                    uint64_t step, mp_pod_fault_kind_t kind, const char *name,
                                    const mp_collective_t *user) {
  const char *what = mp_pod_fault_kind_name(kind);
  char number[48] = "";
  if (step != 0) snprintf(number, sizeof(number), " (launch %" PRIu64 ")", step);
  mp_strbuf_t need;
  mp_strbuf_init(&need);
  if (user != NULL) {
    mp_strbuf_printf(&need, "; %s (%s) needs it", user->name,
                     user->location == NULL ? "unknown location" : user->location);
  }
  mp_status_t status =
      mp_status_make(faults_meet_code(kind), "%.*s%s: %s %s is dead (" MP_FAULT_RULE_FORMAT ")%s",
                     MP_STR_ARG(launch->program->name), number, what, name,
                     MP_FAULT_RULE_ARGS(rule), mp_strbuf_text(&need));
  mp_strbuf_deinit(&need);
  return status;
}

// What a fault of devices, of a host or of a slice takes away, as far as a device belongs to it.
static bool faults_meet_takes(const mp_faults_t *faults, const mp_fault_rule_t *rule,
                              uint32_t device, uint64_t step, mp_pod_fault_kind_t *out_kind,
                              uint64_t *out_unit) {
  const mp_pod_fault_t *what = &rule->what;
  const bool is_outage = what->kind == MP_POD_FAULT_OUTAGES;
  *out_kind = is_outage ? mp_fault_outage_kind(what) : what->kind;
  *out_unit = mp_fault_unit(faults->pod, *out_kind, device);
  if (is_outage) return mp_fault_is_out(what, *out_unit, step == 0 ? 1 : step);
  return *out_unit == (what->kind == MP_POD_FAULT_SLICE  ? what->slice
                       : what->kind == MP_POD_FAULT_HOST ? what->host
                                                         : what->device);
}

static mp_status_t faults_meet_dead_device(const meeting_t *meeting, const mp_fault_rule_t *rule,
                                           uint64_t step) {
  const mp_faults_launch_t *launch = meeting->launch;
  char name[24];
  mp_pod_fault_kind_t kind;
  uint64_t unit;
  for (uint32_t i = 0; i < launch->num_devices; ++i) {
    if (!faults_meet_takes(meeting->faults, rule, launch->ids[i], step == 0 ? rule->newest : step,
                           &kind, &unit)) {
      continue;
    }
    snprintf(name, sizeof(name), "%" PRIu64, unit);
    return faults_meet_dead(launch, rule, step, kind, name, NULL);
  }
  return NULL;
}

static mp_status_t faults_meet_dead_link(const meeting_t *meeting, const mp_fault_rule_t *rule,
                                         uint64_t step) {
  const mp_faults_launch_t *launch = meeting->launch;
  if (*launch->users == NULL) {
    MP_RETURN_IF_ERROR(mp_link_users_create(meeting->faults->network, launch->program,
                                            launch->num_devices, launch->ids, launch->users));
  }
  const mp_collective_t *user = mp_link_users_find(*launch->users, rule->link);
  if (user == NULL) return NULL;
  char name[560];
  snprintf(name, sizeof(name), "'%s'", rule->what.link);
  return faults_meet_dead(launch, rule, step, MP_POD_FAULT_LINK, name, user);
}

// ---- Flips ----

static mp_status_t faults_meet_refuse_flip(const mp_faults_launch_t *launch,
                                           const mp_fault_rule_t *rule, const char *key,
                                           uint64_t count, uint64_t got) {
  return mp_status_make(MP_INVALID_ARGUMENT,
                        MP_FAULT_RULE_FORMAT ": key 'flip.%s': %.*s has %" PRIu64
                                             " of them, numbered from 0, got %" PRIu64,
                        MP_FAULT_RULE_ARGS(rule), key, MP_STR_ARG(launch->program->name), count,
                        got);
}

// The number of a result, which the list gives by its number or by the name that JAX gives it.
static mp_status_t faults_meet_find_result(const mp_faults_launch_t *launch,
                                           const mp_fault_rule_t *rule, uint64_t *out_index) {
  const mp_str_t wanted = mp_str(rule->what.flip_result);
  const mp_func_t *main = launch->program->module == NULL ? NULL : launch->program->module->main;
  long long number = 0;
  if (mp_str_parse_i64(wanted, &number) && number >= 0) {
    *out_index = (uint64_t)number;
    return NULL;
  }
  for (uint32_t i = 0; main != NULL && main->result_attrs != NULL && i < main->num_results; ++i) {
    const mp_attr_t *info = mp_attr_dict_get(main->result_attrs[i], MP_ATTR_JAX_RESULT_INFO);
    if (info == NULL || info->kind != MP_KIND_STRING) continue;
    mp_str_t name = info->u.str;
    const bool is_whole = mp_str_equal(name, wanted);
    if (mp_str_starts_with(name, "result")) {
      name = (mp_str_t){name.data + strlen("result"), name.size - strlen("result")};
    }
    if (!is_whole && !mp_str_equal(name, wanted)) continue;
    *out_index = i;
    return NULL;
  }
  return mp_status_make(
      MP_INVALID_ARGUMENT, MP_FAULT_RULE_FORMAT ": key 'flip.result': %.*s has no result '%s'",
      MP_FAULT_RULE_ARGS(rule), MP_STR_ARG(launch->program->name), rule->what.flip_result);
}

static mp_status_t faults_meet_make_flip(const mp_faults_launch_t *launch,
                                         const mp_fault_rule_t *rule, mp_faults_flip_t *flip) {
  const mp_program_t *program = launch->program;
  const mp_pod_fault_t *what = &rule->what;
  const bool is_result = what->flip_result != NULL;
  uint64_t index = what->flip_argument;
  if (is_result) MP_RETURN_IF_ERROR(faults_meet_find_result(launch, rule, &index));
  const uint64_t count = is_result ? program->num_results : program->num_params;
  if (index >= count) {
    return faults_meet_refuse_flip(launch, rule, is_result ? "result" : "argument", count, index);
  }
  const mp_type_t *type = (is_result ? program->results : program->params)[index].type;
  int64_t elements = 0;
  if (!mp_type_is_tensor(type) || !mp_type_num_elements(type, &elements)) elements = 0;
  if (what->flip_element >= (uint64_t)elements) {
    return faults_meet_refuse_flip(launch, rule, "element", (uint64_t)elements, what->flip_element);
  }
  const uint64_t bits = (uint64_t)mp_dtype_bits(type->dtype);
  if (what->flip_bit >= bits) {
    return faults_meet_refuse_flip(launch, rule, "bit", bits, what->flip_bit);
  }
  flip->is_result = is_result;
  flip->index = (uint32_t)index;
  flip->byte = what->flip_element * mp_dtype_size(type->dtype) + what->flip_bit / 8;
  flip->mask = (uint8_t)(1u << what->flip_bit % 8);
  return NULL;
}

static mp_status_t faults_meet_flip(meeting_t *meeting, mp_fault_rule_t *rule) {
  const mp_faults_launch_t *launch = meeting->launch;
  for (uint32_t i = 0; i < launch->num_shares; ++i) {
    if (launch->ids[launch->logical[i]] != rule->what.flip_device) continue;
    mp_faults_flip_t flip = {.logical = launch->logical[i]};
    rule->was_met = true;
    MP_RETURN_IF_ERROR(faults_meet_make_flip(launch, rule, &flip));
    if (meeting->flips == NULL) {
      meeting->flips = mp_calloc(meeting->faults->rules.count, sizeof(flip));
      MP_RETURN_IF_NULL(meeting->flips);
    }
    meeting->flips[meeting->num_flips++] = flip;
  }
  return NULL;
}

// ---- Launches ----

static mp_status_t faults_meet_rule(meeting_t *meeting, mp_fault_rule_t *rule, uint64_t step) {
  switch (rule->what.kind) {
    case MP_POD_FAULT_DEVICE:
    case MP_POD_FAULT_HOST:
    case MP_POD_FAULT_SLICE:
    case MP_POD_FAULT_OUTAGES:
      return rule->what.is_dead ? faults_meet_dead_device(meeting, rule, step) : NULL;
    case MP_POD_FAULT_LINK:
      return rule->what.is_dead ? faults_meet_dead_link(meeting, rule, step) : NULL;
    case MP_POD_FAULT_FLIP:
      return step != 0 ? faults_meet_flip(meeting, rule) : NULL;
    case MP_POD_FAULT_STRAGGLERS:
    case MP_POD_FAULT_KIND_COUNT:
      break;
  }
  return NULL;
}

mp_status_t mp_faults_meet_launch(mp_faults_t *faults, const mp_faults_launch_t *launch,
                                  uint32_t *out_num_flips, mp_faults_flip_t **out_flips) {
  meeting_t meeting = {.faults = faults, .launch = launch};
  mp_status_t status = NULL;
  mp_lock(&faults->lock);
  // All rules count the launch, whatever the first of them says about it.
  for (uint32_t i = 0; i < faults->rules.count; ++i) {
    mp_fault_rule_t *rule = &faults->rules.items[i];
    rule->has_launches = true;
    const uint64_t step = faults_meet_count(rule, launch);
    if (!faults_meet_is_on(faults, rule, step) || status != NULL) continue;
    status = faults_meet_rule(&meeting, rule, step);
  }
  mp_unlock(&faults->lock);
  if (status != NULL) {
    mp_free(meeting.flips);
    return status;
  }
  *out_num_flips = meeting.num_flips;
  *out_flips = meeting.flips;
  return NULL;
}

// ---- Transfers ----

// Whether a fault takes away what is at one end of a transfer: a device, or a host itself.
static bool faults_meet_takes_end(const mp_faults_t *faults, const mp_fault_rule_t *rule,
                                  mp_network_end_t end, mp_pod_fault_kind_t *out_kind,
                                  uint64_t *out_unit) {
  if (!end.is_host) {
    return faults_meet_takes(faults, rule, (uint32_t)end.index, rule->newest, out_kind, out_unit);
  }
  *out_kind = MP_POD_FAULT_HOST;
  *out_unit = (uint64_t)end.index;
  return rule->what.kind == MP_POD_FAULT_HOST && rule->what.host == *out_unit;
}

// What a fault takes away; no name: nothing.
typedef struct {
  mp_pod_fault_kind_t kind;
  char name[560];
} taken_t;

// What the fault takes away of the way of a transfer.
static mp_status_t faults_meet_on_way(mp_faults_t *faults, const mp_fault_rule_t *rule,
                                      mp_network_end_t from, mp_network_end_t to, taken_t *out) {
  uint64_t unit;
  out->name[0] = '\0';
  out->kind = rule->what.kind;
  if (rule->what.kind != MP_POD_FAULT_LINK) {
    if (faults_meet_takes_end(faults, rule, from, &out->kind, &unit) ||
        faults_meet_takes_end(faults, rule, to, &out->kind, &unit)) {
      snprintf(out->name, sizeof(out->name), "%s %" PRIu64, mp_pod_fault_kind_name(out->kind),
               unit);
    }
    return NULL;
  }
  mp_transfer_t transfer;
  MP_RETURN_IF_ERROR(mp_network_message(faults->network, from, to, 1, &transfer));
  for (uint32_t i = 0; i < transfer.num_uses; ++i) {
    if (transfer.uses[i].link != rule->link) continue;
    snprintf(out->name, sizeof(out->name), "link '%s'", rule->what.link);
  }
  return NULL;
}

static mp_status_t faults_meet_transfer(mp_faults_t *faults, const mp_fault_rule_t *rule,
                                        mp_network_end_t from, mp_network_end_t to) {
  taken_t taken;
  if (!rule->is_on || !rule->what.is_dead) return NULL;
  MP_RETURN_IF_ERROR(faults_meet_on_way(faults, rule, from, to, &taken));
  if (taken.name[0] == '\0') return NULL;
  return mp_status_make(faults_meet_code(taken.kind),
                        "%s is dead (" MP_FAULT_RULE_FORMAT "); a transfer from %s %" PRId32
                        " to %s %" PRId32 " needs it",
                        taken.name, MP_FAULT_RULE_ARGS(rule), from.is_host ? "host" : "device",
                        from.index, to.is_host ? "host" : "device", to.index);
}

mp_status_t mp_faults_meet_transfer(mp_faults_t *faults, mp_network_end_t from,
                                    mp_network_end_t to) {
  mp_status_t status = NULL;
  mp_lock(&faults->lock);
  for (uint32_t i = 0; i < faults->rules.count && status == NULL; ++i) {
    status = faults_meet_transfer(faults, &faults->rules.items[i], from, to);
  }
  mp_unlock(&faults->lock);
  return status;
}
