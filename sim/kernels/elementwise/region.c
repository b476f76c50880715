// Compiles a region to steps, and runs them. Each value of the region has a *place*: an input, an
// array of copies of a constant, or a register in the scratch memory. Registers are reused after
// the last step that reads them, so that a long region stays in the cache.
#include "sim/kernels/elementwise/region.h"

#include <string.h>

#include "sim/base/assert.h"
#include "sim/kernels/elementwise/elementwise.h"
#include "sim/kernels/shape.h"

typedef enum {
  PLACE_INPUT,     // inputs[index]
  PLACE_CONSTANT,  // `constant`: MP_REGION_MAX_LANES elements
  PLACE_REGISTER,  // scratch + offset
} place_kind_t;

typedef struct {
  place_kind_t kind;
  uint32_t index;
  const void *constant;
  size_t offset;
} place_t;

typedef struct {
  mp_ew_t ew;
  place_t in[MP_EW_MAX_INPUTS];
  size_t out;  // register
} step_t;

typedef struct {
  uint32_t index;  // among the op's captures
  size_t size;     // of an element
  size_t out;      // register
} capture_t;

typedef struct {
  place_t place;
  size_t size;  // of an element
} result_t;

struct mp_region_fn_s {
  mp_reduce_kind_t kind;
  uint32_t num_steps, num_captures, num_results;
  step_t *steps;
  capture_t *captures;
  result_t *results;
  size_t scratch_bytes;
  // The only result is that of the last step, which writes it directly to the output.
  bool last_step_is_result;
  // Some result is an input or a constant, or several results have the same register. All results
  // are then collected in the scratch memory before any output is written, because an output may be
  // the same array as an input.
  bool collect;
  size_t collect_offset;
};

// ---- Compiling ----

// The time for compiling is quadratic in the number of ops, which is a limit only for hostile
// input.
enum { MAX_OPS = 4096 };

// The facts about a value while compiling.
typedef struct {
  const mp_value_t *value;
  place_t place;
  uint32_t last_use;  // number of the op that reads it last
} binding_t;

// A register that may be reused.
typedef struct {
  size_t size;  // of an element
  size_t offset;
} free_register_t;

typedef struct {
  mp_arena_t *arena;
  const mp_block_t *block;
  mp_region_fn_t *fn;
  binding_t *bindings;
  uint32_t num_bindings;
  free_register_t *free_registers;
  uint32_t num_free;
  bool *live;             // by number of the op
  mp_value_t **captured;  // of the op that owns the block; NULL until asked for
  uint32_t num_captured;
} compiler_t;

static bool region_is_scalar(const mp_type_t *type) {
  return mp_type_is_tensor(type) && type->rank == 0 &&
         mp_ew_computing_type(type->dtype) != MP_DTYPE_INVALID;
}

// Whether the op only copies a scalar, so that mp_region_see_through looks through it.
static bool region_is_transparent(const mp_op_t *op) {
  if (op->code == MP_OP_TUPLE) return true;
  return op->num_results > 0 && mp_region_see_through(&op->results[0]) != &op->results[0];
}

static binding_t *region_find_binding(compiler_t *c, const mp_value_t *value) {
  for (uint32_t i = c->num_bindings; i-- > 0;) {
    if (c->bindings[i].value == value) return &c->bindings[i];
  }
  return NULL;
}

static place_t region_register_place(size_t offset) {
  return (place_t){.kind = PLACE_REGISTER, .offset = offset};
}

static size_t region_take_register(compiler_t *c, size_t size) {
  for (uint32_t i = 0; i < c->num_free; ++i) {
    if (c->free_registers[i].size != size) continue;
    size_t offset = c->free_registers[i].offset;
    c->free_registers[i] = c->free_registers[--c->num_free];
    return offset;
  }
  size_t offset = c->fn->scratch_bytes;
  c->fn->scratch_bytes += mp_round_up_64(size * MP_REGION_MAX_LANES);
  return offset;
}

