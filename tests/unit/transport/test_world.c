// Worlds: messages between ranks, agreeing, leaving.

#include "collectives/transport/world.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectives/transport/shm.h"
#include "collectives/transport/world_impl.h"
#include "collectives/transport/world_local.h"
#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"
#include "tests/unit/support/unit.h"

enum { MAX_WORLDS = 8, CHANNEL = MP_WORLD_CHANNELS - 1 };

// ---- A handler that counts ----

typedef struct {
  mp_world_t *world;
  uint64_t next[MAX_WORLDS];  // expected number, by sender
  atomic_uint num_packets;
  atomic_uint num_wrong;
  atomic_uint num_lost;
  _Atomic uint64_t bytes;
  char why[200];  // rank 1 was lost
  atomic_bool has_lost_1;
} inbox_t;

static unsigned char byte_at(uint32_t from, uint64_t number, size_t i) {
  return (unsigned char)(from * 31 + number * 7 + i * 3 + (i >> 12));
}

static void deliver(void *context, mp_packet_t *packet) {
  inbox_t *inbox = context;
  const unsigned char *data = packet->data;
  bool right = packet->envelope.key[0] == inbox->next[packet->from]++;
  right = right && packet->bytes == packet->envelope.key[1];
  right = right && (data == NULL || (uintptr_t)data % 64 == 0) && (packet->bytes == 0) == !data;
  size_t step = packet->bytes > 4096 ? 61 : 1;
  for (size_t i = 0; i < packet->bytes; i += step) {
    right = right && data[i] == byte_at(packet->from, packet->envelope.key[0], i);
  }
  if (!right) atomic_fetch_add(&inbox->num_wrong, 1);
  atomic_fetch_add(&inbox->bytes, packet->bytes);
  mp_packet_release(packet);
  atomic_fetch_add(&inbox->num_packets, 1);
}

static void lost(void *context, uint32_t rank, mp_status_t why) {
  inbox_t *inbox = context;
  if (rank == 1) {
    snprintf(inbox->why, sizeof(inbox->why), "%s", mp_status_message(why));
    atomic_store(&inbox->has_lost_1, true);
  }
  atomic_fetch_add(&inbox->num_lost, 1);
}

static void attach(mp_world_t *world, inbox_t *inbox) {
  inbox->world = world;
  mp_handler_t handler = {.deliver = deliver, .lost = lost, .context = inbox};
  mp_world_attach(world, CHANNEL, &handler);
}

static void await_count(atomic_uint *count, unsigned wanted) {
  double deadline = mp_clock_seconds() + 100;
  while (atomic_load(count) < wanted && mp_clock_seconds() < deadline) usleep(100);
  assert_int_equal(atomic_load(count), wanted);
}

static mp_status_t send_number(mp_world_t *world, uint32_t to, uint64_t number, size_t bytes) {
  mp_envelope_t envelope = {.channel = CHANNEL, .key = {number, bytes}};
  mp_payload_t *payload = NULL;
  if (bytes != 0) {
    MP_RETURN_IF_ERROR(mp_payload_create(world, bytes, &payload));
    unsigned char *data = payload->data;
    for (size_t i = 0; i < bytes; ++i) data[i] = byte_at(mp_world_rank(world), number, i);
  }
  mp_status_t status = mp_world_send(world, to, &envelope, payload);
  mp_payload_release(payload);
  return status;
}

// ---- Tests ----

static void knows_its_peers(void **state) {
  (void)state;
  mp_world_t *worlds[5];
  assert_ok(mp_worlds_create_local(5, 2, worlds));
  assert_int_equal(mp_world_size(worlds[3]), 5);
  assert_int_equal(mp_world_rank(worlds[3]), 3);
  assert_int_equal(mp_world_peer(worlds[3], 4)->host, 2);
  assert_int_equal(mp_world_peer(worlds[0], 3)->host, 1);
  assert_int_equal(mp_world_peer(worlds[0], 3)->rank_on_host, 1);
  assert_int_equal(mp_world_peer(worlds[0], 3)->ranks_on_host, 2);
  assert_int_equal(mp_world_peer(worlds[0], 4)->ranks_on_host, 1);
  for (int i = 0; i < 5; ++i) mp_world_close(worlds[i]);
}

