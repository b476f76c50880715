// Everything that can fail happens while the shares of all devices are prepared (launch_share.h),
// and is undone if something fails; committing them cannot fail. Both happen under the launch lock,
// so that addresses are assigned in the order of the streams.
#include "sim/runtime/launch/launch.h"

#include <inttypes.h>

#include "sim/base/alloc.h"
#include "sim/base/log.h"
#include "sim/runtime/devices/launching.h"
#include "sim/runtime/devices/pacer.h"
#include "sim/runtime/devices/reach.h"
#include "sim/runtime/launch/launch_share.h"
#include "sim/runtime/order/launch_order.h"
#include "sim/runtime/runs/client_check.h"
#include "sim/runtime/runs/deadlock.h"
#include "sim/runtime/runs/inline_run.h"
#include "sim/runtime/sessions/attend.h"

// ---- Checks ----

static mp_status_t launch_check_devices(const mp_executable_t *executable,
                                        const mp_launch_t *launch) {
  for (uint32_t i = 0; launch->logical != NULL && i < launch->num_devices; ++i) {
    bool is_known = launch->logical[i] < executable->num_devices;
    for (uint32_t j = 0; j < i && is_known; ++j)
      is_known = launch->logical[i] != launch->logical[j];
    if (!is_known) {
      return mp_status_make(MP_INVALID_ARGUMENT,
                            "%s: logical device %" PRIu32
                            " does not exist or is named twice; the "
                            "program has %" PRIu32,
                            executable->name->text, launch->logical[i], executable->num_devices);
    }
    const mp_device_t *device = mp_executable_device(executable, launch->logical[i]);
    MP_RETURN_IF_ERROR(mp_status_annotate(mp_device_check_local(device, "cannot be launched on"),
                                          "%s", executable->name->text));
  }
  return NULL;
}

// The part of undoing that happens without the launch lock.
static void launch_release_arguments(mp_launch_state_t *l) {
  for (uint32_t i = 0; i < l->num_shares; ++i) {
    mp_launch_share_t *share = &l->shares[i];
    for (uint32_t p = 0; p < share->num_taken; ++p) {
      mp_storage_release(share->arguments[p].storage);
    }
  }
}

// The newest transfer that the arguments of a share come from. Transfers from and to the host
// during the launch are part of the program (sim/chip).
static mp_stamp_t launch_newest_input(const mp_launch_state_t *l, const mp_launch_share_t *share) {
  mp_stamp_t newest = 0;
  for (uint32_t p = 0; p < l->executable->program->num_params; ++p) {
    newest = mp_stamp_newer_transfer(newest, share->buffers[p]->stamp);
  }
  return newest;
}

// Records which entry of the model each result comes from.
static void launch_note_results(const mp_launch_state_t *l, const mp_launch_share_t *share) {
  for (uint32_t r = 0; r < share->num_results; ++r) share->results[r]->stamp = l->stamp;
}

// Adds the launch to the model of time. Launches on single devices that belong together have one
// number.
static void launch_note(mp_launch_state_t *l, const uint32_t *logical) {
  mp_executable_t *executable = l->executable;
  const bool is_whole = l->num_shares == executable->num_local || !executable->has_collectives;
  const uint64_t number = is_whole ? l->claim : executable->set->num_launches[logical[0]];
  mp_model_share_t **shares = l->model_shares;
  for (uint32_t i = 0; i < l->num_shares; ++i) l->inputs[i] = launch_newest_input(l, &l->shares[i]);
  const mp_model_call_t call = {
      .number = number, .traced = l->launch->traced, .caller = l->launch->caller};
  l->stamp = mp_model_launch(executable->timed, &call, l->num_shares, logical, l->inputs, shares);
  for (uint32_t i = 0; i < l->num_shares; ++i) {
    mp_launch_share_t *share = &l->shares[i];
    share->run->share = shares[i];
    if (shares[i] != NULL) share->run->path = mp_model_share_path(shares[i]);
    launch_note_results(l, share);
  }
}

