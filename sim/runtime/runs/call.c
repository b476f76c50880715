// Calls of foreign functions: what a device does for the function that it runs.
#include <inttypes.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/containers/list.h"
#include "sim/runtime/buffers/absent.h"
#include "sim/runtime/buffers/buffer_impl.h"
#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/devices/launching.h"
#include "sim/runtime/order/launch_order.h"
#include "sim/runtime/order/side_stream.h"
#include "sim/runtime/runs/run.h"
#include "sim/runtime/runs/run_slots.h"
#include "sim/runtime/workers/workers.h"

// ---- Memory ----

// The header before each block that a function has allocated. It takes 64 bytes, so that the block
// is as aligned as the memory.
typedef struct {
  _Alignas(64) mp_span_t *block;
  mp_label_t label;
} head_t;

static mp_status_t call_allocate(void *data, size_t bytes, size_t alignment, void **out_memory) {
  mp_run_t *run = data;
  MP_ASSERT(alignment <= _Alignof(head_t));
  (void)alignment;
  if (bytes > SIZE_MAX - sizeof(head_t)) {
    return mp_status_make(MP_RESOURCE_EXHAUSTED, "%zu bytes of device memory", bytes);
  }
  mp_memory_t *memory = mp_device_memory(run->device, MP_MEMORY_DEVICE);
  mp_label_t label = {.origin = MP_ORIGIN_TEMPORARY, .name = run->executable->name};
  mp_span_t *block = NULL;
  MP_RETURN_IF_ERROR(mp_memory_alloc(memory, sizeof(head_t) + bytes,
                                     mp_device_completed(memory->device), &label, &block));
  // The block keeps the label, because a function may never free the block.
  head_t *head = (head_t *)block->data;
  *head = (head_t){block, label};
  head->label.name = mp_name_retain(label.name);
  mp_lock(&memory->lock);
  block->label = &head->label;
  mp_unlock(&memory->lock);
  *out_memory = head + 1;
  return NULL;
}

static void call_free(void *data, void *memory, size_t bytes) {
  mp_run_t *run = data;
  (void)bytes;
  head_t *head = (head_t *)memory - 1;
  mp_name_t *name = head->label.name;
  mp_memory_free(mp_device_memory(run->device, MP_MEMORY_DEVICE), head->block, 0);
  mp_name_release(name);
}

// ---- Tasks ----

typedef struct {
  mp_job_t job;  // first, because its callbacks get a pointer to it
  void (*task)(void *);
  void *argument;
} task_t;

static mp_status_t call_run_task(mp_job_t *job, uint32_t part, void *scratch) {
  (void)part, (void)scratch;
  const task_t *task = (const task_t *)job;
  task->task(task->argument);
  return NULL;
}

static void call_end_task(mp_job_t *job, mp_status_t status) {
  mp_status_ignore(status);
  mp_free(job);
}

// A function may wait for its tasks. If every worker were in such a function, no worker would be
// left to run the tasks. So the last free worker runs the tasks of its function itself; when that
// function returns, the worker is free for the tasks of the others.
static mp_status_t call_schedule(void *data, void (*task)(void *), void *argument) {
  mp_run_t *run = data;
  mp_client_t *client = run->device->client;
  task_t *t = NULL;
  // Each worker increments the counter before it reads it, and all threads see one order of the
  // increments. So if several workers get here at the same time, the last one sees them all.
  if (atomic_load(&client->workers->num_calling) < client->workers->num_workers &&
      !mp_client_is_stopping(client)) {
    t = mp_calloc(1, sizeof(*t));
  }
  if (t == NULL) {
    task(argument);
    return NULL;
  }
  *t = (task_t){{.run = call_run_task, .done = call_end_task, .num_parts = 1}, task, argument};
  mp_job_submit(client, &t->job);
  return NULL;
}

static int64_t call_num_threads(void *data) {
  const mp_run_t *run = data;
  return run->device->client->workers->num_workers;
}

static const mp_foreign_host_t k_host = {call_allocate, call_free, call_schedule, call_num_threads};

// ---- Calling ----

static void call_bring_back(mp_run_t *run, mp_status_t status);

static void call_done(void *context, mp_status_t status) {
  call_bring_back(context, status);
}

