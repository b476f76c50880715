// Runs the scalar part of functions, and counts cycles of their code.
//
// A value is known or not. Memory of scalars (SMEM) is followed element by element; arrays in VMEM
// and HBM have no contents. Private to this folder.
#ifndef MINIPOD_SIM_MOSAIC_PRICE_PRICE_WALK_H_
#define MINIPOD_SIM_MOSAIC_PRICE_PRICE_WALK_H_

#include "sim/mosaic/price/price_code.h"

enum { MP_PRICE_MAX_RANK = 8, MP_PRICE_MAX_GRID = MP_PRICE_MAX_DIMS, MP_PRICE_SEMAPHORES = 64 };

// ---- values ----

// Memory that views are of: an argument or an allocation.
typedef struct {
  mp_dtype_t dtype;
  int64_t count;   // cells
  int64_t *cells;  // of SMEM; NULL: nothing is known
  bool *is_known;  // [count]
} mp_price_object_t;

typedef struct {
  mp_price_object_t *object;  // NULL: not known
  uint32_t rank;
  bool has_offset, is_sized;
  int64_t offset;  // in elements
  int64_t dims[MP_PRICE_MAX_RANK], strides[MP_PRICE_MAX_RANK];
} mp_price_view_t;

// A value of a function: a scalar or a view.
typedef struct {
  bool is_known;
  int64_t number;
  mp_price_view_t *view;
} mp_price_slot_t;

// ---- functions, prepared ----

typedef struct mp_price_plan_s mp_price_plan_t;

typedef enum { MP_PRICE_CODE, MP_PRICE_EVALUATE, MP_PRICE_FLOW, MP_PRICE_ASYNC } mp_price_kind_t;

typedef struct {
  mp_price_kind_t kind;
  const mp_mosaic_op_t *op;
  const mp_price_code_t *code;          // CODE
  const mp_price_plan_t *const *parts;  // FLOW: of its regions
} mp_price_node_t;

// A block as a list of what is to be done.
struct mp_price_plan_s {
  const mp_mosaic_block_t *block;
  uint32_t num_nodes;
  mp_price_node_t *nodes;
  double cycles;  // of all code in it, each region once
  bool is_plain;  // code and scalars alone, without stores of scalars
};

typedef struct {
  const mp_mosaic_func_t *func;
  const mp_price_plan_t *plan;
  mp_price_slot_t *slots;  // by id of the value
} mp_price_func_t;

// A semaphore: when the last DMA that signals it is done.
typedef struct {
  const mp_price_object_t *object;
  bool has_offset;
  int64_t offset;
  double done;
} mp_price_semaphore_t;

typedef struct {
  const mp_price_chip_t *chip;
  const mp_mosaic_module_t *module;
  mp_arena_t *arena;
  uint32_t num_funcs;
  mp_price_func_t *funcs;  // [number of the module's functions]
  const int64_t *bounds;   // of the grid
  // The course of time, in cycles.
  double now, dma_free;
  uint32_t num_semaphores;
  mp_price_semaphore_t semaphores[MP_PRICE_SEMAPHORES];
  uint64_t evaluated;
  double compute, wait, copies, bytes, flops;
  double units[MP_PRICE_UNIT_COUNT];
  bool is_guessed, is_sampled;
} mp_price_walk_t;

// So many scalar ops are evaluated; longer loops and grids are sampled.
enum { MP_PRICE_EVALUATIONS = 2000000 };

// price_plan.c: the prepared function.
MP_NODISCARD mp_status_t mp_price_prepare(mp_price_walk_t *walk, const mp_mosaic_func_t *func,
                                          mp_price_func_t **out_func);

// price_walk.c: runs a function whose arguments are set.
MP_NODISCARD mp_status_t mp_price_run(mp_price_walk_t *walk, mp_price_func_t *func);

// price_scalar.c: evaluates an op on scalars or views.
MP_NODISCARD mp_status_t mp_price_evaluate(mp_price_walk_t *walk, mp_price_func_t *func,
                                           const mp_mosaic_op_t *op);
// A view of all of an object.
MP_NODISCARD mp_status_t mp_price_view(mp_price_walk_t *walk, const mp_mosaic_type_t *type,
                                       mp_price_object_t *object, mp_price_view_t **out_view);

// price_dma.c: DMAs and semaphores.
void mp_price_async(mp_price_walk_t *walk, mp_price_func_t *func, const mp_mosaic_op_t *op);
// A DMA of so many bytes from or to HBM that begins now: when it is done.
double mp_price_copy(mp_price_walk_t *walk, double bytes);
// Waits until then.
void mp_price_wait(mp_price_walk_t *walk, double until);

#endif  // MINIPOD_SIM_MOSAIC_PRICE_PRICE_WALK_H_
