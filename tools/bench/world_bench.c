// What messages between processes cost, beside MPI's own:
//
//     ninja -C build minipod-bench-world && mpirun -n 2 build/minipod-bench-world [ROUNDS]
//
// Prints, on rank 0, for a range of sizes: half the time of a message to rank 1 and back (handlers
// answer on the progress threads), the same between waiting threads, and an MPI_Allreduce of as
// many bytes over all ranks. Times are in microseconds, medians and minima.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/transport/bootstrap/bootstrap.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/futex.h"

enum { CHANNEL = 0 };

typedef struct {
  mp_world_t *world;
  uint32_t rank;
  atomic_uint arrived;
  bool answers;           // in the handler
  mp_payload_t *payload;  // of the present size
} bench_t;

static bench_t g_bench;

static void check(mp_status_t status) {
  if (status == NULL) return;
  fprintf(stderr, "%s\n", mp_status_message(status));
  exit(1);
}

static void send_to(uint32_t rank) {
  mp_envelope_t envelope = {.channel = CHANNEL};
  check(mp_world_send(g_bench.world, rank, &envelope, g_bench.payload));
}

static void deliver(void *context, mp_packet_t *packet) {
  (void)context;
  if (g_bench.answers && g_bench.rank == 1) send_to(packet->from);
  mp_packet_release(packet);
  atomic_fetch_add(&g_bench.arrived, 1);
  mp_futex_wake_all(&g_bench.arrived);
}

static void await(unsigned count) {
  for (unsigned now; (now = atomic_load(&g_bench.arrived)) < count;) {
    mp_futex_wait(&g_bench.arrived, now, NULL);
  }
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

typedef struct {
  double median, least;
} summary_t;

static summary_t summarize(double *times, int count) {
  qsort(times, (size_t)count, sizeof(*times), by_value);
  return (summary_t){1e6 * times[count / 2], 1e6 * times[0]};
}

// One way, from rank 0 to rank 1 or back; fresh payloads are written each time if `writes`.
static summary_t ping_pong(size_t bytes, int rounds, bool answers, bool writes, double *times) {
  g_bench.answers = answers;
  check(mp_payload_create(g_bench.world, bytes, &g_bench.payload));
  memset(g_bench.payload->data, 1, bytes);
  unsigned count = atomic_load(&g_bench.arrived);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < rounds && g_bench.rank < 2; ++i) {
    double begin = mp_clock_seconds();
    if (writes) {
      mp_payload_release(g_bench.payload);
      check(mp_payload_create(g_bench.world, bytes, &g_bench.payload));
      memset(g_bench.payload->data, i, bytes);
    }
    if (g_bench.rank == 0) send_to(1);
    await(++count);
    if (g_bench.rank == 1 && !answers) send_to(0);
    times[i] = (mp_clock_seconds() - begin) / 2;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  mp_payload_release(g_bench.payload);
  return summarize(times, rounds);
}

static summary_t allreduce(size_t bytes, int rounds, double *times) {
  size_t count = bytes / sizeof(float);
  float *in = calloc(count, sizeof(float)), *out = calloc(count, sizeof(float));
  for (int i = 0; i < rounds && in != NULL && out != NULL; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = mp_clock_seconds();
    MPI_Allreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    times[i] = mp_clock_seconds() - begin;
  }
  free(in);
  free(out);
  return summarize(times, rounds);
}

int main(int argc, char **argv) {
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  int most = argc > 1 ? atoi(argv[1]) : 2000;
  mp_options_t *options = NULL;
  check(mp_options_create(NULL, 0, &options));
  check(mp_world_join(options, NULL, &g_bench.world));
  mp_options_release(options);
  if (g_bench.world == NULL) {
    fprintf(stderr, "start it with: mpirun -n 2 %s\n", argv[0]);
    return 1;
  }
  g_bench.rank = mp_world_rank(g_bench.world);
  mp_handler_t handler = {.deliver = deliver};
  mp_world_attach(g_bench.world, CHANNEL, &handler);
  double *times = calloc((size_t)most, sizeof(double));
  if (times == NULL) return 1;
  static const size_t sizes[] = {8, 1 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20};
  if (g_bench.rank == 0) {
    printf("one way, us: median (least)\n%10s %22s %22s %22s %22s\n", "bytes", "handlers",
           "threads", "threads, written", "MPI_Allreduce");
  }
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
    int rounds = sizes[i] <= 65536 ? most : most / 50 + 1;
    summary_t a = ping_pong(sizes[i], rounds, true, false, times);
    summary_t b = ping_pong(sizes[i], rounds, false, false, times);
    summary_t c = ping_pong(sizes[i], rounds, false, true, times);
    summary_t d = allreduce(sizes[i], rounds, times);
    if (g_bench.rank != 0) continue;
    printf("%10zu %11.1f (%8.1f) %11.1f (%8.1f) %11.1f (%8.1f) %11.1f (%8.1f)\n", sizes[i],
           a.median, a.least, b.median, b.least, c.median, c.least, d.median, d.least);
  }
  free(times);
  MPI_Finalize();
  return 0;
}
