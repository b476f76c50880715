// Functions and their calls.
#include <stdlib.h>

#include "sim/base/alloc.h"
#include "sim/ir/verify/verify_rules.h"

// Programs are inlined later, and a chain of functions of which each calls the next twice would
// then grow without bound. No real program comes near these limits.
enum {
  MAX_INLINED_OPS = 1 << 22,
  MAX_CALL_DEPTH = 512,
  MAX_INLINED_NESTING = 256,  // of regions, across calls, because later stages recurse over them
};

typedef struct {
  const mp_func_t *func;
  uint64_t size;     // number of operations when all calls are inlined; 0: not known yet
  uint32_t nesting;  // depth of regions when all calls are inlined
  bool active;       // on the current chain of calls
} func_entry_t;

typedef struct {
  func_entry_t *funcs;  // sorted by name
  size_t count;
  int depth;
} call_graph_t;

static int verify_call_compare_entries(const void *a, const void *b) {
  return mp_str_compare(((const func_entry_t *)a)->func->name,
                        ((const func_entry_t *)b)->func->name);
}

static int verify_call_compare_key(const void *key, const void *entry) {
  return mp_str_compare(*(const mp_str_t *)key, ((const func_entry_t *)entry)->func->name);
}

static func_entry_t *verify_call_find_func(const call_graph_t *graph, mp_str_t name) {
  return bsearch(&name, graph->funcs, graph->count, sizeof(*graph->funcs), verify_call_compare_key);
}

static mp_status_t verify_call_find_callee(const call_graph_t *graph, const mp_op_t *op,
                                           mp_str_t name, func_entry_t **out_entry) {
  func_entry_t *entry = verify_call_find_func(graph, name);
  MP_CHECK(op, entry != NULL, "there is no function '%.*s'", MP_STR_ARG(name));
  *out_entry = entry;
  return NULL;
}

// The operands and results of a call must have the types of the callee's signature.
static mp_status_t verify_call_check_signature(const mp_op_t *op, const mp_func_t *func) {
  MP_CHECK(op, op->num_operands == func->body->num_args && op->num_results == func->num_results,
           "%u operands and %u results for function '%.*s' of %u and %u", op->num_operands,
           op->num_results, MP_STR_ARG(func->name), func->body->num_args, func->num_results);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(mp_verify_same_type(op, mp_operand_type(op, i), func->body->args[i].type,
                                           "an operand and the function's parameter"));
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(mp_verify_same_type(op, mp_result_type(op, i), func->result_types[i],
                                           "a result and the function's result"));
  }
  return NULL;
}

static mp_status_t verify_call_measure_func(call_graph_t *graph, func_entry_t *entry);

// Measures a callee and adds it to its caller. `nesting` is the depth of the op in the caller.
static mp_status_t verify_call_measure_callee(call_graph_t *graph, const mp_op_t *op, mp_str_t name,
                                              uint32_t nesting, func_entry_t *caller) {
  func_entry_t *callee = NULL;
  MP_RETURN_IF_ERROR(verify_call_find_callee(graph, op, name, &callee));
  MP_CHECK(op, !callee->active, "function '%.*s' calls itself", MP_STR_ARG(name));
  MP_RETURN_IF_ERROR(verify_call_measure_func(graph, callee));
  caller->size += callee->size;
  if (nesting + callee->nesting > caller->nesting) caller->nesting = nesting + callee->nesting;
  MP_CHECK(op, caller->nesting <= MAX_INLINED_NESTING, "regions are nested more than %d deep",
           MAX_INLINED_NESTING);
  return NULL;
}

static mp_status_t verify_call_measure_op(call_graph_t *graph, const mp_op_t *op, uint32_t nesting,
                                          func_entry_t *entry) {
  ++entry->size;
  if (op->code == MP_OP_CALL || op->code == MP_OP_COMPOSITE) {
    mp_str_t name = mp_op_callee(op);
    MP_RETURN_IF_ERROR(verify_call_measure_callee(graph, op, name, nesting, entry));
    MP_RETURN_IF_ERROR(verify_call_check_signature(op, verify_call_find_func(graph, name)->func));
  } else if (op->code == MP_OP_CUSTOM_CALL) {
    const mp_attr_t *called = mp_op_attr(op, MP_ATTR_CALLED_COMPUTATIONS);
    for (size_t i = 0; i < called->u.array.count; ++i) {
      // After inlining, main is the only function that is left, so the functions of a custom call
      // may be missing. What runs the call looks for them itself.
      if (verify_call_find_func(graph, called->u.array.items[i]->u.str) == NULL) continue;
      MP_RETURN_IF_ERROR(
          verify_call_measure_callee(graph, op, called->u.array.items[i]->u.str, nesting, entry));
    }
  }
  if (entry->size > MAX_INLINED_OPS) {
    return mp_op_error(op, MP_RESOURCE_EXHAUSTED,
                       "the program has more than %d operations with all calls inlined",
                       MAX_INLINED_OPS);
  }
  return NULL;
}

static mp_status_t verify_call_measure_block(call_graph_t *graph, const mp_block_t *block,
                                             uint32_t nesting, func_entry_t *entry) {
  if (nesting > entry->nesting) entry->nesting = nesting;
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    MP_RETURN_IF_ERROR(verify_call_measure_op(graph, op, nesting, entry));
    for (uint32_t i = 0; i < op->num_regions; ++i) {
      MP_RETURN_IF_ERROR(verify_call_measure_block(graph, op->regions[i], nesting + 1, entry));
    }
  }
  return NULL;
}

// Each function is measured once. The recursion is as deep as the longest chain of calls.
static mp_status_t verify_call_measure_func(call_graph_t *graph, func_entry_t *entry) {
  if (entry->size != 0) return NULL;
  if (graph->depth >= MAX_CALL_DEPTH) {
    return mp_status_make(MP_INVALID_ARGUMENT, "calls are nested more than %d deep",
                          MAX_CALL_DEPTH);
  }
  entry->size = 1;
  entry->active = true;
  ++graph->depth;
  MP_RETURN_IF_ERROR(verify_call_measure_block(graph, entry->func->body, 0, entry));
  --graph->depth;
  entry->active = false;
  return NULL;
}

static mp_status_t verify_call_graph(call_graph_t *graph) {
  qsort(graph->funcs, graph->count, sizeof(*graph->funcs), verify_call_compare_entries);
  for (size_t i = 1; i < graph->count; ++i) {
    mp_str_t name = graph->funcs[i].func->name;
    if (!mp_str_equal(graph->funcs[i - 1].func->name, name)) continue;
    return mp_status_make(MP_INVALID_ARGUMENT, "there are two functions '%.*s'", MP_STR_ARG(name));
  }
  for (size_t i = 0; i < graph->count; ++i) {
    MP_RETURN_IF_ERROR(verify_call_measure_func(graph, &graph->funcs[i]));
  }
  return NULL;
}

mp_status_t mp_verify_calls(mp_module_t *module) {
  call_graph_t graph = {0};
  for (const mp_func_t *func = module->funcs.first; func != NULL; func = func->next) ++graph.count;
  graph.funcs = mp_calloc(graph.count, sizeof(*graph.funcs));
  MP_RETURN_IF_NULL(graph.funcs);
  size_t i = 0;
  for (const mp_func_t *func = module->funcs.first; func != NULL; func = func->next) {
    graph.funcs[i++].func = func;
  }
  mp_status_t status = verify_call_graph(&graph);
  mp_free(graph.funcs);
  return status;
}
