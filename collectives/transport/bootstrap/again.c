#include "collectives/transport/bootstrap/again.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "collectives/transport/bootstrap/far.h"
#include "collectives/transport/hosts/ucx.h"
#include "collectives/transport/shm.h"
#include "collectives/transport/world_return.h"
#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"

// How long a predecessor that is still alive may take to end.
static const double k_patience_seconds = 1;
static const double k_look_seconds = 0.01;

// ---- Hosts ----

static bool again_is_near(const mp_again_t *again, uint32_t rank) {
  return again->leaders[rank] == again->leaders[again->talk->rank];
}

static bool again_has_far(const mp_again_t *again) {
  bool has_far = false;
  for (uint32_t rank = 0; rank < again->talk->size; ++rank) has_far |= !again_is_near(again, rank);
  return has_far;
}

mp_status_t mp_again_check_predecessor(uint32_t rank, const mp_hello_t *hello) {
  const double patience = mp_clock_seconds() + k_patience_seconds;
  for (;;) {
    mp_segment_t *segment = NULL;
    mp_status_t status = mp_segment_open(&hello->address, &segment);
    mp_segment_release(segment);
    if (status != NULL) {  // it has ended, or is on another host
      mp_status_ignore(status);
      return NULL;
    }
    if (mp_clock_seconds() > patience) break;
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  }
  return mp_status_make(MP_ALREADY_EXISTS,
                        "another process (pid %" PRId64
                        " on host %.63s) has joined as process "
                        "%" PRIu32 " (node_id) already, and has not ended",
                        hello->process.pid, hello->hostname, rank);
}

// Processes that shared memory with the predecessor expect to share memory with this process, too.
static mp_status_t again_check_host(const mp_again_t *again) {
  const uint32_t self = again->talk->rank;
  const mp_hello_t *before = &again->hellos[self];
  if (mp_hello_is_same_host(before, &again->own)) return NULL;
  bool is_alone = true;
  for (uint32_t rank = 0; rank < again->talk->size && is_alone; ++rank) {
    if (rank == self) continue;
    is_alone =
        !again_is_near(again, rank) && !mp_hello_is_same_host(&again->hellos[rank], &again->own);
  }
  if (is_alone) return NULL;
  return mp_status_make(MP_FAILED_PRECONDITION,
                        "process %" PRIu32
                        " was restarted on host %.63s, but ran on host %.63s before: it shares "
                        "memory with others on one of these hosts, so restart it where it was",
                        self, again->own.hostname, before->hostname);
}

// ---- The store ----

static void again_folder(char folder[MP_STORE_FOLDER_BYTES], uint64_t incarnation,
                         const char *what) {
  snprintf(folder, MP_STORE_FOLDER_BYTES, "minipod/again/%016" PRIx64 "/%s", incarnation, what);
}

static mp_status_t again_tell(const mp_again_t *again, const char *what, mp_str_t bytes) {
  char folder[MP_STORE_FOLDER_BYTES];
  again_folder(folder, again->own.job, what);
  return mp_store_tell(again->talk, folder, NULL, bytes);
}

// The folder of restarted processes, or of the first ones (`first`).
static mp_status_t again_hear(const mp_again_t *again, uint32_t rank, uint64_t incarnation,
                              const char *what, const char *first, mp_strbuf_t *bytes) {
  char folder[MP_STORE_FOLDER_BYTES];
  again_folder(folder, incarnation, what);
  return mp_store_hear(again->talk, incarnation == 0 ? first : folder, rank, bytes);
}

static mp_status_t again_hear_hello(const mp_again_t *again, uint32_t rank, uint64_t incarnation,
                                    mp_hello_t *out_hello) {
  if (incarnation == 0) {
    *out_hello = again->hellos[rank];
    return NULL;
  }
  mp_strbuf_t bytes;
  mp_strbuf_init(&bytes);
  mp_status_t status = again_hear(again, rank, incarnation, "hello", NULL, &bytes);
  if (status == NULL) {
    const mp_str_t own = {(const char *)&again->own, sizeof(again->own)};
    status = mp_hello_compare(again->talk->rank, own, rank, (mp_str_t){bytes.data, bytes.size});
  }
  if (status == NULL) memcpy(out_hello, bytes.data, sizeof(*out_hello));
  mp_strbuf_deinit(&bytes);
  return status;
}

// ---- Knocking ----

static mp_knock_t again_knock(const mp_again_t *again, bool is_near) {
  mp_knock_t knock;
  memset(&knock, 0, sizeof(knock));
  knock.incarnation = again->own.job;
  knock.rank = again->talk->rank;
  knock.pid = again->own.process.pid;
  if (is_near) knock.address = again->own.address;
  memcpy(knock.hostname, again->own.hostname, sizeof(knock.hostname));
  return knock;
}

// A live process, while this one knocks at it.
typedef struct {
  uint32_t rank;
  uint64_t incarnation;
  mp_segment_t *segment;  // near
} again_door_t;

