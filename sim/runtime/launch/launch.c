// Launching: from arguments to runs in the devices' streams.
//
// Everything that can fail happens in launch_prepare, for all devices, and is undone if something
// fails; launch_commit cannot fail. Both happen under the launch lock, so that addresses are given
// out in the order of the streams.
#include <inttypes.h>

#include "sim/base/alloc.h"
#include "sim/plan/program_blame.h"
#include "sim/runtime/buffers/buffer_impl.h"
#include "sim/runtime/devices/faulty.h"
#include "sim/runtime/devices/launching.h"
#include "sim/runtime/devices/pacer.h"
#include "sim/runtime/devices/side_stream.h"
#include "sim/runtime/launch/client_check.h"
#include "sim/runtime/launch/deadlock.h"
#include "sim/runtime/launch/inline_run.h"
#include "sim/runtime/launch/run.h"

typedef struct {
  mp_take_t take;
  bool is_donated;
  mp_storage_t *storage;  // a hold; NULL: an error buffer, or the hold was given back to the buffer
} argument_t;

// One device's share of a launch.
typedef struct {
  uint32_t logical;
  mp_device_t *device;
  bool is_beside;               // its run goes beside the stream
  mp_buffer_t *const *buffers;  // the arguments
  mp_run_t *run;
  uint32_t num_taken;
  argument_t *arguments;  // [num_params]
  uint32_t num_results;   // made so far
  mp_buffer_t **results;  // [num_results]
  mp_span_t *arena;
} share_t;

typedef struct {
  mp_executable_t *executable;
  const mp_launch_t *launch;
  uint64_t claim;
  mp_order_t order;
  uint32_t num_shares;
  share_t *shares;
  mp_session_t *session;  // when there are several devices and no collectives; else NULL
  mp_label_t arena_label;
  mp_stamp_t stamp;    // in the model of time; 0: there is none
  uint32_t num_flips;  // of bits, by faults
  mp_faults_flip_t *flips;
} launching_t;

// ---- Checks ----

static mp_status_t launch_type_error(const mp_executable_t *executable, uint32_t param,
                                     const mp_type_t *expected, const mp_type_t *given) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_type_print(expected, &text);
  mp_strbuf_puts(&text, ", got ");
  mp_type_print(given, &text);
  mp_status_t status = mp_status_make(MP_INVALID_ARGUMENT, "%s: argument %" PRIu32 ": expected %s",
                                      executable->name->text, param, mp_strbuf_text(&text));
  mp_strbuf_deinit(&text);
  return status;
}

static mp_status_t launch_check_argument(const mp_executable_t *executable,
                                         const mp_device_t *device, uint32_t param,
                                         const mp_buffer_t *buffer) {
  const mp_program_io_t *io = &executable->program->params[param];
  if (buffer->memory->device != device) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "%s: argument %" PRIu32 " is on device %" PRIu32
                          ", but the program runs on device %" PRIu32,
                          executable->name->text, param, mp_device_id(buffer->memory->device),
                          mp_device_id(device));
  }
  if (buffer->memory->space != io->memory) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "%s: argument %" PRIu32
                          " is in %s memory, but the program expects it in "
                          "%s memory",
                          executable->name->text, param,
                          mp_memory_space_name(buffer->memory->space),
                          mp_memory_space_name(io->memory));
  }
  // Tokens carry nothing; any buffer without bytes will do.
  bool is_token = io->type->kind == MP_TYPE_TOKEN && buffer->bytes == 0;
  if (!is_token && !mp_type_equal(io->type, &buffer->type)) {
    return launch_type_error(executable, param, io->type, &buffer->type);
  }
  return NULL;
}

static bool launch_may_donate(const mp_launch_t *launch, uint32_t param) {
  for (uint32_t i = 0; i < launch->num_non_donatable; ++i) {
    if (launch->non_donatable[i] == (int64_t)param) return false;
  }
  return true;
}

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

// ---- Preparing one share ----

