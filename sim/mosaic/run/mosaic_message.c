// Remote DMAs and signals to devices of other processes: what they do there, as bytes.
#include <string.h>

#include "sim/kernels/shape.h"
#include "sim/mosaic/run/mosaic_peers.h"
#include "sim/mosaic/run/mosaic_step.h"
#include "sim/mosaic/run/mosaic_view.h"

// The elements to copy follow, at mp_round_up_64(sizeof(header_t)).
typedef struct {
  uint64_t bytes;         // of the elements; 0: a signal
  mp_mosaic_view_t view;  // its base is not set
  mp_mosaic_spot_t target, semaphore;
  int64_t count;  // that is added to the semaphore
  uint32_t from, instruction;
} header_t;

typedef struct {
  header_t header;
  const mp_mosaic_view_t *from;  // NULL: a signal
  mp_dtype_t dtype;
} message_t;

static mp_status_t mosaic_message_write(const void *context, void *out_data) {
  const message_t *message = context;
  char *data = out_data;
  memcpy(data, &message->header, sizeof(message->header));
  if (message->from == NULL) return NULL;
  return mp_mosaic_view_dma_read(message->from, message->dtype,
                                 data + mp_round_up_64(sizeof(header_t)));
}

static mp_status_t mosaic_message_send(mp_mosaic_state_t *state, uint32_t device,
                                       const mp_mosaic_view_t *semaphore, message_t *message) {
  const mp_mosaic_peers_t *peers = state->peers;
  const bool is_lasting = semaphore->root == MP_MOSAIC_BARRIER || semaphore->root == MP_MOSAIC_ENDS;
  message->header.from = state->device;
  return peers->link.send(peers->link.context, device, is_lasting, mosaic_message_write, message,
                          mp_round_up_64(sizeof(header_t)) + (size_t)message->header.bytes);
}

mp_status_t mp_mosaic_message_signal(mp_mosaic_state_t *state, uint32_t device,
                                     const mp_mosaic_view_t *semaphore, int64_t count) {
  mp_mosaic_peers_t *peers = state->peers;
  message_t message = {.header.count = count};
  mp_lock(&peers->lock);
  mp_status_t status =
      mp_mosaic_peers_spot(peers, state->device, semaphore, &message.header.semaphore);
  mp_unlock(&peers->lock);
  return status != NULL ? status : mosaic_message_send(state, device, semaphore, &message);
}

mp_status_t mp_mosaic_message_copy(mp_mosaic_state_t *state, uint32_t device,
                                   const mp_mosaic_instruction_t *in) {
  mp_mosaic_peers_t *peers = state->peers;
  const mp_mosaic_view_t *to = &state->views[in->b], *semaphore = &state->views[in->c];
  message_t message = {.from = &state->views[in->a],
                       .dtype = (mp_dtype_t)in->dtype,
                       .header.count = mp_mosaic_async_amount(in, state, MP_MOSAIC_COUNTS_TARGET),
                       .header.view = *to};
  header_t *header = &message.header;
  mp_lock(&peers->lock);
  mp_status_t status = mp_mosaic_peers_spot(peers, state->device, semaphore, &header->semaphore);
  if (status == NULL) status = mp_mosaic_peers_spot(peers, state->device, to, &header->target);
  mp_unlock(&peers->lock);
  MP_RETURN_IF_ERROR(status);
  header->view.base = NULL;
  if (peers->watched != NULL) {
    header->instruction = (uint32_t)(in - peers->watched->instructions);
  }
  header->bytes = (uint64_t)(mp_mosaic_view_count(to) * to->element);
  return mosaic_message_send(state, device, semaphore, &message);
}

// Under the lock: tells the device's check of a DMA.
static mp_status_t mosaic_message_tell(mp_mosaic_peers_t *peers, uint32_t device,
                                       const header_t *header, const int64_t *semaphore) {
  if (peers->watched == NULL) return NULL;
  if (header->instruction >= peers->watched->num_instructions ||
      header->from >= peers->link.num_devices) {
    return mp_status_make(MP_INVALID_ARGUMENT, "a message of another program");
  }
  const mp_mosaic_incoming_t incoming = {.from = header->from,
                                         .in = &peers->watched->instructions[header->instruction],
                                         .target = header->view,
                                         .semaphore = semaphore,
                                         .amount = header->count};
  return mp_mosaic_peers_add_incoming(peers, device, &incoming);
}

mp_status_t mp_mosaic_message_take(mp_mosaic_peers_t *peers, uint32_t device, const void *data,
                                   size_t bytes) {
  const char *elements = (const char *)data + mp_round_up_64(sizeof(header_t));
  header_t header;
  char *semaphore = NULL;
  if (bytes < mp_round_up_64(sizeof(header))) {
    return mp_status_make(MP_INVALID_ARGUMENT, "a message of %zu bytes", bytes);
  }
  memcpy(&header, data, sizeof(header));
  if (header.bytes != bytes - mp_round_up_64(sizeof(header))) {
    return mp_status_make(MP_INVALID_ARGUMENT, "a message of %zu bytes", bytes);
  }
  mp_lock(&peers->lock);
  mp_status_t status = mp_mosaic_peers_find(peers, device, &header.semaphore, &semaphore);
  if (status == NULL && header.bytes != 0) {
    status = mp_mosaic_peers_find(peers, device, &header.target, &header.view.base);
  }
  if (status == NULL && header.bytes != 0) {
    status = mosaic_message_tell(peers, device, &header, (const int64_t *)semaphore);
  }
  mp_unlock(&peers->lock);
  if (status == NULL && header.bytes != 0)
    status = mp_mosaic_view_dma_write(&header.view, elements);
  MP_RETURN_IF_ERROR(status);
  mp_lock(&peers->lock);
  (void)mp_mosaic_peers_signal(peers, device, (int64_t *)semaphore, header.count);
  mp_unlock(&peers->lock);
  return NULL;
}
