// Shared by the files that rewrite ops.
#include "sim/spmd/partition/partitioner.h"
#include "sim/spmd/sharding/placement.h"

mp_status_t mp_partitioner_block(mp_partitioner_t *p, const mp_block_t *block,
                                 const mp_op_t **out_terminator) {
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    if (mp_op_has(op, MP_OP_TRAIT_TERMINATOR)) {
      *out_terminator = op;
      return NULL;
    }
    MP_RETURN_IF_ERROR(p->partition_op(p, op));
  }
  return NULL;
}

mp_status_t mp_partitioner_get_whole(mp_partitioner_t *p, const mp_op_t *op,
                                     const mp_value_t *value, mp_value_t **out_value) {
  return mp_versions_get(&p->versions, p->scope, value, NULL, op->loc, out_value);
}

mp_status_t mp_partitioner_check_local_type(mp_partitioner_t *p, const mp_op_t *op,
                                            const mp_type_t *global_type, const mp_boxes_t *boxes,
                                            const mp_type_t *local_type) {
  const mp_type_t *expected = NULL;
  MP_RETURN_IF_ERROR(mp_placement_local_type(p->arena, global_type, boxes, &expected));
  if (mp_type_equal(expected, local_type)) return NULL;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_type_print(local_type, &text);
  mp_strbuf_puts(&text, " is not the local part ");
  mp_type_print(expected, &text);
  mp_status_t status = mp_strbuf_status(&text);
  if (status == NULL) status = mp_op_error(op, MP_INVALID_ARGUMENT, "%s", mp_strbuf_text(&text));
  mp_strbuf_deinit(&text);
  return status;
}

mp_status_t mp_partitioner_start_op(mp_partitioner_t *p, const mp_op_t *op,
                                    mp_op_parts_t *out_parts) {
  *out_parts = (mp_op_parts_t){
      .operands = MP_ARENA_ARRAY(p->arena, mp_value_t *, op->num_operands),
      .types = MP_ARENA_ARRAY(p->arena, const mp_type_t *, op->num_results),
      .regions = MP_ARENA_ARRAY(p->arena, mp_block_t *, op->num_regions),
      .attrs = op->attrs,
  };
  if (out_parts->operands == NULL || out_parts->types == NULL || out_parts->regions == NULL) {
    return mp_status_out_of_memory();
  }
  return NULL;
}

mp_status_t mp_partitioner_finish_op(mp_partitioner_t *p, const mp_op_t *op,
                                     const mp_op_parts_t *parts, mp_op_t **out_copy) {
  const mp_op_spec_t spec = {op->code,        op->loc,      op->num_operands, parts->operands,
                             op->num_results, parts->types, op->num_regions,  parts->regions,
                             op->num_attrs,   parts->attrs};
  MP_RETURN_IF_ERROR(mp_op_create(p->module, &spec, out_copy));
  mp_block_append(p->versions.block, *out_copy);
  return NULL;
}
