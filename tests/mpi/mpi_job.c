// One process of a job for the tests of tests/mpi/test_job.py, started by mpirun:
//
//     job SCENARIO
//
// Joins the world as the plugin does and plays its part; prints "rank R: ok" or what went wrong.
// Compiled a second time with JOB_OWNS_MPI: then the program starts MPI itself, and ends it before
// it exits, as mpi4py does.

#ifdef JOB_OWNS_MPI
#include <mpi.h>
#endif
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "collectives/transport/bootstrap/bootstrap.h"
#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"

enum { MAX_RANKS = 256, CHANNEL = 0, NAP_CHANNEL = 1 };

typedef struct {
  mp_world_t *world;
  uint32_t rank, size;
  uint64_t next[MAX_RANKS];
  atomic_uint num_packets;
  atomic_bool has_lost_1;
  atomic_uint num_wrong;
  bool echoes;
  char why[300];  // rank 1 was lost
} job_t;

static job_t g_job;

static void leave(int status) {
#ifdef JOB_OWNS_MPI
  MPI_Finalize();
#endif
  exit(status);
}

static void fail(const char *what) {
  printf("rank %u: FAILED: %s\n", g_job.rank, what);
  fflush(stdout);
  leave(9);
}

static void check(mp_status_t status) {
  if (status != NULL) fail(mp_status_message(status));
}

static unsigned char byte_at(uint32_t from, uint64_t number, size_t i) {
  return (unsigned char)(from * 31 + number * 7 + i * 3 + (i >> 12));
}

static uint64_t mix(uint64_t x) {
  x ^= x >> 33;
  x *= UINT64_C(0xff51afd7ed558ccd);
  x ^= x >> 33;
  return x * UINT64_C(0xc4ceb9fe1a85ec53) ^ x >> 29;
}

static void nap(uint64_t random) {
  struct timespec pause = {.tv_nsec = (long)(random % 300000)};
  nanosleep(&pause, NULL);
}

static void deliver(void *context, mp_packet_t *packet) {
  job_t *job = context;
  const unsigned char *data = packet->data;
  bool right = packet->envelope.key[0] == job->next[packet->from]++;
  right = right && packet->bytes == packet->envelope.key[1];
  right = right && (uintptr_t)data % 64 == 0;
  size_t step = packet->bytes > 100000 ? 509 : 1;
  for (size_t i = 0; i < packet->bytes && right; i += step) {
    right = data[i] == byte_at(packet->from, packet->envelope.key[0], i);
  }
  if (!right) atomic_fetch_add(&job->num_wrong, 1);
  mp_packet_release(packet);
  atomic_fetch_add(&job->num_packets, 1);
}

static void lost(void *context, uint32_t rank, mp_status_t why) {
  job_t *job = context;
  if (rank != 1) return;
  snprintf(job->why, sizeof(job->why), "%s", mp_status_message(why));
  atomic_store(&job->has_lost_1, true);
}

// Keeps the thread that takes messages from doing so for a while.
static void take_nap(void *context, mp_packet_t *packet) {
  (void)context;
  usleep((useconds_t)packet->envelope.key[0]);
  mp_packet_release(packet);
}

static void await_count(atomic_uint *count, unsigned wanted, double seconds) {
  double deadline = mp_clock_seconds() + seconds;
  while (atomic_load(count) < wanted) {
    if (mp_clock_seconds() > deadline) fail("waited in vain");
    usleep(200);
  }
}

static void send_number(uint32_t to, uint64_t number, size_t bytes) {
  mp_envelope_t envelope = {.channel = CHANNEL, .key = {number, bytes}};
  mp_payload_t *payload = NULL;
  check(mp_payload_create(g_job.world, bytes, &payload));
  unsigned char *data = payload->data;
  for (size_t i = 0; i < bytes; ++i) data[i] = byte_at(g_job.rank, number, i);
  check(mp_world_send(g_job.world, to, &envelope, payload));
  mp_payload_release(payload);
}

static void barrier(void) {
  void **bytes = NULL;
  size_t *sizes = NULL;
  check(mp_world_exchange(g_job.world, &g_job.rank, sizeof(uint32_t), 200, &bytes, &sizes));
  for (uint32_t i = 0; i < g_job.size; ++i) {
    if (sizes[i] != sizeof(uint32_t) || memcmp(bytes[i], &i, sizeof(i)) != 0) fail("exchange");
  }
  mp_free(bytes);
}

static void finish(void) {
  if (atomic_load(&g_job.num_wrong) != 0) fail("a packet was wrong or out of order");
  printf("rank %u: ok\n", g_job.rank);
  fflush(stdout);
}

// ---- Scenarios ----

// Hosts are numbered in the order of their first ranks.
static uint32_t num_hosts(void) {
  uint32_t last = 0;
  for (uint32_t i = 0; i < g_job.size; ++i) {
    const uint32_t host = mp_world_peer(g_job.world, i)->host;
    if (host > last) last = host;
  }
  return last + 1;
}

