#include "sim/runtime/workers/bind.h"

#include <pthread.h>
#include <sched.h>

#include "sim/runtime/devices/client_impl.h"
#include "sim/runtime/workers/workers.h"

static void bind_add_group(const mp_client_t *client, uint32_t index, cpu_set_t *set) {
  const mp_core_group_t *group = mp_pod_core_group(client->pod, (int32_t)index);
  for (int32_t i = 0; i < group->num_cpus; ++i) CPU_SET((size_t)group->cpus[i], set);
}

static void bind_to(const cpu_set_t *set) {
  (void)pthread_setaffinity_np(pthread_self(), sizeof(*set), set);
}

static void bind_to_group(const mp_worker_t *self) {
  cpu_set_t set;
  CPU_ZERO(&set);
  bind_add_group(self->client, self->queue->index, &set);
  bind_to(&set);
}

static bool bind_is_to_core(const mp_worker_t *self) {
  return self->cpu >= 0 && self->client->world == NULL;
}

void mp_bind_closely(mp_worker_t *self) {
  self->is_loose = false;
  if (!mp_pod_machine(self->client->pod)->is_real) return;
  if (!bind_is_to_core(self)) {
    bind_to_group(self);
    return;
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((size_t)self->cpu, &set);
  bind_to(&set);
}

void mp_bind_for_run(mp_worker_t *self, bool has_calls) {
  if (has_calls == self->is_loose || self->is_inline || !bind_is_to_core(self)) return;
  if (!has_calls) {
    mp_bind_closely(self);
    return;
  }
  self->is_loose = true;
  if (mp_pod_machine(self->client->pod)->is_real) bind_to_group(self);
}

void mp_bind_to_all(const mp_client_t *client) {
  if (!mp_pod_machine(client->pod)->is_real) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (uint32_t i = 0; i < client->workers->num_queues; ++i) bind_add_group(client, i, &set);
  bind_to(&set);
}
