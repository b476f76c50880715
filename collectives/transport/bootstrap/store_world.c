#include "collectives/transport/bootstrap/store_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collectives/transport/bootstrap/again.h"
#include "collectives/transport/bootstrap/far.h"
#include "collectives/transport/bootstrap/leave.h"
#include "collectives/transport/bootstrap/near.h"
#include "collectives/transport/store/presence.h"
#include "collectives/transport/world_impl.h"
#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"

// No launcher ends the job when a process has died, so losses are reported at once.
static const double k_loss_grace_seconds = 0;
// The time in which a process that cannot join notifies the processes that it has reached.
static const double k_last_words_seconds = 1;

// The state of joining a world.
typedef struct {
  mp_store_talk_t talk;
  mp_world_t *world;
  mp_hello_t *hellos;       // [size]; all zero until they have come
  void **hello_pointers;    // [size], to them
  int64_t *leaders;         // [size], the lowest rank of each one's host
  mp_segment_t **segments;  // [size], of the others on this host
  mp_transport_t *far;      // to processes on other hosts; NULL: there are none. Owned by the world
  bool is_first;            // this process is in no other world
  mp_presence_t *presence;  // of all processes of the job
  // Known before any message: the folders of hellos, and of errors of processes that fail while
  // others wait for something else from them.
  char greetings[MP_STORE_FOLDER_BYTES], failed[MP_STORE_FOLDER_BYTES];
  char cards[MP_STORE_FOLDER_BYTES], connected[MP_STORE_FOLDER_BYTES];
} store_world_t;

// ---- Steps ----

// The own hello is read, too: so all see the same ones, and the same hosts in them.
static mp_status_t store_world_take_hello(store_world_t *join, uint32_t rank) {
  const mp_hello_t own = join->hellos[join->talk.rank];
  mp_strbuf_t bytes;
  mp_strbuf_init(&bytes);
  mp_status_t status = mp_store_hear(&join->talk, join->greetings, rank, &bytes);
  if (status == NULL) {
    status = mp_hello_compare(join->talk.rank, (mp_str_t){(const char *)&own, sizeof(own)}, rank,
                              (mp_str_t){bytes.data, bytes.size});
  }
  if (status == NULL) {
    memcpy(&join->hellos[rank], bytes.data, sizeof(own));
    mp_hello_take(join->world, rank, &join->hellos[rank]);
  }
  mp_strbuf_deinit(&bytes);
  return status;
}

// Makes what a process needs before it puts its hello: a world without peers, and memory to share.
static mp_status_t store_world_prepare(store_world_t *join) {
  join->hellos = mp_calloc(join->talk.size, sizeof(*join->hellos));
  join->hello_pointers = mp_calloc(join->talk.size, sizeof(void *));
  join->segments = mp_calloc(join->talk.size, sizeof(mp_segment_t *));
  join->leaders = mp_calloc(join->talk.size, sizeof(*join->leaders));
  if (join->hellos == NULL || join->hello_pointers == NULL || join->segments == NULL ||
      join->leaders == NULL) {
    return mp_status_out_of_memory();
  }
  for (uint32_t i = 0; i < join->talk.size; ++i) join->hello_pointers[i] = &join->hellos[i];
  MP_RETURN_IF_ERROR(mp_world_create(join->talk.rank, join->talk.size, &join->world));
  join->talk.world = join->world;
  MP_RETURN_IF_ERROR(mp_segment_create(join->talk.size, join->talk.size, &join->world->segment));
  join->world->doorbell = mp_segment_doorbell(join->world->segment);
  join->hellos[join->talk.rank] = mp_hello_make(join->talk.size, 0, join->world->segment);
  return NULL;
}

// Leaders: the lowest rank of each host leads the others there.
static void store_world_find_leaders(store_world_t *join) {
  for (uint32_t rank = 0; rank < join->talk.size; ++rank) {
    uint32_t leader = 0;
    while (!mp_hello_is_same_host(&join->hellos[leader], &join->hellos[rank])) ++leader;
    join->leaders[rank] = leader;
  }
  mp_near_number_hosts(join->world, join->leaders);
}

// Maps the memory of the others on this host.
static mp_status_t store_world_open_near(store_world_t *join) {
  mp_status_t status =
      mp_near_open(join->world, join->hello_pointers, join->leaders, join->segments);
  if (status == NULL) return NULL;
  return mp_status_annotate(
      status,
      "the processes cannot share memory (one of them has ended; or they run in "
      "containers, which need one host name and one set of process numbers, "
      "or as different users: mpirun connects those)");
}

// Opens what carries messages to other hosts, where there are any.
static mp_status_t store_world_open_far(store_world_t *join, mp_strbuf_t *card) {
  uint32_t other = 0;  // of another host than rank 0's
  while (other < join->talk.size && join->leaders[other] == 0) ++other;
  if (other == join->talk.size) return NULL;
  mp_status_t status = mp_far_open(join->world, card, &join->far);
  if (mp_status_code(status) != MP_UNAVAILABLE) return status;
  mp_status_t refusal = mp_status_make(
      MP_FAILED_PRECONDITION,
      "process 0 is on host %.63s, process %" PRIu32
      " on host %.63s: %s. MPI connects hosts, too: 'mpirun --bind-to none --hostfile hosts python "
      "script.py'",
      join->hellos[0].hostname, other, join->hellos[other].hostname, mp_status_message(status));
  mp_status_release(status);
  return refusal;
}

