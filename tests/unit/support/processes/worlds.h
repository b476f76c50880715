// Several clients in one test process, as if each were a process of a job. Of the runtime, or of
// what POD_CLIENT, POD_CREATE and POD_DESTROY say.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_PROCESSES_WORLDS_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_PROCESSES_WORLDS_H_

#include <pthread.h>

#include "collectives/transport/world_local.h"
#include "sim/runtime/client.h"
#include "sim/runtime/parcels/parcel.h"
#include "sim/runtime/remote/router.h"
#include "tests/unit/support/unit.h"

#ifndef POD_CLIENT
#define POD_CLIENT  mp_client_t
#define POD_CREATE  mp_client_create_in
#define POD_DESTROY mp_client_release
#endif

enum { MAX_WORLDS = 8 };

typedef struct {
  uint32_t count;
  mp_world_t *worlds[MAX_WORLDS];
  POD_CLIENT *clients[MAX_WORLDS];  // NULL where the status says why
  mp_status_t statuses[MAX_WORLDS];
} pods_t;

// The options of one rank, as a list that ends with an empty name.
typedef struct {
  const char *name, *value;
} pod_option_t;
enum { MAX_POD_OPTIONS = 10 };

typedef struct {
  pods_t *pods;
  uint32_t rank;
  const pod_option_t *options;
} pod_start_t;

static inline mp_status_t make_pod_options(const pod_option_t *option, mp_options_t **out_options) {
  mp_named_value_t values[MAX_POD_OPTIONS];
  size_t count = 0;
  for (; option->name != NULL; ++option) {
    values[count++] = (mp_named_value_t){.name = mp_str(option->name),
                                         .type = MP_VALUE_STRING,
                                         .string_value = mp_str(option->value)};
  }
  return mp_options_create(values, count, out_options);
}

static inline void *start_pod_client(void *context) {
  const pod_start_t *start = context;
  mp_options_t *options = NULL;
  mp_status_t status = make_pod_options(start->options, &options);
  if (status == NULL) {
    status =
        POD_CREATE(options, start->pods->worlds[start->rank], &start->pods->clients[start->rank]);
    mp_options_release(options);
  }
  start->pods->statuses[start->rank] = status;
  return NULL;
}

// Starts a client in each of `count` worlds; options[rank] may differ. Creation may fail.
static inline void try_start_pods(pods_t *pods, uint32_t count, uint32_t per_host,
                                  const pod_option_t *const *options) {
  *pods = (pods_t){.count = count};
  assert_ok(mp_worlds_create_local(count, per_host, pods->worlds));
  pthread_t threads[MAX_WORLDS];
  pod_start_t starts[MAX_WORLDS];
  for (uint32_t rank = 0; rank < count; ++rank) {
    starts[rank] = (pod_start_t){pods, rank, options[rank]};
    assert_int_equal(pthread_create(&threads[rank], NULL, start_pod_client, &starts[rank]), 0);
  }
  for (uint32_t rank = 0; rank < count; ++rank) pthread_join(threads[rank], NULL);
}

// The same options for all, and no failure.
static inline void start_pods(pods_t *pods, uint32_t count, uint32_t per_host,
                              const pod_option_t *options) {
  const pod_option_t *all[MAX_WORLDS];
  for (uint32_t rank = 0; rank < count; ++rank) all[rank] = options;
  try_start_pods(pods, count, per_host, all);
  for (uint32_t rank = 0; rank < count; ++rank) assert_ok(pods->statuses[rank]);
}

static inline void *close_pod_world(void *world) {
  mp_router_forget(world);
  mp_parcels_forget(world);
  mp_world_close(world);
  return NULL;
}

static inline void stop_pods(pods_t *pods) {
  pthread_t threads[MAX_WORLDS];
  for (uint32_t rank = 0; rank < pods->count; ++rank) {
    if (pods->clients[rank] != NULL) POD_DESTROY(pods->clients[rank]);
    mp_status_release(pods->statuses[rank]);
  }
  for (uint32_t rank = 0; rank < pods->count; ++rank) {
    assert_int_equal(pthread_create(&threads[rank], NULL, close_pod_world, pods->worlds[rank]), 0);
  }
  for (uint32_t rank = 0; rank < pods->count; ++rank) pthread_join(threads[rank], NULL);
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_PROCESSES_WORLDS_H_
