#include "pjrt/compile.h"

static mp_status_t check_format(const mp_pjrt_source_t *source) {
  if (source->code.size == 0) {
    return mp_status_make(MP_INVALID_ARGUMENT, "the program is empty");
  }
  if (mp_str_is(source->format, "mlir")) return NULL;
  if (mp_str_is(source->format, "hlo") || mp_str_is(source->format, "hlo_with_config")) {
    return mp_status_make(MP_UNIMPLEMENTED,
                          "programs in the form '%.*s' (HLO protos) cannot be read yet; send "
                          "StableHLO ('mlir')",
                          MP_STR_ARG(source->format));
  }
  return mp_status_make(MP_INVALID_ARGUMENT, "unknown program form '%.*s'; 'mlir' is known",
                        MP_STR_ARG(source->format));
}

mp_status_t mp_pjrt_compile(const mp_pjrt_source_t *source, uint32_t pod_devices, mp_arena_t *arena,
                            mp_pjrt_compiled_t *out_compiled) {
  (void)pod_devices;
  (void)arena;
  (void)out_compiled;
  MP_RETURN_IF_ERROR(check_format(source));
  return mp_status_make(MP_UNIMPLEMENTED, "programs cannot be compiled yet");
}

mp_status_t mp_pjrt_print_program(const mp_program_t *program, mp_strbuf_t *out_text) {
  (void)program;
  return mp_strbuf_status(out_text);
}
