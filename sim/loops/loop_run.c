// Runs loops: gives the steps their addresses, and then does one after the other.
#include <stdatomic.h>
#include <string.h>

#include "sim/base/assert.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/strided.h"
#include "sim/loops/loop_impl.h"
#include "sim/numeric/words.h"

// A step with its addresses.
typedef struct step_s step_t;
struct step_s {
  uint32_t what, size;
  const void *in[MP_EW_MAX_INPUTS + 1];
  void *out;
  int64_t count;  // of a back edge: number of times taken
  union {
    step_t *target;  // of a jump
    const uint32_t *targets;
    mp_ew_loop_t loop;
    const mp_view_t *view;
    const mp_loop_row_t *row;
    const struct call_s *call;
  } u;
};

typedef struct call_s {
  const mp_kernel_t *kernel;
  mp_kernel_call_t call;
} call_t;

void mp_loop_lay_out(mp_loop_t *loop, size_t own, size_t kernel) {
  loop->pointers_at = mp_round_up_64((loop->num_steps + loop->num_steps_before) * sizeof(step_t));
  loop->calls_at = loop->pointers_at + mp_round_up_64(loop->num_refs * sizeof(void *));
  loop->natives_at = loop->calls_at + mp_round_up_64(loop->num_calls * sizeof(call_t));
  const size_t num_natives = loop->native == NULL ? 0 : mp_loop_most_refs(loop);
  loop->own_at = loop->natives_at + mp_round_up_64(num_natives * sizeof(void *));
  loop->kernel_at = loop->own_at + mp_round_up_64(own);
  loop->scratch_bytes = loop->kernel_at + mp_round_up_64(kernel);
}

size_t mp_loop_scratch_bytes(const mp_loop_t *loop) {
  return loop->scratch_bytes;
}

uint32_t mp_loop_num_edges(const mp_loop_t *loop) {
  return loop->num_edges;
}

double mp_loop_seconds(const mp_loop_t *loop) {
  return loop->seconds;
}

uint32_t mp_loop_num_steps(const mp_loop_t *loop) {
  return loop->num_steps + loop->num_steps_before;
}

// ---- addresses ----

typedef struct {
  const mp_loop_t *loop;
  const mp_loop_run_t *run;
  char *own;
} prepare_t;

static inline void *loop_run_address(const prepare_t *p, mp_loop_ref_t ref) {
  const uint32_t num_slots = p->loop->num_slots;
  if (ref.base > num_slots) return (void *)ref.offset;
  if (ref.base == num_slots) return p->own + ref.offset;
  return (char *)p->run->slots[ref.base] + ref.offset;
}

static void loop_run_prepare_step(const prepare_t *p, const mp_loop_step_t *step, step_t *out) {
  char *scratch = p->run->scratch;
  out->what = step->what;
  out->size = step->size;
  out->count = mp_loop_is_back(step->what) ? 0 : step->count;
  for (uint32_t i = 0; i < step->num_refs; ++i) out->in[i] = loop_run_address(p, step->in[i]);
  out->out = loop_run_address(p, step->out);
  if (mp_loop_is_back_if(step->what)) {
    out->u.target = (step_t *)(void *)scratch + step->target;
    return;
  }
  switch (step->what) {
    case MP_DO_JUMP:
    case MP_DO_BACK:
    case MP_DO_UNLESS:
      out->u.target = (step_t *)(void *)scratch + step->target;
      break;
    case MP_DO_SWITCH:
      out->u.targets = p->loop->targets + step->target;
      break;
    case MP_DO_KERNEL:
      out->u.call = (const call_t *)(void *)(scratch + p->loop->calls_at) + step->u.call;
      break;
    case MP_DO_LOOP:
      out->u.loop = step->u.loop;
      break;
    case MP_DO_VIEW:
      out->u.view = step->u.view;
      break;
    default:
      out->u.row = step->u.row;
      break;
  }
}