// For runs without values: gives each run the records of whether its arguments and results have
// values. First all that can fail.
static mp_status_t launch_prepare_shapes(mp_launch_state_t *l) {
  for (uint32_t i = 0; i < l->num_shares; ++i) {
    MP_RETURN_IF_ERROR(mp_shape_run_create(l->executable->shapes, &l->shares[i].run->shape_run));
  }
  return NULL;
}

// The devices of this process that a launch names.
static const uint32_t *launch_devices_of(const mp_executable_t *executable,
                                         const mp_launch_t *launch, uint32_t *out_count) {
  *out_count = launch->logical == NULL ? executable->num_local : launch->num_devices;
  return launch->logical == NULL ? executable->local : launch->logical;
}

// Called when the launch does not happen on these devices, although launches that belong to it may
// have begun on others: the launch counts, and the others fail with `error` (borrowed).
static void launch_tell_others(mp_executable_t *executable, const mp_launch_t *launch,
                               mp_status_t error) {
  mp_lock_assert_held(&executable->client->launches->lock);
  uint32_t count;
  const uint32_t *logical = launch_devices_of(executable, launch, &count);
  for (uint32_t i = 0; i < count && executable->has_collectives; ++i) {
    mp_device_set_skip(executable->set, logical[i], error);
  }
}

void mp_executable_refuse(mp_executable_t *executable, const mp_launch_t *launch,
                          mp_status_t error) {
  mp_client_t *client = executable->client;
  if (mp_client_is_forked(client)) return;
  mp_lock(&client->launches->lock);
  if (!mp_client_is_stopping(client)) launch_tell_others(executable, launch, error);
  mp_unlock(&client->launches->lock);
  if (executable->exchange != NULL) mp_executable_refuse(executable->exchange, launch, error);
}

// ---- Faults ----

static mp_status_t launch_meet_faults(mp_launch_state_t *l, const uint32_t *logical) {
  mp_executable_t *executable = l->executable;
  const mp_faults_launch_t launch = {.program = executable->program,
                                     .num_devices = executable->num_devices,
                                     .ids = executable->ids,
                                     .num_shares = l->num_shares,
                                     .logical = logical,
                                     .users = &executable->users};
  return mp_client_meet_faults(executable->client, &launch, &l->num_flips, &l->flips);
}

// Refuses flips in lent memory, which must not be written.
static mp_status_t launch_check_flip(const mp_launch_state_t *l, const mp_launch_share_t *share,
                                     const mp_faults_flip_t *flip) {
  if (flip->is_result) return NULL;
  const mp_storage_t *storage = share->arguments[flip->index].storage;
  if (storage == NULL || !mp_storage_is_adopted(storage)) return NULL;
  if (share->run->params[flip->index] != storage->data) return NULL;
  return mp_status_make(
      MP_FAILED_PRECONDITION,
      "%s: argument %" PRIu32
      " is in memory that another library has lent (DLPack): minipod flips no bits there",
      l->executable->name->text, flip->index);
}

// Gives each run the bits that it has to flip.
static mp_status_t launch_give_flips(const mp_launch_state_t *l) {
  for (uint32_t i = 0; i < l->num_shares && l->num_flips != 0; ++i) {
    const mp_launch_share_t *share = &l->shares[i];
    mp_run_t *run = share->run;
    run->flips = mp_calloc(l->num_flips, sizeof(*run->flips));
    MP_RETURN_IF_NULL(run->flips);
    for (uint32_t f = 0; f < l->num_flips; ++f) {
      if (l->flips[f].logical != share->logical) continue;
      MP_RETURN_IF_ERROR(launch_check_flip(l, share, &l->flips[f]));
      run->flips[run->num_flips++] = l->flips[f];
    }
  }
  return NULL;
}

// ---- Arrays that should be equal on several devices ----

