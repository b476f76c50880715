// Results of kernels that are computed where they are stored.
//
// Between the kernel and the store there must be nothing that could see, or change, the memory
// before the store: no jump, no load, no DMA. Stores to other arguments are allowed, since these
// have other memory. Loaded vectors that are memory themselves are compared when the program runs.
#include "sim/mosaic/compile/mosaic_compiler.h"

typedef struct {
  mp_mosaic_compiler_t *c;
  uint32_t *makers;     // by vector: the kernel that makes it; NONE: none, or more than one
  uint32_t *registers;  // by register: the last instruction that writes it
  uint32_t *views;      // by view: the same
  bool *is_target;      // by instruction: a jump goes to it
  uint32_t *ends;       // by instruction: the last end of vectors that are memory, loaded up to it
} finder_t;

// ---- what is written where ----

static void mosaic_direct_note_maker(finder_t *f, uint32_t vector, uint32_t instruction) {
  f->makers[vector] = f->makers[vector] == 0 ? instruction + 1 : MP_MOSAIC_NONE;
}

static void mosaic_direct_note(finder_t *f, uint32_t i) {
  const mp_mosaic_instruction_t *in = &f->c->code.items[i];
  switch (in->kind) {
    case MP_MOSAIC_DO_JUMP:
    case MP_MOSAIC_DO_UNLESS:
      f->is_target[in->target] = true;
      break;
    case MP_MOSAIC_DO_SWITCH:
      for (uint32_t k = 0; k <= in->u.cases->count; ++k) {
        f->is_target[in->u.cases->targets[k]] = true;
      }
      break;
    case MP_MOSAIC_DO_KERNEL:
      for (uint32_t k = 0; k < in->u.call->num_results; ++k) {
        mosaic_direct_note_maker(f, in->u.call->results[k], i);
      }
      break;
    case MP_MOSAIC_DO_COPY:
    case MP_MOSAIC_DO_TO_VECTOR:
    case MP_MOSAIC_DO_RANDOM:
    case MP_MOSAIC_DO_LOAD:
      f->makers[in->out] = MP_MOSAIC_NONE;
      break;
    case MP_MOSAIC_DO_MOVE:
    case MP_MOSAIC_DO_INTEGER:
    case MP_MOSAIC_DO_COMPARE:
    case MP_MOSAIC_DO_SELECT:
    case MP_MOSAIC_DO_EXTEND:
    case MP_MOSAIC_DO_FROM_VECTOR:
    case MP_MOSAIC_DO_LOAD_SCALAR:
    case MP_MOSAIC_DO_SIZE:
    case MP_MOSAIC_DO_BOUND:
    case MP_MOSAIC_DO_SEM_READ:
    case MP_MOSAIC_DO_DEVICE:
      f->registers[in->out] = i;
      break;
    case MP_MOSAIC_DO_MOVE_VIEW:
    case MP_MOSAIC_DO_SLICE:
    case MP_MOSAIC_DO_SQUEEZE:
    case MP_MOSAIC_DO_RESHAPE:
    case MP_MOSAIC_DO_BITCAST:
    case MP_MOSAIC_DO_ALLOCATE:
    case MP_MOSAIC_DO_BARRIER:
      f->views[in->out] = i;
      break;
    default:
      break;
  }
}

// ---- whether nothing is in between ----

static bool mosaic_direct_may_pass(const mp_mosaic_instruction_t *in, uint32_t root) {
  switch (in->kind) {
    case MP_MOSAIC_DO_KERNEL:
    case MP_MOSAIC_DO_MOVE:
    case MP_MOSAIC_DO_INTEGER:
    case MP_MOSAIC_DO_COMPARE:
    case MP_MOSAIC_DO_SELECT:
    case MP_MOSAIC_DO_EXTEND:
    case MP_MOSAIC_DO_TO_VECTOR:
    case MP_MOSAIC_DO_FROM_VECTOR:
      return true;
    case MP_MOSAIC_DO_STORE:
      return in->target != root && in->target != MP_MOSAIC_NONE;
    default:
      return false;
  }
}

static bool mosaic_direct_is_clear(const finder_t *f, uint32_t kernel, uint32_t store) {
  const mp_mosaic_instruction_t *in = &f->c->code.items[store];
  if (f->is_target[store] || f->views[in->a] > kernel) return false;
  for (uint32_t i = kernel + 1; i < store; ++i) {
    if (f->is_target[i] || !mosaic_direct_may_pass(&f->c->code.items[i], in->target)) return false;
  }
  for (uint32_t d = 0; d < in->u.part->num_indices; ++d) {
    if (f->registers[in->u.part->indices[d]] > kernel) return false;
  }
  return true;
}

// ---- ----

// So many instructions before a store are searched for such vectors.
enum { MOSAIC_DIRECT_WINDOW = 4096 };

// Whether none is loaded before these.
static bool mosaic_direct_is_near(const finder_t *f, uint32_t kernel, uint32_t store) {
  return store <= MOSAIC_DIRECT_WINDOW || f->ends[store - MOSAIC_DIRECT_WINDOW - 1] <= kernel;
}

