#include "sim/runtime/client_pod.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/transport/tpu/tpu_job.h"
#include "sim/base/alloc.h"
#include "sim/base/log.h"
#include "sim/base/str.h"
#include "sim/model/clock/model.h"
#include "sim/model/faults/faults.h"
#include "topology/processes/pod_merge.h"

static void client_pod_print_notes(const char *notes) {
  while (*notes != '\0') {
    size_t size = strcspn(notes, "\n");
    mp_log_notice("%.*s", mp_str_precision(size), notes);
    notes += size + (notes[size] == '\n');
  }
}

_Static_assert((int)MP_TPU_DIMS == (int)MP_POD_BOUNDS_DIMS, "both have chips and cores");

static mp_pod_bounds_t client_pod_bounds_of(const mp_tpu_job_t *job) {
  mp_pod_bounds_t bounds = {.has_cores = false};
  if (job->processes.variable == NULL) return bounds;
  memcpy(bounds.processes, job->processes.sizes, sizeof(bounds.processes));
  memcpy(bounds.chips, job->chips.sizes, sizeof(bounds.chips));
  bounds.has_cores = job->processes.num_dims == MP_TPU_DIMS || job->chips.num_dims == MP_TPU_DIMS;
  return bounds;
}

// The bounds of processes that variables of TPU hosts describe, if those describe this world,
// however it was joined.
static mp_pod_bounds_t client_pod_bounds(const mp_world_t *world, const mp_options_t *options) {
  mp_tpu_job_t job;
  mp_status_t status = mp_tpu_job_read(options, &job);
  const bool is_described =
      status == NULL && job.size == mp_world_size(world) && job.rank == mp_world_rank(world);
  mp_status_ignore(status);
  return is_described ? client_pod_bounds_of(&job) : (mp_pod_bounds_t){.has_cores = false};
}

static mp_status_t client_pod_announce(const mp_world_t *world, const mp_options_t *options,
                                       mp_strbuf_t *announcement) {
  const mp_peer_t *self = mp_world_peer(world, mp_world_rank(world));
  mp_pod_process_t process = {.host = (int32_t)self->host,
                              .hostname = self->hostname,
                              .pid = self->pid,
                              .faults = UINT64_MAX,
                              .bounds = client_pod_bounds(world, options)};
  mp_strbuf_t flags;
  mp_strbuf_init(&flags);
  mp_model_write_libtpu_flags(&flags);
  process.libtpu_args = getenv("LIBTPU_INIT_ARGS");
  process.libtpu_flags = mp_strbuf_text(&flags);
  // Errors of faults are ignored here: making the faults reports them later.
  mp_status_release(mp_faults_fingerprint(options, &process.faults));
  mp_status_t status = mp_pod_announce(options, &process, announcement);
  mp_strbuf_deinit(&flags);
  return status;
}

// ---- Announcements as one memo: their sizes, and then their bytes ----

static mp_status_t client_pod_pack(const mp_str_t *announcements, uint32_t count,
                                   mp_strbuf_t *memo) {
  for (uint32_t r = 0; r < count; ++r) {
    const uint64_t size = announcements[r].size;
    mp_strbuf_append(memo, (const char *)&size, sizeof(size));
  }
  for (uint32_t r = 0; r < count; ++r) {
    mp_strbuf_append(memo, announcements[r].data, announcements[r].size);
  }
  return mp_strbuf_status(memo);
}

// Borrowed from the memo.
static mp_status_t client_pod_unpack(const mp_client_meeting_t *meeting, uint32_t count,
                                     mp_str_t *announcements) {
  size_t at = count * sizeof(uint64_t);
  bool is_sound = meeting->memo_bytes >= at;
  for (uint32_t r = 0; is_sound && r < count; ++r) {
    uint64_t size;
    memcpy(&size, (const char *)meeting->memo + r * sizeof(size), sizeof(size));
    is_sound = size <= meeting->memo_bytes - at;
    announcements[r] = (mp_str_t){(const char *)meeting->memo + at, size};
    at += is_sound ? size : 0;
  }
  if (is_sound) return NULL;
  return mp_status_make(MP_INTERNAL, "the announcements of the other processes are damaged");
}

// ---- In agreement with the others ----

static mp_status_t client_pod_merge(const mp_client_meeting_t *meeting, void *const *bytes,
                                    const size_t *sizes, mp_pod_t **out_pod) {
  const uint32_t rank = mp_world_rank(meeting->world), count = mp_world_size(meeting->world);
  mp_str_t *announcements = mp_calloc(count, sizeof(*announcements));
  MP_RETURN_IF_NULL(announcements);
  for (uint32_t r = 0; r < count; ++r) announcements[r] = (mp_str_t){bytes[r], sizes[r]};
  mp_strbuf_t notes, memo;
  mp_strbuf_init(&notes);
  mp_strbuf_init(&memo);
  mp_status_t status = mp_pod_merge(announcements, (int32_t)count, (int32_t)rank, out_pod, &notes);
  if (status == NULL && rank == 0) client_pod_print_notes(mp_strbuf_text(&notes));
  if (status == NULL) status = client_pod_pack(announcements, count, &memo);
  if (status == NULL) status = mp_agreement_set_memo(meeting->agreement, memo.data, memo.size);
  mp_strbuf_deinit(&memo);
  mp_strbuf_deinit(&notes);
  mp_free(announcements);
  return status;
}

static mp_status_t client_pod_agree(const mp_client_meeting_t *meeting,
                                    const mp_strbuf_t *announcement, mp_pod_t **out_pod) {
  void **bytes = NULL;
  size_t *sizes = NULL;
  mp_status_t status = mp_agreement_exchange(meeting->agreement, mp_strbuf_text(announcement),
                                             announcement->size, &bytes, &sizes);
  if (status != NULL) {
    return mp_status_annotate(status, "agreeing on the pod with the other processes");
  }
  status = client_pod_merge(meeting, bytes, sizes, out_pod);
  mp_free(bytes);
  return status;
}

