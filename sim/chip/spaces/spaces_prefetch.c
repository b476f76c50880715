// Matmul operands that are copied into VMEM as a whole while earlier kernels run: then the matmul
// does not wait for their windows.
#include <math.h>

#include "sim/chip/spaces/spaces_impl.h"

enum {
  SPACES_OPERANDS =
      MP_CHIP_FUSION_LHS | MP_CHIP_FUSION_RHS | MP_CHIP_FUSION_INNER_LHS | MP_CHIP_FUSION_INNER_RHS
};

static bool spaces_prefetch_is_matmul(const mp_chip_fusion_t *fusion) {
  return fusion->first_member != MP_CHIP_FUSION_NONE && fusion->work.matmul.batch > 0;
}

static bool spaces_prefetch_is_argument(const mp_spaces_t *s, const mp_value_t *value) {
  return value->op == NULL && value->block == s->main->body;
}

// Whether all of the value is an operand of a matmul, or becomes one.
static bool spaces_prefetch_is_operand(const mp_chip_fusion_access_t *access) {
  return access->copy == MP_LAYOUT_NONE && (access->sides & SPACES_OPERANDS) != 0 &&
         (access->sides & MP_CHIP_FUSION_BESIDE) == 0 &&
         access->bytes >= mp_work_bytes_of(access->value->type);
}

// ---- across programs ----

// The largest operand among the arguments, the first one of these.
static const mp_chip_fusion_access_t *spaces_prefetch_largest(mp_spaces_t *s,
                                                              uint32_t *out_last_matmul) {
  const mp_chip_fusion_access_t *largest = NULL;
  for (uint32_t kernel = 0; kernel < s->num_kernels; ++kernel) {
    const mp_chip_fusion_t *fusion = mp_spaces_fusion(s, kernel);
    if (fusion->block != s->main->body || !spaces_prefetch_is_matmul(fusion)) continue;
    *out_last_matmul = kernel;
    const mp_chip_fusion_access_t *access = mp_spaces_accesses(s, fusion);
    for (uint32_t i = 0; i < fusion->num_reads; ++i) {
      if (!spaces_prefetch_is_argument(s, access[i].value) ||
          !spaces_prefetch_is_operand(&access[i]) || access[i].bytes > s->prefetched) {
        continue;
      }
      if (largest == NULL || access[i].bytes > largest->bytes) largest = &access[i];
    }
  }
  return largest;
}

// The first matmul that reads the value has it prefetched, later ones find it in VMEM. Returns the
// last one.
static uint32_t spaces_prefetch_mark(mp_spaces_t *s, const mp_value_t *value) {
  uint32_t last = MP_SPACES_NONE;
  for (uint32_t kernel = 0; kernel < s->num_kernels; ++kernel) {
    const mp_chip_fusion_t *fusion = mp_spaces_fusion(s, kernel);
    if (fusion->block != s->main->body || !spaces_prefetch_is_matmul(fusion)) continue;
    mp_chip_fusion_access_t *access = mp_spaces_accesses(s, fusion);
    for (uint32_t i = 0; i < fusion->num_reads; ++i) {
      if (access[i].value != value) continue;
      access[i].space = last == MP_SPACES_NONE ? MP_SPACE_PREFETCHED : MP_SPACE_VMEM;
      last = kernel;
    }
  }
  return last;
}

void mp_spaces_prefetch_argument(mp_spaces_t *s) {
  uint32_t last_matmul = 0;
  const mp_chip_fusion_access_t *access = spaces_prefetch_largest(s, &last_matmul);
  if (access == NULL) return;
  const uint32_t last = spaces_prefetch_mark(s, access->value);
  mp_spaces_take(s, 0, last, access->bytes, s->prefetched);
  // While the last matmul runs, the argument of the next program is prefetched.
  if (last_matmul > last) {
    mp_spaces_take(s, last_matmul, last_matmul, access->bytes, s->prefetched);
  }
}

// ---- while earlier kernels of the block run ----

// Whether a fusion reads or writes a value, all of it or a part.
static bool spaces_prefetch_touches(const mp_spaces_t *s, const mp_chip_fusion_t *fusion,
                                    const mp_value_t *value) {
  const mp_chip_fusion_access_t *access = mp_spaces_accesses(s, fusion);
  for (uint32_t i = 0; i < fusion->num_reads + fusion->num_writes; ++i) {
    if (access[i].value == value) return true;
  }
  return false;
}

// The latest kernel of the block with which the copy of a value can begin, so that it ends before a
// kernel reads it; MP_SPACES_NONE: there is none. It begins after the value's last reader.
static uint32_t spaces_prefetch_begin(const mp_spaces_t *s, uint32_t kernel,
                                      const mp_chip_fusion_access_t *access) {
  const mp_chip_fusion_t *fusion = mp_spaces_fusion(s, kernel);
  double bytes = 0;
  for (uint32_t k = kernel; k-- > 0;) {
    const mp_chip_fusion_t *before = mp_spaces_fusion(s, k);
    if (before->first_member == MP_CHIP_FUSION_NONE) continue;
    if (before->block != fusion->block || spaces_prefetch_touches(s, before, access->value)) break;
    bytes += s->spare[k];
    if (bytes >= access->bytes) {
      return mp_spaces_fits(s, k, kernel, access->bytes, s->prefetched) ? k : MP_SPACES_NONE;
    }
  }
  return MP_SPACES_NONE;
}

void mp_spaces_prefetch_operands(mp_spaces_t *s, uint32_t kernel) {
  const mp_chip_fusion_t *fusion = mp_spaces_fusion(s, kernel);
  mp_chip_fusion_access_t *access = mp_spaces_accesses(s, fusion);
  if (!spaces_prefetch_is_matmul(fusion)) return;
  for (uint32_t i = 0; i < fusion->num_reads; ++i) {
    if (!spaces_prefetch_is_operand(&access[i]) || access[i].space != MP_SPACE_HBM ||
        mp_spaces_buffer(s, mp_spaces_origin(access[i].value))->is_in_vmem) {
      continue;
    }
    const uint32_t begin = spaces_prefetch_begin(s, kernel, &access[i]);
    if (begin == MP_SPACES_NONE) continue;
    mp_spaces_take(s, begin, kernel, access[i].bytes, s->prefetched);
    mp_spaces_copy(s, kernel, access[i].bytes);
    access[i].space = MP_SPACE_PREFETCHED;
  }
}
