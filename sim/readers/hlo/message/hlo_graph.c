#include "sim/readers/hlo/message/hlo_graph.h"

#include "sim/base/assert.h"
#include "sim/base/hash.h"
#include "sim/ir/loc.h"
#include "sim/readers/hlo/message/hlo_locs.h"

#define FIELD(number, kind, member) MP_HLO_FIELD(number, kind, mp_hlo_inst_t, member)
MP_HLO_MESSAGE(
    g_instruction, "HloInstructionProto", FIELD(1, TEXT, name), FIELD(2, TEXT, opcode),
    FIELD(3, TEXT, shape_bytes), FIELD(7, TEXT, metadata_bytes), FIELD(8, TEXT, literal_bytes),
    FIELD(9, INT, parameter_number), FIELD(13, INT, tuple_index), FIELD(14, INTS, dimensions),
    FIELD(15, TEXT, window_bytes), FIELD(16, TEXT, convolution_bytes), FIELD(17, TEXTS, slices),
    FIELD(18, INT, exponent_bits), FIELD(19, INT, mantissa_bits),
    FIELD(20, INTS, dynamic_slice_sizes), FIELD(21, TEXT, padding_bytes),
    FIELD(23, INT, distribution), FIELD(24, FLOAT, epsilon), FIELD(25, INT, feature_index),
    FIELD(26, INT, channel_id), FIELD(28, TEXT, custom_call_target), FIELD(30, TEXT, dot_bytes),
    FIELD(31, INT, fft_type), FIELD(32, INTS, fft_length), FIELD(33, TEXT, gather_bytes),
    FIELD(34, INTS, gather_slice_sizes), FIELD(35, INT, id), FIELD(36, INTS, operand_ids),
    FIELD(37, INTS, predecessor_ids), FIELD(38, INTS, called_ids), FIELD(40, TEXT, sharding_bytes),
    FIELD(43, TEXT, backend_config), FIELD(47, FLAG, is_host_transfer),
    FIELD(48, TEXT, scatter_bytes), FIELD(49, TEXTS, replica_groups),
    FIELD(50, INT, feature_group_count), FIELD(51, TEXT, precision_bytes),
    FIELD(52, TEXTS, source_target_pairs), FIELD(56, FLAG, constrain_layout),
    FIELD(57, TEXTS, operand_shapes), FIELD(58, INT, batch_group_count),
    FIELD(59, TEXT, triangular_bytes), FIELD(60, FLAG, is_stable), FIELD(62, TEXT, cholesky_bytes),
    FIELD(63, TEXT, comparison_direction), FIELD(65, FLAG, has_side_effect),
    FIELD(67, FLAG, indices_are_sorted), FIELD(68, TEXT, frontend_bytes),
    FIELD(69, FLAG, unique_indices), FIELD(70, INT, rng_algorithm),
    FIELD(71, FLAG, use_global_device_ids), FIELD(72, TEXT, comparison_type),
    FIELD(74, TEXTS, aliasing), FIELD(77, INT, api_version), FIELD(85, FLAG, largest),
    FIELD(87, TEXT, device_list_bytes), FIELD(92, TEXT, iota_list_bytes),
    FIELD(93, TEXT, mesh_list_bytes));
#undef FIELD

MP_HLO_MESSAGE(g_computation, "HloComputationProto", MP_HLO_FIELD(1, TEXT, mp_hlo_comp_t, name),
               MP_HLO_FIELD(2, TEXTS, mp_hlo_comp_t, inst_bytes),
               MP_HLO_FIELD(5, INT, mp_hlo_comp_t, id),
               MP_HLO_FIELD(6, INT, mp_hlo_comp_t, root_id));

// ---- errors ----

static mp_status_t hlo_graph_error(const mp_hlo_inst_t *inst, mp_status_code_t code,
                                   const char *message) {
  mp_strbuf_t where;
  mp_strbuf_init(&where);
  if (inst->loc != NULL && inst->loc->num_children != 0) {
    mp_strbuf_puts(&where, ", ");
    mp_loc_describe(inst->loc, &where);
  }
  mp_status_t status = mp_status_make(code, "computation '%.*s': instruction '%.*s' (%.*s%s): %s",
                                      MP_STR_ARG(inst->comp->name), MP_STR_ARG(inst->name),
                                      MP_STR_ARG(inst->opcode), mp_strbuf_text(&where), message);
  mp_strbuf_deinit(&where);
  return status;
}