// Replaces operand i, which has no value, as the option `absent` says.
static mp_status_t call_stand_in(mp_run_t *run, const mp_cmd_t *cmd, uint32_t i) {
  const mp_op_t *op = cmd->call->op;
  const mp_type_t *type = op->operands[i]->type;
  int64_t bytes = 0;
  (void)mp_type_num_bytes(type, &bytes);
  mp_strbuf_t what;
  mp_strbuf_init(&what);
  mp_type_print(type, &what);
  mp_strbuf_printf(&what, ", operand %" PRIu32 " of a function that %s calls (", i,
                   run->executable->name->text);
  mp_loc_describe(op->loc, &what);
  mp_strbuf_puts(&what, ")");
  mp_status_t status = mp_absent_read_as(run->device->client, mp_strbuf_text(&what), type->dtype,
                                         (uint64_t)bytes, &run->call.stand_ins[i]);
  mp_strbuf_deinit(&what);
  if (status == NULL) run->inputs[i] = run->call.stand_ins[i];
  return status;
}

static mp_status_t call_stand_in_for_all(mp_run_t *run, const mp_cmd_t *cmd) {
  for (uint32_t i = 0; i < cmd->num_operands; ++i) {
    if (mp_shape_run_has_operand(run->shape_run, cmd, i)) continue;
    if (run->call.stand_ins == NULL) {
      run->call.stand_ins = mp_calloc(cmd->num_operands, sizeof(*run->call.stand_ins));
      MP_RETURN_IF_NULL(run->call.stand_ins);
    }
    MP_RETURN_IF_ERROR(call_stand_in(run, cmd, i));
  }
  return NULL;
}

// Fills run->call for a command: what the function receives.
static void call_prepare(mp_run_t *run, const mp_cmd_t *cmd) {
  mp_run_resolve(run, cmd);
  run->call.cmd = cmd;
  run->call.invocation = (mp_foreign_invocation_t){
      .inputs = run->inputs,
      .outputs = run->outputs,
      .device_ordinal = (int32_t)(run->device->id - run->device->client->first_local),
      .run_id = (int64_t)run->launch,
      .host = &k_host,
      .host_data = run,
      .user_data = mp_foreign_context_data(run->context),
      .options = mp_foreign_context_options(run->context),
      .states = run->states == NULL ? NULL : &run->states[cmd->call->index],
      .done = call_done,
      .context = run,
  };
}

// ---- Runs that are out ----

// Ends the call of a run that is out, or whose function has given a future: the run goes on, or
// ends if it was abandoned. Consumes `status`, and a reference to the run. Called without locks.
static void call_bring_back(mp_run_t *run, mp_status_t status) {
  mp_lock_assert_none_held();
  mp_device_t *device = run->device;
  mp_device_list_t runnable = {0};
  mp_lock(&device->lock);
  // The lock is the one under which the run goes out and is abandoned, so each of these sees
  // whether the other has happened, and exactly one thread continues with the run. This lock, and
  // then the queue's, publishes what the function has written.
  const mp_call_state_t was = run->call.state;
  MP_ASSERT(was != MP_CALL_NONE && was != MP_CALL_OVER);
  if (was != MP_CALL_ABANDONED) {
    run->call.state = MP_CALL_OVER;
    run->call.status = status;
  }
  if (was == MP_CALL_OUT) mp_device_hand_over(device, MP_OWNER_CALL, MP_OWNER_LIST);
  mp_unlock(&device->lock);
  if (was == MP_CALL_OUT) {
    mp_device_list_push(&runnable, device);
    mp_schedule(&runnable);
  } else if (was == MP_CALL_ABANDONED) {
    mp_status_release(status);
    mp_run_end_abandoned(run);
  }
  mp_run_release(run);
}

bool mp_run_is_out(const mp_run_t *run) {
  // Used in messages only, so without the lock: the call may be over when the message is read.
  return atomic_load(&run->call.state) == MP_CALL_OUT;
}

bool mp_run_abandon_call(mp_run_t *run) {
  mp_device_t *device = run->device;
  mp_lock_assert_held(&device->lock);
  MP_ASSERT(mp_client_is_stopping(device->client) && device->first == run);
  if (run->call.state != MP_CALL_OUT) return false;
  run->call.state = MP_CALL_ABANDONED;
  MP_QUEUE_POP(device, next);
  return true;
}

