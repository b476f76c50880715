// scatter: chooses the positions of a part; and scatters single elements, or lines of them, one
// element of the window after the other, each for all positions.
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "sim/base/assert.h"
#include "sim/base/vector.h"
#include "sim/kernels/movement/scatter.h"
#include "sim/kernels/shape.h"

// Adds component `from` of n positions, `num` elements from one position to the next, to their
// offsets; -1 for windows that are skipped. The usual distance of one is a constant for the C
// compiler, which then loads vectors of neighbours.
#define FIND_OFFSETS(T)                                                                    \
  static inline __attribute__((always_inline)) void scatter_elements_find_by_##T(          \
      const mp_scatter_component_t *component, const T *from, int64_t num, int64_t n,      \
      int64_t *offsets) {                                                                  \
    const int64_t limit = component->limit, stride = component->stride;                    \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) {                                       \
      const int64_t start = from[i * num];                                                 \
      const bool inside = (start >= 0) & (start <= limit) & (offsets[i] >= 0);             \
      offsets[i] = inside ? offsets[i] + start * stride : -1;                              \
    }                                                                                      \
  }                                                                                        \
  MP_VECTOR static void scatter_elements_find_##T(const mp_scatter_component_t *component, \
                                                  const T *from, int64_t num, int64_t n,   \
                                                  int64_t *offsets) {                      \
    if (num == 1) {                                                                        \
      scatter_elements_find_by_##T(component, from, 1, n, offsets);                        \
    } else {                                                                               \
      scatter_elements_find_by_##T(component, from, num, n, offsets);                      \
    }                                                                                      \
  }
FIND_OFFSETS(int32_t)
FIND_OFFSETS(uint32_t)
FIND_OFFSETS(int64_t)

// The offsets in the operand to which positions [first, first + n) point.
static void scatter_elements_find_offsets(const mp_scatter_t *kernel, const void *indices,
                                          int64_t first, int64_t n, int64_t *out_offsets) {
  MP_ASSERT(n <= MP_REGION_MAX_LANES && first + n <= kernel->num_positions);
  const uint32_t num = kernel->num_components;
  for (int64_t i = 0; i < n; ++i) out_offsets[i] = 0;
  for (uint32_t c = 0; c < num; ++c) {
    const int64_t at = first * num + c;
    switch (kernel->index_dtype) {
      case MP_DTYPE_S32:
        scatter_elements_find_int32_t(&kernel->components[c], (const int32_t *)indices + at, num, n,
                                      out_offsets);
        break;
      case MP_DTYPE_U32:
        scatter_elements_find_uint32_t(&kernel->components[c], (const uint32_t *)indices + at, num,
                                       n, out_offsets);
        break;
      case MP_DTYPE_S64:
        scatter_elements_find_int64_t(&kernel->components[c], (const int64_t *)indices + at, num, n,
                                      out_offsets);
        break;
      default:
        MP_ASSERT_NOT_REACHED();  // mp_scatter_recognize_elements accepts only the types above
    }
  }
}

// Lists those of n offsets that are in [low, high), in their order; returns their number.
// Branch-free, because a branch would be mispredicted half of the time. `chosen` has room for n and
// one more vector.
static int64_t scatter_elements_choose_portable(const int64_t *offsets, int64_t n, int64_t low,
                                                int64_t high, uint32_t *chosen) {
  const uint64_t size = (uint64_t)(high - low);
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    chosen[count] = (uint32_t)i;
    count += (uint64_t)(offsets[i] - low) < size;
  }
  return count;
}

#ifdef __x86_64__
MP_AVX512 static int64_t scatter_elements_choose_avx512(const int64_t *offsets, int64_t n,
                                                        int64_t low, int64_t high,
                                                        uint32_t *chosen) {
  const __m512i first = _mm512_set1_epi64(low), size = _mm512_set1_epi64(high - low);
  const __m256i step = _mm256_set1_epi32(8);
  __m256i numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  int64_t count = 0;
  for (int64_t i = 0; i < n; i += 8) {
    const __mmask8 rest = (__mmask8)(n - i < 8 ? (1 << (n - i)) - 1 : 0xff);
    const __m512i shifted = _mm512_sub_epi64(_mm512_maskz_loadu_epi64(rest, offsets + i), first);
    const __mmask8 inside = _mm512_mask_cmplt_epu64_mask(rest, shifted, size);
    _mm256_storeu_si256((__m256i *)(void *)(chosen + count),
                        _mm256_maskz_compress_epi32(inside, numbers));
    count += __builtin_popcount(inside);
    numbers = _mm256_add_epi32(numbers, step);
  }
  return count;
}
#endif

