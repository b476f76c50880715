// GSPMD sharding strings, as mhlo.sharding attributes carry them (HloSharding's text form):
//
//   sharding := "{" body "}"
//   body     := "replicated" | "manual" | "unreduced" | "unknown" | "maximal device=" INT
//             | "devices=[" INT,... "]" ("<=[" INT,... "]" ("T(" INT,... ")")? | INT,...)
//               (" last_tile_dim_replicate" | " last_tile_dims={" kind,... "}")?
//
// plus trailing " shard_as N" or " shard_like N" (the number of a sharding group) and
// " metadata={...}", which means nothing here.
#ifndef MINIPOD_SIM_SPMD_GSPMD_GSPMD_H_
#define MINIPOD_SIM_SPMD_GSPMD_GSPMD_H_

#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/base/str.h"
#include "sim/spmd/sharding/placement.h"

typedef enum {
  MP_GSPMD_REPLICATED,
  MP_GSPMD_MANUAL,
  MP_GSPMD_UNREDUCED,
  MP_GSPMD_UNKNOWN,
  MP_GSPMD_MAXIMAL,
  MP_GSPMD_TILED,
} mp_gspmd_kind_t;

typedef struct {
  mp_gspmd_kind_t kind;
  int64_t device;          // MAXIMAL
  uint32_t num_dims;       // TILED: tensor dimensions, then subgroup dimensions
  uint32_t num_subgroups;  // trailing dimensions of `dims` that are subgroups
  const int64_t *dims;
  const mp_gspmd_kind_t *subgroups;  // [num_subgroups]: REPLICATED, MANUAL, UNREDUCED, MAXIMAL
  int64_t num_devices;               // product of dims
  const int64_t *devices;            // [num_devices] partition ids, row-major
  int64_t group;                     // shard_as, shard_like; -1: none
} mp_gspmd_sharding_t;

// Parses a sharding; its arrays are in `arena`. INVALID_ARGUMENT with the position and what was
// expected there, and when there are more tiles than `max_devices`.
MP_NODISCARD mp_status_t mp_gspmd_parse(mp_arena_t *arena, mp_str_t text, int64_t max_devices,
                                        mp_gspmd_sharding_t *out_sharding);

// Checks that a TILED sharding names every partition once; otherwise INVALID_ARGUMENT. Uses `arena`
// for temporaries.
MP_NODISCARD mp_status_t mp_gspmd_check_devices(mp_arena_t *arena,
                                                const mp_gspmd_sharding_t *sharding,
                                                uint32_t num_partitions);

// The same as mp_placement_from_sdy, for such a string.
MP_NODISCARD mp_status_t mp_placement_from_gspmd(const mp_spmd_scope_t *scope,
                                                 const mp_type_t *type, mp_str_t sharding,
                                                 const mp_boxes_t **out_boxes);

#endif  // MINIPOD_SIM_SPMD_GSPMD_GSPMD_H_