static void loop_run_prepare_steps(const prepare_t *p, uint32_t first, uint32_t count) {
  step_t *steps = p->run->scratch;
  for (uint32_t i = first; i < first + count; ++i) {
    loop_run_prepare_step(p, &p->loop->steps[i], &steps[i]);
  }
}

static void loop_run_prepare_kernels(const prepare_t *p) {
  const mp_loop_t *loop = p->loop;
  char *scratch = p->run->scratch;
  void **pointers = (void **)(void *)(scratch + loop->pointers_at);
  call_t *calls = (call_t *)(void *)(scratch + loop->calls_at);
  for (uint32_t i = 0; i < loop->num_refs; ++i) pointers[i] = loop_run_address(p, loop->refs[i]);
  for (uint32_t i = 0; i < loop->num_calls; ++i) {
    const mp_loop_call_t *call = &loop->calls[i];
    void **of_call = pointers + call->first_ref;
    calls[i] = (call_t){call->kernel,
                        {.operands = (const void *const *)of_call,
                         .results = of_call + call->num_operands,
                         .scratch = scratch + loop->kernel_at}};
  }
}

// Machine code needs only those steps of the loop that it calls.
static void loop_run_prepare(const prepare_t *p, bool has_steps) {
  const mp_loop_t *loop = p->loop;
  const uint32_t numbers[] = {p->run->replica, p->run->partition};
  memcpy(p->own, numbers, sizeof(numbers));
  loop_run_prepare_steps(p, loop->num_steps, loop->num_steps_before);
  if (!has_steps) return;
  loop_run_prepare_steps(p, 0, loop->num_steps);
  loop_run_prepare_kernels(p);
}

// ---- steps ----

static mp_status_t loop_run_kernel(const call_t *call) {
  mp_kernel_call_t part = call->call;
  for (part.part = 0; part.part < call->kernel->num_parts; ++part.part) {
    MP_RETURN_IF_ERROR(call->kernel->run(call->kernel, &part));
  }
  return NULL;
}

// The place of a row that has one index of s32.
static inline int64_t loop_run_quick_row(const step_t *step) {
  int32_t index;
  memcpy(&index, step->in[1], sizeof(index));
  const mp_loop_row_t *row = step->u.row;
  return mp_clamp_i64(index, 0, row->indices[0].most) * row->indices[0].stride;
}

static inline int64_t loop_run_row(const step_t *step) {
  if (step->size == 1) return loop_run_quick_row(step);
  const mp_loop_row_t *row = step->u.row;
  int64_t place = 0;
  for (uint32_t i = 0; i < row->count; ++i) {
    int64_t index = 0;
    if (row->dtype == MP_DTYPE_S32) {
      int32_t value;
      memcpy(&value, step->in[1 + i], sizeof(value));
      index = value;
    } else {
      index = mp_load_index(row->dtype, step->in[1 + i]);
    }
    place += mp_clamp_i64(index, 0, row->indices[i].most) * row->indices[i].stride;
  }
  return place;
}

// Copies few bytes; the usual sizes without a call.
static inline void loop_run_copy(void *to, const void *from, int64_t bytes) {
  switch (bytes) {
    case 4:
      memcpy(to, from, 4);
      break;
    case 8:
      memcpy(to, from, 8);
      break;
    case 16:
      memcpy(to, from, 16);
      break;
    case 32:
      memcpy(to, from, 32);
      break;
    default:
      memmove(to, from, (size_t)bytes);
      break;
  }
}

static inline step_t *loop_run_switch(step_t *steps, const step_t *step) {
  int32_t index;
  memcpy(&index, step->in[0], sizeof(index));
  const uint32_t last = (uint32_t)step->count - 1;
  return steps + step->u.targets[index >= 0 && (uint32_t)index < last ? (uint32_t)index : last];
}

