// Which array each argument of a kernel's function is a block of.
//
// The arguments are: the index of the step in the grid; prefetched scalars; operands, then results;
// scratch memory. The call's operands are dynamic bounds of the grid, prefetched scalars, and the
// others.
#include <stdarg.h>
#include <string.h>

#include "sim/kernels/shape.h"
#include "sim/mosaic/kernel/mosaic_maker.h"

mp_status_t mp_mosaic_maker_error(const mp_mosaic_maker_t *maker, const char *format, ...) {
  va_list args;
  va_start(args, format);
  mp_status_t status = mp_status_vmake(MP_UNIMPLEMENTED, format, args);
  va_end(args);
  return mp_status_annotate(status, "Mosaic function '%.*s'", MP_STR_ARG(maker->func->name));
}

static mp_status_t mosaic_make_windows_type_bytes(const mp_mosaic_maker_t *maker, uint32_t arg,
                                                  const mp_mosaic_type_t *type, size_t *out_bytes) {
  int64_t count = 0;
  if (type->kind != MP_MOSAIC_MEMREF || type->rank > MP_MOSAIC_MAX_RANK ||
      !mp_mosaic_num_elements(type, &count) || count > (INT64_C(1) << 40)) {
    return mp_mosaic_maker_error(maker, "argument %u is not a memref of known size", arg);
  }
  *out_bytes = (size_t)count * mp_mosaic_element_bytes(type);
  return NULL;
}

// ---- the function of a window's index ----

static mp_status_t mosaic_make_windows_affine(const mp_mosaic_maker_t *maker,
                                              const mp_mosaic_map_t *map,
                                              mp_mosaic_window_t *window) {
  mp_mosaic_compiler_t *c = maker->compiler;
  const uint32_t rank = maker->kernel->rank;
  uint32_t *args = MP_ARENA_ARRAY(maker->arena, uint32_t, rank);
  uint32_t *results = MP_ARENA_ARRAY(maker->arena, uint32_t, map->num_results);
  if (args == NULL || results == NULL) return mp_status_out_of_memory();
  window->entry = (mp_mosaic_entry_t){.begin = mp_mosaic_here(c),
                                      .num_args = rank,
                                      .num_results = map->num_results,
                                      .args = args,
                                      .results = results};
  for (uint32_t d = 0; d < rank; ++d) MP_RETURN_IF_ERROR(mp_mosaic_new_register(c, 0, &args[d]));
  for (uint32_t i = 0; i < map->num_results; ++i) {
    MP_RETURN_IF_ERROR(mp_mosaic_compile_affine(c, map->results[i], args, rank, &results[i]));
  }
  const mp_mosaic_instruction_t end = {.kind = MP_MOSAIC_DO_RETURN};
  return mp_mosaic_emit(c, &end);
}

static mp_status_t mosaic_make_windows_entry(const mp_mosaic_maker_t *maker,
                                             const mp_mosaic_attr_t *attr,
                                             mp_mosaic_window_t *window) {
  const mp_mosaic_func_t *func = NULL;
  window->has_entry = true;
  if (attr->kind == MP_MOSAIC_MAP) {
    MP_RETURN_IF_ERROR(mosaic_make_windows_affine(maker, attr->map, window));
  } else {
    if (attr->kind == MP_MOSAIC_STRING) {
      func = mp_mosaic_find_func(maker->compiler->module, attr->str);
    }
    if (func == NULL || func->body->num_args > maker->kernel->rank + maker->num_prefetched) {
      return mp_mosaic_maker_error(maker, "argument %u has no function of its blocks", window->arg);
    }
    MP_RETURN_IF_ERROR(mp_mosaic_compile_func(maker->compiler, func, &window->entry));
  }
  if (window->entry.num_results == window->type->rank &&
      window->entry.num_args >= maker->kernel->rank) {
    return NULL;
  }
  return mp_mosaic_maker_error(maker, "the index of the blocks of argument %u has another rank",
                               window->arg);
}

