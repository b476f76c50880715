// Pod descriptions from any bytes: YAML, one line, serialized. Accepted ones are built and written.

#include <string.h>

#include "topology/faults/fault_list.h"
#include "topology/pod_impl.h"
#include "topology/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_back(mp_pod_t *pod) {
  mp_strbuf_t bytes;
  mp_strbuf_init(&bytes);
  mp_pod_t *again = NULL;
  mp_status_t status = mp_pod_serialize(pod, &bytes);
  if (status == NULL) {
    status = mp_pod_deserialize((mp_str_t){bytes.data, bytes.size}, &again);
  }
  // What was accepted once must be accepted again, and mean the same.
  if (status != NULL || mp_pod_fingerprint(again) != mp_pod_fingerprint(pod)) __builtin_trap();
  mp_pod_describe(again, &bytes);
  mp_strbuf_deinit(&bytes);
  mp_pod_release(again);
}

// Lists of faults, alone and among the keys of a pod.
static void read_faults(mp_str_t text) {
  mp_arena_t *arena = NULL;
  mp_pod_fault_list_t list;
  mp_status_t status = mp_arena_create(&arena);
  for (int is_pod = 0; is_pod < 2 && arena != NULL; ++is_pod) {
    mp_status_release(status);
    status = mp_pod_fault_list_read(arena, "fuzz", text, is_pod != 0, &list);
  }
  mp_status_release(status);
  mp_arena_release(arena);
}

// The first byte chooses the form, so that one corpus serves all three.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  mp_str_t text = {(const char *)data + 1, size - 1};
  mp_pod_spec_t spec = {0};
  mp_pod_t *pod = NULL;
  mp_status_t status = NULL;
  if (data[0] % 3 == 0) {
    status = mp_pod_deserialize(text, &pod);
  } else if (data[0] % 3 == 1) {
    read_faults(text);
    status = mp_spec_read_yaml(&spec, "fuzz", text);
    if (status == NULL) status = mp_spec_finish(&spec, "fuzz");
    if (status == NULL) status = mp_pod_build(&spec, text, &pod);
  } else if (memchr(text.data, '/', text.size) == NULL) {  // names no files
    status = mp_pod_create_from_name(text, "fuzz", &pod);
  }
  if (pod != NULL) read_back(pod);
  mp_status_release(status);
  mp_pod_release(pod);
  return 0;
}
