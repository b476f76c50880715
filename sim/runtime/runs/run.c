#include "sim/runtime/runs/run.h"

#include "sim/base/alloc.h"
#include "sim/base/containers/list.h"
#include "sim/base/os/futex.h"
#include "sim/runtime/devices/ahead.h"
#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/devices/launching.h"
#include "sim/runtime/devices/unread.h"
#include "sim/runtime/order/launch_order.h"
#include "sim/runtime/workers/workers.h"

// Of all clients. Python polls it at exit until it is 0. It orders nothing.
static atomic_uint g_num_blocking;

uint32_t mp_executable_num_blocking_runs(void) {
  return atomic_load(&g_num_blocking);
}

static size_t run_pad(size_t bytes) {
  return (bytes + 15) & ~(size_t)15;
}

mp_status_t mp_run_create(mp_executable_t *executable, uint32_t logical, mp_run_t **out_run) {
  const mp_program_t *program = executable->program;
  size_t sizes[] = {
      run_pad(program->num_params * sizeof(void *)),
      run_pad(program->num_results * sizeof(void *)),
      run_pad(executable->num_donatable * sizeof(mp_prologue_copy_t)),
      run_pad(executable->max_operands * sizeof(void *)),
      run_pad(executable->max_results * sizeof(void *)),
      run_pad(executable->max_edges * sizeof(uint64_t)),
  };
  size_t total = run_pad(sizeof(mp_run_t));
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) total += sizes[i];
  mp_run_t *run = mp_malloc(total);
  MP_RETURN_IF_NULL(run);
  memset(run, 0, sizeof(*run));
  char *cursor = (char *)run + run_pad(sizeof(mp_run_t));
  void **arrays[] = {(void **)&run->params, (void **)&run->results, (void **)&run->copies,
                     (void **)&run->inputs, (void **)&run->outputs, (void **)&run->edges};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
    *arrays[i] = cursor;
    cursor += sizes[i];
  }
  memset(run->edges, 0, executable->max_edges * sizeof(*run->edges));
  mp_status_t status = mp_event_create(&run->event);
  if (status != NULL) {
    mp_free(run);
    return status;
  }
  atomic_init(&run->references, 1);
  atomic_init(&run->blockers, 1);  // the launch itself
  run->executable = mp_executable_retain(executable);
  run->device = mp_executable_device(executable, logical);
  run->logical = logical;
  *out_run = run;
  return NULL;
}

mp_run_t *mp_run_retain(mp_run_t *run) {
  // Relaxed: the caller has a reference, or the device's lock, under which the stream has one.
  const int before = atomic_fetch_add_explicit(&run->references, 1, memory_order_relaxed);
  MP_ASSERT(before > 0);
  return run;
}

void mp_run_free_stand_ins(mp_run_t *run) {
  void **stand_ins = run->call.stand_ins;
  for (uint32_t i = 0; stand_ins != NULL && i < run->call.cmd->num_operands; ++i) {
    mp_free(stand_ins[i]);
  }
  mp_free(stand_ins);
  run->call.stand_ins = NULL;
}

void mp_run_release(mp_run_t *run) {
  if (run == NULL) return;
  // An input's callback may release the last reference, on a thread that never executed the run: it
  // has to see what the worker wrote there.
  const int before = atomic_fetch_sub_explicit(&run->references, 1, memory_order_acq_rel);
  MP_ASSERT(before > 0);
  if (before != 1) return;
  for (uint32_t i = 0; i < run->num_holds; ++i) mp_storage_release(run->holds[i]);
  mp_status_release(atomic_load(&run->error));
  mp_run_free_stand_ins(run);
  mp_status_release(
      run->call.status);  // the call has ended, but the run was ended before it continued
  mp_message_release(run->receiver.message);  // received, but the run was ended before it was read
  mp_event_release(run->event);
  mp_session_release(run->session);
  mp_foreign_context_release(run->context);
  mp_shape_run_release(run->shape_run);
  mp_free(run->flips);
  mp_free(run->holds);
  mp_executable_t *executable = run->executable;
  mp_free(run);
  mp_executable_release(executable);
}

