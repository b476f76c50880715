// Whether a kernel's blocks and scratch memory fit in VMEM and SMEM.
//
// The count is a lower bound: a compiler adds spilled registers. A block has two buffers if it
// changes with the steps of the grid, unless its window says how many.
#include "sim/base/str.h"
#include "sim/mosaic/kernel/mosaic_maker.h"

enum {
  MOST_VMEM = 192 << 20,
  MOST_SMEM = 1 << 20,
  LANES = 128,
  MOST_NAMED = 16,  // memories in a message
};

typedef struct {
  const mp_mosaic_maker_t *maker;
  mp_mosaic_space_t space;
  int64_t bytes;       // so far
  uint32_t num_named;  // in `text`
  mp_strbuf_t text;
  mp_strbuf_t windows;  // what libtpu says of each block
} count_t;

// ---- sizes ----

// In VMEM the last dimension consists of whole rows of lanes.
static int64_t mosaic_make_capacity_size(const mp_mosaic_type_t *type) {
  const int64_t most = INT64_C(1) << 40;
  int64_t count = 0;
  if (type->kind != MP_MOSAIC_MEMREF || type->element != MP_MOSAIC_NUMBER ||
      !mp_mosaic_num_elements(type, &count)) {
    return 0;
  }
  const int64_t last = type->rank == 0 ? 1 : type->dims[type->rank - 1];
  if (count > most) count = most;
  if (type->space == MP_MOSAIC_SPACE_VMEM && last > 0) {
    count = count / last * ((last + LANES - 1) / LANES * LANES);
  }
  return count * mp_dtype_bits(type->dtype) / 8;
}

// What regions need at the same time; consecutive ones reuse memory.
static int64_t mosaic_make_capacity_block(const mp_mosaic_block_t *block, mp_mosaic_space_t space) {
  int64_t own = 0, most = 0;
  for (const mp_mosaic_op_t *op = block->first; op != NULL; op = op->next) {
    if (op->code == MP_MOSAIC_ALLOCA && op->results[0].type->space == space) {
      own += mosaic_make_capacity_size(op->results[0].type);
    }
    for (uint32_t i = 0; i < op->num_regions; ++i) {
      const int64_t inner =
          op->regions[i] == NULL ? 0 : mosaic_make_capacity_block(op->regions[i], space);
      if (inner > most) most = inner;
    }
  }
  return own + most;
}

// ---- buffers ----

static bool mosaic_make_capacity_changes(const count_t *count, const mp_mosaic_window_t *window) {
  const mp_mosaic_kernel_t *kernel = count->maker->kernel;
  for (uint32_t d = 0; d < kernel->rank; ++d) {
    bool changes = false;
    if (kernel->bounds[d] >= 0 && kernel->bounds[d] <= 1) continue;
    if (mp_mosaic_reads_memory(kernel, &window->entry)) return true;
    mp_status_t status = mp_mosaic_index_changes(count->maker, window, d, &changes);
    if (status != NULL) {  // the step will say so
      mp_status_ignore(status);
      return false;
    }
    if (changes) return true;
  }
  return false;
}

static int64_t mosaic_make_capacity_buffers(const count_t *count,
                                            const mp_mosaic_window_t *window) {
  if (window->num_buffers != 0) return window->num_buffers;
  return window->has_entry && mosaic_make_capacity_changes(count, window) ? 2 : 1;
}

// ---- counting ----

static void mosaic_make_capacity_add(count_t *count, const char *what, uint32_t number,
                                     int64_t bytes, int64_t buffers) {
  if (bytes == 0) return;
  count->bytes += bytes * buffers;
  if (count->num_named++ >= MOST_NAMED) return;
  mp_strbuf_printf(&count->text, "%s%s", count->num_named == 1 ? "" : ", ", what);
  if (number != MP_MOSAIC_NONE) mp_strbuf_printf(&count->text, " %u", number);
  mp_strbuf_printf(&count->text, " %lld", (long long)bytes);
  if (buffers > 1) mp_strbuf_printf(&count->text, " x %lld buffers", (long long)buffers);
}

static void mosaic_make_capacity_put_shape(count_t *count, mp_dtype_t dtype, const int64_t *dims,
                                           uint32_t rank) {
  mp_strbuf_printf(&count->windows, "%s[", mp_dtype_name(dtype));
  for (uint32_t d = 0; d < rank; ++d) {
    mp_strbuf_printf(&count->windows, "%s%lld", d == 0 ? "" : ",", (long long)dims[d]);
  }
  mp_strbuf_puts(&count->windows, "]");
}

