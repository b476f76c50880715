// Results whose layout the client leaves open.
//
// A program computes on row-major arrays, but the result of a transpose is its operand with another
// layout: with that layout the transpose costs nothing (layouts.c removes it). A layout that the
// program itself requests is used unchanged.
#include "sim/ir/layout.h"
#include "sim/passes/passes.h"

static bool open_layouts_is_call_to(const mp_op_t *op, const char *target) {
  return op->code == MP_OP_CUSTOM_CALL && op->num_operands == 1 &&
         mp_str_is(mp_op_str(op, MP_ATTR_CALL_TARGET_NAME), target);
}

// Ops that only state the devices of their operand.
static bool open_layouts_is_transparent(const mp_op_t *op) {
  return op->code == MP_OP_SDY_SHARDING_CONSTRAINT || op->code == MP_OP_SDY_RESHARD ||
         open_layouts_is_call_to(op, "Sharding") ||
         open_layouts_is_call_to(op, "annotate_device_placement");
}

// Reads the order that a call of LayoutConstraint requests: its only entry of result_layouts, which
// the verifier has checked.
static bool open_layouts_of_constraint(const mp_op_t *op, uint32_t rank, int64_t *minor_to_major) {
  const mp_attr_t *layouts = mp_op_attr(op, MP_ATTR_RESULT_LAYOUTS);
  if (layouts == NULL || layouts->kind != MP_KIND_ARRAY || layouts->u.array.count != 1)
    return false;
  const mp_attr_t *order = layouts->u.array.items[0];
  if (order->kind != MP_KIND_INTS || order->u.ints.count != rank) return false;
  for (uint32_t i = 0; i < rank; ++i) minor_to_major[i] = order->u.ints.values[i];
  return true;
}

// In memory the dimensions have the order of the transpose's operand.
static void open_layouts_of_transpose(const mp_op_t *op, int64_t *minor_to_major) {
  const mp_index_list_t permutation = mp_op_ints(op, MP_ATTR_PERMUTATION);
  for (uint32_t i = 0; i < permutation.count; ++i) {
    minor_to_major[permutation.count - 1 - (uint32_t)permutation.values[i]] = i;
  }
}

// The order of dimensions for a result; false: row-major is as good as any.
static bool open_layouts_find(const mp_value_t *value, int64_t *minor_to_major) {
  while (value->op != NULL && open_layouts_is_transparent(value->op)) {
    value = value->op->operands[0];
  }
  if (value->op == NULL || !mp_type_is_tensor(value->type)) return false;
  const uint32_t rank = value->type->rank;
  if (rank == 0 || rank > MP_MAX_RANK) return false;
  if (open_layouts_is_call_to(value->op, "LayoutConstraint")) {
    return open_layouts_of_constraint(value->op, rank, minor_to_major);
  }
  if (value->op->code != MP_OP_TRANSPOSE) return false;
  open_layouts_of_transpose(value->op, minor_to_major);
  return true;
}

static mp_status_t open_layouts_write(mp_arena_t *arena, const int64_t *minor_to_major,
                                      uint32_t rank, const mp_attr_t **out_attr) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  for (uint32_t i = 0; i < rank; ++i) {
    mp_strbuf_printf(&text, "%s%lld", i == 0 ? "{" : ",", (long long)minor_to_major[i]);
  }
  mp_strbuf_putc(&text, '}');
  mp_status_t status = mp_strbuf_status(&text);
  if (status == NULL) {
    status = mp_attr_make_string(arena, (mp_str_t){mp_strbuf_text(&text), text.size}, out_attr);
  }
  mp_strbuf_deinit(&text);
  return status;
}

mp_status_t mp_pass_open_layouts(mp_module_t *module) {
  mp_func_t *main = module->main;
  const mp_op_t *terminator = mp_block_terminator(main->body);
  for (uint32_t i = 0; i < main->num_results && main->result_attrs != NULL; ++i) {
    const mp_attr_t *mode = mp_attr_dict_get(main->result_attrs[i], MP_ATTR_MHLO_LAYOUT_MODE);
    int64_t order[MP_MAX_RANK];
    if (mode == NULL || mode->kind != MP_KIND_STRING || !mp_str_is(mode->u.str, "auto") ||
        !open_layouts_find(terminator->operands[i], order)) {
      continue;
    }
    const mp_attr_t *chosen = NULL;
    MP_RETURN_IF_ERROR(
        open_layouts_write(module->arena, order, terminator->operands[i]->type->rank, &chosen));
    MP_RETURN_IF_ERROR(mp_attr_dict_replace(module->arena, main->result_attrs[i],
                                            MP_ATTR_MHLO_LAYOUT_MODE, chosen,
                                            &main->result_attrs[i]));
  }
  return NULL;
}
