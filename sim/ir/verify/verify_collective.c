// Collectives (StableHLO specification, under their names).
//
// "Process" is the specification's word for one replica of one partition. Their number is not in
// the module alone but also in the compile options, so whether the members of a group exist is
// checked where groups are resolved (sim/plan).
#include <stdlib.h>

#include "sim/base/alloc.h"
#include "sim/ir/verify/verify_rules.h"

static int verify_collective_compare_i64(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

// The ids, which are each `step`-th value from `first` on, must be different; -1 stands for no id.
// With `all`, every id below the largest one must occur.
static mp_status_t verify_collective_distinct(const mp_op_t *op, mp_index_list_t list,
                                              uint32_t first, uint32_t step, bool all,
                                              const char *what) {
  int64_t *ids = mp_malloc((list.count + (size_t)1) * sizeof(*ids));
  MP_RETURN_IF_NULL(ids);
  size_t count = 0;
  mp_status_t status = NULL;
  for (uint32_t i = first; i < list.count; i += step) {
    if (list.values[i] >= 0) ids[count++] = list.values[i];
  }
  qsort(ids, count, sizeof(*ids), verify_collective_compare_i64);
  for (size_t i = 1; i < count && status == NULL; ++i) {
    if (ids[i - 1] != ids[i]) continue;
    status = mp_op_error(op, MP_INVALID_ARGUMENT, "process %lld is twice in %s", (long long)ids[i],
                         what);
  }
  if (status == NULL && all && count > 0 && ids[count - 1] != (int64_t)count - 1) {
    status = mp_op_error(op, MP_INVALID_ARGUMENT, "%s names %zu processes, %lld among them", what,
                         count, (long long)ids[count - 1]);
  }
  mp_free(ids);
  return status;
}

// Checks groups that are given by a table of ids with a row per group. With `uniform` all groups
// must have the same size.
static mp_status_t verify_collective_group_table(const mp_op_t *op, const mp_attr_t *groups,
                                                 bool uniform, int64_t *out_size) {
  mp_index_list_t list = mp_op_ints(op, MP_ATTR_REPLICA_GROUPS);
  *out_size = 0;
  if (list.count == 0) return NULL;
  MP_CHECK(op, groups->u.ints.rank == 2, "replica_groups is not a table");
  int64_t size = groups->u.ints.dims[1];
  for (uint32_t i = 0; i < list.count; ++i) {
    int64_t id = list.values[i];
    MP_CHECK(op, id >= -1 && id <= INT32_MAX, "replica_groups names process %lld", (long long)id);
    MP_CHECK(op, id >= 0 || !uniform, "replica_groups has groups of different sizes");
    // Groups that are smaller than others are filled up with -1 at the end.
    MP_CHECK(op, id < 0 || i % size == 0 || list.values[i - 1] >= 0,
             "replica_groups has a gap in a group");
    MP_CHECK(op, id >= 0 || i % size != 0, "replica_groups has a group without members");
  }
  *out_size = size;
  // Only a broadcast may leave processes out: they get zeros.
  return verify_collective_distinct(op, list, 0, 1, op->code != MP_OP_COLLECTIVE_BROADCAST,
                                    "replica_groups");
}

// Checks groups that are given by the axes of a mesh. The size of a group is the product of their
// sizes.
static mp_status_t verify_collective_mesh_groups(const mp_op_t *op, const mp_attr_t *groups,
                                                 int64_t *out_size) {
  const mp_mesh_t *mesh = groups->u.mesh_groups.mesh;
  mp_axis_list_t axes = groups->u.mesh_groups.axes;
  MP_RETURN_IF_ERROR(mp_verify_mesh(op, mesh));
  MP_RETURN_IF_ERROR(mp_verify_axes(op, mesh, axes));
  int64_t size = 1;
  for (uint32_t i = 0; i < axes.count; ++i) {
    int64_t axis = axes.axes[i].size;
    for (uint32_t j = 0; axis == 0 && j < mesh->num_axes; ++j) {
      if (mp_str_equal(mesh->axes[j].name, axes.axes[i].name)) axis = mesh->axes[j].size;
    }
    size *= axis;  // cannot overflow, because the axes are distinct parts of the mesh
  }
  *out_size = size;
  return NULL;
}

// Checks the op's groups. `*out_size` is the size of all groups if `uniform`, else the size of the
// largest one, and 0 for one group of all processes.
static mp_status_t verify_collective_groups(const mp_op_t *op, bool uniform, int64_t *out_size) {
  const mp_attr_t *groups = mp_op_attr(op, MP_ATTR_REPLICA_GROUPS);
  if (groups->kind == MP_KIND_MESH_GROUPS)
    return verify_collective_mesh_groups(op, groups, out_size);
  return verify_collective_group_table(op, groups, uniform, out_size);
}

// The same for collectives whose result grows or shrinks with the group. The size is 0, for "not
// known", for a table of replicas with a channel, because such groups contain all partitions of
// each replica, whose number is not known here.
static mp_status_t verify_collective_parts_groups(const mp_op_t *op, int64_t *out_size) {
  MP_RETURN_IF_ERROR(verify_collective_groups(op, true, out_size));
  const bool of_ids = mp_op_attr(op, MP_ATTR_REPLICA_GROUPS)->kind != MP_KIND_MESH_GROUPS;
  if (of_ids && mp_op_int(op, MP_ATTR_CHANNEL_ID, 0) > 0 &&
      !mp_op_bool(op, MP_ATTR_USE_GLOBAL_DEVICE_IDS, false)) {
    *out_size = 0;
  }
  return NULL;
}

// Global ids number the processes through all replicas and partitions, which only a collective with
// a channel does.
static mp_status_t verify_collective_channel(const mp_op_t *op) {
  MP_CHECK(op,
           !mp_op_bool(op, MP_ATTR_USE_GLOBAL_DEVICE_IDS, false) ||
               mp_op_int(op, MP_ATTR_CHANNEL_ID, 0) > 0,
           "use_global_device_ids without a channel");
  return NULL;
}

// A collective with several operands is a collective of each operand, with a result for each.
static mp_status_t verify_collective_results_count(const mp_op_t *op) {
  MP_CHECK(op, op->num_operands >= 1 && op->num_results == op->num_operands,
           "there are %u results for %u operands", op->num_results, op->num_operands);
  return NULL;
}

static mp_status_t verify_collective_same_types(const mp_op_t *op) {
  MP_RETURN_IF_ERROR(verify_collective_results_count(op));
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(mp_verify_same_type(op, mp_result_type(op, i), mp_operand_type(op, i),
                                           "a result and its operand"));
  }
  return NULL;
}

