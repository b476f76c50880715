// The MPI transport over a stand-in for MPI: messages that come late, sends that take long, errors.

#include "collectives/transport/mpi.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectives/transport/world_internal.h"
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
static atomic_int g_broken = -1;  // the rank whose calls fail

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
  (void)error;
  pthread_mutex_lock(&g_lock);
  match(rank);
  posted_t *posted = &g_posted[rank][request->opaque - 1];
  *out_done = 0;
  if (posted->is_send) {
    *out_done = posted->countdown-- <= 0;
  } else if (posted->message != NULL) {
    message_t *message = posted->message;
    *out_done = 1;
    *out_from = message->from;
    *out_bytes = message->bytes < posted->room ? message->bytes : posted->room;
    memcpy(posted->data, message->data, *out_bytes);
    free(message->data);
    free(message);
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

// MPI knows who calls; here each rank has functions of its own.
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

static void start(job_t *job) {
  memset(job, 0, sizeof(*job));
  atomic_store(&g_broken, -1);
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

static void stop(job_t *job) {
  for (int rank = 0; rank < RANKS; ++rank) mp_world_say_goodbye(job->worlds[rank]);
  for (int rank = 0; rank < RANKS; ++rank) {
    mp_world_t *world = job->worlds[rank];
    assert_true(mp_world_drain(world, 20));
    assert_true(mp_world_await_goodbyes(world, 20));
    mp_mpi_close(world->transports[0]);
    for (int i = 0; i < 20000 && !mp_mpi_is_closed(world->transports[0]); ++i) usleep(1000);
  }
  for (int rank = 0; rank < RANKS; ++rank) mp_world_release(job->worlds[rank]);
}

static void await_count(atomic_uint *count, unsigned wanted) {
  double deadline = mp_clock_seconds() + 60;
  while (atomic_load(count) < wanted && mp_clock_seconds() < deadline) usleep(200);
  assert_int_equal(atomic_load(count), wanted);
}

static mp_status_t send_number(mp_world_t *world, uint32_t to, uint64_t number, size_t bytes) {
  mp_envelope_t envelope = {.channel = CHANNEL, .key = {number, bytes}};
  mp_payload_t *payload = NULL;
  MP_RETURN_IF_ERROR(mp_payload_create(world, bytes, &payload));
  unsigned char *data = payload->data;
  for (size_t i = 0; i < bytes; ++i) data[i] = byte_at(mp_world_rank(world), number, i);
  mp_status_t status = mp_world_send(world, to, &envelope, payload);
  mp_payload_release(payload);
  return status;
}

// ---- Tests ----

static void keeps_order_of_all_sizes(void **state) {
  (void)state;
  static job_t job;
  start(&job);
  static const size_t sizes[] = {0, 8, 64, 65, 4096, 4097, 100000, 1 << 20, (1 << 20) + 1, 9000000};
  enum { ROUNDS = 60, SIZES = sizeof(sizes) / sizeof(sizes[0]) };
  for (uint64_t round = 0; round < ROUNDS; ++round) {
    for (uint32_t from = 0; from < RANKS; ++from) {
      for (uint32_t to = 0; to < RANKS; ++to) {
        size_t bytes = sizes[(round * 7 + from + to) % (round % 10 == 0 ? SIZES : SIZES - 2)];
        assert_ok(send_number(job.worlds[from], to, round, bytes));
      }
    }
  }
  for (int i = 0; i < RANKS; ++i) {
    await_count(&job.inboxes[i].num_packets, ROUNDS * RANKS);
    assert_int_equal(job.inboxes[i].num_wrong, 0);
  }
  stop(&job);
}

static void long_queues(void **state) {
  (void)state;
  static job_t job;
  start(&job);
  enum { COUNT = 2000 };
  for (uint64_t i = 0; i < COUNT; ++i) assert_ok(send_number(job.worlds[0], 1, i, i % 300));
  await_count(&job.inboxes[1].num_packets, COUNT);
  assert_int_equal(job.inboxes[1].num_wrong, 0);
  stop(&job);
}

static void an_error_loses_the_peer(void **state) {
  (void)state;
  static job_t job;
  start(&job);
  atomic_store(&g_broken, 2);
  assert_ok(send_number(job.worlds[0], 2, 0, 100000));
  await_count(&job.inboxes[0].num_lost, 1);
  assert_status(send_number(job.worlds[0], 2, 1, 8), MP_UNAVAILABLE, "the cable is broken");
  assert_ok(send_number(job.worlds[0], 1, 0, 100000));  // the others are as before
  await_count(&job.inboxes[1].num_packets, 1);
  // Who was lost is not waited for.
  for (int i = 0; i < RANKS; ++i) mp_world_say_goodbye(job.worlds[i]);
  for (int i = 0; i < 2; ++i) assert_true(mp_world_drain(job.worlds[i], 20));
  assert_true(mp_world_await_goodbyes(job.worlds[0], 20));
  for (int i = 0; i < RANKS; ++i) {
    mp_mpi_close(job.worlds[i]->transports[0]);
    while (!mp_mpi_is_closed(job.worlds[i]->transports[0])) usleep(1000);
  }
  for (int i = 0; i < RANKS; ++i) mp_world_release(job.worlds[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keeps_order_of_all_sizes),
      cmocka_unit_test(long_queues),
      cmocka_unit_test(an_error_loses_the_peer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
