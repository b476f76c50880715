// What this machine can do at most, for the shares that table.py prints:
//
//     build/minipod-bench-limits
//
// Prints a line of JSON: multiply-adds per second of f32 and f64 (two operations each, from
// registers); bytes per second of four kinds of traffic over arrays of several sizes; and the
// seconds from waking all threads until the last of them runs:
//
//     read    s += a[i]               bytes: a
//     update  a[i] = s * a[i]         bytes: a twice
//     copy    b[i] = a[i]             bytes: a and b
//     triad   c[i] = a[i] + s * b[i]  bytes: a, b and c
//
// Each thread works on arrays of its own, one thread per core that the process may use, and a size
// is that of all arrays of all threads.  The best of several rounds counts, and of copy and triad
// the faster of ordinary stores and those that go past the caches.  (STREAM, McCalpin 1995, counts
// bytes in the same way: what the program moves, without the reads that precede ordinary stores.)

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
  ROUNDS = 7,
  MOST_THREADS = 256,
  LANES = 16,         // of a vector: 64 bytes of floats; narrower machines split it
  CHAINS = 12,        // independent multiply-adds, which hide the latency of each
  FMA_STEPS = 20000,  // per call
};
#define ROUND_SECONDS 0.01  // the least that a round takes
#define ALIGNMENT     4096
// Arrays of a thread begin so far from each other's place in a page: a processor takes a load for
// one of what was just stored at the same place of another page, and waits.
#define APART 1344

#if defined(__x86_64__) && defined(__GNUC__)
#define FOR_EACH_MACHINE __attribute__((target_clones("arch=x86-64-v4", "arch=haswell", "default")))
#else
#define FOR_EACH_MACHINE
#endif

typedef struct {
  float *a, *b, *c;
  size_t count;  // elements of each
  float sink;    // keeps the compiler from dropping the work
} arrays_t;

typedef void work_fn(arrays_t *arrays);

// ---- What is measured ----

FOR_EACH_MACHINE static void do_read(arrays_t *arrays) {
  float sums[8 * LANES] = {0};
  for (size_t i = 0; i + 8 * LANES <= arrays->count; i += 8 * LANES) {
    for (size_t lane = 0; lane < 8 * LANES; lane++) sums[lane] += arrays->a[i + lane];
  }
  for (size_t lane = 0; lane < 8 * LANES; lane++) arrays->sink += sums[lane];
}

// The factor is one that the compiler does not know, and numbers stay what they are.
FOR_EACH_MACHINE static void do_update(arrays_t *arrays) {
  float *a = arrays->a;
  const size_t count = arrays->count;
  const float factor = a[0] > 0 ? 1.0F : 2.0F;
  for (size_t i = 0; i < count; i++) a[i] *= factor;
}

static void do_copy(arrays_t *arrays) {
  memcpy(arrays->b, arrays->a, arrays->count * sizeof(float));
}

FOR_EACH_MACHINE static void do_triad(arrays_t *arrays) {
  const float *restrict a = arrays->a, *restrict b = arrays->b;
  float *restrict c = arrays->c;
  for (size_t i = 0; i < arrays->count; i++) c[i] = a[i] + 3.0F * b[i];
}

#if defined(__x86_64__)
static void do_copy_past_caches(arrays_t *arrays) {
  for (size_t i = 0; i + 4 <= arrays->count; i += 4) {
    _mm_stream_ps(arrays->b + i, _mm_load_ps(arrays->a + i));
  }
  _mm_sfence();
}

static void do_triad_past_caches(arrays_t *arrays) {
  __m128 scale = _mm_set1_ps(3.0F);
  for (size_t i = 0; i + 4 <= arrays->count; i += 4) {
    __m128 product = _mm_mul_ps(scale, _mm_load_ps(arrays->b + i));
    _mm_stream_ps(arrays->c + i, _mm_add_ps(_mm_load_ps(arrays->a + i), product));
  }
  _mm_sfence();
}
#else
#define do_copy_past_caches  do_copy
#define do_triad_past_caches do_triad
#endif

// Vectors of 64 bytes, which the compiler splits where registers are narrower.  The chains begin
// with different numbers, or the compiler would make one of them.
#define DEFINE_FMA(name, type, lanes)                                                \
  typedef type name##_vector_t __attribute__((vector_size(sizeof(type) * (lanes)))); \
  FOR_EACH_MACHINE static void name(arrays_t *arrays) {                              \
    name##_vector_t sums[CHAINS] = {0}, x = {0}, y = {0};                            \
    x += (type)arrays->a[0] * (type)0.999;                                           \
    y += (type)arrays->a[1] * (type)1e-9;                                            \
    for (int i = 0; i < CHAINS; i++) sums[i] += (type)i * (type)arrays->a[2];        \
    for (int step = 0; step < FMA_STEPS; step++) {                                   \
      for (int i = 0; i < CHAINS; i++) sums[i] = sums[i] * x + y;                    \
    }                                                                                \
    for (int i = 1; i < CHAINS; i++) sums[0] += sums[i];                             \
    arrays->sink += (float)sums[0][0];                                               \
  }
DEFINE_FMA(do_fma_f32, float, LANES)
DEFINE_FMA(do_fma_f64, double, LANES / 2)

// ---- Threads ----