static mp_status_t mosaic_make_windows_kind(const mp_mosaic_maker_t *maker,
                                            const mp_mosaic_attr_t *attr,
                                            mp_mosaic_window_t *window) {
  if (attr == NULL) return NULL;
  if (attr->kind != MP_MOSAIC_DIALECT || !mp_str_is(attr->str, "tpu.element_window") ||
      attr->list.count < 1) {
    return mp_mosaic_maker_error(maker, "this kind of blocks (argument %u) is not supported",
                                 window->arg);
  }
  const mp_mosaic_attr_t *before = attr->list.items[0].value;
  window->is_element = true;
  for (uint32_t d = 0; d < window->type->rank; ++d) {
    if (before->kind == MP_MOSAIC_INTS && d < before->ints.count) {
      window->pad[d] = before->ints.values[d];
    } else if (before->kind == MP_MOSAIC_ARRAY && d < before->list.count) {
      window->pad[d] = before->list.items[d].value->i64;
    }
  }
  return NULL;
}

// A block of a result is its own memory between two visits, unless revisit_mode is "any": then it
// begins as what the array holds. How many buffers a block has changes no value.
static mp_status_t mosaic_make_windows_read_modes(const mp_mosaic_maker_t *maker,
                                                  const mp_mosaic_named_t *item,
                                                  mp_mosaic_window_t *window) {
  static const char *const plain[] = {"transform_indices", "window_bounds", "window_kind"};
  for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); ++i) {
    if (mp_str_is(item->name, plain[i])) return NULL;
  }
  const mp_mosaic_attr_t *mode = item->value;
  if (mode->kind == MP_MOSAIC_DIALECT && mode->list.count == 1) mode = mode->list.items[0].value;
  const bool is_word = mode->kind == MP_MOSAIC_STRING;
  const bool is_pipeline = mp_str_is(item->name, "pipeline_mode");
  if (is_pipeline && is_word &&
      (mp_str_is(mode->str, "synchronous") || mp_str_is(mode->str, "double_buffered"))) {
    window->num_buffers = mp_str_is(mode->str, "synchronous") ? 1 : 2;
    return NULL;
  }
  const bool is_revisit = mp_str_is(item->name, "revisit_mode");
  const bool is_any = is_word && mp_str_is(mode->str, "any");
  if (is_revisit && (is_any || (is_word && mp_str_is(mode->str, "immediate")))) {
    window->is_kept = is_any && window->is_result;
    return NULL;
  }
  return mp_mosaic_maker_error(maker, "%.*s%s%.*s of the window of argument %u is not supported",
                               MP_STR_ARG(item->name), is_word ? " " : "",
                               is_word ? (int)mode->str.size : 0, is_word ? mode->str.data : "",
                               window->arg);
}

// ---- a window ----

static bool mosaic_make_windows_is_unblocked(mp_mosaic_space_t space) {
  return space == MP_MOSAIC_SPACE_ANY || space == MP_MOSAIC_SPACE_HBM ||
         space == MP_MOSAIC_SPACE_HOST;
}

static mp_status_t mosaic_make_windows_array(const mp_mosaic_maker_t *maker,
                                             mp_mosaic_window_t *window) {
  const mp_op_t *call = maker->call;
  const mp_type_t *type =
      window->is_result ? call->results[window->array].type : call->operands[window->array]->type;
  const bool has_elements =
      window->is_semaphores ? type->dtype == MP_DTYPE_S32
                            : mp_dtype_size(type->dtype) == mp_mosaic_element_bytes(window->type);
  if (!mp_type_is_tensor(type) || type->rank != window->type->rank || !has_elements) {
    return mp_mosaic_maker_error(maker, "argument %u does not fit to %s %u of the call",
                                 window->arg, window->is_result ? "result" : "operand",
                                 window->array);
  }
  for (uint32_t d = 0; d < type->rank; ++d) {
    window->dims[d] = type->dims[d];
    if (window->is_whole && type->dims[d] != window->type->dims[d]) {
      return mp_mosaic_maker_error(maker, "argument %u has another shape than its array",
                                   window->arg);
    }
  }
  return NULL;
}

