// What a compiler makes of single ops. chip_fusion_kinds.h asks for it by the described compiler.
#ifndef MINIPOD_SIM_CHIP_FUSE_CHIP_FUSION_OPS_H_
#define MINIPOD_SIM_CHIP_FUSE_CHIP_FUSION_OPS_H_

#include "sim/chip/fuse/chip_fusion_kinds.h"

typedef struct {
  // The kind of an op that is of this kind for other compilers; NULL: the same.
  mp_chip_fusion_kind_t (*kind)(const mp_chip_figures_t *figures, const mp_op_t *op,
                                mp_chip_fusion_kind_t kind);
  // mp_chip_fusion_takes, for loops and matmuls; NULL: always.
  bool (*takes)(const mp_chip_figures_t *figures, const mp_op_t *op, mp_chip_fusion_kind_t kind,
                uint32_t operand);
  // mp_chip_fusion_is_selection, _makes_start, _is_received, _pads; NULL: never.
  bool (*selects)(const mp_chip_figures_t *figures, const mp_op_t *op);
  bool (*makes_start)(const mp_chip_figures_t *figures, const mp_op_t *loop, uint32_t operand);
  bool (*receives)(const mp_op_t *op);
  bool (*pads)(const mp_chip_figures_t *figures, const mp_op_t *op,
               mp_matmul_padding_t *out_padding);
} mp_chip_fusion_ops_t;

extern const mp_chip_fusion_ops_t mp_chip_fusion_gpu_ops;    // XLA for GPUs
extern const mp_chip_fusion_ops_t mp_chip_fusion_tpu_ops;    // libtpu
extern const mp_chip_fusion_ops_t mp_chip_fusion_plain_ops;  // no compiler described

#endif  // MINIPOD_SIM_CHIP_FUSE_CHIP_FUSION_OPS_H_
