#include "sim/runtime/workers/job.h"

#include <sched.h>

#include "sim/base/alloc.h"
#include "sim/base/containers/list.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/futex.h"
#include "sim/runtime/devices/client_impl.h"
#include "sim/runtime/workers/workers.h"

// A bit of job->references: the owner sleeps until the other references are gone.
#define MP_JOB_OWNER_SLEEPS 0x80000000u
enum { MP_JOB_SPIN_US = 20 };  // before the owner sleeps

// Puts the job into the list and wakes workers for it. Once the list's lock is free, a submitted
// job may be done and freed, so it is not touched any more.
static void job_link(mp_client_t *client, const mp_worker_t *self, mp_job_t *job) {
  mp_job_list_t *jobs = &client->workers->jobs;
  mp_core_queue_t *queue = job->queue;
  // The owner of an attended job does a part itself.
  uint32_t num_helpers = job->num_parts - (job->done == NULL);
  mp_lock(&jobs->lock);
  MP_ASSERT(!job->is_linked);
  job->is_linked = true;
  MP_LIST_APPEND(jobs, job, prev, next);
  // Must precede the load of the sleepers in worker_wake_marked, like the length of a queue
  // (worker.c).
  atomic_fetch_add(&jobs->count, 1);
  mp_unlock(&jobs->lock);
  if (queue != NULL) {
    mp_core_queue_wake_helpers(queue, num_helpers, self);
  } else {
    for (uint32_t i = 0; i < client->workers->num_queues; ++i) {
      mp_core_queue_wake_helpers(&client->workers->queues[i], num_helpers, self);
    }
  }
}

// Drops one reference. The last one calls job->done (submitted jobs), or wakes the owner that waits
// for the others (attended jobs).
static void job_drop(mp_job_t *job) {
  bool is_attended =
      job->done == NULL;  // read before: an attended job is gone after its last reference
  // Acquire and release: the thread that drops the last reference sees what all parts have written.
  // Afterwards only the address of an attended job is used, to wake its owner. The owner may have
  // returned by then: a wake-up at an address where no thread waits has no effect.
  unsigned left = atomic_fetch_sub(&job->references, 1) - 1;
  MP_ASSERT((left | MP_JOB_OWNER_SLEEPS) != UINT32_MAX);  // there was one to drop
  if (is_attended) {
    if (left == (MP_JOB_OWNER_SLEEPS | 1)) mp_futex_wake_all(&job->references);
  } else if (left == 0) {
    mp_status_t error = atomic_load(&job->error);
    job->done(job, error);
  }
}

// Removes the job from the list, if it is still there, and drops the list's reference. The caller
// has a reference of its own.
static void job_unlink(mp_client_t *client, mp_job_t *job) {
  mp_job_list_t *jobs = &client->workers->jobs;
  mp_lock(&jobs->lock);
  bool was_linked = job->is_linked;
  if (was_linked) {
    MP_ASSERT((job->prev != NULL ? job->prev->next : jobs->first) == job);
    MP_ASSERT((job->next != NULL ? job->next->prev : jobs->last) == job);
    MP_ASSERT(atomic_load(&jobs->count) != 0);
    MP_LIST_REMOVE(jobs, job, prev, next);
    job->is_linked = false;
    atomic_fetch_sub(&jobs->count, 1);
  }
  mp_unlock(&jobs->lock);
  if (was_linked) job_drop(job);
}

static void job_fail(mp_job_t *job, mp_status_t error) {
  mp_status_t expected = NULL;  // the first error stays
  if (!atomic_compare_exchange_strong(&job->error, &expected, error)) mp_status_release(error);
}

// A part that no thread has begun; num_parts: there is none. Every second worker starts from the
// last part, so that each worker finds the parts that it did in the kernel before in its core's
// caches.
static uint32_t job_take_part(const mp_worker_t *self, mp_job_t *job) {
  const bool is_from_last = self != NULL && self->index % 2 != 0;
  // Relaxed: only the number must be unique. The list's lock has published what the part reads, and
  // the reference that its thread drops publishes what it writes.
  const uint64_t begun = atomic_fetch_add(&job->begun, is_from_last ? (uint64_t)1 << 32 : 1);
  const uint32_t first = (uint32_t)begun, last = (uint32_t)(begun >> 32);
  if (first + last >= job->num_parts) return job->num_parts;
  return is_from_last ? job->num_parts - 1 - last : first;
}