mp_status_t mp_hlo_error(const mp_hlo_inst_t *inst, mp_status_code_t code, const char *format,
                         ...) {
  va_list args;
  va_start(args, format);
  mp_status_t plain = mp_status_vmake(code, format, args);
  va_end(args);
  return mp_hlo_error_at(inst, plain);
}

mp_status_t mp_hlo_error_at(const mp_hlo_inst_t *inst, mp_status_t status) {
  if (status == NULL || status == mp_status_out_of_memory()) return status;
  mp_status_t full = hlo_graph_error(inst, mp_status_code(status), mp_status_message(status));
  mp_status_release(status);
  return full;
}

// ---- numbers ----

// The ids come from the program, so the hash starts from a secret: then a program cannot choose ids
// with equal hashes.
static void *hlo_graph_find(const mp_hlo_t *h, const mp_hlo_ids_t *ids, int64_t id) {
  const mp_hlo_by_id_t *entry;
  MP_HASH_MAP_EACH(ids, mp_hash_u64(h->secret, (uint64_t)id), entry) {
    if (entry->id == id) return entry->object;
  }
  return NULL;
}

// `*out_is_new` is false when an object of this id already exists.
static mp_status_t hlo_graph_enter(mp_hlo_t *h, mp_hlo_ids_t *ids, int64_t id, void *object,
                                   bool *out_is_new) {
  *out_is_new = hlo_graph_find(h, ids, id) == NULL;
  if (!*out_is_new) return NULL;
  const mp_hlo_by_id_t entry = {mp_hash_u64(h->secret, (uint64_t)id), id, object};
  return MP_HASH_MAP_ADD(h->source.arena, ids, &entry);
}

static mp_status_t hlo_graph_find_insts(mp_hlo_t *h, const mp_hlo_ids_t *ids,
                                        const mp_hlo_inst_t *inst, const mp_hlo_ints_t *numbers,
                                        const char *what, mp_hlo_inst_t ***out_insts) {
  mp_hlo_inst_t **insts = MP_ARENA_ARRAY(h->source.arena, mp_hlo_inst_t *, numbers->count);
  MP_RETURN_IF_NULL(insts);
  for (uint32_t i = 0; i < numbers->count; ++i) {
    insts[i] = hlo_graph_find(h, ids, numbers->items[i]);
    if (insts[i] != NULL) continue;
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT,
                        "%s[%u]: the computation has no instruction with id %lld", what, i,
                        (long long)numbers->items[i]);
  }
  *out_insts = insts;
  return NULL;
}

static mp_status_t hlo_graph_link(mp_hlo_t *h, const mp_hlo_ids_t *insts, const mp_hlo_ids_t *comps,
                                  mp_hlo_inst_t *inst) {
  MP_RETURN_IF_ERROR(
      hlo_graph_find_insts(h, insts, inst, &inst->operand_ids, "operand_ids", &inst->operands));
  MP_RETURN_IF_ERROR(hlo_graph_find_insts(h, insts, inst, &inst->predecessor_ids,
                                          "control_predecessor_ids", &inst->predecessors));
  inst->called = MP_ARENA_ARRAY(h->source.arena, mp_hlo_comp_t *, inst->called_ids.count);
  MP_RETURN_IF_NULL(inst->called);
  for (uint32_t i = 0; i < inst->called_ids.count; ++i) {
    inst->called[i] = hlo_graph_find(h, comps, inst->called_ids.items[i]);
    if (inst->called[i] != NULL) continue;
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT,
                        "called_computation_ids[%u]: there is no computation with id %lld", i,
                        (long long)inst->called_ids.items[i]);
  }
  return NULL;
}

// ---- the order ----

typedef struct {
  mp_hlo_inst_t *inst;
  uint32_t next;  // of the operands, then the predecessors
} visit_t;

enum { UNSEEN, OPEN, DONE };