static void keeps_order_between_all_pairs(void **state) {
  (void)state;
  enum { SIZE = 4, ROUNDS = 300 };
  static const size_t sizes[] = {0, 8, 64, 65, 1000, 70000};
  mp_world_t *worlds[SIZE];
  static inbox_t inboxes[SIZE];
  memset(inboxes, 0, sizeof(inboxes));
  assert_ok(mp_worlds_create_local(SIZE, 2, worlds));
  for (int i = 0; i < SIZE; i += 2) attach(worlds[i], &inboxes[i]);
  for (int round = 0; round < ROUNDS; ++round) {
    for (uint32_t from = 0; from < SIZE; ++from) {
      for (uint32_t to = 0; to < SIZE; ++to) {
        assert_ok(send_number(worlds[from], to, (uint64_t)round, sizes[round % 6]));
      }
    }
    // These get their handlers when much has come already.
    if (round == ROUNDS / 2) {
      for (int i = 1; i < SIZE; i += 2) attach(worlds[i], &inboxes[i]);
    }
  }
  for (int i = 0; i < SIZE; ++i) await_count(&inboxes[i].num_packets, SIZE * ROUNDS);
  for (int i = 0; i < SIZE; ++i) assert_int_equal(inboxes[i].num_wrong, 0);
  for (int i = 0; i < SIZE; ++i) mp_world_close(worlds[i]);
}

static void one_payload_to_many(void **state) {
  (void)state;
  enum { SIZE = 4, BYTES = 100000 };
  mp_world_t *worlds[SIZE];
  static inbox_t inboxes[SIZE];
  memset(inboxes, 0, sizeof(inboxes));
  assert_ok(mp_worlds_create_local(SIZE, 3, worlds));
  for (int i = 0; i < SIZE; ++i) attach(worlds[i], &inboxes[i]);
  mp_payload_t *payload = NULL;
  assert_ok(mp_payload_create(worlds[1], BYTES, &payload));
  assert_int_equal((uintptr_t)payload->data % 64, 0);
  assert_int_equal(payload->bytes, BYTES);
  for (size_t i = 0; i < BYTES; ++i) ((unsigned char *)payload->data)[i] = byte_at(1, 0, i);
  mp_envelope_t envelope = {.channel = CHANNEL, .key = {0, BYTES}};
  for (uint32_t to = 0; to < SIZE; ++to)
    assert_ok(mp_world_send(worlds[1], to, &envelope, payload));
  mp_payload_release(payload);
  for (int i = 0; i < SIZE; ++i) await_count(&inboxes[i].num_packets, 1);
  for (int i = 0; i < SIZE; ++i) assert_int_equal(inboxes[i].num_wrong, 0);
  for (int i = 0; i < SIZE; ++i) mp_world_close(worlds[i]);
}

static void names_processes_that_have_left(void **state) {
  (void)state;
  mp_world_t *worlds[3];
  static inbox_t inboxes[3];
  memset(inboxes, 0, sizeof(inboxes));
  assert_ok(mp_worlds_create_local(3, 2, worlds));
  attach(worlds[0], &inboxes[0]);
  for (uint64_t i = 0; i < 10; ++i) assert_ok(send_number(worlds[1], 0, i, 100));
  mp_world_close(worlds[1]);
  await_count(&inboxes[0].num_lost, 1);
  assert_int_equal(inboxes[0].num_packets, 10);  // what was sent comes before the goodbye
  assert_false(worlds[0]->peers[1].skips_end);
  assert_non_null(strstr(inboxes[0].why, "process 1 (pid "));
  assert_non_null(strstr(inboxes[0].why, "has exited"));
  assert_status(send_number(worlds[0], 1, 0, 8), MP_UNAVAILABLE, "process 1");
  // A handler that attaches later learns of the loss, too, and again after detaching.
  mp_world_detach(worlds[0], CHANNEL);
  attach(worlds[0], &inboxes[0]);
  await_count(&inboxes[0].num_lost, 2);
  attach(worlds[2], &inboxes[2]);
  await_count(&inboxes[2].num_lost, 1);
  void **bytes;
  size_t *sizes;
  assert_status(mp_world_exchange(worlds[2], "x", 1, 100, &bytes, &sizes), MP_UNAVAILABLE,
                "process 1");
  mp_world_skip_end(worlds[2]);  // it has met with a loss
  mp_world_close(worlds[2]);
  await_count(&inboxes[0].num_lost, 3);
  assert_true(worlds[0]->peers[2].skips_end);
  mp_world_close(worlds[0]);
}