static mp_status_t launch_make_check(mp_launch_state_t *l, const uint32_t *logical) {
  mp_executable_t *executable = l->executable;
  if (executable->replicas == NULL) return NULL;
  const mp_replica_check_spec_t spec = {
      .replicas = executable->replicas,
      .num_shares = l->num_shares,
      .logical = logical,
      .launch = atomic_fetch_add(&executable->num_launches, 1) + 1,
      .caller = l->launch->caller,
      .is_exchanged = executable->exchange != NULL};
  return mp_replica_check_create(&spec, &l->check);
}

// Adds the arrays to compare, while the launch has its holds on the arguments.
static void launch_add_checked(mp_launch_state_t *l) {
  const mp_replicas_t *replicas = mp_replica_check_replicas(l->check);
  for (uint32_t s = 0; s < l->num_shares; ++s) {
    const mp_launch_share_t *share = &l->shares[s];
    for (uint32_t a = 0; a < replicas->num_arrays; ++a) {
      const uint32_t index = replicas->arrays[a].index;
      if (replicas->arrays[a].is_result) {
        mp_replica_check_add(l->check, s, a, share->results[index]->storage, NULL);
      } else {
        mp_replica_check_add(l->check, s, a, share->arguments[index].storage,
                             share->buffers[index]->definition);
      }
    }
  }
}

// The runs wait until the arguments were compared; the check waits until the runs are over.
static void launch_begin_check(const mp_launch_state_t *l) {
  mp_event_t *arguments = mp_replica_check_arguments(l->check);
  mp_replica_check_begin(l->check);
  for (uint32_t i = 0; i < l->num_shares; ++i) {
    mp_run_t *run = l->shares[i].run;
    mp_replica_check_add_run(l->check, run->event);
    if (!mp_event_has_succeeded(arguments)) mp_run_wait_for(run, arguments);
  }
  mp_replica_check_end_runs(l->check);
}

// The digests of a launch's arrays on their way to the other processes and back.
typedef struct {
  atomic_int references;
  mp_replica_check_t *check;  // retained
  uint32_t num_shares;
  mp_buffer_t **arguments;   // [num_shares] owned: the digests of this process, per device
  mp_event_t **definitions;  // [num_shares] owned: of these
  mp_buffer_t **results;     // [num_shares] owned: those of all devices
} exchange_t;

static void launch_release_exchange(exchange_t *exchange) {
  if (atomic_fetch_sub_explicit(&exchange->references, 1, memory_order_acq_rel) != 1) return;
  for (uint32_t i = 0; i < exchange->num_shares; ++i) {
    mp_buffer_release(exchange->arguments[i]);
    mp_event_release(exchange->definitions[i]);
    mp_buffer_release(exchange->results[i]);
  }
  mp_replica_check_release(exchange->check);
  mp_free(exchange);
}

// Called when this process has compared its own arrays: sends its digests, or its error.
static void launch_give_digests(mp_status_t status, void *context) {
  exchange_t *exchange = context;
  for (uint32_t i = 0; i < exchange->num_shares; ++i) {
    if (status == NULL) {
      mp_replica_check_digests(exchange->check, i, exchange->arguments[i]->storage->data);
    }
    mp_event_set(exchange->definitions[i], mp_status_retain(status));
  }
  launch_release_exchange(exchange);
}

static void launch_take_digests(mp_status_t status, void *context) {
  exchange_t *exchange = context;
  mp_replica_check_judge(exchange->check, status,
                         status != NULL ? NULL : exchange->results[0]->storage->data);
  launch_release_exchange(exchange);
}

static mp_status_t launch_make_exchange(const mp_launch_state_t *l, exchange_t **out_exchange) {
  const size_t n = l->num_shares;
  exchange_t *exchange = mp_calloc(1, sizeof(*exchange) + 3 * n * sizeof(void *));
  MP_RETURN_IF_NULL(exchange);
  atomic_init(&exchange->references, 1);
  exchange->arguments = (mp_buffer_t **)(exchange + 1);
  exchange->definitions = (mp_event_t **)(exchange->arguments + n);
  exchange->results = (mp_buffer_t **)(exchange->definitions + n);
  exchange->num_shares = l->num_shares;
  exchange->check = mp_replica_check_retain(l->check);
  const int64_t dims[2] = {1, l->executable->replicas->num_arrays};
  mp_status_t status = NULL;
  for (size_t i = 0; i < n && status == NULL; ++i) {
    status = mp_buffer_create(mp_device_memory(l->shares[i].device, MP_MEMORY_DEVICE), MP_DTYPE_U64,
                              dims, 2, &exchange->arguments[i], &exchange->definitions[i]);
  }
  if (status == NULL) {
    *out_exchange = exchange;
  } else {
    launch_release_exchange(exchange);
  }
  return status;
}

