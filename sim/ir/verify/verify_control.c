// Control flow, tokens, tuples and custom calls (StableHLO specification, under their names).
#include "sim/ir/verify/verify_rules.h"

// For operations that are checked elsewhere: calls together with their callees (verify_call.c),
// returns together with what they end. The region of a composite is another form of what its
// decomposition computes, and only passes that know the composite read it.
mp_status_t mp_verify_nothing(const mp_op_t *op) {
  (void)op;
  return NULL;
}

// For einsum, and for dynamic operations whose shape operands are constants: sim/passes rewrites
// them, and what they become is verified then. One that cannot be rewritten is refused later,
// because it has no kernel.
mp_status_t mp_verify_sugar(const mp_op_t *op) {
  (void)op;
  return NULL;
}

mp_status_t mp_verify_unsupported(const mp_op_t *op) {
  if (op->code == MP_OP_SET_DIMENSION_SIZE) {
    return mp_op_error(op, MP_UNIMPLEMENTED,
                       "%s is not supported: arrays have the sizes of their types",
                       mp_op_info(op->code)->name);
  }
  return mp_op_error(op, MP_UNIMPLEMENTED, "%s is not supported", mp_op_info(op->code)->name);
}

static mp_status_t verify_control_token(const mp_op_t *op, const mp_type_t *type,
                                        const char *what) {
  MP_CHECK(op, type->kind == MP_TYPE_TOKEN, "%s is not a token", what);
  return NULL;
}

mp_status_t mp_verify_after_all(const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(verify_control_token(op, mp_operand_type(op, i), "an operand"));
  }
  return verify_control_token(op, mp_result_type(op, 0), "the result");
}

// The results are tensors, then a token.
mp_status_t mp_verify_infeed(const mp_op_t *op) {
  MP_RETURN_IF_ERROR(verify_control_token(op, mp_operand_type(op, 0), "the operand"));
  MP_CHECK(op, op->num_results >= 1, "there is no result");
  for (uint32_t i = 0; i + 1 < op->num_results; ++i) {
    MP_CHECK(op, mp_result_type(op, i)->kind == MP_TYPE_TENSOR, "result %u is not a tensor", i);
  }
  return verify_control_token(op, mp_result_type(op, op->num_results - 1), "the last result");
}

// The operands are tensors, then a token.
mp_status_t mp_verify_outfeed(const mp_op_t *op) {
  MP_CHECK(op, op->num_operands >= 1, "there is no operand");
  for (uint32_t i = 0; i + 1 < op->num_operands; ++i) {
    MP_CHECK(op, mp_operand_type(op, i)->kind == MP_TYPE_TENSOR, "operand %u is not a tensor", i);
  }
  MP_RETURN_IF_ERROR(
      verify_control_token(op, mp_operand_type(op, op->num_operands - 1), "the last operand"));
  return verify_control_token(op, mp_result_type(op, 0), "the result");
}

// The results have the operands' types. The rule of `while` begins with the same check.
mp_status_t mp_verify_optimization_barrier(const mp_op_t *op) {
  MP_CHECK(op, op->num_results == op->num_operands, "there are %u results for %u operands",
           op->num_results, op->num_operands);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(mp_verify_same_type(op, mp_result_type(op, i), mp_operand_type(op, i),
                                           "a result and its operand"));
  }
  return NULL;
}

// Tuples occur in old programs only, and sim/passes takes them apart.
mp_status_t mp_verify_tuple(const mp_op_t *op) {
  const mp_type_t *result = mp_result_type(op, 0);
  MP_CHECK(op, result->kind == MP_TYPE_TUPLE && result->num_elements == op->num_operands,
           "the result is not a tuple of %u elements", op->num_operands);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(mp_verify_same_type(op, result->elements[i], mp_operand_type(op, i),
                                           "an element and its operand"));
  }
  return NULL;
}

// The index is an attribute, so the element's type is known.
mp_status_t mp_verify_get_tuple_element(const mp_op_t *op) {
  const mp_type_t *tuple = mp_operand_type(op, 0);
  int64_t index = mp_op_int(op, MP_ATTR_INDEX, -1);
  MP_CHECK(op, tuple->kind == MP_TYPE_TUPLE, "the operand is not a tuple");
  MP_CHECK(op, index >= 0 && index < (int64_t)tuple->num_elements,
           "index is %lld; there are %u elements", (long long)index, tuple->num_elements);
  return mp_verify_same_type(op, mp_result_type(op, 0), tuple->elements[index],
                             "the result and the element");
}