// core_map sees arrays that lie in VMEM or SMEM themselves: its windows have no bounds, and their
// index is 0 throughout.
static bool mosaic_make_windows_is_array(const mp_mosaic_attr_t *params,
                                         const mp_mosaic_window_t *window) {
  const mp_mosaic_attr_t *indices = NULL;
  if (params != NULL) {
    indices = mp_mosaic_attr(params->list.items, params->list.count, "transform_indices");
    if (mp_mosaic_attr(params->list.items, params->list.count, "window_bounds") != NULL) {
      return false;
    }
  }
  if (indices != NULL && indices->kind != MP_MOSAIC_MAP) return false;
  for (uint32_t d = 0; indices != NULL && d < indices->map->num_results; ++d) {
    const mp_mosaic_affine_t *index = indices->map->results[d];
    if (index->kind != MP_MOSAIC_AFFINE_CONSTANT || index->value != 0) return false;
  }
  for (uint32_t d = 0; d < window->type->rank; ++d) {
    if (window->type->dims[d] != window->dims[d]) return false;
  }
  return !window->is_element;
}

// A kernel changes the semaphores of its operands in their memory. An aliased operand's are the
// result's, which the planner makes a copy of if the operand is a constant.
static mp_status_t mosaic_make_windows_check_semaphores(const mp_mosaic_maker_t *maker,
                                                        const mp_mosaic_window_t *window) {
  if (window->is_result) return NULL;
  const mp_value_t *operand = maker->call->operands[window->array];
  for (uint32_t i = 0; i < window->array; ++i) {
    if (maker->call->operands[i] != operand) continue;
    return mp_mosaic_maker_error(maker, "operands %u and %u are the same semaphores", i,
                                 window->array);
  }
  if (window->alias >= 0 || operand->op == NULL || operand->op->code != MP_OP_CONSTANT) return NULL;
  return mp_mosaic_maker_error(maker, "operand %u has semaphores, but is a constant",
                               window->array);
}

static mp_status_t mosaic_make_windows_make(const mp_mosaic_maker_t *maker,
                                            const mp_mosaic_attr_t *params,
                                            mp_mosaic_window_t *window) {
  const mp_mosaic_value_t *arg = &maker->func->body->args[window->arg];
  const mp_mosaic_attr_t *indices = NULL, *kind = NULL;
  MP_RETURN_IF_ERROR(mosaic_make_windows_type_bytes(maker, window->arg, arg->type, &window->bytes));
  MP_RETURN_IF_ERROR(mp_mosaic_copy_type(maker->compiler, arg->type, &window->type));
  if (params != NULL) {
    indices = mp_mosaic_attr(params->list.items, params->list.count, "transform_indices");
    kind = mp_mosaic_attr(params->list.items, params->list.count, "window_kind");
    for (uint32_t i = 0; i < params->list.count; ++i) {
      MP_RETURN_IF_ERROR(mosaic_make_windows_read_modes(maker, &params->list.items[i], window));
    }
  }
  window->view = maker->kernel->main.args[window->arg];
  window->alias = -1;
  window->is_semaphores = window->type->element != MP_MOSAIC_NUMBER;
  if (window->is_semaphores) indices = NULL;  // there are no blocks of them
  window->is_whole = window->is_semaphores ||
                     (indices == NULL && mosaic_make_windows_is_unblocked(arg->type->space));
  // Checks see a block's memory as a TPU has it.
  window->is_copied =
      maker->target->checks || (!window->is_result && maker->compiler->written[window->arg]);
  if (window->is_whole && !window->is_semaphores) window->bytes = 0;
  MP_RETURN_IF_ERROR(mosaic_make_windows_array(maker, window));
  maker->kernel->has_semaphores |= window->is_semaphores;
  if (window->is_semaphores) return NULL;
  if (indices != NULL) MP_RETURN_IF_ERROR(mosaic_make_windows_entry(maker, indices, window));
  MP_RETURN_IF_ERROR(mosaic_make_windows_kind(maker, kind, window));
  window->is_array = mosaic_make_windows_is_array(params, window);
  return NULL;
}