// Names a block as libtpu 0.0.52 does: operands without bounds of the grid.
static void mosaic_make_capacity_name(count_t *count, const mp_mosaic_window_t *window,
                                      int64_t buffers) {
  const mp_mosaic_type_t *type = window->type;
  const char *kind = window->is_result ? "output" : "input";
  if (count->num_named > MOST_NAMED) return;
  mp_strbuf_printf(&count->windows,
                   "\n%s window allocation for operator %s %u. The window shape is ", kind, kind,
                   window->array - (window->is_result ? 0 : count->maker->num_dynamic));
  mosaic_make_capacity_put_shape(count, type->dtype, type->dims, type->rank);
  mp_strbuf_puts(&count->windows, ", while the full shape is ");
  mosaic_make_capacity_put_shape(count, type->dtype, window->dims, type->rank);
  if (buffers == 1) {
    mp_strbuf_puts(&count->windows, ". This allocation is single buffered.");
  } else {
    mp_strbuf_printf(&count->windows, ". This allocation has %lld buffering levels.",
                     (long long)buffers);
  }
}

static void mosaic_make_capacity_count_window(count_t *count, const mp_mosaic_window_t *window) {
  const int64_t buffers = mosaic_make_capacity_buffers(count, window);
  if (window->is_whole || window->type->space != count->space) return;
  mosaic_make_capacity_add(count, window->is_result ? "result" : "operand", window->array,
                           mosaic_make_capacity_size(window->type), buffers);
  mosaic_make_capacity_name(count, window, buffers);
}

static void mosaic_make_capacity_count(count_t *count) {
  const mp_mosaic_kernel_t *kernel = count->maker->kernel;
  for (uint32_t w = 0; w < kernel->num_windows; ++w) {
    mosaic_make_capacity_count_window(count, &kernel->windows[w]);
  }
  for (uint32_t i = 0; i < kernel->num_locals; ++i) {
    const mp_mosaic_local_t *local = &kernel->locals[i];
    if (local->type->space != count->space) continue;
    const bool is_scratch = local->operand == MP_MOSAIC_NONE;
    mosaic_make_capacity_add(count, is_scratch ? "scratch argument" : "operand",
                             is_scratch ? local->arg : local->operand,
                             mosaic_make_capacity_size(local->type), 1);
  }
  mosaic_make_capacity_add(count, "scoped memory", MP_MOSAIC_NONE,
                           mosaic_make_capacity_block(count->maker->func->body, count->space), 1);
}

// Begins as libtpu's error does, which programs look for.
static mp_status_t mosaic_make_capacity_refuse(const count_t *count, int64_t limit) {
  const bool is_vmem = count->space == MP_MOSAIC_SPACE_VMEM;
  const bool asks = count->maker->vmem_limit != 0 || count->maker->target->scoped_vmem == 0;
  MP_RETURN_IF_ERROR(mp_strbuf_status(&count->text));
  MP_RETURN_IF_ERROR(mp_strbuf_status(&count->windows));
  return mp_status_make(MP_RESOURCE_EXHAUSTED,
                        "Ran out of memory in memory space %s while allocating on stack for Mosaic "
                        "function '%s', which needs %lld bytes of %s, of which it may have %lld%s: "
                        "%s%s%s",
                        is_vmem ? "vmem" : "smem", count->maker->kernel->name,
                        (long long)count->bytes, is_vmem ? "VMEM" : "SMEM", (long long)limit,
                        is_vmem && !asks ? " without vmem_limit_bytes" : "",
                        mp_strbuf_text(&count->text), count->num_named > MOST_NAMED ? ", ..." : "",
                        mp_strbuf_text(&count->windows));
}

static mp_status_t mosaic_make_capacity_check(const mp_mosaic_maker_t *maker,
                                              mp_mosaic_space_t space, int64_t limit) {
  count_t count = {.maker = maker, .space = space};
  mp_strbuf_init(&count.text);
  mp_strbuf_init(&count.windows);
  mosaic_make_capacity_count(&count);
  mp_status_t status = count.bytes > limit ? mosaic_make_capacity_refuse(&count, limit) : NULL;
  mp_strbuf_deinit(&count.windows);
  mp_strbuf_deinit(&count.text);
  return status;
}

mp_status_t mp_mosaic_make_capacity(const mp_mosaic_maker_t *maker) {
  const mp_mosaic_target_t *target = maker->target;
  const int64_t asked = maker->vmem_limit != 0 ? maker->vmem_limit : target->scoped_vmem;
  const int64_t vmem = target->vmem > 0 ? target->vmem : MOST_VMEM;
  const int64_t limit = asked > 0 && asked < vmem ? asked : vmem;
  MP_RETURN_IF_ERROR(mosaic_make_capacity_check(maker, MP_MOSAIC_SPACE_VMEM, limit));
  return mosaic_make_capacity_check(maker, MP_MOSAIC_SPACE_SMEM,
                                    target->smem > 0 ? target->smem : MOST_SMEM);
}