static mp_status_t launch_take_arguments(launching_t *l, share_t *share) {
  const mp_program_t *program = l->executable->program;
  for (uint32_t p = 0; p < program->num_params; ++p) {
    argument_t *argument = &share->arguments[p];
    mp_buffer_t *buffer = share->buffers[p];
    mp_status_t status = launch_check_argument(l->executable, share->device, p, buffer);
    argument->is_donated = program->params[p].alias != -1 && launch_may_donate(l->launch, p);
    if (status == NULL) {
      status = mp_buffer_take(buffer, argument->is_donated, l->claim, &argument->take,
                              &argument->storage);
      status = mp_status_annotate(status, "%s: argument %" PRIu32, l->executable->name->text, p);
    }
    MP_RETURN_IF_ERROR(status);
    share->num_taken = p + 1;
    share->run->bytes += buffer->bytes;
    // It is NULL only for an error buffer, whose failure keeps the run from starting.
    share->run->params[p] = argument->storage == NULL ? NULL : argument->storage->data;
  }
  return NULL;
}

// Which blocks the launch may take (mp_memory_alloc).
static uint64_t launch_blocks_after(const share_t *share) {
  return share->is_beside ? mp_device_completed(share->device) : MP_IN_STREAM_ORDER;
}

// True when the result may have the storage of the donated parameter.
static bool launch_may_take_over(const share_t *share, const argument_t *argument,
                                 const mp_program_io_t *io) {
  const mp_storage_t *storage = argument->storage;
  if (argument->take != MP_TAKE_OVER || storage == NULL) return false;
  if (storage->memory != mp_device_memory(share->device, io->memory)) return false;
  if (storage->bytes < io->bytes) return false;
  // Runs in the stream that read it come before runs of the stream, but not before one beside it.
  if (!share->is_beside) return true;
  return atomic_load(&storage->last_use) <= mp_device_completed(share->device);
}

// The storage of result r: that of the donated parameter, or a new one. Either way the result gets
// a hold of its own, so that undoing means no more than letting go of it.
static mp_status_t launch_make_result_storage(launching_t *l, share_t *share, uint32_t r,
                                              mp_storage_t **out_storage) {
  const mp_program_io_t *io = &l->executable->program->results[r];
  mp_memory_t *memory = mp_device_memory(share->device, io->memory);
  argument_t *argument = io->alias >= 0 ? &share->arguments[io->alias] : NULL;
  if (argument != NULL && launch_may_take_over(share, argument, io)) {
    *out_storage = mp_storage_retain(argument->storage);
    share->run->results[r] = (*out_storage)->data;
    return NULL;
  }
  mp_label_t label = mp_label_make(MP_ORIGIN_RESULT, io->type->dtype, io->type->dims,
                                   io->type->rank, l->executable->name, r);
  mp_status_t status =
      mp_storage_create(memory, io->bytes, launch_blocks_after(share), &label, out_storage);
  if (status != NULL) return mp_program_blame_result(l->executable->program, r, status);
  // Runs that are queued may still use its block: if this launch fails, the block is not free
  // before they are over.
  if (!share->is_beside) mp_storage_used_by_run(*out_storage, share->device->enqueued);
  void *data = share->run->results[r] = (*out_storage)->data;
  if (argument != NULL) {
    // For the program the parameter and its result are one place: the parameter moves there.
    mp_run_t *run = share->run;
    if (argument->storage != NULL) {
      uint64_t given = argument->storage->bytes;
      run->copies[run->num_copies++] = (mp_prologue_copy_t){data, argument->storage->data,
                                                            given < io->bytes ? given : io->bytes};
    }
    run->params[io->alias] = data;
  }
  return NULL;
}

static mp_status_t launch_make_results(launching_t *l, share_t *share) {
  const mp_program_t *program = l->executable->program;
  for (uint32_t r = 0; r < program->num_results; ++r) {
    const mp_program_io_t *io = &program->results[r];
    mp_storage_t *storage;
    MP_RETURN_IF_ERROR(launch_make_result_storage(l, share, r, &storage));
    MP_RETURN_IF_ERROR(mp_buffer_make(mp_device_memory(share->device, io->memory), io->type->dtype,
                                      io->type->dims, io->type->rank, storage, share->run->event,
                                      &share->results[r]));
    share->results[r]->is_behind_call = l->order.is_behind_call;
    share->num_results = r + 1;
    share->run->bytes += io->bytes;
  }
  return NULL;
}

