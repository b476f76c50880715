// Meshes, shardings and sharding rules (Shardy dialect documentation, "Attributes").
#include "sim/base/alloc.h"
#include "sim/ir/verify/verify_rules.h"

// A check whose error is about the op, or about the function's signature when there is no op.
#define SDY_CHECK(op, condition, ...)                      \
  do {                                                     \
    if (!(condition)) return sdy_error((op), __VA_ARGS__); \
  } while (0)

MP_PRINTF(2, 3) static mp_status_t sdy_error(const mp_op_t *op, const char *format, ...) {
  va_list args;
  va_start(args, format);
  mp_status_t status = mp_status_vmake(MP_INVALID_ARGUMENT, format, args);
  va_end(args);
  if (op == NULL) return mp_status_annotate(status, "signature");
  return mp_op_error_at(op, status);
}

enum { MAX_AXES = 64, MAX_MESH_SIZE = 1 << 24 };

static bool verify_sdy_is_maximal(const mp_mesh_t *mesh) {
  return mesh->num_axes == 0 && mesh->num_device_ids == 1;
}

// The ids must be a permutation of 0 .. count-1.
static mp_status_t verify_sdy_device_ids(const mp_op_t *op, const mp_mesh_t *mesh, int64_t count) {
  SDY_CHECK(op, mesh->num_device_ids == count, "mesh '%.*s' has %u device ids for %lld devices",
            MP_STR_ARG(mesh->name), mesh->num_device_ids, (long long)count);
  bool *seen = mp_calloc((size_t)count, sizeof(*seen));
  MP_RETURN_IF_NULL(seen);
  mp_status_t status = NULL;
  for (uint32_t i = 0; i < mesh->num_device_ids && status == NULL; ++i) {
    int64_t id = mesh->device_ids[i];
    if (id < 0 || id >= count || seen[id]) {
      status = sdy_error(op, "the device ids of mesh '%.*s' are not a permutation (%lld)",
                         MP_STR_ARG(mesh->name), (long long)id);
    } else {
      seen[id] = true;
    }
  }
  mp_free(seen);
  return status;
}

mp_status_t mp_verify_mesh(const mp_op_t *op, const mp_mesh_t *mesh) {
  int64_t count = 1;
  SDY_CHECK(op, mesh->num_axes <= MAX_AXES, "mesh '%.*s' has %u axes", MP_STR_ARG(mesh->name),
            mesh->num_axes);
  for (uint32_t i = 0; i < mesh->num_axes; ++i) {
    const mp_mesh_axis_t *axis = &mesh->axes[i];
    SDY_CHECK(
        op,
        axis->size >= 1 && axis->size <= MAX_MESH_SIZE && (count *= axis->size) <= MAX_MESH_SIZE,
        "axis '%.*s' of mesh '%.*s' has size %lld", MP_STR_ARG(axis->name), MP_STR_ARG(mesh->name),
        (long long)axis->size);
    for (uint32_t j = 0; j < i; ++j) {
      SDY_CHECK(op, !mp_str_equal(mesh->axes[j].name, axis->name),
                "mesh '%.*s' has two axes '%.*s'", MP_STR_ARG(mesh->name), MP_STR_ARG(axis->name));
    }
  }
  if (mesh->num_device_ids == 0) return NULL;
  if (verify_sdy_is_maximal(mesh)) {
    SDY_CHECK(op, mesh->device_ids[0] >= 0 && mesh->device_ids[0] <= INT32_MAX,
              "mesh '%.*s' is of device %lld", MP_STR_ARG(mesh->name),
              (long long)mesh->device_ids[0]);
    return NULL;
  }
  return verify_sdy_device_ids(op, mesh, count);
}

// The parts of a mesh's axes that a sharding uses: each is a range of factors of one axis.
typedef struct {
  uint32_t count;
  struct {
    uint32_t axis;
    int64_t low, high;  // [pre_size, pre_size * size)
  } spans[4 * MAX_AXES];
} axis_use_t;

// Adds a range of an axis, which must not overlap with another range of the same axis.
static mp_status_t verify_sdy_use_axis(const mp_op_t *op, const mp_mesh_t *mesh,
                                       const mp_axis_ref_t *ref, axis_use_t *use) {
  uint32_t axis = 0;
  while (axis < mesh->num_axes && !mp_str_equal(mesh->axes[axis].name, ref->name)) ++axis;
  SDY_CHECK(op, axis < mesh->num_axes, "mesh '%.*s' has no axis '%.*s'", MP_STR_ARG(mesh->name),
            MP_STR_ARG(ref->name));
  int64_t whole = mesh->axes[axis].size, low = 1, high = whole;
  if (ref->size != 0) {
    low = ref->pre_size;
    bool fits = low >= 1 && ref->size > 1 && !__builtin_mul_overflow(low, ref->size, &high) &&
                high <= whole && whole % high == 0;
    SDY_CHECK(op, fits, "\"%.*s\":(%lld)%lld is not a part of an axis of size %lld",
              MP_STR_ARG(ref->name), (long long)ref->pre_size, (long long)ref->size,
              (long long)whole);
  }
  for (uint32_t i = 0; i < use->count; ++i) {
    bool apart =
        use->spans[i].axis != axis || use->spans[i].high <= low || high <= use->spans[i].low;
    // The range of an axis of size 1 is empty, but such an axis may not occur twice either.
    if (use->spans[i].axis == axis && whole == 1) apart = false;
    SDY_CHECK(op, apart, "axis '%.*s' is used twice", MP_STR_ARG(ref->name));
  }
  SDY_CHECK(op, use->count < sizeof(use->spans) / sizeof(use->spans[0]), "too many axes are used");
  use->spans[use->count].axis = axis;
  use->spans[use->count].low = low;
  use->spans[use->count++].high = high;
  return NULL;
}

