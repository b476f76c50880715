// Jobs: work divided into parts that any free worker may take: a large kernel, a collective, a
// copy.
//
// Parts are leaves: they take no locks of the scheduler and wait for nothing, so a thread that
// waits for a job waits only for running code. The owner of an *attended* job (mp_job_attend) works
// on it itself, others help, and the owner returns when all parts are done. Only workers do a
// *submitted* job (mp_job_submit), and it ends in a callback.
#ifndef MINIPOD_SIM_RUNTIME_WORKERS_JOB_H_
#define MINIPOD_SIM_RUNTIME_WORKERS_JOB_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/base/os/lock.h"

typedef struct mp_client_s mp_client_t;
typedef struct mp_core_queue_s mp_core_queue_t;
typedef struct mp_worker_s mp_worker_t;
typedef struct mp_job_s mp_job_t;

// Does one part. `scratch` is job->scratch_bytes of memory that only this thread uses, 64-byte
// aligned. Parts of one job run at the same time, on any threads and in any order.
typedef mp_status_t (*mp_job_run_t)(mp_job_t *job, uint32_t part, void *scratch);

// Users embed it as their first member, so that callbacks find their own data, and fill in the
// upper half of the fields (and zero the rest).
struct mp_job_s {
  mp_job_run_t run;
  // Of submitted jobs: called when all parts are done; consumes `status`. NULL: an attended job.
  void (*done)(mp_job_t *job, mp_status_t status);
  mp_core_queue_t *queue;  // only its workers may help; NULL: all
  uint32_t num_parts;
  size_t scratch_bytes;  // per part; 0 in submitted jobs

  mp_job_t *prev, *next;  // in the client's list; under the list's lock, as is_linked
  bool is_linked;
  // The number of parts begun from the front, and in the upper half from the back. The sum may
  // exceed num_parts when all were begun.
  _Atomic uint64_t begun;
  atomic_uint references;      // threads that work on it, and the list; the owner's futex word
  _Atomic(mp_status_t) error;  // of the first part that failed
};

// A client's jobs with parts that no thread has begun, oldest first.
typedef struct {
  mp_lock_t lock;          // of the links
  mp_job_t *first, *last;  // MP_LIST
  atomic_uint count;       // changed under the lock, read without
} mp_job_list_t;

// Does all parts, with the help of idle workers, and returns when they are done; `self` may be NULL
// when scratch_bytes is 0. If a part fails, parts that have not begun are skipped, and the first
// error is returned. The caller holds no lock.
MP_NODISCARD mp_status_t mp_job_attend(mp_client_t *client, mp_worker_t *self, mp_job_t *job);
// Returns at once; calls job->done when all parts are done, on the worker that did the last one (or
// on the caller's thread when the workers have exited). From then on the callback owns the job.
void mp_job_submit(mp_client_t *client, mp_job_t *job);
// Does parts of the first job that this worker may help with, until none are left to begin; false:
// there is no such job.
bool mp_job_help(mp_worker_t *self);
// True when there is a job that this worker may help with.
bool mp_job_is_waiting_for(const mp_worker_t *self);
// Does submitted parts that have not begun, on the caller's thread; the workers must have exited.
void mp_job_drain(mp_client_t *client);

#endif  // MINIPOD_SIM_RUNTIME_WORKERS_JOB_H_