static void who(void) {
  for (uint32_t i = 0; i < g_job.size; ++i) {
    const mp_peer_t *peer = mp_world_peer(g_job.world, i);
    printf("rank %u: rank %u is number %u of %u on host %u of %u (%s)\n", g_job.rank, i,
           peer->rank_on_host, peer->ranks_on_host, peer->host, num_hosts(), peer->hostname);
  }
  finish();
}

// All ranks to all ranks, with random sizes and delays, one in fifty large.
static void pairs(void) {
  enum { ROUNDS = 400 };
  uint64_t random = mix(g_job.rank + 1);
  for (uint64_t round = 0; round < ROUNDS; ++round) {
    for (uint32_t to = 0; to < g_job.size; ++to) {
      random = mix(random + 1);
      size_t bytes = random % 50 == 0 ? random % 3000000 : (size_t)(random >> 8) % 9000;
      if (random % 7 == 0) bytes = (size_t)(random >> 16) % 70;
      if (random % 31 == 0) nap(random >> 8);
      send_number(to, round, bytes);
    }
  }
  await_count(&g_job.num_packets, ROUNDS * g_job.size, 200);
  barrier();
  finish();
}

static void large(void) {
  for (uint32_t to = 0; to < g_job.size; ++to) {
    send_number(to, 0, (size_t)64 << 20);
    send_number(to, 1, 8);
    send_number(to, 2, ((size_t)64 << 20) + 12345);
  }
  await_count(&g_job.num_packets, 3 * g_job.size, 200);
  finish();
}

static void barriers(void) {
  for (int i = 0; i < 200; ++i) barrier();
  finish();
}

static double cpu_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

// Waits for nothing and says how much of a core that took.
static void idle(void) {
  barrier();
  sleep(1);
  double before = cpu_seconds();
  sleep(3);
  printf("rank %u: %.2f %% of a core\n", g_job.rank, 100 * (cpu_seconds() - before) / 3);
  barrier();
  finish();
}

static void await_loss_of_1(double seconds) {
  double deadline = mp_clock_seconds() + seconds;
  while (!atomic_load(&g_job.has_lost_1)) {
    if (mp_clock_seconds() > deadline) fail("waited in vain");
    usleep(200);
  }
}

// Rank 1 leaves in the way named, the others wait for it.
static void one_leaves(const char *way) {
  barrier();
  if (strcmp(way, "exit0late") == 0) {
    // Rank 2 takes no messages meanwhile: it finds the ends of ranks 0 and 1 at the same time.
    mp_envelope_t nap = {.channel = NAP_CHANNEL, .key = {1500000}};
    if (g_job.rank == 2) check(mp_world_send(g_job.world, 2, &nap, NULL));
    way = "exit0";
  }
  if (g_job.rank == 1) {
    usleep(200000);
    if (strcmp(way, "exit0") == 0) leave(0);
    if (strcmp(way, "exit3") == 0) leave(3);
    if (strcmp(way, "_exit3") == 0) _exit(3);
    if (strcmp(way, "kill") == 0) raise(SIGKILL);
    fail("unknown way to leave");
  }
  double begin = mp_clock_seconds();
  await_loss_of_1(200);
  printf("rank %u: told after %.1f s: %s\n", g_job.rank, mp_clock_seconds() - begin, g_job.why);
  // As one does whose program cannot go on.
  if (strcmp(way, "exit0") != 0) leave(1);
  finish();
}

static void wait_for_ever(void) {
  barrier();
  printf("rank %u: waiting\n", g_job.rank);
  fflush(stdout);
  for (;;) pause();
}

// A child of a rank is alone.
static void children(void) {
  barrier();
  fflush(stdout);
  const char *command = "case $MINIPOD_MPI_OWNER in $PPID) exit 0;; *) exit 1;; esac";
  if (system(command) != 0) fail("a child does not know its parent");
  finish();
}

static void play(const char *name) {
  static const struct {
    const char *name;
    void (*play)(void);
  } scenarios[] = {{"who", who},           {"pairs", pairs}, {"large", large},
                   {"barriers", barriers}, {"idle", idle},   {"wait", wait_for_ever},
                   {"children", children}};
  for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); ++i) {
    if (strcmp(scenarios[i].name, name) == 0) {
      scenarios[i].play();
      return;
    }
  }
  one_leaves(name);
}

int main(int argc, char **argv) {
#ifdef JOB_OWNS_MPI
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
#endif
  mp_options_t *options = NULL;
  check(mp_options_create(NULL, 0, &options));
  mp_status_t status = mp_world_join(options, NULL, &g_job.world);
  mp_options_release(options);
  if (status != NULL) {
    fprintf(stderr, "%s: %s\n", mp_status_code_name(mp_status_code(status)),
            mp_status_message(status));
    mp_status_release(status);
    return 7;
  }
  if (g_job.world == NULL) {
    printf("alone\n");
    return 0;
  }
  g_job.rank = mp_world_rank(g_job.world);
  g_job.size = mp_world_size(g_job.world);
  mp_handler_t handler = {.deliver = deliver, .lost = lost, .context = &g_job};
  mp_world_attach(g_job.world, CHANNEL, &handler);
  mp_world_attach(g_job.world, NAP_CHANNEL, &(mp_handler_t){.deliver = take_nap});
  play(argc > 1 ? argv[1] : "who");
  leave(0);
}
