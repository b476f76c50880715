// Makes descriptions of collectives from ops: groups, reducers, shapes (StableHLO specification,
// "Collective Ops").
#include <stdlib.h>
#include <string.h>

#include "sim/base/containers/hash_map.h"
#include "sim/base/hash.h"
#include "sim/base/table.h"
#include "sim/ir/print/print_module.h"
#include "sim/ir/schema.h"
#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/elementwise/region.h"
#include "sim/numeric/float.h"
#include "sim/plan/plan.h"

typedef struct {
  mp_arena_t *arena;
  mp_plan_groups_t *known;
  const mp_op_t *op;
  uint32_t num_replicas, num_partitions;
  mp_collective_t *out;
} lowering_t;

static bool lower_collective_is_ragged(const mp_op_t *op) {
  return op->code == MP_OP_CUSTOM_CALL &&
         mp_str_is(mp_op_str(op, MP_ATTR_CALL_TARGET_NAME), "ragged_all_to_all");
}

// ---- groups ----

typedef struct {
  const int64_t *values;
  int64_t rows, columns;
} id_table_t;

// Reads a table of ids; a missing attribute is an empty table. In the dictionaries of custom calls
// it may be a dense constant.
static mp_status_t lower_collective_read_table(lowering_t *low, const mp_attr_t *attr,
                                               id_table_t *out) {
  *out = (id_table_t){0};
  if (attr == NULL) return NULL;
  if (attr->kind == MP_KIND_INTS) {
    int64_t columns = attr->u.ints.rank == 2 ? attr->u.ints.dims[1] : (int64_t)attr->u.ints.count;
    int64_t rows = attr->u.ints.rank == 2 ? attr->u.ints.dims[0] : 1;
    *out = (id_table_t){attr->u.ints.values, columns == 0 ? 0 : rows, columns};
    return NULL;
  }
  if (attr->kind != MP_KIND_DENSE || attr->u.dense.type->dtype != MP_DTYPE_S64 ||
      attr->u.dense.type->rank != 2) {
    return mp_op_error(low->op, MP_UNIMPLEMENTED, "this form of replica_groups is not supported");
  }
  const int64_t *dims = attr->u.dense.type->dims;
  if (!attr->u.dense.splat && (uintptr_t)attr->u.dense.data % _Alignof(int64_t) == 0) {
    const int64_t *where_it_is = (const int64_t *)(const void *)attr->u.dense.data;
    *out = (id_table_t){where_it_is, dims[1] == 0 ? 0 : dims[0], dims[1]};
    return NULL;
  }
  int64_t *values = MP_ARENA_ARRAY(low->arena, int64_t, (size_t)(dims[0] * dims[1]));
  MP_RETURN_IF_NULL(values);
  for (int64_t i = 0; i < dims[0] * dims[1]; ++i) {
    memcpy(&values[i], (const char *)attr->u.dense.data + (attr->u.dense.splat ? 0 : i * 8), 8);
  }
  *out = (id_table_t){values, dims[1] == 0 ? 0 : dims[0], dims[1]};
  return NULL;
}

static mp_status_t lower_collective_make_groups(lowering_t *low, mp_group_mode_t mode,
                                                const id_table_t *table) {
  const size_t bytes = (size_t)(table->rows * table->columns) * sizeof(*table->values);
  for (uint32_t i = 0; i < low->known->count; ++i) {
    const mp_plan_known_groups_t *known = &low->known->items[i];
    if (known->mode != mode || known->rows != table->rows || known->columns != table->columns) {
      continue;
    }
    if (bytes != 0 && memcmp(known->table, table->values, bytes) != 0) continue;
    low->out->groups = known->groups;
    return NULL;
  }
  MP_RETURN_IF_ERROR(mp_op_error_at(
      low->op, mp_groups_create(low->arena, mode, low->num_replicas, low->num_partitions,
                                table->values, table->rows, table->columns, &low->out->groups)));
  const mp_plan_known_groups_t made = {mode, table->values, table->rows, table->columns,
                                       low->out->groups};
  return MP_ARRAY_PUSH(low->arena, low->known, made);
}

