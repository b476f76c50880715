#include "sim/spmd/reshard/reshard_steps.h"

#include <stdlib.h>

#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/ir/reducer.h"
#include "sim/spmd/build/append.h"
#include "sim/spmd/build/append_collective.h"
#include "sim/spmd/build/unreduced.h"

typedef struct {
  const mp_append_at_t *at;
  const mp_type_t *type;  // of the whole value
  const mp_atom_space_t *space;
  mp_opcode_t combine;  // of terms
} steps_t;

static mp_status_t reshard_steps_local_type(const steps_t *steps, const mp_layout_t *layout,
                                            const mp_type_t **out_type) {
  int64_t dims[MP_MAX_RANK] = {0};
  for (uint32_t d = 0; d < steps->type->rank; ++d) {
    MP_ASSERT(steps->type->dims[d] % mp_layout_parts(steps->space, layout, (uint8_t)d) == 0);
    dims[d] = steps->type->dims[d] / mp_layout_parts(steps->space, layout, (uint8_t)d);
  }
  return mp_type_tensor(steps->at->module->arena, steps->type->dtype, dims, steps->type->rank,
                        out_type);
}

// ---- groups ----

// The partition whose digits along the atoms are those of `number`, and whose other digits are
// those of `first`, which has zeros along the atoms.
static int64_t reshard_steps_member(const mp_atom_space_t *space, const mp_atoms_t *atoms,
                                    int64_t first, int64_t number) {
  for (uint32_t i = atoms->count; i-- > 0;) {
    const uint8_t atom = atoms->atoms[i];
    first += number % space->prime[atom] * space->stride[atom];
    number /= space->prime[atom];
  }
  return first;
}

// Makes a table with one row for each set of partitions that differ only in these atoms, in the
// atoms' order. The caller frees it by mp_free.
static mp_status_t reshard_steps_group_table(const steps_t *steps, const mp_atoms_t *atoms,
                                             int64_t **out_table, int64_t *out_rows,
                                             int64_t *out_columns) {
  const uint32_t count = steps->space->num_partitions;
  int64_t *table = mp_malloc(count * sizeof(*table));
  MP_RETURN_IF_NULL(table);
  const int64_t columns = mp_atoms_product(steps->space, atoms);
  int64_t rows = 0;
  for (uint32_t p = 0; p < count; ++p) {
    if (mp_atoms_number(steps->space, atoms, p) != 0) continue;
    for (int64_t i = 0; i < columns; ++i) {
      table[rows * columns + i] = reshard_steps_member(steps->space, atoms, p, i);
    }
    ++rows;
  }
  MP_ASSERT(rows * columns == (int64_t)count);  // each partition is in one group
  *out_table = table;
  *out_rows = rows;
  *out_columns = columns;
  return NULL;
}

static mp_status_t reshard_steps_groups_of(const steps_t *steps, const mp_atoms_t *atoms,
                                           const mp_attr_t **out_groups) {
  int64_t *table = NULL;
  int64_t rows = 0;
  int64_t columns = 0;
  MP_RETURN_IF_ERROR(reshard_steps_group_table(steps, atoms, &table, &rows, &columns));
  mp_status_t status = mp_append_groups(steps->at->module, table, rows, columns, out_groups);
  mp_free(table);
  return status;
}

// ---- slices ----

static mp_status_t reshard_steps_append_u32(const steps_t *steps, const mp_type_t *type,
                                            int64_t number, mp_value_t **out_value) {
  uint32_t *data = MP_ARENA_NEW(steps->at->module->arena, uint32_t);
  MP_RETURN_IF_NULL(data);
  *data = (uint32_t)number;
  return mp_append_constant(steps->at, type, data, sizeof(*data), true, out_value);
}

// Combines `value` with a number; does nothing if the number would not change it.
static mp_status_t reshard_steps_append_with(const steps_t *steps, mp_opcode_t code,
                                             mp_value_t **value, int64_t number) {
  if (number == 1 && code != MP_OP_REMAINDER) return NULL;
  mp_value_t *operands[2] = {*value, NULL};
  MP_RETURN_IF_ERROR(reshard_steps_append_u32(steps, (*value)->type, number, &operands[1]));
  return mp_append_op(steps->at, code, operands, 2, (*value)->type, NULL, value);
}