// Connects this process with all others, and starts the world.
static mp_status_t store_world_connect(store_world_t *join) {
  mp_strbuf_t card;
  mp_strbuf_init(&card);
  mp_status_t status = store_world_open_near(join);
  if (status == NULL) status = store_world_open_far(join, &card);
  if (join->far != NULL && status == NULL) {
    status = mp_store_tell(&join->talk, join->cards, NULL, (mp_str_t){card.data, card.size});
  }
  mp_strbuf_deinit(&card);
  MP_RETURN_IF_ERROR(status);
  if (join->far != NULL) {
    MP_RETURN_IF_ERROR(mp_far_connect(&join->talk, join->cards, join->leaders, join->far));
  }
  MP_RETURN_IF_ERROR(
      mp_near_connect(join->world, join->hello_pointers, join->segments, k_loss_grace_seconds));
  return mp_world_start(join->world);
}

static mp_status_t store_world_take_hellos(store_world_t *join) {
  mp_hello_take(join->world, join->talk.rank, &join->hellos[join->talk.rank]);
  for (uint32_t rank = 0; rank < join->talk.size; ++rank) {
    MP_RETURN_IF_ERROR(store_world_take_hello(join, rank));
  }
  store_world_find_leaders(join);
  return NULL;
}

// Tells the others wherever they may be waiting for this process. Returns `status`.
static mp_status_t store_world_tell_failure(const store_world_t *join, mp_status_t status) {
  const bool knows_job =
      join->hellos[0].job != 0;  // else all miss rank 0, or this one has no memory
  if (knows_job) status = mp_store_find_cause(&join->talk, join->connected, status);
  mp_status_ignore(mp_store_tell(&join->talk, join->failed, mp_status_retain(status), MP_STR("")));
  return knows_job ? mp_store_tell(&join->talk, join->connected, status, MP_STR("")) : status;
}

// Once processes know rank 0, their messages are under the name of their job, because the store may
// also have those of earlier jobs.
static void store_world_name_job(store_world_t *join) {
  const uint64_t job = join->hellos[0].job;
  snprintf(join->cards, sizeof(join->cards), "minipod/%016" PRIx64 "/card", job);
  snprintf(join->connected, sizeof(join->connected), "minipod/%016" PRIx64 "/connected", job);
}

// Whether the processes that have said hello are still alive, and the others will come.
static mp_status_t store_world_check(void *context) {
  const store_world_t *join = context;
  const mp_process_id_t *self = &join->hellos[join->talk.rank].process;
  for (uint32_t rank = 0; rank < join->talk.size; ++rank) {
    const mp_process_id_t *process = &join->hellos[rank].process;
    if (process->pid == 0 || !mp_process_is_gone(self, process)) continue;
    char name[MP_PEER_NAME_BYTES];
    mp_world_peer_name(join->world, rank, name);
    return mp_status_make(MP_UNAVAILABLE,
                          "%s has ended before all processes had joined; see its own output", name);
  }
  return join->presence == NULL ? NULL : mp_presence_check(join->presence);
}

// Registers the world to be left at the end of the process.
static mp_status_t store_world_prepare_leave(const store_world_t *join, double exit_timeout_s) {
  if (!join->is_first) return NULL;
  return mp_leave_prepare(NULL, false, (int)join->talk.rank, exit_timeout_s);
}

static mp_status_t store_world_set_leave(const store_world_t *join, mp_transport_t *far) {
  if (!join->is_first) return mp_leave_add_world(join->world, far);
  mp_leave_set_world(join->world, far);
  return NULL;
}

static mp_status_t store_world_meet(store_world_t *join, double exit_timeout_s) {
  join->talk.check = store_world_check;
  join->talk.context = join;
  mp_status_t status = store_world_take_hellos(join);
  store_world_name_job(join);
  if (status == NULL) status = store_world_connect(join);
  if (status == NULL) status = store_world_prepare_leave(join, exit_timeout_s);
  if (status == NULL) status = store_world_set_leave(join, join->far);
  if (status != NULL) return store_world_tell_failure(join, status);
  // The agreement also fails the processes that have read all others' entries if the store has
  // failed for another process meanwhile.
  mp_agreement_t agreement;
  mp_agreement_begin(join->world, join->talk.timeout_s, &agreement);
  join->talk.agreement = &agreement;
  status = mp_store_tell(&join->talk, join->connected, NULL, MP_STR(""));
  if (status == NULL) status = mp_store_await_all(&join->talk, join->connected);
  join->talk.agreement = NULL;
  status = mp_agreement_end(&agreement, status);
  if (status != NULL) {
    mp_world_say_goodbye(join->world, 0);
    (void)mp_world_drain(join->world, k_last_words_seconds);
  }
  return status;
}

