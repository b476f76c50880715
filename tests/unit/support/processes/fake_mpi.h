// A stand-in for MPI and worlds over it: three ranks in one process; messages come late, sends take
// long, and calls fail when a test says so.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_PROCESSES_FAKE_MPI_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_PROCESSES_FAKE_MPI_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectives/transport/hosts/mpi.h"
#include "collectives/transport/world_impl.h"
#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"
#include "tests/unit/support/unit.h"

// ---- An MPI for three ranks in one process ----

enum { RANKS = 3, MAX_POSTED = 200, CHANNEL = 0 };

typedef struct message_s {
  struct message_s *next;
  int from, tag;
  size_t bytes;
  int delay;  // tests of the receiver's until it is there
  unsigned char *data;
} message_t;

typedef struct {
  bool is_used, is_send;
  int to;
  int from, tag, countdown;
  void *data;
  size_t room;
  uint64_t number;  // order of posting
  // Once matched:
  message_t *message;
} posted_t;

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static message_t *g_first[RANKS], *g_last[RANKS];
static posted_t g_posted[RANKS][MAX_POSTED];
static uint64_t g_random = 1, g_number;
// What a test may make of it. Ranks; -1: none.
static atomic_int g_broken = -1;           // sending to this one fails
static atomic_int g_stuck = -1;            // what is sent to this one is never done
static atomic_int g_deaf = -1;             // all this one's tests fail
static atomic_int g_held = -1;             // nothing comes to this one
static atomic_uint g_num_sent[RANKS];      // calls of send
static atomic_uint g_num_received[RANKS];  // receives that got something

static int chance(int limit) {
  g_random = g_random * UINT64_C(6364136223846793005) + 1;
  return (int)((g_random >> 33) % (uint64_t)limit);
}

static posted_t *post(int rank, mp_mpi_request_t *out_request) {
  for (uint64_t i = 0; i < MAX_POSTED; ++i) {
    posted_t *posted = &g_posted[rank][i];
    if (posted->is_used) continue;
    *posted = (posted_t){.is_used = true, .number = g_number++};
    out_request->opaque = i + 1;
    return posted;
  }
  return NULL;
}

static int fake_send(int rank, const void *data, size_t bytes, int to, int tag,
                     mp_mpi_request_t *out_request, char *error) {
  if (atomic_load(&g_broken) == to) {
    strcpy(error, "the cable is broken");
    return -1;
  }
  message_t *message = calloc(1, sizeof(*message));
  message->data = malloc(bytes);
  memcpy(message->data, data, bytes);
  pthread_mutex_lock(&g_lock);
  *message = (message_t){
      .from = rank, .tag = tag, .bytes = bytes, .delay = chance(4), .data = message->data};
  if (g_last[to] == NULL) {
    g_first[to] = message;
  } else {
    g_last[to]->next = message;
  }
  g_last[to] = message;
  posted_t *posted = post(rank, out_request);
  posted->is_send = true;
  posted->to = to;
  atomic_fetch_add(&g_num_sent[rank], 1);
  posted->countdown = chance(5);
  pthread_mutex_unlock(&g_lock);
  return 0;
}

static int fake_receive(int rank, void *data, size_t bytes, int from, int tag,
                        mp_mpi_request_t *out_request, char *error) {
  (void)error;
  pthread_mutex_lock(&g_lock);
  posted_t *posted = post(rank, out_request);
  posted->from = from;
  posted->tag = tag;
  posted->data = data;
  posted->room = bytes;
  pthread_mutex_unlock(&g_lock);
  return 0;
}

// The receive posted first that takes this message.
static posted_t *find_receive(int rank, const message_t *message) {
  posted_t *best = NULL;
  for (int i = 0; i < MAX_POSTED; ++i) {
    posted_t *posted = &g_posted[rank][i];
    bool fits = posted->is_used && !posted->is_send && posted->message == NULL &&
                posted->tag == message->tag &&
                (posted->from == MP_MPI_ANY || posted->from == message->from);
    if (fits && (best == NULL || posted->number < best->number)) best = posted;
  }
  return best;
}

