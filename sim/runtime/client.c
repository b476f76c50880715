#include "sim/runtime/client.h"

#include "collectives/transport/bootstrap/bootstrap.h"
#include "sim/base/alloc.h"
#include "sim/base/log.h"
#include "sim/base/os/process.h"
#include "sim/runtime/circles/circle.h"
#include "sim/runtime/client_pod.h"
#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/devices/launching.h"
#include "sim/runtime/devices/pacer.h"
#include "sim/runtime/order/faulty.h"
#include "sim/runtime/order/launch_order.h"
#include "sim/runtime/remote/router.h"
#include "sim/runtime/runs/call.h"
#include "sim/runtime/runs/deadlock.h"
#include "sim/runtime/runs/inline_run.h"
#include "sim/runtime/runs/run.h"
#include "sim/runtime/watch/watch.h"
#include "sim/runtime/workers/workers.h"

static void client_end(mp_client_t *client);
static void client_destroy(mp_client_t *client);

static const mp_runner_t k_runner = {
    .run = mp_run_continue,
    .is_inline = mp_run_is_inline,
    .go_on = mp_inline_go_on,
    .look_for_deadlock = mp_deadlock_check,
    .find_holdup = mp_deadlock_find_holdup,
    .is_out = mp_run_is_out,
    .probe = mp_circles_probe,
    .answer = mp_circles_answer,
    .end = client_end,
    .destroy = client_destroy,
};

// ---- Making ----

// The pool of a space for the devices of a NUMA node, made on first use.
static mp_memory_pool_t *client_pool_of(mp_client_t *client, const mp_pod_device_t *device,
                                        mp_memory_space_t space) {
  uint32_t node = 0;
  while (node < client->num_pool_nodes && client->pools[node][0].numa_node != device->numa_node)
    ++node;
  mp_memory_pool_t *pools = client->pools[node];
  if (node == client->num_pool_nodes) {
    client->num_pool_nodes += 1;
    for (int s = 0; s < MP_MEMORY_SPACE_COUNT; ++s) {
      pools[s] =
          (mp_memory_pool_t){.capacity = device->capacity[s], .numa_node = device->numa_node};
    }
  }
  return &pools[space];
}

static void client_make_local(mp_client_t *client, mp_device_t *device, uint32_t index) {
  int32_t group = device->info->core_group;
  const mp_workers_t *workers = client->workers;
  device->queue = &workers->queues[group >= 0 && (uint32_t)group < workers->num_queues ? group : 0];
  mp_lock_init(&device->lock, MP_LOCK_DEVICE);
  mp_lock_init(&device->buffers_lock, MP_LOCK_BUFFER);
  device->memories = &client->memories[index * MP_MEMORY_SPACE_COUNT];
  for (int space = 0; space < MP_MEMORY_SPACE_COUNT; ++space) {
    mp_memory_pool_t *pool = NULL;
    if (device->info->is_shared[space]) {
      pool = client_pool_of(client, device->info, (mp_memory_space_t)space);
      pool->num_memories += 1;
    }
    mp_memory_init(&device->memories[space],
                   &(mp_memory_t){.budget = &client->budget,
                                  .device = device,
                                  .device_id = device->id,
                                  .numa_node = mp_client_numa_node(client, device),
                                  .completed = &device->completed,
                                  .space = (mp_memory_space_t)space,
                                  .capacity = device->info->capacity[space],
                                  .pool = pool});
  }
}

