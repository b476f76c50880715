#include "pjrt/package/pjrt_describe.h"

#include <stdio.h>

#include "pjrt/pjrt_objects.h"
#include "sim/runtime/client.h"

static void pjrt_describe_write(const mp_pod_t *pod, const mp_pod_time_t *time,
                                minipod_described_t *out_described) {
  const mp_pod_info_t *info = mp_pod_info(pod);
  snprintf(out_described->name, sizeof(out_described->name), "%s", info->name);
  snprintf(out_described->kind, sizeof(out_described->kind), "%s", info->kind);
  out_described->is_tpu = mp_pod_is_tpu(pod);
  out_described->num_hosts = info->num_hosts;
  out_described->num_chips = info->num_slices * info->chips_per_slice;
  out_described->cores_per_chip = info->cores_per_chip;
  out_described->is_timed = time->mode != MP_TIME_OFF;
  for (int32_t d = 0; d < 3; ++d) out_described->shape[d] = d < info->num_dims ? info->shape[d] : 1;
  out_described->memory = mp_pod_device(pod, 0)->capacity[MP_MEMORY_DEVICE];
}

// Options with the level of messages at `off`: the client will print the same warnings.
static mp_status_t pjrt_describe_read_options(mp_options_t **out_options) {
  const mp_named_value_t silent = {
      .name = MP_STR("log_level"), .type = MP_VALUE_STRING, .string_value = MP_STR("off")};
  return mp_options_create(&silent, 1, out_options);
}

const char *minipod_describe(minipod_described_t *out_described) {
  if (out_described == NULL || out_described->struct_size < sizeof(*out_described)) {
    return mp_pjrt_text(
        mp_status_make(MP_INVALID_ARGUMENT, "minipod_describe: the package is not this library's"));
  }
  const mp_log_level_t level = mp_log_level();
  mp_options_t *options = NULL;
  mp_pod_t *pod = NULL;
  mp_status_t status = pjrt_describe_read_options(&options);
  if (status == NULL) status = mp_pod_create(options, &pod);
  mp_pod_time_t time = {0};
  if (status == NULL) status = mp_pod_read_time(pod, options, &time);
  if (status == NULL) status = mp_client_check_options(pod, options);
  if (status == NULL) pjrt_describe_write(pod, &time, out_described);
  mp_pod_release(pod);
  mp_options_release(options);
  mp_log_set_level(level);
  return mp_pjrt_text(status);
}