static mp_status_t launch_find_session(launching_t *l, share_t *share) {
  mp_executable_t *executable = l->executable;
  if (executable->has_collectives) {
    return mp_device_set_session(executable->set, share->logical, &share->run->session);
  }
  if (l->num_shares == 1) return NULL;
  if (l->session == NULL) {
    MP_RETURN_IF_ERROR(mp_session_create(executable->num_devices, executable->ids, &l->session));
  }
  share->run->session = mp_session_retain(l->session);
  return NULL;
}

static mp_status_t launch_prepare(launching_t *l, share_t *share) {
  const mp_program_t *program = l->executable->program;
  MP_RETURN_IF_ERROR(mp_run_create(l->executable, share->logical, &share->run));
  share->run->launch = l->claim;
  share->run->context = mp_foreign_context_retain(l->launch->context);
  share->run->is_behind_call = l->order.is_behind_call;
  share->is_beside = mp_call_goes_beside(share->device, l->order);
  if (share->is_beside) {
    MP_RETURN_IF_ERROR(
        mp_side_stream_get(share->device, l->executable->may_block, &share->run->device));
  }
  MP_RETURN_IF_ERROR(launch_find_session(l, share));
  MP_RETURN_IF_ERROR(launch_take_arguments(l, share));
  if (program->arena_bytes != 0) {
    mp_status_t status =
        mp_memory_alloc(mp_device_memory(share->device, MP_MEMORY_DEVICE), program->arena_bytes,
                        launch_blocks_after(share), &l->arena_label, &share->arena);
    if (status != NULL) return mp_program_blame_temporaries(program, status);
    share->run->arena = share->arena->data;
  }
  return launch_make_results(l, share);
}

// ---- Undoing and committing ----

// Gives everything back except the holds on arguments: donated ones become the buffers' own holds
// again, and the others are left to launch_release_arguments, because letting go of adopted memory
// calls its owner, which must happen without any lock.
static void launch_undo(share_t *share) {
  for (uint32_t r = 0; r < share->num_results; ++r) mp_buffer_release(share->results[r]);
  if (share->arena != NULL) {
    mp_memory_free(mp_device_memory(share->device, MP_MEMORY_DEVICE), share->arena,
                   share->device->enqueued);
  }
  for (uint32_t p = 0; p < share->num_taken; ++p) {
    argument_t *argument = &share->arguments[p];
    if (argument->is_donated) {
      argument->storage = mp_buffer_untake(share->buffers[p], argument->storage);
    }
  }
  if (share->run->device != share->device) share->run->device->enqueued -= 1;
  mp_run_release(share->run);
}

// The rest of undoing, without the launch lock.
static void launch_release_arguments(launching_t *l) {
  for (uint32_t i = 0; i < l->num_shares; ++i) {
    share_t *share = &l->shares[i];
    for (uint32_t p = 0; p < share->num_taken; ++p) {
      mp_storage_release(share->arguments[p].storage);
    }
  }
}

static void launch_relabel_result(const launching_t *l, const mp_program_io_t *io, uint32_t r,
                                  mp_storage_t *storage) {
  mp_label_t label = mp_label_make(MP_ORIGIN_RESULT, io->type->dtype, io->type->dims,
                                   io->type->rank, l->executable->name, r);
  mp_storage_relabel(storage, &label);
}

// The run gets its number, and what keeps its memory: its place in the stream, from now on.
static void launch_commit_in_stream(launching_t *l, share_t *share) {
  const mp_program_t *program = l->executable->program;
  mp_run_t *run = share->run;
  run->number = ++share->device->enqueued;
  for (uint32_t p = 0; p < program->num_params; ++p) {
    mp_storage_t *storage = share->arguments[p].storage;
    if (storage == NULL) continue;
    mp_storage_used_by_run(storage, run->number);
    if (mp_storage_is_adopted(storage)) {
      run->holds[run->num_holds++] = storage;
    } else {
      mp_storage_release(storage);  // the order of the stream protects its bytes
    }
  }
  for (uint32_t r = 0; r < program->num_results; ++r) {
    mp_storage_used_by_run(share->results[r]->storage, run->number);
  }
  if (share->arena != NULL) {
    mp_memory_free(mp_device_memory(share->device, MP_MEMORY_DEVICE), share->arena, run->number);
  }
}

