// The names are those of XLA's pjrt_c_api_tpu_constants.h.

#include "sim/readers/options/libtpu_options.h"

static const struct {
  const char *name;
  mp_value_type_t type;
} g_libtpu_options[] = {
    {"ml_framework_name", MP_VALUE_STRING},
    {"ml_framework_version", MP_VALUE_STRING},
    {"max_inflight_computations", MP_VALUE_INT64},
    {"use_tf_pjrt_client", MP_VALUE_BOOL},
    {"use_global_tpu_system", MP_VALUE_BOOL},
    {"tpu_allow_async_allocations", MP_VALUE_BOOL},
    {"executable_compatibility_check_on_deserialization", MP_VALUE_BOOL},
    {"throttle_low_priority_host_transfers", MP_VALUE_BOOL},
    {"pinned_host_allocation_mode", MP_VALUE_STRING},
    {"premapped_buffer_size", MP_VALUE_INT64},
    {"maximum_premapped_buffer_size_for_transfers_in_bytes", MP_VALUE_INT64},
    {"num_premapped_partitions", MP_VALUE_INT64},
    {"skip_megascale_pjrt_client", MP_VALUE_BOOL},
};
enum { NUM_LIBTPU_OPTIONS = sizeof(g_libtpu_options) / sizeof(g_libtpu_options[0]) };
_Static_assert(NUM_LIBTPU_OPTIONS <= 32, "mp_libtpu_options_t has a bit for each");

static const char *libtpu_options_type_name(mp_value_type_t type) {
  if (type == MP_VALUE_STRING) return "a string";
  return type == MP_VALUE_INT64 ? "an integer" : "a bool";
}

// Clients in languages without bools pass integers.
static bool libtpu_options_fits(mp_value_type_t given, mp_value_type_t type) {
  return given == type || (type == MP_VALUE_BOOL && given == MP_VALUE_INT64);
}

// The number of the option; NUM_LIBTPU_OPTIONS: it is not libtpu's.
static size_t libtpu_options_find(mp_str_t name) {
  size_t i = 0;
  while (i < NUM_LIBTPU_OPTIONS && !mp_str_is(name, g_libtpu_options[i].name)) ++i;
  return i;
}

mp_status_t mp_libtpu_options_take(mp_named_value_t *values, size_t *inout_count,
                                   mp_libtpu_options_t *out_options) {
  size_t kept = 0;
  mp_libtpu_options_t options = 0;
  for (size_t i = 0; i < *inout_count; ++i) {
    const size_t found = libtpu_options_find(values[i].name);
    if (found == NUM_LIBTPU_OPTIONS) {
      values[kept++] = values[i];
      continue;
    }
    const mp_value_type_t type = g_libtpu_options[found].type;
    if (!libtpu_options_fits(values[i].type, type)) {
      return mp_status_make(MP_INVALID_ARGUMENT, "create option '%s' of libtpu: expected %s",
                            g_libtpu_options[found].name, libtpu_options_type_name(type));
    }
    options |= UINT32_C(1) << found;
  }
  *inout_count = kept;
  *out_options = options;
  return NULL;
}

mp_status_t mp_libtpu_options_check(mp_libtpu_options_t options, bool is_tpu, const char *pod,
                                    const char *kind) {
  for (size_t i = 0; i < NUM_LIBTPU_OPTIONS; ++i) {
    if ((options >> i & 1) == 0) continue;
    const char *name = g_libtpu_options[i].name;
    if (!is_tpu) {
      return mp_status_make(MP_INVALID_ARGUMENT,
                            "create option '%s' is libtpu's, and the pod '%s' has no TPUs, but "
                            "devices of kind '%s'",
                            name, pod, kind);
    }
    mp_log(MP_LOG_INFO, "create option %s of libtpu is known but has no effect here", name);
  }
  return NULL;
}

uint64_t mp_libtpu_scoped_vmem(mp_str_t flags) {
  enum { KIB = 1024 };
  uint64_t bytes = 0;
  while (flags.size != 0) {
    long long kib = 0;
    const mp_flag_t flag = mp_str_cut_flag(&flags);
    if (!mp_str_is(flag.name, "xla_tpu_scoped_vmem_limit_kib")) continue;
    if (mp_str_parse_i64(flag.value, &kib) && kib > 0 && kib < INT32_MAX) {
      bytes = (uint64_t)kib * KIB;
    }
  }
  return bytes;
}
