// The time of a TPU kernel on a chip, by its own program.
//
// The scalar part of the kernel runs: grid, index maps, loops, conditions, and the sizes of DMAs.
// Vector code between two of these is counted by the units that it uses (price_code.h). Copies of
// blocks overlap with compute as libtpu pipelines them (price_grid.c). README.md has the rules and
// how well they agree with libtpu's final bundles.
//
// Pure functions; thread-safe.
#ifndef MINIPOD_SIM_MOSAIC_PRICE_PRICE_H_
#define MINIPOD_SIM_MOSAIC_PRICE_PRICE_H_

#include "sim/mosaic/ir/mosaic_ir.h"

// The units of a core. A bundle has so many slots for each, or the unit takes so many cycles.
typedef enum {
  MP_PRICE_ARITHMETIC,  // operations on vector registers
  MP_PRICE_LOAD,        // vector registers from VMEM
  MP_PRICE_STORE,       // the same, to VMEM
  MP_PRICE_MEMORY,      // both
  MP_PRICE_FUNCTION,    // exp, tanh, reciprocals: 1,024 elements
  MP_PRICE_LANES,       // registers through the unit that moves elements across lanes
  MP_PRICE_MATRIX,      // cycles of all matrix units
  MP_PRICE_SCALAR,      // operations on scalars
  MP_PRICE_UNIT_COUNT
} mp_price_unit_t;

const char *mp_price_unit_name(mp_price_unit_t unit);

// Special cases that were found in bundles. Each can be switched off (sim/chip/rules).
typedef struct {
  bool latency;   // straight code takes the longest chain of latencies in addition to its units
  bool rows;      // a tile of the matrix unit takes no less than its weights' loading
  bool overhead;  // steps of a grid, conditions and iterations have scalar code
} mp_price_rules_t;

// One core.
typedef struct {
  double clock;      // bundles per second
  bool is_wide;      // v6e and later: matrix units of 256 x 256, arithmetic on bf16
  bool has_s8;       // matmuls of 8-bit integers run at twice the rate of bf16
  double bandwidth;  // bytes of HBM per second, of this core
  double latency;    // seconds of a DMA to or from HBM, besides its bytes
  uint32_t cores;    // that divide the outermost parallel dimension of a grid
  mp_price_rules_t rules;
} mp_price_chip_t;

// An operand of the call in row-major order. NULL: its values are not known.
typedef struct {
  const void *data;
  int64_t count;  // elements
  bool is_splat;  // data has one element for all
} mp_price_operand_t;

enum { MP_PRICE_MAX_DIMS = 16 };

// Rank 0: there is none.
typedef struct {
  uint32_t rank;
  int64_t dims[MP_PRICE_MAX_DIMS];
} mp_price_shape_t;

typedef struct {
  double seconds;
  double fill;      // of these: until the first step has its blocks
  double compute;   // in which the core computes
  double wait;      // for DMAs, after the fill
  double steps;     // of the grid, of one core
  double copies;    // DMAs, blocks' included
  double bytes;     // of HBM that all cores move
  double flops;     // of matmuls
  double vmem;      // bytes of VMEM: blocks, each with its buffers, and scratch memory
  double overhead;  // seconds that neither compute nor bandwidth needs, but the number of steps:
                    // their scalar code, and the latency of their DMAs
  mp_price_shape_t grid, block;       // the grid that cores divide; the largest block
  double units[MP_PRICE_UNIT_COUNT];  // seconds that each unit needs
  bool is_guessed;  // a value that is not known decides something: the more expensive side counts,
                    // a loop runs once, a block is fetched in each step
  bool is_sampled;  // the rest of a long grid has the mean of the steps that were run
} mp_price_t;

// The price of a call whose kernel is `module`. `operands` has those of the call, dynamic bounds
// and prefetched ones first. Errors: memory is short; UNIMPLEMENTED or INVALID_ARGUMENT for a
// module that has no price (SparseCore, windows that do not fit to the function).
MP_NODISCARD mp_status_t mp_price_kernel(const mp_price_chip_t *chip,
                                         const mp_mosaic_module_t *module,
                                         const mp_price_operand_t *operands, uint32_t num_operands,
                                         mp_price_t *out_price);

#endif  // MINIPOD_SIM_MOSAIC_PRICE_PRICE_H_