static int64_t scatter_elements_choose(const int64_t *offsets, int64_t n, int64_t low, int64_t high,
                                       uint32_t *chosen) {
#ifdef __x86_64__
  if (mp_has_avx512()) return scatter_elements_choose_avx512(offsets, n, low, high, chosen);
#endif
  return scatter_elements_choose_portable(offsets, n, low, high, chosen);
}

// Positions may repeat, so elements are added in order.
#define ADD_AT(T)                             \
  do {                                        \
    T *to = result;                           \
    const T *from = updates;                  \
    for (int64_t i = 0; i < n; ++i) {         \
      const int64_t at = offsets[chosen[i]];  \
      to[at] = (T)(to[at] + from[chosen[i]]); \
    }                                         \
  } while (0)

// Combines the chosen elements of the updates.
static void scatter_elements_apply(const mp_scatter_t *kernel, int64_t n, const uint32_t *chosen,
                                   const int64_t *offsets, const void *updates, void *result) {
  int64_t size = (int64_t)kernel->sizes[0];
  switch (kernel->adds) {
    case MP_DTYPE_F32:
      ADD_AT(float);
      return;
    case MP_DTYPE_F64:
      ADD_AT(double);
      return;
    case MP_DTYPE_U32:
      ADD_AT(uint32_t);
      return;
    case MP_DTYPE_U64:
      ADD_AT(uint64_t);
      return;
    default:
      break;
  }
  for (int64_t i = 0; i < n; ++i) {
    char *to = (char *)result + offsets[chosen[i]] * size;
    const char *from = (const char *)updates + chosen[i] * size;
    const void *in[] = {to, from};
    if (kernel->sets) {
      mp_scatter_copy_element((size_t)size, to, from);
    } else {
      mp_ew_run(&kernel->binary, 1, in, to);
    }
  }
}

int64_t mp_scatter_choose(const mp_scatter_part_t *part, int64_t first, int64_t n) {
  const mp_scatter_t *kernel = part->kernel;
  MP_ASSERT(kernel->is_list);
  scatter_elements_find_offsets(kernel, part->call->operands[kernel->num_operands], first, n,
                                part->offsets);
  return scatter_elements_choose(part->offsets, n, part->low, part->high, part->chosen);
}

void mp_scatter_do_elements(const mp_scatter_part_t *part) {
  const mp_scatter_t *kernel = part->kernel;
  const mp_scatter_window_t *run = &kernel->run;
  const int64_t size = (int64_t)kernel->sizes[0];
  for (int64_t p = 0, n; p < kernel->num_positions; p += n) {
    n = mp_min_i64(kernel->num_positions - p, MP_REGION_MAX_LANES);
    const int64_t count = mp_scatter_choose(part, p, n);
    for (int64_t i = part->begin; i < part->end; ++i) {
      scatter_elements_apply(
          kernel, count, part->chosen, part->offsets,
          (const char *)part->call->operands[2] + (p + i * run->update_stride) * size,
          (char *)part->call->results[0] + i * run->operand_stride * size);
    }
  }
}

// Whether indices and updates are in the order of the positions; then sets kernel->update_step.
static bool scatter_elements_is_list(mp_scatter_t *kernel) {
  int64_t linear = 1, step = 0;  // positions from one of the dimension to the next
  if (kernel->num_components > 1 && kernel->component_stride != 1) return false;
  for (uint32_t i = kernel->num_position_dims; i-- > 0;) {
    const mp_scatter_position_t *dim = &kernel->position_dims[i];
    if (dim->batch_stride != 0) return false;
    if (dim->dim == 1) continue;
    if (step == 0) step = dim->update_stride;
    if (dim->update_stride != linear * step) return false;
    if (dim->index_stride != linear * kernel->num_components) return false;
    linear *= dim->dim;
  }
  kernel->update_step = step == 0 ? 1 : step;
  return kernel->index_dtype == MP_DTYPE_S32 || kernel->index_dtype == MP_DTYPE_U32 ||
         kernel->index_dtype == MP_DTYPE_S64;
}

void mp_scatter_recognize_elements(mp_scatter_t *kernel) {
  kernel->is_list = scatter_elements_is_list(kernel);
  if (!kernel->is_list || kernel->update_step != 1) return;
  if (kernel->num_operands != 1 || kernel->num_window_dims != 0) return;
  kernel->is_elements = kernel->sets || kernel->is_binary;
}
