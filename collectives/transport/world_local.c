// Worlds within one process. Those of one host are connected by the shared-memory transport, as
// real ranks are; the transport here takes the place of the network and hands copies to the other
// world.
#include "collectives/transport/world_local.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectives/transport/shm.h"
#include "collectives/transport/world_impl.h"
#include "sim/base/alloc.h"
#include "sim/base/assert.h"

// All worlds of one mp_worlds_create_local, for as long as one of them is open.
typedef struct {
  atomic_uint references;
  mp_lock_t lock;  // of worlds[]
  uint32_t size;
  mp_world_t *worlds[];  // NULL once closed
} local_job_t;

typedef struct {
  mp_transport_t base;
  mp_world_t *world;
  local_job_t *job;
} local_transport_t;

static void world_local_release_job(local_job_t *job) {
  // Release and acquire, by the default: the last one frees it after all others are done with it.
  if (atomic_fetch_sub(&job->references, 1) != 1) return;
  mp_lock_deinit(&job->lock);
  mp_free(job);
}

static mp_packet_t *world_local_copy_packet(mp_world_t *to, uint32_t from,
                                            const mp_envelope_t *envelope,
                                            mp_payload_block_t *block) {
  size_t bytes = block == NULL ? 0 : block->payload.bytes;
  if (bytes <= MP_INLINE_BYTES) {
    return mp_packet_create_inline(to, from, envelope,
                                   bytes == 0 ? NULL : mp_payload_block_data(block), bytes);
  }
  mp_payload_block_t *copy = mp_payload_block_create(bytes);
  if (copy == NULL) return NULL;
  memcpy(mp_payload_block_data(copy), mp_payload_block_data(block), bytes);
  mp_packet_t *packet = mp_packet_create(to, from, envelope, copy);
  if (packet == NULL) mp_payload_block_release(copy);
  return packet;
}

static mp_status_t world_local_send(mp_transport_t *transport, uint32_t to,
                                    const mp_envelope_t *envelope, mp_payload_block_t *block) {
  local_transport_t *self = (local_transport_t *)transport;
  const mp_world_t *own = self->world;
  mp_status_t status = NULL;
  // Held while the packet goes into the other's inbox: a world that closes takes itself out under
  // it, and is there until then.
  mp_lock(&self->job->lock);
  MP_ASSERT(to < self->job->size);
  mp_world_t *other = self->job->worlds[to];
  if (other != NULL) {
    mp_packet_t *packet = world_local_copy_packet(other, own->rank, envelope, block);
    if (packet == NULL) {
      status = mp_status_out_of_memory();
    } else {
      mp_world_post(other, packet);
    }
  }
  mp_unlock(&self->job->lock);
  return status;
}

static bool world_local_progress(mp_transport_t *transport) {
  (void)transport;
  return false;
}

static bool world_local_drained(mp_transport_t *transport) {
  (void)transport;
  return true;
}

static void world_local_release(mp_transport_t *transport) {
  local_transport_t *self = (local_transport_t *)transport;
  world_local_release_job(self->job);
  mp_free(self);
}

static const mp_transport_ops_t g_local_ops = {
    .name = "local",
    .send = world_local_send,
    .progress = world_local_progress,
    .drained = world_local_drained,
    .release = world_local_release,
};

static mp_status_t world_local_add_world(local_job_t *job, uint32_t rank, uint32_t ranks_per_host) {
  mp_world_t *world = NULL;
  MP_RETURN_IF_ERROR(mp_world_create(rank, job->size, &world));
  job->worlds[rank] = world;
  local_transport_t *transport = mp_malloc(sizeof(*transport));
  MP_RETURN_IF_NULL(transport);
  *transport = (local_transport_t){.base.ops = &g_local_ops, .world = world, .job = job};
  atomic_fetch_add(&job->references, 1);
  mp_world_add_transport(world, &transport->base);
  world->num_hosts = (job->size + ranks_per_host - 1) / ranks_per_host;
  for (uint32_t i = 0; i < job->size; ++i) {
    uint32_t host = i / ranks_per_host;
    uint32_t left = job->size - host * ranks_per_host;
    world->peers[i].peer = (mp_peer_t){
        .host = host,
        .rank_on_host = i % ranks_per_host,
        .ranks_on_host = left < ranks_per_host ? left : ranks_per_host,
        .pid = getpid(),
        .hostname = "local",
    };
    world->peers[i].transport = i == rank ? NULL : &transport->base;
  }
  uint32_t num_near = world->peers[rank].peer.ranks_on_host;
  if (num_near == 1) return NULL;
  MP_RETURN_IF_ERROR(mp_segment_create(num_near, num_near, &world->segment));
  world->doorbell = mp_segment_doorbell(world->segment);
  mp_transport_t *shm = NULL;
  MP_RETURN_IF_ERROR(mp_shm_create(world, world->segment, 0, &shm));
  mp_world_add_transport(world, shm);
  return NULL;
}

// Connects a world with the others of its host. They share one mapping of each segment.
static mp_status_t world_local_connect_world(local_job_t *job, mp_world_t *world) {
  for (uint32_t i = 0; i < job->size; ++i) {
    const mp_peer_t *peer = &world->peers[i].peer;
    if (i == world->rank || peer->host != world->peers[world->rank].peer.host) continue;
    world->peers[i].transport = world->transports[1];
    MP_RETURN_IF_ERROR(
        mp_shm_add_peer(world->transports[1], i, job->worlds[i]->segment, peer->pid));
  }
  return NULL;
}

mp_status_t mp_worlds_create_local(uint32_t size, uint32_t ranks_per_host,
                                   mp_world_t **out_worlds) {
  local_job_t *job = mp_calloc(1, sizeof(*job) + size * sizeof(mp_world_t *));
  MP_RETURN_IF_NULL(job);
  atomic_init(&job->references, 1);
  mp_lock_init(&job->lock, MP_LOCK_LOCAL_JOB);
  job->size = size;
  mp_status_t status = NULL;
  for (uint32_t i = 0; i < size && status == NULL; ++i) {
    status = world_local_add_world(job, i, ranks_per_host);
  }
  for (uint32_t i = 0; i < size && status == NULL; ++i) {
    status = world_local_connect_world(job, job->worlds[i]);
  }
  for (uint32_t i = 0; i < size && status == NULL; ++i) status = mp_world_start(job->worlds[i]);
  for (uint32_t i = 0; i < size; ++i) {
    if (status == NULL) {
      out_worlds[i] = job->worlds[i];
    } else {
      mp_world_release(job->worlds[i]);
    }
  }
  world_local_release_job(job);
  return status;
}

void mp_world_close(mp_world_t *world) {
  if (world == NULL) return;
  mp_world_say_goodbye(world, 0);
  (void)mp_world_drain(world, 10);
  local_transport_t *transport = (local_transport_t *)world->transports[0];
  mp_lock(&transport->job->lock);
  transport->job->worlds[world->rank] = NULL;
  mp_unlock(&transport->job->lock);
  mp_world_release(world);
}
