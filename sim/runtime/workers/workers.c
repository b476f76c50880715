#include "sim/runtime/workers/workers.h"

#include <sched.h>
#include <stdio.h>

#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/futex.h"
#include "sim/base/os/system.h"
#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/devices/launching.h"
#include "sim/runtime/workers/bind.h"

enum {
  MP_IDLE_YIELDS = 50,  // checks for work before going to sleep,
  MP_IDLE_US = 20,      // for at most this time
  MP_WORKER_STACK = 8 << 20,
};

// ---- Making ----

static mp_status_t workers_make_queues(mp_client_t *client, const mp_pod_machine_t *machine) {
  mp_workers_t *all = client->workers;
  uint32_t num_queues = machine->num_core_groups > 0 ? (uint32_t)machine->num_core_groups : 1;
  all->queues = mp_calloc(num_queues, sizeof(*all->queues));
  MP_RETURN_IF_NULL(all->queues);
  all->num_queues = num_queues;
  for (uint32_t i = 0; i < num_queues; ++i) {
    mp_core_queue_t *queue = &all->queues[i];
    queue->client = client;
    queue->index = i;
    mp_lock_init(&queue->lock, MP_LOCK_QUEUE);
    queue->num_workers = 1;
    if (machine->num_core_groups > 0) {
      queue->num_workers = (uint32_t)mp_pod_core_group(client->pod, (int32_t)i)->num_workers;
    }
    all->num_workers += queue->num_workers;
  }
  return NULL;
}

static mp_status_t workers_make_threads(mp_client_t *client, const mp_pod_machine_t *machine) {
  mp_workers_t *all = client->workers;
  all->workers = mp_calloc(all->num_workers, sizeof(*all->workers));
  MP_RETURN_IF_NULL(all->workers);
  uint32_t index = 0;
  for (uint32_t q = 0; q < all->num_queues; ++q) {
    mp_core_queue_t *queue = &all->queues[q];
    for (uint32_t i = 0; i < queue->num_workers; ++i, ++index) {
      mp_worker_t *worker = &all->workers[index];
      *worker = (mp_worker_t){.client = client, .queue = queue, .index = index, .cpu = -1};
      if (machine->num_core_groups > 0 && machine->worker_per_core) {
        worker->cpu = mp_pod_core_group(client->pod, (int32_t)q)->core_cpus[i];
      }
    }
  }
  return NULL;
}

mp_status_t mp_workers_create(mp_client_t *client) {
  mp_workers_t *all = client->workers = mp_calloc(1, sizeof(*all));
  MP_RETURN_IF_NULL(all);
  mp_lock_init(&all->jobs.lock, MP_LOCK_JOBS);
  mp_callers_init(&all->callers);
  const mp_pod_machine_t *machine = mp_pod_machine(client->pod);
  MP_RETURN_IF_ERROR(workers_make_queues(client, machine));
  return workers_make_threads(client, machine);
}

void mp_workers_destroy(mp_workers_t *all) {
  if (all == NULL) return;
  MP_ASSERT(atomic_load(&all->jobs.count) == 0);
  for (uint32_t i = 0; i < all->num_queues; ++i) mp_lock_deinit(&all->queues[i].lock);
  mp_worker_free_inline(atomic_load(&all->spare_inline_worker));
  mp_callers_deinit(&all->callers);
  mp_lock_deinit(&all->jobs.lock);
  mp_free(all->workers);
  mp_free(all->queues);
  mp_free(all);
}

// ---- The threads ----

static bool workers_have_work_for(const mp_worker_t *self) {
  return mp_client_is_stopping(self->client) || atomic_load(&self->queue->length) != 0 ||
         mp_job_is_waiting_for(self);
}