static mp_hlo_inst_t *hlo_graph_before(const mp_hlo_inst_t *inst, uint32_t i) {
  if (i < inst->operand_ids.count) return inst->operands[i];
  i -= inst->operand_ids.count;
  return i < inst->predecessor_ids.count ? inst->predecessors[i] : NULL;
}

// Orders an instruction after all that it needs. Depth first, with an explicit stack, because a
// program's chains may be arbitrarily long.
static mp_status_t hlo_graph_visit(mp_hlo_comp_t *comp, mp_hlo_inst_t *start, uint8_t *states,
                                   visit_t *stack, uint32_t *num_ordered) {
  uint32_t depth = 0;
  if (states[start->index] == DONE) return NULL;
  stack[depth++] = (visit_t){start, 0};
  states[start->index] = OPEN;
  while (depth != 0) {
    visit_t *top = &stack[depth - 1];
    mp_hlo_inst_t *before = hlo_graph_before(top->inst, top->next++);
    if (before == NULL) {
      states[top->inst->index] = DONE;
      MP_ASSERT(*num_ordered < comp->count);
      comp->order[(*num_ordered)++] = top->inst;
      --depth;
    } else if (states[before->index] == OPEN) {
      return mp_hlo_error(top->inst, MP_INVALID_ARGUMENT,
                          "it needs its own result, by way of instruction '%.*s'",
                          MP_STR_ARG(before->name));
    } else if (states[before->index] == UNSEEN) {
      MP_ASSERT(depth < comp->count);  // an instruction is opened once
      states[before->index] = OPEN;
      stack[depth++] = (visit_t){before, 0};
    }
  }
  return NULL;
}

static mp_status_t hlo_graph_order(mp_hlo_t *h, mp_hlo_comp_t *comp) {
  uint8_t *states = mp_arena_alloc(h->source.arena, comp->count);
  visit_t *stack = MP_ARENA_ARRAY(h->source.arena, visit_t, comp->count);
  comp->order = MP_ARENA_ARRAY(h->source.arena, mp_hlo_inst_t *, comp->count);
  if (states == NULL || stack == NULL || comp->order == NULL) return mp_status_out_of_memory();
  uint32_t num_ordered = 0;
  for (uint32_t i = 0; i < comp->count; ++i) {
    MP_RETURN_IF_ERROR(hlo_graph_visit(comp, &comp->insts[i], states, stack, &num_ordered));
  }
  MP_ASSERT(num_ordered == comp->count);
  return NULL;
}

// ---- computations ----

static mp_status_t hlo_graph_read_inst(mp_hlo_t *h, mp_hlo_comp_t *comp, uint32_t index) {
  mp_hlo_inst_t *inst = &comp->insts[index];
  inst->comp = comp;
  inst->index = index;
  mp_status_t status =
      mp_hlo_decode(&h->source, &g_instruction, comp->inst_bytes.items[index], inst);
  MP_RETURN_IF_ERROR(mp_hlo_error_at(inst, status));
  if (inst->opcode.size == 0) return mp_hlo_error(inst, MP_INVALID_ARGUMENT, "opcode is missing");
  MP_RETURN_IF_ERROR(mp_hlo_error_at(inst, mp_hlo_read_loc(h, inst)));
  status = mp_status_annotate(
      mp_hlo_read_shape(&h->source, h->module->arena, inst->shape_bytes, &inst->shape), "shape");
  return mp_hlo_error_at(inst, status);
}

static mp_status_t hlo_graph_read_insts(mp_hlo_t *h, mp_hlo_comp_t *comp, mp_hlo_ids_t *ids) {
  comp->count = comp->inst_bytes.count;
  comp->insts = MP_ARENA_ARRAY(h->source.arena, mp_hlo_inst_t, comp->count);
  MP_RETURN_IF_NULL(comp->insts);
  for (uint32_t i = 0; i < comp->count; ++i) {
    mp_hlo_inst_t *inst = &comp->insts[i];
    bool is_new = false;
    MP_RETURN_IF_ERROR(hlo_graph_read_inst(h, comp, i));
    MP_RETURN_IF_ERROR(hlo_graph_enter(h, ids, inst->id, inst, &is_new));
    if (is_new) continue;
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT,
                        "id: %lld is the id of two instructions of the computation",
                        (long long)inst->id);
  }
  return NULL;
}

