// Torture: launches over several processes, on one host and on several, and their start and end.
#include "pjrt/package/pjrt_top.h"
#include "tests/unit/support/fixtures.h"
#include "tests/unit/torture/torture_pjrt.h"
#include "tests/unit/torture/torture_texts.h"

#define POD_CLIENT  PJRT_Client
#define POD_CREATE  mp_pjrt_client_create_in
#define POD_DESTROY destroy_client
#include "tests/unit/support/processes/worlds.h"

enum { MAX_ROWS = 60, DEVICES = 4 };

// How the four devices are spread.
typedef struct {
  const char *name;
  uint32_t num_ranks, per_host;
} shape_t;

static const shape_t k_shapes[] = {
    {"two processes of a host", 2, 2},
    {"two hosts", 2, 1},
    {"four processes of two hosts", 4, 2},
};

typedef struct {
  torture_code_t code;
  const shape_t *shape;
} subject_t;

static pods_t g_pods;
static torture_launch_t g_launches[MAX_WORLDS];

// What waits longer than that hangs.
#define PATIENCE                                                                    \
  {"init_timeout", "30"}, {"collective_warn", "0"}, {"collective_timeout", "30"}, { \
    "exit_timeout", "5"                                                             \
  }

static const pod_option_t k_two_each[] = {
    TORTURE_MACHINE, {"num_devices", "2"}, {"workers", "1"}, PATIENCE, {NULL, NULL}};
static const pod_option_t k_one_each[] = {
    TORTURE_MACHINE, {"num_devices", "1"}, {"workers", "1"}, PATIENCE, {NULL, NULL}};

static const pod_option_t *options_of(const shape_t *shape) {
  return shape->num_ranks == 2 ? k_two_each : k_one_each;
}

static int64_t books_of_all(void) {
  int64_t sum = 0;
  for (uint32_t rank = 0; rank < g_pods.count; ++rank) sum += books_of(g_pods.clients[rank]);
  return sum;
}

// ---- Launches ----

// The socket on which a process answers is there for ever, from its first client with an observer
// on.
static void open_pods(const void *subject) {
  const subject_t *s = subject;
  mp_pjrt_top_begin();
  start_pods(&g_pods, s->shape->num_ranks, s->shape->per_host, options_of(s->shape));
  for (uint32_t rank = 0; rank < g_pods.count; ++rank) {
    assert_true(try_load(g_pods.clients[rank], &s->code, &g_launches[rank]));
  }
}

static void close_pods(void) {
  for (uint32_t rank = 0; rank < g_pods.count; ++rank) unload(&g_launches[rank]);
  stop_pods(&g_pods);
  g_pods.count = 0;
}

// All processes launch, or none does: a process that leaves one out is wrong and no matter of
// memory.
static void launch_on_all(const void *subject) {
  (void)subject;
  bool is_launched[MAX_WORLDS] = {false}, is_well = true;
  for (uint32_t rank = 0; rank < g_pods.count; ++rank) {
    is_well = is_well && try_inputs(&g_launches[rank]);
  }
  for (uint32_t rank = 0; rank < g_pods.count && is_well; ++rank) {
    is_launched[rank] = try_execute(&g_launches[rank]);
  }
  for (uint32_t rank = 0; rank < g_pods.count; ++rank) {
    torture_launch_t *l = &g_launches[rank];
    for (size_t d = 0; is_launched[rank] && d < l->num_devices; ++d) {
      (void)survived(await_event(l->done[d]));
    }
  }
  for (uint32_t rank = 0; rank < g_pods.count; ++rank) {
    if (torture_is_well()) fetch(&g_launches[rank]);
    drop_launch(&g_launches[rank]);
  }
}

// ---- Start and end ----

typedef struct {
  pods_t *pods;
  uint32_t rank;
  const mp_options_t *options;
} starter_t;

static void *start_client(void *context) {
  const starter_t *self = context;
  pods_t *pods = self->pods;
  pods->statuses[self->rank] =
      mp_pjrt_client_create_in(self->options, pods->worlds[self->rank], &pods->clients[self->rank]);
  return NULL;
}

// All processes have a client, or none has one and each says why.
static void start_clients(pods_t *pods, const mp_options_t *options) {
  pthread_t threads[MAX_WORLDS];
  starter_t starters[MAX_WORLDS];
  for (uint32_t rank = 0; rank < pods->count; ++rank) {
    starters[rank] = (starter_t){pods, rank, options};
    assert_int_equal(pthread_create(&threads[rank], NULL, start_client, &starters[rank]), 0);
  }
  for (uint32_t rank = 0; rank < pods->count; ++rank) pthread_join(threads[rank], NULL);
  for (uint32_t rank = 0; rank < pods->count; ++rank) {
    const bool is_well = torture_survived(pods->statuses[rank]);
    pods->statuses[rank] = NULL;
    assert_int_equal(is_well, pods->clients[rank] != NULL);
    assert_int_equal(is_well, pods->clients[0] != NULL);
  }
}