// ---- results that begin as operands ----

static bool mosaic_make_windows_is_accessed(const mp_mosaic_compiler_t *c, uint32_t arg) {
  if (c->written[arg]) return true;
  for (uint32_t i = 0; i < c->code.count; ++i) {
    const mp_mosaic_instruction_t *in = &c->code.items[i];
    const bool is_load = in->kind == MP_MOSAIC_DO_LOAD || in->kind == MP_MOSAIC_DO_LOAD_SCALAR;
    if (is_load && in->target == arg) return true;
  }
  return false;
}

// A kernel that writes an array through the operand: the result is the same memory. If it used both
// arguments, they would be memory of their own to its compiler.
static void mosaic_make_windows_share(const mp_mosaic_maker_t *maker, mp_mosaic_window_t *operand,
                                      mp_mosaic_window_t *result) {
  const mp_mosaic_compiler_t *c = maker->compiler;
  if (!operand->is_array || !result->is_array || !c->written[operand->arg] ||
      mosaic_make_windows_is_accessed(c, result->arg)) {
    return;
  }
  operand->is_whole = result->is_whole = true;
  operand->bytes = result->bytes = 0;
}

static void mosaic_make_windows_set_aliases(const mp_mosaic_maker_t *maker) {
  mp_mosaic_kernel_t *kernel = maker->kernel;
  for (uint32_t r = 0; r < kernel->num_windows; ++r) {
    mp_mosaic_window_t *result = &kernel->windows[r];
    if (!result->is_result) continue;
    result->alias = mp_op_aliased_operand(maker->call, result->array);
    if (result->alias < 0) continue;
    for (uint32_t w = 0; w < kernel->num_windows; ++w) {
      mp_mosaic_window_t *window = &kernel->windows[w];
      if (window->is_result || window->array != (uint32_t)result->alias) continue;
      window->alias = result->array;
      window->is_copied = true;
      mosaic_make_windows_share(maker, window, result);
    }
  }
}

// ---- scratch and prefetched operands ----

static mp_status_t mosaic_make_windows_local(const mp_mosaic_maker_t *maker,
                                             mp_mosaic_local_t *local) {
  const mp_mosaic_value_t *arg = &maker->func->body->args[local->arg];
  MP_RETURN_IF_ERROR(mosaic_make_windows_type_bytes(maker, local->arg, arg->type, &local->bytes));
  MP_RETURN_IF_ERROR(mp_mosaic_copy_type(maker->compiler, arg->type, &local->type));
  local->view = maker->kernel->main.args[local->arg];
  if (local->operand == MP_MOSAIC_NONE) return NULL;
  int64_t bytes = 0;
  if (mp_type_num_bytes(maker->call->operands[local->operand]->type, &bytes) &&
      (size_t)bytes == local->bytes) {
    return NULL;
  }
  return mp_mosaic_maker_error(maker, "argument %u does not fit to operand %u of the call",
                               local->arg, local->operand);
}

static mp_status_t mosaic_make_windows_make_locals(mp_mosaic_maker_t *maker) {
  mp_mosaic_kernel_t *kernel = maker->kernel;
  const uint32_t first = maker->func->body->num_args - maker->num_scratch;
  kernel->num_locals = maker->num_prefetched + maker->num_scratch;
  kernel->locals = MP_ARENA_ARRAY(maker->arena, mp_mosaic_local_t, kernel->num_locals);
  MP_RETURN_IF_NULL(kernel->locals);
  for (uint32_t i = 0; i < kernel->num_locals; ++i) {
    const bool is_scratch = i >= maker->num_prefetched;
    kernel->locals[i].arg = is_scratch ? first + i - maker->num_prefetched : kernel->rank + i;
    kernel->locals[i].operand = is_scratch ? MP_MOSAIC_NONE : maker->num_dynamic + i;
    MP_RETURN_IF_ERROR(mosaic_make_windows_local(maker, &kernel->locals[i]));
  }
  return NULL;
}

