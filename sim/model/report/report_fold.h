// What a program does at one line of its user's, in pieces of one size, as one row: an unrolled
// model has the same product once for each of its layers.
//
// Rows lie in an arena, as do the texts of places. Not thread-safe.
#ifndef MINIPOD_SIM_MODEL_REPORT_REPORT_FOLD_H_
#define MINIPOD_SIM_MODEL_REPORT_REPORT_FOLD_H_

#include "sim/base/containers/hash_map.h"
#include "sim/model/report/report_rows.h"

typedef struct {
  uint64_t hash;
  const char *text;
} mp_report_known_place_t;

typedef struct {
  uint64_t hash;
  uint32_t row;
} mp_report_known_row_t;

// The texts of places, each once: equal places have the same pointer.
typedef struct {
  mp_arena_t *arena;
  MP_HASH_MAP(mp_report_known_place_t) known;
} mp_report_places_t;

// What messages show of a location (loc.h): "dot_general at train.py:12:7, in
// flax/nnx/nn/linear.py:422:8".
MP_NODISCARD mp_status_t mp_report_place(mp_report_places_t *places, const mp_loc_t *loc,
                                         const char **out_text);

// The one copy of a text.
MP_NODISCARD mp_status_t mp_report_intern(mp_report_places_t *places, mp_str_t text,
                                          const char **out_text);

typedef struct {
  MP_ARRAY(mp_report_op_t) rows;
  MP_HASH_MAP(mp_report_known_row_t) known;
} mp_report_ops_t;

// Adds an op, whose place is one of `places`, to the row of its like, or as a row.
MP_NODISCARD mp_status_t mp_report_ops_add(mp_arena_t *arena, mp_report_ops_t *ops,
                                           const mp_report_op_t *op);

typedef struct {
  MP_ARRAY(mp_report_layer_t) rows;
  MP_HASH_MAP(mp_report_known_row_t) known;
} mp_report_layers_t;

// Adds up what was done at an op of this location, under the name of its framework.
MP_NODISCARD mp_status_t mp_report_layers_add(mp_report_places_t *places,
                                              mp_report_layers_t *layers, const mp_loc_t *loc,
                                              mp_moment_t work, mp_moment_t traffic);

// ---- report_findings.c ----

// Makes what is found of a program: row->findings.
MP_NODISCARD mp_status_t mp_report_findings_make(mp_arena_t *arena, mp_report_places_t *places,
                                                 const mp_model_program_books_t *books,
                                                 mp_report_program_t *row);
// Copies the texts of a row's findings into the arena.
MP_NODISCARD mp_status_t mp_report_findings_own(mp_arena_t *arena, mp_report_program_t *row);
// Adds up the findings of equal programs.
void mp_report_findings_merge(mp_report_program_t *to, const mp_report_program_t *from);

// The time in which devices wait for collectives of the kind and groups of row->collective[c], at
// the place where most of it is; no time where a collective before it is such a one
// (report_exposed.c).
MP_NODISCARD mp_status_t mp_report_exposed(mp_report_places_t *places,
                                           const mp_report_program_t *row, uint32_t c,
                                           mp_report_finding_t *out_finding);

// Collectives of the same groups, at one place.
typedef struct {
  const mp_chip_collective_t *first;
  const char *place;
  mp_replay_meetings_t met;  // of all
} mp_report_meetings_t;

typedef struct {
  MP_ARRAY(mp_report_meetings_t) rows;
  MP_HASH_MAP(mp_report_known_row_t) known;
} mp_report_all_meetings_t;

// The same of a collective.
MP_NODISCARD mp_status_t mp_report_meetings_add(mp_arena_t *arena, mp_report_all_meetings_t *all,
                                                const mp_report_meetings_t *one);

// ---- report_sums.c: collectives that were made of several: of sums by the partitioner
// (sim/spmd/build/combine_sums), of any by the chip's compiler ----

// The place of a collective, as mp_report_place: of several that of the first, and how many other
// places there are: "dot_general at train.py:8:20 and 5 more".
MP_NODISCARD mp_status_t mp_report_sums_place(mp_report_places_t *places,
                                              const mp_chip_collective_t *collective,
                                              const char **out_text);
// As mp_report_layers_add: each of several has a share of the time by its bytes.
MP_NODISCARD mp_status_t mp_report_sums_add_layers(mp_report_places_t *places,
                                                   mp_report_layers_t *layers,
                                                   const mp_chip_collective_t *collective,
                                                   mp_moment_t traffic);

#endif  // MINIPOD_SIM_MODEL_REPORT_REPORT_FOLD_H_
