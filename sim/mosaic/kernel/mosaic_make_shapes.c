// Blocks that a TPU's compiler refuses. The rules are those of JAX's lowering, which libtpu 0.0.52
// has, too (E2002, misaligned block and tiling).
#include "sim/mosaic/kernel/mosaic_maker.h"

enum { LANES = 128, SUBLANES = 8, WORD_BITS = 32 };

// A size that is the array's, or a multiple of `unit`.
static mp_status_t mosaic_make_shapes_dim(const mp_mosaic_maker_t *maker,
                                          const mp_mosaic_window_t *window, uint32_t d,
                                          int64_t unit) {
  const int64_t size = window->type->dims[d];
  if (size == window->dims[d] || size % unit == 0) return NULL;
  return mp_status_make(
      MP_INVALID_ARGUMENT,
      "Mosaic function '%s', %s %u (argument %u of the kernel): dimension %u of "
      "its block has %lld elements; a TPU's compiler requires a multiple of %lld, "
      "or all %lld of the array",
      maker->kernel->name, window->is_result ? "result" : "operand", window->array, window->arg, d,
      (long long)size, (long long)unit, (long long)window->dims[d]);
}

static mp_status_t mosaic_make_shapes_window(const mp_mosaic_maker_t *maker,
                                             const mp_mosaic_window_t *window) {
  const mp_mosaic_type_t *type = window->type;
  const int bits = mp_dtype_bits(type->dtype) == 1 ? WORD_BITS : mp_dtype_bits(type->dtype);
  if (window->is_whole || !window->has_entry || type->space != MP_MOSAIC_SPACE_VMEM) return NULL;
  if (type->rank == 0) return NULL;
  if (type->rank == 1) {
    const int packing = bits < WORD_BITS ? WORD_BITS / bits : 1;
    return mosaic_make_shapes_dim(maker, window, 0, LANES * packing);
  }
  MP_RETURN_IF_ERROR(mosaic_make_shapes_dim(maker, window, type->rank - 1, LANES));
  return mosaic_make_shapes_dim(maker, window, type->rank - 2, SUBLANES);
}

mp_status_t mp_mosaic_make_shapes(const mp_mosaic_maker_t *maker) {
  for (uint32_t w = 0; w < maker->kernel->num_windows; ++w) {
    MP_RETURN_IF_ERROR(mosaic_make_shapes_window(maker, &maker->kernel->windows[w]));
  }
  return NULL;
}