// Gives the messages of a rank to its receives, in order per sender and tag.
static void match(int rank) {
  if (atomic_load(&g_held) == rank) return;
  bool is_held[RANKS] = {false};  // an earlier message of this sender still waits
  message_t **link = &g_first[rank];
  message_t *last = NULL;
  while (*link != NULL) {
    message_t *message = *link;
    posted_t *posted = find_receive(rank, message);
    if (message->delay > 0 || is_held[message->from] || posted == NULL) {
      if (message->delay > 0) --message->delay;
      // A message for which no receive is posted lets those of other tags pass.
      if (posted != NULL) is_held[message->from] = true;
      last = message;
      link = &message->next;
      continue;
    }
    *link = message->next;
    posted->message = message;
    message->next = NULL;
  }
  g_last[rank] = last;
}

static int fake_test(int rank, mp_mpi_request_t *request, int *out_done, int *out_from,
                     size_t *out_bytes, char *error) {
  if (atomic_load(&g_deaf) == rank) {
    strcpy(error, "nothing works any more");
    return -1;
  }
  pthread_mutex_lock(&g_lock);
  match(rank);
  posted_t *posted = &g_posted[rank][request->opaque - 1];
  *out_done = 0;
  if (posted->is_send) {
    *out_done = posted->countdown-- <= 0 && atomic_load(&g_stuck) != posted->to;
  } else if (posted->message != NULL) {
    message_t *message = posted->message;
    *out_done = 1;
    *out_from = message->from;
    *out_bytes = message->bytes < posted->room ? message->bytes : posted->room;
    memcpy(posted->data, message->data, *out_bytes);
    free(message->data);
    free(message);
    atomic_fetch_add(&g_num_received[rank], 1);
  }
  if (*out_done) posted->is_used = false;
  pthread_mutex_unlock(&g_lock);
  return 0;
}

static void fake_cancel(int rank, mp_mpi_request_t *request) {
  pthread_mutex_lock(&g_lock);
  g_posted[rank][request->opaque - 1].is_used = false;
  pthread_mutex_unlock(&g_lock);
}

// MPI knows the calling rank; here each rank has its own functions.
#define FAKE(rank)                                                                                 \
  static int send_##rank(const void *d, size_t n, int to, int tag, mp_mpi_request_t *r,            \
                         mp_mpi_error_t e) {                                                       \
    return fake_send(rank, d, n, to, tag, r, e);                                                   \
  }                                                                                                \
  static int receive_##rank(void *d, size_t n, int from, int tag, mp_mpi_request_t *r,             \
                            mp_mpi_error_t e) {                                                    \
    return fake_receive(rank, d, n, from, tag, r, e);                                              \
  }                                                                                                \
  static int test_##rank(mp_mpi_request_t *r, int *done, int *from, size_t *n, mp_mpi_error_t e) { \
    return fake_test(rank, r, done, from, n, e);                                                   \
  }                                                                                                \
  static void cancel_##rank(mp_mpi_request_t *r) {                                                 \
    fake_cancel(rank, r);                                                                          \
  }
FAKE(0)
FAKE(1)
FAKE(2)

