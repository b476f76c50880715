#include "sim/spmd/partition/partition.h"

#include "sim/spmd/build/combine_sums.h"
#include "sim/spmd/partition/partitioner.h"
#include "sim/spmd/sharding/annotations.h"

static mp_status_t partition_dispatch(mp_partitioner_t *p, const mp_op_t *op) {
  if (op->code == MP_OP_SDY_MANUAL_COMPUTATION) return mp_partitioner_manual(p, op);
  if (op->code == MP_OP_SDY_SHARDING_GROUP) return NULL;
  if (mp_partitioner_is_call_to(op, "InspectSharding")) return mp_partitioner_inspect(p, op);
  if (mp_partitioner_is_custom(p, op)) return mp_partitioner_custom(p, op);
  if (mp_op_is_placement(op)) return mp_partitioner_place(p, op);
  if (op->code == MP_OP_SDY_SHARDING_CONSTRAINT || op->code == MP_OP_SDY_RESHARD)
    return mp_partitioner_constraint(p, op);
  if (mp_is_placement_op(op)) return mp_partitioner_identity(p, op);
  if (mp_partitioner_is_call_to(op, "SPMDFullToShardShape"))
    return mp_partitioner_full_to_shard(p, op);
  if (mp_partitioner_is_call_to(op, "SPMDShardToFullShape"))
    return mp_partitioner_shard_to_full(p, op);
  if (mp_op_is_sdy(op)) {
    return mp_op_error(op, MP_UNIMPLEMENTED,
                       "%s is an op that only partitioners make; programs must not hold it",
                       mp_op_info(op->code)->name);
  }
  bool is_done = false;
  MP_RETURN_IF_ERROR(mp_partitioner_call(p, op, &is_done));
  return is_done ? NULL : mp_partitioner_op(p, op);
}

static mp_status_t partition_propagate(mp_partitioner_t *p, const mp_partition_options_t *options) {
  const uint32_t num_params = p->module->main->body->num_args;
  const uint32_t num_results = p->module->main->num_results;
  if (options->num_partitions == 1) return NULL;
  bool *is_param_open = MP_ARENA_ARRAY(p->arena, bool, num_params);
  bool *is_result_open = MP_ARENA_ARRAY(p->arena, bool, num_results);
  if (is_param_open == NULL || is_result_open == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < num_params; ++i)
    is_param_open[i] = mp_partitioner_is_allowed(options->propagate_to_params,
                                                 options->num_propagate_to_params, i);
  for (uint32_t i = 0; i < num_results; ++i)
    is_result_open[i] = mp_partitioner_is_allowed(options->propagate_to_results,
                                                  options->num_propagate_to_results, i);
  const mp_propagate_options_t propagate_options = {options->num_partitions, is_param_open,
                                                    is_result_open, .is_as_in_xla = true};
  return mp_propagate(p->module, &propagate_options, &p->propagation, &p->is_propagated);
}

mp_status_t mp_spmd_partition(mp_module_t *module, const mp_partition_options_t *options,
                              mp_partition_t *out_partition) {
  mp_func_t *main = module->main;
  mp_partitioner_t p = {.module = module,
                        .arena = module->arena,
                        .partition_op = partition_dispatch,
                        .custom = options->custom};
  module->num_partitions = options->num_partitions;
  MP_RETURN_IF_ERROR(mp_spmd_scope_top(p.arena, options->num_partitions, &p.scope));
  MP_RETURN_IF_ERROR(partition_propagate(&p, options));
  MP_RETURN_IF_ERROR(mp_versions_create(module, &p.versions));
  MP_RETURN_IF_ERROR(mp_partitioner_count_uses(&p));
  mp_partition_io_t *params = MP_ARENA_ARRAY(p.arena, mp_partition_io_t, main->body->num_args);
  mp_partition_io_t *results = MP_ARENA_ARRAY(p.arena, mp_partition_io_t, main->num_results);
  if (params == NULL || results == NULL) return mp_status_out_of_memory();
  mp_block_t *body = NULL;
  MP_RETURN_IF_ERROR(mp_partitioner_params(&p, main, options, &body, params));
  p.versions.block = body;
  const mp_op_t *terminator = NULL;
  MP_RETURN_IF_ERROR(mp_partitioner_block(&p, main->body, &terminator));
  if (terminator == NULL || terminator->num_operands != main->num_results) {
    return mp_status_make(MP_INVALID_ARGUMENT, "main does not return %u values", main->num_results);
  }
  MP_RETURN_IF_ERROR(mp_partitioner_results(&p, main, terminator, options, results));
  body->parent_func = main;
  main->body = body;
  MP_RETURN_IF_ERROR(mp_partitioner_drop_unread(&p, body));
  MP_RETURN_IF_ERROR(mp_spmd_combine(module, body));
  *out_partition = (mp_partition_t){.params = params,
                                    .results = results,
                                    .report = {.num_partitions = options->num_partitions,
                                               .num_replicated = p.replicated.count,
                                               .replicated = p.replicated.items},
                                    .inspected = p.inspected.items,
                                    .num_inspected = p.inspected.count};
  return NULL;
}
