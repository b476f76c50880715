// Gathers of few elements by constant indices: the place of each element is known when the kernel
// is made. Programs that simulate rigid bodies consist of such gathers, of some rows each.
#include <string.h>

#include "sim/base/vector.h"
#include "sim/kernels/movement/gather.h"
#include "sim/kernels/movement/movement_makers.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/strided.h"

// The most elements of the result, and of the operand, which is numbered once to find the places.
enum { MOST_ELEMENTS = 4096, MOST_NUMBERED = 1 << 16 };

typedef struct {
  mp_kernel_t base;
  int64_t count, width;  // pieces of `width` elements, which are neighbours in the operand
  uint32_t piece_bytes;
  const int32_t *places;  // [count]: the first element of each piece
} known_kernel_t;

// ---- running ----

#define TAKE_ONES(T)                                                                             \
  MP_VECTOR static void gather_known_ones_##T(int64_t n, const void *in_, const int32_t *places, \
                                              void *out_) {                                      \
    const T *in = in_;                                                                           \
    T *restrict out = out_;                                                                      \
    MP_INDEPENDENT for (int64_t i = 0; i < n; ++i) out[i] = in[places[i]];                       \
  }
TAKE_ONES(uint32_t)
TAKE_ONES(uint64_t)

// Copies pieces of a size that is a constant wherever this is called.
static inline void gather_known_pieces(const known_kernel_t *self, int64_t size, const char *in,
                                       const int64_t bytes, char *out) {
  for (int64_t i = 0; i < self->count; ++i, out += bytes) {
    memcpy(out, in + self->places[i] * size, (size_t)bytes);
  }
}

static void gather_known_take(const known_kernel_t *self, int64_t size, const char *in, char *out) {
  switch (self->piece_bytes) {
    case 4:
      gather_known_ones_uint32_t(self->count, in, self->places, out);
      break;
    case 8:
      if (size == 8) {
        gather_known_ones_uint64_t(self->count, in, self->places, out);
      } else {
        gather_known_pieces(self, size, in, 8, out);
      }
      break;
    case 12:
      gather_known_pieces(self, size, in, 12, out);
      break;
    case 16:
      gather_known_pieces(self, size, in, 16, out);
      break;
    default:
      gather_known_pieces(self, size, in, self->piece_bytes, out);
      break;
  }
}

static mp_status_t gather_known_run(const mp_kernel_t *kernel, const mp_kernel_call_t *call) {
  const known_kernel_t *self = (const known_kernel_t *)kernel;
  gather_known_take(self, self->piece_bytes / self->width, call->operands[0], call->results[0]);
  return NULL;
}

// ---- making ----

// The value's constant, possibly in another shape; NULL if the value is not constant.
static const mp_op_t *gather_known_constant(const mp_value_t *value) {
  const mp_op_t *op = value->op;
  while (op != NULL && op->code == MP_OP_RESHAPE) op = op->operands[0]->op;
  return op != NULL && op->code == MP_OP_CONSTANT ? op : NULL;
}

static bool gather_known_can_be(const mp_kernel_t *kernel, const mp_op_t *op) {
  const mp_op_t *outer = op->parent == NULL ? NULL : op->parent->parent_op;
  const size_t size = mp_dtype_size(op->operands[0]->type->dtype);
  const int64_t in = mp_shape_count(op->operands[0]->type);
  const int64_t out = mp_shape_count(op->results[0].type);
  // A gather that ends a fused op takes its indices from tiles.
  return gather_known_constant(op->operands[1]) != NULL && kernel->num_parts == 1 &&
         (outer == NULL || outer->code != MP_OP_FUSION) && (size == 4 || size == 8) && in > 0 &&
         in <= MOST_NUMBERED && out > 0 && out <= MOST_ELEMENTS;
}

// The indices as the kernel reads them; NULL if there is no memory, or the constant has another
// form.
static const void *gather_known_indices(mp_arena_t *scratch, const mp_op_t *op) {
  void *indices = mp_arena_alloc(scratch, (size_t)mp_shape_bytes(op->results[0].type) + 1);
  return indices != NULL && mp_copy_constant(op, indices) ? indices : NULL;
}