// Whether the ids in the groups are replicas, partitions or devices. The channel decides; for ops
// with the flag use_global_device_ids, the flag too.
static mp_group_mode_t lower_collective_group_mode(const lowering_t *low) {
  const bool has_channel = low->out->channel_id > 0;
  const bool has_flag = mp_schema_find(low->op->code, MP_ATTR_USE_GLOBAL_DEVICE_IDS) != NULL;
  if (!has_flag) return has_channel ? MP_GROUPS_CROSS_PARTITION : MP_GROUPS_CROSS_REPLICA;
  if (mp_op_bool(low->op, MP_ATTR_USE_GLOBAL_DEVICE_IDS, false)) return MP_GROUPS_FLATTENED_IDS;
  return has_channel ? MP_GROUPS_CROSS_REPLICA_AND_PARTITION : MP_GROUPS_CROSS_REPLICA;
}

static mp_status_t lower_collective_groups_of_op(lowering_t *low, bool may_miss) {
  id_table_t table;
  MP_RETURN_IF_ERROR(
      lower_collective_read_table(low, mp_op_attr(low->op, MP_ATTR_REPLICA_GROUPS), &table));
  MP_RETURN_IF_ERROR(lower_collective_make_groups(low, lower_collective_group_mode(low), &table));
  for (uint32_t d = 0; d < low->out->groups->num_devices && !may_miss; ++d) {
    if (low->out->groups->group_of[d] < 0) {
      return mp_op_error(low->op, MP_INVALID_ARGUMENT,
                         "replica_groups leave out replica %u, partition %u",
                         d / low->num_partitions, d % low->num_partitions);
    }
  }
  return NULL;
}

static int lower_collective_compare_targets(const void *a, const void *b) {
  const uint32_t left = ((const uint32_t *)a)[1];
  const uint32_t right = ((const uint32_t *)b)[1];
  return left < right ? -1 : left > right;
}

// The op's source-target pairs, which are given in replica or partition ids, as pairs of logical
// devices.
static mp_status_t lower_collective_pairs_of_op(lowering_t *low) {
  id_table_t table;
  MP_RETURN_IF_ERROR(
      lower_collective_read_table(low, mp_op_attr(low->op, MP_ATTR_SOURCE_TARGET_PAIRS), &table));
  if (table.rows != 0 && table.columns != 2) {
    return mp_op_error(low->op, MP_INVALID_ARGUMENT, "source_target_pairs are not pairs");
  }
  const bool by_partition = low->out->channel_id > 0;
  const uint32_t ids = by_partition ? low->num_partitions : low->num_replicas;
  const uint32_t others = by_partition ? low->num_replicas : low->num_partitions;
  uint32_t *pairs = MP_ARENA_ARRAY(low->arena, uint32_t, 2 * (size_t)table.rows * others);
  MP_RETURN_IF_NULL(pairs);
  for (int64_t i = 0; i < 2 * table.rows; ++i) {
    const int64_t id = table.values[i];
    if (id < 0 || id >= (int64_t)ids) {
      return mp_op_error(low->op, MP_INVALID_ARGUMENT,
                         "source_target_pairs: id %lld is not in 0 .. %u", (long long)id, ids - 1);
    }
    for (uint32_t other = 0; other < others; ++other) {
      pairs[((size_t)other * (size_t)table.rows) * 2 + (size_t)i] =
          by_partition ? other * low->num_partitions + (uint32_t)id
                       : (uint32_t)id * low->num_partitions + other;
    }
  }
  low->out->pairs = pairs;
  low->out->num_pairs = (uint32_t)table.rows * others;
  qsort(pairs, low->out->num_pairs, 2 * sizeof(*pairs), lower_collective_compare_targets);
  // All ids take part, because a device without a sender gets zeros.
  const id_table_t all = {0};
  return lower_collective_make_groups(
      low, by_partition ? MP_GROUPS_CROSS_PARTITION : MP_GROUPS_CROSS_REPLICA, &all);
}

