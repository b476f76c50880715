// The engine: UCX's active messages between this process and its peers, by rank.
//
// A message is a small header and data. Small messages of one peer come in order, large ones when
// they are complete. The functions are called by one thread at a time; what they call back is
// called within mp_ucx_engine_progress, mp_ucx_engine_send and mp_ucx_engine_close alone.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_UCX_UCX_ENGINE_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_UCX_UCX_ENGINE_H_

#include "collectives/transport/ucx/ucx_library.h"

typedef struct mp_ucx_engine_s mp_ucx_engine_t;

// The first member of the caller's record of a send or a fetch; only the engine uses it.
typedef struct {
  mp_ucx_engine_t *engine;
} mp_ucx_item_t;

typedef struct {
  // A message has arrived, from any sender that could reach this host. `data` (NULL when bytes is
  // 0) is a handle, for mp_ucx_engine_fetch or mp_ucx_engine_refuse; true: it is kept for one of
  // them, after this call; false: the message is dropped. `is_here`: `data` are the bytes
  // themselves, too, during the call, as `header` is.
  bool (*came)(void *context, const void *header, size_t header_bytes, void *data, size_t bytes,
               bool is_here);
  // The send or fetch that was begun with `item` is over; the memory is the caller's again. Not OK:
  // it failed.
  void (*sent)(void *context, mp_ucx_item_t *item, mp_ucs_status_t status);
  void (*fetched)(void *context, mp_ucx_item_t *item, mp_ucs_status_t status);
  // The connection with a peer is broken, or has been ended by it. Called once, maybe while a send
  // to the peer begins; messages in flight fail afterwards or have failed.
  void (*failed)(void *context, uint32_t rank, mp_ucs_status_t status);
} mp_ucx_callbacks_t;

// An engine for up to `num_peers` ranks, listening. UNAVAILABLE when UCX finds no way out of this
// host; RESOURCE_EXHAUSTED when memory is short.
MP_NODISCARD mp_status_t mp_ucx_engine_create(const mp_ucx_library_t *library, uint32_t num_peers,
                                              const mp_ucx_callbacks_t *callbacks, void *context,
                                              mp_ucx_engine_t **out_engine);
// The address of this process for others: bytes that live as long as the engine does.
void mp_ucx_engine_address(const mp_ucx_engine_t *engine, const void **out_bytes, size_t *out_size);
// Names a peer, by its address; the connection is made with the first message. UNAVAILABLE when the
// two have no network in common.
MP_NODISCARD mp_status_t mp_ucx_engine_connect(mp_ucx_engine_t *engine, uint32_t rank,
                                               const void *address);

// Forgets a peer and breaks its connection, if there still is one, so that another process can be
// named in its place; messages in flight to it fail.
void mp_ucx_engine_forget(mp_ucx_engine_t *engine, uint32_t rank);

// Begins to send. `header` (which counts as part of the item) and `data` stay until `sent`, which
// may be called before this returns. False: memory is short, and nothing was begun.
bool mp_ucx_engine_send(mp_ucx_engine_t *engine, uint32_t rank, const void *header,
                        size_t header_bytes, const void *data, size_t bytes, mp_ucx_item_t *item);
// Begins to write the data of a message to `memory`. `fetched` may be called before this returns.
// False: memory is short, and the handle is as it was.
bool mp_ucx_engine_fetch(mp_ucx_engine_t *engine, void *data, void *memory, size_t bytes,
                         mp_ucx_item_t *item);
// Drops the kept data of a message.
void mp_ucx_engine_refuse(mp_ucx_engine_t *engine, void *data);

// Sends and receives as much as possible without waiting; true when it did any of that.
bool mp_ucx_engine_progress(mp_ucx_engine_t *engine);
// Ends the use of UCX. Nothing is called back any more, and UCX touches no memory of the caller's
// afterwards: messages in flight are dropped. Data that were kept are gone. With `is_settled`, the
// caller promises that all connections that were begun are complete, that no message is in flight
// on them and that none has failed: they are broken now. Otherwise they end with the process: UCX
// 1.13 aborts when a connection is broken that is still being made. No effect when repeated.
void mp_ucx_engine_close(mp_ucx_engine_t *engine, bool is_settled);
// Frees it, after closing it unsettled if it is not closed. NULL: nothing.
void mp_ucx_engine_release(mp_ucx_engine_t *engine);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_UCX_UCX_ENGINE_H_
