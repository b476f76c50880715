// The table of ops, and what is asked of modules and ops.
#include "sim/mosaic/ir/mosaic_ir.h"

#include <stdarg.h>

#include "sim/base/assert.h"

// ---- the table ----

static const mp_mosaic_op_info_t g_ops[MP_MOSAIC_OP_COUNT] = {
#define MOSAIC_ROW(name, text, operands, results, regions, op_class) \
  [MP_MOSAIC_##name] = {text, operands, results, regions, MP_MOSAIC_CLASS_##op_class},
    MP_MOSAIC_OPS(MOSAIC_ROW)
#undef MOSAIC_ROW
};

const mp_mosaic_op_info_t *mp_mosaic_op_info(mp_mosaic_opcode_t code) {
  MP_ASSERT((unsigned)code < MP_MOSAIC_OP_COUNT);
  return &g_ops[code];
}

bool mp_mosaic_opcode_from_name(mp_str_t name, mp_mosaic_opcode_t *out_code) {
  static const char prefix[] = "stable_mosaic.";
  if (mp_str_starts_with(name, prefix)) {
    name.data += sizeof(prefix) - 1;
    name.size -= sizeof(prefix) - 1;
  }
  for (int code = 0; code < MP_MOSAIC_OP_COUNT; ++code) {
    if (!mp_str_is(name, g_ops[code].name)) continue;
    *out_code = (mp_mosaic_opcode_t)code;
    return true;
  }
  return false;
}

// ---- modules ----

void mp_mosaic_module_release(mp_mosaic_module_t *module) {
  // The module lies in its own arena.
  if (module != NULL) mp_arena_release(module->arena);
}

const mp_mosaic_func_t *mp_mosaic_find_func(const mp_mosaic_module_t *module, mp_str_t name) {
  for (const mp_mosaic_func_t *func = module->funcs.first; func != NULL; func = func->next)
    if (mp_str_equal(func->name, name)) return func;
  return NULL;
}

static bool mosaic_ir_has(const mp_mosaic_func_t *func, const char *name) {
  return mp_mosaic_attr(func->attrs, func->num_attrs, name) != NULL;
}

const mp_mosaic_func_t *mp_mosaic_find_kernel(const mp_mosaic_module_t *module) {
  const mp_mosaic_func_t *last = NULL;
  for (const mp_mosaic_func_t *f = module->funcs.first; f != NULL; f = f->next) {
    if (mosaic_ir_has(f, "iteration_bounds") || mosaic_ir_has(f, "window_params") ||
        mosaic_ir_has(f, "scratch_operands")) {
      return f;
    }
    last = f;
  }
  return last;
}

const mp_mosaic_op_t **mp_mosaic_block_ops(const mp_mosaic_block_t *block, mp_arena_t *arena,
                                           uint32_t *out_count) {
  uint32_t count = 0;
  for (const mp_mosaic_op_t *op = block->first; op != NULL; op = op->next) ++count;
  const mp_mosaic_op_t **ops = MP_ARENA_ARRAY(arena, const mp_mosaic_op_t *, count + 1);
  if (ops == NULL) return NULL;
  *out_count = 0;
  for (const mp_mosaic_op_t *op = block->first; op != NULL; op = op->next) ops[(*out_count)++] = op;
  return ops;
}

// ---- attributes ----

const mp_mosaic_attr_t *mp_mosaic_attr(const mp_mosaic_named_t *items, uint32_t count,
                                       const char *name) {
  for (uint32_t i = 0; i < count; ++i)
    if (mp_str_is(items[i].name, name)) return items[i].value;
  return NULL;
}

int64_t mp_mosaic_op_int(const mp_mosaic_op_t *op, const char *name, int64_t when_absent) {
  const mp_mosaic_attr_t *attr = mp_mosaic_op_attr(op, name);
  if (attr == NULL || (attr->kind != MP_MOSAIC_INT && attr->kind != MP_MOSAIC_BOOL))
    return when_absent;
  return attr->i64;
}

// ---- operands ----

uint32_t mp_mosaic_op_segment(const mp_mosaic_op_t *op, uint32_t index, uint32_t when_absent) {
  const mp_mosaic_attr_t *attr = mp_mosaic_op_attr(op, "operandSegmentSizes");
  if (attr == NULL || attr->kind != MP_MOSAIC_INTS || index >= attr->ints.count) return when_absent;
  return (uint32_t)attr->ints.values[index];
}

mp_mosaic_value_t *mp_mosaic_op_optional(const mp_mosaic_op_t *op, uint32_t index) {
  uint32_t at = 0;
  if (mp_mosaic_op_segment(op, index, 0) != 1) return NULL;
  for (uint32_t i = 0; i < index; ++i) at += mp_mosaic_op_segment(op, i, 0);
  return at < op->num_operands ? op->operands[at] : NULL;
}

mp_mosaic_awaited_t mp_mosaic_op_awaited(const mp_mosaic_op_t *op) {
  enum { SOURCE, SOURCE_SEMAPHORE, TARGET, TARGET_SEMAPHORE };  // of wait_dma
  if (op->code == MP_MOSAIC_WAIT_DMA) {
    const bool arrives = mp_mosaic_op_int(op, "wait_target", 1) != 0;
    return (mp_mosaic_awaited_t){
        mp_mosaic_op_optional(op, arrives ? TARGET_SEMAPHORE : SOURCE_SEMAPHORE),
        mp_mosaic_op_optional(op, arrives ? TARGET : SOURCE)};
  }
  if (op->code != MP_MOSAIC_WAIT_DMA2 || op->num_operands < 3) return (mp_mosaic_awaited_t){0};
  return (mp_mosaic_awaited_t){op->operands[0], op->operands[2]};
}

// ---- errors ----

static const mp_mosaic_func_t *mosaic_ir_func_of(const mp_mosaic_op_t *op) {
  const mp_mosaic_block_t *block = op->parent;
  while (block != NULL && block->parent_op != NULL) block = block->parent_op->parent;
  return block != NULL ? block->func : NULL;
}

mp_status_t mp_mosaic_op_error(const mp_mosaic_op_t *op, mp_status_code_t code, const char *format,
                               ...) {
  const mp_mosaic_func_t *func = mosaic_ir_func_of(op);
  va_list args;
  va_start(args, format);
  mp_status_t status = mp_loc_verror(code, mp_mosaic_op_info(op->code)->name, op->loc,
                                     func != NULL ? func->name : MP_STR(""), format, args);
  va_end(args);
  return status;
}