static void again_pause(void) {
  nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

// Knocks at one of this host. UNAVAILABLE when it has ended.
static mp_status_t again_knock_near(const mp_again_t *again, mp_transport_t *shm,
                                    const mp_hello_t *hello, again_door_t *door) {
  MP_RETURN_IF_ERROR(mp_segment_open(&hello->address, &door->segment));
  MP_RETURN_IF_ERROR(mp_shm_add_peer(shm, door->rank, door->segment, hello->process.pid));
  atomic_store(&again->world->peers[door->rank].transport, shm);
  const mp_knock_t knock = again_knock(again, true);
  while (!mp_shm_knock(shm, door->segment, &knock)) {
    if (mp_clock_seconds() > again->talk->deadline) break;  // reported by the wait
    again_pause();
  }
  return NULL;
}

static mp_status_t again_knock_far(const mp_again_t *again, const again_door_t *door) {
  mp_strbuf_t card;
  mp_strbuf_init(&card);
  mp_status_t status =
      again_hear(again, door->rank, door->incarnation, "card", again->cards, &card);
  if (status == NULL) {
    const mp_knock_t knock = again_knock(again, false);
    status = mp_far_knock(again->world, door->rank, door->incarnation, &card, &knock, again->far);
  }
  mp_strbuf_deinit(&card);
  return status;
}

static mp_status_t again_knock_at(const mp_again_t *again, mp_transport_t *shm,
                                  again_door_t *door) {
  mp_hello_t hello;
  MP_RETURN_IF_ERROR(again_hear_hello(again, door->rank, door->incarnation, &hello));
  // Not if that process was itself restarted, and has knocked here.
  if (again->world->peers[door->rank].peer.hostname == NULL) {
    mp_hello_take(again->world, door->rank, &hello);
  }
  return again_is_near(again, door->rank) ? again_knock_near(again, shm, &hello, door)
                                          : again_knock_far(again, door);
}

// Reads an answer from a process of this host that is no welcome; `out_again`: another try may
// succeed.
static mp_status_t again_read_answer(const mp_again_t *again, mp_transport_t *shm,
                                     const again_door_t *door, bool *out_again) {
  mp_status_code_t code = MP_OK;
  *out_again = false;
  if (door->segment == NULL || !mp_shm_is_answered(shm, door->segment, &code) || code == MP_OK) {
    return NULL;
  }
  *out_again = code == MP_ALREADY_EXISTS || code == MP_RESOURCE_EXHAUSTED;
  char name[MP_PEER_NAME_BYTES];
  mp_world_peer_name(again->world, door->rank, name);
  if (code != MP_ALREADY_EXISTS) {
    return mp_status_make(code, "%s could not accept the restarted process %" PRIu32 " (%s)", name,
                          again->talk->rank, mp_status_code_name(code));
  }
  return mp_status_make(MP_ALREADY_EXISTS,
                        "another process has joined as process %" PRIu32
                        " (node_id) already, and has not ended: %s is connected to it",
                        again->talk->rank, name);
}

// Waits until a live process has welcomed this one. UNAVAILABLE when it is lost.
static mp_status_t again_await(const mp_again_t *again, mp_transport_t *shm,
                               const again_door_t *door, mp_packet_t **out_welcome) {
  const double patience = mp_clock_seconds() + k_patience_seconds;
  for (;;) {
    bool may_try_again;
    MP_RETURN_IF_ERROR(
        mp_world_await_welcome(again->world, door->rank, k_look_seconds, out_welcome));
    if (*out_welcome != NULL) return NULL;
    mp_status_t status = again_read_answer(again, shm, door, &may_try_again);
    const double now = mp_clock_seconds();
    if (status != NULL && (!may_try_again || now > patience)) return status;
    if (status != NULL) {
      mp_status_ignore(status);
      again_pause();
      const mp_knock_t knock = again_knock(again, true);
      (void)mp_shm_knock(shm, door->segment, &knock);
    }
    if (now < again->talk->deadline) continue;
    char name[MP_PEER_NAME_BYTES];
    mp_world_peer_name(again->world, door->rank, name);
    return mp_status_make(MP_DEADLINE_EXCEEDED,
                          "%s has not accepted the restarted process %" PRIu32 " within %g s", name,
                          again->talk->rank, again->talk->timeout_s);
  }
}

// ---- The first live process, and the others ----

// If a process that this one depends on cannot be reached any more, it has ended.
static bool again_is_loss(mp_status_t status) {
  return mp_status_code(status) == MP_UNAVAILABLE;
}

// The welcome of the lowest of the first processes that is still alive.
static mp_status_t again_find_first(const mp_again_t *again, mp_transport_t *shm,
                                    mp_packet_t **out_welcome) {
  mp_status_t why = NULL;
  for (uint32_t rank = 0; rank < again->talk->size; ++rank) {
    if (rank == again->talk->rank) continue;
    again_door_t door = {.rank = rank};
    mp_status_t status = again_knock_at(again, shm, &door);
    if (status == NULL) status = again_await(again, shm, &door, out_welcome);
    mp_segment_release(door.segment);
    if (!again_is_loss(status)) {
      mp_status_ignore(why);
      return status;
    }
    mp_world_miss(again->world, rank, 0, mp_status_retain(status));
    mp_status_ignore(why);
    why = status;
  }
  return mp_status_annotate(
      why,
      "none of the processes that began the job is left to accept the restarted process %" PRIu32,
      again->talk->rank);
}

// Knocks at all other live processes at the same time, and waits for their welcomes.
static mp_status_t again_meet(const mp_again_t *again, mp_transport_t *shm, again_door_t *doors,
                              uint32_t count) {
  mp_status_t status = NULL;
  for (uint32_t i = 0; i < count && status == NULL; ++i) {
    status = again_knock_at(again, shm, &doors[i]);
    if (!again_is_loss(status)) continue;
    mp_world_miss(again->world, doors[i].rank, doors[i].incarnation, status);
    doors[i].rank = again->talk->rank;
    status = NULL;
  }
  for (uint32_t i = 0; i < count && status == NULL; ++i) {
    if (doors[i].rank == again->talk->rank) continue;
    mp_packet_t *welcome = NULL;
    status = again_await(again, shm, &doors[i], &welcome);
    mp_packet_release(welcome);
    if (!again_is_loss(status)) continue;
    mp_status_ignore(status);
    status = NULL;
  }
  for (uint32_t i = 0; i < count; ++i) mp_segment_release(doors[i].segment);
  return status;
}

static mp_status_t again_meet_all(const mp_again_t *again, mp_transport_t *shm) {
  const uint32_t size = again->talk->size;
  mp_packet_t *welcome = NULL;
  MP_RETURN_IF_ERROR(again_find_first(again, shm, &welcome));
  const uint32_t first = welcome->from;
  mp_world_place_t *places = mp_calloc(size, sizeof(*places) + sizeof(again_door_t));
  again_door_t *doors = (again_door_t *)(void *)(places + (places == NULL ? 0 : size));
  mp_status_t status = places == NULL ? mp_status_out_of_memory() : NULL;
  if (status == NULL) status = mp_world_settle(again->world, welcome, places);
  uint32_t count = 0;
  for (uint32_t rank = 0; status == NULL && rank < size; ++rank) {
    if (!places[rank].is_alive || rank == again->talk->rank || rank == first) continue;
    doors[count++] = (again_door_t){.rank = rank, .incarnation = places[rank].incarnation};
  }
  if (status == NULL) status = again_meet(again, shm, doors, count);
  mp_packet_release(welcome);
  mp_free(places);
  return status;
}

// ---- Joining ----

// Opens the transport to other hosts, and publishes this process's address.
static mp_status_t again_open_far(mp_again_t *again) {
  if (!again_has_far(again)) return NULL;
  mp_strbuf_t card, first;
  mp_strbuf_init(&card);
  mp_strbuf_init(&first);
  mp_status_t status = mp_far_open(again->world, &card, &again->far);
  if (status == NULL) status = again_tell(again, "card", (mp_str_t){card.data, card.size});
  // The first process has published the secret of the job.
  if (status == NULL) status = mp_store_hear(again->talk, again->cards, 0, &first);
  if (status == NULL) status = mp_far_take_secret(&first, again->far);
  mp_strbuf_deinit(&first);
  mp_strbuf_deinit(&card);
  return status;
}

// Waits until the others have connected; returns an error of one of them.
static mp_status_t again_await_connected(const mp_again_t *again) {
  mp_strbuf_t bytes;
  mp_strbuf_init(&bytes);
  mp_status_t status = mp_store_hear(again->talk, again->connected, 0, &bytes);
  mp_strbuf_deinit(&bytes);
  return status;
}

mp_status_t mp_again_join(mp_again_t *again) {
  mp_world_t *world = again->world;
  MP_RETURN_IF_ERROR(again_check_host(again));
  MP_RETURN_IF_ERROR(again_await_connected(again));
  if (again->own.job == 0) again->own.job = 1;
  world->peers[world->rank].incarnation = again->own.job;
  mp_world_note_incarnation(world, world->rank, again->own.job);
  MP_RETURN_IF_ERROR(
      again_tell(again, "hello", (mp_str_t){(const char *)&again->own, sizeof(again->own)}));
  MP_RETURN_IF_ERROR(again_open_far(again));
  mp_transport_t *shm = NULL;
  MP_RETURN_IF_ERROR(mp_shm_create(world, world->segment, 0, &shm));
  mp_world_add_transport(world, shm);
  MP_RETURN_IF_ERROR(mp_world_start(world));
  return again_meet_all(again, shm);
}
