// What a `tpu_custom_call` says beside its module: the fields of its backend_config.
#ifndef MINIPOD_SIM_MOSAIC_READ_MOSAIC_CALL_H_
#define MINIPOD_SIM_MOSAIC_READ_MOSAIC_CALL_H_

#include "sim/mosaic/ir/mosaic_ir.h"

// The config is JSON (TorchTPU's has trailing commas, which are accepted).
typedef struct {
  mp_mosaic_module_t *module;  // owned
  int64_t vmem_limit_bytes;    // 0: not set
  int64_t scratch_bytes;       // the compiler's own memory in VMEM; -1: not set
  bool has_cost;
  int64_t flops, transcendentals, bytes_accessed, remote_bytes;  // cost_estimate
  bool has_communication, has_side_effects;
  int64_t collective_id;  // -1: not set
  int64_t num_cores;      // 1 if not set
} mp_mosaic_call_t;

// Reads the text of a backend_config, with its module. The caller releases the module.
MP_NODISCARD mp_status_t mp_mosaic_read_call(mp_str_t config, mp_mosaic_call_t *out_call);

#endif  // MINIPOD_SIM_MOSAIC_READ_MOSAIC_CALL_H_