static mp_status_t client_make_devices(mp_client_t *client) {
  const mp_pod_info_t *info = mp_pod_info(client->pod);
  uint32_t num_local = (uint32_t)info->num_local_devices;
  client->devices = mp_calloc((size_t)info->num_devices, sizeof(*client->devices));
  MP_RETURN_IF_NULL(client->devices);
  client->memories = mp_calloc(num_local * MP_MEMORY_SPACE_COUNT, sizeof(*client->memories));
  MP_RETURN_IF_NULL(client->memories);
  // A pool of each space per NUMA node, and one for devices that span several nodes.
  client->pools =
      mp_calloc((size_t)mp_pod_machine(client->pod)->num_numa_nodes + 1, sizeof(*client->pools));
  MP_RETURN_IF_NULL(client->pools);
  client->budget.memories = client->memories;
  client->budget.num_memories = num_local * MP_MEMORY_SPACE_COUNT;
  client->budget.generation = client->generation;
  client->num_devices = (uint32_t)info->num_devices;
  client->first_local = (uint32_t)info->first_local_device;
  client->num_local = num_local;
  for (uint32_t i = 0; i < client->num_devices; ++i) {
    mp_device_t *device = &client->devices[i];
    device->client = client;
    device->id = i;
    device->info = mp_pod_device(client->pod, (int32_t)i);
    device->is_local = device->info->process_index == info->process_index;
    if (device->is_local) client_make_local(client, device, i - client->first_local);
  }
  return NULL;
}

// ---- The client ----

// Several processes of jax.distributed that cannot reach each other through a world would each see
// only a pod of their own, without any message.
static mp_status_t client_check_nodes(const mp_client_t *client, const mp_options_t *options) {
  if (client->world != NULL || client->is_for_all || options->num_nodes <= 1) return NULL;
  // A client of this process alone, by its number in the job.
  const bool is_meant = options->subset[0] != '\0' && strcmp(options->bootstrap, "none") != 0;
  if (is_meant) return NULL;
  return mp_status_make(MP_UNIMPLEMENTED,
                        "the option num_nodes says that this is one of %lld processes "
                        "(jax.distributed), but they cannot find each other: no MPI launcher "
                        "started it ('mpirun -n %lld python script.py'), and %s",
                        (long long)options->num_nodes, (long long)options->num_nodes,
                        strcmp(options->bootstrap, "none") == 0
                            ? "the option 'bootstrap' is none"
                            : "the client brings no key-value callbacks, as it does after "
                              "jax.distributed.initialize()");
}

static mp_status_t client_make_model(mp_client_t *client, const mp_options_t *options) {
  mp_pod_time_t time;
  MP_RETURN_IF_ERROR(mp_pod_read_time(client->pod, options, &time));
  client->shapes_only = time.values == MP_VALUES_MODE_SHAPES;
  client->absent = time.absent;
  client->unknown_branch = time.unknown_branch;
  client->unknown_trip_count = time.unknown_trip_count;
  if (time.clock == MP_CLOCK_VIRTUAL && time.mode != MP_TIME_MODEL) {
    return mp_pod_blame_time(
        client->pod, options, MP_OPTION_ID_clock,
        mp_status_make(MP_INVALID_ARGUMENT, "virtual needs the option time: model (it is %s)",
                       mp_time_mode_name(time.mode)));
  }
  if (time.mode != MP_TIME_OFF) return mp_model_create(client->pod, options, &client->model);
  if (!client->shapes_only) return NULL;
  return mp_pod_blame_time(
      client->pod, options, MP_OPTION_ID_values,
      mp_status_make(MP_INVALID_ARGUMENT, "shapes needs the option time: model (or paced)"));
}

static mp_status_t client_read_check(mp_client_t *client, const mp_options_t *options) {
  const mp_option_info_t *info = mp_option_info(MP_OPTION_ID_check);
  const char *source = mp_option_source_name(options->source[MP_OPTION_ID_check]);
  client->callback_wait = (double)options->callback_wait;
  client->checks_replicas = strcmp(options->check, "replicas") == 0;
  if (!client->checks_replicas && strcmp(options->check, "off") != 0) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%s (%s): expected replicas or off, got '%s'",
                          info->environment, source, options->check);
  }
  if (client->checks_replicas && client->shapes_only) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "%s (%s): replicas compares values, and with the option values: shapes "
                          "programs compute none",
                          info->environment, source);
  }
  return NULL;
}

// Without values nothing depends on the processes that do not exist.
static mp_status_t client_check_absent(const mp_client_t *client, const mp_options_t *options) {
  if (!client->is_for_all || client->shapes_only) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "%s (%s): absent needs the option values: shapes, because the values of "
                        "the other processes do not exist",
                        mp_option_info(MP_OPTION_ID_bootstrap)->environment,
                        mp_option_source_name(options->source[MP_OPTION_ID_bootstrap]));
}

