#include "collectives/transport/bootstrap/near.h"

#include <inttypes.h>

#include "collectives/transport/shm.h"
#include "collectives/transport/world_impl.h"

void mp_near_number_hosts(mp_world_t *world, const int64_t *leaders) {
  world->num_hosts = 0;
  for (uint32_t rank = 0; rank < world->size; ++rank) {
    mp_peer_t *peer = &world->peers[rank].peer;
    mp_peer_t *leader = &world->peers[leaders[rank]].peer;
    if (leaders[rank] == rank) {
      peer->host = world->num_hosts++;
      peer->ranks_on_host = 0;
    }
    peer->host = leader->host;
    peer->rank_on_host = leader->ranks_on_host++;
  }
  for (uint32_t rank = 0; rank < world->size; ++rank) {
    world->peers[rank].peer.ranks_on_host = world->peers[leaders[rank]].peer.ranks_on_host;
  }
}

mp_status_t mp_near_open(mp_world_t *world, void *const *hellos, const int64_t *leaders,
                         mp_segment_t **segments) {
  for (uint32_t rank = 0; rank < world->size; ++rank) {
    if (rank == world->rank || leaders[rank] != leaders[world->rank]) continue;
    const mp_hello_t *hello = hellos[rank];
    if (world->segment == NULL || hello->address.pid == 0) {
      return mp_status_make(MP_UNAVAILABLE, "rank %" PRIu32 " has no memory to share",
                            world->segment == NULL ? world->rank : rank);
    }
    mp_status_t status = mp_segment_open(&hello->address, &segments[rank]);
    if (status != NULL) return mp_status_annotate(status, "rank %" PRIu32, rank);
  }
  return NULL;
}

mp_status_t mp_near_connect(mp_world_t *world, void *const *hellos, mp_segment_t **segments,
                            double grace_s) {
  mp_transport_t *shm = NULL;
  MP_RETURN_IF_ERROR(mp_shm_create(world, world->segment, grace_s, &shm));
  mp_status_t status = NULL;
  for (uint32_t rank = 0; rank < world->size && status == NULL; ++rank) {
    if (segments[rank] == NULL) continue;
    status =
        mp_shm_add_peer(shm, rank, segments[rank], ((const mp_hello_t *)hellos[rank])->process.pid);
  }
  mp_world_add_transport(world, shm);  // the world owns it in any case
  for (uint32_t rank = 0; rank < world->size && status == NULL; ++rank) {
    // Stored after everything that shm_send reads. Earlier packets by MPI may arrive after packets
    // by this transport, but they belong to the agreement of joining, whose packets are found by
    // number.
    if (segments[rank] != NULL) atomic_store(&world->peers[rank].transport, shm);
  }
  return status;
}