// The same beside the stream: the run holds all its memory itself.
static void launch_commit_beside(const launching_t *l, share_t *share) {
  const mp_program_t *program = l->executable->program;
  mp_run_t *run = share->run;
  run->number = run->device->enqueued;
  for (uint32_t p = 0; p < program->num_params; ++p) {
    if (share->arguments[p].storage != NULL) {
      run->holds[run->num_holds++] = share->arguments[p].storage;
    }
  }
  for (uint32_t r = 0; r < program->num_results; ++r) {
    run->holds[run->num_holds++] = mp_storage_retain(share->results[r]->storage);
  }
  run->own_arena = share->arena;
  atomic_fetch_add(&share->device->num_beside, 1);
}

static void launch_commit_shapes(const launching_t *l, share_t *share) {
  const mp_program_t *program = l->executable->program;
  for (uint32_t p = 0; p < program->num_params; ++p) {
    mp_shape_run_add_param(share->run->shape_run, share->arguments[p].storage);
  }
  for (uint32_t r = 0; r < program->num_results; ++r) {
    mp_shape_run_add_result(share->run->shape_run, share->results[r]->storage);
  }
}

static void launch_commit(launching_t *l, share_t *share) {
  const mp_program_t *program = l->executable->program;
  mp_run_t *run = share->run;
  MP_ASSERT(share->num_taken == program->num_params && share->num_results == program->num_results);
  if (run->shape_run != NULL) launch_commit_shapes(l, share);
  if (share->is_beside) {
    launch_commit_beside(l, share);
  } else {
    launch_commit_in_stream(l, share);
  }
  for (uint32_t r = 0; r < program->num_results; ++r) {
    const mp_storage_t *storage = share->results[r]->storage;
    if (storage->label.origin != MP_ORIGIN_RESULT || storage->label.name != l->executable->name) {
      launch_relabel_result(l, &program->results[r], r, share->results[r]->storage);
    }
  }
  if (l->executable->has_collectives) {
    mp_device_set_join(l->executable->set, share->logical, run->session, run);
  } else if (run->session != NULL) {
    (void)mp_session_join(run->session, share->logical, run);
  }
  mp_run_enqueue(run);
}

// The newest transfer that the arguments of a share come from.
static mp_stamp_t launch_newest_input(const launching_t *l, const share_t *share) {
  mp_stamp_t newest = 0;
  for (uint32_t p = 0; p < l->executable->program->num_params; ++p) {
    newest = mp_stamp_newer_transfer(newest, share->buffers[p]->stamp);
  }
  return newest;
}

// Tells the model of time. Launches on single devices that belong together have one number.
static mp_status_t launch_note(launching_t *l, const uint32_t *logical) {
  mp_executable_t *executable = l->executable;
  const bool is_whole = l->num_shares == executable->num_local || !executable->has_collectives;
  const uint64_t number = is_whole ? l->claim : executable->set->num_launches[logical[0]];
  char *memory = mp_calloc(l->num_shares, sizeof(mp_stamp_t) + sizeof(mp_model_share_t *));
  MP_RETURN_IF_NULL(memory);
  mp_stamp_t *inputs = (mp_stamp_t *)(void *)memory;
  mp_model_share_t **shares =
      (mp_model_share_t **)(void *)(memory + l->num_shares * sizeof(mp_stamp_t));
  for (uint32_t i = 0; i < l->num_shares; ++i) inputs[i] = launch_newest_input(l, &l->shares[i]);
  l->stamp = mp_model_launch(executable->timed, number, l->num_shares, logical, inputs, shares);
  for (uint32_t i = 0; i < l->num_shares; ++i) {
    share_t *share = &l->shares[i];
    share->run->share = shares[i];
    if (shares[i] != NULL) share->run->path = mp_model_share_path(shares[i]);
    for (uint32_t r = 0; r < share->num_results; ++r) share->results[r]->stamp = l->stamp;
  }
  mp_free(memory);
  return NULL;
}