static void region_bind_value(compiler_t *c, const mp_value_t *value, place_t place,
                              uint32_t last_use) {
  c->bindings[c->num_bindings++] =
      (binding_t){.value = value, .place = place, .last_use = last_use};
}

static mp_status_t region_splat_constant(compiler_t *c, const mp_op_t *op, place_t *out_place) {
  const void *value = mp_op_splat(op);
  size_t size = mp_dtype_size(op->results[0].type->dtype);
  if (value == NULL) {
    return mp_op_error(op, MP_INVALID_ARGUMENT, "a constant in a region has no value");
  }
  char *lanes = mp_arena_alloc_array(c->arena, MP_REGION_MAX_LANES, size);
  MP_RETURN_IF_NULL(lanes);
  for (size_t i = 0; i < MP_REGION_MAX_LANES; ++i) {
    memcpy(lanes + i * size, value, size);
  }
  *out_place = (place_t){.kind = PLACE_CONSTANT, .constant = lanes};
  return NULL;
}

// Binds a value from outside: its scalar is repeated in a register that is in use during the whole
// run.
static mp_status_t region_bind_capture(compiler_t *c, const mp_op_t *user, const mp_value_t *value,
                                       uint32_t end) {
  const mp_op_t *owner = c->block->parent_op;
  if (owner == NULL || !region_is_scalar(value->type)) {
    return mp_op_error(user, MP_UNIMPLEMENTED,
                       "a region uses a value from outside that is not a scalar");
  }
  if (c->captured == NULL) {
    MP_RETURN_IF_ERROR(mp_op_captures(owner, c->arena, &c->captured, &c->num_captured));
    c->fn->captures = MP_ARENA_ARRAY(c->arena, capture_t, c->num_captured + 1);
    MP_RETURN_IF_NULL(c->fn->captures);
  }
  uint32_t index = 0;
  while (index < c->num_captured && c->captured[index] != value) ++index;
  if (index == c->num_captured) {
    return mp_op_error(user, MP_INTERNAL, "a region uses a value that it does not capture");
  }
  size_t size = mp_dtype_size(value->type->dtype), out = region_take_register(c, size);
  c->fn->captures[c->fn->num_captures++] = (capture_t){index, size, out};
  region_bind_value(c, value, region_register_place(out), end);
  return NULL;
}

// The place of a value that the block uses. A capture is bound when it is first met. All captures
// are bound before the first step takes a register, so that a step never gets a register of theirs.
static mp_status_t region_find_place(compiler_t *c, const mp_op_t *user, const mp_value_t *value,
                                     place_t *out_place) {
  const binding_t *binding = region_find_binding(c, mp_region_see_through(value));
  if (binding == NULL) {
    return mp_op_error(user, MP_UNIMPLEMENTED, "a region uses a value that is not a scalar");
  }
  *out_place = binding->place;
  return NULL;
}

static uint32_t region_count_ops(const mp_block_t *block) {
  uint32_t count = 0;
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) ++count;
  return count;
}

static bool region_is_constant(const mp_op_t *op) {
  return op->code == MP_OP_CONSTANT || op->code == MP_OP_SDY_CONSTANT;
}

// The number of the op that reads `value`, or a copy of it, last; the terminator counts too.
static uint32_t region_last_use_of(const mp_block_t *block, const mp_value_t *value) {
  uint32_t number = 0, last = 0;
  for (const mp_op_t *op = block->first; op != NULL; op = op->next, ++number) {
    // An operand of a tuple or a copy is read by the ops that use the result.
    if (region_is_transparent(op)) continue;
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      const mp_value_t *read = mp_region_see_through(op->operands[i]);
      if (read == value) last = number;
      if (read->op == NULL || read->op->code != MP_OP_TUPLE) continue;
      for (uint32_t k = 0; k < read->op->num_operands; ++k) {
        if (mp_region_see_through(read->op->operands[k]) == value) last = number;
      }
    }
  }
  return last;
}