// Finds the atoms, from `from` on, that together are one digit of the partition id. Returns how
// many they are, and the digit's stride and size.
static uint32_t reshard_steps_read_run(const mp_atom_space_t *space, const mp_atoms_t *atoms,
                                       uint32_t from, int64_t *out_stride, int64_t *out_size) {
  uint32_t count = 1;
  *out_size = space->prime[atoms->atoms[from]];
  *out_stride = space->stride[atoms->atoms[from]];
  for (; from + count < atoms->count; ++count) {
    const uint8_t next = atoms->atoms[from + count];
    if (*out_stride != space->stride[next] * space->prime[next]) break;
    *out_stride = space->stride[next];
    *out_size *= space->prime[next];
  }
  return count;
}

// The digits of partition_id along the atoms, read as a number, times `scale`.
static mp_status_t reshard_steps_append_start(const steps_t *steps, const mp_atoms_t *atoms,
                                              int64_t scale, mp_value_t *id,
                                              mp_value_t **out_start) {
  mp_value_t *sum = NULL;
  int64_t weight = mp_atoms_product(steps->space, atoms) * scale;
  for (uint32_t i = 0; i < atoms->count;) {
    int64_t stride = 0;
    int64_t size = 0;
    i += reshard_steps_read_run(steps->space, atoms, i, &stride, &size);
    weight /= size;
    mp_value_t *term = id;
    MP_RETURN_IF_ERROR(reshard_steps_append_with(steps, MP_OP_DIVIDE, &term, stride));
    if (stride * size != (int64_t)steps->space->num_partitions) {
      MP_RETURN_IF_ERROR(reshard_steps_append_with(steps, MP_OP_REMAINDER, &term, size));
    }
    MP_RETURN_IF_ERROR(reshard_steps_append_with(steps, MP_OP_MULTIPLY, &term, weight));
    mp_value_t *operands[2] = {sum, term};
    if (sum == NULL) {
      sum = term;
    } else {
      MP_RETURN_IF_ERROR(mp_append_op(steps->at, MP_OP_ADD, operands, 2, term->type, NULL, &sum));
    }
  }
  *out_start = sum;
  return NULL;
}

// The start, per dimension, of a partition's part in layout `fine` within its part in `coarse`,
// whose lists are prefixes of those of `fine`.
static mp_status_t reshard_steps_append_starts(const steps_t *steps, const mp_layout_t *coarse,
                                               const mp_layout_t *fine, const mp_type_t *fine_type,
                                               mp_value_t **out_starts) {
  mp_module_t *module = steps->at->module;
  const mp_type_t *id_type = NULL;
  MP_RETURN_IF_ERROR(mp_type_tensor(module->arena, MP_DTYPE_U32, NULL, 0, &id_type));
  mp_value_t *id = NULL;
  mp_value_t *zero = NULL;
  MP_RETURN_IF_ERROR(mp_append_op(steps->at, MP_OP_PARTITION_ID, NULL, 0, id_type, NULL, &id));
  for (uint32_t d = 0; d < fine_type->rank; ++d) {
    mp_atoms_t added = mp_layout_atoms(steps->space, fine, (uint8_t)d);
    const uint32_t old = mp_layout_atoms(steps->space, coarse, (uint8_t)d).count;
    for (uint32_t i = old; i < added.count; ++i) added.atoms[i - old] = added.atoms[i];
    added.count = (uint8_t)(added.count - old);
    if (added.count != 0) {
      MP_RETURN_IF_ERROR(
          reshard_steps_append_start(steps, &added, fine_type->dims[d], id, &out_starts[d]));
      continue;
    }
    if (zero == NULL) MP_RETURN_IF_ERROR(reshard_steps_append_u32(steps, id_type, 0, &zero));
    out_starts[d] = zero;
  }
  return NULL;
}