bool mp_run_is_inline(const mp_device_t *device, const mp_worker_t *inline_worker) {
  return device->first->inline_worker == inline_worker;
}

// ---- The stream ----

// Counts a run that enters (`runs` is 1) or leaves (-1, and `bytes` negated) the stream.
static void run_count_ahead(mp_device_t *device, int32_t runs, uint64_t bytes) {
  mp_lock_assert_held(&device->lock);
  // Only holders of the lock write, so relaxed loads and stores suffice.
  const uint32_t num = atomic_load_explicit(&device->num_ahead, memory_order_relaxed);
  const uint64_t sum = atomic_load_explicit(&device->bytes_ahead, memory_order_relaxed);
  atomic_store_explicit(&device->num_ahead, num + (uint32_t)runs, memory_order_relaxed);
  atomic_store_explicit(&device->bytes_ahead, sum + bytes, memory_order_relaxed);
}

void mp_run_enqueue(mp_run_t *run) {
  mp_lock_assert_held(&run->device->client->launches->lock);
  mp_device_t *device = run->device;
  mp_lock(&device->lock);
  MP_ASSERT(run->next == NULL && run->number == device->enqueued);
  MP_ASSERT(atomic_load(&run->blockers) == 1);  // the launch itself
  if (device->first != NULL) {
    // One blocker for all runs before it. Added under the lock, under which the run before it ends,
    // too: that run removes this blocker only if it finds this run after it.
    atomic_fetch_add(&run->blockers, 1);
    if (run->session != NULL) mp_workers_need_look(device->client->workers);
  }
  MP_QUEUE_PUSH(device, run, next);
  if (run->is_behind_call) {
    // The thread before the number: a thread that reads a number without the lock then also sees
    // which thread launched these runs.
    atomic_store(&device->behind_call_of, mp_launching_thread());
    atomic_fetch_add(&device->num_behind_call, 1);
  }
  if (run->executable->may_block) atomic_fetch_add(&g_num_blocking, 1);
  run_count_ahead(device, 1, run->bytes);
  mp_unlock(&device->lock);
}

void mp_run_unblock(mp_run_t *run, mp_device_list_t *runnable) {
  // Acquire and release: the thread that decrements it to 0 sees what the launch prepared and what
  // every input has written, and publishes both by the queue's lock.
  const int before = atomic_fetch_sub(&run->blockers, 1);
  MP_ASSERT(before > 0);
  if (before != 1) return;
  mp_device_hand_over(run->device, MP_OWNER_BLOCKERS, MP_OWNER_LIST);
  mp_device_list_push(runnable, run->device);
}

// An input failed with `error` (consumed), and so does the run. The first error counts.
static void run_fail_input(mp_run_t *run, mp_status_t error) {
  if (run->session != NULL) {
    mp_session_poison(run->session, error);
    return;
  }
  // Inputs may fail on several threads at once. The blocker that each removes afterwards publishes
  // the error to the thread that runs the run.
  mp_status_t expected = NULL;
  if (!atomic_compare_exchange_strong(&run->error, &expected, error)) mp_status_release(error);
}

static void run_on_input(mp_status_t status, void *context) {
  mp_run_t *run = context;
  mp_device_list_t runnable = {0};
  if (status != NULL) run_fail_input(run, mp_status_retain(status));
  mp_run_unblock(run, &runnable);
  mp_schedule(&runnable);
  mp_run_release(run);
}

void mp_run_wait_for(mp_run_t *run, mp_event_t *event) {
  // Added before the event gets the run: the event may be set at once, and then removes this
  // blocker.
  atomic_fetch_add(&run->blockers, 1);
  mp_run_retain(run);
  mp_status_t status = mp_event_on_ready(event, run_on_input, run);
  if (status != NULL) {  // there will be no callback
    run_on_input(status, run);
    mp_status_release(status);
  }
}

