// Kernels are what LAUNCH commands run. This is the contract for all makers of kernels.
//
// A kernel is made once per op at compile time, from a verified op with static shapes, and is
// immutable afterwards: any number of devices may run it at the same time. Its work is cut into
// `num_parts` independent parts. How it is cut depends on the op alone, never on the number of
// workers, so that the bits of a result never depend on the machine's load.
//
// Operands and results are dense, row-major arrays of stored elements (sim/numeric/dtype.h),
// 64-byte aligned. Values that an op's regions capture from outside follow the op's own operands,
// in the order of mp_op_captures. No pointer is NULL: tokens and arrays without elements have an
// address that may not be read (mp_empty_array). So a kernel may compute where its part of an array
// begins without checking for elements.
#ifndef MINIPOD_SIM_KERNELS_KERNEL_H_
#define MINIPOD_SIM_KERNELS_KERNEL_H_

#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/ir/module.h"

typedef struct mp_kernel_s mp_kernel_t;

typedef struct {
  const void *const *operands;
  void *const *results;
  void *scratch;  // kernel->scratch_bytes of this part's own, 64-byte aligned, never NULL
  uint32_t part;  // 0 .. num_parts-1
  void *shared;   // kernel->shared_bytes that all parts have, 64-byte aligned, at first not set
} mp_kernel_call_t;

// Runs one part. It may fail only for a reason that depends on the data; the error ends the
// execution on all devices. Hardly any kernel can fail.
typedef mp_status_t (*mp_kernel_run_t)(const mp_kernel_t *kernel, const mp_kernel_call_t *call);

// The most memory that the parts of a kernel share: so little that it needs no separate place.
enum { MP_KERNEL_SHARED_MOST = 8 * 1024 };

// A kernel. Makers embed this as the first member of their own struct.
struct mp_kernel_s {
  mp_kernel_run_t run;
  // Runs once when all parts are done, with scratch memory and part 0; it may read the parts'
  // results in the shared memory. NULL in all kernels of one part, and in those that need no last
  // step.
  mp_kernel_run_t finish;
  uint32_t num_parts;     // >= 1
  uint32_t shared_bytes;  // <= MP_KERNEL_SHARED_MOST; 0 if finish is NULL
  size_t scratch_bytes;   // per part
  uint32_t in_place;      // bit i: result 0 may have the same memory as operand i (i < 32)
  // The same for results 1, 2, ..., [the op's results - 1]; NULL: none of them may.
  const uint32_t *later_in_place;
  // bit i: result i begins as operand i, and the kernel copies the operand unless both have the
  // same memory. They may have it even if in_place does not say so; no other operand may have it.
  // For kernels of one part: then several workers can copy the operand before the kernel runs.
  uint32_t begins_as;
  // A kernel that communicates with other devices (sim/kernels/talk.h): then `run` only fails.
  const struct mp_talk_ops_s *talk;
  const mp_op_t *op;  // for messages; lives as long as the executable's module
};

// The operands, in bits, that may share memory with result `result` of the kernel's op.
static inline uint32_t mp_kernel_in_place(const mp_kernel_t *kernel, uint32_t result) {
  if (result == 0) return kernel->in_place;
  return kernel->later_in_place == NULL ? 0 : kernel->later_in_place[result - 1];
}

// Makes the kernel for an op, which is verified and has static shapes. The kernel and all that it
// points to live in `arena`. UNIMPLEMENTED by mp_op_error, with the reason, when there is none for
// it (an element type or attribute that is not supported).
typedef mp_status_t (*mp_kernel_maker_t)(mp_arena_t *arena, const mp_op_t *op,
                                         const mp_kernel_t **out_kernel);

// Declares a maker. Each room of kernels has a header that declares its makers; sim/kernels/table
// has the maker of each op.
#define MP_KERNEL_MAKER(name)                                         \
  MP_NODISCARD mp_status_t name(mp_arena_t *arena, const mp_op_t *op, \
                                const mp_kernel_t **out_kernel)

// The number of parts, at most 64, into which `total` items are cut so that each part has at least
// `grain` items; 1 if there are fewer. It is the same on every machine.
uint32_t mp_part_count(int64_t total, int64_t grain);
// The items [begin, end) of one of `num_parts` parts, which are all of nearly the same size.
void mp_part_range(int64_t total, uint32_t num_parts, uint32_t part, int64_t *out_begin,
                   int64_t *out_end);

#endif  // MINIPOD_SIM_KERNELS_KERNEL_H_