static void call_set(mp_run_t *run, mp_call_state_t state, mp_run_owner_t from, mp_run_owner_t to) {
  mp_lock(&run->device->lock);
  run->call.state = state;
  mp_device_hand_over(run->device, from, to);
  mp_unlock(&run->device->lock);
}

static void call_run(mp_blocking_t *blocking, bool is_dropped) {
  mp_run_t *run = (mp_run_t *)((char *)blocking - offsetof(mp_run_t, call.blocking));
  if (is_dropped) {
    call_bring_back(run, mp_status_make(MP_CANCELLED, "the client was closed"));
    return;
  }
  mp_run_retain(run);  // a function with a future may be over, and the run too, before it returns
  bool is_pending = false;
  mp_status_t status =
      mp_foreign_call_start(run->call.cmd->call, &run->call.invocation, &is_pending);
  if (!is_pending) call_bring_back(run, status);
  mp_run_release(run);
}

// Makes a caller thread call the function. The caller thread gets a reference to the run.
static mp_status_t call_hand_over(mp_run_t *run, bool *out_is_out) {
  run->call.blocking.run = call_run;
  // The run is out before it is submitted, because the call may be over, and the run freed, before
  // mp_callers_submit returns.
  mp_run_retain(run);
  call_set(run, MP_CALL_OUT, MP_OWNER_WORKER, MP_OWNER_CALL);
  mp_status_t status = mp_callers_submit(run->device->client, &run->call.blocking);
  if (status == NULL) {
    *out_is_out = true;
    return NULL;
  }
  // The run is still in its stream: runs are abandoned only when no worker and no launch is active.
  call_set(run, MP_CALL_NONE, MP_OWNER_CALL, MP_OWNER_WORKER);
  mp_run_release(run);
  return mp_op_error_at(run->call.cmd->call->op, status);
}

// ---- On the run's own thread ----

// The result of a call that is over.
static mp_status_t call_result(mp_run_t *run) {
  mp_status_t status = run->call.status;
  run->call.status = NULL;
  run->call.state = MP_CALL_NONE;
  mp_run_free_stand_ins(run);
  return status;
}

static mp_status_t call_start(mp_worker_t *self, mp_run_t *run, bool *out_is_out) {
  mp_client_t *client = run->device->client;
  bool is_pending = false;
  // Without the lock: no other thread changes the state before the function has begun.
  run->call.state = MP_CALL_STARTING;
  mp_run_retain(run);  // for the thread that ends the call, if it is pending
  if (!self->is_inline) {
    mp_worker_looks_later();
    atomic_fetch_add(&client->workers->num_calling, 1);
  }
  mp_status_t status =
      mp_foreign_call_start(run->call.cmd->call, &run->call.invocation, &is_pending);
  if (!self->is_inline) atomic_fetch_sub(&client->workers->num_calling, 1);
  if (!is_pending) {
    run->call.state = MP_CALL_NONE;
    mp_run_free_stand_ins(run);
    mp_run_release(run);
    return status;
  }
  mp_lock(&run->device->lock);
  // The future may already be set. If it is, this thread continues; if not, the thread that sets it
  // finds the run out and brings it back. Once the lock is free, another thread may own the run.
  const bool is_out = run->call.state == MP_CALL_STARTING;
  if (is_out) {
    mp_device_hand_over(run->device, MP_OWNER_WORKER, MP_OWNER_CALL);
    run->call.state = MP_CALL_OUT;
  }
  mp_unlock(&run->device->lock);
  if (!is_out) return call_result(run);
  *out_is_out = true;
  return NULL;
}

mp_status_t mp_run_call(mp_worker_t *self, mp_run_t *run, const mp_cmd_t *cmd, bool *out_is_out) {
  // This thread took the device from its queue, which happened after the run was brought back: so
  // it sees the status.
  if (run->call.state == MP_CALL_OVER) return call_result(run);
  call_prepare(run, cmd);
  if (run->shape_run != NULL) MP_RETURN_IF_ERROR(call_stand_in_for_all(run, cmd));
  return cmd->call->may_block ? call_hand_over(run, out_is_out) : call_start(self, run, out_is_out);
}