// Frees the states that stages of foreign functions have created.
static void run_end_calls(mp_run_t *run) {
  for (uint32_t i = 0; i < run->executable->program->num_calls; ++i) {
    mp_foreign_states_clear(&run->states[i]);
  }
  mp_free(run->states);
  run->states = NULL;
}

static void run_give_back(mp_run_t *run) {
  mp_region_give(&run->device->client->regions, run->region);
  run->region = NULL;
  if (run->share != NULL) mp_model_share_end(run->share);
  run->share = NULL;
  run->path = NULL;
  for (uint32_t i = 0; i < run->num_holds; ++i) mp_storage_release(run->holds[i]);
  run->num_holds = 0;
  if (run->own_arena != NULL) {
    mp_memory_free(mp_device_memory(run->device, MP_MEMORY_DEVICE), run->own_arena, 0);
    run->own_arena = NULL;
  }
}

void mp_run_end(mp_run_t *run, mp_status_t status) {
  mp_lock_assert_none_held();
  mp_device_t *device = run->device;
  mp_device_list_t runnable = {0};
  if (run->states != NULL) run_end_calls(run);
  if (run->talk != NULL) mp_session_leave_talk(run->session, run->talk, run->logical);
  run->talk = NULL;
  if (run->session != NULL) mp_session_leave(run->session, run->logical);
  run_give_back(run);
  // Once a run counts as over, another launch may get its side stream.
  mp_device_t *own = mp_executable_device(run->executable, run->logical);
  if (own != device) atomic_fetch_sub(&own->num_beside, 1);
  mp_lock(&device->lock);
  MP_ASSERT(device->first == run);
  mp_device_hand_over(device, MP_OWNER_WORKER, MP_OWNER_BLOCKERS);
  MP_QUEUE_POP(device, next);
  mp_run_t *next = device->first;
  if (run->is_behind_call) atomic_fetch_sub(&device->num_behind_call, 1);
  if (run->executable->may_block) atomic_fetch_sub(&g_num_blocking, 1);
  // While the client ends, an earlier run may still be in a call (call.h) and use its memory.
  const bool is_next = run->number == mp_device_completed(device) + 1;
  MP_ASSERT(is_next || mp_client_is_stopping(device->client));
  // Release: other runs may get the memory of runs up to this number (memory.c), and must not write
  // it before this run has read it for the last time.
  if (is_next) atomic_store_explicit(&device->completed, run->number, memory_order_release);
  run_count_ahead(device, -1, -run->bytes);
  const bool is_awaited = mp_ahead_is_awaited(device);
  // Incremented under the lock, under which waiters read it (ahead.c). The system call comes after
  // the lock is free.
  if (is_awaited) atomic_fetch_add(&device->num_moves, 1);
  mp_unlock(&device->lock);
  if (is_awaited) mp_futex_wake_all(&device->num_moves);
  // Without the lock: `next` was found after this run under the lock, so it counts this blocker,
  // and no other thread can end it before the blocker is removed.
  if (next != NULL) mp_run_unblock(next, &runnable);
  // This worker looks into its queue once the event's callbacks have run.
  mp_schedule_and_look(&runnable);
  MP_ASSERT(!mp_event_is_ready(run->event));  // it is set here and nowhere else
  mp_unread_add(status);
  mp_event_set(run->event, status);
  mp_run_release(run);
}

void mp_run_end_abandoned(mp_run_t *run) {
  mp_lock_assert_none_held();
  if (run->states != NULL) run_end_calls(run);
  run_give_back(run);
  // The stream and its numbers stay: the client's end removed the run from it when no launch could
  // come any more.
  if (run->executable->may_block) atomic_fetch_sub(&g_num_blocking, 1);
  mp_event_set(run->event, mp_status_make(MP_CANCELLED, "the client was closed while %s ran",
                                          run->executable->name->text));
  mp_run_release(run);
}