// ---- Exchanges ----

typedef struct {
  mp_world_t *world;
  bool right;
} exchanger_t;

static void *exchange_main(void *context) {
  exchanger_t *self = context;
  self->right = true;
  for (uint32_t call = 0; call < 50; ++call) {
    char text[64];
    uint32_t rank = mp_world_rank(self->world);
    size_t size = rank == 1 ? 0 : (size_t)snprintf(text, sizeof(text), "%u says %u", rank, call);
    void **bytes = NULL;
    size_t *sizes = NULL;
    mp_status_t status = mp_world_exchange(self->world, text, size, 100, &bytes, &sizes);
    self->right = self->right && status == NULL;
    mp_status_release(status);
    for (uint32_t from = 0; status == NULL && from < mp_world_size(self->world); ++from) {
      size_t wanted =
          from == 1 ? 0 : (size_t)snprintf(text, sizeof(text), "%u says %u", from, call);
      self->right = self->right && sizes[from] == wanted && memcmp(bytes[from], text, wanted) == 0;
    }
    mp_free(bytes);
  }
  return NULL;
}

static void exchanges(void **state) {
  (void)state;
  enum { SIZE = 5 };
  mp_world_t *worlds[SIZE];
  assert_ok(mp_worlds_create_local(SIZE, 2, worlds));
  exchanger_t exchangers[SIZE];
  pthread_t threads[SIZE];
  for (int i = 0; i < SIZE; ++i) {
    exchangers[i].world = worlds[i];
    pthread_create(&threads[i], NULL, exchange_main, &exchangers[i]);
  }
  for (int i = 0; i < SIZE; ++i) {
    pthread_join(threads[i], NULL);
    assert_true(exchangers[i].right);
  }
  for (int i = 0; i < SIZE; ++i) mp_world_close(worlds[i]);
}

static void exchange_names_the_missing(void **state) {
  (void)state;
  mp_world_t *worlds[3];
  assert_ok(mp_worlds_create_local(3, 1, worlds));
  void **bytes;
  size_t *sizes;
  assert_status(mp_world_exchange(worlds[1], "x", 1, 0.05, &bytes, &sizes), MP_DEADLINE_EXCEEDED,
                "process 0 (pid");
  assert_status(mp_world_exchange(worlds[1], "x", 1, 0.05, &bytes, &sizes), MP_DEADLINE_EXCEEDED,
                "process 2 (pid");
  for (int i = 0; i < 3; ++i) mp_world_close(worlds[i]);
}

static void a_forked_child_has_no_part(void **state) {
  (void)state;
  mp_world_t *worlds[2];
  assert_ok(mp_worlds_create_local(2, 2, worlds));
  pid_t child = fork();
  if (child == 0) {
    mp_status_t status = send_number(worlds[0], 1, 0, 8);
    _exit(mp_status_code(status) == MP_FAILED_PRECONDITION ? 0 : 1);
  }
  int result = 0;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_int_equal(result, 0);
  for (int i = 0; i < 2; ++i) mp_world_close(worlds[i]);
}

// ---- Processes ----

enum { PROCESSES = 3, PROCESS_ROUNDS = 300 };

// What the processes of a test know of each other before they can talk.
typedef struct {
  mp_segment_address_t addresses[PROCESSES];
  atomic_uint num_ready;
  atomic_uint num_done;
} board_t;

// As bootstrap.c does with the others' help, by way of the board.
static mp_status_t join_processes(uint32_t rank, board_t *board, mp_world_t **out_world) {
  mp_world_t *world = NULL;
  mp_transport_t *shm = NULL;
  MP_RETURN_IF_ERROR(mp_world_create(rank, PROCESSES, &world));
  MP_RETURN_IF_ERROR(mp_segment_create(PROCESSES, PROCESSES, &world->segment));
  world->doorbell = mp_segment_doorbell(world->segment);
  board->addresses[rank] = mp_segment_address(world->segment);
  atomic_fetch_add(&board->num_ready, 1);
  while (atomic_load(&board->num_ready) < PROCESSES) usleep(200);
  MP_RETURN_IF_ERROR(mp_shm_create(world, world->segment, 0, &shm));
  mp_world_add_transport(world, shm);
  for (uint32_t i = 0; i < PROCESSES; ++i) {
    const mp_segment_address_t *address = &board->addresses[i];
    world->peers[i].peer = (mp_peer_t){
        .rank_on_host = i, .ranks_on_host = PROCESSES, .pid = address->pid, .hostname = "here"};
  }
  for (uint32_t i = 0; i < PROCESSES; ++i) {
    if (i == rank) continue;
    mp_segment_t *segment = NULL;
    MP_RETURN_IF_ERROR(mp_segment_open(&board->addresses[i], &segment));
    MP_RETURN_IF_ERROR(mp_shm_add_peer(shm, i, segment, board->addresses[i].pid));
    mp_segment_release(segment);
    world->peers[i].transport = shm;
  }
  *out_world = world;
  return mp_world_start(world);
}