// Loaded vectors that may be the store's memory and are read after the kernel.
static mp_status_t mosaic_direct_find_others(const finder_t *f, uint32_t kernel, uint32_t store,
                                             mp_mosaic_direct_t *out) {
  const mp_mosaic_compiler_t *c = f->c;
  const uint32_t root = c->code.items[store].target;
  MP_ARRAY(uint32_t) others = {0};
  const uint32_t first = store > MOSAIC_DIRECT_WINDOW ? store - MOSAIC_DIRECT_WINDOW : 0;
  for (uint32_t i = first; i < store; ++i) {
    const mp_mosaic_instruction_t *in = &c->code.items[i];
    if (in->kind != MP_MOSAIC_DO_LOAD || !in->flag) continue;
    if (in->target != root && in->target != MP_MOSAIC_NONE) continue;
    if (c->vectors.items[in->out].end <= kernel) continue;
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(c->arena, &others, in->out));
  }
  out->others = others.items;
  out->num_others = others.count;
  return NULL;
}

static mp_status_t mosaic_direct_add(const finder_t *f, uint32_t kernel, uint32_t store) {
  enum { MOST = 64 };
  mp_mosaic_compiler_t *c = f->c;
  mp_mosaic_kernel_call_t *call = MP_ARENA_NEW(c->arena, mp_mosaic_kernel_call_t);
  mp_mosaic_direct_t *directs = NULL, direct = {.store = store};
  MP_RETURN_IF_NULL(call);
  *call = *c->code.items[kernel].u.call;
  while (call->results[direct.result] != c->code.items[store].b) ++direct.result;
  if (call->num_directs >= MOST) return NULL;
  MP_RETURN_IF_ERROR(mosaic_direct_find_others(f, kernel, store, &direct));
  direct.operands = mp_kernel_in_place(call->kernel, direct.result);
  // Other results would be computed before such an operand is read by all of them.
  if (call->num_results != 1) direct.operands = 0;
  directs = MP_ARENA_ARRAY(c->arena, mp_mosaic_direct_t, call->num_directs + 1);
  MP_RETURN_IF_NULL(directs);
  for (uint32_t i = 0; i < call->num_directs; ++i) directs[i] = call->directs[i];
  directs[call->num_directs++] = direct;
  call->directs = directs;
  c->code.items[kernel].u.call = call;
  return NULL;
}

static void mosaic_direct_find_ends(finder_t *f) {
  uint32_t last = 0;
  for (uint32_t i = 0; i < f->c->code.count; ++i) {
    const mp_mosaic_instruction_t *in = &f->c->code.items[i];
    const bool is_memory = in->kind == MP_MOSAIC_DO_LOAD && in->flag;
    if (is_memory && f->c->vectors.items[in->out].end > last) {
      last = f->c->vectors.items[in->out].end;
    }
    f->ends[i] = last;
  }
}

static bool mosaic_direct_new_finder(mp_mosaic_compiler_t *c, finder_t *f) {
  *f = (finder_t){.c = c,
                  .makers = MP_ARENA_ARRAY(c->scratch, uint32_t, c->vectors.count),
                  .registers = MP_ARENA_ARRAY(c->scratch, uint32_t, c->registers.count),
                  .views = MP_ARENA_ARRAY(c->scratch, uint32_t, c->num_views),
                  .is_target = MP_ARENA_ARRAY(c->scratch, bool, c->code.count),
                  .ends = MP_ARENA_ARRAY(c->scratch, uint32_t, c->code.count)};
  return f->makers != NULL && f->registers != NULL && f->views != NULL && f->is_target != NULL &&
         f->ends != NULL;
}

mp_status_t mp_mosaic_find_directs(mp_mosaic_compiler_t *c) {
  enum { FARTHEST = 64 };  // instructions between the kernel and the store
  finder_t f;
  if (!mosaic_direct_new_finder(c, &f)) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < c->code.count; ++i) mosaic_direct_note(&f, i);
  mosaic_direct_find_ends(&f);
  for (uint32_t i = 0; i < c->code.count; ++i) {
    const mp_mosaic_instruction_t *in = &c->code.items[i];
    if (in->kind != MP_MOSAIC_DO_STORE || in->c != MP_MOSAIC_NONE || in->u.part->steps != NULL ||
        in->target == MP_MOSAIC_NONE || c->vectors.items[in->b].end != i) {
      continue;
    }
    const uint32_t maker = f.makers[in->b];
    if (maker == 0 || maker == MP_MOSAIC_NONE || maker > i || i - maker > FARTHEST) continue;
    if (!mosaic_direct_is_clear(&f, maker - 1, i)) continue;
    if (!mosaic_direct_is_near(&f, maker - 1, i)) continue;
    MP_RETURN_IF_ERROR(mosaic_direct_add(&f, maker - 1, i));
  }
  return NULL;
}
