// Launching an executable on its devices.

#include "pjrt/c_api/c_api_profiler.h"
#include "pjrt/pjrt_executable.h"
#include "pjrt/pjrt_observer.h"
#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/base/os/clock.h"
#include "sim/runtime/devices/unread.h"
#include "sim/runtime/launch/launch.h"

// A launch's arrays, in one allocation; the pointers point into it.
typedef struct {
  size_t num_devices, num_args, num_results;
  mp_buffer_t **arguments;         // [num_devices * num_args]
  mp_buffer_t *const **by_device;  // [num_devices]
  // [num_devices][num_results]: first in the caller's lists, where the handles come afterwards.
  mp_buffer_t ***results;
  PJRT_Buffer **wrappers;  // [num_devices * num_results], made before the launch
  mp_event_t **done;       // [num_devices]
} arrays_t;

static mp_status_t pjrt_execute_allocate_arrays(const PJRT_LoadedExecutable_Execute_Args *args,
                                                arrays_t *arrays) {
  size_t inputs = arrays->num_devices * arrays->num_args;
  size_t outputs = arrays->num_devices * arrays->num_results;
  void **memory = mp_calloc(inputs + outputs + 3 * arrays->num_devices + 1, sizeof(void *));
  MP_RETURN_IF_NULL(memory);
  arrays->arguments = (mp_buffer_t **)memory;
  arrays->wrappers = (PJRT_Buffer **)(memory + inputs);
  void **rest = memory + inputs + outputs;
  arrays->by_device = (mp_buffer_t *const **)rest;
  arrays->results = (mp_buffer_t ***)(rest + arrays->num_devices);
  arrays->done = (mp_event_t **)(rest + 2 * arrays->num_devices);
  for (size_t d = 0; d < arrays->num_devices; ++d) {
    arrays->by_device[d] = arrays->arguments + d * arrays->num_args;
    if (arrays->num_results != 0) arrays->results[d] = (mp_buffer_t **)args->output_lists[d];
  }
  return NULL;
}

static void pjrt_execute_free_arrays(arrays_t *arrays) {
  mp_free(arrays->arguments);
}

// The runtime compares types in memory order, in which arrays with different layouts may agree. So
// the layouts are compared here.
static mp_status_t pjrt_execute_check_layout(const PJRT_Executable *executable,
                                             const PJRT_Buffer *buffer, size_t index) {
  const PJRT_Layouts_MemoryLayout *wanted = executable->parameter_layouts[index];
  const PJRT_Layouts_MemoryLayout *layout = mp_pjrt_buffer_layout(buffer);
  if (layout == wanted || (layout == NULL && wanted->is_row_major)) return NULL;
  return mp_status_make(
      MP_INVALID_ARGUMENT, "Execute: argument %zu has the layout %s, '%s' requires %s", index,
      layout == NULL ? "row-major" : layout->text, executable->name, wanted->text);
}

static mp_status_t pjrt_execute_read_arguments(const PJRT_LoadedExecutable_Execute_Args *args,
                                               arrays_t *arrays) {
  for (size_t d = 0; d < arrays->num_devices && arrays->num_args > 0; ++d) {
    if (args->argument_lists == NULL || args->argument_lists[d] == NULL) {
      return mp_status_make(MP_INVALID_ARGUMENT, "Execute: no argument list for device %zu", d);
    }
    for (size_t a = 0; a < arrays->num_args; ++a) {
      PJRT_Buffer *buffer = args->argument_lists[d][a];
      if (buffer == NULL) {
        return mp_status_make(MP_INVALID_ARGUMENT, "Execute: argument %zu of device %zu is NULL", a,
                              d);
      }
      MP_RETURN_IF_ERROR(pjrt_execute_check_layout(args->executable->executable, buffer, a));
      arrays->arguments[d * arrays->num_args + a] = buffer->buffer;
    }
  }
  return NULL;
}

static void pjrt_execute_free_wrappers(arrays_t *arrays) {
  for (size_t i = 0; i < arrays->num_devices * arrays->num_results; ++i) {
    mp_pjrt_buffer_destroy(arrays->wrappers[i]);
  }
}

// The launch cannot be made here, but launches that belong to it may have begun on other devices,
// of this process or of others: it counts, and those fail. Returns `status`.
static mp_status_t pjrt_execute_refuse(const PJRT_Executable *executable, const mp_launch_t *what,
                                       mp_status_t status) {
  if (status != NULL) mp_executable_refuse(executable->executable, what, status);
  return status;
}