// ---- reducers ----

// Combines elements by one elementwise loop.
static void lower_collective_combine_by_loop(const void *context, int64_t count, const void *a,
                                             const void *b, void *out, void *scratch) {
  (void)scratch;
  const void *const inputs[2] = {a, b};
  mp_ew_loop_t loop = *(const mp_ew_loop_t *)context;
  loop(count, inputs, out);
}

static void lower_collective_combine_by_region(const void *context, int64_t count, const void *a,
                                               const void *b, void *out, void *scratch) {
  const void *const inputs[2] = {a, b};
  void *const outputs[1] = {out};
  mp_region_fn_run(context, count, inputs, NULL, outputs, scratch);
}

// Makes the reducer of a kind that is known: an elementwise loop. Narrow floating-point types are
// added up in f32.
static mp_status_t lower_collective_builtin_reducer(lowering_t *low, mp_reduce_kind_t kind,
                                                    mp_dtype_t dtype, mp_dtype_t *out_accumulation,
                                                    bool *out_found) {
  const mp_opcode_t code = mp_reduce_kind_opcode(kind);
  const mp_dtype_t accumulation = mp_float_is_narrow(dtype) ? MP_DTYPE_F32 : dtype;
  mp_ew_t found;
  *out_found = false;
  if (code == MP_OP_COUNT || !mp_ew_bind_binary(code, accumulation, &found)) return NULL;
  if (!found.direct) return NULL;
  mp_ew_loop_t *loop = MP_ARENA_NEW(low->arena, mp_ew_loop_t);
  MP_RETURN_IF_NULL(loop);
  *loop = found.loop;
  uint64_t digest = mp_hash_u64(MP_HASH_START, (uint64_t)kind);
  digest = mp_hash_u64(digest, (uint64_t)accumulation);
  low->out->reducer = (mp_reducer_t){lower_collective_combine_by_loop, loop, 0, INT32_MAX, digest};
  *out_accumulation = accumulation;
  *out_found = true;
  return NULL;
}

// The number of a value within its block: an argument or an op's result.
static uint64_t lower_collective_value_number(const mp_block_t *block, const mp_value_t *value) {
  if (value->op == NULL) return value->index;
  uint64_t number = block->num_args + (uint64_t)value->index;
  for (const mp_op_t *op = block->first; op != NULL && op != value->op; op = op->next) {
    number += op->num_results;
  }
  return number;
}

// A fingerprint of what a region computes; names of values and locations do not count. The same
// program has the same fingerprint in all processes. Regions that compute the same function by
// other ops have different ones.
static mp_status_t lower_collective_region_digest(const mp_block_t *block, uint64_t *out_digest) {
  uint64_t digest = mp_hash_u64(MP_HASH_START, block->num_args);
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_status_t status = NULL;
  for (const mp_op_t *op = block->first; op != NULL && status == NULL; op = op->next) {
    status = mp_op_print(op, NULL, &text);
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      digest = mp_hash_u64(digest, lower_collective_value_number(block, op->operands[i]));
    }
  }
  *out_digest = mp_hash_bytes(digest, mp_strbuf_text(&text), text.size);
  mp_strbuf_deinit(&text);
  return status;
}

