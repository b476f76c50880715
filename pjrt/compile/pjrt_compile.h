// Compiling: from a client's bytes to a program, through readers, passes, partitioner and planner.
#ifndef MINIPOD_PJRT_COMPILE_PJRT_COMPILE_H_
#define MINIPOD_PJRT_COMPILE_PJRT_COMPILE_H_

#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/base/str.h"
#include "sim/plan/compile.h"
#include "sim/plan/program.h"

// What a client sends; borrowed.
typedef struct {
  mp_str_t code;     // the module
  mp_str_t format;   // "mlir": portable StableHLO bytecode, or text
  mp_str_t options;  // CompileOptionsProto
  bool is_stored;    // from a file or a stored executable: no launch waits for callbacks
  mp_str_t answers;  // with is_stored: earlier answers of custom partitioners
} mp_pjrt_source_t;

typedef struct {
  mp_program_t *program;  // owned by the caller of mp_pjrt_compile
  bool uses_shardy;       // from the client's options
  uint32_t num_devices;
  uint32_t *assignment;  // global device ids by replica * num_partitions + partition; in the arena
} mp_pjrt_compiled_t;

// Compiles for a pod of `pod_devices` devices, which are TPUs if `is_tpu`: libtpu's compile options
// are accepted then. `wishes` are the client's: of these op_by_op,
// as_written, keep_partitioned, open_loops, absent_calls and kernels count; the rest comes from the
// source. The assignment is in `arena`; the program has its own arena. INVALID_ARGUMENT for bad
// bytes and for unknown options or devices; UNIMPLEMENTED for formats and ops that minipod does not
// have. Thread-safe.
MP_NODISCARD mp_status_t mp_pjrt_compile(const mp_pjrt_source_t *source, uint32_t pod_devices,
                                         bool is_tpu, const mp_compile_request_t *wishes,
                                         mp_arena_t *arena, mp_pjrt_compiled_t *out_compiled);

// Appends the partitioned program as StableHLO text, with `attrs` as the module's attributes; with
// `unfused` without minipod's own fused ops and names.
MP_NODISCARD mp_status_t mp_pjrt_print_program(const mp_program_t *program, const mp_attr_t *attrs,
                                               bool unfused, mp_strbuf_t *out_text);

#endif  // MINIPOD_PJRT_COMPILE_PJRT_COMPILE_H_