// Checks a region without arguments that returns the op's results.
static mp_status_t verify_control_branch(const mp_op_t *op, uint32_t region) {
  const mp_op_t *end = mp_block_terminator(op->regions[region]);
  MP_CHECK(op, op->regions[region]->num_args == 0, "branch %u has arguments", region);
  MP_CHECK(op, end->num_operands == op->num_results, "branch %u returns %u values, not %u", region,
           end->num_operands, op->num_results);
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(mp_verify_same_type(op, mp_operand_type(end, i), mp_result_type(op, i),
                                           "a branch's value and the result"));
  }
  return NULL;
}

// The rule of `case` and of `if`, whose branches are for true and false.
mp_status_t mp_verify_case(const mp_op_t *op) {
  const mp_type_t *index = mp_operand_type(op, 0);
  mp_dtype_t dtype = op->code == MP_OP_IF ? MP_DTYPE_BOOL : MP_DTYPE_S32;
  MP_CHECK(op, mp_is_scalar(index) && index->dtype == dtype, "the operand is not a scalar of %s",
           mp_dtype_name(dtype));
  MP_CHECK(op, op->num_regions >= 1, "there are no branches");
  for (uint32_t i = 0; i < op->num_regions; ++i) MP_RETURN_IF_ERROR(verify_control_branch(op, i));
  return NULL;
}

// The operands, the arguments of both regions, what the body returns, and the results all have the
// same list of types.
mp_status_t mp_verify_while(const mp_op_t *op) {
  MP_RETURN_IF_ERROR(mp_verify_optimization_barrier(op));
  enum { COND, BODY };
  for (uint32_t region = COND; region <= BODY; ++region) {
    const mp_block_t *block = op->regions[region];
    MP_CHECK(op, block->num_args == op->num_operands, "region %u has %u arguments, not %u", region,
             block->num_args, op->num_operands);
    for (uint32_t i = 0; i < block->num_args; ++i) {
      MP_RETURN_IF_ERROR(mp_verify_same_type(op, block->args[i].type, mp_operand_type(op, i),
                                             "a region's argument and the operand"));
    }
  }
  const mp_op_t *cond = mp_block_terminator(op->regions[COND]);
  MP_CHECK(op,
           cond->num_operands == 1 && mp_is_scalar(mp_operand_type(cond, 0)) &&
               mp_operand_type(cond, 0)->dtype == MP_DTYPE_BOOL,
           "the condition does not return a boolean scalar");
  const mp_op_t *body = mp_block_terminator(op->regions[BODY]);
  MP_CHECK(op, body->num_operands == op->num_operands, "the body returns %u values, not %u",
           body->num_operands, op->num_operands);
  for (uint32_t i = 0; i < body->num_operands; ++i) {
    MP_RETURN_IF_ERROR(mp_verify_same_type(op, mp_operand_type(body, i), mp_operand_type(op, i),
                                           "the body's value and the operand"));
  }
  return NULL;
}

// The op has a region with one collective in it and returns a future of the collective's results.
mp_status_t mp_verify_async_start(const mp_op_t *op) {
  const mp_type_t *future = mp_result_type(op, 0);
  const mp_block_t *block = op->regions[0];
  const mp_op_t *end = mp_block_terminator(block);
  MP_CHECK(op, future->kind == MP_TYPE_FUTURE, "the result is not a future");
  MP_CHECK(op, block->num_args == op->num_operands, "the region has %u arguments, not %u",
           block->num_args, op->num_operands);
  for (uint32_t i = 0; i < block->num_args; ++i) {
    MP_RETURN_IF_ERROR(mp_verify_same_type(op, block->args[i].type, mp_operand_type(op, i),
                                           "the region's argument and the operand"));
  }
  MP_CHECK(op, block->first != end && block->first->next == end,
           "the region does not hold one operation");
  MP_CHECK(op, mp_op_has(block->first, MP_OP_TRAIT_COLLECTIVE),
           "the region's operation is not a collective");
  MP_CHECK(op, end->num_operands == future->num_elements, "the region returns %u values, not %u",
           end->num_operands, future->num_elements);
  for (uint32_t i = 0; i < end->num_operands; ++i) {
    MP_RETURN_IF_ERROR(mp_verify_same_type(op, mp_operand_type(end, i), future->elements[i],
                                           "the region's value and the future's"));
  }
  return NULL;
}

