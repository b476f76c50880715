// Which values are in VMEM: those that save most bytes come first, larger ones later, and each is
// there if it fits as long as it is live.
#include <math.h>
#include <stdlib.h>

#include "sim/base/assert.h"
#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/rules/chip_rules.h"
#include "sim/chip/spaces/spaces_impl.h"

// How often an iteration counts, as the compiler takes it of a loop whose trip count it need not
// know.
#define SPACES_ALLOCATE_TRIPS 5

// A buffer, or a value while a loop runs that reads it in each iteration.
typedef struct {
  uint32_t value;  // its id
  uint32_t loop;   // MP_SPACES_NONE: a buffer
  double bytes, gain;
  bool is_cast;          // before the loop, to half of its bytes
  const mp_value_t *of;  // of a loop: the value
} spaces_candidate_t;

typedef MP_ARRAY(spaces_candidate_t) spaces_candidates_t;

bool mp_spaces_fits(const mp_spaces_t *s, uint32_t first, uint32_t last, double bytes,
                    double most) {
  for (uint32_t k = first; k <= last && k < s->num_kernels; ++k) {
    if (s->live[k] + bytes > most) return false;
  }
  return true;
}

static void spaces_allocate_add(mp_spaces_t *s, uint32_t first, uint32_t last, double bytes) {
  for (uint32_t k = first; k <= last && k < s->num_kernels; ++k) s->live[k] += bytes;
}

bool mp_spaces_take(mp_spaces_t *s, uint32_t first, uint32_t last, double bytes, double most) {
  if (!mp_spaces_fits(s, first, last, bytes, most)) return false;
  spaces_allocate_add(s, first, last, bytes);
  return true;
}

void mp_spaces_copy(mp_spaces_t *s, uint32_t until, double bytes) {
  for (uint32_t k = until; k-- > 0 && bytes > 0;) {
    const double part = fmin(bytes, s->spare[k]);
    s->spare[k] -= part;
    bytes -= part;
  }
}

// ---- buffers ----

// Takes the room of a buffer's values one after the other, or none: two of them may be live at the
// same time.
static bool spaces_allocate_take_buffer(mp_spaces_t *s, uint32_t id) {
  uint32_t at = id;
  for (; at != MP_SPACES_NONE; at = s->values[at].next) {
    const mp_spaces_value_t *value = &s->values[at];
    if (value->first == MP_SPACES_NONE) continue;
    if (!mp_spaces_take(s, value->first, value->last, s->values[id].bytes, s->vmem)) break;
  }
  for (uint32_t back = id; at != MP_SPACES_NONE && back != at; back = s->values[back].next) {
    const mp_spaces_value_t *value = &s->values[back];
    if (value->first == MP_SPACES_NONE) continue;
    spaces_allocate_add(s, value->first, value->last, -s->values[id].bytes);
  }
  return at == MP_SPACES_NONE;
}

static double spaces_allocate_weight(const mp_block_t *block) {
  double weight = 1;
  for (; block->parent_op != NULL; block = block->parent_op->parent) {
    if (block->parent_op->code == MP_OP_WHILE) weight *= SPACES_ALLOCATE_TRIPS;
  }
  return weight;
}

static void spaces_allocate_count_gains(mp_spaces_t *s) {
  for (uint32_t kernel = 0; kernel < s->num_kernels; ++kernel) {
    const mp_chip_fusion_t *fusion = mp_spaces_fusion(s, kernel);
    if (fusion->first_member == MP_CHIP_FUSION_NONE) continue;
    const mp_chip_fusion_access_t *access = mp_spaces_accesses(s, fusion);
    const double weight = spaces_allocate_weight(fusion->block);
    double bytes = 0;
    for (uint32_t i = 0; i < fusion->num_reads + fusion->num_writes; ++i) bytes += access[i].bytes;
    // A kernel whose matmul takes longer than its bytes saves nothing.
    if (s->spare[kernel] > bytes) continue;
    for (uint32_t i = 0; i < fusion->num_reads + fusion->num_writes; ++i) {
      const mp_value_t *value = mp_spaces_origin(access[i].value);
      mp_spaces_buffer(s, value)->gain += weight * access[i].bytes;
    }
  }
}

static mp_status_t spaces_allocate_find_buffers(mp_spaces_t *s, spaces_candidates_t *out) {
  spaces_allocate_count_gains(s);
  for (uint32_t id = 0; id < s->fusions->num_values; ++id) {
    const mp_spaces_value_t *value = &s->values[id];
    bool is_read = false;
    for (uint32_t at = id; at != MP_SPACES_NONE; at = s->values[at].next) {
      is_read |= s->values[at].first != MP_SPACES_NONE &&
                 (s->values[at].last > s->values[at].first || at != id);
    }
    if (value->parent != id || value->is_in_hbm || !is_read) continue;
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(
        s->arena, out,
        (spaces_candidate_t){id, MP_SPACES_NONE, value->bytes, value->gain, false, NULL}));
  }
  return NULL;
}

