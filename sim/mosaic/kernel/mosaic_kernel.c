#include "sim/mosaic/kernel/mosaic_kernel.h"

#include <string.h>

#include "sim/base/alloc.h"
#include "sim/kernels/shape.h"
#include "sim/mosaic/kernel/mosaic_maker.h"
#include "sim/mosaic/read/mosaic_call.h"

static bool mosaic_kernel_has_target(const mp_op_t *op, const char *target) {
  return op->code == MP_OP_CUSTOM_CALL &&
         mp_str_is(mp_op_str(op, MP_ATTR_CALL_TARGET_NAME), target);
}

bool mp_mosaic_is_call(const mp_op_t *op) {
  return mosaic_kernel_has_target(op, MP_MOSAIC_KERNEL_TARGET);
}

static mp_status_t mosaic_kernel_claim(void *context, mp_op_t *op) {
  mp_module_t *module = context;
  const mp_attr_t *target = NULL;
  if (!mosaic_kernel_has_target(op, MP_MOSAIC_TARGET)) return NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_string(module->arena, MP_STR(MP_MOSAIC_KERNEL_TARGET), &target));
  return mp_op_set_attr(module, op, MP_ATTR_CALL_TARGET_NAME, target);
}

mp_status_t mp_mosaic_claim_calls(mp_module_t *module) {
  return mp_block_walk(module->main->body, mosaic_kernel_claim, module);
}

static const mp_mosaic_attr_t *mosaic_kernel_attr(const mp_mosaic_func_t *func, const char *name) {
  return mp_mosaic_attr(func->attrs, func->num_attrs, name);
}

static uint32_t mosaic_kernel_count(const mp_mosaic_func_t *func, const char *name) {
  const mp_mosaic_attr_t *attr = mosaic_kernel_attr(func, name);
  return attr == NULL || attr->i64 < 0 || attr->i64 > func->body->num_args ? 0
                                                                           : (uint32_t)attr->i64;
}

static mp_status_t mosaic_kernel_read_grid(mp_mosaic_maker_t *maker) {
  mp_mosaic_kernel_t *kernel = maker->kernel;
  const mp_mosaic_attr_t *bounds = mosaic_kernel_attr(maker->func, "iteration_bounds");
  if (bounds == NULL) return NULL;
  if (bounds->kind != MP_MOSAIC_INTS || bounds->ints.count > MP_MOSAIC_MAX_GRID) {
    return mp_mosaic_maker_error(maker, "its grid has more than %d dimensions", MP_MOSAIC_MAX_GRID);
  }
  kernel->rank = bounds->ints.count;
  int64_t steps = 1;
  for (uint32_t d = 0; d < kernel->rank; ++d) {
    kernel->bounds[d] = bounds->ints.values[d];
    if (kernel->bounds[d] == MP_MOSAIC_DYNAMIC) {
      kernel->bound_operands[d] = maker->num_dynamic++;
    } else if (kernel->bounds[d] < 0 || __builtin_mul_overflow(steps, kernel->bounds[d], &steps)) {
      return mp_mosaic_maker_error(maker, "bound %u of its grid is too large", d);
    }
  }
  return NULL;
}

// ---- the program ----

static bool mosaic_kernel_communicates(const mp_mosaic_compiler_t *c) {
  for (uint32_t i = 0; i < c->code.count; ++i) {
    switch (c->code.items[i].kind) {
      case MP_MOSAIC_DO_REMOTE_DMA:
      case MP_MOSAIC_DO_REMOTE_SIGNAL:
      case MP_MOSAIC_DO_BARRIER:
      case MP_MOSAIC_DO_DEVICE:
        return true;
      default:
        break;
    }
  }
  return false;
}

static bool mosaic_kernel_reads_semaphores(const mp_mosaic_compiler_t *c) {
  for (uint32_t i = 0; i < c->code.count; ++i) {
    if (c->code.items[i].kind == MP_MOSAIC_DO_SEM_READ) return true;
  }
  return false;
}