// Takes the part that belongs to the atoms which the step adds to each dimension.
static mp_status_t reshard_steps_append_slice(const steps_t *steps, const mp_reshard_step_t *step,
                                              mp_value_t *value, mp_value_t **out_value) {
  const mp_type_t *type = NULL;
  MP_RETURN_IF_ERROR(reshard_steps_local_type(steps, &step->after, &type));
  mp_value_t *operands[MP_MAX_RANK + 1] = {value};
  MP_RETURN_IF_ERROR(
      reshard_steps_append_starts(steps, &step->before, &step->after, type, operands + 1));
  mp_named_attr_t sizes = {.name = MP_ATTR_SLICE_SIZES, .text = MP_STR("slice_sizes")};
  MP_RETURN_IF_ERROR(
      mp_attr_make_ints(steps->at->module->arena, type->dims, type->rank, &sizes.value));
  return mp_append_op(steps->at, MP_OP_DYNAMIC_SLICE, operands, type->rank + 1, type, &sizes,
                      out_value);
}

mp_status_t mp_reshard_append_terms(const mp_append_at_t *at, const mp_type_t *type,
                                    const mp_reshard_terms_t *terms, mp_value_t *value,
                                    mp_value_t **out_value) {
  const steps_t steps = {at, type, &terms->space, MP_OP_ADD};
  const mp_type_t *result_type = NULL;
  MP_RETURN_IF_ERROR(reshard_steps_local_type(&steps, &terms->to, &result_type));
  const size_t size = mp_dtype_size(type->dtype);
  void *zero = mp_arena_alloc(at->module->arena, size < 16 ? 16 : size);
  MP_RETURN_IF_NULL(zero);
  (void)mp_reducer_identity(type->dtype, MP_OP_ADD, zero);
  mp_value_t *operands[MP_MAX_RANK + 2] = {NULL, value};
  MP_RETURN_IF_ERROR(mp_append_constant(at, result_type, zero, size, true, &operands[0]));
  MP_RETURN_IF_ERROR(
      reshard_steps_append_starts(&steps, &terms->to, &terms->from, value->type, operands + 2));
  return mp_append_op(at, MP_OP_DYNAMIC_UPDATE_SLICE, operands, type->rank + 2, result_type, NULL,
                      out_value);
}

// ---- permutations ----

typedef struct {
  int64_t number;
  uint32_t partition;
} holder_t;

static int reshard_steps_compare_holders(const void *a, const void *b) {
  const holder_t *left = a;
  const holder_t *right = b;
  if (left->number != right->number) return left->number < right->number ? -1 : 1;
  return left->partition < right->partition ? -1 : 1;
}

mp_status_t mp_reshard_append_permute(const mp_append_at_t *at, const int64_t *held,
                                      const int64_t *wanted, uint32_t num_partitions,
                                      mp_value_t *value, mp_value_t **out_value) {
  int64_t *pairs = MP_ARENA_ARRAY(at->module->arena, int64_t, 2 * (size_t)num_partitions);
  holder_t *holders = mp_malloc(2 * (size_t)num_partitions * sizeof(*holders));
  if (pairs == NULL || holders == NULL) {
    mp_free(holders);
    return mp_status_out_of_memory();
  }
  holder_t *takers = holders + num_partitions;
  uint32_t moving = 0;
  for (uint32_t p = 0; p < num_partitions; ++p) {
    pairs[2 * (size_t)p + 1] = p;
    pairs[2 * (size_t)p] = p;
    if (held[p] == wanted[p]) continue;
    holders[moving] = (holder_t){held[p], p};
    takers[moving++] = (holder_t){wanted[p], p};
  }
  // Among the partitions that do not keep their data, every number is still held as often as it is
  // needed.
  qsort(holders, moving, sizeof(*holders), reshard_steps_compare_holders);
  qsort(takers, moving, sizeof(*takers), reshard_steps_compare_holders);
  for (uint32_t i = 0; i < moving; ++i) {
    MP_ASSERT(holders[i].number == takers[i].number);
    pairs[2 * (size_t)takers[i].partition] = holders[i].partition;
  }
  mp_free(holders);
  return mp_append_permute(at, pairs, num_partitions, value, out_value);
}