// Runs the kernel on an operand that numbers its elements, so the result is the places.
static int32_t *gather_known_find_places(mp_arena_t *scratch, const mp_kernel_t *kernel,
                                         const mp_op_t *op, const void *indices) {
  const size_t size = mp_dtype_size(op->operands[0]->type->dtype);
  const int64_t in = mp_shape_count(op->operands[0]->type);
  const int64_t out = mp_shape_count(op->results[0].type);
  char *numbers = mp_arena_alloc(scratch, (size_t)in * size);
  char *found = mp_arena_alloc(scratch, (size_t)out * size);
  char *memory = mp_arena_alloc(scratch, kernel->scratch_bytes + 64);
  int32_t *places = MP_ARENA_ARRAY(scratch, int32_t, (size_t)out);
  if (numbers == NULL || found == NULL || memory == NULL || places == NULL) return NULL;
  for (int64_t i = 0; i < in; ++i) memcpy(numbers + (size_t)i * size, &(int32_t){(int32_t)i}, 4);
  const mp_kernel_call_t call = {.operands = (const void *const[]){numbers, indices},
                                 .results = (void *const[]){found},
                                 .scratch = memory + (64 - (uintptr_t)memory % 64) % 64};
  const mp_status_t status = kernel->run(kernel, &call);
  const bool is_ok = status == NULL;
  mp_status_ignore(status);
  for (int64_t i = 0; i < out; ++i) memcpy(&places[i], found + (size_t)i * size, 4);
  return is_ok ? places : NULL;
}

// The largest piece size, in neighbours, into which all of the result divides.
static int64_t gather_known_width(const int32_t *places, int64_t count) {
  int64_t width = count;
  for (int64_t i = 1, begin = 0; i <= count; ++i) {
    if (i < count && places[i] == places[i - 1] + 1) continue;
    for (int64_t rest = i - begin; rest != 0;) {  // the greatest common divisor
      const int64_t next = width % rest;
      width = rest;
      rest = next;
    }
    begin = i;
  }
  return width;
}

static mp_status_t gather_known_make(mp_arena_t *arena, mp_arena_t *scratch,
                                     const mp_kernel_t *kernel, const mp_op_t *op,
                                     const mp_kernel_t **out_kernel) {
  const void *indices = gather_known_indices(scratch, gather_known_constant(op->operands[1]));
  const int32_t *places =
      indices == NULL ? NULL : gather_known_find_places(scratch, kernel, op, indices);
  if (places == NULL) return NULL;
  known_kernel_t *self = MP_ARENA_NEW(arena, known_kernel_t);
  MP_RETURN_IF_NULL(self);
  mp_kernel_init(&self->base, gather_known_run, op);
  const int64_t count = mp_shape_count(op->results[0].type);
  self->width = gather_known_width(places, count);
  self->count = count / self->width;
  self->piece_bytes = (uint32_t)((size_t)self->width * mp_dtype_size(op->results[0].type->dtype));
  int32_t *firsts = MP_ARENA_ARRAY(arena, int32_t, (size_t)self->count);
  MP_RETURN_IF_NULL(firsts);
  for (int64_t i = 0; i < self->count; ++i) firsts[i] = places[i * self->width];
  self->places = firsts;
  *out_kernel = &self->base;
  return NULL;
}

mp_status_t mp_kernel_make_gather(mp_arena_t *arena, const mp_op_t *op,
                                  const mp_kernel_t **out_kernel) {
  MP_RETURN_IF_ERROR(mp_gather_make(arena, op, out_kernel));
  if (!gather_known_can_be(*out_kernel, op)) return NULL;
  mp_arena_t *scratch = NULL;
  MP_RETURN_IF_ERROR(mp_arena_create(&scratch));
  const mp_status_t status = gather_known_make(arena, scratch, *out_kernel, op, out_kernel);
  mp_arena_release(scratch);
  return status;
}
