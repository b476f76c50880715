// InspectSharding: compiling a program reports the sharding of a value to its Python process.
//
// jaxlib writes the address of a function and an argument into the call's backend_config (its
// header inspect_sharding.h has the structs below), so such a program is only valid in the process
// that made it.

#include "pjrt/package/pjrt_inspect.h"

#include <dlfcn.h>
#include <string.h>

#include "pjrt/compile/pjrt_sharding.h"

typedef struct inspect_args_s inspect_args_t;
struct inspect_args_s {
  char *sharding;  // OpSharding
  size_t sharding_size;
  const char *error;  // set by the callee
  void *error_memory;
  void (*free_error)(inspect_args_t *args);
};

typedef struct {
  void (*call)(void *data, inspect_args_t *args);
  void *data;
} inspect_callback_t;

// The bytes come from a program, which may have been stored in a file or forged: so only a function
// inside jaxlib is called.
static bool pjrt_inspect_is_jaxlib(const inspect_callback_t *callback) {
  void *address = NULL;
  memcpy(&address, &callback->call, sizeof(address));
  Dl_info info;
  return address != NULL && callback->data != NULL && dladdr(address, &info) != 0 &&
         info.dli_fname != NULL && strstr(info.dli_fname, "jaxlib") != NULL;
}

static mp_status_t pjrt_inspect_fail(const mp_inspected_t *inspected, mp_status_code_t code,
                                     const char *reason) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_loc_describe(inspected->loc, &text);
  mp_status_t status = mp_status_make(code, "InspectSharding: %s [%s]", reason,
                                      text.failed ? "" : mp_strbuf_text(&text));
  mp_strbuf_deinit(&text);
  return status;
}

static mp_status_t pjrt_inspect_tell(const mp_inspected_t *inspected, mp_strbuf_t *sharding) {
  inspect_callback_t callback;
  if (inspected->config.size != sizeof(callback)) {
    return pjrt_inspect_fail(inspected, MP_INVALID_ARGUMENT,
                             "its backend_config is not a function with an argument");
  }
  memcpy(&callback, inspected->config.data, sizeof(callback));
  if (!pjrt_inspect_is_jaxlib(&callback)) {
    return pjrt_inspect_fail(inspected, MP_INVALID_ARGUMENT,
                             "its backend_config names no function of jaxlib in this process; a "
                             "program that inspects shardings cannot be stored");
  }
  inspect_args_t args = {.sharding = (char *)mp_strbuf_text(sharding),
                         .sharding_size = sharding->size};
  callback.call(callback.data, &args);
  if (args.error == NULL) return NULL;
  mp_status_t status = pjrt_inspect_fail(inspected, MP_INTERNAL, args.error);
  if (args.free_error != NULL) args.free_error(&args);
  return status;
}

mp_status_t mp_pjrt_inspect_shardings(const mp_program_t *program) {
  for (uint32_t i = 0; i < program->num_inspected; ++i) {
    const mp_inspected_t *inspected = &program->inspected[i];
    mp_strbuf_t sharding;
    mp_strbuf_init(&sharding);
    mp_status_t status = mp_pjrt_sharding_write(program->module->arena, inspected->boxes,
                                                inspected->is_manual, false, &sharding);
    if (status == NULL) status = mp_strbuf_status(&sharding);
    if (status == NULL) status = pjrt_inspect_tell(inspected, &sharding);
    mp_strbuf_deinit(&sharding);
    MP_RETURN_IF_ERROR(status);
  }
  return NULL;
}