#define MODULE(rank) \
  { .send = send_##rank, .receive = receive_##rank, .test = test_##rank, .cancel = cancel_##rank }
static const mp_mpi_module_t g_modules[RANKS] = {MODULE(0), MODULE(1), MODULE(2)};

// ---- Worlds over it ----

typedef struct {
  uint64_t next[RANKS];
  atomic_uint num_packets, num_wrong, num_lost;
} inbox_t;

typedef struct {
  mp_world_t *worlds[RANKS];
  inbox_t inboxes[RANKS];
} job_t;

static unsigned char byte_at(uint32_t from, uint64_t number, size_t i) {
  return (unsigned char)(from * 31 + number * 7 + i * 3 + (i >> 12));
}

static void deliver(void *context, mp_packet_t *packet) {
  inbox_t *inbox = context;
  const unsigned char *data = packet->data;
  uint64_t number = inbox->next[packet->from]++;
  bool right = packet->envelope.key[0] == number && packet->envelope.key[1] == packet->bytes;
  for (size_t i = 0; right && i < packet->bytes; ++i)
    right = data[i] == byte_at(packet->from, number, i);
  if (!right) atomic_fetch_add(&inbox->num_wrong, 1);
  mp_packet_release(packet);
  atomic_fetch_add(&inbox->num_packets, 1);
}

static void lost(void *context, uint32_t rank, mp_status_t why) {
  inbox_t *inbox = context;
  (void)rank, (void)why;
  atomic_fetch_add(&inbox->num_lost, 1);
}

static inline void start(job_t *job) {
  memset(job, 0, sizeof(*job));
  atomic_store(&g_broken, -1);
  atomic_store(&g_stuck, -1);
  atomic_store(&g_deaf, -1);
  atomic_store(&g_held, -1);
  for (int rank = 0; rank < RANKS; ++rank) atomic_store(&g_num_sent[rank], 0);
  for (uint32_t rank = 0; rank < RANKS; ++rank) {
    mp_world_t *world = NULL;
    mp_transport_t *mpi = NULL;
    assert_ok(mp_world_create(rank, RANKS, &world));
    assert_ok(mp_mpi_create(world, &g_modules[rank], &mpi));
    mp_world_add_transport(world, mpi);
    for (uint32_t i = 0; i < RANKS; ++i) world->peers[i].transport = i == rank ? NULL : mpi;
    mp_handler_t handler = {.deliver = deliver, .lost = lost, .context = &job->inboxes[rank]};
    mp_world_attach(world, CHANNEL, &handler);
    job->worlds[rank] = world;
  }
  for (int rank = 0; rank < RANKS; ++rank) assert_ok(mp_world_start(job->worlds[rank]));
}

// After the last call of MPI.
static inline void end(job_t *job) {
  for (int rank = 0; rank < RANKS; ++rank) {
    mp_transport_t *mpi = job->worlds[rank]->transports[0];
    assert_true(mp_transport_close(mpi, 20));
  }
  for (int rank = 0; rank < RANKS; ++rank) mp_world_release(job->worlds[rank]);
  // What never came.
  for (int rank = 0; rank < RANKS; ++rank) {
    for (message_t *message; (message = g_first[rank]) != NULL;) {
      g_first[rank] = message->next;
      free(message->data);
      free(message);
    }
    g_last[rank] = NULL;
  }
  for (int rank = 0; rank < RANKS; ++rank) {
    for (int i = 0; i < MAX_POSTED; ++i) {
      posted_t *posted = &g_posted[rank][i];
      if (posted->is_used && posted->message != NULL) {
        free(posted->message->data);
        free(posted->message);
      }
      posted->is_used = false;
    }
  }
}

static inline void stop(job_t *job) {
  for (int rank = 0; rank < RANKS; ++rank) mp_world_say_goodbye(job->worlds[rank], 0);
  for (int rank = 0; rank < RANKS; ++rank) {
    mp_world_t *world = job->worlds[rank];
    assert_true(mp_world_drain(world, 100));
    assert_true(mp_world_await_goodbyes(world, 100));
  }
  end(job);
}

static inline void await_count(atomic_uint *count, unsigned wanted) {
  double deadline = mp_clock_seconds() + 100;
  while (atomic_load(count) < wanted && mp_clock_seconds() < deadline) usleep(200);
  assert_int_equal(atomic_load(count), wanted);
}

static inline mp_status_t send_number(mp_world_t *world, uint32_t to, uint64_t number,
                                      size_t bytes) {
  mp_envelope_t envelope = {.channel = CHANNEL, .key = {number, bytes}};
  mp_payload_t *payload = NULL;
  MP_RETURN_IF_ERROR(mp_payload_create(world, bytes, &payload));
  unsigned char *data = payload->data;
  for (size_t i = 0; i < bytes; ++i) data[i] = byte_at(mp_world_rank(world), number, i);
  mp_status_t status = mp_world_send(world, to, &envelope, payload);
  mp_payload_release(payload);
  return status;
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_PROCESSES_FAKE_MPI_H_