// A future of several values would need several results, which the operation does not have.
mp_status_t mp_verify_async_done(const mp_op_t *op) {
  const mp_type_t *future = mp_operand_type(op, 0);
  MP_CHECK(op, future->kind == MP_TYPE_FUTURE, "the operand is not a future");
  MP_CHECK(op, future->num_elements == 1, "a future of %u values", future->num_elements);
  return mp_verify_same_type(op, mp_result_type(op, 0), future->elements[0],
                             "the result and the future's value");
}

// ---- custom_call ----

// Checks one layout, which lists the dimensions from minor to major. Only tensors have layouts.
static mp_status_t verify_control_layout(const mp_op_t *op, const mp_attr_t *layout,
                                         const mp_type_t *type, const char *what) {
  MP_CHECK(op, layout->kind == MP_KIND_INTS && layout->u.ints.rank <= 1,
           "%s has an entry that is not a list of dimensions", what);
  const bool is_array = type->kind == MP_TYPE_TENSOR || type->kind == MP_TYPE_BUFFER;
  const uint32_t rank = is_array ? type->rank : 0;
  MP_CHECK(op, layout->u.ints.count == rank, "%s has %zu dimensions for rank %u", what,
           layout->u.ints.count, rank);
  uint64_t used = 0;
  for (uint32_t i = 0; i < rank; ++i) {
    int64_t dim = layout->u.ints.values[i];
    MP_CHECK(op, dim >= 0 && dim < rank && (used >> dim & 1) == 0,
             "%s is not an order of dimensions", what);
    used |= UINT64_C(1) << dim;
  }
  return NULL;
}

static mp_status_t verify_control_layouts(const mp_op_t *op, mp_attr_name_t name, bool results) {
  const mp_attr_t *layouts = mp_op_attr(op, name);
  uint32_t count = results ? op->num_results : op->num_operands;
  // For a tuple, the layouts are those of its elements.
  const mp_type_t *tuple = results && count == 1 ? mp_result_type(op, 0) : NULL;
  if (tuple != NULL && tuple->kind != MP_TYPE_TUPLE) tuple = NULL;
  if (tuple != NULL) count = tuple->num_elements;
  if (layouts->u.array.count == 0) return NULL;
  MP_CHECK(op, layouts->u.array.count == count, "%s has %zu entries for %u values",
           mp_attr_name_text(name), layouts->u.array.count, count);
  for (uint32_t i = 0; i < count; ++i) {
    const mp_type_t *type =
        results ? mp_result_type(op, tuple != NULL ? 0 : i) : mp_operand_type(op, i);
    if (tuple != NULL) type = tuple->elements[i];
    MP_RETURN_IF_ERROR(
        verify_control_layout(op, layouts->u.array.items[i], type, mp_attr_name_text(name)));
  }
  return NULL;
}

// Typed handlers take a dictionary, all others take bytes.
static mp_status_t verify_control_config(const mp_op_t *op) {
  const mp_attr_t *config = mp_op_attr(op, MP_ATTR_BACKEND_CONFIG);
  bool typed = mp_op_enum(op, MP_ATTR_API_VERSION, MP_API_ORIGINAL) == MP_API_TYPED_FFI;
  MP_CHECK(op, typed || config->kind == MP_KIND_STRING, "backend_config is not a string");
  MP_CHECK(op, !typed || config->kind == MP_KIND_DICT || config->u.str.size == 0,
           "backend_config is not a dictionary");
  return NULL;
}

// An alias says that a result may be stored in an operand's memory, so both must have the same
// type; either may be an element of a tuple.
static mp_status_t verify_control_alias(const mp_op_t *op, const mp_attr_t *alias) {
  MP_CHECK(op, alias->kind == MP_KIND_OUTPUT_ALIAS,
           "output_operand_aliases has an entry that is not an alias");
  int64_t operand = alias->u.alias.operand_index, result = 0;
  mp_index_list_t output = alias->u.alias.output_tuple_indices;
  MP_CHECK(op, operand >= 0 && operand < (int64_t)op->num_operands, "an alias names operand %lld",
           (long long)operand);
  if (alias->u.alias.operand_tuple_indices.count != 0 || output.count > 1) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "aliases of tuple elements are not supported");
  }
  if (output.count == 1) result = output.values[0];
  MP_CHECK(op, result >= 0 && result < (int64_t)op->num_results, "an alias names result %lld",
           (long long)result);
  return mp_verify_same_type(op, mp_result_type(op, (uint32_t)result),
                             mp_operand_type(op, (uint32_t)operand),
                             "a result and the operand that it shares storage with");
}

