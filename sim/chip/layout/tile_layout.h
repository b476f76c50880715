// Layouts on TPUs: which dimension of an array is in the lanes of tiles of 8 x 128 elements, and
// which is in their sublanes. The order of all other dimensions costs nothing and is not kept.
#ifndef MINIPOD_SIM_CHIP_LAYOUT_TILE_LAYOUT_H_
#define MINIPOD_SIM_CHIP_LAYOUT_TILE_LAYOUT_H_

#include "sim/base/arena.h"
#include "sim/ir/module.h"

enum {
  MP_TILE_LANES = 128,
  MP_TILE_SUBLANES = 8,
  MP_TILE_ELEMENTS = MP_TILE_LANES * MP_TILE_SUBLANES
};

// Dimensions of a type; -1: none, as of scalars and vectors. Dimensions of one element are none.
// `is_split`: the dimension before the lane's is in the lanes, too: a reshape made two of one,
// which do not fill tiles by themselves. Sums and elementwise ops take them so.
typedef struct {
  int32_t lane, sublane;
  bool is_split;
} mp_tile_layout_t;

static inline bool mp_tile_layout_equal(mp_tile_layout_t a, mp_tile_layout_t b) {
  return a.lane == b.lane && a.sublane == b.sublane && a.is_split == b.is_split;
}

// ---- layout_tiles.c ----

// The bytes in tiles as a multiple of the bytes without padding. Few rows have smaller tiles.
double mp_tile_padding(const mp_type_t *type, mp_tile_layout_t layout);
// The same of the layouts with a dimension in the lanes: the least of them.
double mp_tile_padding_by_lane(const mp_type_t *type, int32_t lane);
// The layout with the least padding, the last dimensions among equals: that of the program's
// arguments and results (libtpu's compact layout).
mp_tile_layout_t mp_tile_layout_compact(const mp_type_t *type);
// The last dimension of more than one element besides `dim`; -1: there is none.
int32_t mp_tile_layout_other(const mp_type_t *type, int32_t dim);
// Of two dimensions the one in the lanes that pads less; `lane` among equals.
mp_tile_layout_t mp_tile_layout_of(const mp_type_t *type, int32_t sublane, int32_t lane);

// ---- layout_reshape.c ----

// The layout of `to`, of the same elements as `from`, in which the same bytes are in the same
// places. False: there is none, so that a reshape copies.
bool mp_tile_layout_reshape(const mp_type_t *from, const mp_type_t *to, mp_tile_layout_t layout,
                            mp_tile_layout_t *out);

// Whether the last dimension is in the lanes: no other dimension needs less padding there.
bool mp_tile_has_last_in_lanes(const mp_type_t *type);
// Whether the last dimension is in the tiles, in lanes or in sublanes.
bool mp_tile_has_last_in_tiles(const mp_type_t *type);

// ---- layout_transfer.c ----

// The layout that an op's result has if operand `operand` has this one, and the other way round:
// of ops that take arrays in any layout. False: the op does not determine it.
bool mp_tile_layout_forward(const mp_op_t *op, uint32_t operand, mp_tile_layout_t layout,
                            mp_tile_layout_t *out);
bool mp_tile_layout_backward(const mp_op_t *op, uint32_t operand, mp_tile_layout_t layout,
                             mp_tile_layout_t *out);

// ---- layout_lanes.c ----

// Gathers and scatters of slices, and windows: slices have their last dimension in the lanes, and
// windows do not extend along the lanes.
bool mp_tile_layout_is_by_lanes(const mp_op_t *op);
// The layout in which such an op reads an operand that has this one, and in which it writes its
// results if it reads operand 0 in `read`.
mp_tile_layout_t mp_tile_layout_lanes(const mp_op_t *op, uint32_t operand, mp_tile_layout_t has);
mp_tile_layout_t mp_tile_layout_by_lanes(const mp_op_t *op, mp_tile_layout_t read);

// ---- layout_matmul.c ----

// Whether these are vectors by matrices with a side below 64, in a batch: libtpu multiplies
// elements and sums them up, in any layout.
bool mp_tile_is_vector_batch(double batch, double m, double n, double k);
// Whether a matmul or convolution reads operand `operand` in this layout, or writes its result in
// it, and the layout that it prefers.
bool mp_tile_layout_is_matmul(const mp_op_t *op);
bool mp_tile_layout_reads(const mp_op_t *op, uint32_t operand, mp_tile_layout_t layout);
bool mp_tile_layout_writes(const mp_op_t *op, mp_tile_layout_t layout);
mp_tile_layout_t mp_tile_layout_read(const mp_op_t *op, uint32_t operand);
mp_tile_layout_t mp_tile_layout_written(const mp_op_t *op);

#endif  // MINIPOD_SIM_CHIP_LAYOUT_TILE_LAYOUT_H_
