// Whether all readers of an op should recompute it, or one fusion writes its result.
#include <math.h>

#include "sim/chip/fuse/chip_fusion_policy.h"
#include "sim/chip/rules/chip_rules.h"
#include "sim/plan/plan.h"

mp_status_t mp_chip_fusion_note_uses(mp_chip_fusion_find_t *find, const mp_block_t *block) {
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    for (uint32_t i = 0; i < op->num_regions; ++i) {
      if (mp_op_info(op->code)->role != MP_OP_ROLE_CONTROL) break;
      MP_RETURN_IF_ERROR(mp_chip_fusion_note_uses(find, op->regions[i]));
    }
    // An alias is not a reader: its readers count as readers of its operand.
    if (op->num_results == 1 && mp_plan_aliased(&op->results[0]) != NULL) continue;
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      mp_chip_fusion_value_t *entry;
      MP_RETURN_IF_ERROR(mp_chip_fusion_value(find, mp_chip_fusion_root(op->operands[i]), &entry));
      ++entry->num_uses;
    }
  }
  return NULL;
}

// ---- values computed from matmuls ----

static bool chip_fusion_copies_is_matmul(const mp_value_t *value) {
  return value->op != NULL &&
         (value->op->code == MP_OP_DOT_GENERAL || value->op->code == MP_OP_CONVOLUTION);
}

// Whether ops besides this one read the value.
static bool chip_fusion_copies_is_read(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                                       const mp_value_t *value) {
  uint32_t num_reads = 0;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    num_reads += mp_chip_fusion_root(op->operands[i]) == value;
  }
  return mp_chip_fusion_num_uses(find, value) > num_reads;
}

// Whether elementwise ops compute the op's arrays from matmuls, and each path from a matmul goes
// through a value that other ops read, too, or `is_read`: the path after the op does. Goes through
// `in_out_left` ops.
static bool chip_fusion_copies_is_anyway(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                                         bool is_read, uint32_t *in_out_left) {
  if (*in_out_left == 0 || !mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) return false;
  --*in_out_left;
  for (mp_chip_fusion_read_t read = {0};
       mp_chip_fusion_next(find->figures, op, MP_CHIP_FUSION_LOOP, &read);) {
    if (read.is_reused) continue;
    const bool is_kept = is_read || chip_fusion_copies_is_read(find, op, read.value);
    if (chip_fusion_copies_is_matmul(read.value)) {
      if (!is_kept) return false;
      continue;
    }
    const mp_op_t *of = read.value->op;
    if (of == NULL || of->parent != op->parent) return false;
    if (!chip_fusion_copies_is_anyway(find, of, is_kept, in_out_left)) return false;
  }
  return true;
}

// Whether the operands of an elementwise op come from matmuls, all through values that other ops
// read as well, like an activation whose gradient reads the pre-activation. Then each reader
// recomputes it. Evidence: libtpu 0.0.52 for v5e and v6e stores only the pre-activation in 16
// gradients of MLPs, plain and gated, with gelu, silu, relu and its square.
static bool chip_fusion_copies_is_kept(const mp_chip_fusion_find_t *find, const mp_op_t *op) {
  uint32_t left = 64;
  return find->policy->counts_uses && op->num_results == 1 &&
         chip_fusion_copies_is_anyway(find, op, false, &left) &&
         mp_chip_rule(find->figures, MP_CHIP_RULE_kept_preactivation);
}

// What an op comes from: matmuls, up to three, and whether an exponential, a division or the like
// is on the way.
typedef struct {
  const mp_value_t *matmuls[3];
  uint32_t num_matmuls;
  bool is_expensive;
} chip_fusion_copies_sources_t;

static void chip_fusion_copies_add_matmul(chip_fusion_copies_sources_t *sources,
                                          const mp_value_t *value) {
  enum { MOST = sizeof(sources->matmuls) / sizeof(sources->matmuls[0]) };
  for (uint32_t i = 0; i < sources->num_matmuls; ++i) {
    if (sources->matmuls[i] == value) return;
  }
  if (sources->num_matmuls < MOST) sources->matmuls[sources->num_matmuls++] = value;
}

// For an op that is_kept, which bounds the ops on the way.
static void chip_fusion_copies_add_sources(const mp_chip_fusion_find_t *find, const mp_op_t *op,
                                           chip_fusion_copies_sources_t *sources) {
  mp_work_t work;
  mp_work_of_op(op, &work);
  sources->is_expensive |= work.transcendentals > 0 || op->code == MP_OP_DIVIDE;
  for (mp_chip_fusion_read_t read = {0};
       mp_chip_fusion_next(find->figures, op, MP_CHIP_FUSION_LOOP, &read);) {
    if (read.is_reused) continue;
    if (chip_fusion_copies_is_matmul(read.value)) {
      chip_fusion_copies_add_matmul(sources, read.value);
    } else {
      chip_fusion_copies_add_sources(find, read.value->op, sources);
    }
  }
}