// Launches the program that exchanges the digests, in all processes directly after the launch that
// is checked. It waits until the digests are computed.
static mp_status_t launch_start_exchange(const mp_launch_state_t *l, const uint32_t *logical,
                                         exchange_t *exchange) {
  const size_t n = l->num_shares;
  void **lists = mp_calloc(2 * n, sizeof(*lists));
  if (lists == NULL) {
    mp_executable_refuse(l->executable->exchange, l->launch, mp_status_out_of_memory());
    return mp_status_out_of_memory();
  }
  mp_launch_t launch = *l->launch;
  launch.num_devices = l->num_shares;
  launch.logical = logical;
  launch.arguments = (mp_buffer_t *const *const *)lists;
  launch.num_non_donatable = 0;
  launch.context = NULL;
  launch.traced = 0;
  for (size_t i = 0; i < n; ++i) {
    lists[i] = (void *)&exchange->arguments[i];
    lists[n + i] = (void *)&exchange->results[i];
  }
  mp_status_t status = mp_executable_launch(l->executable->exchange, &launch,
                                            (mp_buffer_t * *const *)(lists + n), NULL);
  mp_free(lists);
  return status;
}

static void launch_exchange(const mp_launch_state_t *l, const uint32_t *logical) {
  exchange_t *exchange = NULL;
  mp_status_t status = launch_make_exchange(l, &exchange);
  if (status != NULL) mp_executable_refuse(l->executable->exchange, l->launch, status);
  if (status == NULL) status = launch_start_exchange(l, logical, exchange);
  if (status == NULL) {
    atomic_fetch_add(&exchange->references, 1);
    status = mp_event_on_ready(exchange->results[0]->definition, launch_take_digests, exchange);
    if (status != NULL) launch_release_exchange(exchange);
  }
  if (status != NULL) mp_replica_check_judge(l->check, status, NULL);
  if (exchange != NULL) {
    mp_event_t *compared = mp_replica_check_compared(l->check);
    mp_status_t lost = mp_event_on_ready(compared, launch_give_digests, exchange);
    if (lost != NULL) launch_give_digests(lost, exchange);
    mp_status_release(lost);
  }
  mp_status_release(status);
}

// ---- All shares ----

static mp_status_t launch_prepare_and_commit(mp_launch_state_t *l) {
  mp_lock_assert_held(&l->executable->client->launches->lock);
  mp_client_t *client = l->executable->client;
  if (mp_client_is_stopping(client)) {
    return mp_status_make(MP_FAILED_PRECONDITION, "%s: its client was closed",
                          l->executable->name->text);
  }
  l->claim = ++client->launches->num_launches;
  uint32_t count;
  const uint32_t *logical = launch_devices_of(l->executable, l->launch, &count);
  l->order = mp_call_choose_order(l->executable, count, logical, l->launch->arguments);
  mp_status_t status = mp_client_is_faulty(client) ? launch_meet_faults(l, logical) : NULL;
  uint32_t i = 0;
  while (i < l->num_shares && status == NULL) status = mp_launch_share_prepare(l, &l->shares[i++]);
  if (status == NULL) status = launch_give_flips(l);
  if (status == NULL && l->executable->shapes != NULL) status = launch_prepare_shapes(l);
  if (status != NULL) {
    // The last share is only partly prepared, and may not even have a run.
    while (i-- > 0) {
      if (l->shares[i].run != NULL) mp_launch_share_undo(&l->shares[i]);
    }
    launch_tell_others(l->executable, l->launch, status);
    return status;
  }
  if (l->check != NULL) launch_add_checked(l);
  if (l->executable->timed != NULL) launch_note(l, logical);
  for (i = 0; i < l->num_shares; ++i) mp_launch_share_commit(l, &l->shares[i]);
  mp_session_t *session = l->shares[0].run->session;
  if (session != NULL && l->launch->num_tasks != 0) {
    mp_session_mean(session, l->launch->num_tasks, l->launch->task_ids, l->launch->incarnation_ids);
  }
  return NULL;
}