// ---- what loops read ----

// Whether the f32 operand of a matmul is cast before a loop, perhaps with others in one array.
static bool spaces_allocate_is_cast(const mp_spaces_t *s, const mp_chip_fusion_t *fusion,
                                    const mp_chip_fusion_access_t *access) {
  const mp_work_matmul_t *matmul = &fusion->work.matmul;
  const bool is_operand = (access->sides & ~MP_CHIP_FUSION_BESIDE) != 0;
  return is_operand && matmul->m > 1 && matmul->n > 1 &&
         access->value->type->dtype == MP_DTYPE_F32 &&
         mp_chip_rule(s->figures, MP_CHIP_RULE_cast_before_loop);
}

// The bytes of VMEM that a read of a value which the loop does not make takes while the loop runs;
// 0: it is read from HBM.
static double spaces_allocate_held(const mp_spaces_t *s, const mp_chip_fusion_t *fusion,
                                   const mp_chip_fusion_access_t *access) {
  const double bytes = mp_chip_fusion_bytes_of(s->figures, access->value->type);
  if (access->value->is_on_host || access->copy != MP_LAYOUT_NONE) return 0;
  if (spaces_allocate_is_cast(s, fusion, access)) return bytes / 2;
  return access->bytes < bytes ? 0 : bytes;
}

// Whether a value can be copied into VMEM before a loop: beside kernels of the loop's block that
// run after it was made.
static bool spaces_allocate_is_early(const mp_spaces_t *s, const mp_value_t *value,
                                     const mp_spaces_loop_t *loop, double bytes) {
  const mp_spaces_value_t *of = &s->values[value->id];
  uint32_t first = of->first == MP_SPACES_NONE ? 0 : of->first + 1;
  for (uint32_t i = 0; i < s->loops.count; ++i) {
    const mp_spaces_loop_t *outer = &s->loops.items[i];
    if (outer->is_loop && outer != loop && mp_spaces_is_in(loop->op->parent, outer->op) &&
        outer->first > first) {
      first = outer->first;
    }
  }
  double spare = loop->before;
  for (uint32_t k = first; k < loop->first; ++k) spare += s->spare[k];
  return spare >= bytes;
}

// The candidate of a value and a loop, which is among the last ones.
static spaces_candidate_t *spaces_allocate_of_loop(spaces_candidates_t *candidates, uint32_t value,
                                                   uint32_t loop) {
  for (uint32_t i = candidates->count; i-- > 0 && candidates->items[i].loop == loop;) {
    if (candidates->items[i].value == value) return &candidates->items[i];
  }
  return NULL;
}

// The reads of a loop that are cast before it, or else those that are copied while earlier kernels
// run: these casts among them.
static mp_status_t spaces_allocate_find_reads(mp_spaces_t *s, uint32_t number, bool is_cast,
                                              spaces_candidates_t *out) {
  mp_spaces_loop_t *loop = &s->loops.items[number];
  for (uint32_t kernel = loop->first; kernel < loop->end; ++kernel) {
    const mp_chip_fusion_t *fusion = mp_spaces_fusion(s, kernel);
    if (fusion->first_member == MP_CHIP_FUSION_NONE || !mp_spaces_is_in(fusion->block, loop->op)) {
      continue;
    }
    const mp_chip_fusion_access_t *access = mp_spaces_accesses(s, fusion);
    for (uint32_t i = 0; i < fusion->num_reads; ++i) {
      const mp_value_t *value = mp_spaces_origin(access[i].value);
      if (mp_spaces_is_in(mp_spaces_made_in(value), loop->op)) continue;
      const double bytes = spaces_allocate_held(s, fusion, &access[i]);
      if (bytes == 0) continue;
      if (spaces_allocate_is_cast(s, fusion, &access[i]) != is_cast) continue;
      if (!is_cast && !spaces_allocate_is_early(s, value, loop, bytes)) continue;
      spaces_candidate_t *candidate = spaces_allocate_of_loop(out, value->id, number);
      if (candidate == NULL) {
        MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(
            s->arena, out, (spaces_candidate_t){value->id, number, bytes, 0, is_cast, value}));
        candidate = &out->items[out->count - 1];
        if (is_cast) loop->before += bytes;
      }
      candidate->gain += spaces_allocate_weight(fusion->block) * access[i].bytes;
    }
  }
  return NULL;
}