static mp_status_t lower_collective_make_reducer(lowering_t *low,
                                                 mp_collective_operand_t *operands) {
  const mp_block_t *block = low->op->regions[0];
  const mp_region_fn_t *fn = NULL;
  MP_RETURN_IF_ERROR(mp_region_fn_create(low->arena, block, &fn));
  mp_value_t **captures = NULL;
  uint32_t num_captures = 0;
  MP_RETURN_IF_ERROR(mp_op_captures(low->op, low->arena, &captures, &num_captures));
  if (num_captures != 0) {
    return mp_op_error(low->op, MP_UNIMPLEMENTED,
                       "a reduction that uses values from outside its region is not supported");
  }
  const mp_dtype_t wanted = block->args[0].type->dtype;
  for (uint32_t i = 0; i < low->out->num_operands; ++i) {
    const mp_dtype_t dtype = operands[i].dtype;
    if (dtype != operands[0].dtype) {
      return mp_op_error(low->op, MP_UNIMPLEMENTED, "operands of several element types");
    }
    bool found = false;
    if (wanted == dtype) {
      MP_RETURN_IF_ERROR(lower_collective_builtin_reducer(low, mp_region_fn_kind(fn), dtype,
                                                          &operands[i].accumulation, &found));
    }
    if (found) continue;
    if (wanted != dtype && !(wanted == MP_DTYPE_F32 && mp_float_is_narrow(dtype))) {
      return mp_op_error(low->op, MP_UNIMPLEMENTED, "a reduction of %s in %s is not supported",
                         mp_dtype_name(dtype), mp_dtype_name(wanted));
    }
    operands[i].accumulation = wanted;
    uint64_t digest;
    MP_RETURN_IF_ERROR(lower_collective_region_digest(block, &digest));
    low->out->reducer = (mp_reducer_t){lower_collective_combine_by_region, fn,
                                       mp_region_fn_scratch_bytes(fn), MP_REGION_MAX_LANES, digest};
  }
  return NULL;
}

// ---- shapes ----

static mp_collective_operand_t lower_collective_describe(const mp_type_t *type,
                                                         const mp_type_t *result) {
  return (mp_collective_operand_t){type->dtype, type->dtype, type->rank, type->dims, result->dims};
}

// Describes the operands and results that are tensors; tokens have no data.
static mp_status_t lower_collective_describe_operands(lowering_t *low,
                                                      mp_collective_operand_t **out_operands) {
  const mp_op_t *op = low->op;
  mp_collective_operand_t *operands = MP_ARENA_ARRAY(low->arena, mp_collective_operand_t,
                                                     (size_t)op->num_operands + op->num_results);
  MP_RETURN_IF_NULL(operands);
  uint32_t count = 0;
  const bool is_recv = op->code == MP_OP_RECV;
  const uint32_t total = is_recv ? op->num_results : op->num_operands;
  for (uint32_t i = 0; i < total; ++i) {
    const mp_type_t *type = is_recv ? op->results[i].type : op->operands[i]->type;
    if (!mp_type_is_tensor(type)) continue;
    const bool paired = !lower_collective_is_ragged(op) && op->code != MP_OP_SEND && !is_recv;
    operands[count++] = lower_collective_describe(type, paired ? op->results[i].type : type);
  }
  low->out->num_operands = count;
  low->out->operands = operands;
  *out_operands = operands;
  return NULL;
}

// ---- exchange ----

static bool lower_collective_same_box(const mp_boxes_t *boxes, uint32_t a, uint32_t b) {
  const size_t bytes = boxes->rank * sizeof(int64_t);
  return boxes->groups[a] == boxes->groups[b] &&
         memcmp(boxes->starts + (size_t)a * boxes->rank, boxes->starts + (size_t)b * boxes->rank,
                bytes) == 0 &&
         memcmp(boxes->sizes + (size_t)a * boxes->rank, boxes->sizes + (size_t)b * boxes->rank,
                bytes) == 0;
}

static uint64_t lower_collective_hash_box(const mp_boxes_t *boxes, uint32_t p) {
  const size_t bytes = boxes->rank * sizeof(int64_t), at = (size_t)p * boxes->rank;
  uint64_t hash = mp_hash_u64(MP_HASH_START, (uint64_t)boxes->groups[p]);
  hash = mp_hash_bytes(hash, boxes->starts + at, bytes);
  return mp_hash_bytes(hash, boxes->sizes + at, bytes);
}

