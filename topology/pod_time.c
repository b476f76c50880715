// Reads the settings of the model of time, and the platform's name, from options, or else from the
// description.
#include <inttypes.h>

#include "sim/base/alloc.h"
#include "sim/base/hash.h"
#include "sim/base/os/file.h"
#include "topology/pod_impl.h"
#include "topology/spec_value.h"

static mp_status_t pod_time_refuse(const mp_options_t *options, mp_option_id_t id,
                                   const char *expected, const char *text) {
  return mp_status_make(MP_INVALID_ARGUMENT, "option %s (%s): expected %s, got '%s'",
                        mp_option_info(id)->name, mp_option_source_name(options->source[id]),
                        expected, text);
}

// Reads an option if it is set.
static mp_status_t pod_time_read_option(const mp_options_t *options, mp_option_id_t id,
                                        mp_spec_type_t type, const char *text, void *out_member) {
  if (options->source[id] == MP_SOURCE_DEFAULT) return NULL;
  if (mp_spec_value_parse(type, mp_str(text), out_member)) return NULL;
  return pod_time_refuse(options, id, mp_spec_value_expected(type), text);
}

// Only options set the treatment of values that were not computed.
static mp_status_t pod_time_read_absent(const mp_options_t *options, mp_pod_time_t *time) {
  MP_RETURN_IF_ERROR(pod_time_read_option(options, MP_OPTION_ID_absent, MP_SPEC_ABSENT,
                                          options->absent, &time->absent));
  time->unknown_trip_count = options->unknown_trip_count;
  long long branch = 0;
  if (strcmp(options->unknown_branch, "largest") == 0) {
    branch = MP_BRANCH_LARGEST;
  } else if (strcmp(options->unknown_branch, "smallest") == 0) {
    branch = MP_BRANCH_SMALLEST;
  } else if (!mp_str_parse_i64(mp_str(options->unknown_branch), &branch) || branch < 0 ||
             branch > INT32_MAX) {
    return pod_time_refuse(options, MP_OPTION_ID_unknown_branch,
                           "largest, smallest, or the number of a branch from 0",
                           options->unknown_branch);
  }
  time->unknown_branch = (int32_t)branch;
  return NULL;
}

static const char *pod_time_text(const mp_options_t *options, mp_option_id_t id, const char *option,
                                 const char *described) {
  return options->source[id] == MP_SOURCE_DEFAULT ? described : option;
}

static mp_status_t pod_time_read(const mp_pod_spec_t *spec, const mp_options_t *options,
                                 mp_pod_time_t *out_time) {
  mp_pod_time_t time = {.mode = spec->time_mode,
                        .values = spec->values,
                        .clock = spec->clock,
                        .pace = spec->pace == 0 ? 1 : spec->pace};
  MP_RETURN_IF_ERROR(
      pod_time_read_option(options, MP_OPTION_ID_time, MP_SPEC_MODE, options->time, &time.mode));
  MP_RETURN_IF_ERROR(pod_time_read_option(options, MP_OPTION_ID_values, MP_SPEC_VALUES,
                                          options->values, &time.values));
  MP_RETURN_IF_ERROR(pod_time_read_option(options, MP_OPTION_ID_clock, MP_SPEC_CLOCK,
                                          options->clock, &time.clock));
  MP_RETURN_IF_ERROR(
      pod_time_read_option(options, MP_OPTION_ID_pace, MP_SPEC_FACTOR, options->pace, &time.pace));
  time.algorithms =
      pod_time_text(options, MP_OPTION_ID_algorithms, options->algorithms, spec->algorithms);
  time.calibration =
      pod_time_text(options, MP_OPTION_ID_calibration, options->calibration, spec->calibration);
  time.chip_without = options->chip_without;
  MP_RETURN_IF_ERROR(pod_time_read_absent(options, &time));
  *out_time = time;
  return NULL;
}

mp_status_t mp_pod_read_time(const mp_pod_t *pod, const mp_options_t *options,
                             mp_pod_time_t *out_time) {
  return pod_time_read(&pod->spec, options, out_time);
}

// The platform of a chip kind: "TPU v5 lite", "NVIDIA H100 80GB HBM3", "AMD Instinct MI300X".
static mp_platform_t pod_time_platform_of(const char *kind) {
  static const struct {
    const char *prefix;
    mp_platform_t platform;
  } rows[] = {{"TPU ", MP_PLATFORM_TPU},
              {"TPU7x", MP_PLATFORM_TPU},
              {"NVIDIA ", MP_PLATFORM_GPU},
              {"AMD ", MP_PLATFORM_GPU}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    if (mp_str_starts_with(mp_str(kind), rows[i].prefix)) return rows[i].platform;
  }
  return MP_PLATFORM_MINIPOD;
}