static mp_status_t client_read_match(mp_client_t *client, const mp_options_t *options) {
  client->matches_groups = strcmp(options->match, "groups") == 0;
  if (client->matches_groups || strcmp(options->match, "launches") == 0) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT, "%s (%s): expected launches or groups, got '%s'",
                        mp_option_info(MP_OPTION_ID_match)->environment,
                        mp_option_source_name(options->source[MP_OPTION_ID_match]), options->match);
}

static mp_status_t client_check_kernels(const mp_options_t *options) {
  if (strcmp(options->kernels, "run") == 0 || strcmp(options->kernels, "check") == 0) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT, "%s (%s): expected run or check, got '%s'",
                        mp_option_info(MP_OPTION_ID_kernels)->environment,
                        mp_option_source_name(options->source[MP_OPTION_ID_kernels]),
                        options->kernels);
}

// Everything that options alone can make impossible.
static mp_status_t client_make_settings(mp_client_t *client, const mp_options_t *options) {
  MP_RETURN_IF_ERROR(client_make_model(client, options));
  MP_RETURN_IF_ERROR(client_check_absent(client, options));
  MP_RETURN_IF_ERROR(client_read_check(client, options));
  MP_RETURN_IF_ERROR(client_read_match(client, options));
  MP_RETURN_IF_ERROR(client_check_kernels(options));
  return mp_client_make_faults(client, options);
}

mp_status_t mp_client_check_options(mp_pod_t *pod, const mp_options_t *options) {
  mp_client_t *client = mp_calloc(1, sizeof(*client));
  MP_RETURN_IF_NULL(client);
  client->pod = pod;
  mp_status_t status = client_make_settings(client, options);
  mp_model_release(client->model);
  mp_faults_release(client->faults);
  mp_free(client);
  return status;
}

static mp_status_t client_make_pod(mp_client_t *client, const mp_options_t *options,
                                   const mp_client_meeting_t *meeting) {
  if (client->world != NULL) return mp_client_make_pod(meeting, options, &client->pod);
  return client->is_for_all ? mp_client_make_pod_of_absent(options, &client->pod)
                            : mp_pod_create(options, &client->pod);
}

// Makes everything that a client consists of. `meeting` is NULL where there is no world.
static mp_status_t client_make(mp_client_t *client, const mp_options_t *options,
                               const mp_client_meeting_t *meeting) {
  client->is_for_all = client->world == NULL && mp_bootstrap_is_absent(options);
  MP_RETURN_IF_ERROR(client_check_nodes(client, options));
  if (client->world != NULL) {
    // Comes before everything that may fail in this process alone: the other processes count the
    // client even if it fails here.
    client->number = meeting->number;
    MP_RETURN_IF_ERROR(mp_endpoint_open(client->world, meeting->number, client, &mp_session_calls,
                                        (double)options->exit_timeout, &client->endpoint));
    client->timeout_s = (double)options->collective_timeout;
  }
  MP_RETURN_IF_ERROR(client_make_pod(client, options, meeting));
  const mp_pod_machine_t *machine = mp_pod_machine(client->pod);
  client->budget.machine_bytes = machine->is_real ? machine->memory : 0;
  if (client->world != NULL) {
    client->budget.machine_bytes /=
        mp_world_peer(client->world, mp_world_rank(client->world))->ranks_on_host;
  }
  MP_RETURN_IF_ERROR(client_make_settings(client, options));
  if (client->shapes_only) {  // memory is counted, but hardly used
    client->budget.machine_bytes = 0;
    client->budget.is_counted_only = true;
  }
  MP_RETURN_IF_ERROR(mp_launches_create(&client->launches));
  MP_RETURN_IF_ERROR(mp_workers_create(client));
  MP_RETURN_IF_ERROR(client_make_devices(client));
  if (client->model != NULL && mp_model_is_paced(client->model)) {
    MP_RETURN_IF_ERROR(mp_pacer_create(client, &client->pacer));
  }
  if (client->world != NULL) {
    MP_RETURN_IF_ERROR(mp_circles_create(&client->circles));
    MP_RETURN_IF_ERROR(mp_watch_start(client->endpoint, options, &client->watch));
  }
  return mp_workers_start(client);
}

