#include "sim/model/report/events/timeline_scope.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/alloc.h"

// ---- The option ----

static void timeline_scope_trace(mp_timeline_scope_t *scope, uint64_t first, uint64_t last) {
  for (uint64_t i = first; i <= last; ++i) {
    scope->num_traced += !scope->devices[i];
    scope->devices[i] = true;
  }
}

// The number at `*text`, which is moved behind it. False: there is none.
static bool timeline_scope_number(const char **text, uint64_t *out_number) {
  if (!isdigit((unsigned char)**text)) return false;
  char *end;
  *out_number = strtoull(*text, &end, 10);
  *text = end;
  return true;
}

// Traces the devices of one item, "3" or "8-15".
static mp_status_t timeline_scope_read_item(mp_timeline_scope_t *scope, const char *option,
                                            const char **text) {
  uint64_t first = 0, last = 0;
  bool is_good = timeline_scope_number(text, &first);
  last = first;
  if (is_good && **text == '-') {
    *text += 1;
    is_good = timeline_scope_number(text, &last) && first <= last;
  }
  if (!is_good || (**text != '\0' && **text != ',')) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "option trace_devices: expected auto, all or ids of devices such as "
                          "0,8-15; got '%.200s'",
                          option);
  }
  if (last >= scope->num_devices) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "option trace_devices: there is no device %" PRIu64
                          ", the pod has %" PRIu32,
                          last, scope->num_devices);
  }
  timeline_scope_trace(scope, first, last);
  return NULL;
}

static mp_status_t timeline_scope_read_list(mp_timeline_scope_t *scope, const char *option) {
  const char *text = option;
  while (true) {
    MP_RETURN_IF_ERROR(timeline_scope_read_item(scope, option, &text));
    if (*text == '\0') return NULL;
    text += 1;
  }
}

static mp_status_t timeline_scope_read(mp_timeline_scope_t *scope, const mp_pod_info_t *info,
                                       const char *option) {
  scope->is_by_default = option[0] == '\0' || strcmp(option, "auto") == 0;
  const bool is_all = strcmp(option, "all") == 0;
  if (!scope->is_by_default && !is_all) return timeline_scope_read_list(scope, option);
  if (is_all || scope->num_devices <= MP_TIMELINE_ALL) {
    timeline_scope_trace(scope, 0, scope->num_devices - 1);
    return NULL;
  }
  const uint32_t first = (uint32_t)info->first_local_device;
  const uint32_t local = (uint32_t)info->num_local_devices;
  const uint32_t count = local < MP_TIMELINE_FEW ? local : MP_TIMELINE_FEW;
  if (count != 0) timeline_scope_trace(scope, first, first + count - 1);
  return NULL;
}

// ---- Links ----

// Marks the chips and hosts of traced devices, which come first among the vertices of the network.
static mp_status_t timeline_scope_mark(const mp_timeline_scope_t *scope, const mp_pod_t *pod,
                                       uint32_t num_vertices, bool **out_is_near) {
  const mp_pod_info_t *info = mp_pod_info(pod);
  bool *is_near = mp_calloc((size_t)num_vertices + 1, sizeof(*is_near));
  MP_RETURN_IF_NULL(is_near);
  const uint32_t num_chips = (uint32_t)(info->num_slices * info->chips_per_slice);
  for (uint32_t i = 0; i < scope->num_devices; ++i) {
    if (!scope->devices[i]) continue;
    const mp_pod_device_t *device = mp_pod_device(pod, (int32_t)i);
    is_near[device->slice_index * info->chips_per_slice + device->chip_index] = true;
    is_near[num_chips + (uint32_t)device->host_index] = true;
  }
  *out_is_near = is_near;
  return NULL;
}

static mp_status_t timeline_scope_choose_links(mp_timeline_scope_t *scope,
                                               const mp_model_t *model) {
  const mp_network_t *network = mp_model_network(model);
  const uint32_t num_links = mp_network_num_links(network);
  bool *is_near = NULL;
  MP_RETURN_IF_ERROR(
      timeline_scope_mark(scope, mp_model_pod(model), mp_network_num_vertices(network), &is_near));
  const uint8_t others =
      num_links <= MP_TIMELINE_LINKS ? MP_TIMELINE_LINK_SUM : MP_TIMELINE_LINK_NOT;
  const bool is_all = scope->num_traced == scope->num_devices;
  for (uint32_t i = 0; i < num_links; ++i) {
    const mp_network_link_t *link = mp_network_link(network, i);
    const bool is_whole = is_all || is_near[link->from] || is_near[link->to];
    scope->links[i] = is_whole ? MP_TIMELINE_LINK_WHOLE : others;
    scope->has_sums |= scope->links[i] == MP_TIMELINE_LINK_SUM;
  }
  mp_free(is_near);
  return NULL;
}

// ---- Life ----

mp_status_t mp_timeline_scope_init(const mp_model_t *model, const char *option,
                                   mp_timeline_scope_t *out_scope) {
  const mp_pod_info_t *info = mp_pod_info(mp_model_pod(model));
  const size_t num_links = (size_t)mp_network_num_links(mp_model_network(model)) + 1;
  *out_scope = (mp_timeline_scope_t){.num_devices = (uint32_t)info->num_devices};
  out_scope->devices = mp_calloc(out_scope->num_devices, sizeof(*out_scope->devices));
  out_scope->links = mp_calloc(num_links, sizeof(*out_scope->links));
  MP_RETURN_IF_NULL(out_scope->devices);
  MP_RETURN_IF_NULL(out_scope->links);
  MP_RETURN_IF_ERROR(timeline_scope_read(out_scope, info, option));
  return timeline_scope_choose_links(out_scope, model);
}

void mp_timeline_scope_deinit(mp_timeline_scope_t *scope) {
  mp_free(scope->devices);
  mp_free(scope->links);
}

void mp_timeline_scope_print(const mp_timeline_scope_t *scope, mp_strbuf_t *out) {
  const char *between = scope->num_traced == 1 ? "device " : "devices ";
  for (uint32_t i = 0; i < scope->num_devices; ++i) {
    if (!scope->devices[i]) continue;
    uint32_t last = i;
    while (last + 1 < scope->num_devices && scope->devices[last + 1]) ++last;
    mp_strbuf_printf(out, "%s%" PRIu32, between, i);
    if (last != i) mp_strbuf_printf(out, "-%" PRIu32, last);
    between = ",";
    i = last;
  }
  mp_strbuf_printf(out, " of %" PRIu32, scope->num_devices);
}
