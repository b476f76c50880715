// The local forms of custom calls and of collectives.
#include "sim/ir/schema.h"
#include "sim/spmd/local/lower_form.h"
#include "sim/spmd/rules/custom_call_dims.h"

// ---- custom calls: the batch ----

// Whether dimension `dim` of every tensor is this factor and nothing else. This must be checked,
// because a call may state its rule itself, and the rule need not fit what the call computes.
static bool lower_call_is_factor_everywhere(const mp_lowerer_t *low, uint32_t dim,
                                            uint32_t factor) {
  for (uint32_t t = 0; t < mp_lowerer_num_tensors(low); ++t) {
    const mp_type_t *type = mp_lowerer_type(low, t);
    if (dim >= type->rank || low->rule->tensors[t][dim].count != 1) return false;
    if (low->rule->tensors[t][dim].factors[0] != factor) return false;
    if (type->dims[dim] != low->rule->factors[factor].size) return false;
  }
  return true;
}

static bool lower_call_is_batch(const mp_lowerer_t *low, uint32_t factor) {
  const uint32_t batch = mp_call_batch_dims(low->op);
  for (uint32_t d = 0; d < batch; ++d) {
    if (lower_call_is_factor_everywhere(low, d, factor)) return true;
  }
  return false;
}

const mp_local_form_t mp_form_custom_call = {.is_usable = lower_call_is_batch};

// ---- collectives of manual regions ----

// Whether two partitions differ only in manual atoms.
static bool lower_call_agree_on_free_atoms(const mp_lowerer_t *low, int64_t a, int64_t b) {
  const mp_atom_space_t *space = &low->propagation->space;
  for (uint32_t i = 0; i < space->count; ++i) {
    if (low->tensors[0]->manual >> i & 1) continue;
    if (a / space->stride[i] % space->prime[i] != b / space->stride[i] % space->prime[i]) {
      return false;
    }
  }
  return true;
}

// Whether the ids in the op's table number partitions.
static bool lower_call_names_partitions(const mp_op_t *op) {
  if (mp_op_int(op, MP_ATTR_CHANNEL_ID, 0) <= 0) return false;
  const bool has_flag = mp_schema_find(op->code, MP_ATTR_USE_GLOBAL_DEVICE_IDS) != NULL;
  return !has_flag || mp_op_bool(op, MP_ATTR_USE_GLOBAL_DEVICE_IDS, false);
}

// The members of a group hold parts of different arrays, one array per value of the manual axes. If
// all hold the same part of their arrays, a collective on the parts gives the part of the
// collective on the whole arrays.
static bool lower_call_is_along_free_axes(const mp_lowerer_t *low, uint32_t factor) {
  (void)factor;
  const mp_op_t *op = low->op;
  if (low->scope->parent == NULL || low->tensors[0] == NULL || !lower_call_names_partitions(op))
    return false;
  const mp_attr_t *table =
      mp_op_attr(op, op->code == MP_OP_COLLECTIVE_PERMUTE ? MP_ATTR_SOURCE_TARGET_PAIRS
                                                          : MP_ATTR_REPLICA_GROUPS);
  if (table == NULL || table->kind != MP_KIND_INTS || table->u.ints.count == 0) return false;
  const size_t columns = table->u.ints.rank == 2 ? (size_t)table->u.ints.dims[1] : 0;
  for (size_t i = 0; columns != 0 && i < table->u.ints.count; ++i) {
    const int64_t first = table->u.ints.values[i - i % columns];
    const int64_t id = table->u.ints.values[i];
    if (id == -1) continue;  // it only fills up a group
    if (id >= (int64_t)low->propagation->space.num_partitions) return false;
    if (!lower_call_agree_on_free_atoms(low, first, id)) return false;
  }
  return columns != 0;
}

const mp_local_form_t mp_form_collective = {.is_usable = lower_call_is_along_free_axes};