// Makes the client of this process and what is added to it.
static mp_status_t client_make_alone(const mp_options_t *options, mp_world_t *world,
                                     const mp_client_meeting_t *meeting,
                                     const mp_client_addition_t *addition,
                                     mp_client_t **out_client) {
  mp_client_t *client = mp_calloc(1, sizeof(*client));
  MP_RETURN_IF_NULL(client);
  atomic_init(&client->references, 1);
  atomic_init(&client->holds, 1);
  client->generation = mp_process_generation();
  client->world = world;
  client->runner = &k_runner;
  mp_regions_init(&client->regions);
  mp_status_t status = client_make(client, options, meeting);
  if (status != NULL) {
    mp_pacer_stop(client->pacer);
    mp_client_unhold(client);
    return status;
  }
  if (addition != NULL) status = addition->add(addition->context, client);
  if (status != NULL) {
    mp_client_release(client);
    return status;
  }
  *out_client = client;
  return NULL;
}

mp_status_t mp_client_create(const mp_options_t *options, const mp_key_value_store_t *store,
                             const mp_client_addition_t *addition, mp_client_t **out_client) {
  mp_world_t *world = NULL;
  MP_RETURN_IF_ERROR(mp_world_join(options, store, &world));
  return mp_client_create_with(options, world, addition, out_client);
}

mp_status_t mp_client_create_in(const mp_options_t *options, mp_world_t *world,
                                mp_client_t **out_client) {
  return mp_client_create_with(options, world, NULL, out_client);
}

mp_status_t mp_client_create_with(const mp_options_t *options, mp_world_t *world,
                                  const mp_client_addition_t *addition, mp_client_t **out_client) {
  mp_process_watch_forks();
  mp_client_t *client = NULL;
  mp_client_meeting_t meeting = {.world = world};
  if (world == NULL) {
    MP_RETURN_IF_ERROR(client_make_alone(options, NULL, NULL, addition, &client));
  } else if (mp_world_take_memo(world, &meeting.number, &meeting.memo, &meeting.memo_bytes)) {
    // This process was restarted, and the others keep the client that they have.
    mp_status_t status = client_make_alone(options, world, &meeting, addition, &client);
    mp_free(meeting.memo);
    MP_RETURN_IF_ERROR(status);
  } else {
    // Comes before everything that may fail in this process alone: the other processes wait for
    // this one, and count the client even if it fails here.
    mp_agreement_t agreement;
    mp_agreement_begin(world, (double)options->init_timeout, &agreement);
    meeting.number = agreement.number;
    meeting.agreement = &agreement;
    mp_status_t status = client_make_alone(options, world, &meeting, addition, &client);
    status = mp_agreement_end(&agreement, status);
    if (status != NULL) {
      mp_client_release(client);
      return status;
    }
  }
  *out_client = client;
  return NULL;
}

// ---- Ending ----

static void client_destroy(mp_client_t *client) {
  mp_watch_stop(client->watch);  // it runs if the making of the client has failed
  for (uint32_t i = 0; i < client->num_local; ++i) {
    mp_device_t *device = &client->devices[client->first_local + i];
    for (int space = 0; space < MP_MEMORY_SPACE_COUNT; ++space) {
      mp_memory_deinit(&device->memories[space]);
    }
    mp_lock_deinit(&device->lock);
    mp_lock_deinit(&device->buffers_lock);
  }
  MP_ASSERT(atomic_load(&client->budget.bytes_in_use) == 0);
  mp_launches_destroy(client->launches);
  mp_endpoint_release(client->endpoint);
  mp_circles_destroy(client->circles);
  mp_workers_destroy(client->workers);
  mp_free(client->memories);
  mp_free(client->pools);
  mp_free(client->devices);
  mp_regions_deinit(&client->regions);
  mp_pacer_free(client->pacer);
  mp_model_release(client->model);
  mp_faults_release(client->faults);
  mp_pod_release(client->pod);
  mp_free(client);
}