static void workers_idle(mp_worker_t *self) {
  mp_lock_assert_none_held();
  // Bounded by the clock, too: if other threads compete for the core, each yield takes long, and a
  // worker that keeps yielding takes time from the threads that it waits for.
  const double until = mp_clock_seconds() + 1e-6 * MP_IDLE_US;
  for (int i = 0; i < MP_IDLE_YIELDS; ++i) {
    if (workers_have_work_for(self)) return;
    sched_yield();
    if (mp_clock_seconds() > until) break;
  }
  mp_core_queue_t *queue = self->queue;
  // All threads see the changes of the count in one order, so the last worker that becomes idle
  // sees that all others are idle, and at least that one looks for deadlocks.
  atomic_fetch_add(&self->client->workers->num_idle, 1);
  self->client->runner->look_for_deadlock(self->client);
  // The worker is first counted as a sleeper, then reads the epoch, then checks for work once more:
  // a thread that queues work after that check finds the sleeper, and changes the epoch on which it
  // sleeps.
  atomic_fetch_add(&queue->sleepers, 1);
  unsigned epoch = atomic_load(&queue->epoch);
  if (!workers_have_work_for(self)) {
    mp_futex_wait_marked(&queue->epoch, epoch, mp_worker_mark(self));
  }
  atomic_fetch_sub(&queue->sleepers, 1);
  // Before it takes a device: so if a thread finds all workers idle and no device queued, no device
  // is between a queue and a worker.
  atomic_fetch_sub(&self->client->workers->num_idle, 1);
}

static void *workers_main(void *context) {
  mp_worker_t *self = context;
  mp_client_t *client = self->client;
  mp_worker_become(self);
  mp_launching_exempt();  // the client waits for this thread, so it never waits for a place
  char name[16];
  snprintf(name, sizeof(name), "mp-w%u", self->index % 100000u);
  (void)pthread_setname_np(pthread_self(), name);
  mp_bind_closely(self);
  while (!mp_client_is_stopping(client)) {
    if (mp_job_help(self)) continue;
    self->is_to_look = false;
    mp_device_t *device = mp_core_queue_take(self->queue);
    if (device != NULL) {
      client->runner->run(self, device);
    } else {
      workers_idle(self);
    }
  }
  mp_worker_become(NULL);
  mp_free(self->scratch);
  self->scratch = NULL;
  mp_client_unhold(client);
  return NULL;
}

mp_status_t mp_workers_start(mp_client_t *client) {
  mp_workers_t *all = client->workers;
  mp_status_t status = NULL;
  for (uint32_t i = 0; i < all->num_workers && status == NULL; ++i) {
    mp_worker_t *worker = &all->workers[i];
    mp_client_hold(client);
    int error = mp_thread_create(&worker->thread, MP_WORKER_STACK, workers_main, worker);
    worker->is_started = error == 0;
    if (error != 0) {
      mp_client_unhold(client);
      status = mp_status_make(MP_RESOURCE_EXHAUSTED,
                              "worker thread %u of %u could not be started (error %d)", i,
                              all->num_workers, error);
    }
  }
  if (status != NULL) {
    atomic_store(&client->is_stopping,
                 true);  // without the launch lock: no user has the client yet
    mp_workers_stop(client);
  }
  return status;
}

void mp_workers_stop(mp_client_t *client) {
  mp_workers_t *all = client->workers;
  mp_lock_assert_none_held();
  for (uint32_t i = 0; i < all->num_queues; ++i) {
    mp_core_queue_t *queue = &all->queues[i];
    // A worker looks at is_stopping after it has read the epoch, so none sleeps past this.
    atomic_fetch_add(&queue->epoch, 1);
    mp_futex_wake_all(&queue->epoch);
  }
  for (uint32_t i = 0; i < all->num_workers; ++i) {
    mp_worker_t *worker = &all->workers[i];
    if (!worker->is_started) continue;
    worker->is_started = false;
    if (worker == mp_worker_current()) {
      pthread_detach(worker->thread);
    } else {
      pthread_join(worker->thread, NULL);
    }
  }
}

void mp_inline_run(mp_worker_t *inline_worker) {
  MP_ASSERT(inline_worker->is_inline && mp_worker_current() == NULL);
  mp_worker_become(inline_worker);
  // A callback may release the client, which ends all remaining runs.
  while (!mp_client_is_stopping(inline_worker->client)) {
    mp_device_t *device = mp_device_list_pop(&inline_worker->own);
    if (device == NULL) break;
    mp_device_hand_over(device, MP_OWNER_LIST, MP_OWNER_WORKER);
    inline_worker->client->runner->run(inline_worker, device);
  }
  inline_worker->own = (mp_device_list_t){0};
  mp_worker_become(NULL);
}

void mp_worker_free_inline(mp_worker_t *inline_worker) {
  if (inline_worker == NULL) return;
  mp_free(inline_worker->scratch);
  mp_free(inline_worker);
}