// Finds the parameters by their numbers, and the range of each in the leaves of all parameters.
static mp_status_t hlo_graph_find_params(mp_hlo_t *h, mp_hlo_comp_t *comp) {
  mp_arena_t *arena = h->source.arena;
  for (uint32_t i = 0; i < comp->count; ++i) {
    comp->num_params += mp_str_is(comp->insts[i].opcode, "parameter");
  }
  comp->params = MP_ARENA_ARRAY(arena, mp_hlo_inst_t *, comp->num_params);
  comp->param_leaf = MP_ARENA_ARRAY(arena, uint32_t, comp->num_params);
  if (comp->params == NULL || comp->param_leaf == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < comp->count; ++i) {
    mp_hlo_inst_t *inst = &comp->insts[i];
    if (!mp_str_is(inst->opcode, "parameter")) continue;
    const int64_t number = inst->parameter_number;
    if (number < 0 || number >= comp->num_params || comp->params[number] != NULL) {
      return mp_hlo_error(
          inst, MP_INVALID_ARGUMENT,
          "parameter_number: %lld is %s of the computation's %u parameters", (long long)number,
          number < 0 || number >= comp->num_params ? "none" : "twice a number", comp->num_params);
    }
    comp->params[number] = inst;
    comp->num_leaves += inst->shape->num_leaves;
  }
  comp->types = MP_ARENA_ARRAY(arena, const mp_type_t *, comp->num_leaves);
  MP_RETURN_IF_NULL(comp->types);
  uint32_t at = 0;
  for (uint32_t i = 0; i < comp->num_params; ++i) {
    const mp_hlo_shape_t *shape = comp->params[i]->shape;
    comp->param_leaf[i] = at;
    for (uint32_t k = 0; k < shape->num_leaves; ++k) comp->types[at++] = shape->types[k];
  }
  return NULL;
}

static mp_status_t hlo_graph_read_comp(mp_hlo_t *h, mp_hlo_comp_t *comp,
                                       const mp_hlo_ids_t *comps) {
  mp_hlo_ids_t ids = {0};
  MP_RETURN_IF_ERROR(hlo_graph_read_insts(h, comp, &ids));
  comp->root = hlo_graph_find(h, &ids, comp->root_id);
  if (comp->root == NULL) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "computation '%.*s': root_id: there is no instruction with id %lld",
                          MP_STR_ARG(comp->name), (long long)comp->root_id);
  }
  for (uint32_t i = 0; i < comp->count; ++i) {
    MP_RETURN_IF_ERROR(hlo_graph_link(h, &ids, comps, &comp->insts[i]));
  }
  MP_RETURN_IF_ERROR(hlo_graph_order(h, comp));
  return hlo_graph_find_params(h, comp);
}

mp_status_t mp_hlo_read_graph(mp_hlo_t *h) {
  mp_hlo_ids_t ids = {0};
  h->num_comps = h->proto.comp_bytes.count;
  h->comps = MP_ARENA_ARRAY(h->source.arena, mp_hlo_comp_t, h->num_comps);
  MP_RETURN_IF_NULL(h->comps);
  for (uint32_t i = 0; i < h->num_comps; ++i) {
    mp_hlo_comp_t *comp = &h->comps[i];
    bool is_new = false;
    comp->index = i;
    MP_RETURN_IF_ERROR(mp_status_annotate(
        mp_hlo_decode(&h->source, &g_computation, h->proto.comp_bytes.items[i], comp),
        "computations[%u]", i));
    MP_RETURN_IF_ERROR(hlo_graph_enter(h, &ids, comp->id, comp, &is_new));
    if (!is_new) {
      return mp_status_make(MP_INVALID_ARGUMENT,
                            "computation '%.*s': id: %lld is the id of two computations",
                            MP_STR_ARG(comp->name), (long long)comp->id);
    }
  }
  for (uint32_t i = 0; i < h->num_comps; ++i) {
    MP_RETURN_IF_ERROR(hlo_graph_read_comp(h, &h->comps[i], &ids));
  }
  h->entry = hlo_graph_find(h, &ids, h->proto.entry_id);
  if (h->entry != NULL) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "entry_computation_id: there is no computation with id %lld",
                        (long long)h->proto.entry_id);
}