// There is one region for all operands, so it must combine scalars of every operand's type.
static mp_status_t verify_collective_computation(const mp_op_t *op) {
  for (uint32_t i = 1; i < op->num_operands; ++i) {
    MP_CHECK(op, mp_operand_type(op, i)->dtype == mp_operand_type(op, 0)->dtype,
             "the operands have different element types");
  }
  return mp_verify_reducer(op, 0, 1);
}

// Checks the result's size along a dimension, which is the operand's size times the group's. Where
// the group's size is not known here (see above), any multiple is accepted.
static mp_status_t verify_collective_gathered_size(const mp_op_t *op, int64_t operand,
                                                   int64_t result, int64_t group,
                                                   int64_t *out_size) {
  bool exact = group != 0 && (mp_op_int(op, MP_ATTR_CHANNEL_ID, 0) <= 0 ||
                              mp_op_bool(op, MP_ATTR_USE_GLOBAL_DEVICE_IDS, false));
  int64_t size = 0;
  MP_CHECK(op, !__builtin_mul_overflow(operand, group == 0 ? 1 : group, &size),
           "the size overflows");
  *out_size = size;
  if (exact) return NULL;
  MP_CHECK(op, size == 0 ? result == 0 : result > 0 && result % size == 0,
           "a size of %lld is not gathered from parts of %lld", (long long)result,
           (long long)operand);
  *out_size = result;
  return NULL;
}

mp_status_t mp_verify_all_gather(const mp_op_t *op) {
  int64_t group = 0, dim = 0;
  MP_RETURN_IF_ERROR(verify_collective_results_count(op));
  MP_RETURN_IF_ERROR(verify_collective_channel(op));
  MP_RETURN_IF_ERROR(verify_collective_parts_groups(op, &group));
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_type_t *operand = mp_operand_type(op, i), *result = mp_result_type(op, i);
    int64_t dims[MP_MAX_RANK];
    MP_RETURN_IF_ERROR(mp_verify_dim(op, MP_ATTR_ALL_GATHER_DIM, operand->rank, &dim));
    MP_CHECK(op, result->rank == operand->rank, "the result's rank is %u, the operand's %u",
             result->rank, operand->rank);
    for (uint32_t d = 0; d < operand->rank; ++d) dims[d] = operand->dims[d];
    MP_RETURN_IF_ERROR(verify_collective_gathered_size(op, operand->dims[dim], result->dims[dim],
                                                       group, &dims[dim]));
    MP_RETURN_IF_ERROR(mp_verify_result(op, i, operand->dtype, dims, operand->rank));
  }
  return NULL;
}