// x / y, where y is a constant of at least 2 and step->count is 2^64 / y, rounded up. The product's
// error is less than x / 2^64, and x / y is at least 1 / y away from the next whole number.
static inline int32_t loop_run_divide(const step_t *step, int32_t x) {
  const uint64_t size = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
  __extension__ const unsigned __int128 product = (unsigned __int128)size * (uint64_t)step->count;
  const int32_t quotient = (int32_t)(uint32_t)(product >> 64);
  return x < 0 ? -quotient : quotient;
}

// ---- machine code ----

// Records that the interpreter has passed back edges. True if machine code exists now.
static bool loop_run_warm(const mp_loop_t *loop, uint32_t edges) {
  const double nanoseconds = 1e9 * loop->seconds * (edges + 1);
  if (!mp_native_heat(&loop->native->heat, (uint64_t)nanoseconds, loop->num_steps)) return false;
  mp_loop_make_native(loop);
  return true;
}

// Whether the interpreter should stop here: because the loop has to, or because machine code can
// continue.
static bool loop_run_should_leave(const mp_loop_t *loop, const mp_loop_run_t *run, uint32_t edges) {
  return loop_run_warm(loop, edges) || run->must_stop(run->context);
}

// The context of a called step.
typedef struct {
  const mp_loop_run_t *run;
  const step_t *steps;
  mp_status_t status;
} calling_t;

static bool loop_run_must_stop(void *context) {
  const calling_t *calling = context;
  return calling->run->must_stop(calling->run->context);
}

// Does a step that machine code cannot express.
static bool loop_run_call(void *context, uint32_t number) {
  calling_t *calling = context;
  const step_t *step = &calling->steps[number];
  switch (step->what) {
    case MP_DO_FILL:
      mp_fill(step->out, step->in[0], step->size, step->count);
      return true;
    case MP_DO_VIEW:
      mp_view_load(step->u.view, step->size, step->in[0], 0, step->count, step->out);
      return true;
    case MP_DO_KERNEL:
      calling->status = loop_run_kernel(step->u.call);
      return calling->status == NULL;
    default:
      step->u.loop(step->count, step->in, step->out);
      return true;
  }
}

// Like loop_run_steps, from run->at.
static mp_status_t loop_run_native(const prepare_t *p, mp_native_loop_fn_t code,
                                   const step_t **out_step) {
  const mp_loop_t *loop = p->loop;
  const step_t *steps = p->run->scratch;
  calling_t calling = {.run = p->run, .steps = steps};
  void **refs = (void **)(void *)((char *)p->run->scratch + loop->natives_at);
  for (uint32_t i = 0; i < loop->native->num_refs; ++i) {
    refs[i] = loop_run_address(p, loop->native->refs[i]);
  }
  const mp_native_frame_t frame = {refs, loop_run_must_stop, loop_run_call, &calling,
                                   p->run->edges};
  const int64_t end = code(&frame, p->run->at);
  *out_step = end < 0 ? NULL : steps + end;
  return calling.status;
}

// ---- the interpreter ----

// Each step ends with a jump to the next one's code, so that the processor can predict the jump
// from the preceding steps. Clang takes minutes for so many indirect jumps: there all steps use the
// single jump at DISPATCH.
#define JUMP_TO_NEXT() __extension__({ goto *labels[(++step)->what]; })
#if defined(__clang__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NEXT() goto DISPATCH
#else
#define NEXT() JUMP_TO_NEXT()
#endif
#define GO_TO(target)  \
  do {                 \
    step = (target)-1; \
    NEXT();            \
  } while (0)
#define READ(dtype, name, i) \
  MP_T(dtype) name;          \
  memcpy(&name, step->in[i], sizeof(name))
#define WRITE(dtype, expr)                        \
  const MP_T(dtype) result = (MP_T(dtype))(expr); \
  memcpy(step->out, &result, sizeof(result))