// The reads of a value that a loop has in VMEM, or that it casts.
static void spaces_allocate_mark(mp_spaces_t *s, const spaces_candidate_t *candidate,
                                 bool is_in_vmem) {
  const mp_spaces_loop_t *loop = &s->loops.items[candidate->loop];
  for (uint32_t kernel = loop->first; kernel < loop->end; ++kernel) {
    const mp_chip_fusion_t *fusion = mp_spaces_fusion(s, kernel);
    if (fusion->first_member == MP_CHIP_FUSION_NONE || !mp_spaces_is_in(fusion->block, loop->op)) {
      continue;
    }
    mp_chip_fusion_access_t *access = mp_spaces_accesses(s, fusion);
    for (uint32_t i = 0; i < fusion->num_reads; ++i) {
      if (mp_spaces_origin(access[i].value)->id == candidate->value &&
          spaces_allocate_held(s, fusion, &access[i]) > 0) {
        if (is_in_vmem) {
          access[i].space = MP_SPACE_VMEM;
        } else {
          access[i].bytes /= 2;
        }
      }
    }
  }
}

// ---- all ----

static int spaces_allocate_compare(const void *a, const void *b) {
  const spaces_candidate_t *x = a, *y = b;
  const double first = x->gain / sqrt(x->bytes), second = y->gain / sqrt(y->bytes);
  if (first != second) return first > second ? -1 : 1;
  if (x->value != y->value) return x->value < y->value ? -1 : 1;
  return x->loop < y->loop ? -1 : 1;
}

// A loop that reads what was cast to HBM for another one reads the same array.
static mp_status_t spaces_allocate_cast_again(mp_spaces_t *s, const spaces_candidate_t *candidate) {
  for (uint32_t i = 0; i < s->fusions->loop_copies.count; ++i) {
    const mp_loop_copy_t *copy = &s->fusions->loop_copies.items[i];
    if (copy->value != candidate->of || copy->held == 0 || !candidate->is_cast) continue;
    spaces_allocate_mark(s, candidate, false);
    const mp_loop_copy_t again = {s->loops.items[candidate->loop].op, copy->value, 0, copy->held};
    return MP_ARRAY_PUSH(s->arena, &s->fusions->loop_copies, again);
  }
  return NULL;
}

static mp_status_t spaces_allocate_loop(mp_spaces_t *s, const spaces_candidate_t *candidate) {
  mp_spaces_value_t *value = &s->values[candidate->value];
  if (value->is_held) return spaces_allocate_cast_again(s, candidate);
  if (s->values[value->parent].is_in_vmem) return NULL;
  const mp_spaces_loop_t *loop = &s->loops.items[candidate->loop];
  const bool is_in_vmem =
      mp_spaces_take(s, loop->first, mp_spaces_last(loop), candidate->bytes, s->vmem);
  if (!is_in_vmem && !candidate->is_cast) return NULL;
  value->is_held = true;
  spaces_allocate_mark(s, candidate, is_in_vmem);
  const double read = candidate->bytes * (candidate->is_cast ? 2 : 1);
  const double held = is_in_vmem ? 0 : candidate->bytes;
  const mp_loop_copy_t copy = {loop->op, candidate->of, read + held, held};
  return MP_ARRAY_PUSH(s->arena, &s->fusions->loop_copies, copy);
}

static mp_status_t spaces_allocate_candidate(mp_spaces_t *s, const spaces_candidate_t *candidate) {
  if (candidate->loop != MP_SPACES_NONE) return spaces_allocate_loop(s, candidate);
  s->values[candidate->value].is_in_vmem = spaces_allocate_take_buffer(s, candidate->value);
  return NULL;
}

mp_status_t mp_spaces_allocate(mp_spaces_t *s) {
  spaces_candidates_t candidates = {0};
  MP_RETURN_IF_ERROR(spaces_allocate_find_buffers(s, &candidates));
  for (uint32_t i = 0; i < s->loops.count; ++i) {
    if (!s->loops.items[i].is_loop) continue;
    MP_RETURN_IF_ERROR(spaces_allocate_find_reads(s, i, true, &candidates));
    MP_RETURN_IF_ERROR(spaces_allocate_find_reads(s, i, false, &candidates));
  }
  if (candidates.count > 0) {
    qsort(candidates.items, candidates.count, sizeof(candidates.items[0]), spaces_allocate_compare);
  }
  for (uint32_t i = 0; i < candidates.count; ++i) {
    MP_RETURN_IF_ERROR(spaces_allocate_candidate(s, &candidates.items[i]));
  }
  return NULL;
}