// ---- ----

// Semaphores of a result that begins with an operand's are the same ones.
static void mosaic_make_windows_place_semaphores(mp_mosaic_kernel_t *kernel) {
  for (uint32_t r = 0; r < kernel->num_windows; ++r) {
    mp_mosaic_window_t *result = &kernel->windows[r];
    if (!result->is_semaphores || !result->is_result || result->alias < 0) continue;
    for (uint32_t w = 0; w < kernel->num_windows; ++w) {
      const mp_mosaic_window_t *operand = &kernel->windows[w];
      const bool is_same = !operand->is_result && operand->array == (uint32_t)result->alias;
      if (is_same && operand->is_semaphores) result->offset = operand->offset;
    }
  }
}

static void mosaic_make_windows_place(mp_mosaic_kernel_t *kernel) {
  size_t at = 0;
  for (uint32_t i = 0; i < kernel->num_locals; ++i) {
    kernel->locals[i].offset = at;
    at += mp_round_up_64(kernel->locals[i].bytes);
  }
  for (uint32_t w = 0; w < kernel->num_windows; ++w) {
    kernel->windows[w].offset = at;
    at += mp_round_up_64(kernel->windows[w].bytes);
  }
  mosaic_make_windows_place_semaphores(kernel);
  kernel->part_bytes = at + mp_round_up_64(kernel->num_windows * sizeof(mp_mosaic_window_state_t));
}

mp_status_t mp_mosaic_make_windows(mp_mosaic_maker_t *maker) {
  mp_mosaic_kernel_t *kernel = maker->kernel;
  const mp_mosaic_func_t *func = maker->func;
  const mp_op_t *call = maker->call;
  const uint32_t before = maker->num_dynamic + maker->num_prefetched;
  const uint32_t num_operands = call->num_operands - before;
  const mp_mosaic_attr_t *params = mp_mosaic_attr(func->attrs, func->num_attrs, "window_params");
  kernel->num_windows = num_operands + call->num_results;
  if (call->num_operands < before ||
      func->body->num_args !=
          kernel->rank + maker->num_prefetched + kernel->num_windows + maker->num_scratch ||
      (params != NULL && params->list.count != kernel->num_windows)) {
    return mp_mosaic_maker_error(
        maker, "it has %u arguments, which do not fit to %u operands and %u results",
        func->body->num_args, call->num_operands, call->num_results);
  }
  kernel->windows = MP_ARENA_ARRAY(maker->arena, mp_mosaic_window_t, kernel->num_windows);
  MP_RETURN_IF_NULL(kernel->windows);
  for (uint32_t w = 0; w < kernel->num_windows; ++w) {
    mp_mosaic_window_t *window = &kernel->windows[w];
    window->is_result = w >= num_operands;
    window->array = window->is_result ? w - num_operands : before + w;
    window->arg = kernel->rank + maker->num_prefetched + w;
    MP_RETURN_IF_ERROR(mosaic_make_windows_make(
        maker, params == NULL ? NULL : params->list.items[w].value, window));
  }
  mosaic_make_windows_set_aliases(maker);
  for (uint32_t w = 0; w < kernel->num_windows; ++w) {
    if (!kernel->windows[w].is_semaphores) continue;
    MP_RETURN_IF_ERROR(mosaic_make_windows_check_semaphores(maker, &kernel->windows[w]));
  }
  MP_RETURN_IF_ERROR(mosaic_make_windows_make_locals(maker));
  mosaic_make_windows_place(kernel);
  return NULL;
}