static mp_status_t region_bind_captures(compiler_t *c, uint32_t end) {
  for (const mp_op_t *op = c->block->first; op != NULL; op = op->next) {
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      const mp_value_t *value = mp_region_see_through(op->operands[i]);
      bool is_inside = value->op != NULL ? value->op->parent == c->block : value->block == c->block;
      if (is_inside || region_find_binding(c, value) != NULL) continue;
      MP_RETURN_IF_ERROR(region_bind_capture(c, op, value, end));
    }
  }
  return NULL;
}

static void region_release_dead_registers(compiler_t *c, uint32_t number) {
  for (uint32_t i = 0; i < c->num_bindings; ++i) {
    binding_t *b = &c->bindings[i];
    if (b->place.kind != PLACE_REGISTER || b->last_use != number) continue;
    c->free_registers[c->num_free++] =
        (free_register_t){mp_dtype_size(b->value->type->dtype), b->place.offset};
    b->last_use = UINT32_MAX;  // so that it is freed only once
  }
}

// Marks the ops on which a value depends; all others need no steps.
static void region_mark_live(compiler_t *c, const mp_value_t *value) {
  value = mp_region_see_through(value);
  const mp_op_t *op = value->op;
  if (op == NULL || op->parent != c->block) return;
  uint32_t number = 0;
  for (const mp_op_t *other = c->block->first; other != op; other = other->next) ++number;
  if (c->live[number]) return;
  c->live[number] = true;
  for (uint32_t i = 0; i < op->num_operands; ++i) region_mark_live(c, op->operands[i]);
}

static mp_status_t region_compile_op(compiler_t *c, const mp_op_t *op, uint32_t number) {
  if (region_is_transparent(op) || !c->live[number]) return NULL;
  if (op->num_results != 1 || !region_is_scalar(op->results[0].type)) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "only scalar operations can be used in this region");
  }
  if (region_is_constant(op)) {
    place_t place = {0};
    MP_RETURN_IF_ERROR(region_splat_constant(c, op, &place));
    region_bind_value(c, &op->results[0], place, 0);
    return NULL;
  }
  if (!mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) {
    return mp_op_error(op, MP_UNIMPLEMENTED,
                       "only elementwise operations can be used in this region");
  }
  step_t *step = &c->fn->steps[c->fn->num_steps];
  MP_RETURN_IF_ERROR(mp_ew_bind(op, &step->ew));
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(region_find_place(c, op, op->operands[i], &step->in[i]));
  }
  // The result takes a register before those of the operands are freed. A loop may overwrite an
  // operand only if the elements are equally large, and little would be saved.
  step->out = region_take_register(c, mp_dtype_size(op->results[0].type->dtype));
  uint32_t last = region_last_use_of(c->block, &op->results[0]);
  region_bind_value(c, &op->results[0], region_register_place(step->out),
                    last < number ? number : last);
  ++c->fn->num_steps;
  region_release_dead_registers(c, number);
  return NULL;
}

// Lists the region's results, with tuples taken apart.
static mp_status_t region_list_results(compiler_t *c, const mp_op_t *terminator,
                                       const mp_value_t ***out_values, uint32_t *out_count) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < terminator->num_operands; ++i) {
    const mp_value_t *value = mp_region_see_through(terminator->operands[i]);
    bool is_tuple = value->op != NULL && value->op->code == MP_OP_TUPLE;
    count += is_tuple ? value->op->num_operands : 1;
  }
  const mp_value_t **values = MP_ARENA_ARRAY(c->arena, const mp_value_t *, count + 1);
  MP_RETURN_IF_NULL(values);
  uint32_t next = 0;
  for (uint32_t i = 0; i < terminator->num_operands; ++i) {
    const mp_value_t *value = mp_region_see_through(terminator->operands[i]);
    if (value->op == NULL || value->op->code != MP_OP_TUPLE) {
      values[next++] = value;
      continue;
    }
    for (uint32_t k = 0; k < value->op->num_operands; ++k) {
      values[next++] = mp_region_see_through(value->op->operands[k]);
    }
  }
  *out_values = values;
  *out_count = count;
  return NULL;
}