static void start_and_end(const void *subject) {
  const shape_t *shape = subject;
  pods_t pods = {.count = shape->num_ranks};
  mp_options_t *options = NULL;
  if (!torture_survived(make_pod_options(options_of(shape), &options))) return;
  if (torture_survived(mp_worlds_create_local(pods.count, shape->per_host, pods.worlds))) {
    start_clients(&pods, options);
    stop_pods(&pods);
  }
  mp_options_release(options);
}

// The second clients of the same worlds, as after clear_backends().
static void start_again(const void *subject) {
  mp_options_t *options = NULL;
  if (!torture_survived(make_pod_options(options_of(subject), &options))) return;
  start_clients(&g_pods, options);
  for (uint32_t rank = 0; rank < g_pods.count; ++rank) {
    if (g_pods.clients[rank] != NULL) destroy_client(g_pods.clients[rank]);
    g_pods.clients[rank] = NULL;
  }
  mp_options_release(options);
}

static void open_worlds(const void *subject) {
  const shape_t *shape = subject;
  start_pods(&g_pods, shape->num_ranks, shape->per_host, options_of(shape));
  for (uint32_t rank = 0; rank < g_pods.count; ++rank) {
    destroy_client(g_pods.clients[rank]);
    g_pods.clients[rank] = NULL;
  }
}

static void close_worlds(void) {
  stop_pods(&g_pods);
  g_pods.count = 0;
}

// ---- The table ----

// Which programs go over which shapes; the rest is one process's business.
static const struct {
  const char *program;
  int first_shape, num_shapes;
} k_programs[] = {
    {"sum", 0, 3},
    {"sums of large arrays in a loop", 0, 3},
    {"send and receive", 0, 2},
    {"donate on four devices in turns", 1, 1},
    {"manual: psum, pmax and all_gather", 0, 3},
    {"manual: psum_scatter and all_to_all", 0, 3},
    {"manual: ppermute and pbroadcast", 0, 2},
    {"manual: collectives in a loop", 1, 1},
    {"manual: ragged_all_to_all", 0, 2},
    {"sharded: matmul, both axes", 1, 1},
    {"sharded: sort, gather, scatter", 2, 1},
    {"gspmd: loop", 0, 1},
};

static subject_t g_subjects[MAX_ROWS];
static torture_row_t g_rows[MAX_ROWS];
static char g_names[MAX_ROWS][100];
static size_t g_count;

static void add_launch(const char *name, const char *text, const shape_t *shape) {
  if (g_count == MAX_ROWS) return;
  g_subjects[g_count] = (subject_t){{text, strlen(text), 0, 0}, shape};
  snprintf(g_names[g_count], sizeof(g_names[0]), "%s: %s", shape->name, name);
  g_rows[g_count] = (torture_row_t){.name = g_names[g_count],
                                    .open = open_pods,
                                    .attempt = launch_on_all,
                                    .close = close_pods,
                                    .subject = &g_subjects[g_count],
                                    .books = books_of_all,
                                    .needs_memory_back = true};
  ++g_count;
}

static void add_program(const char *name, const char *text) {
  for (size_t i = 0; i < sizeof(k_programs) / sizeof(k_programs[0]); ++i) {
    if (strcmp(k_programs[i].program, name) != 0) continue;
    for (int s = 0; s < k_programs[i].num_shapes; ++s) {
      add_launch(name, text, &k_shapes[k_programs[i].first_shape + s]);
    }
  }
}

static void add_starts(void) {
  for (int s = 0; s < 3; ++s) {
    snprintf(g_names[g_count], sizeof(g_names[0]), "%s: start and end", k_shapes[s].name);
    g_rows[g_count] = (torture_row_t){.name = g_names[g_count],
                                      .attempt = start_and_end,
                                      .subject = &k_shapes[s],
                                      .needs_memory_back = true};
    ++g_count;
    snprintf(g_names[g_count], sizeof(g_names[0]), "%s: start again", k_shapes[s].name);
    g_rows[g_count] = (torture_row_t){.name = g_names[g_count],
                                      .open = open_worlds,
                                      .attempt = start_again,
                                      .close = close_worlds,
                                      .subject = &k_shapes[s],
                                      .needs_memory_back = true};
    ++g_count;
  }
}

int main(int argc, char **argv) {
  fixture_t launches = fixture_read("torture_launches.txt");
  fixture_t programs = fixture_read("torture_programs.txt");
  add_starts();
  torture_texts(launches.data, NULL, add_program);
  torture_texts(programs.data, NULL, add_program);
  const int result = torture_main(g_rows, g_count, argc, argv);
  free(launches.data);
  free(programs.data);
  return result;
}