// Makes wrappers without buffers, so that nothing can fail after the launch.
static mp_status_t pjrt_execute_make_wrappers(const PJRT_Executable *executable, arrays_t *arrays) {
  for (size_t i = 0; i < arrays->num_devices * arrays->num_results; ++i) {
    MP_RETURN_IF_ERROR(mp_pjrt_buffer_wrap(executable->client, NULL,
                                           executable->output_layouts[i % arrays->num_results],
                                           &arrays->wrappers[i]));
  }
  return NULL;
}

// Of this thread's launches.
static _Thread_local uint64_t t_num_donated;

uint64_t mp_pjrt_num_donated(void) {
  return t_num_donated;
}

static void pjrt_execute_store_results(const PJRT_LoadedExecutable_Execute_Args *args,
                                       const arrays_t *arrays) {
  for (size_t d = 0; d < arrays->num_devices; ++d) {
    for (size_t r = 0; r < arrays->num_results; ++r) {
      size_t i = d * arrays->num_results + r;
      MP_ASSERT(arrays->wrappers[i] != NULL && arrays->results[d][r] != NULL);
      mp_pjrt_buffer_fill(arrays->wrappers[i], arrays->results[d][r]);
      args->output_lists[d][r] = arrays->wrappers[i];
    }
    if (args->device_complete_events != NULL) {
      args->device_complete_events[d] = mp_pjrt_event(arrays->done[d]);
    } else {
      mp_event_release(arrays->done[d]);  // NULL unless this call waited
    }
  }
}

// A launch without enough device memory, or one that needs a dead device or link, returns failed
// results instead of an error, like plugins whose devices allocate when they run. JAX raises a
// ValueError for an Execute that fails (in jit's fast path), but always a JaxRuntimeError for a
// failed result.
static mp_status_t pjrt_execute_fail_later(const PJRT_Executable *executable,
                                           const mp_launch_t *what, mp_status_t status,
                                           mp_buffer_t **const *out_results,
                                           mp_event_t **out_done) {
  const mp_status_code_t code = mp_status_code(status);
  if (code != MP_RESOURCE_EXHAUSTED && code != MP_UNAVAILABLE && code != MP_DATA_LOSS) {
    return status;
  }
  if (status == mp_status_out_of_memory()) return status;
  mp_status_t failure =
      mp_executable_fail(executable->executable, what, status, out_results, out_done);
  if (failure != NULL) {
    mp_status_ignore(failure);
    return status;
  }
  mp_status_release(status);
  return NULL;
}

// Waits for a launch as long as mp_executable_patience says. If a program with callbacks has failed
// by then, the call returns the error and releases the results. For other programs the results keep
// the error.
static mp_status_t pjrt_execute_await(mp_executable_t *executable, arrays_t *arrays,
                                      double patience) {
  const double begin = mp_clock_seconds();
  bool are_over = true;
  mp_status_t error = NULL;
  for (size_t d = 0; d < arrays->num_devices && are_over; ++d) {
    are_over = mp_event_wait_for(arrays->done[d], patience - (mp_clock_seconds() - begin));
  }
  mp_executable_note_wait(executable, are_over);
  if (!are_over || !mp_executable_has_callbacks(executable)) return NULL;
  for (size_t d = 0; d < arrays->num_devices; ++d) {
    mp_status_t status = mp_event_status(arrays->done[d]);
    if (status == NULL) continue;
    mp_unread_deliver(status);  // this call returns the error, not an event
    if (error == NULL) {
      error = status;
    } else {
      mp_status_release(status);
    }
  }
  if (error == NULL) return NULL;
  for (size_t d = 0; d < arrays->num_devices; ++d) {
    for (size_t r = 0; r < arrays->num_results; ++r) mp_buffer_release(arrays->results[d][r]);
    mp_event_release(arrays->done[d]);
  }
  return error;
}