// For runs without values: what says of the arguments and results whether they have any. First all
// that can fail.
static mp_status_t launch_prepare_shapes(launching_t *l) {
  for (uint32_t i = 0; i < l->num_shares; ++i) {
    MP_RETURN_IF_ERROR(mp_shape_run_create(l->executable->shapes, &l->shares[i].run->shape_run));
  }
  return NULL;
}

// Which devices of this process a launch is for.
static const uint32_t *launch_devices_of(const mp_executable_t *executable,
                                         const mp_launch_t *launch, uint32_t *out_count) {
  *out_count = launch->logical == NULL ? executable->num_local : launch->num_devices;
  return launch->logical == NULL ? executable->local : launch->logical;
}

// The launch does not happen on these devices, but launches that belong to it may have begun on
// others: it counts, and those fail with `error` (borrowed).
static void launch_tell_others(mp_executable_t *executable, const mp_launch_t *launch,
                               mp_status_t error) {
  mp_lock_assert_held(&executable->client->launch_lock);
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
  mp_lock(&client->launch_lock);
  if (!mp_client_is_stopping(client)) launch_tell_others(executable, launch, error);
  mp_unlock(&client->launch_lock);
}

// ---- Faults ----

static mp_status_t launch_meet_faults(launching_t *l, const uint32_t *logical) {
  mp_executable_t *executable = l->executable;
  const mp_faults_launch_t launch = {.program = executable->program,
                                     .num_devices = executable->num_devices,
                                     .ids = executable->ids,
                                     .num_shares = l->num_shares,
                                     .logical = logical,
                                     .users = &executable->users};
  return mp_client_meet_faults(executable->client, &launch, &l->num_flips, &l->flips);
}

// Memory that others have lent cannot be written.
static mp_status_t launch_check_flip(const launching_t *l, const share_t *share,
                                     const mp_faults_flip_t *flip) {
  if (flip->is_result) return NULL;
  const mp_storage_t *storage = share->arguments[flip->index].storage;
  if (storage == NULL || !mp_storage_is_adopted(storage)) return NULL;
  if (share->run->params[flip->index] != storage->data) return NULL;
  return mp_status_make(MP_FAILED_PRECONDITION,
                        "%s: argument %" PRIu32
                        " lies in memory of somebody else (DLPack), in which no bits are flipped",
                        l->executable->name->text, flip->index);
}

