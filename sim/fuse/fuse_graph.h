// The graph of a block for fusion: its ops, which of them could be fused, and their users. Private
// to this folder.
//
// Ops that only move elements (mp_view_looks_through) are looked through on both sides: an op that
// reads a slice of a broadcast uses the op before the broadcast.
#ifndef MINIPOD_SIM_FUSE_FUSE_GRAPH_H_
#define MINIPOD_SIM_FUSE_FUSE_GRAPH_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/ir/module.h"

#define MP_FUSE_NONE UINT32_MAX

// What a fused op would read instead of one of its operands.
typedef struct {
  mp_value_t *value;   // NULL: nothing, because the operand is a constant or an iota
  bool is_whole;       // `value` has the same elements in the same order
  int64_t row;         // the operand repeats each element of `value` for a row of so many; 0: no
  bool is_transposed;  // rows of the operand are columns of `value`: read many rows at a time
} mp_fuse_source_t;

typedef struct {
  mp_op_t *op;
  bool is_member;     // could be fused
  bool is_reduction;  // of a member: makes a column of rows
  bool is_end;        // of a member: an op that is no step and only ends a group
  uint32_t operand;   // of an end: the operand that the group computes for it
  int64_t count;      // of a member: the elements of its result
  // The size in elements of the arrays that the member works on (or all members of the group, if it
  // is the first of one), and the length of their rows (1: there are no rows).
  int64_t full, row;
  uint32_t group;      // the first member of the group that it is in; MP_FUSE_NONE for others
  uint32_t next;       // the next member of the group; MP_FUSE_NONE at its end
  bool is_fused;       // its group becomes an op
  bool is_transposed;  // it, or the group whose first member it is, has a source that is
  const mp_fuse_source_t *sources;  // [op->num_operands]; of a member
  const uint32_t *users;            // [num_users] positions of the ops that use its results
  uint32_t num_users;
} mp_fuse_node_t;

typedef struct {
  mp_module_t *module;
  mp_arena_t *scratch;
  mp_block_t *block;
  uint32_t count;
  mp_fuse_node_t *nodes;  // by position in the block, which is also op->id
} mp_fuse_graph_t;

// Numbers the ops of the block and fills in the graph; no op is in a group of more than itself.
MP_NODISCARD mp_status_t mp_fuse_graph_create(mp_module_t *module, mp_block_t *block,
                                              mp_arena_t *scratch, mp_fuse_graph_t *out_graph);

// The node of the op whose result the value is; NULL if it is none of this block's.
mp_fuse_node_t *mp_fuse_node_of(const mp_fuse_graph_t *graph, const mp_value_t *value);

// ---- fuse_gathers.c ----

// Gives gathers by several indices that are joined for them one index that is computed; removes
// what is dead then.
MP_NODISCARD mp_status_t mp_fuse_gathers(mp_module_t *module);

// ---- fuse_constants.c ----

// Computes the small arrays that are made of constants alone; what they were made of may be dead
// then.
MP_NODISCARD mp_status_t mp_fuse_constants(mp_module_t *module, mp_arena_t *scratch);

// ---- fuse_groups.c ----

// Puts members into groups that can each become one op, in the place of their last member, and
// marks the groups for which that pays off.
MP_NODISCARD mp_status_t mp_fuse_group(mp_fuse_graph_t *graph);

// ---- fuse_again.c ----

// Lets groups recompute values that would otherwise be kept for them: inserts copies of ops before
// their members. The graph does not know the copies, so it must be rebuilt. `map` is a table by
// value id, all NULL before and afterwards.
MP_NODISCARD mp_status_t mp_fuse_again(mp_fuse_graph_t *graph, mp_value_t **map);

// ---- fuse_build.c ----

typedef struct {
  const mp_value_t *old;
  mp_value_t *by;
} mp_fuse_replacement_t;

// Tables by value id, for all blocks of a module, zeroed at the start.
typedef struct {
  bool *is_needed;                      // an op that is not fused away reads the value
  mp_fuse_replacement_t *replacements;  // the replacements whose `old` is the value
  mp_value_t **map;                     // the value's copy in the current region
} mp_fuse_tables_t;

// Makes the ops of the groups that are marked.
MP_NODISCARD mp_status_t mp_fuse_build(mp_fuse_graph_t *graph, const mp_fuse_tables_t *tables);

// ---- fuse_bands.c ----

// Makes one op of two batched matmuls and the fused op between them, where that pays off. Numbers
// the values.
MP_NODISCARD mp_status_t mp_fuse_bands(mp_module_t *module, mp_arena_t *scratch);

#endif  // MINIPOD_SIM_FUSE_FUSE_GRAPH_H_