// A box, and the first partition that has it.
typedef struct {
  uint64_t hash;  // of the box and its group
  uint32_t partition;
} box_owner_t;

mp_status_t mp_plan_find_owners(mp_arena_t *arena, const mp_boxes_t *boxes, uint32_t *owner) {
  MP_HASH_MAP(box_owner_t) owners = {0};
  for (uint32_t p = 0; p < boxes->num_partitions; ++p) {
    const box_owner_t wanted = {lower_collective_hash_box(boxes, p), p}, *known;
    MP_HASH_MAP_EACH(&owners, wanted.hash, known) {
      if (lower_collective_same_box(boxes, known->partition, p)) break;
    }
    owner[p] = known != NULL ? known->partition : p;
    if (known == NULL) MP_RETURN_IF_ERROR(MP_HASH_MAP_ADD(arena, &owners, &wanted));
  }
  return NULL;
}

static bool lower_collective_holds_its_target(const mp_boxes_t *source, const mp_boxes_t *target,
                                              uint32_t p) {
  for (uint32_t d = 0; d < source->rank; ++d) {
    const size_t at = (size_t)p * source->rank + d;
    if (target->sizes[at] == 0) return true;
    if (target->starts[at] < source->starts[at] ||
        target->starts[at] + target->sizes[at] > source->starts[at] + source->sizes[at]) {
      return false;
    }
  }
  return true;
}

// Repeats the boxes of one replica's partitions for all replicas.
static mp_status_t lower_collective_repeat_boxes(lowering_t *low, const mp_boxes_t *boxes,
                                                 mp_collective_boxes_t *out_boxes) {
  const size_t count = (size_t)boxes->num_partitions * boxes->rank;
  int64_t *starts = MP_ARENA_ARRAY(low->arena, int64_t, count * low->num_replicas);
  int64_t *sizes = MP_ARENA_ARRAY(low->arena, int64_t, count * low->num_replicas);
  if (starts == NULL || sizes == NULL) return mp_status_out_of_memory();
  for (uint32_t r = 0; r < low->num_replicas && count != 0; ++r) {
    memcpy(starts + r * count, boxes->starts, count * sizeof(*starts));
    memcpy(sizes + r * count, boxes->sizes, count * sizeof(*sizes));
  }
  *out_boxes = (mp_collective_boxes_t){starts, sizes, NULL};
  return NULL;
}

// The groups of an exchange are the partitions of each group of the boxes, in each replica. If
// every partition has its data already, each device is a group by itself.
static mp_status_t lower_collective_exchange_groups(lowering_t *low, const mp_boxes_t *source,
                                                    const mp_boxes_t *target) {
  const uint32_t partitions = source->num_partitions;
  bool is_local = true;
  uint32_t num_groups = 0;
  uint32_t largest = 0;
  uint32_t *size = MP_ARENA_ARRAY(low->arena, uint32_t, partitions);
  MP_RETURN_IF_NULL(size);
  for (uint32_t p = 0; p < partitions; ++p) {
    is_local &= lower_collective_holds_its_target(source, target, p);
    const uint32_t group = (uint32_t)source->groups[p];
    if (group + 1 > num_groups) num_groups = group + 1;
    if (++size[group] > largest) largest = size[group];
  }
  if (is_local) {
    num_groups = partitions;
    largest = 1;
  }
  int64_t *table = MP_ARENA_ARRAY(low->arena, int64_t, (size_t)num_groups * largest);
  MP_RETURN_IF_NULL(table);
  for (size_t i = 0; i < (size_t)num_groups * largest; ++i) table[i] = -1;
  memset(size, 0, partitions * sizeof(*size));
  for (uint32_t p = 0; p < partitions; ++p) {
    const uint32_t group = is_local ? p : (uint32_t)source->groups[p];
    table[(size_t)group * largest + size[group]++] = p;
  }
  const id_table_t groups = {table, num_groups, largest};
  return lower_collective_make_groups(low, MP_GROUPS_CROSS_PARTITION, &groups);
}