typedef struct {
  pthread_barrier_t barrier;
  work_fn *work;
  int calls;  // per round
  bool is_over;
} team_t;

typedef struct {
  team_t *team;
  arrays_t arrays;
  double woken;  // when it last began a round
} member_t;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void run_member(member_t *member) {
  for (int call = 0; call < member->team->calls; call++) member->team->work(&member->arrays);
}

static void *member_main(void *argument) {
  member_t *member = argument;
  for (;;) {
    pthread_barrier_wait(&member->team->barrier);
    member->woken = now();
    if (member->team->is_over) return NULL;
    run_member(member);
    pthread_barrier_wait(&member->team->barrier);
  }
}

// Seconds of one round of the whole team; the first member is the calling thread.
static double round_seconds(member_t *members) {
  team_t *team = members[0].team;
  pthread_barrier_wait(&team->barrier);
  double start = now();
  run_member(&members[0]);
  pthread_barrier_wait(&team->barrier);
  return now() - start;
}

// Calls of the work per second of each member, at best.
static double best_rate(member_t *members, work_fn *work) {
  team_t *team = members[0].team;
  team->work = work;
  team->calls = 1;
  double seconds;
  while ((seconds = round_seconds(members)) < ROUND_SECONDS) {
    team->calls = seconds < ROUND_SECONDS / 10 ? 4 * team->calls : 2 * team->calls;
  }
  for (int round = 0; round < ROUNDS; round++) seconds = fmin(seconds, round_seconds(members));
  return team->calls / seconds;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Seconds until all threads that sleep run, in the middle of many tries; 0 for one thread.
static double start_seconds(member_t *members, int threads) {
  enum { TRIES = 101 };
  double seconds[TRIES] = {0};
  team_t *team = members[0].team;
  team->calls = 0;
  for (int i = 0; i < TRIES && threads > 1; i++) {
    double begin = now();
    for (const double asleep = begin + 1e-4; begin < asleep; begin = now()) {
    }  // the others are
    round_seconds(members);
    for (int k = 1; k < threads; k++) seconds[i] = fmax(seconds[i], members[k].woken - begin);
  }
  qsort(seconds, TRIES, sizeof(*seconds), by_size);
  return seconds[TRIES / 2];
}

// ---- The whole ----

static void *array_create(size_t count, size_t number) {
  const size_t apart = number * APART / sizeof(float), size = (count + apart) * sizeof(float);
  float *array = aligned_alloc(ALIGNMENT, (size / ALIGNMENT + 1) * ALIGNMENT);
  if (array == NULL) {
    fprintf(stderr, "minipod-bench-limits: out of memory\n");
    exit(1);
  }
  for (size_t i = 0; i < count + apart; i++) array[i] = 1.0F;
  return array + apart;
}

static void print_traffic(member_t *members, int threads, const char *name, int arrays,
                          work_fn *work, work_fn *past_caches) {
  printf(", \"%s\": [", name);
  for (size_t bytes = 128 << 10; bytes <= (size_t)128 << 20; bytes *= 4) {
    size_t count = bytes / sizeof(float) / (size_t)(arrays * threads) / 128 * 128;
    for (int i = 0; i < threads; i++) members[i].arrays.count = count;
    double rate = best_rate(members, work);
    if (past_caches != NULL) rate = fmax(rate, best_rate(members, past_caches));
    double moved = (double)count * sizeof(float) * arrays * threads;
    if (work == do_update) moved *= 2;
    printf("%s[%zu, %.4g]", bytes == 128 << 10 ? "" : ", ", bytes, rate * moved);
  }
  printf("]");
}

static void print_limits(member_t *members, int threads) {
  double operations = 2.0 * FMA_STEPS * CHAINS * threads;
  printf("{\"threads\": %d, \"f32\": %.4g", threads,
         operations * LANES * best_rate(members, do_fma_f32));
  printf(", \"f64\": %.4g", operations * LANES / 2 * best_rate(members, do_fma_f64));
  printf(", \"start\": %.4g", start_seconds(members, threads));
  print_traffic(members, threads, "read", 1, do_read, NULL);
  print_traffic(members, threads, "update", 1, do_update, NULL);
  print_traffic(members, threads, "copy", 2, do_copy, do_copy_past_caches);
  print_traffic(members, threads, "triad", 3, do_triad, do_triad_past_caches);
  printf("}\n");
}

static int cores(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  int count = CPU_COUNT(&set);
  return count < MOST_THREADS ? count : MOST_THREADS;
}

int main(void) {
  static member_t members[MOST_THREADS];
  static pthread_t handles[MOST_THREADS];
  team_t team = {0};
  int threads = cores();
  pthread_barrier_init(&team.barrier, NULL, (unsigned)threads);
  size_t most = ((size_t)128 << 20) / sizeof(float) / (size_t)threads;  // all of it in one array
  for (int i = 0; i < threads; i++) {
    members[i].team = &team;
    members[i].arrays = (arrays_t){
        .a = array_create(most, 0), .b = array_create(most / 2, 1), .c = array_create(most / 3, 2)};
    if (i > 0 && pthread_create(&handles[i], NULL, member_main, &members[i]) != 0) return 1;
  }
  print_limits(members, threads);
  team.is_over = true;
  pthread_barrier_wait(&team.barrier);
  for (int i = 1; i < threads; i++) pthread_join(handles[i], NULL);
  return 0;
}