// Gives each run the bits that it has to flip.
static mp_status_t launch_give_flips(const launching_t *l) {
  for (uint32_t i = 0; i < l->num_shares && l->num_flips != 0; ++i) {
    const share_t *share = &l->shares[i];
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

// ---- All shares ----

static mp_status_t launch_prepare_and_commit(launching_t *l) {
  mp_lock_assert_held(&l->executable->client->launch_lock);
  mp_client_t *client = l->executable->client;
  if (mp_client_is_stopping(client)) {
    return mp_status_make(MP_FAILED_PRECONDITION, "%s: its client was closed",
                          l->executable->name->text);
  }
  l->claim = ++client->num_launches;
  uint32_t count;
  const uint32_t *logical = launch_devices_of(l->executable, l->launch, &count);
  l->order = mp_call_choose_order(l->executable, count, logical, l->launch->arguments);
  mp_status_t status = mp_client_is_faulty(client) ? launch_meet_faults(l, logical) : NULL;
  uint32_t i = 0;
  while (i < l->num_shares && status == NULL) status = launch_prepare(l, &l->shares[i++]);
  if (status == NULL) status = launch_give_flips(l);
  if (status == NULL && l->executable->shapes != NULL) status = launch_prepare_shapes(l);
  if (status == NULL && l->executable->timed != NULL) status = launch_note(l, logical);
  if (status != NULL) {
    // The last share was prepared in part, perhaps not even its run was made.
    while (i-- > 0) {
      if (l->shares[i].run != NULL) launch_undo(&l->shares[i]);
    }
    launch_tell_others(l->executable, l->launch, status);
    return status;
  }
  for (i = 0; i < l->num_shares; ++i) launch_commit(l, &l->shares[i]);
  return NULL;
}

// ---- Letting the runs go ----

static void launch_let_go(launching_t *l, mp_worker_t *inline_worker) {
  const mp_program_t *program = l->executable->program;
  mp_client_t *client = l->executable->client;
  mp_device_list_t runnable = {0};
  for (uint32_t i = 0; i < l->num_shares; ++i) {
    share_t *share = &l->shares[i];
    for (uint32_t p = 0; p < program->num_params; ++p) {
      mp_event_t *definition = share->buffers[p]->definition;
      if (!mp_event_has_succeeded(definition)) mp_run_wait_for(share->run, definition);
    }
    mp_run_unblock(share->run, &runnable);  // from here on it may be over at any time
  }
  if (inline_worker == NULL) {
    mp_schedule(&runnable);
  } else {
    mp_inline_launch(inline_worker, l->executable, &runnable);
  }
  mp_deadlock_check(client);  // the workers may all be asleep
}

static mp_status_t launch_run(launching_t *l, mp_buffer_t **const *out_results,
                              mp_event_t **out_done) {
  mp_client_t *client = l->executable->client;
  mp_worker_t *inline_worker = mp_inline_get(l->executable, l->num_shares);
  mp_launching_t launching;
  mp_lock(&client->launch_lock);
  mp_status_t status = launch_prepare_and_commit(l);
  mp_client_check_launch(client);
  if (status == NULL) mp_launching_enter(&launching, client);
  mp_unlock(&client->launch_lock);
  if (status == NULL) {
    for (uint32_t i = 0; i < l->num_shares; ++i) {
      share_t *share = &l->shares[i];
      share->run->inline_worker = inline_worker;
      for (uint32_t r = 0; r < share->num_results; ++r) out_results[i][r] = share->results[r];
      if (out_done != NULL) out_done[i] = mp_pacer_hold_back(client, share->run->event, l->stamp);
    }
    launch_let_go(l, inline_worker);
    mp_launching_leave(&launching);
  } else {
    launch_release_arguments(l);
  }
  if (inline_worker != NULL) mp_inline_put(inline_worker);
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

mp_status_t mp_executable_launch(mp_executable_t *executable, const mp_launch_t *launch,
                                 mp_buffer_t **const *out_results, mp_event_t **out_done) {
  const mp_program_t *program = executable->program;
  MP_RETURN_IF_ERROR(mp_client_check(executable->client));
  MP_RETURN_IF_ERROR(launch_check_devices(executable, launch));
  launching_t l = {.executable = executable, .launch = launch};
  const uint32_t *logical = launch_devices_of(executable, launch, &l.num_shares);
  if (l.num_shares == 0) return NULL;  // the program runs on other processes only
  launch_await_places(executable, launch, logical, l.num_shares);
  l.arena_label = (mp_label_t){.origin = MP_ORIGIN_TEMPORARY, .name = executable->name};
  size_t per_share =
      program->num_params * sizeof(argument_t) + program->num_results * sizeof(mp_buffer_t *);
  char *memory = mp_calloc(l.num_shares, sizeof(share_t) + per_share);
  if (memory == NULL) {
    mp_executable_refuse(executable, launch, mp_status_out_of_memory());
    return mp_status_out_of_memory();
  }
  l.shares = (share_t *)memory;
  memory += l.num_shares * sizeof(share_t);
  for (uint32_t i = 0; i < l.num_shares; ++i, memory += per_share) {
    share_t *share = &l.shares[i];
    share->logical = logical[i];
    share->device = mp_executable_device(executable, share->logical);
    share->buffers = program->num_params == 0 ? NULL : launch->arguments[i];
    share->arguments = (argument_t *)memory;
    share->results = (mp_buffer_t **)(memory + program->num_params * sizeof(argument_t));
  }
  mp_status_t status = launch_run(&l, out_results, out_done);
  mp_free(l.shares);
  return status;
}