// ---- Releasing the runs ----

static void launch_let_go(mp_launch_state_t *l, mp_worker_t *inline_worker) {
  const mp_program_t *program = l->executable->program;
  mp_client_t *client = l->executable->client;
  mp_device_list_t runnable = {0};
  if (l->check != NULL) launch_begin_check(l);
  // Without the lock, because an input that is ready, or has failed, calls back at once. The
  // launch's own blocker keeps each run from starting until all its inputs are counted.
  for (uint32_t i = 0; i < l->num_shares; ++i) {
    mp_launch_share_t *share = &l->shares[i];
    for (uint32_t p = 0; p < program->num_params; ++p) {
      mp_event_t *definition = share->buffers[p]->definition;
      if (!mp_event_has_succeeded(definition)) mp_run_wait_for(share->run, definition);
    }
    mp_run_unblock(share->run, &runnable);  // from here on the run may end at any time
  }
  if (inline_worker == NULL) {
    mp_schedule(&runnable);
  } else {
    mp_inline_launch(inline_worker, l->executable, &runnable);
  }
  mp_deadlock_check(client);  // the workers may all be asleep
}

static mp_status_t launch_run(mp_launch_state_t *l, mp_buffer_t **const *out_results,
                              mp_event_t **out_done) {
  mp_client_t *client = l->executable->client;
  const bool awaits = mp_launching_note() && mp_launching_may_wait();
  mp_worker_t *inline_worker = mp_inline_get(l->executable, l->num_shares, awaits);
  const bool attends = awaits && inline_worker != NULL && !l->executable->needs_workers;
  mp_attend_t attend = {0};
  mp_launching_t launching;
  // All devices at once: if two launches entered the streams of two devices in different orders,
  // each could wait at a collective for a run that is queued after the other.
  mp_lock(&client->launches->lock);
  mp_status_t status = launch_prepare_and_commit(l);
  mp_client_check_launch(client);
  // Under the lock, so that a client that ends from now on waits for this thread, which still uses
  // the runs.
  if (status == NULL) mp_launching_enter(&launching, client);
  mp_unlock(&client->launches->lock);
  if (status == NULL) {
    for (uint32_t i = 0; i < l->num_shares; ++i) {
      mp_launch_share_t *share = &l->shares[i];
      share->run->inline_worker = inline_worker;  // before the blocker goes, which publishes it
      for (uint32_t r = 0; r < share->num_results; ++r) out_results[i][r] = share->results[r];
      mp_event_t *done = l->check == NULL ? share->run->event : mp_replica_check_done(l->check);
      if (out_done != NULL) out_done[i] = mp_pacer_hold_back(client, done, l->stamp);
    }
    if (attends) mp_attend_begin(&attend, l->shares[0].run->session);
    launch_let_go(l, inline_worker);
    mp_launching_leave(&launching);
  } else {
    launch_release_arguments(l);
  }
  if (inline_worker != NULL) mp_inline_put(inline_worker);
  mp_attend_end(&attend);
  mp_session_release(l->session);
  mp_free(l->flips);
  return status;
}

