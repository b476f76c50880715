// A pod as bytes: a header line with version and checksum, then its description as YAML, which the
// schema's own reader checks again. The machine is not included.
#include <inttypes.h>
#include <stdio.h>

#include "sim/base/hash.h"
#include "topology/pod_impl.h"

enum {
  MP_POD_VERSION = 1,
  MP_POD_HEADER_SIZE = 16 + 1 + 16 + 1,  // magic and version, blank, checksum, newline
  MP_POD_MAX_BYTES = 1 << 16,
};

static const char g_magic[] = "minipod pod ";

mp_status_t mp_pod_serialize(const mp_pod_t *pod, mp_strbuf_t *out_bytes) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_printf(&text, "name: \"%s\"\n", pod->name);
  mp_spec_write(&pod->spec, &text);
  mp_status_t status = mp_strbuf_status(&text);
  if (status == NULL) {
    uint64_t checksum = mp_hash_fnv1a(text.data, text.size);
    mp_strbuf_printf(out_bytes, "%s%04d %016" PRIx64 "\n", g_magic, MP_POD_VERSION, checksum);
    mp_strbuf_append(out_bytes, text.data, text.size);
    status = mp_strbuf_status(out_bytes);
  }
  mp_strbuf_deinit(&text);
  return status;
}

mp_status_t mp_pod_deserialize(mp_str_t bytes, mp_pod_t **out_pod) {
  if (bytes.size < MP_POD_HEADER_SIZE || !mp_str_starts_with(bytes, g_magic)) {
    return mp_status_make(MP_INVALID_ARGUMENT, "not a serialized pod (%zu bytes)", bytes.size);
  }
  char header[MP_POD_HEADER_SIZE + 1];
  memcpy(header, bytes.data, MP_POD_HEADER_SIZE);
  header[MP_POD_HEADER_SIZE] = '\0';
  int version = 0;
  uint64_t checksum = 0;
  if (sscanf(header + sizeof(g_magic) - 1, "%4d %16" SCNx64, &version, &checksum) != 2) {
    return mp_status_make(MP_INVALID_ARGUMENT, "not a serialized pod: its header is damaged");
  }
  if (version != MP_POD_VERSION) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "serialized pod has version %d, this plugin reads version %d", version,
                          MP_POD_VERSION);
  }
  mp_str_t text = {bytes.data + MP_POD_HEADER_SIZE, bytes.size - MP_POD_HEADER_SIZE};
  if (text.size > MP_POD_MAX_BYTES || mp_hash_fnv1a(text.data, text.size) != checksum) {
    return mp_status_make(MP_INVALID_ARGUMENT, "serialized pod is damaged: checksum differs");
  }
  mp_pod_spec_t spec = {0};
  MP_RETURN_IF_ERROR(mp_spec_read_yaml(&spec, "serialized pod", text));
  MP_RETURN_IF_ERROR(mp_spec_finish(&spec, "serialized pod"));
  return mp_pod_build(&spec, MP_STR("pod"), out_pod);
}