static mp_status_t region_compile_results(compiler_t *c, const mp_value_t *const *values,
                                          uint32_t count) {
  mp_region_fn_t *fn = c->fn;
  fn->results = MP_ARENA_ARRAY(c->arena, result_t, count + 1);
  MP_RETURN_IF_NULL(fn->results);
  fn->num_results = count;
  size_t total = 0;
  for (uint32_t i = 0; i < count; ++i) {
    result_t *result = &fn->results[i];
    result->size = mp_dtype_size(values[i]->type->dtype);
    MP_RETURN_IF_ERROR(region_find_place(c, c->block->last, values[i], &result->place));
    if (result->place.kind == PLACE_INPUT && count > 1) fn->collect = true;
    total += mp_round_up_64(result->size * MP_REGION_MAX_LANES);
  }
  if (fn->collect) {
    fn->collect_offset = fn->scratch_bytes;
    fn->scratch_bytes += total;
  }
  MP_ASSERT(count == fn->num_results);
  fn->last_step_is_result = count == 1 && fn->num_steps > 0 &&
                            fn->results[0].place.kind == PLACE_REGISTER &&
                            fn->results[0].place.offset == fn->steps[fn->num_steps - 1].out;
  return NULL;
}

// ---- The whole region ----

static mp_status_t region_start_compiler(compiler_t *c, uint32_t num_ops) {
  if (num_ops > MAX_OPS) {
    return mp_op_error(c->block->last, MP_UNIMPLEMENTED, "a region of %u operations is too large",
                       num_ops);
  }
  uint32_t num_values = c->block->num_args;
  for (const mp_op_t *op = c->block->first; op != NULL; op = op->next) {
    num_values += 1 + op->num_operands;  // its result, and perhaps a capture for each operand
  }
  c->fn = MP_ARENA_NEW(c->arena, mp_region_fn_t);
  MP_RETURN_IF_NULL(c->fn);
  c->fn->steps = MP_ARENA_ARRAY(c->arena, step_t, num_ops + 1);
  c->bindings = MP_ARENA_ARRAY(c->arena, binding_t, num_values + 1);
  c->free_registers = MP_ARENA_ARRAY(c->arena, free_register_t, num_values + 1);
  c->live = MP_ARENA_ARRAY(c->arena, bool, num_ops + 1);
  if (c->fn->steps == NULL || c->bindings == NULL || c->free_registers == NULL || c->live == NULL) {
    return mp_status_out_of_memory();
  }
  const mp_op_t *terminator = mp_block_terminator(c->block);
  if (terminator == NULL || !mp_op_has(terminator, MP_OP_TRAIT_TERMINATOR)) {
    return mp_status_make(MP_INVALID_ARGUMENT, "a region does not end in a return");
  }
  for (uint32_t i = 0; i < c->block->num_args; ++i) {
    if (!region_is_scalar(c->block->args[i].type)) {
      return mp_op_error(terminator, MP_UNIMPLEMENTED, "argument %u of a region is not a scalar",
                         i);
    }
    region_bind_value(c, &c->block->args[i], (place_t){.kind = PLACE_INPUT, .index = i}, 0);
  }
  return NULL;
}