// ---- Stages ----

static mp_status_t call_run_stages(mp_run_t *run,
                                   mp_status_t (*stage)(const mp_foreign_call_t *,
                                                        const mp_foreign_invocation_t *)) {
  const mp_program_t *program = run->executable->program;
  for (uint32_t i = 0; i < program->num_commands; ++i) {
    const mp_cmd_t *cmd = &program->commands[i];
    if (cmd->kind != MP_CMD_CALL || !cmd->call->has_stages) continue;
    call_prepare(run, cmd);
    MP_RETURN_IF_ERROR(stage(cmd->call, &run->call.invocation));
  }
  return NULL;
}

mp_status_t mp_run_begin_calls(mp_run_t *run) {
  run->states = mp_calloc(run->executable->program->num_calls, sizeof(*run->states));
  MP_RETURN_IF_NULL(run->states);
  MP_RETURN_IF_ERROR(call_run_stages(run, mp_foreign_call_prepare));
  return call_run_stages(run, mp_foreign_call_initialize);
}

// ---- The order of launches ----

// True when a run of one of these devices may be in a call, now or later.
static bool call_may_be_out(const mp_executable_t *executable, uint32_t num_devices,
                            const uint32_t *logical) {
  for (uint32_t i = 0; i < num_devices; ++i) {
    const mp_device_t *device = mp_executable_device(executable, logical[i]);
    // Only launches increase the counter, and callers that need more than a guess hold the launch
    // lock. If a run ends meanwhile, the order chosen is still correct, though perhaps not the
    // best.
    if (atomic_load(&device->num_behind_call) != 0) return true;
  }
  return false;
}

// True when an input is computed after a run that may be in a call.
static bool call_has_late_input(const mp_executable_t *executable, uint32_t num_devices,
                                mp_buffer_t *const *const *arguments) {
  for (uint32_t i = 0; i < num_devices; ++i) {
    for (uint32_t p = 0; p < executable->program->num_params; ++p) {
      const mp_buffer_t *buffer = arguments[i][p];
      if (buffer->is_behind_call && !mp_event_is_ready(buffer->definition)) return true;
    }
  }
  return false;
}

static mp_order_t call_order(const mp_executable_t *executable, uint32_t num_devices,
                             const uint32_t *logical, mp_buffer_t *const *const *arguments) {
  mp_order_t order = {
      .is_behind_call =
          executable->may_block || call_has_late_input(executable, num_devices, arguments),
      .is_beside = mp_caller_current() == executable->client,
  };
  if (!order.is_behind_call && !order.is_beside) {
    order.is_beside = call_may_be_out(executable, num_devices, logical);
  }
  return order;
}

// True when another thread has launched a run of the device's stream that may be in a call.
static bool call_is_of_other_thread(const mp_device_t *device) {
  return atomic_load(&device->num_behind_call) != 0 &&
         atomic_load(&device->behind_call_of) != mp_launching_thread();
}

mp_order_t mp_call_choose_order(const mp_executable_t *executable, uint32_t num_devices,
                                const uint32_t *logical, mp_buffer_t *const *const *arguments) {
  mp_client_t *client = executable->client;
  mp_lock_assert_held(&client->launches->lock);
  if (executable->may_block) client->launches->has_blocked = true;
  // Without any call so far nothing is late or out, and no caller thread launches.
  if (!client->launches->has_blocked) return (mp_order_t){0};
  return call_order(executable, num_devices, logical, arguments);
}

bool mp_call_goes_beside(const mp_device_t *device, mp_order_t order) {
  mp_lock_assert_held(&device->client->launches->lock);
  if (order.is_beside || !order.is_behind_call) return order.is_beside;
  return call_is_of_other_thread(device) || mp_side_stream_is_calling(device);
}

bool mp_call_would_go_beside(const mp_executable_t *executable, uint32_t num_devices,
                             const uint32_t *logical, mp_buffer_t *const *const *arguments,
                             const mp_device_t *device) {
  const mp_order_t order = call_order(executable, num_devices, logical, arguments);
  return order.is_beside || (order.is_behind_call && call_is_of_other_thread(device));
}