static mp_status_t pod_time_read_platform(const mp_pod_spec_t *spec, const mp_options_t *options,
                                          mp_platform_t *out_platform) {
  mp_platform_t platform = spec->platform;
  if (options != NULL) {
    MP_RETURN_IF_ERROR(pod_time_read_option(options, MP_OPTION_ID_platform, MP_SPEC_PLATFORM,
                                            options->platform, &platform));
  }
  *out_platform = platform == MP_PLATFORM_AUTO ? pod_time_platform_of(spec->kind) : platform;
  return NULL;
}

mp_status_t mp_pod_read_platform(const mp_pod_t *pod, const mp_options_t *options,
                                 mp_platform_t *out_platform) {
  return pod_time_read_platform(&pod->spec, options, out_platform);
}

bool mp_pod_is_tpu(const mp_pod_t *pod) {
  return pod_time_platform_of(pod->spec.kind) == MP_PLATFORM_TPU;
}

// A calibration is compared by its content, because the file may have another name in each process.
// A file that cannot be read fails later, with its own message.
static void pod_time_write_calibration(const char *path, mp_strbuf_t *out_text) {
  char *text = NULL;
  size_t size = 0;
  if (path[0] == '\0') {
    mp_strbuf_puts(out_text, "none");
    return;
  }
  mp_status_t status = mp_file_read("calibration", path, &text, &size);
  if (status != NULL) {
    mp_strbuf_puts(out_text, "?");
  } else {
    mp_strbuf_printf(out_text, "a file of fingerprint %016" PRIx64, mp_hash_fnv1a(text, size));
  }
  mp_status_release(status);
  mp_free(text);
}

mp_status_t mp_pod_write_settings(const mp_pod_spec_t *spec, const mp_options_t *options,
                                  uint64_t faults, const char *libtpu_flags,
                                  mp_strbuf_t *out_text) {
  mp_pod_time_t time;
  mp_platform_t platform;
  MP_RETURN_IF_ERROR(pod_time_read(spec, options, &time));
  MP_RETURN_IF_ERROR(pod_time_read_platform(spec, options, &platform));
  mp_strbuf_printf(out_text, "option platform\t%s\n", mp_platform_name(platform));
  mp_strbuf_printf(out_text, "option rewrites\t%d\n", (int)options->rewrites);
  mp_strbuf_printf(out_text, "option time\t%s\n", mp_time_mode_name(time.mode));
  mp_strbuf_printf(out_text, "option values\t%s\n", mp_values_mode_name(time.values));
  mp_strbuf_printf(out_text,
                   "option absent\t%s\noption unknown_branch\t%s\n"
                   "option unknown_trip_count\t%" PRId64 "\n",
                   mp_absent_mode_name(time.absent), options->unknown_branch,
                   time.unknown_trip_count);
  mp_strbuf_printf(out_text, "option clock\t%s\n", mp_clock_mode_name(time.clock));
  mp_strbuf_puts(out_text, "option pace\t");
  mp_strbuf_put_double(out_text, time.pace);
  mp_strbuf_printf(out_text, "\noption algorithms\t%s\noption chip_without\t%s\n",
                   time.algorithms[0] == '\0' ? "none" : time.algorithms,
                   time.chip_without[0] == '\0' ? "none" : time.chip_without);
  mp_strbuf_puts(out_text, "option calibration\t");
  pod_time_write_calibration(time.calibration, out_text);
  // Every process keeps the times of all devices, for the program as it has compiled it.
  if (time.mode != MP_TIME_OFF) {
    mp_strbuf_printf(out_text, "\noption fuse\t%d", (int)options->fuse);
    const bool is_tpu = pod_time_platform_of(spec->kind) == MP_PLATFORM_TPU;
    mp_strbuf_printf(out_text, "\nLIBTPU_INIT_ARGS\t%s",
                     is_tpu && libtpu_flags != NULL && libtpu_flags[0] != '\0'
                         ? libtpu_flags
                         : "no flag with an effect");
  }
  mp_strbuf_puts(out_text, "\nfaults that it begins with\t");
  if (faults == 0 || faults == UINT64_MAX) {
    mp_strbuf_puts(out_text, faults == 0 ? "none" : "?");
  } else {
    mp_strbuf_printf(out_text, "a list of fingerprint %016" PRIx64, faults);
  }
  mp_strbuf_putc(out_text, '\n');
  return mp_strbuf_status(out_text);
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
