// The buffers and events of a refused launch, all failed.
#include "sim/runtime/buffers/buffer_impl.h"
#include "sim/runtime/devices/unread.h"
#include "sim/runtime/launch/launch.h"
#include "sim/runtime/runs/executable_impl.h"

// The failed results of one device, and its event.
static mp_status_t launch_failure_make(mp_executable_t *executable, mp_device_t *device,
                                       mp_status_t error, mp_buffer_t **out_results,
                                       mp_event_t **out_done) {
  const mp_program_t *program = executable->program;
  mp_event_t *event = NULL;
  MP_RETURN_IF_ERROR(mp_event_create(&event));
  mp_unread_add(error);
  mp_event_set(event, mp_status_retain(error));
  mp_status_t status = NULL;
  uint32_t count = 0;
  while (count < program->num_results && status == NULL) {
    const mp_program_io_t *io = &program->results[count];
    mp_buffer_t *buffer = NULL;
    status = mp_buffer_make_of(mp_device_memory(device, io->memory), executable->forms[count], NULL,
                               event, &buffer);
    if (status == NULL) out_results[count++] = buffer;
  }
  if (status != NULL) {
    while (count-- > 0) mp_buffer_release(out_results[count]);
    mp_event_release(event);
    return status;
  }
  if (out_done != NULL) {
    *out_done = event;
  } else {
    mp_event_release(event);
  }
  return NULL;
}

mp_status_t mp_executable_fail(mp_executable_t *executable, const mp_launch_t *launch,
                               mp_status_t error, mp_buffer_t **const *out_results,
                               mp_event_t **out_done) {
  const uint32_t count = launch->logical == NULL ? executable->num_local : launch->num_devices;
  const uint32_t *logical = launch->logical == NULL ? executable->local : launch->logical;
  mp_status_t status = NULL;
  uint32_t i = 0;
  while (i < count && status == NULL) {
    mp_device_t *device = mp_executable_device(executable, logical[i]);
    status = launch_failure_make(executable, device, error, out_results[i],
                                 out_done == NULL ? NULL : &out_done[i]);
    i += status == NULL;
  }
  while (status != NULL && i-- > 0) {
    for (uint32_t r = 0; r < executable->program->num_results; ++r)
      mp_buffer_release(out_results[i][r]);
    if (out_done != NULL) mp_event_release(out_done[i]);
  }
  return status;
}
