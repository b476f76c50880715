#include "sim/runtime/devices/worker.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>

#include "sim/base/alloc.h"
#include "sim/base/containers/list.h"
#include "sim/base/os/futex.h"
#include "sim/base/os/system.h"
#include "sim/runtime/devices/client_impl.h"

enum {
  MP_IDLE_YIELDS = 50,  // looks for work before going to sleep
  MP_WORKER_STACK = 8 << 20,
};

static _Thread_local mp_worker_t *t_worker;

mp_worker_t *mp_worker_current(void) {
  return t_worker;
}

void *mp_worker_scratch(mp_worker_t *self, size_t bytes) {
  MP_ASSERT(self == t_worker);  // it is the thread's own
  if (bytes > self->scratch_bytes || self->scratch == NULL) {
    size_t size = (bytes + 63) & ~(size_t)63;
    if (size < bytes) return NULL;
    if (size < 4096) size = 4096;
    void *scratch = mp_aligned_malloc(64, size);
    if (scratch == NULL) return NULL;
    mp_free(self->scratch);
    self->scratch = scratch;
    self->scratch_bytes = size;
  }
  return self->scratch;
}

// ---- Lists and queues ----

void mp_device_list_push(mp_device_list_t *list, mp_device_t *device) {
  MP_ASSERT((list->first == NULL) == (list->length == 0));
  // While the client stops, what is still in a queue is ended all the same.
  MP_ASSERT(device->next_runnable == NULL || mp_client_is_stopping(device->client));
  MP_ASSERT(list->last != device);
  MP_QUEUE_PUSH(list, device, next_runnable);
  list->length += 1;
}

mp_device_t *mp_device_list_pop(mp_device_list_t *list) {
  mp_device_t *device = list->first;
  MP_ASSERT((device == NULL) == (list->length == 0));
  if (device == NULL) return NULL;
  MP_QUEUE_POP(list, next_runnable);
  list->length -= 1;
  device->next_runnable = NULL;
  return device;
}

void mp_core_queue_wake(mp_core_queue_t *queue, uint32_t count) {
  // A worker that goes to sleep counts itself as a sleeper before its last look at the queue. So
  // either that look finds what was put there before this load, or this load finds the sleeper.
  uint32_t sleepers = atomic_load(&queue->sleepers);
  if (sleepers == 0 || count == 0) return;
  atomic_fetch_add(&queue->epoch, 1);
  mp_futex_wake(&queue->epoch, (int)(count < sleepers ? count : sleepers));
}

// Moves devices that all belong to `queue` to its end. `looks`: the caller is a worker of this
// queue and looks into it soon.
static void worker_enqueue(mp_core_queue_t *queue, mp_device_list_t *devices, bool looks) {
  uint32_t count = devices->length;
  MP_ASSERT(count != 0);
  mp_lock(&queue->lock);
#ifdef MINIPOD_ASSERTS
  for (mp_device_t *device = devices->first; device != NULL; device = device->next_runnable) {
    MP_ASSERT(device->queue == queue);
    mp_device_hand_over(device, MP_OWNER_LIST, MP_OWNER_QUEUE);
  }
#endif
  MP_QUEUE_APPEND(&queue->devices, devices, next_runnable);
  queue->devices.length += count;
  devices->length = 0;
  atomic_store(&queue->length, queue->devices.length);
  uint32_t waiting = queue->devices.length;
  mp_unlock(&queue->lock);
  // A caller that looks takes the first device, which need not be one of these.
  mp_core_queue_wake(queue, looks ? waiting - 1 : count);
  if (looks) t_worker->is_to_look = true;
}

static void worker_schedule(mp_device_list_t *devices, bool looks) {
  const mp_core_queue_t *own = t_worker == NULL || t_worker->is_inline ? NULL : t_worker->queue;
  // Devices of one core group tend to be neighbours in the list, so they are handed over together.
  mp_device_list_t batch = {0};
  mp_core_queue_t *queue = NULL;
  for (mp_device_t *device; (device = mp_device_list_pop(devices)) != NULL;) {
    if (mp_client_is_stopping(device->client)) continue;  // the client's end clears the streams
    if (t_worker != NULL && t_worker->is_inline &&
        device->client->runner->is_inline(device, t_worker)) {
      mp_device_list_push(&t_worker->own, device);
      continue;
    }
    if (device->queue != queue && batch.first != NULL) {
      worker_enqueue(queue, &batch, looks && queue == own);
    }
    queue = device->queue;
    mp_device_list_push(&batch, device);
  }
  if (batch.first != NULL) worker_enqueue(queue, &batch, looks && queue == own);
}

void mp_schedule(mp_device_list_t *devices) {
  worker_schedule(devices, false);
}

void mp_schedule_and_look(mp_device_list_t *devices) {
  worker_schedule(devices, true);
}

void mp_worker_looks_later(void) {
  if (t_worker == NULL || !t_worker->is_to_look) return;
  t_worker->is_to_look = false;
  mp_core_queue_wake(t_worker->queue, 1);
}

static mp_device_t *worker_dequeue(mp_core_queue_t *queue) {
  if (atomic_load(&queue->length) == 0) return NULL;
  mp_lock(&queue->lock);
  mp_device_t *device = mp_device_list_pop(&queue->devices);
  if (device != NULL) mp_device_hand_over(device, MP_OWNER_QUEUE, MP_OWNER_WORKER);
  atomic_store(&queue->length, queue->devices.length);
  mp_unlock(&queue->lock);
  return device;
}