// Whether such an op is written nevertheless: an expensive one of three matmuls, the gradient of a
// gate. Libtpu 0.0.52 writes it with gelu, and on chips other than v5e with silu.
static bool chip_fusion_copies_is_gate(const mp_chip_fusion_find_t *find, const mp_op_t *op) {
  chip_fusion_copies_sources_t sources = {0};
  chip_fusion_copies_add_sources(find, op, &sources);
  return sources.is_expensive && sources.num_matmuls == 3 &&
         mp_chip_rule(find->figures, MP_CHIP_RULE_kept_gate);
}

// ---- bytes of both ways ----

// The matmul result from which a few elementwise ops compute the value, each from its first array;
// NULL: none.
static const mp_value_t *chip_fusion_copies_matmul(const mp_chip_fusion_find_t *find,
                                                   const mp_value_t *value) {
  enum { OPS_MOST = 6 };
  for (uint32_t i = 0; i < OPS_MOST && value != NULL && value->op != NULL; ++i) {
    if (chip_fusion_copies_is_matmul(value)) return value;
    const mp_op_t *op = value->op;
    if (!mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) return NULL;
    value = NULL;
    for (mp_chip_fusion_read_t read = {0};
         value == NULL && mp_chip_fusion_next(find->figures, op, MP_CHIP_FUSION_LOOP, &read);) {
      if (!read.is_reused) value = read.value;
    }
  }
  return NULL;
}

// The bytes of both ways to provide a value that several fusions read.
typedef struct {
  double copied;   // each fusion computes it
  double written;  // the first fusion writes it, and the others read it
} chip_fusion_copies_ways_t;

// Adds an operand that is computed from a matmul. If the op is written, the matmul joins its
// fusion. If the op is recomputed, the matmul's result is written, and read by all users but the
// first, which the matmul may join. A value that is kept anyway is read by each user.
static void chip_fusion_copies_weigh_matmul(const mp_chip_fusion_find_t *find,
                                            const mp_value_t *value, const mp_value_t *matmul,
                                            double bytes, bool first_may_write,
                                            chip_fusion_copies_ways_t *ways) {
  const double others = find->users.count - 1;
  if (chip_fusion_copies_is_kept(find, value->op)) {
    const double kept = mp_work_bytes_of(matmul->type);
    ways->copied += kept * (1 + others);
    ways->written += kept;
    return;
  }
  ways->copied += mp_work_bytes_of(value->type) + (others + !first_may_write) * bytes;
}

// The least bytes from which a few elementwise ops compute a value.
static double chip_fusion_copies_source_bytes(const mp_chip_fusion_find_t *find,
                                              const mp_value_t *value, uint32_t ops_most) {
  const double bytes = mp_work_bytes_of(value->type);
  const mp_op_t *op = value->op;
  if (op == NULL || ops_most == 0 || !mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) return bytes;
  double sum = 0;
  for (mp_chip_fusion_read_t read = {0};
       sum < bytes && mp_chip_fusion_next(find->figures, op, MP_CHIP_FUSION_LOOP, &read);) {
    sum += chip_fusion_copies_source_bytes(find, read.value, ops_most - 1);
  }
  return fmin(sum, bytes);
}

static chip_fusion_copies_ways_t chip_fusion_copies_weigh(const mp_chip_fusion_find_t *find,
                                                          const mp_chip_fusion_op_t *at,
                                                          const mp_chip_fusion_user_t *first,
                                                          bool first_may_write) {
  const double others = find->users.count - 1;
  const double made = at->bytes;
  chip_fusion_copies_ways_t ways = {.written = made * (1 + others)};
  if (!first_may_write) ways.written += made;
  for (mp_chip_fusion_read_t read = {0};
       mp_chip_fusion_next(find->figures, at->op, at->kind, &read);) {
    enum { OPS_MOST = 4 };
    const double bytes = fmin(mp_work_bytes_read(at->op, read.operand),
                              chip_fusion_copies_source_bytes(find, read.value, OPS_MOST));
    const mp_value_t *matmul = chip_fusion_copies_matmul(find, read.value);
    if (matmul != NULL) {
      chip_fusion_copies_weigh_matmul(find, read.value, matmul, bytes, first_may_write, &ways);
      continue;
    }
    for (uint32_t j = 0; j < find->users.count; ++j) {
      if (!mp_chip_fusion_reads(find, find->users.items[j].fusion, read.value))
        ways.copied += bytes;
    }
    if (!first_may_write || !mp_chip_fusion_reads(find, first->fusion, read.value)) {
      ways.written += bytes;
    }
  }
  return ways;
}

bool mp_chip_fusion_copies(mp_chip_fusion_find_t *find, const mp_chip_fusion_op_t *at,
                           const mp_chip_fusion_user_t *first, bool first_may_write) {
  enum { USERS_MOST = 16 };
  if (at->kind != MP_CHIP_FUSION_LOOP || find->users.count > USERS_MOST) return false;
  for (uint32_t i = 0; i < find->users.count; ++i) {
    if (!find->policy->accepts(find, at, &find->users.items[i])) return false;
  }
  if (chip_fusion_copies_is_kept(find, at->op)) return !chip_fusion_copies_is_gate(find, at->op);
  const chip_fusion_copies_ways_t ways = chip_fusion_copies_weigh(find, at, first, first_may_write);
  return ways.copied <= ways.written;
}