static void job_do_parts(mp_worker_t *self, mp_job_t *job) {
  mp_lock_assert_none_held();
  void *scratch = mp_empty_array();
  if (job->scratch_bytes != 0) {
    scratch = self == NULL ? NULL : mp_worker_scratch(self, job->scratch_bytes);
    if (scratch == NULL) job_fail(job, mp_status_out_of_memory());
  }
  for (;;) {
    uint32_t part = job_take_part(self, job);
    if (part >= job->num_parts) break;
    // Relaxed: a part that begins in spite of a failure elsewhere does no harm.
    if (atomic_load_explicit(&job->error, memory_order_relaxed) != NULL) continue;
    mp_status_t status = job->run(job, part, scratch);
    if (status != NULL) job_fail(job, status);
  }
}

// Waits until only the owner has a reference.
static void job_await_helpers(mp_job_t *job) {
  // Spins first: a part is short, and going to sleep and being woken takes longer than most parts.
  unsigned references = atomic_load(&job->references);
  const double until = references == 1 ? 0 : mp_clock_seconds() + 1e-6 * MP_JOB_SPIN_US;
  while (references != 1 && mp_clock_seconds() < until) {
    sched_yield();
    references = atomic_load(&job->references);
  }
  if (references == 1) return;
  // The bit asks the helper that drops the last reference to wake this thread. It is in the same
  // word, so that it cannot be set between the drop and the helper's check.
  references = atomic_fetch_or(&job->references, MP_JOB_OWNER_SLEEPS) | MP_JOB_OWNER_SLEEPS;
  while ((references & ~MP_JOB_OWNER_SLEEPS) != 1) {
    mp_futex_wait(&job->references, references, NULL);
    references = atomic_load(&job->references);
  }
}

mp_status_t mp_job_attend(mp_client_t *client, mp_worker_t *self, mp_job_t *job) {
  MP_ASSERT(job->done == NULL && job->run != NULL);
  atomic_init(&job->begun, 0);
  atomic_init(&job->error, NULL);
  bool is_alone = job->num_parts <= 1 || (self != NULL && self->is_inline && !self->has_help) ||
                  (self != NULL && client->workers->num_workers <= 1) ||
                  mp_client_is_stopping(client);
  if (is_alone) {
    job_do_parts(self, job);
    return atomic_load(&job->error);
  }
  atomic_init(&job->references, 2);  // this thread's and the list's
  job_link(client, self, job);
  job_do_parts(self, job);
  job_unlink(client, job);
  // No new helper can come: the job is off the list. Active helpers drop their references last, so
  // when only this thread's reference is left, the job may leave the stack.
  job_await_helpers(job);
  return atomic_load(&job->error);
}

void mp_job_submit(mp_client_t *client, mp_job_t *job) {
  MP_ASSERT(job->done != NULL && job->scratch_bytes == 0);
  atomic_init(&job->begun, 0);
  atomic_init(&job->error, NULL);
  atomic_init(&job->references, 1);  // the list's
  mp_client_hold(client);            // the job's callback may release the last other hold
  job_link(client, NULL, job);
  // The workers may have exited before they could see the job. If they have not, they see it: they
  // look for jobs until they see is_stopping, and the client's end drains the list after them.
  // Sequentially consistent, like the count and the store at the client's end: otherwise the end
  // could miss the job while this thread misses the end.
  if (atomic_load(&client->is_stopping)) mp_job_drain(client);
  mp_client_unhold(client);
}

static bool job_may_help(const mp_worker_t *self, const mp_job_t *job) {
  return self == NULL || job->queue == NULL || job->queue == self->queue;
}

// The first job that `self` may help with (`self` NULL: any job), with a reference if `take`; NULL:
// there is none.
static mp_job_t *job_find(mp_client_t *client, const mp_worker_t *self, bool take) {
  mp_job_list_t *jobs = &client->workers->jobs;
  // Without the lock: workers check this before each device. A job that is linked right after this
  // check wakes them, or the check before they sleep finds it.
  if (atomic_load(&jobs->count) == 0) return NULL;
  mp_lock(&jobs->lock);
  mp_job_t *job = jobs->first;
  while (job != NULL && !job_may_help(self, job)) job = job->next;
  // Under the lock the list's own reference keeps the job; later it may be gone.
  if (job != NULL && take) atomic_fetch_add(&job->references, 1);
  mp_unlock(&jobs->lock);
  return job;
}

bool mp_job_is_waiting_for(const mp_worker_t *self) {
  return job_find(self->client, self, false) != NULL;
}

bool mp_job_help(mp_worker_t *self) {
  mp_job_t *job = job_find(self->client, self, true);
  if (job == NULL) return false;
  mp_worker_looks_later();
  job_do_parts(self, job);
  job_unlink(self->client, job);
  job_drop(job);
  return true;
}

void mp_job_drain(mp_client_t *client) {
  for (mp_job_t *job; (job = job_find(client, NULL, true)) != NULL;) {
    job_do_parts(NULL, job);
    job_unlink(client, job);
    job_drop(job);
  }
}