static mp_status_t lower_collective_exchange(lowering_t *low) {
  const mp_boxes_t *source = mp_op_attr(low->op, MP_ATTR_SOURCE)->u.boxes;
  const mp_boxes_t *target = mp_op_attr(low->op, MP_ATTR_TARGET)->u.boxes;
  MP_RETURN_IF_ERROR(lower_collective_repeat_boxes(low, source, &low->out->source));
  MP_RETURN_IF_ERROR(lower_collective_repeat_boxes(low, target, &low->out->target));
  MP_RETURN_IF_ERROR(lower_collective_exchange_groups(low, source, target));
  uint32_t *owner =
      MP_ARENA_ARRAY(low->arena, uint32_t, (size_t)source->num_partitions * low->num_replicas);
  MP_RETURN_IF_NULL(owner);
  MP_RETURN_IF_ERROR(mp_plan_find_owners(low->arena, source, owner));
  // A device that is a group by itself owns its box; otherwise each replica has its own owners.
  const bool alone = low->out->groups->num_groups == low->out->groups->num_devices;
  for (uint32_t p = source->num_partitions * low->num_replicas; p-- > 0;) {
    const uint32_t replica = p / source->num_partitions;
    owner[p] = alone ? p : owner[p % source->num_partitions] + replica * source->num_partitions;
  }
  low->out->source.owner = owner;
  return NULL;
}

// ---- the table of ops ----

static mp_status_t lower_collective_all_reduce(lowering_t *low, mp_collective_operand_t *operands) {
  MP_RETURN_IF_ERROR(lower_collective_groups_of_op(low, false));
  return lower_collective_make_reducer(low, operands);
}

// Checks that the parts of all members of a group add up to the whole dimension.
static mp_status_t lower_collective_check_parts(lowering_t *low, int64_t part, int64_t whole) {
  const mp_groups_t *groups = low->out->groups;
  for (uint32_t g = 0; g < groups->num_groups; ++g) {
    const int64_t size = groups->offsets[g + 1] - groups->offsets[g];
    if (part * size != whole) {
      return mp_op_error(low->op, MP_INVALID_ARGUMENT,
                         "a group of %lld does not make dimension %lld of size %lld from parts of "
                         "%lld",
                         (long long)size, (long long)low->out->dimension, (long long)whole,
                         (long long)part);
    }
  }
  return NULL;
}

static mp_status_t lower_collective_parts(lowering_t *low, mp_collective_operand_t *operands) {
  const bool scatters = low->op->code == MP_OP_REDUCE_SCATTER;
  low->out->dimension =
      mp_op_int(low->op, scatters ? MP_ATTR_SCATTER_DIMENSION : MP_ATTR_ALL_GATHER_DIM, 0);
  MP_RETURN_IF_ERROR(lower_collective_groups_of_op(low, false));
  for (uint32_t i = 0; i < low->out->num_operands; ++i) {
    const int64_t in = operands[i].dims[low->out->dimension];
    const int64_t out = operands[i].result_dims[low->out->dimension];
    MP_RETURN_IF_ERROR(scatters ? lower_collective_check_parts(low, out, in)
                                : lower_collective_check_parts(low, in, out));
  }
  return scatters ? lower_collective_make_reducer(low, operands) : NULL;
}