// Numbers the data that each partition holds in a layout. Atoms that cut no dimension in either
// layout count too, so that partitions that differ in them do not send to each other.
static void reshard_steps_number_holders(const mp_atom_space_t *space, const mp_layout_t *layout,
                                         const mp_layout_t *other, int64_t *numbers) {
  mp_atoms_t list = {0};
  for (uint32_t d = 0; d < MP_MAX_RANK; ++d) {
    const mp_atoms_t atoms = mp_layout_atoms(space, layout, (uint8_t)d);
    for (uint32_t i = 0; i < atoms.count; ++i) list.atoms[list.count++] = atoms.atoms[i];
  }
  for (uint32_t a = 0; a < space->count; ++a) {
    if (layout->dim[a] != other->dim[a] || layout->dim[a] < MP_LAYOUT_TERMS) continue;
    list.atoms[list.count++] = (uint8_t)a;
  }
  for (uint32_t p = 0; p < space->num_partitions; ++p) {
    numbers[p] = mp_atoms_number(space, &list, p);
  }
}

static mp_status_t reshard_steps_append_permutation(const steps_t *steps,
                                                    const mp_reshard_step_t *step,
                                                    mp_value_t *value, mp_value_t **out_value) {
  const uint32_t count = steps->space->num_partitions;
  int64_t *numbers = mp_malloc(2 * (size_t)count * sizeof(*numbers));
  MP_RETURN_IF_NULL(numbers);
  reshard_steps_number_holders(steps->space, &step->before, &step->after, numbers);
  reshard_steps_number_holders(steps->space, &step->after, &step->before, numbers + count);
  mp_status_t status =
      mp_reshard_append_permute(steps->at, numbers, numbers + count, count, value, out_value);
  mp_free(numbers);
  return status;
}

// ---- all steps ----

static mp_status_t reshard_steps_append_collective(const steps_t *steps,
                                                   const mp_reshard_step_t *step, mp_value_t *value,
                                                   mp_value_t **out_value) {
  const mp_type_t *type = NULL;
  MP_RETURN_IF_ERROR(reshard_steps_local_type(steps, &step->after, &type));
  if (step->kind == MP_RESHARD_ALL_TO_ALL) {
    int64_t *table = NULL;
    mp_append_exchange_t exchange = {.split_dim = step->to_dim, .concat_dim = step->from_dim};
    MP_RETURN_IF_ERROR(
        reshard_steps_group_table(steps, &step->atoms, &table, &exchange.rows, &exchange.columns));
    exchange.groups = table;
    mp_status_t status = mp_append_all_to_all(steps->at, &exchange, value, type, out_value);
    mp_free(table);
    return status;
  }
  const mp_attr_t *groups = NULL;
  MP_RETURN_IF_ERROR(reshard_steps_groups_of(steps, &step->atoms, &groups));
  if (step->kind == MP_RESHARD_ALL_GATHER) {
    return mp_append_all_gather(steps->at, groups, step->from_dim, value, type, out_value);
  }
  if (step->kind == MP_RESHARD_REDUCE_SCATTER) {
    return mp_append_reduce_scatter(steps->at, groups, steps->combine, step->to_dim, value, type,
                                    out_value);
  }
  return mp_append_all_reduce(steps->at, groups, steps->combine, value, out_value);
}

mp_status_t mp_reshard_append_steps(const mp_append_at_t *at, const mp_type_t *type,
                                    const mp_reshard_plan_t *plan, mp_value_t *value,
                                    mp_value_t **out_value) {
  const steps_t steps = {at, type, &plan->space, mp_unreduced_opcode(plan->unreduced_kind)};
  for (uint32_t i = 0; i < plan->num_steps; ++i) {
    const mp_reshard_step_t *step = &plan->steps[i];
    MP_ASSERT(i == 0 || mp_layout_equal(&step->before, &plan->steps[i - 1].after));
    if (step->kind == MP_RESHARD_SLICE) {
      MP_RETURN_IF_ERROR(reshard_steps_append_slice(&steps, step, value, &value));
    } else if (step->kind == MP_RESHARD_PERMUTE) {
      MP_RETURN_IF_ERROR(reshard_steps_append_permutation(&steps, step, value, &value));
    } else {
      MP_RETURN_IF_ERROR(reshard_steps_append_collective(&steps, step, value, &value));
    }
  }
  *out_value = value;
  return NULL;
}
