// For tests of foreign functions: programs of one call, and a device that does what is asked.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_FOREIGN_TEST_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_FOREIGN_TEST_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/foreign/foreign_api.h"
#include "sim/readers/reader.h"
#include "tests/unit/support/unit.h"

// A handler without names of its own: registers it under `name` for `platform`.
static inline mp_status_t foreign_register(const char *name, const char *platform,
                                           XLA_FFI_Handler_Bundle bundle) {
  return mp_foreign_register_typed(mp_str(name), mp_str(platform), &bundle,
                                   (mp_foreign_traits_t){0});
}

// Answers the question for the version that every handler begins with; false: it was none.
static inline bool foreign_is_metadata(XLA_FFI_CallFrame *frame, int minor) {
  if (frame->extension_start == NULL) return false;
  XLA_FFI_Metadata_Extension *extension = (XLA_FFI_Metadata_Extension *)frame->extension_start;
  extension->metadata->api_version.major_version = 0;
  extension->metadata->api_version.minor_version = minor;
  return true;
}

static inline XLA_FFI_Error *foreign_fail(const XLA_FFI_CallFrame *frame, int code,
                                          const char *message) {
  XLA_FFI_Error_Create_Args args = {.struct_size = XLA_FFI_SIZE(XLA_FFI_Error_Create_Args, errc),
                                    .message = message,
                                    .errc = (XLA_FFI_Error_Code)code};
  return frame->api->XLA_FFI_Error_Create(&args);
}

// Reads "main" whose first op is a call; the module is the caller's.
static inline const mp_op_t *foreign_read_call(const char *arguments, const char *call,
                                               mp_module_t **out_module) {
  char text[4096];
  snprintf(text, sizeof(text), "module @m { func.func public @main(%s) { %s\n return } }",
           arguments, call);
  assert_ok(mp_read_program(text, strlen(text), MP_PROGRAM_MLIR, out_module));
  const mp_op_t *op = (*out_module)->main->body->first;
  while (op->code != MP_OP_CUSTOM_CALL) op = op->next;
  return op;
}

// ---- A device ----

typedef struct {
  int num_allocations, num_tasks;
} foreign_device_t;

static inline mp_status_t foreign_device_allocate(void *data, size_t bytes, size_t alignment,
                                                  void **out_memory) {
  foreign_device_t *device = data;
  ++device->num_allocations;
  *out_memory = aligned_alloc(alignment < 16 ? 16 : alignment, (bytes + 63) & ~(size_t)63);
  return *out_memory == NULL ? mp_status_out_of_memory() : NULL;
}

static inline void foreign_device_free(void *data, void *memory, size_t bytes) {
  (void)bytes;
  --((foreign_device_t *)data)->num_allocations;
  free(memory);
}

static inline mp_status_t foreign_device_schedule(void *data, void (*task)(void *),
                                                  void *argument) {
  ++((foreign_device_t *)data)->num_tasks;
  task(argument);
  return NULL;
}

static inline int64_t foreign_device_num_threads(void *data) {
  (void)data;
  return 3;
}

static const mp_foreign_host_t k_foreign_host = {foreign_device_allocate, foreign_device_free,
                                                 foreign_device_schedule,
                                                 foreign_device_num_threads};

// How a pending call has ended.
typedef struct {
  int num_ends;
  mp_status_t status;
} foreign_end_t;

static inline void foreign_note_end(void *context, mp_status_t status) {
  foreign_end_t *end = context;
  ++end->num_ends;
  end->status = status;
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_FOREIGN_TEST_H_