static mp_status_t lower_collective_all_to_all(lowering_t *low, mp_collective_operand_t *operands) {
  low->out->dimension = mp_op_int(low->op, MP_ATTR_SPLIT_DIMENSION, 0);
  low->out->concat_dimension = mp_op_int(low->op, MP_ATTR_CONCAT_DIMENSION, 0);
  MP_RETURN_IF_ERROR(lower_collective_groups_of_op(low, false));
  const int64_t count = mp_op_int(low->op, MP_ATTR_SPLIT_COUNT, 0);
  MP_RETURN_IF_ERROR(lower_collective_check_parts(low, 1, count));
  for (uint32_t i = 0; i < low->out->num_operands; ++i) {
    if (operands[i].dims[low->out->dimension] % count != 0) {
      return mp_op_error(low->op, MP_INVALID_ARGUMENT, "dimension %lld is not divisible by %lld",
                         (long long)low->out->dimension, (long long)count);
    }
  }
  return NULL;
}

static mp_status_t lower_collective_ragged(lowering_t *low, mp_collective_operand_t *operands) {
  const mp_attr_t *config = mp_op_attr(low->op, MP_ATTR_BACKEND_CONFIG);
  if (low->out->num_operands != 6 || low->op->num_results != 1 || operands[0].rank == 0 ||
      config == NULL || config->kind != MP_KIND_DICT) {
    return mp_op_error(low->op, MP_INVALID_ARGUMENT,
                       "ragged_all_to_all takes six operands, one result and a dictionary");
  }
  const mp_attr_t *channel = mp_attr_dict_get_text(config, "channel_id");
  if (channel != NULL && channel->kind == MP_KIND_INT) low->out->channel_id = channel->u.i64;
  id_table_t table;
  MP_RETURN_IF_ERROR(
      lower_collective_read_table(low, mp_attr_dict_get_text(config, "replica_groups"), &table));
  MP_RETURN_IF_ERROR(lower_collective_make_groups(low, lower_collective_group_mode(low), &table));
  const mp_groups_t *groups = low->out->groups;
  const bool types_fit = operands[0].dtype == operands[1].dtype &&
                         operands[0].rank == operands[1].rank &&
                         memcmp(operands[0].dims + 1, operands[1].dims + 1,
                                (operands[0].rank - 1) * sizeof(int64_t)) == 0 &&
                         mp_type_equal(low->op->operands[1]->type, low->op->results[0].type);
  bool indices_fit = true;
  for (uint32_t i = 2; i < 6; ++i) {
    indices_fit &= operands[i].rank == 1 && operands[i].dims[0] == operands[2].dims[0] &&
                   (operands[i].dtype == MP_DTYPE_S32 || operands[i].dtype == MP_DTYPE_S64);
  }
  for (uint32_t g = 0; g < groups->num_groups && indices_fit; ++g) {
    indices_fit &= operands[2].dims[0] % (groups->offsets[g + 1] - groups->offsets[g]) == 0;
  }
  for (uint32_t d = 0; d < groups->num_devices; ++d) indices_fit &= groups->group_of[d] >= 0;
  if (!types_fit || !indices_fit) {
    return mp_op_error(low->op, MP_INVALID_ARGUMENT,
                       "ragged_all_to_all: operand shapes, index types or groups do not fit");
  }
  return NULL;
}

typedef struct {
  mp_opcode_t code;
  mp_collective_kind_t kind;
} collective_row_t;