bool mp_worker_is_wanted(const mp_worker_t *self) {
  if (self->is_inline) return self->own.first != NULL;
  return atomic_load_explicit(&self->queue->length, memory_order_relaxed) != 0;
}

// ---- The threads ----

static bool worker_has_work(const mp_worker_t *self) {
  return mp_client_is_stopping(self->client) || atomic_load(&self->queue->length) != 0 ||
         mp_job_is_waiting_for(self);
}

static void worker_idle(mp_worker_t *self) {
  mp_lock_assert_none_held();
  for (int i = 0; i < MP_IDLE_YIELDS; ++i) {
    if (worker_has_work(self)) return;
    sched_yield();
  }
  mp_core_queue_t *queue = self->queue;
  atomic_fetch_add(&self->client->num_idle, 1);
  self->client->runner->look_for_deadlock(self->client);
  atomic_fetch_add(&queue->sleepers, 1);
  unsigned epoch = atomic_load(&queue->epoch);
  if (!worker_has_work(self)) mp_futex_wait(&queue->epoch, epoch, NULL);
  atomic_fetch_sub(&queue->sleepers, 1);
  atomic_fetch_sub(&self->client->num_idle, 1);
}

// Binds the worker to its core where there is one worker per core, otherwise to all cpus of the
// group. Where binding is not allowed the worker runs anywhere.
static void worker_bind(const mp_worker_t *self) {
  const mp_pod_machine_t *machine = mp_pod_machine(self->client->pod);
  if (!machine->is_real) return;
  const mp_core_group_t *group = mp_pod_core_group(self->client->pod, (int32_t)self->queue->index);
  cpu_set_t set;
  CPU_ZERO(&set);
  if (self->cpu >= 0) {
    CPU_SET((size_t)self->cpu, &set);
  } else {
    for (int32_t i = 0; i < group->num_cpus; ++i) CPU_SET((size_t)group->cpus[i], &set);
  }
  (void)pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static void *worker_main(void *context) {
  mp_worker_t *self = context;
  mp_client_t *client = self->client;
  t_worker = self;
  char name[16];
  snprintf(name, sizeof(name), "mp-w%u", self->index % 100000u);
  (void)pthread_setname_np(pthread_self(), name);
  worker_bind(self);
  while (!mp_client_is_stopping(client)) {
    if (mp_job_help(self)) continue;
    self->is_to_look = false;
    mp_device_t *device = worker_dequeue(self->queue);
    if (device != NULL) {
      client->runner->run(self, device);
    } else {
      worker_idle(self);
    }
  }
  t_worker = NULL;
  mp_free(self->scratch);
  self->scratch = NULL;
  mp_client_unhold(client);
  return NULL;
}

mp_status_t mp_workers_start(mp_client_t *client) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return mp_status_out_of_memory();
  (void)pthread_attr_setstacksize(&attributes, MP_WORKER_STACK);
  // Signals are for the user's threads (Python handles them on its main thread only).
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  mp_status_t status = NULL;
  for (uint32_t i = 0; i < client->num_workers && status == NULL; ++i) {
    mp_worker_t *worker = &client->workers[i];
    mp_client_hold(client);
    int error = mp_thread_create(&worker->thread, &attributes, worker_main, worker);
    worker->is_started = error == 0;
    if (error != 0) {
      mp_client_unhold(client);
      status = mp_status_make(MP_RESOURCE_EXHAUSTED,
                              "worker thread %u of %u could not be started (error %d)", i,
                              client->num_workers, error);
    }
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  pthread_attr_destroy(&attributes);
  if (status != NULL) {
    atomic_store(&client->is_stopping, true);
    mp_workers_stop(client);
  }
  return status;
}

void mp_workers_stop(mp_client_t *client) {
  mp_lock_assert_none_held();
  for (uint32_t i = 0; i < client->num_queues; ++i) {
    mp_core_queue_t *queue = &client->queues[i];
    atomic_fetch_add(&queue->epoch, 1);
    mp_futex_wake_all(&queue->epoch);
  }
  for (uint32_t i = 0; i < client->num_workers; ++i) {
    mp_worker_t *worker = &client->workers[i];
    if (!worker->is_started) continue;
    worker->is_started = false;
    if (worker == t_worker) {
      pthread_detach(worker->thread);
    } else {
      pthread_join(worker->thread, NULL);
    }
  }
}

void mp_inline_run(mp_worker_t *inline_worker) {
  mp_worker_t *outer = t_worker;
  MP_ASSERT(inline_worker->is_inline && outer == NULL);
  t_worker = inline_worker;
  // A callback may let the client go, which ends all runs that are left.
  while (!mp_client_is_stopping(inline_worker->client)) {
    mp_device_t *device = mp_device_list_pop(&inline_worker->own);
    if (device == NULL) break;
    mp_device_hand_over(device, MP_OWNER_LIST, MP_OWNER_WORKER);
    inline_worker->client->runner->run(inline_worker, device);
  }
  inline_worker->own = (mp_device_list_t){0};
  t_worker = outer;
}

void mp_worker_free_inline(mp_worker_t *inline_worker) {
  if (inline_worker == NULL) return;
  mp_free(inline_worker->scratch);
  mp_free(inline_worker);
}
