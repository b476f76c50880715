// What is said about the model of time: by options, or else by the description.
#include "topology/pod_internal.h"
#include "topology/spec_value.h"

// Sets what an option says, if somebody has given it.
static mp_status_t pod_time_read_option(const mp_options_t *options, mp_option_id_t id,
                                        mp_spec_type_t type, const char *text, void *out_member) {
  if (options->source[id] == MP_SOURCE_DEFAULT) return NULL;
  if (mp_spec_value_parse(type, mp_str(text), out_member)) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT, "option %s (%s): expected %s, got '%s'",
                        mp_option_info(id)->name, mp_option_source_name(options->source[id]),
                        mp_spec_value_expected(type), text);
}

static const char *pod_time_text(const mp_options_t *options, mp_option_id_t id, const char *option,
                                 const char *described) {
  return options->source[id] == MP_SOURCE_DEFAULT ? described : option;
}

mp_status_t mp_pod_read_time(const mp_pod_t *pod, const mp_options_t *options,
                             mp_pod_time_t *out_time) {
  const mp_pod_spec_t *spec = &pod->spec;
  mp_pod_time_t time = {
      .mode = spec->time_mode, .values = spec->values, .pace = spec->pace == 0 ? 1 : spec->pace};
  MP_RETURN_IF_ERROR(
      pod_time_read_option(options, MP_OPTION_ID_time, MP_SPEC_MODE, options->time, &time.mode));
  MP_RETURN_IF_ERROR(pod_time_read_option(options, MP_OPTION_ID_values, MP_SPEC_VALUES,
                                          options->values, &time.values));
  MP_RETURN_IF_ERROR(
      pod_time_read_option(options, MP_OPTION_ID_pace, MP_SPEC_FACTOR, options->pace, &time.pace));
  time.algorithms =
      pod_time_text(options, MP_OPTION_ID_algorithms, options->algorithms, spec->algorithms);
  time.calibration =
      pod_time_text(options, MP_OPTION_ID_calibration, options->calibration, spec->calibration);
  *out_time = time;
  return NULL;
}

mp_status_t mp_pod_blame_time(const mp_pod_t *pod, const mp_options_t *options, mp_option_id_t id,
                              mp_status_t status) {
  const char *name = mp_option_info(id)->name;
  if (options->source[id] != MP_SOURCE_DEFAULT) {
    return mp_status_annotate(status, "option %s (%s)", name,
                              mp_option_source_name(options->source[id]));
  }
  const mp_pod_spec_t *spec = &pod->spec;
  const int key = mp_spec_key_id(mp_str(name));
  if (spec->file[0] == '\0' || spec->given[key].layer != MP_LAYER_FILE) {
    return mp_status_annotate(status, "topology \"%s\": key '%s'", pod->name, name);
  }
  return mp_status_annotate(status, "%s:%d: key '%s'", spec->file, spec->given[key].line, name);
}