// Waits until the launch has a place in the streams of its devices, if the thread may wait.
static void launch_await_places(const mp_executable_t *executable, const mp_launch_t *launch,
                                const uint32_t *logical, uint32_t num_devices) {
  bool has_looked = false;
  for (uint32_t i = 0; i < num_devices; ++i) {
    mp_device_t *device = mp_executable_device(executable, logical[i]);
    if (mp_ahead_has_place(device) && mp_ahead_has_place_beside(device)) continue;
    if (!mp_launching_may_wait()) return;
    if (mp_call_would_go_beside(executable, num_devices, logical, launch->arguments, device)) {
      mp_ahead_await_beside(device);
    } else {
      mp_ahead_await(device, &has_looked);
    }
  }
}

static void launch_log(const mp_launch_state_t *l, mp_status_t status) {
  enum { MOST = 8 };  // devices named in the message
  mp_strbuf_t devices;
  mp_strbuf_init(&devices);
  for (uint32_t i = 0; i < l->num_shares && i < MOST; ++i) {
    mp_strbuf_printf(&devices, "%s%" PRIu32, i == 0 ? "" : ", ", l->shares[i].device->id);
  }
  if (l->num_shares > MOST) {
    mp_strbuf_printf(&devices, " and %" PRIu32 " more", l->num_shares - MOST);
  }
  mp_log(MP_LOG_DEBUG, "launch %" PRIu64 ": %s on device%s %s%s%s", l->claim,
         l->executable->name->text, l->num_shares == 1 ? "" : "s", mp_strbuf_text(&devices),
         status == NULL ? "" : ": ", status == NULL ? "" : mp_status_message(status));
  mp_strbuf_deinit(&devices);
}

mp_status_t mp_executable_launch(mp_executable_t *executable, const mp_launch_t *launch,
                                 mp_buffer_t **const *out_results, mp_event_t **out_done) {
  const mp_program_t *program = executable->program;
  MP_RETURN_IF_ERROR(mp_client_check(executable->client));
  MP_RETURN_IF_ERROR(launch_check_devices(executable, launch));
  mp_launch_state_t l = {.executable = executable, .launch = launch};
  const uint32_t *logical = launch_devices_of(executable, launch, &l.num_shares);
  if (l.num_shares == 0) return NULL;  // the program runs on other processes only
  launch_await_places(executable, launch, logical, l.num_shares);
  l.arena_label = (mp_label_t){.origin = MP_ORIGIN_TEMPORARY, .name = executable->name};
  size_t per_share = program->num_params * sizeof(mp_launch_argument_t) +
                     program->num_results * sizeof(mp_buffer_t *);
  const size_t per_timed =
      executable->timed == NULL ? 0 : sizeof(*l.inputs) + sizeof(*l.model_shares);
  char *memory = mp_calloc(l.num_shares, sizeof(mp_launch_share_t) + per_share + per_timed);
  mp_status_t status = memory == NULL ? mp_status_out_of_memory() : launch_make_check(&l, logical);
  if (status != NULL) {
    mp_executable_refuse(executable, launch, status);
    mp_free(memory);
    return status;
  }
  l.shares = (mp_launch_share_t *)memory;
  memory += l.num_shares * sizeof(mp_launch_share_t);
  for (uint32_t i = 0; i < l.num_shares; ++i, memory += per_share) {
    mp_launch_share_t *share = &l.shares[i];
    share->logical = logical[i];
    share->device = mp_executable_device(executable, share->logical);
    share->buffers = program->num_params == 0 ? NULL : launch->arguments[i];
    share->arguments = (mp_launch_argument_t *)memory;
    share->results = (mp_buffer_t **)(memory + program->num_params * sizeof(mp_launch_argument_t));
  }
  l.inputs = (mp_stamp_t *)memory;
  l.model_shares = (mp_model_share_t **)(memory + l.num_shares * sizeof(*l.inputs));
  status = launch_run(&l, out_results, out_done);
  if (executable->exchange != NULL) {
    if (status == NULL) {
      launch_exchange(&l, logical);
    } else {
      mp_executable_refuse(executable->exchange, launch, status);
    }
  }
  mp_replica_check_release(l.check);
  if (mp_log_enabled(MP_LOG_DEBUG)) launch_log(&l, status);
  mp_free(l.shares);
  return status;
}