// Compiles the ops on which `value` depends, or, if it is NULL, those on which the terminator does.
static mp_status_t region_compile(mp_arena_t *arena, const mp_block_t *block,
                                  const mp_value_t *value, const mp_region_fn_t **out_fn) {
  uint32_t num_ops = region_count_ops(block);
  compiler_t c = {.arena = arena, .block = block};
  MP_RETURN_IF_ERROR(region_start_compiler(&c, num_ops));
  MP_RETURN_IF_ERROR(region_bind_captures(&c, num_ops));
  const mp_value_t *const *results = &value;
  uint32_t num_results = 1;
  if (value == NULL) {
    const mp_value_t **returned = NULL;
    MP_RETURN_IF_ERROR(region_list_results(&c, block->last, &returned, &num_results));
    results = returned;
  }
  for (uint32_t i = 0; i < num_results; ++i) region_mark_live(&c, results[i]);
  uint32_t number = 0;
  for (const mp_op_t *op = block->first; op != block->last; op = op->next) {
    MP_RETURN_IF_ERROR(region_compile_op(&c, op, number++));
  }
  MP_RETURN_IF_ERROR(region_compile_results(&c, results, num_results));
  c.fn->kind = mp_region_kind(block, results, num_results);
  *out_fn = c.fn;
  return NULL;
}

mp_status_t mp_region_fn_create(mp_arena_t *arena, const mp_block_t *block,
                                const mp_region_fn_t **out_fn) {
  return region_compile(arena, block, NULL, out_fn);
}

mp_status_t mp_region_fn_create_value(mp_arena_t *arena, const mp_block_t *block,
                                      const mp_value_t *value, const mp_region_fn_t **out_fn) {
  return region_compile(arena, block, value, out_fn);
}

mp_reduce_kind_t mp_region_fn_kind(const mp_region_fn_t *fn) {
  return fn->kind;
}

size_t mp_region_fn_scratch_bytes(const mp_region_fn_t *fn) {
  return fn->scratch_bytes;
}

// ---- Running ----

static const void *region_resolve(const place_t *place, const void *const *inputs,
                                  const char *scratch) {
  switch (place->kind) {
    case PLACE_INPUT:
      return inputs[place->index];
    case PLACE_CONSTANT:
      return place->constant;
    case PLACE_REGISTER:
      break;
    default:
      MP_ASSERT_NOT_REACHED();
  }
  return scratch + place->offset;
}

static void region_copy_results(const mp_region_fn_t *fn, size_t n, const void *const *inputs,
                                void *const *outputs, char *scratch) {
  char *collected = scratch + fn->collect_offset;
  for (uint32_t i = 0; i < fn->num_results; ++i) {
    const result_t *result = &fn->results[i];
    const void *from = region_resolve(&result->place, inputs, scratch);
    void *to = outputs[i];
    if (fn->collect) {
      to = collected;
      collected += mp_round_up_64(result->size * MP_REGION_MAX_LANES);
    }
    if (to != from) memcpy(to, from, n * result->size);
  }
  if (!fn->collect) return;
  collected = scratch + fn->collect_offset;
  for (uint32_t i = 0; i < fn->num_results; ++i) {
    memcpy(outputs[i], collected, n * fn->results[i].size);
    collected += mp_round_up_64(fn->results[i].size * MP_REGION_MAX_LANES);
  }
}

void mp_region_fn_run(const mp_region_fn_t *fn, int64_t n, const void *const *inputs,
                      const void *const *captures, void *const *outputs, void *scratch) {
  MP_ASSERT(n >= 0 && n <= MP_REGION_MAX_LANES);
  char *registers = scratch;
  for (uint32_t i = 0; i < fn->num_captures; ++i) {
    const capture_t *capture = &fn->captures[i];
    char *lanes = registers + capture->out;
    for (int64_t k = 0; k < n; ++k) {
      memcpy(lanes + (size_t)k * capture->size, captures[capture->index], capture->size);
    }
  }
  for (uint32_t i = 0; i < fn->num_steps; ++i) {
    const step_t *step = &fn->steps[i];
    const void *in[MP_EW_MAX_INPUTS];
    for (uint32_t k = 0; k < step->ew.num_inputs; ++k) {
      in[k] = region_resolve(&step->in[k], inputs, registers);
    }
    bool is_result = fn->last_step_is_result && i + 1 == fn->num_steps;
    mp_ew_run(&step->ew, n, in, is_result ? outputs[0] : registers + step->out);
  }
  if (!fn->last_step_is_result) region_copy_results(fn, (size_t)n, inputs, outputs, registers);
}