#define DO_UNARY(kind, op, dtype)                      \
  op##_##dtype : {                                     \
    READ(dtype, x, 0);                                 \
    WRITE(dtype, MP_MEANING(dtype, MP_##kind##_##op)); \
    NEXT();                                            \
  }
#define DO_BINARY(kind, op, dtype)                     \
  op##_##dtype : {                                     \
    READ(dtype, x, 0);                                 \
    READ(dtype, y, 1);                                 \
    WRITE(dtype, MP_MEANING(dtype, MP_##kind##_##op)); \
    NEXT();                                            \
  }
#define DO_COMPARE(direction, operator, dtype) \
  direction##_##dtype : {                      \
    READ(dtype, x, 0);                         \
    READ(dtype, y, 1);                         \
    WRITE(BOOL, x operator y);                 \
    NEXT();                                    \
  }
// At a back edge at which must_stop is due.
#define LOOK(at)                                   \
  do {                                             \
    edges = loop->edges_per_look;                  \
    if (loop_run_should_leave(loop, run, edges)) { \
      *out_step = (at);                            \
      return NULL;                                 \
    }                                              \
  } while (0)
// A loop that stops here continues with the two steps before the target, the comparison and the
// branch that this step replaces.
#define DO_BACK_IF(direction, operator, dtype)  \
  BACK_IF_##direction##_##dtype : {             \
    READ(dtype, x, 0);                          \
    READ(dtype, y, 1);                          \
    WRITE(BOOL, x operator y);                  \
    ++step->count;                              \
    if (result == 0) GO_TO(steps + step->size); \
    if (--edges == 0) LOOK(step->u.target - 2); \
    GO_TO(step->u.target);                      \
  }
#define DO_CONVERT(from, to) \
  from##_TO_##to : {         \
    READ(from, x, 0);        \
    WRITE(to, x);            \
    NEXT();                  \
  }
#define DO_SELECT(bytes, dtype)       \
  SELECT_##bytes : {                  \
    READ(BOOL, which, 0);             \
    READ(dtype, x, 1);                \
    READ(dtype, y, 2);                \
    WRITE(dtype, which != 0 ? x : y); \
    NEXT();                           \
  }

// Does the steps from `step` on until the end (NULL) or a back edge at which the loop has to stop.
// The function is long because it has a few instructions for each kind of step.
static mp_status_t loop_run_steps(const mp_loop_t *loop, const mp_loop_run_t *run, step_t *step,
                                  const step_t **out_step) {
#define MP_STEP_X(name) __extension__ &&name,
  static const void *const labels[] = {MP_ALL_STEPS(MP_STEP_X)};
#undef MP_STEP_X
  step_t *steps = run->scratch;
  uint32_t edges = loop->edges_per_look;
  --step;
  goto DISPATCH;
DISPATCH:
  JUMP_TO_NEXT();
EXIT:
  if (loop->native != NULL) loop_run_warm(loop, loop->edges_per_look - edges);
  *out_step = NULL;
  return NULL;
BACK:
  ++step->count;
  if (--edges == 0) LOOK(step->u.target);
  GO_TO(step->u.target);
JUMP:
  GO_TO(step->u.target);
UNLESS:
  if (*(const uint8_t *)step->in[0] == 0) GO_TO(step->u.target);
  NEXT();
SWITCH:
  GO_TO(loop_run_switch(steps, step));
COPY_1:
  memcpy(step->out, step->in[0], 1);
  NEXT();
COPY_4:
  memcpy(step->out, step->in[0], 4);
  NEXT();
COPY_8:
  memcpy(step->out, step->in[0], 8);
  NEXT();
COPY:
  loop_run_copy(step->out, step->in[0], step->count);
  NEXT();
FILL:
  mp_fill(step->out, step->in[0], step->size, step->count);
  NEXT();
VIEW:
  mp_view_load(step->u.view, step->size, step->in[0], 0, step->count, step->out);
  NEXT();
LOOP:
  step->u.loop(step->count, step->in, step->out);
  NEXT();
KERNEL:
  MP_RETURN_IF_ERROR(loop_run_kernel(step->u.call));
  NEXT();
TAKE_ROW:
  loop_run_copy(step->out, (const char *)step->in[0] + loop_run_row(step), step->count);
  NEXT();
PLACE_ROW:
  loop_run_copy((char *)step->out + loop_run_row(step), step->in[0], step->count);
  NEXT();
TAKE_4:
  memcpy(step->out, (const char *)step->in[0] + loop_run_quick_row(step), 4);
  NEXT();
PLACE_4:
  memcpy((char *)step->out + loop_run_quick_row(step), step->in[0], 4);
  NEXT();
DIVIDE_BY_S32 : {
  READ(S32, x, 0);
  WRITE(S32, loop_run_divide(step, x));
  NEXT();
}
REMAINDER_BY_S32 : {
  READ(S32, x, 0);
  READ(S32, y, 1);
  WRITE(S32, x - loop_run_divide(step, x) * y);
  NEXT();
}
  MP_SCALAR_UNARY(DO_UNARY)
  MP_SCALAR_BINARY(DO_BINARY)
  MP_SCALAR_COMPARE(DO_COMPARE)
  MP_SCALAR_COMPARE(DO_BACK_IF)
  MP_SCALAR_CONVERT(DO_CONVERT)
  MP_SCALAR_SELECT(DO_SELECT)
}

