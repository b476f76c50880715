// Views of memory: parts, other shapes and element types of a memref, and copies.
#ifndef MINIPOD_SIM_MOSAIC_RUN_MOSAIC_VIEW_H_
#define MINIPOD_SIM_MOSAIC_RUN_MOSAIC_VIEW_H_

#include "sim/mosaic/run/mosaic_program.h"

// A dense view of memory, of the type's dimensions.
void mp_mosaic_view_dense(const mp_mosaic_type_t *type, char *base, uint32_t root,
                          mp_mosaic_view_t *out_view);
// The bytes of an element of a memref in memory; semaphores have 8.
uint32_t mp_mosaic_element_bytes(const mp_mosaic_type_t *type);

// The part of a view that begins at `starts` and has `sizes` elements, `steps` apart (NULL: 1).
// OUT_OF_RANGE, with the dimension.
MP_NODISCARD mp_status_t mp_mosaic_view_part(const mp_mosaic_view_t *view, const int64_t *starts,
                                             const int64_t *sizes, const int64_t *steps,
                                             mp_mosaic_view_t *out_view);
// The same of a view to which DMAs go: it may end in the array's padding if it begins in the array.
MP_NODISCARD mp_status_t mp_mosaic_view_slice(const mp_mosaic_view_t *view, const int64_t *starts,
                                              const int64_t *sizes, const int64_t *steps,
                                              mp_mosaic_view_t *out_view);
// Without the dimensions of size 1 that `type` does not have.
MP_NODISCARD mp_status_t mp_mosaic_view_squeeze(const mp_mosaic_view_t *view,
                                                const mp_mosaic_type_t *type,
                                                mp_mosaic_view_t *out_view);
MP_NODISCARD mp_status_t mp_mosaic_view_reshape(const mp_mosaic_view_t *view,
                                                const mp_mosaic_type_t *type,
                                                mp_mosaic_view_t *out_view);
// `bits`: of an element as the view has them.
MP_NODISCARD mp_status_t mp_mosaic_view_bitcast(const mp_mosaic_view_t *view, int bits,
                                                const mp_mosaic_type_t *type,
                                                mp_mosaic_view_t *out_view);
// The same, for elements that are narrower than a byte, and `type`'s, which are not; false: it is
// not supported.
bool mp_mosaic_view_bitcast_narrow(const mp_mosaic_view_t *view, int bits,
                                   const mp_mosaic_type_t *type, mp_mosaic_view_t *out_view);

// The number of elements.
int64_t mp_mosaic_view_count(const mp_mosaic_view_t *view);
// The bytes that it has in memory.
int64_t mp_mosaic_view_bytes(const mp_mosaic_view_t *view);
// A dense array of a view's dimensions and elements.
mp_mosaic_view_t mp_mosaic_view_of_elements(const mp_mosaic_view_t *view, char *elements);
bool mp_mosaic_view_has_sizes_of(const mp_mosaic_view_t *view, const mp_mosaic_view_t *other);
// Where the element of this number in row-major order is, in bytes from the first one.
static inline int64_t mp_mosaic_view_offset(const int64_t *dims, const int64_t *strides,
                                            uint32_t rank, int64_t index) {
  int64_t at = 0;
  for (uint32_t d = rank; d-- > 0; index /= dims[d]) at += index % dims[d] * strides[d];
  return at;
}
// Whether its elements lie one after the other.
bool mp_mosaic_view_is_dense(const mp_mosaic_view_t *view);

// Copy all elements to or from a vector, or between views of the same sizes. The only error is
// UNIMPLEMENTED, for parts of split views that do not consist of whole stored elements.
MP_NODISCARD mp_status_t mp_mosaic_view_read(const mp_mosaic_view_t *view, void *vector);
MP_NODISCARD mp_status_t mp_mosaic_view_write(const mp_mosaic_view_t *view, const void *vector);
MP_NODISCARD mp_status_t mp_mosaic_view_copy(const mp_mosaic_view_t *to,
                                             const mp_mosaic_view_t *from);

// ---- tile padding ----

// Gives a whole array in HBM the room that its tiles have on a TPU.
void mp_mosaic_view_make_room(const mp_mosaic_type_t *type, mp_mosaic_view_t *view);
bool mp_mosaic_view_is_padded(const mp_mosaic_view_t *view);
// The view without its padding.
mp_mosaic_view_t mp_mosaic_view_kept(const mp_mosaic_view_t *view);
// As mp_mosaic_view_copy, for views with padding, of elements of `dtype`: what is written to
// padding is lost, and what is read from it has no meaning.
MP_NODISCARD mp_status_t mp_mosaic_view_dma(const mp_mosaic_view_t *to,
                                            const mp_mosaic_view_t *from, mp_dtype_t dtype);
// The same from and to elements that lie one after the other.
MP_NODISCARD mp_status_t mp_mosaic_view_dma_read(const mp_mosaic_view_t *from, mp_dtype_t dtype,
                                                 void *elements);
MP_NODISCARD mp_status_t mp_mosaic_view_dma_write(const mp_mosaic_view_t *to, const void *elements);

// ---- pieces ----

// The same if one of them has words of elements narrower than a byte (part_bits), and the same
// sizes.
MP_NODISCARD mp_status_t mp_mosaic_view_copy_narrow(const mp_mosaic_view_t *to,
                                                    const mp_mosaic_view_t *from);
// Calls `see` for each piece of memory that the view consists of, or with a mask (one byte for each
// element, not for packed memrefs) those elements for which it is not zero; until `see` fails. A
// view's padding has no pieces.
typedef mp_status_t (*mp_mosaic_view_see_t)(void *context, char *at, size_t bytes);
MP_NODISCARD mp_status_t mp_mosaic_view_walk(const mp_mosaic_view_t *view, const uint8_t *mask,
                                             mp_mosaic_view_see_t see, void *context);

// Writes the elements for which the mask, one byte each, is not zero.
MP_NODISCARD mp_status_t mp_mosaic_view_write_masked(const mp_mosaic_view_t *view,
                                                     const void *vector, const uint8_t *mask);

#endif  // MINIPOD_SIM_MOSAIC_RUN_MOSAIC_VIEW_H_
