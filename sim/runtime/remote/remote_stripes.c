// The work of a remote collective's holder on its stripes: it packs, sends, and finishes them.
//
// Each stripe has its own current phase. A few are in flight at a time, so that there is always
// something to send while the payloads of others are being transferred; the next one begins when
// one is over.
#include "sim/base/alloc.h"
#include "sim/runtime/remote/peers.h"
#include "sim/runtime/workers/job.h"

enum { MP_PART_BYTES = 128 << 10 };  // mp_collective_schedule_num_parts

typedef struct {
  mp_job_t job;  // first, because its callback gets a pointer to it
  mp_collective_schedule_t *schedule;
  uint32_t phase;
} remote_stripes_job_t;

static mp_status_t remote_stripes_pack_part(mp_job_t *job, uint32_t part, void *scratch) {
  const remote_stripes_job_t *work = (remote_stripes_job_t *)job;
  return mp_collective_schedule_pack(work->schedule, work->phase, part, scratch);
}

static mp_status_t remote_stripes_finish_part(mp_job_t *job, uint32_t part, void *scratch) {
  return mp_collective_schedule_finish(((remote_stripes_job_t *)job)->schedule, part, scratch);
}

// Does the parts one after the other on this thread, which is no worker.
static mp_status_t remote_stripes_do_alone(mp_job_t *job) {
  void *scratch = mp_empty_array();
  if (job->scratch_bytes != 0) {
    scratch = mp_aligned_malloc(64, job->scratch_bytes);
    MP_RETURN_IF_NULL(scratch);
  }
  mp_status_t status = NULL;
  for (uint32_t part = 0; part < job->num_parts && status == NULL; ++part) {
    status = job->run(job, part, scratch);
  }
  if (job->scratch_bytes != 0) mp_free(scratch);
  return status;
}

static mp_status_t remote_stripes_attend(mp_collective_schedule_t *schedule, mp_worker_t *self,
                                         uint32_t phase, mp_job_run_t run) {
  remote_stripes_job_t job = {
      .job = {.run = run,
              .num_parts = mp_collective_schedule_num_parts(schedule, phase),
              .scratch_bytes = mp_collective_schedule_scratch_bytes(schedule)},
      .schedule = schedule,
      .phase = phase};
  if (self == NULL) return remote_stripes_do_alone(&job.job);
  return mp_job_attend(self->client, self, &job.job);
}

// ---- Sending ----

static mp_status_t remote_stripes_make_payloads(mp_world_t *world,
                                                const mp_collective_schedule_t *schedule,
                                                uint32_t phase, bool is_shared,
                                                mp_payload_t **payloads, bool *out_has_any) {
  const mp_group_layout_t *layout = schedule->layout;
  const mp_payload_t *shared = NULL;
  *out_has_any = false;
  for (uint32_t p = 0; p < layout->num_processes; ++p) {
    const size_t at = mp_collective_schedule_at(schedule, phase, p);
    if (schedule->sizes[at] == 0 || schedule->sizes[at] == MP_NO_PAYLOAD) continue;
    if (shared == NULL || !is_shared) {
      MP_RETURN_IF_ERROR(mp_payload_create(world, schedule->sizes[at], &payloads[p]));
      shared = payloads[p];
    }
    schedule->payloads[at] = shared->data;
    *out_has_any = true;
  }
  if (is_shared && shared != NULL) {
    schedule->payloads[mp_collective_schedule_at(schedule, phase, layout->self)] = shared->data;
  }
  return NULL;
}