static mp_status_t mosaic_kernel_set_program(mp_mosaic_maker_t *maker) {
  mp_mosaic_compiler_t *c = maker->compiler;
  mp_mosaic_program_t *program = &maker->kernel->program;
  uint64_t *offsets = MP_ARENA_ARRAY(maker->arena, uint64_t, c->vectors.count);
  uint64_t *sizes = MP_ARENA_ARRAY(maker->arena, uint64_t, c->vectors.count);
  const void **known = MP_ARENA_ARRAY(maker->arena, const void *, c->vectors.count);
  if (offsets == NULL || sizes == NULL || known == NULL) return mp_status_out_of_memory();
  *program = (mp_mosaic_program_t){.num_instructions = c->code.count,
                                   .num_registers = c->registers.count,
                                   .num_vectors = c->vectors.count,
                                   .num_views = c->num_views,
                                   .instructions = c->code.items,
                                   .registers = c->registers.items,
                                   .offsets = offsets,
                                   .sizes = sizes,
                                   .known = known,
                                   .scratch_bytes = c->scratch_bytes,
                                   .shared_bytes = c->shared_bytes,
                                   .communicates = mosaic_kernel_communicates(c)};
  program->polls = program->communicates || mosaic_kernel_reads_semaphores(c);
  MP_RETURN_IF_ERROR(mp_mosaic_lay_out(c, &program->memory_bytes));
  for (uint32_t v = 0; v < c->vectors.count; ++v) {
    offsets[v] = c->vectors.items[v].offset;
    sizes[v] = c->vectors.items[v].bytes;
    known[v] = c->vectors.items[v].known;
  }
  return NULL;
}

// What is decided by running the program's functions of indices.
static mp_status_t mosaic_kernel_decide(mp_mosaic_maker_t *maker) {
  mp_mosaic_kernel_t *kernel = maker->kernel;
  mp_mosaic_state_t state;
  char *memory = mp_aligned_malloc(64, mp_mosaic_state_bytes(&kernel->program));
  MP_RETURN_IF_NULL(memory);
  mp_mosaic_state_init(&kernel->program, memory, &state);
  state.bounds = kernel->bounds;
  maker->state = &state;
  mp_status_t status = mp_mosaic_make_capacity(maker);
  if (status == NULL) status = mp_mosaic_make_fills(maker);
  if (status == NULL) status = mp_mosaic_make_parts(maker);
  maker->state = NULL;
  mp_free(memory);
  return status;
}

static mp_status_t mosaic_kernel_compile(mp_mosaic_maker_t *maker) {
  mp_mosaic_compiler_t *c = maker->compiler;
  mp_mosaic_kernel_t *kernel = maker->kernel;
  c->main = maker->func;
  c->num_roots = maker->func->body->num_args;
  c->written = MP_ARENA_ARRAY(c->scratch, bool, c->num_roots);
  MP_RETURN_IF_NULL(c->written);
  kernel->name = mp_arena_strndup(maker->arena, maker->func->name.data, maker->func->name.size);
  MP_RETURN_IF_NULL(kernel->name);
  MP_RETURN_IF_ERROR(mosaic_kernel_read_grid(maker));
  maker->num_prefetched = mosaic_kernel_count(maker->func, "scalar_prefetch");
  maker->num_scratch = mosaic_kernel_count(maker->func, "scratch_operands");
  MP_RETURN_IF_ERROR(mp_mosaic_compile_func(c, maker->func, &kernel->main));
  MP_RETURN_IF_ERROR(mp_mosaic_make_windows(maker));
  MP_RETURN_IF_ERROR(mp_mosaic_make_types(maker));
  if (maker->target->checks) {
    MP_RETURN_IF_ERROR(mp_mosaic_make_shapes(maker));
    MP_RETURN_IF_ERROR(mp_mosaic_make_names(maker));
  }
  MP_RETURN_IF_ERROR(mosaic_kernel_set_program(maker));
  MP_RETURN_IF_ERROR(mosaic_kernel_decide(maker));
  kernel->run_bytes = mp_mosaic_state_bytes(&kernel->program) + kernel->part_bytes;
  if (kernel->program.communicates) return mp_mosaic_make_talk(maker);
  kernel->kernel.scratch_bytes = kernel->run_bytes;
  return NULL;
}

