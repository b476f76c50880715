// Calls of foreign functions: what a device does for the function that it runs.
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/os/futex.h"
#include "sim/runtime/launch/run.h"

// ---- Memory ----

// What lies before a block that a function has asked for. A block of memory is aligned to 64 bytes,
// and so is what follows this.
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
                                     mp_device_completed(run->device), &label, &block));
  // The label moves into the block, which a function may forget to give back.
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

// A function may wait for its tasks. When every worker is in such a function nobody would be left
// for them, so the last one does its tasks itself; it comes back, and is then free for the others'.
static mp_status_t call_schedule(void *data, void (*task)(void *), void *argument) {
  mp_run_t *run = data;
  mp_client_t *client = run->device->client;
  task_t *t = NULL;
  if (atomic_load(&client->num_calling) < client->num_workers && !mp_client_is_stopping(client)) {
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
  return run->device->client->num_workers;
}

static const mp_foreign_host_t k_host = {call_allocate, call_free, call_schedule, call_num_threads};

// ---- Calling ----

static void call_done(void *context, mp_status_t status) {
  mp_run_call_t *call = context;
  call->status = status;
  atomic_store(&call->is_over, 1);
  mp_futex_wake(&call->is_over, 1);
}

static const mp_foreign_invocation_t *call_invocation(mp_run_t *run, const mp_cmd_t *cmd) {
  mp_run_resolve(run, cmd);
  run->call.invocation = (mp_foreign_invocation_t){
      .inputs = run->inputs,
      .outputs = run->outputs,
      .device_ordinal = (int32_t)(run->device->id - run->device->client->first_local),
      .run_id = (int64_t)run->launch,
      .host = &k_host,
      .host_data = run,
      .user_data = mp_foreign_context_data(run->context),
      .states = run->states == NULL ? NULL : &run->states[cmd->call->index],
      .done = call_done,
      .context = &run->call,
  };
  return &run->call.invocation;
}

// Waits for a function that goes on after it has returned. It may need a worker for its tasks.
static mp_status_t call_await(mp_worker_t *self, mp_run_call_t *call) {
  const struct timespec soon = {.tv_nsec = 5000000};
  while (atomic_load(&call->is_over) == 0) {
    if (!self->is_inline && mp_job_help(self)) continue;
    mp_futex_wait(&call->is_over, 0, &soon);
  }
  return call->status;
}

mp_status_t mp_run_call(mp_worker_t *self, mp_run_t *run, const mp_cmd_t *cmd) {
  const mp_foreign_invocation_t *invocation = call_invocation(run, cmd);
  mp_client_t *client = run->device->client;
  bool is_pending = false;
  atomic_store(&run->call.is_over, 0);
  if (!self->is_inline) {
    mp_worker_looks_later();
    atomic_fetch_add(&client->num_calling, 1);
  }
  mp_status_t status = mp_foreign_call_start(cmd->call, invocation, &is_pending);
  if (status == NULL && is_pending) status = call_await(self, &run->call);
  if (!self->is_inline) atomic_fetch_sub(&client->num_calling, 1);
  return status;
}

// ---- Stages ----

static mp_status_t call_run_stages(mp_run_t *run,
                                   mp_status_t (*stage)(const mp_foreign_call_t *,
                                                        const mp_foreign_invocation_t *)) {
  const mp_program_t *program = run->executable->program;
  for (uint32_t i = 0; i < program->num_commands; ++i) {
    const mp_cmd_t *cmd = &program->commands[i];
    if (cmd->kind != MP_CMD_CALL || !cmd->call->has_stages) continue;
    MP_RETURN_IF_ERROR(stage(cmd->call, call_invocation(run, cmd)));
  }
  return NULL;
}

mp_status_t mp_run_begin_calls(mp_run_t *run) {
  run->states = mp_calloc(run->executable->program->num_calls, sizeof(*run->states));
  MP_RETURN_IF_NULL(run->states);
  MP_RETURN_IF_ERROR(call_run_stages(run, mp_foreign_call_prepare));
  return call_run_stages(run, mp_foreign_call_initialize);
}

void mp_run_end_calls(mp_run_t *run) {
  for (uint32_t i = 0; i < run->executable->program->num_calls; ++i) {
    mp_foreign_states_clear(&run->states[i]);
  }
  mp_free(run->states);
  run->states = NULL;
}