// Another process has already had this rank. If it has died, this process takes its place.
static mp_status_t store_world_join_again(store_world_t *join, double exit_timeout_s) {
  const mp_hello_t own = join->hellos[join->talk.rank];
  MP_RETURN_IF_ERROR(store_world_take_hello(join, join->talk.rank));
  MP_RETURN_IF_ERROR(mp_again_check_predecessor(join->talk.rank, &join->hellos[join->talk.rank]));
  MP_RETURN_IF_ERROR(store_world_take_hellos(join));
  mp_hello_take(join->world, join->talk.rank, &own);
  store_world_name_job(join);
  mp_again_t again = {.talk = &join->talk,
                      .world = join->world,
                      .own = own,
                      .hellos = join->hellos,
                      .leaders = join->leaders,
                      .cards = join->cards,
                      .connected = join->connected};
  for (uint32_t rank = 0; rank < join->talk.size; ++rank) {
    if (rank != join->talk.rank) atomic_store(&join->world->peers[rank].peer.hostname, NULL);
  }
  mp_status_t status = mp_again_join(&again);
  if (status == NULL) status = store_world_prepare_leave(join, exit_timeout_s);
  if (status == NULL) status = store_world_set_leave(join, again.far);
  if (status != NULL) {
    mp_world_say_goodbye(join->world, 1);
    (void)mp_world_drain(join->world, k_last_words_seconds);
    return mp_status_annotate(status, "rejoining the job");
  }
  return NULL;
}

static mp_status_t store_world_join(store_world_t *join, double exit_timeout_s) {
  mp_status_t status = store_world_prepare(join);
  const mp_str_t hello = {status == NULL ? (const char *)&join->hellos[join->talk.rank] : "",
                          status == NULL ? sizeof(mp_hello_t) : 0};
  const bool is_prepared = status == NULL;
  status = mp_store_tell(&join->talk, join->greetings, status, hello);
  if (is_prepared && mp_status_code(status) == MP_ALREADY_EXISTS) {
    mp_status_ignore(status);
    return store_world_join_again(join, exit_timeout_s);
  }
  MP_RETURN_IF_ERROR(status);
  return store_world_meet(join, exit_timeout_s);
}

// Frees the objects of a failed attempt. The first attempt's own memory stays: others may only now
// be looking for it, and should get the more specific error.
static void store_world_give_up(store_world_t *join) {
  static mp_segment_t *kept;  // under the lock of joining (bootstrap.c)
  if (join->is_first) mp_leave_set_world(NULL, NULL);
  if (join->world == NULL) return;
  if (!join->is_first) mp_leave_drop_world(join->world);
  mp_segment_t *segment = join->world->segment;
  if (kept == NULL && segment != NULL) kept = mp_segment_retain(segment);
  mp_world_release(join->world);
}

// Joins, and puts the outcome into the store.
static mp_status_t store_world_join_openly(store_world_t *join, const mp_presence_join_t *openly,
                                           double exit_timeout_s) {
  join->presence = mp_presence_begin(openly);
  mp_status_t status = store_world_join(join, exit_timeout_s);
  if (status != NULL) mp_presence_give_up(openly, status);
  mp_presence_end(join->presence);
  return status;
}

static void store_world_name_folders(store_world_t *join, const mp_subset_t *subset) {
  if (subset == NULL) {
    snprintf(join->greetings, sizeof(join->greetings), "%s", MP_STORE_HELLOS);
    snprintf(join->failed, sizeof(join->failed), "%s", MP_STORE_FAILURES);
  } else {
    mp_subset_folder(subset, "hello", join->greetings);
    mp_subset_folder(subset, "failed", join->failed);
  }
}

mp_status_t mp_store_world_join(const mp_options_t *options, const mp_key_value_store_t *store,
                                const mp_subset_t *subset, bool is_first, mp_world_t **out_world) {
  if (options->node_id < 0 || options->node_id >= options->num_nodes) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "option 'node_id': expected the number of this process, 0 to %" PRId64
                          " (num_nodes is %" PRId64 "), got %" PRId64,
                          options->num_nodes - 1, options->num_nodes, options->node_id);
  }
  store_world_t join = {
      .talk = {.store = store,
               .verdicts = join.failed,
               .rank = subset == NULL ? (uint32_t)options->node_id : subset->rank,
               .size = subset == NULL ? (uint32_t)options->num_nodes : subset->size,
               .timeout_s = (double)options->init_timeout},
      .is_first = is_first};
  store_world_name_folders(&join, subset);
  join.talk.deadline = mp_clock_seconds() + join.talk.timeout_s;
  const mp_presence_join_t openly = mp_presence_of_options(options, store, subset);
  mp_status_t status = store_world_join_openly(&join, &openly, (double)options->exit_timeout);
  for (uint32_t i = 0; join.segments != NULL && i < join.talk.size; ++i) {
    mp_segment_release(join.segments[i]);
  }
  mp_free(join.segments);
  mp_free(join.leaders);
  mp_free(join.hello_pointers);
  mp_free(join.hellos);
  if (status == NULL) {
    *out_world = join.world;
  } else {
    store_world_give_up(&join);
  }
  return status;
}