static mp_status_t pjrt_execute_launch(const PJRT_LoadedExecutable_Execute_Args *args,
                                       const mp_launch_t *what, arrays_t *arrays) {
  PJRT_Executable *executable = args->executable->executable;
  mp_status_t status = pjrt_execute_read_arguments(args, arrays);
  if (status == NULL) status = pjrt_execute_make_wrappers(executable, arrays);
  status = pjrt_execute_refuse(executable, what, status);
  if (status == NULL) {
    mp_launch_t full = *what;
    full.arguments = arrays->by_device;
    const double patience =
        mp_executable_patience(executable->executable, (uint32_t)arrays->num_devices);
    const bool tells_ends = args->device_complete_events != NULL;
    mp_event_t **done = tells_ends || patience > 0 ? arrays->done : NULL;
    mp_unread_expect_ends(tells_ends);
    const int64_t begin = done != NULL ? mp_pjrt_observe_launch() : 0;
    status = mp_executable_launch(executable->executable, &full, arrays->results, done);
    status = pjrt_execute_fail_later(executable, &full, status, arrays->results, done);
    if (status == NULL && begin != 0) {
      mp_pjrt_observe_launched(begin, executable, what->logical, done, arrays->num_devices);
    }
    if (status == NULL && patience > 0) {
      status = pjrt_execute_await(executable->executable, arrays, patience);
    }
  }
  if (status != NULL) {
    pjrt_execute_free_wrappers(arrays);
    return status;
  }
  t_num_donated +=
      (uint64_t)mp_executable_num_donatable(executable->executable) * what->num_devices;
  pjrt_execute_store_results(args, arrays);
  return NULL;
}

// The executable's devices to run on: all of this process, or the named one.
static mp_status_t pjrt_execute_choose_devices(const PJRT_LoadedExecutable_Execute_Args *args,
                                               mp_launch_t *launch) {
  const PJRT_LoadedExecutable *loaded = args->executable;
  if (args->execute_device == NULL) {
    if (args->num_devices != loaded->num_addressable) {
      return mp_status_make(MP_INVALID_ARGUMENT,
                            "Execute: arguments for %zu devices, but '%s' runs on %zu here",
                            args->num_devices, loaded->executable->name, loaded->num_addressable);
    }
    launch->logical = loaded->logical;
    return NULL;
  }
  if (args->num_devices != 1) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "Execute: one device is named, but there are arguments for %zu",
                          args->num_devices);
  }
  for (size_t i = 0; i < loaded->num_addressable; ++i) {
    if (loaded->addressable_list[i] != args->execute_device) continue;
    launch->logical = &loaded->logical[i];
    return NULL;
  }
  return mp_status_make(MP_INVALID_ARGUMENT, "Execute: '%s' was not compiled for device %d",
                        loaded->executable->name, args->execute_device->description->info->id);
}

// Options that foreign functions read: the launch gets a context with them.
static mp_status_t pjrt_execute_read_custom_options(const PJRT_ExecuteOptions *options,
                                                    mp_launch_t *launch,
                                                    mp_foreign_context_t **out_context) {
  if (!MP_HAS(options, num_custom_options) || options->num_custom_options == 0) return NULL;
  mp_named_value_t *values = NULL;
  MP_RETURN_IF_ERROR(
      mp_pjrt_read_named_values(options->custom_options, options->num_custom_options, &values));
  mp_status_t status = mp_foreign_context_create_with(launch->context, values,
                                                      options->num_custom_options, out_context);
  mp_free(values);
  MP_RETURN_IF_ERROR(status);
  launch->context = *out_context;
  return NULL;
}

// Refuses callbacks, because they would never be called. Launch ids have no meaning here and are
// not read.
// `*out_context` is a context that the launch uses, and that the caller owns; or stays as it is.
static mp_status_t pjrt_execute_read_options(const PJRT_ExecuteOptions *options,
                                             mp_launch_t *launch,
                                             mp_foreign_context_t **out_context) {
  if (options == NULL || !MP_HAS(options, num_non_donatable_input_indices)) return NULL;
  if (options->num_send_ops > 0 || options->num_recv_ops > 0) {
    return mp_status_make(MP_UNIMPLEMENTED,
                          "Execute: host send and recv callbacks are not supported");
  }
  if (MP_HAS(options, num_hlo_output_callbacks) && options->num_hlo_output_callbacks > 0) {
    return mp_status_make(MP_UNIMPLEMENTED, "Execute: output callbacks are not supported");
  }
  if (MP_HAS(options, context)) launch->context = mp_pjrt_execute_context(options->context);
  MP_RETURN_IF_ERROR(pjrt_execute_read_custom_options(options, launch, out_context));
  if (MP_HAS(options, call_location) && options->call_location != NULL && launch->caller == NULL) {
    launch->caller = options->call_location;
  }
  if (MP_HAS(options, incarnation_ids) && options->task_ids != NULL &&
      options->incarnation_ids != NULL) {
    launch->num_tasks = options->num_tasks;
    launch->task_ids = options->task_ids;
    launch->incarnation_ids = options->incarnation_ids;
  }
  if (options->non_donatable_input_indices == NULL) return NULL;
  if (options->num_non_donatable_input_indices > INT32_MAX) {
    return mp_status_make(MP_INVALID_ARGUMENT, "Execute: %zu inputs are not to be donated",
                          options->num_non_donatable_input_indices);
  }
  launch->num_non_donatable = (uint32_t)options->num_non_donatable_input_indices;
  launch->non_donatable = options->non_donatable_input_indices;
  return NULL;
}

