// Complex arguments on TPUs: two kernels extract their real and imaginary parts.
#include <math.h>

#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/rules/chip_policy.h"
#include "sim/chip/rules/chip_rules.h"
#include "sim/chip/steps/chip_builder.h"

// Whether an op of main before `reader` reads the value, so that its parts already exist.
static bool chip_complex_is_split(const mp_value_t *value, const mp_op_t *reader) {
  for (const mp_op_t *op = value->block->first; op != NULL && op != reader; op = op->next) {
    if (mp_op_has(op, MP_OP_TRAIT_ALIAS)) continue;
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      if (mp_chip_fusion_root(op->operands[i]) == value) return true;
    }
  }
  return false;
}

static double chip_complex_bytes(const mp_type_t *type) {
  if (!mp_type_is_tensor(type) || !mp_dtype_is_complex(type->dtype)) return 0;
  return mp_work_bytes_of(type);
}

// The bytes of the complex arguments of main whose first reader is the op.
static double chip_complex_arguments(const mp_chip_builder_t *b, const mp_op_t *op) {
  const mp_block_t *main = b->c->program->partitioned->main->body;
  double bytes = 0;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_value_t *root = mp_chip_fusion_root(op->operands[i]);
    if (root->op != NULL || root->block != main || chip_complex_bytes(root->type) == 0) continue;
    if (chip_complex_is_split(root, op)) continue;
    if (i == 0 || root != mp_chip_fusion_root(op->operands[i - 1])) {
      bytes += chip_complex_bytes(root->type);
    }
  }
  return bytes;
}

// libtpu 0.0.52 inserts X64SplitHigh and X64SplitLow before the first reader of a complex argument.
// Each reads the whole argument; the fusion already counts one of these reads. The parts stay in
// VMEM, as do the parts of a complex result until X64Combine writes it. Parts that exceed VMEM are
// written to HBM and read back. FFTs count their own parts.
double mp_chip_bytes_split(const mp_chip_builder_t *b, const mp_op_t *op) {
  if (!mp_chip_policy(&b->c->chip->figures)->splits_complex || op->code == MP_OP_FFT) return 0;
  const double bytes = chip_complex_arguments(b, op);
  if (bytes == 0 || !mp_chip_rule(&b->c->chip->figures, MP_CHIP_RULE_complex_split)) return 0;
  double parts = bytes;
  for (uint32_t i = 0; i < op->num_results; ++i) parts += chip_complex_bytes(op->results[i].type);
  const double scratch = mp_figure_or(b->c->chip->figures.memory_scratch, 0);
  return bytes + 2 * fmax(parts - scratch, 0);
}