void mp_loop_evaluate(const mp_loop_step_t *step, const void *const *in, void *out) {
  MP_ASSERT(mp_loop_is_scalar(step->what));
  step_t steps[2] = {{.what = step->what, .count = step->count, .out = out}, {.what = MP_DO_EXIT}};
  for (uint32_t i = 0; i < step->num_refs; ++i) steps[0].in[i] = in[i];
  const mp_loop_t loop = {.edges_per_look = 1};
  const mp_loop_run_t run = {0};
  const step_t *end = NULL;
  mp_status_ignore(loop_run_steps(&loop, &run, steps, &end));
}

// Adds what the interpreter has counted.
static void loop_run_add_edges(const mp_loop_t *loop, const step_t *steps, uint64_t *edges) {
  for (uint32_t i = 0; i < loop->num_steps; ++i) {
    if (mp_loop_is_back(steps[i].what)) *edges++ += (uint64_t)steps[i].count;
  }
}

static mp_native_loop_fn_t loop_run_code(const mp_loop_t *loop) {
  if (loop->native == NULL) return NULL;
  // Acquire, paired with the store in loop_native.c. NULL is valid at any time: the loop is
  // interpreted.
  return atomic_load_explicit(&loop->native->run, memory_order_acquire);
}

mp_status_t mp_loop_run(const mp_loop_t *loop, mp_loop_run_t *run, bool *out_is_over) {
  const prepare_t prepare = {loop, run, (char *)run->scratch + loop->own_at};
  step_t *steps = run->scratch;
  const step_t *stopped = NULL;
  MP_ASSERT(run->at < loop->num_steps && (uintptr_t)run->scratch % 64 == 0);
  mp_native_loop_fn_t code = loop_run_code(loop);
  const bool has_steps = code == NULL || loop->native->has_calls;
  loop_run_prepare(&prepare, has_steps);
  MP_RETURN_IF_ERROR(loop_run_steps(loop, run, steps + loop->num_steps, &stopped));
  if (code == NULL) code = loop_run_code(loop);
  if (code == NULL) {
    MP_RETURN_IF_ERROR(loop_run_steps(loop, run, steps + run->at, &stopped));
    code = stopped == NULL ? NULL : loop_run_code(loop);
    if (code != NULL) run->at = (uint32_t)(stopped - steps);
  }
  if (code != NULL) MP_RETURN_IF_ERROR(loop_run_native(&prepare, code, &stopped));
  if (run->edges != NULL && has_steps) loop_run_add_edges(loop, steps, run->edges);
  *out_is_over = stopped == NULL;
  run->at = stopped == NULL ? 0 : (uint32_t)(stopped - steps);
  return NULL;
}