static const collective_row_t g_collectives[] = {
    {MP_OP_ALL_REDUCE, MP_COLLECTIVE_ALL_REDUCE},
    {MP_OP_ALL_GATHER, MP_COLLECTIVE_ALL_GATHER},
    {MP_OP_REDUCE_SCATTER, MP_COLLECTIVE_REDUCE_SCATTER},
    {MP_OP_ALL_TO_ALL, MP_COLLECTIVE_ALL_TO_ALL},
    {MP_OP_COLLECTIVE_PERMUTE, MP_COLLECTIVE_PERMUTE},
    {MP_OP_COLLECTIVE_BROADCAST, MP_COLLECTIVE_BROADCAST},
    {MP_OP_CUSTOM_CALL, MP_COLLECTIVE_RAGGED_ALL_TO_ALL},
    {MP_OP_EXCHANGE, MP_COLLECTIVE_EXCHANGE},
    {MP_OP_SEND, MP_COLLECTIVE_SEND_RECV},
    {MP_OP_RECV, MP_COLLECTIVE_SEND_RECV},
};
// A custom call is a collective only for one target, so its opcode does not have the role.
#define OF_ROLE(name, text, operands, results, regions, role, ...) \
  +(MP_OP_ROLE_##role == MP_OP_ROLE_COLLECTIVE)
_Static_assert(MP_COUNT_OF(g_collectives) - 1 == (0 MP_OPS(OF_ROLE)), "a kind for each collective");
#undef OF_ROLE

static const collective_row_t *lower_collective_find_row(const mp_op_t *op) {
  if (op->code == MP_OP_CUSTOM_CALL && !lower_collective_is_ragged(op)) return NULL;
  for (size_t i = 0; i < MP_COUNT_OF(g_collectives); ++i) {
    if (g_collectives[i].code == op->code) return &g_collectives[i];
  }
  return NULL;
}

bool mp_plan_is_collective(const mp_op_t *op) {
  return lower_collective_find_row(op) != NULL;
}

static mp_status_t lower_collective_by_kind(lowering_t *low, mp_collective_operand_t *operands) {
  switch (low->out->kind) {
    case MP_COLLECTIVE_ALL_REDUCE:
      return lower_collective_all_reduce(low, operands);
    case MP_COLLECTIVE_ALL_GATHER:
    case MP_COLLECTIVE_REDUCE_SCATTER:
      return lower_collective_parts(low, operands);
    case MP_COLLECTIVE_ALL_TO_ALL:
      return lower_collective_all_to_all(low, operands);
    case MP_COLLECTIVE_BROADCAST:
      return lower_collective_groups_of_op(low, true);
    case MP_COLLECTIVE_RAGGED_ALL_TO_ALL:
      return lower_collective_ragged(low, operands);
    case MP_COLLECTIVE_EXCHANGE:
      return lower_collective_exchange(low);
    case MP_COLLECTIVE_SEND_RECV:
      if (mp_op_bool(low->op, MP_ATTR_IS_HOST_TRANSFER, false)) {
        return mp_op_error(low->op, MP_UNIMPLEMENTED, "transfers to the host are not supported");
      }
      return lower_collective_pairs_of_op(low);
    case MP_COLLECTIVE_PERMUTE:
      return lower_collective_pairs_of_op(low);
  }
  return mp_op_error(low->op, MP_INTERNAL, "no collective");
}

mp_status_t mp_plan_lower_collective(mp_arena_t *arena, mp_plan_groups_t *known, const mp_op_t *op,
                                     uint32_t num_replicas, uint32_t num_partitions,
                                     uint32_t ordinal, const mp_collective_t **out_collective) {
  mp_collective_t *collective = MP_ARENA_NEW(arena, mp_collective_t);
  MP_RETURN_IF_NULL(collective);
  mp_strbuf_t location;
  mp_strbuf_init(&location);
  mp_loc_describe(op->loc, &location);
  const char *text =
      location.failed ? NULL : mp_arena_strndup(arena, mp_strbuf_text(&location), location.size);
  mp_strbuf_deinit(&location);
  MP_RETURN_IF_NULL(text);
  *collective = (mp_collective_t){.kind = lower_collective_find_row(op)->kind,
                                  .name = mp_op_info(op->code)->name,
                                  .location = text,
                                  .channel_id = mp_op_int(op, MP_ATTR_CHANNEL_ID, 0),
                                  .ordinal = ordinal};
  lowering_t low = {arena, known, op, num_replicas, num_partitions, collective};
  mp_collective_operand_t *operands = NULL;
  MP_RETURN_IF_ERROR(lower_collective_describe_operands(&low, &operands));
  MP_RETURN_IF_ERROR(lower_collective_by_kind(&low, operands));
  collective->digest = mp_collective_digest(collective);
  *out_collective = collective;
  return NULL;
}