mp_status_t mp_verify_all_reduce(const mp_op_t *op) {
  int64_t group = 0;
  MP_RETURN_IF_ERROR(verify_collective_same_types(op));
  MP_RETURN_IF_ERROR(verify_collective_channel(op));
  MP_RETURN_IF_ERROR(verify_collective_groups(op, false, &group));
  return verify_collective_computation(op);
}

// An all_gather of the result would have the operand's shape, so the same rule is used.
mp_status_t mp_verify_reduce_scatter(const mp_op_t *op) {
  const mp_type_t *operand = mp_operand_type(op, 0), *result = mp_result_type(op, 0);
  int64_t group = 0, dim = 0, dims[MP_MAX_RANK];
  MP_RETURN_IF_ERROR(verify_collective_channel(op));
  MP_RETURN_IF_ERROR(verify_collective_parts_groups(op, &group));
  MP_RETURN_IF_ERROR(mp_verify_dim(op, MP_ATTR_SCATTER_DIMENSION, operand->rank, &dim));
  MP_CHECK(op, result->rank == operand->rank, "the result's rank is %u, the operand's %u",
           result->rank, operand->rank);
  for (uint32_t d = 0; d < operand->rank; ++d) dims[d] = result->dims[d];
  MP_RETURN_IF_ERROR(verify_collective_gathered_size(op, result->dims[dim], operand->dims[dim],
                                                     group, &dims[dim]));
  const mp_type_t whole = {
      .kind = MP_TYPE_TENSOR, .dtype = result->dtype, .rank = operand->rank, .dims = dims};
  MP_RETURN_IF_ERROR(
      mp_verify_same_type(op, operand, &whole, "the operand and all results together"));
  return verify_collective_computation(op);
}

// Each process keeps one part of the split dimension and gets one from every other process.
mp_status_t mp_verify_all_to_all(const mp_op_t *op) {
  int64_t group = 0, split = 0, concat = 0, count = mp_op_int(op, MP_ATTR_SPLIT_COUNT, 0);
  MP_RETURN_IF_ERROR(verify_collective_results_count(op));
  MP_RETURN_IF_ERROR(verify_collective_groups(op, true, &group));
  MP_CHECK(op, count >= 1 && (group == 0 || count == group),
           "split_count is %lld for groups of %lld", (long long)count, (long long)group);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_type_t *operand = mp_operand_type(op, i);
    int64_t dims[MP_MAX_RANK];
    MP_RETURN_IF_ERROR(mp_verify_dim(op, MP_ATTR_SPLIT_DIMENSION, operand->rank, &split));
    MP_RETURN_IF_ERROR(mp_verify_dim(op, MP_ATTR_CONCAT_DIMENSION, operand->rank, &concat));
    MP_CHECK(op, operand->dims[split] % count == 0,
             "dimension %lld of size %lld is not split into %lld parts", (long long)split,
             (long long)operand->dims[split], (long long)count);
    for (uint32_t d = 0; d < operand->rank; ++d) dims[d] = operand->dims[d];
    dims[split] /= count;
    MP_CHECK(op, !__builtin_mul_overflow(dims[concat], count, &dims[concat]), "the size overflows");
    MP_RETURN_IF_ERROR(mp_verify_result(op, i, operand->dtype, dims, operand->rank));
  }
  return NULL;
}

mp_status_t mp_verify_collective_broadcast(const mp_op_t *op) {
  int64_t group = 0;
  if (mp_op_bool(op, MP_ATTR_HAS_DYNAMIC_ROOT, false)) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "a dynamic root is not supported");
  }
  MP_RETURN_IF_ERROR(verify_collective_groups(op, false, &group));
  return verify_collective_same_types(op);
}