// Ends all runs of a stream. A run that is out (call.h) is abandoned, and ends when its call does.
static void client_cancel_stream(mp_device_t *device, mp_status_t cause) {
  for (;;) {
    // The reference outlives the lock: the thread that ends the call of an abandoned run may end
    // the run at once.
    mp_lock(&device->lock);
    mp_run_t *run = device->first;
    if (run != NULL) mp_run_retain(run);
    const bool is_abandoned = run != NULL && mp_run_abandon_call(run);
    mp_unlock(&device->lock);
    if (run == NULL) break;
    // Poisoning first removes the run from its meeting: other participants must not find it there.
    if (run->session != NULL) mp_session_poison(run->session, mp_status_retain(cause));
    if (!is_abandoned) {
      mp_run_end(run, mp_status_retain(cause));
    } else if (run->session != NULL) {
      mp_session_leave(run->session, run->logical);
    }
    mp_run_release(run);
  }
}

// Ends all runs that are in the streams. The workers are gone, no thread is in a launch and none
// can come.
static void client_cancel_runs(mp_client_t *client) {
  mp_status_t cause = mp_status_make(MP_CANCELLED, "the client was closed");
  for (uint32_t i = 0; i < client->num_local; ++i) {
    client_cancel_stream(&client->devices[client->first_local + i], cause);
  }
  for (mp_device_t *side = client->launches->sides; side != NULL; side = side->next_side) {
    client_cancel_stream(side, cause);
  }
  mp_status_release(cause);
}

// Each step stops the threads that could disturb the next step. Runs on any thread: the user's, a
// worker or caller thread in a callback, the pacer, or the watch.
static void client_end(mp_client_t *client) {
  // Set under the launch lock: a launch that has entered streams is counted and waited for below,
  // and a later one is refused. Sequentially consistent: of a thread that submits a job or leaves a
  // launch at this moment, either this thread sees the job or launch, or that thread sees the flag
  // (job.c, launching.c).
  mp_lock(&client->launches->lock);
  atomic_store(&client->is_stopping, true);
  mp_unlock(&client->launches->lock);
  // From here on events are set without pacing, so their waiters learn of the end at once.
  mp_pacer_stop(client->pacer);
  // Afterwards no worker runs devices; this thread does the remaining jobs.
  mp_workers_stop(client);
  mp_launching_await(client);
  mp_job_drain(client);
  mp_callers_stop(client);
  mp_endpoint_carry_no_more(client->endpoint);
  // Calls that are out may still end; the devices' locks order that.
  client_cancel_runs(client);
  // The watch reads the endpoint, so it stops first.
  mp_watch_stop(client->watch);
  client->watch = NULL;
  mp_endpoint_close(client->endpoint);
  mp_client_unhold(client);
}

void mp_client_note_incarnations(mp_client_t *client, size_t count, const uint64_t *incarnations) {
  if (client->endpoint == NULL || mp_client_is_forked(client)) return;
  if (mp_world_size(client->world) != count)
    return;  // the client's world is only a part of the job
  mp_endpoint_note_incarnations(client->endpoint, incarnations);
}

mp_client_t *mp_client_retain(mp_client_t *client) {
  // Relaxed: the caller has a reference, or a lock under which another one is kept.
  atomic_fetch_add_explicit(&client->references, 1, memory_order_relaxed);
  return client;
}

void mp_client_release(mp_client_t *client) {
  if (client == NULL) return;
  // Acquire: the end comes after everything that other users have done with the client.
  const int before = atomic_fetch_sub_explicit(&client->references, 1, memory_order_acq_rel);
  MP_ASSERT(before > 0);
  if (before != 1) return;
  // A process that restarts from now on makes the next client with the others.
  if (client->world != NULL) mp_world_drop_memo(client->world, client->number);
  if (mp_client_is_forked(client)) {
    mp_client_unhold(client);
  } else if (client->endpoint == NULL || !mp_endpoint_linger(client->endpoint)) {
    client_end(client);
  }  // otherwise the watch ends the client
}