// The error of a call that is invalid for all argument values.
static mp_status_t pjrt_execute_check_call(const PJRT_LoadedExecutable_Execute_Args *args) {
  const PJRT_Executable *executable = args->executable->executable;
  if (atomic_load(&args->executable->is_deleted)) {
    return mp_status_make(MP_INVALID_ARGUMENT, "Execute: '%s' was deleted", executable->name);
  }
  const mp_program_t *program = executable->program;
  if (args->num_devices == 0) return NULL;  // no device of this process, no arguments to count
  if (args->num_args != program->num_params) {
    return mp_status_make(MP_INVALID_ARGUMENT, "Execute: '%s' takes %u arguments, not %zu",
                          executable->name, program->num_params, args->num_args);
  }
  if (program->num_results > 0 && args->output_lists == NULL) {
    return mp_pjrt_null_argument("PJRT_LoadedExecutable_Execute", "output_lists");
  }
  return NULL;
}

// The caller's profiler's number of a call, from an extension of its arguments. 0: none.
static int64_t pjrt_execute_traced(const PJRT_Extension_Base *extension) {
  for (; extension != NULL; extension = extension->next) {
    if (extension->type != PJRT_Extension_Type_Profiler) continue;
    const PJRT_Profiler_Extension *profiler =
        (const PJRT_Profiler_Extension *)(const void *)extension;
    const bool has_context =
        extension->struct_size >= PJRT_STRUCT_SIZE(PJRT_Profiler_Extension, traceme_context_id);
    return has_context && profiler->traceme_context_id > 0 ? profiler->traceme_context_id : 0;
  }
  return 0;
}

// XLA's clients compare arguments with parameters by their sizes on the device. Frameworks that
// know only TPUs depend on it: TorchTPU passes a tensor<1xi64> for a tensor<i64>.
static bool pjrt_execute_takes_other_shapes(const PJRT_Executable *executable) {
  return executable->client->topology->platform == MP_PLATFORM_TPU;
}

mp_status_t mp_PJRT_LoadedExecutable_Execute(PJRT_LoadedExecutable_Execute_Args *args) {
  MP_REQUIRE(args, executable);
  const PJRT_Executable *executable = args->executable->executable;
  mp_launch_t what = {.num_devices = (uint32_t)args->num_devices,
                      .caller = mp_pjrt_label(),
                      .others = mp_pjrt_others(),
                      .traced = pjrt_execute_traced(args->extension_start),
                      .takes_other_shapes = pjrt_execute_takes_other_shapes(executable)};
  MP_RETURN_IF_ERROR(pjrt_execute_choose_devices(args, &what));
  // From here on the devices of the launch are known, so a failure counts as a launch on them.
  arrays_t arrays = {.num_devices = args->num_devices,
                     .num_args = args->num_args,
                     .num_results = executable->program->num_results};
  mp_foreign_context_t *context = NULL;
  mp_status_t status = pjrt_execute_check_call(args);
  if (status == NULL) status = pjrt_execute_read_options(args->options, &what, &context);
  if (status == NULL) status = pjrt_execute_allocate_arrays(args, &arrays);
  status = pjrt_execute_refuse(executable, &what, status);
  if (status == NULL) {
    status = pjrt_execute_launch(args, &what, &arrays);
    pjrt_execute_free_arrays(&arrays);
  }
  mp_foreign_context_release(context);
  return status;
}

mp_status_t mp_PJRT_ExecuteContext_Create(PJRT_ExecuteContext_Create_Args *args) {
  mp_foreign_context_t *context = NULL;
  MP_RETURN_IF_ERROR(mp_foreign_context_create(&context));
  args->context = (PJRT_ExecuteContext *)context;
  return NULL;
}

mp_status_t mp_PJRT_ExecuteContext_Destroy(PJRT_ExecuteContext_Destroy_Args *args) {
  mp_foreign_context_release(mp_pjrt_execute_context(args->context));
  return NULL;
}