// An operand with which a result begins may have the result's memory.
static mp_status_t mosaic_kernel_set_in_place(mp_mosaic_maker_t *maker) {
  const mp_op_t *call = maker->call;
  uint32_t *later = MP_ARENA_ARRAY(maker->arena, uint32_t, call->num_results);
  MP_RETURN_IF_NULL(later);
  for (uint32_t r = 0; r < call->num_results; ++r) {
    const int64_t operand = mp_op_aliased_operand(call, r);
    const uint32_t bit = operand >= 0 && operand < 32 ? 1u << operand : 0;
    if (r == 0) {
      maker->kernel->kernel.in_place = bit;
    } else {
      later[r - 1] = bit;
    }
  }
  if (call->num_results > 1) maker->kernel->kernel.later_in_place = later;
  return NULL;
}

mp_status_t mp_mosaic_make_kernel_of(mp_arena_t *arena, const mp_op_t *op,
                                     const mp_mosaic_module_t *module,
                                     const mp_mosaic_target_t *target, int64_t vmem_limit,
                                     const mp_kernel_t **out_kernel) {
  mp_mosaic_compiler_t compiler = {.arena = arena, .module = module};
  mp_mosaic_maker_t maker = {.arena = arena,
                             .call = op,
                             .func = mp_mosaic_find_kernel(module),
                             .compiler = &compiler,
                             .target = target,
                             .vmem_limit = vmem_limit,
                             .kernel = MP_ARENA_NEW(arena, mp_mosaic_kernel_t)};
  MP_RETURN_IF_NULL(maker.kernel);
  if (maker.func == NULL) return mp_op_error(op, MP_INVALID_ARGUMENT, "the module is empty");
  mp_kernel_init(&maker.kernel->kernel, target->checks ? mp_mosaic_grid_check : mp_mosaic_grid_run,
                 op);
  MP_RETURN_IF_ERROR(mp_arena_create(&compiler.scratch));
  mp_status_t status = mosaic_kernel_compile(&maker);
  mp_arena_release(compiler.scratch);
  if (status == NULL) status = mosaic_kernel_set_in_place(&maker);
  if (status == NULL) *out_kernel = &maker.kernel->kernel;
  return mp_op_error_at(op, status);
}

// The compiler's own memory, in units of 512 bytes, with libtpu 0.0.52 for v5e, v6e and 7x.
static mp_status_t mosaic_kernel_check_scratch(const mp_mosaic_call_t *call) {
  enum { LEAST = 36864, UNIT = 512 };
  if (call->scratch_bytes < 0 || call->scratch_bytes > LEAST - UNIT) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "internal_scratch_in_bytes: a TPU's compiler refuses this: Requested "
                        "internal scratch size %lld needs to be at least %d bytes",
                        (long long)call->scratch_bytes, LEAST);
}

mp_status_t mp_mosaic_make_kernel(mp_arena_t *arena, const mp_op_t *op,
                                  const mp_mosaic_target_t *target,
                                  const mp_kernel_t **out_kernel) {
  mp_mosaic_call_t call;
  mp_status_t status = mp_mosaic_read_call(mp_op_str(op, MP_ATTR_BACKEND_CONFIG), &call);
  if (status != NULL) return mp_op_error_at(op, status);
  status = mosaic_kernel_check_scratch(&call);
  if (status == NULL) status = mp_mosaic_verify(call.module);
  status = status == NULL ? mp_mosaic_make_kernel_of(arena, op, call.module, target,
                                                     call.vmem_limit_bytes, out_kernel)
                          : mp_op_error_at(op, status);
  mp_mosaic_module_release(call.module);
  return status;
}
