// A program on a described chip, for `minipod chip`.
#ifndef MINIPOD_PJRT_COMMAND_CHIP_TARGET_H_
#define MINIPOD_PJRT_COMMAND_CHIP_TARGET_H_

#include "sim/base/options.h"
#include "sim/chip/print/chip_print.h"
#include "sim/model/clock/model.h"
#include "topology/pod.h"

typedef enum {
  MP_CHIP_TEXT,
  MP_CHIP_JSON,     // with kernels
  MP_CHIP_SUMMARY,  // without
  MP_CHIP_ABLATE,   // without, and the same numbers without each rule that the program uses
} mp_chip_form_t;

typedef struct {
  mp_chip_form_t form;
  mp_chip_stage_t stage;  // of text: what comes after this pass is left out
  bool is_structure;      // of text: times are left out
} mp_chip_look_t;

// A pod and its model, made once for all programs.
typedef struct {
  const char *name;  // borrowed
  mp_pod_t *pod;
  mp_model_t *model;
} mp_chip_target_t;

// The pod `name`, or that of the options if it is NULL. A chip without a grid ("v5e") is a pod of
// one device. The target is released even if this fails.
MP_NODISCARD mp_status_t mp_chip_target_make(const mp_options_t *options, const char *name,
                                             mp_chip_target_t *out);
void mp_chip_target_release(mp_chip_target_t *target);

// Appends a program on the first devices of the pod: text, or JSON without a line break.
// INVALID_ARGUMENT if the pod has fewer devices than the program needs.
MP_NODISCARD mp_status_t mp_chip_target_print(const mp_chip_target_t *target,
                                              const mp_chip_look_t *look, const char *file,
                                              const mp_program_t *program, mp_strbuf_t *out);

#endif  // MINIPOD_PJRT_COMMAND_CHIP_TARGET_H_