// Later stages give these targets a meaning by their names: the result is the operand, or the same
// value in another shape (of the whole program, or of one device).
static mp_status_t verify_control_target(const mp_op_t *op) {
  static const struct {
    const char *target;
    bool reshapes;
  } identities[] = {
      {"annotate_device_placement", false},  {"Sharding", false},
      {"LayoutConstraint", false},           {"InspectSharding", false},
      {"xla.sdy.FuncResultSharding", false}, {"xla.sdy.PropagationBarrier", false},
      {"SPMDFullToShardShape", true},        {"SPMDShardToFullShape", true},
  };
  mp_str_t target = mp_op_str(op, MP_ATTR_CALL_TARGET_NAME);
  for (size_t i = 0; i < sizeof(identities) / sizeof(identities[0]); ++i) {
    if (!mp_str_is(target, identities[i].target)) continue;
    MP_CHECK(op, op->num_operands == 1 && op->num_results == 1, "%s of %u values to %u",
             identities[i].target, op->num_operands, op->num_results);
    const mp_type_t *from = mp_operand_type(op, 0), *to = mp_result_type(op, 0);
    if (!identities[i].reshapes) {
      return mp_verify_same_type(op, to, from, "the result and the operand");
    }
    MP_CHECK(op,
             from->kind == MP_TYPE_TENSOR && to->kind == MP_TYPE_TENSOR &&
                 from->dtype == to->dtype && from->rank == to->rank,
             "%s changes more than the shape", identities[i].target);
  }
  return NULL;
}

// A region that is a function of the operands, and whose values are the results.
static mp_status_t verify_control_function(const mp_op_t *op) {
  const mp_block_t *block = op->regions[0];
  const mp_op_t *end = mp_block_terminator(block);
  MP_CHECK(op, block->num_args == op->num_operands, "the region has %u arguments, not %u",
           block->num_args, op->num_operands);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(mp_verify_same_type(op, block->args[i].type, mp_operand_type(op, i),
                                           "an argument of the region and what is passed to it"));
  }
  MP_CHECK(op, end != NULL && mp_op_has(end, MP_OP_TRAIT_TERMINATOR),
           "the region does not end in return");
  MP_CHECK(op, end->num_operands == op->num_results, "the region returns %u values, not %u",
           end->num_operands, op->num_results);
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(mp_verify_same_type(op, mp_operand_type(end, i), mp_result_type(op, i),
                                           "what the region returns and the result"));
  }
  return NULL;
}

// A kernel of the user's has what it computes in a region.
static mp_status_t verify_control_kernel(const mp_op_t *op) {
  if (op->num_regions == 0) return NULL;
  const bool is_kernel = mp_str_is(mp_op_str(op, MP_ATTR_CALL_TARGET_NAME), MP_KERNEL_TARGET);
  MP_CHECK(op, is_kernel && op->num_regions == 1, "regions are for %s alone, which has one",
           MP_KERNEL_TARGET);
  return verify_control_function(op);
}

mp_status_t mp_verify_custom_call(const mp_op_t *op) {
  MP_RETURN_IF_ERROR(verify_control_kernel(op));
  MP_RETURN_IF_ERROR(verify_control_target(op));
  MP_RETURN_IF_ERROR(verify_control_config(op));
  MP_RETURN_IF_ERROR(verify_control_layouts(op, MP_ATTR_OPERAND_LAYOUTS, false));
  MP_RETURN_IF_ERROR(verify_control_layouts(op, MP_ATTR_RESULT_LAYOUTS, true));
  const mp_attr_t *aliases = mp_op_attr(op, MP_ATTR_OUTPUT_OPERAND_ALIASES);
  for (size_t i = 0; i < aliases->u.array.count; ++i) {
    MP_RETURN_IF_ERROR(verify_control_alias(op, aliases->u.array.items[i]));
  }
  if (mp_op_attr(op, MP_ATTR_RESULT_TILINGS) != NULL) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "result_tilings are not supported");
  }
  return NULL;
}

// minipod.fusion: what the region takes and returns is what the op does; it may be any ops, as far
// as the verifier is concerned (sim/kernels/fused says which it can run).
mp_status_t mp_verify_fusion(const mp_op_t *op) {
  MP_CHECK(op, op->num_results != 0, "there is no result");
  return verify_control_function(op);
}