// Packs and sends the payloads of the stripe's phase.
static mp_status_t remote_stripes_send(mp_peers_t *peers, mp_remote_collective_t *remote,
                                       uint32_t stripe, mp_worker_t *self) {
  mp_world_t *world = mp_endpoint_world(peers->endpoint);
  mp_collective_schedule_t *schedule = remote->stripes[stripe].stripe->schedule;
  const uint32_t phase = remote->stripes[stripe].phase;
  const mp_group_layout_t *layout = schedule->layout;
  mp_payload_t **payloads = remote->payloads + mp_remote_place(remote, stripe, phase);
  bool is_shared, has_any;
  MP_RETURN_IF_ERROR(mp_collective_schedule_plan(schedule, phase, &is_shared));
  MP_RETURN_IF_ERROR(
      remote_stripes_make_payloads(world, schedule, phase, is_shared, payloads, &has_any));
  if (has_any)
    MP_RETURN_IF_ERROR(remote_stripes_attend(schedule, self, phase, remote_stripes_pack_part));
  mp_envelope_t envelope = mp_remote_collective_envelope(peers, remote, MP_PACKET_PAYLOAD);
  envelope.words[0] |= (stripe * MP_SCHEDULE_MAX_PHASES + phase) << 8;
  mp_payload_t *shared = NULL;
  for (uint32_t p = 0; p < layout->num_processes; ++p) {
    const size_t bytes = schedule->sizes[mp_collective_schedule_at(schedule, phase, p)];
    if (bytes == MP_NO_PAYLOAD) continue;
    if (shared == NULL) shared = payloads[p];
    mp_payload_t *payload = is_shared ? shared : payloads[p];
    MP_RETURN_IF_ERROR(
        mp_world_send(world, layout->ranks[p], &envelope, bytes == 0 ? NULL : payload));
  }
  return NULL;
}

mp_status_t mp_remote_stripes_begin(mp_peers_t *peers, mp_remote_collective_t *remote,
                                    mp_worker_t *self) {
  const mp_meeting_t *meeting = remote->meeting;
  while (remote->num_begun < remote->num_stripes &&
         remote->num_begun - remote->first_stripe < MP_STRIPES_UNDER_WAY) {
    const uint32_t stripe = remote->num_begun;
    MP_RETURN_IF_ERROR(mp_collective_stripe_create(
        meeting->collective, meeting->group, stripe, remote->num_stripes, remote->sequence->layout,
        meeting->contributions, meeting->names, &remote->stripes[stripe].stripe));
    remote->num_begun += 1;
    MP_RETURN_IF_ERROR(remote_stripes_send(peers, remote, stripe, self));
  }
  return NULL;
}

// ---- Continuing ----

// Reads the payloads of the stripe's phase, which have all come, and goes to the next phase.
static mp_status_t remote_stripes_advance(mp_remote_collective_t *remote, uint32_t stripe) {
  mp_remote_stripe_t *at = &remote->stripes[stripe];
  mp_collective_schedule_t *schedule = at->stripe->schedule;
  for (uint32_t p = 0; p < schedule->layout->num_processes; ++p) {
    if (!mp_collective_schedule_awaits(schedule, at->phase, p)) continue;
    const mp_packet_t *packet = remote->packets[mp_remote_place(remote, stripe, at->phase) + p];
    MP_ASSERT(packet != NULL);  // the phase is complete
    MP_RETURN_IF_ERROR(
        mp_collective_schedule_receive(schedule, at->phase, p, packet->data, packet->bytes));
  }
  MP_ASSERT(at->phase < schedule->num_phases);
  at->phase += 1;
  return NULL;
}

bool mp_remote_stripes_are_light(const mp_remote_collective_t *remote) {
  // Stripes are alike; the first one in flight is representative.
  const mp_remote_stripe_t *first = &remote->stripes[remote->first_stripe];
  MP_ASSERT(first->stripe != NULL);
  const uint32_t most = remote->sequence->layout->spans_hosts ? MP_LIGHT_FAR_BYTES : MP_LIGHT_BYTES;
  return mp_collective_schedule_num_parts(first->stripe->schedule, first->phase) <=
         most / MP_PART_BYTES;
}

mp_status_t mp_remote_stripes_go_on(mp_peers_t *peers, mp_remote_collective_t *remote,
                                    uint32_t stripe, mp_worker_t *self, bool *out_is_over) {
  mp_collective_schedule_t *schedule = remote->stripes[stripe].stripe->schedule;
  *out_is_over = false;
  MP_RETURN_IF_ERROR(remote_stripes_advance(remote, stripe));
  if (remote->stripes[stripe].phase != schedule->num_phases) {
    return remote_stripes_send(peers, remote, stripe, self);
  }
  MP_RETURN_IF_ERROR(mp_collective_schedule_open(schedule));
  MP_RETURN_IF_ERROR(
      remote_stripes_attend(schedule, self, schedule->num_phases, remote_stripes_finish_part));
  mp_remote_collective_drop(remote, stripe);
  while (remote->first_stripe < remote->num_begun &&
         remote->stripes[remote->first_stripe].stripe == NULL) {
    remote->first_stripe += 1;
  }
  *out_is_over = remote->first_stripe == remote->num_stripes;
  return mp_remote_stripes_begin(peers, remote, self);
}
