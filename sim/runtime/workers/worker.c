#include "sim/runtime/workers/worker.h"

#include "sim/base/alloc.h"
#include "sim/base/containers/list.h"
#include "sim/base/os/futex.h"
#include "sim/runtime/devices/device_impl.h"

// The worker that this thread is or acts as. Functions below without a worker argument may run on
// any thread; if the thread runs its own launch, they must put devices on its own list.
static _Thread_local mp_worker_t *t_worker;

mp_worker_t *mp_worker_current(void) {
  return t_worker;
}

void mp_worker_become(mp_worker_t *worker) {
  t_worker = worker;
}

void *mp_worker_scratch(mp_worker_t *self, size_t bytes) {
  MP_ASSERT(self == t_worker);  // the calling thread's own
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
  // While the client stops, devices that are still in a queue are ended all the same.
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

unsigned mp_worker_mark(const mp_worker_t *worker) {
  return 1U << worker->index % 32;
}

// Wakes sleepers whose marks have a bit of `marks`.
static void worker_wake_marked(mp_core_queue_t *queue, uint32_t count, unsigned marks) {
  // A worker that goes to sleep counts itself as a sleeper before it checks the queue a last time.
  // So either that check finds what was queued before this load, or this load finds the sleeper.
  uint32_t sleepers = atomic_load(&queue->sleepers);
  if (sleepers == 0 || count == 0) return;
  // The epoch changes before the wake-up: a worker that has counted itself but does not sleep yet
  // has read the old one, and the kernel refuses to let it sleep on that.
  atomic_fetch_add(&queue->epoch, 1);
  mp_futex_wake_marked(&queue->epoch, (int)(count < sleepers ? count : sleepers), marks);
}

// Wakes up to `count` sleeping workers of the queue.
static void worker_wake(mp_core_queue_t *queue, uint32_t count) {
  worker_wake_marked(queue, count, UINT32_MAX);
}

void mp_core_queue_wake_helpers(mp_core_queue_t *queue, uint32_t count, const mp_worker_t *self) {
  // A worker that runs this is awake. A thread that acts as a worker bound to a core runs on that
  // core, so that worker is left out.
  const bool is_beside = self != NULL && self->is_inline && self->cpu >= 0;
  worker_wake_marked(queue, count, is_beside ? ~mp_worker_mark(self) : UINT32_MAX);
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
  // Sequentially consistent: it must come before the load of the sleepers in worker_wake.
  atomic_store(&queue->length, queue->devices.length);
  uint32_t waiting = queue->devices.length;
  mp_unlock(&queue->lock);
  // A caller that looks takes the first device, which need not be one of these.
  worker_wake(queue, looks ? waiting - 1 : count);
  if (looks) t_worker->is_to_look = true;
}

static void worker_schedule(mp_device_list_t *devices, bool looks) {
  const mp_core_queue_t *own = t_worker == NULL || t_worker->is_inline ? NULL : t_worker->queue;
  // Devices of one core group are often neighbours in the list, so they are queued together.
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
  // Wakes the worker that was not woken because this one was about to look. That is late, but the
  // device was in the queue all the time, where any other worker could have taken it.
  worker_wake(t_worker->queue, 1);
}

mp_device_t *mp_core_queue_take(mp_core_queue_t *queue) {
  // Without the lock, so that idle workers do not disturb threads that queue devices. A device that
  // is queued right after this check is found by the next check, at the latest before the worker
  // sleeps.
  if (atomic_load(&queue->length) == 0) return NULL;
  mp_lock(&queue->lock);
  mp_device_t *device = mp_device_list_pop(&queue->devices);
  if (device != NULL) mp_device_hand_over(device, MP_OWNER_QUEUE, MP_OWNER_WORKER);
  // The lock has published what the thread that queued the device had prepared.
  atomic_store(&queue->length, queue->devices.length);
  mp_unlock(&queue->lock);
  return device;
}

bool mp_worker_is_wanted(const mp_worker_t *self) {
  if (self->is_inline) return self->own.first != NULL;
  // Relaxed: a hint for a loop, which checks again at a later back edge.
  return atomic_load_explicit(&self->queue->length, memory_order_relaxed) != 0;
}