// Each process sends at most once and receives at most once.
static mp_status_t verify_collective_source_target_pairs(const mp_op_t *op) {
  mp_index_list_t pairs = {0, NULL};
  MP_RETURN_IF_ERROR(mp_verify_pairs(op, MP_ATTR_SOURCE_TARGET_PAIRS, -1, &pairs));
  for (uint32_t i = 0; i < pairs.count; ++i) {
    MP_CHECK(op, pairs.values[i] >= 0 && pairs.values[i] <= INT32_MAX,
             "source_target_pairs names process %lld", (long long)pairs.values[i]);
  }
  MP_RETURN_IF_ERROR(verify_collective_distinct(op, pairs, 0, 2, false, "the sources"));
  return verify_collective_distinct(op, pairs, 1, 2, false, "the targets");
}

mp_status_t mp_verify_collective_permute(const mp_op_t *op) {
  MP_RETURN_IF_ERROR(verify_collective_source_target_pairs(op));
  return verify_collective_same_types(op);
}

mp_status_t mp_verify_cross_replica_sum(const mp_op_t *op) {
  int64_t group = 0;
  MP_RETURN_IF_ERROR(verify_collective_groups(op, false, &group));
  return verify_collective_same_types(op);
}

// The rule of partition_id and replica_id.
mp_status_t mp_verify_device_id(const mp_op_t *op) {
  return mp_verify_result(op, 0, MP_DTYPE_U32, NULL, 0);
}

// A transfer is between devices or with the host; the channel's type and the flag must say the
// same.
static mp_status_t verify_collective_transfer(const mp_op_t *op, bool is_send) {
  enum { DEVICE_TO_DEVICE = 1, DEVICE_TO_HOST = 2, HOST_TO_DEVICE = 3 };
  int64_t type = mp_op_int(op, MP_ATTR_CHANNEL_TYPE, 0);
  int64_t host_type = is_send ? DEVICE_TO_HOST : HOST_TO_DEVICE;
  bool to_host = mp_op_bool(op, MP_ATTR_IS_HOST_TRANSFER, false);
  MP_CHECK(op, type == (to_host ? host_type : DEVICE_TO_DEVICE), "channel_type is %lld",
           (long long)type);
  if (mp_op_attr(op, MP_ATTR_SOURCE_TARGET_PAIRS) == NULL) return NULL;
  return verify_collective_source_target_pairs(op);
}

mp_status_t mp_verify_send(const mp_op_t *op) {
  MP_RETURN_IF_ERROR(mp_verify_outfeed(op));
  return verify_collective_transfer(op, true);
}

mp_status_t mp_verify_recv(const mp_op_t *op) {
  MP_RETURN_IF_ERROR(mp_verify_infeed(op));
  return verify_collective_transfer(op, false);
}

// Every partition's box must lie within the tensor; an empty box may lie anywhere.
static mp_status_t verify_collective_boxes(const mp_op_t *op, const mp_boxes_t *boxes) {
  for (uint64_t i = 0; i < (uint64_t)boxes->num_partitions * boxes->rank; ++i) {
    int64_t start = boxes->starts[i], size = boxes->sizes[i], end = 0;
    MP_CHECK(
        op,
        start >= 0 && size >= 0 &&
            (size == 0 ||
             (!__builtin_add_overflow(start, size, &end) && end <= boxes->dims[i % boxes->rank])),
        "box of partition %llu is not within the tensor", (unsigned long long)(i / boxes->rank));
  }
  return NULL;
}

mp_status_t mp_verify_exchange(const mp_op_t *op) {
  const mp_boxes_t *source = mp_op_attr(op, MP_ATTR_SOURCE)->u.boxes;
  const mp_boxes_t *target = mp_op_attr(op, MP_ATTR_TARGET)->u.boxes;
  MP_CHECK(op, source->rank == target->rank && source->num_partitions == target->num_partitions,
           "source and target are not of one tensor and one set of partitions");
  MP_RETURN_IF_ERROR(verify_collective_boxes(op, source));
  MP_RETURN_IF_ERROR(verify_collective_boxes(op, target));
  const mp_type_t *operand = mp_operand_type(op, 0), *result = mp_result_type(op, 0);
  MP_CHECK(op, operand->dtype == result->dtype, "operand and result have different types");
  MP_CHECK(op, operand->rank == source->rank && result->rank == source->rank,
           "values of rank %u and %u, boxes of rank %u", operand->rank, result->rank, source->rank);
  return NULL;
}