// ---- As a restarted process ----

// Compares what the other processes rely on: the devices, and the process of each.
static mp_status_t client_pod_compare(const mp_pod_t *before, const mp_pod_t *now) {
  const mp_pod_info_t *a = mp_pod_info(before), *b = mp_pod_info(now);
  bool is_same = a->num_devices == b->num_devices && a->num_local_devices == b->num_local_devices &&
                 strcmp(a->kind, b->kind) == 0;
  for (int32_t i = 0; is_same && i < a->num_devices; ++i) {
    const mp_pod_device_t *one = mp_pod_device(before, i), *other = mp_pod_device(now, i);
    is_same = one->process_index == other->process_index &&
              memcmp(one->coords, other->coords, sizeof(one->coords)) == 0;
  }
  if (is_same) return NULL;
  return mp_status_make(MP_FAILED_PRECONDITION,
                        "process %d was restarted with %d devices of kind '%s', but had %d of kind "
                        "'%s' before: a restarted process must have the same devices",
                        b->process_index, b->num_local_devices, b->kind, a->num_local_devices,
                        a->kind);
}

static mp_status_t client_pod_rejoin_as(const mp_client_meeting_t *meeting, mp_str_t *announcements,
                                        mp_str_t own, mp_pod_t **out_pod) {
  const int32_t rank = (int32_t)mp_world_rank(meeting->world);
  const int32_t count = (int32_t)mp_world_size(meeting->world);
  mp_pod_t *before = NULL, *now = NULL;
  mp_strbuf_t notes;
  mp_strbuf_init(&notes);
  mp_status_t status = mp_pod_merge(announcements, count, rank, &before, &notes);
  announcements[rank] = own;
  if (status == NULL) status = mp_pod_merge(announcements, count, rank, &now, &notes);
  if (status == NULL) status = client_pod_compare(before, now);
  mp_strbuf_deinit(&notes);
  mp_pod_release(before);
  if (status == NULL) {
    *out_pod = now;
  } else {
    mp_pod_release(now);
  }
  return status;
}

static mp_status_t client_pod_rejoin(const mp_client_meeting_t *meeting,
                                     const mp_strbuf_t *announcement, mp_pod_t **out_pod) {
  const uint32_t count = mp_world_size(meeting->world);
  mp_str_t *announcements = mp_calloc(count, sizeof(*announcements));
  MP_RETURN_IF_NULL(announcements);
  mp_status_t status = client_pod_unpack(meeting, count, announcements);
  if (status == NULL) {
    const mp_str_t own = {announcement->data, announcement->size};
    status = client_pod_rejoin_as(meeting, announcements, own, out_pod);
  }
  mp_free(announcements);
  return status;
}

// ---- Of a job of which only one process exists ----

// The job that the framework or the variables of TPU hosts describe.
static mp_status_t client_pod_read_job(const mp_options_t *options, mp_tpu_job_t *out_job) {
  if (options->num_nodes > 1 && options->node_id >= 0 && options->node_id < options->num_nodes) {
    *out_job =
        (mp_tpu_job_t){.rank = (uint32_t)options->node_id, .size = (uint32_t)options->num_nodes};
    return NULL;
  }
  MP_RETURN_IF_ERROR(mp_tpu_job_read(options, out_job));
  if (out_job->size > 1) return NULL;
  return mp_status_make(MP_FAILED_PRECONDITION,
                        "option 'bootstrap': the number of processes that this one stands for "
                        "is unknown: neither the options node_id and num_nodes, nor the "
                        "variables TPU_PROCESS_ADDRESSES and CLOUD_TPU_TASK_ID");
}

mp_status_t mp_client_make_pod_of_absent(const mp_options_t *options, mp_pod_t **out_pod) {
  mp_tpu_job_t job;
  MP_RETURN_IF_ERROR(client_pod_read_job(options, &job));
  const mp_pod_process_t process = {
      .hostname = "", .faults = UINT64_MAX, .bounds = client_pod_bounds_of(&job)};
  mp_strbuf_t text, notes;
  mp_strbuf_init(&text);
  mp_strbuf_init(&notes);
  mp_status_t status = mp_pod_announce(options, &process, &text);
  mp_str_t *announcements = mp_calloc(job.size, sizeof(*announcements));
  if (status == NULL && announcements == NULL) status = mp_status_out_of_memory();
  for (uint32_t r = 0; r < job.size && status == NULL; ++r) {
    announcements[r] = (mp_str_t){mp_strbuf_text(&text), text.size};
  }
  if (status == NULL) {
    status = mp_pod_merge(announcements, (int32_t)job.size, (int32_t)job.rank, out_pod, &notes);
  }
  mp_free(announcements);
  mp_strbuf_deinit(&notes);  // about sharing the machine, which the others do not
  mp_strbuf_deinit(&text);
  return status;
}

mp_status_t mp_client_make_pod(const mp_client_meeting_t *meeting, const mp_options_t *options,
                               mp_pod_t **out_pod) {
  mp_strbuf_t announcement;
  mp_strbuf_init(&announcement);
  mp_status_t status = client_pod_announce(meeting->world, options, &announcement);
  if (status == NULL) {
    status = meeting->agreement == NULL ? client_pod_rejoin(meeting, &announcement, out_pod)
                                        : client_pod_agree(meeting, &announcement, out_pod);
  }
  mp_strbuf_deinit(&announcement);
  return status;
}
