// One device's share of a launch: from its arguments to a run in the device's stream.
#include "sim/runtime/launch/launch_share.h"

#include <inttypes.h>

#include "sim/base/alloc.h"
#include "sim/plan/program_blame.h"
#include "sim/runtime/order/launch_order.h"
#include "sim/runtime/order/side_stream.h"

// ---- Checks ----

static mp_status_t launch_share_type_error(const mp_executable_t *executable, uint32_t param,
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

static bool launch_share_type_fits(const mp_launch_t *launch, const mp_program_io_t *io,
                                   const mp_buffer_form_t *form) {
  // Tokens carry nothing; any buffer without bytes will do.
  if (io->type->kind == MP_TYPE_TOKEN && form->bytes == 0) return true;
  if (mp_type_equal(io->type, &form->type)) return true;
  return launch->takes_other_shapes && io->type->kind == MP_TYPE_TENSOR &&
         form->type.kind == MP_TYPE_TENSOR && io->type->dtype == form->type.dtype &&
         io->bytes == form->bytes;
}

static mp_status_t launch_share_check_argument(const mp_executable_t *executable,
                                               const mp_launch_t *launch, const mp_device_t *device,
                                               uint32_t param, const mp_buffer_t *buffer) {
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
  if (!launch_share_type_fits(launch, io, buffer->form)) {
    return launch_share_type_error(executable, param, io->type, &buffer->form->type);
  }
  return NULL;
}

static bool launch_share_may_donate(const mp_launch_t *launch, uint32_t param) {
  for (uint32_t i = 0; i < launch->num_non_donatable; ++i) {
    if (launch->non_donatable[i] == (int64_t)param) return false;
  }
  return true;
}

// ---- Preparing one share ----

static mp_status_t launch_share_take_arguments(mp_launch_state_t *l, mp_launch_share_t *share) {
  const mp_program_t *program = l->executable->program;
  for (uint32_t p = 0; p < program->num_params; ++p) {
    mp_launch_argument_t *argument = &share->arguments[p];
    mp_buffer_t *buffer = share->buffers[p];
    mp_status_t status =
        launch_share_check_argument(l->executable, l->launch, share->device, p, buffer);
    argument->is_donated = program->params[p].alias != -1 && launch_share_may_donate(l->launch, p);
    if (status == NULL) {
      status = mp_buffer_take(buffer, argument->is_donated, l->claim, &argument->take,
                              &argument->storage);
      status = mp_status_annotate(status, "%s: argument %" PRIu32, l->executable->name->text, p);
    }
    MP_RETURN_IF_ERROR(status);
    share->num_taken = p + 1;
    share->num_adopted += argument->storage != NULL && mp_storage_is_adopted(argument->storage);
    share->run->bytes += buffer->form->bytes;
    // It is NULL only for an error buffer, whose failure keeps the run from starting.
    share->run->params[p] = argument->storage == NULL ? NULL : argument->storage->data;
  }
  return NULL;
}

// Allocates the list of what the run will hold, because committing must not fail. A run in the
// stream holds only lent memory, a run in a side stream holds all its memory.
static mp_status_t launch_share_make_holds(const mp_launch_state_t *l, mp_launch_share_t *share) {
  const mp_program_t *program = l->executable->program;
  const size_t count =
      share->is_beside ? program->num_params + program->num_results : share->num_adopted;
  if (count == 0) return NULL;
  share->run->holds = mp_calloc(count, sizeof(*share->run->holds));
  MP_RETURN_IF_NULL(share->run->holds);
  return NULL;
}

// Which blocks the launch may take (mp_memory_alloc).
static uint64_t launch_share_blocks_after(const mp_launch_share_t *share) {
  return share->is_beside ? mp_device_completed(share->device) : MP_IN_STREAM_ORDER;
}

// True when the result may have the storage of the donated parameter.
static bool launch_share_may_take_over(const mp_launch_share_t *share,
                                       const mp_launch_argument_t *argument,
                                       const mp_program_io_t *io) {
  const mp_storage_t *storage = argument->storage;
  if (argument->take != MP_TAKE_OVER || storage == NULL) return false;
  if (storage->memory != mp_device_memory(share->device, io->memory)) return false;
  if (storage->bytes < io->bytes) return false;
  // Runs that read the storage precede a run in the same stream, but not one in a side stream.
  if (!share->is_beside) return true;
  // The launch lock keeps last_use constant. mp_device_completed acquires, so those runs have
  // finished reading before the run in the side stream writes.
  return atomic_load(&storage->last_use) <= mp_device_completed(share->device);
}

// Sets the storage of result r: that of the donated parameter, or a new one. Either way the result
// gets a hold of its own, so undoing only has to release that hold.
static mp_status_t launch_share_make_result_storage(mp_launch_state_t *l, mp_launch_share_t *share,
                                                    uint32_t r, mp_storage_t **out_storage) {
  const mp_program_io_t *io = &l->executable->program->results[r];
  mp_memory_t *memory = mp_device_memory(share->device, io->memory);
  mp_launch_argument_t *argument = io->alias >= 0 ? &share->arguments[io->alias] : NULL;
  if (argument != NULL && launch_share_may_take_over(share, argument, io)) {
    *out_storage = mp_storage_retain(argument->storage);
    share->run->results[r] = (*out_storage)->data;
    return NULL;
  }
  mp_status_t status = mp_storage_create_result(memory, io->bytes, launch_share_blocks_after(share),
                                                l->executable->labels[r], out_storage);
  if (status != NULL) return mp_program_blame_result(l->executable->program, r, status);
  // Queued runs may still use its block: if this launch fails, the block is free only when they are
  // over.
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

static mp_status_t launch_share_make_results(mp_launch_state_t *l, mp_launch_share_t *share) {
  const mp_program_t *program = l->executable->program;
  mp_event_t *definition = l->check == NULL ? share->run->event : mp_replica_check_done(l->check);
  for (uint32_t r = 0; r < program->num_results; ++r) {
    const mp_program_io_t *io = &program->results[r];
    mp_storage_t *storage;
    MP_RETURN_IF_ERROR(launch_share_make_result_storage(l, share, r, &storage));
    MP_RETURN_IF_ERROR(mp_buffer_make_of(mp_device_memory(share->device, io->memory),
                                         l->executable->forms[r], storage, definition,
                                         &share->results[r]));
    share->results[r]->is_behind_call = l->order.is_behind_call;
    share->num_results = r + 1;
    share->run->bytes += io->bytes;
  }
  return NULL;
}

static mp_status_t launch_share_find_session(mp_launch_state_t *l, mp_launch_share_t *share) {
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

// The arena counts as much as the described chip would need, if that is known. Then a run fits in
// memory exactly if the described chip's compiler would accept it.
static mp_status_t launch_share_take_arena(mp_launch_state_t *l, mp_launch_share_t *share) {
  const mp_program_t *program = l->executable->program;
  const mp_chip_memory_t *planned = mp_executable_memory(l->executable);
  const uint64_t charge = planned != NULL ? planned->device.temporaries : program->arena_bytes;
  const uint64_t bytes = program->arena_bytes == 0 && charge > 0 ? 1 : program->arena_bytes;
  if (bytes == 0) return NULL;
  mp_status_t status =
      mp_memory_alloc_as(mp_device_memory(share->device, MP_MEMORY_DEVICE), bytes, charge,
                         launch_share_blocks_after(share), &l->arena_label, &share->arena);
  if (status != NULL) return mp_program_blame_temporaries(program, status);
  share->run->arena = share->arena->data;
  return NULL;
}

static mp_status_t launch_share_make_memory(mp_launch_state_t *l, mp_launch_share_t *share) {
  MP_RETURN_IF_ERROR(launch_share_take_arena(l, share));
  return launch_share_make_results(l, share);
}

// If an argument has already failed, its error is the cause, not the lack of memory: what failed
// before may be what fills the memory. Consumes `status`.
static mp_status_t launch_share_find_cause(const mp_launch_state_t *l,
                                           const mp_launch_share_t *share, mp_status_t status) {
  if (mp_status_code(status) != MP_RESOURCE_EXHAUSTED) return status;
  for (uint32_t p = 0; p < l->executable->program->num_params; ++p) {
    mp_event_t *definition = share->buffers[p]->definition;
    mp_status_t cause = mp_event_is_ready(definition) ? mp_event_status(definition) : NULL;
    if (cause == NULL) continue;
    mp_status_release(status);
    return cause;
  }
  return status;
}

mp_status_t mp_launch_share_prepare(mp_launch_state_t *l, mp_launch_share_t *share) {
  MP_RETURN_IF_ERROR(mp_run_create(l->executable, share->logical, &share->run));
  share->run->launch = l->claim;
  share->run->context = mp_foreign_context_retain(l->launch->context);
  share->run->others = l->launch->others;
  share->run->is_behind_call = l->order.is_behind_call;
  share->is_beside = mp_call_goes_beside(share->device, l->order);
  if (share->is_beside) {
    MP_RETURN_IF_ERROR(
        mp_side_stream_get(share->device, l->executable->may_block, &share->run->device));
  }
  MP_RETURN_IF_ERROR(launch_share_find_session(l, share));
  MP_RETURN_IF_ERROR(launch_share_take_arguments(l, share));
  MP_RETURN_IF_ERROR(launch_share_make_holds(l, share));
  mp_status_t status = launch_share_make_memory(l, share);
  return status == NULL ? NULL : launch_share_find_cause(l, share, status);
}

// ---- Undoing and committing ----

void mp_launch_share_undo(mp_launch_share_t *share) {
  for (uint32_t r = 0; r < share->num_results; ++r) mp_buffer_release(share->results[r]);
  if (share->arena != NULL) {
    mp_memory_free(mp_device_memory(share->device, MP_MEMORY_DEVICE), share->arena,
                   share->device->enqueued);
  }
  for (uint32_t p = 0; p < share->num_taken; ++p) {
    mp_launch_argument_t *argument = &share->arguments[p];
    if (argument->is_donated) {
      argument->storage = mp_buffer_untake(share->buffers[p], argument->storage);
    }
  }
  if (share->run->device != share->device) share->run->device->enqueued -= 1;
  mp_run_release(share->run);
}

// The run gets its number. From now on its place in the stream keeps its memory.
static void launch_share_commit_in_stream(mp_launch_state_t *l, mp_launch_share_t *share) {
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

// The same for a side stream: the run holds all its memory itself.
static void launch_share_commit_beside(const mp_launch_state_t *l, mp_launch_share_t *share) {
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

static void launch_share_commit_shapes(const mp_launch_state_t *l, mp_launch_share_t *share) {
  const mp_program_t *program = l->executable->program;
  for (uint32_t p = 0; p < program->num_params; ++p) {
    mp_shape_run_add_param(share->run->shape_run, share->arguments[p].storage);
  }
  for (uint32_t r = 0; r < program->num_results; ++r) {
    mp_shape_run_add_result(share->run->shape_run, share->results[r]->storage);
  }
}

void mp_launch_share_commit(mp_launch_state_t *l, mp_launch_share_t *share) {
  const mp_program_t *program = l->executable->program;
  mp_run_t *run = share->run;
  MP_ASSERT(share->num_taken == program->num_params && share->num_results == program->num_results);
  if (run->shape_run != NULL) launch_share_commit_shapes(l, share);
  if (share->is_beside) {
    launch_share_commit_beside(l, share);
  } else {
    launch_share_commit_in_stream(l, share);
  }
  for (uint32_t r = 0; r < program->num_results; ++r) {
    // A storage that was taken over belonged to another result, or to an array from the host.
    mp_storage_t *storage = share->results[r]->storage;
    mp_label_t *label = l->executable->labels[r];
    if (storage->label != label) mp_storage_relabel(storage, label);
  }
  if (l->executable->has_collectives) {
    mp_device_set_join(l->executable->set, share->logical, run->session, run->device, run);
  } else if (run->session != NULL) {
    (void)mp_session_join(run->session, share->logical, run->device, run);
  }
  if (l->launch->caller != NULL && run->session != NULL) {
    mp_session_name_caller(run->session, l->launch->caller);
  }
  mp_run_enqueue(run);
}