// Sends to all ranks at random times and in random sizes; 0 if all received messages were right.
static int talk(mp_world_t *world, inbox_t *inbox) {
  uint64_t random = mp_world_rank(world) + 1;
  for (uint64_t round = 0; round < PROCESS_ROUNDS; ++round) {
    for (uint32_t to = 0; to < PROCESSES; ++to) {
      random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
      size_t bytes = (size_t)(random >> 33) % (round % 10 == 0 ? 300000 : 200);
      if (random >> 60 == 0) usleep((useconds_t)(random >> 40) % 500);
      if (send_number(world, to, round, bytes) != NULL) return 10;
    }
  }
  double deadline = mp_clock_seconds() + 100;
  while (atomic_load(&inbox->num_packets) < PROCESSES * PROCESS_ROUNDS) {
    if (mp_clock_seconds() > deadline) return 11;
    usleep(200);
  }
  return atomic_load(&inbox->num_wrong) == 0 ? 0 : 12;
}

static int leave_processes(mp_world_t *world) {
  mp_world_say_goodbye(world, 0);
  if (!mp_world_drain(world, 100) || !mp_world_await_goodbyes(world, 100)) return 13;
  mp_world_release(world);
  return 0;
}

static int live(uint32_t rank, board_t *board, bool one_dies) {
  static inbox_t inbox;
  mp_world_t *world = NULL;
  mp_status_t status = join_processes(rank, board, &world);
  if (status != NULL) {
    fprintf(stderr, "%s\n", mp_status_message(status));
    return 9;
  }
  attach(world, &inbox);
  int result = talk(world, &inbox);
  atomic_fetch_add(&board->num_done, 1);
  while (atomic_load(&board->num_done) < PROCESSES) usleep(200);
  if (result != 0) return result;
  if (!one_dies) return leave_processes(world);
  if (rank == 1) raise(SIGKILL);
  double deadline = mp_clock_seconds() + 100;
  while (!atomic_load(&inbox.has_lost_1) && mp_clock_seconds() < deadline) usleep(1000);
  if (strstr(inbox.why, "process 1 (pid ") == NULL) return 14;
  if (strstr(inbox.why, "has ended unexpectedly") == NULL) return 15;
  return leave_processes(world);
}

static void run_processes(bool one_dies) {
  board_t *board =
      mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(board != MAP_FAILED);
  pid_t children[PROCESSES];
  for (uint32_t rank = 0; rank < PROCESSES; ++rank) {
    children[rank] = fork();
    if (children[rank] == 0) _exit(live(rank, board, one_dies));
  }
  for (uint32_t rank = 0; rank < PROCESSES; ++rank) {
    int result = 0;
    assert_int_equal(waitpid(children[rank], &result, 0), children[rank]);
    assert_int_equal(result, one_dies && rank == 1 ? SIGKILL : 0);
  }
  munmap(board, sizeof(*board));
}

static void processes_share_memory(void **state) {
  (void)state;
  run_processes(false);
}

static void a_dead_process_is_noticed(void **state) {
  (void)state;
  run_processes(true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(knows_its_peers),
      cmocka_unit_test(keeps_order_between_all_pairs),
      cmocka_unit_test(one_payload_to_many),
      cmocka_unit_test(names_processes_that_have_left),
      cmocka_unit_test(exchanges),
      cmocka_unit_test(exchange_names_the_missing),
      cmocka_unit_test(a_forked_child_has_no_part),
      cmocka_unit_test(processes_share_memory),
      cmocka_unit_test(a_dead_process_is_noticed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