static mp_status_t verify_sdy_use_axes(const mp_op_t *op, const mp_mesh_t *mesh,
                                       mp_axis_list_t axes, axis_use_t *use) {
  for (uint32_t i = 0; i < axes.count; ++i) {
    MP_RETURN_IF_ERROR(verify_sdy_use_axis(op, mesh, &axes.axes[i], use));
  }
  return NULL;
}

mp_status_t mp_verify_axes(const mp_op_t *op, const mp_mesh_t *mesh, mp_axis_list_t axes) {
  axis_use_t use;
  use.count = 0;
  return verify_sdy_use_axes(op, mesh, axes, &use);
}

// An axis (or sub-axis) shards a dimension, is replicated or is unreduced, and occurs once.
mp_status_t mp_verify_sharding(const mp_op_t *op, const mp_sdy_sharding_t *sharding,
                               const mp_type_t *type) {
  axis_use_t use;
  use.count = 0;
  uint32_t rank = type->kind == MP_TYPE_TENSOR ? type->rank : 0;
  MP_RETURN_IF_ERROR(mp_verify_mesh(op, sharding->mesh));
  // A maximal mesh says on which partition the value is, whatever the value's rank.
  SDY_CHECK(
      op, sharding->rank == rank || (sharding->rank == 0 && verify_sdy_is_maximal(sharding->mesh)),
      "a sharding of rank %u for a value of rank %u", sharding->rank, rank);
  for (uint32_t i = 0; i < sharding->rank; ++i) {
    MP_RETURN_IF_ERROR(verify_sdy_use_axes(op, sharding->mesh, sharding->dims[i].axes, &use));
  }
  MP_RETURN_IF_ERROR(verify_sdy_use_axes(op, sharding->mesh, sharding->replicated, &use));
  return verify_sdy_use_axes(op, sharding->mesh, sharding->unreduced, &use);
}

// ---- rules ----

static mp_status_t verify_sdy_factors(const mp_op_t *op, mp_index_list_t factors, uint32_t count) {
  for (uint32_t i = 0; i < factors.count; ++i) {
    MP_CHECK(op, factors.values[i] >= 0 && factors.values[i] < (int64_t)count,
             "a sharding rule names factor %lld of %u", (long long)factors.values[i], count);
  }
  return NULL;
}

// A dimension may belong to several factors, as in a reshape, and a factor to many dimensions.
static mp_status_t verify_sdy_mapping(const mp_op_t *op, const mp_tensor_mapping_t *mapping,
                                      const mp_type_t *type, uint32_t num_factors) {
  uint32_t rank = type->kind == MP_TYPE_TENSOR ? type->rank : 0;
  MP_CHECK(op, mapping->rank == rank, "a sharding rule maps %u dimensions of a value of rank %u",
           mapping->rank, rank);
  for (uint32_t i = 0; i < rank; ++i) {
    MP_RETURN_IF_ERROR(verify_sdy_factors(op, mapping->dims[i], num_factors));
  }
  return NULL;
}

mp_status_t mp_verify_sharding_rule(const mp_op_t *op, const mp_sharding_rule_t *rule) {
  uint32_t factors = rule->factor_sizes.count;
  MP_CHECK(op, rule->num_operands == op->num_operands && rule->num_results == op->num_results,
           "a sharding rule for %u operands and %u results", rule->num_operands, rule->num_results);
  for (uint32_t i = 0; i < factors; ++i) {
    MP_CHECK(op, rule->factor_sizes.values[i] >= 0, "a factor of a sharding rule has size %lld",
             (long long)rule->factor_sizes.values[i]);
  }
  for (uint32_t i = 0; i < rule->num_operands; ++i) {
    MP_RETURN_IF_ERROR(verify_sdy_mapping(op, &rule->operands[i], mp_operand_type(op, i), factors));
  }
  for (uint32_t i = 0; i < rule->num_results; ++i) {
    MP_RETURN_IF_ERROR(verify_sdy_mapping(op, &rule->results[i], mp_result_type(op, i), factors));
  }
  MP_RETURN_IF_ERROR(verify_sdy_factors(op, rule->reduction, factors));
  MP_RETURN_IF_ERROR(verify_sdy_factors(op, rule->need_replication, factors));
  MP_RETURN_IF_ERROR(verify_sdy_factors(op, rule->permutation, factors));
  return verify_sdy_factors(op, rule->blocked_propagation, factors);
}
