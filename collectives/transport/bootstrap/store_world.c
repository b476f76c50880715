#include "collectives/transport/bootstrap/store_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "collectives/transport/bootstrap/leave.h"
#include "collectives/transport/bootstrap/near.h"
#include "collectives/transport/world_impl.h"
#include "sim/base/alloc.h"
#include "sim/base/os/clock.h"

// No launcher ends the job when a process has died, so the others need no time to be ended quietly.
static const double k_loss_grace_seconds = 0;
// How long the store is waited in at a time. In between it is seen whether a process has died.
static const double k_slice_seconds = 1;
// How long a process that is late is looked for once more, to name all that are missing.
static const double k_look_seconds = 0.05;

enum {
  MP_STORE_KEY_BYTES = 80,
  MP_MOST_MISSING = 64,  // only so many are looked for: nobody would read a longer list
};

// The hellos are under a name that is known before anything has been said.
static const char *const k_hello = "minipod/hello";

// On its way into a world.
typedef struct {
  const mp_key_value_store_t *store;
  uint32_t rank;
  uint32_t size;
  double timeout_s;
  double deadline;
  mp_world_t *world;
  mp_hello_t *hellos;         // [size]; all zero until they have come
  void **hello_pointers;      // [size], to them
  mp_segment_t **segments;    // [size], of the others
  mp_agreement_t *agreement;  // once the world runs
} store_world_t;

// ---- What processes put into the store: a status code, and bytes or the error's text ----

static void store_world_make_key(char key[MP_STORE_KEY_BYTES], const char *folder, uint32_t rank) {
  snprintf(key, MP_STORE_KEY_BYTES, "%s/%" PRIu32, folder, rank);
}

static mp_status_t store_world_put(const store_world_t *join, const char *key,
                                   mp_status_code_t code, mp_str_t bytes) {
  mp_strbuf_t value;
  mp_strbuf_init(&value);
  mp_strbuf_putc(&value, (char)code);
  mp_strbuf_append(&value, bytes.data, bytes.size);
  mp_status_t status = mp_strbuf_status(&value);
  if (status == NULL) {
    status = join->store->put(join->store->context, key, (mp_str_t){value.data, value.size});
  }
  mp_strbuf_deinit(&value);
  return status;
}

// Puts what became of a step here: `bytes`, or an error, of which at least the code is put when
// memory is short. Consumes `status`; an error comes back when the others have been told of it.
static mp_status_t store_world_tell(const store_world_t *join, const char *folder,
                                    mp_status_t status, mp_str_t bytes) {
  char key[MP_STORE_KEY_BYTES];
  store_world_make_key(key, folder, join->rank);
  if (status == NULL) {
    status = store_world_put(join, key, MP_OK, bytes);
    if (status == NULL) return NULL;
    if (mp_status_code(status) == MP_ALREADY_EXISTS) {
      return mp_status_annotate(
          status, "another process has joined as process %" PRIu32 " (node_id) already",
          join->rank);
    }
    status = mp_status_annotate(status, "telling the other processes through the key-value store");
  }
  const mp_str_t text = mp_str(mp_status_message(status));
  mp_status_t told = store_world_put(join, key, mp_status_code(status), text);
  if (told != NULL) {
    mp_status_ignore(told);
    const char code = (char)mp_status_code(status);
    told = join->store->put(join->store->context, key, (mp_str_t){&code, 1});
  }
  mp_status_ignore(told);
  return status;
}

// Reads what another process has put; its error, with its name, if that is one.
static mp_status_t store_world_hear(const store_world_t *join, uint32_t rank,
                                    const mp_strbuf_t *value) {
  if (value->size != 0 && value->data[0] == MP_OK) return NULL;
  char name[MP_PEER_NAME_BYTES];
  mp_world_peer_name(join->world, rank, name);
  if (value->size == 0) return mp_status_make(MP_INTERNAL, "%s has told nothing", name);
  const mp_status_code_t code = mp_status_code_of_number((unsigned char)value->data[0]);
  if (value->size == 1) return mp_status_make(code, "%s has failed, and could not say why", name);
  return mp_status_make(code, "%s has failed: %.*s", name, mp_str_precision(value->size - 1),
                        value->data + 1);
}

static bool store_world_is_pending(mp_status_t status) {
  return mp_status_code(status) == MP_DEADLINE_EXCEEDED || mp_status_code(status) == MP_NOT_FOUND;
}

// The processes from `rank` on, which has not come, that are missing, too.
static mp_status_t store_world_name_missing(const store_world_t *join, const char *folder,
                                            uint32_t rank) {
  mp_strbuf_t text, value;
  mp_strbuf_init(&text);
  mp_strbuf_init(&value);
  for (uint32_t i = rank; i < join->size && i - rank < MP_MOST_MISSING; ++i) {
    char key[MP_STORE_KEY_BYTES], name[MP_PEER_NAME_BYTES];
    store_world_make_key(key, folder, i);
    mp_status_t status = join->store->get(join->store->context, key, k_look_seconds, &value);
    mp_world_peer_name(join->world, i, name);
    if (status != NULL) mp_strbuf_printf(&text, "%s%s", text.size == 0 ? "" : ", ", name);
    mp_status_ignore(status);
  }
  mp_status_t status = mp_status_make(
      MP_DEADLINE_EXCEEDED,
      "not heard of within %g s: %s (of the %" PRIu32
      " processes that num_nodes speaks of); does each of them use minipod?",
      join->timeout_s, text.size == 0 ? "a process that was late" : mp_strbuf_text(&text),
      join->size);
  mp_strbuf_deinit(&value);
  mp_strbuf_deinit(&text);
  return status;
}

// Waits until a process has put its value, and appends that to `value`.
static mp_status_t store_world_await(const store_world_t *join, const char *folder, uint32_t rank,
                                     mp_strbuf_t *value) {
  char key[MP_STORE_KEY_BYTES];
  store_world_make_key(key, folder, rank);
  for (;;) {
    const double begin = mp_clock_seconds();
    const double left = join->deadline - begin;
    if (left <= 0) return store_world_name_missing(join, folder, rank);
    const double slice = left < k_slice_seconds ? left : k_slice_seconds;
    mp_status_t status = join->store->get(join->store->context, key, slice, value);
    if (status == NULL) return mp_strbuf_status(value);
    if (!store_world_is_pending(status)) {
      return mp_status_annotate(status, "looking for process %" PRIu32 " in the key-value store",
                                rank);
    }
    mp_status_ignore(status);
    if (join->agreement != NULL) MP_RETURN_IF_ERROR(mp_agreement_check(join->agreement));
    // A store that does not wait itself must not be asked without a pause.
    const struct timespec pause = {.tv_nsec = 10000000};
    if (mp_clock_seconds() - begin < slice / 2) nanosleep(&pause, NULL);
  }
}

// ---- Steps ----

// Memory between two hosts cannot be shared, and nothing else connects processes here.
static mp_status_t store_world_compare_hosts(const store_world_t *join, uint32_t rank) {
  const mp_hello_t *own = &join->hellos[join->rank], *other = &join->hellos[rank];
  if (strncmp(own->hostname, other->hostname, sizeof(own->hostname)) == 0 &&
      strncmp(own->boot_id, other->boot_id, sizeof(own->boot_id)) == 0) {
    return NULL;
  }
  return mp_status_make(
      MP_FAILED_PRECONDITION,
      "process %" PRIu32 " is on host %.63s (boot %.39s), process %" PRIu32
      " on host %.63s (boot %.39s): without an MPI launcher a pod lies on one host; for several, "
      "start the processes by mpirun: 'mpirun --bind-to none --hostfile hosts python script.py'",
      join->rank, own->hostname, own->boot_id, rank, other->hostname, other->boot_id);
}

static mp_status_t store_world_take_hello(store_world_t *join, uint32_t rank) {
  const mp_hello_t own = join->hellos[join->rank];
  mp_strbuf_t value;
  mp_strbuf_init(&value);
  mp_status_t status = store_world_await(join, k_hello, rank, &value);
  if (status == NULL) status = store_world_hear(join, rank, &value);
  if (status == NULL) {
    status = mp_hello_compare(join->rank, (mp_str_t){(const char *)&own, sizeof(own)}, rank,
                              (mp_str_t){value.data + 1, value.size - 1});
  }
  if (status == NULL) {
    memcpy(&join->hellos[rank], value.data + 1, sizeof(own));
    mp_hello_take(join->world, rank, &join->hellos[rank]);
    status = store_world_compare_hosts(join, rank);
  }
  mp_strbuf_deinit(&value);
  return status;
}

// What all need before they can be heard of: a world without peers, and memory to share.
static mp_status_t store_world_prepare(store_world_t *join) {
  join->hellos = mp_calloc(join->size, sizeof(*join->hellos));
  join->hello_pointers = mp_calloc(join->size, sizeof(void *));
  join->segments = mp_calloc(join->size, sizeof(mp_segment_t *));
  if (join->hellos == NULL || join->hello_pointers == NULL || join->segments == NULL) {
    return mp_status_out_of_memory();
  }
  for (uint32_t i = 0; i < join->size; ++i) join->hello_pointers[i] = &join->hellos[i];
  MP_RETURN_IF_ERROR(mp_world_create(join->rank, join->size, &join->world));
  MP_RETURN_IF_ERROR(mp_segment_create(join->size, join->size, &join->world->segment));
  join->world->doorbell = mp_segment_doorbell(join->world->segment);
  join->hellos[join->rank] = mp_hello_make(join->size, 0, join->world->segment);
  return NULL;
}

// Maps the memory of all others, and starts the world on it.
static mp_status_t store_world_connect(store_world_t *join) {
  mp_world_t *world = join->world;
  int64_t *leaders = mp_calloc(join->size, sizeof(*leaders));  // all are led by rank 0
  MP_RETURN_IF_NULL(leaders);
  mp_near_number_hosts(world, leaders);
  mp_status_t status = mp_near_open(world, join->hello_pointers, leaders, join->segments);
  mp_free(leaders);
  if (status != NULL) {
    return mp_status_annotate(
        status,
        "the processes cannot share memory (one of them has ended; or they run in "
        "containers, which need one host name and one set of process numbers, "
        "or as different users: mpirun connects those)");
  }
  MP_RETURN_IF_ERROR(
      mp_near_connect(world, join->hello_pointers, join->segments, k_loss_grace_seconds));
  return mp_world_start(world);
}

// Waits until all others have said that they are connected, too.
static mp_status_t store_world_await_all(const store_world_t *join, const char *folder) {
  mp_strbuf_t value;
  mp_strbuf_init(&value);
  mp_status_t status = NULL;
  for (uint32_t rank = 0; rank < join->size && status == NULL; ++rank) {
    mp_strbuf_deinit(&value);
    mp_strbuf_init(&value);
    status = store_world_await(join, folder, rank, &value);
    if (status == NULL) status = store_world_hear(join, rank, &value);
  }
  mp_strbuf_deinit(&value);
  return status;
}

// A process that has failed may have ended before this one could map its memory. Then its error is
// the cause, and takes the place of `status`, which is consumed.
static mp_status_t store_world_find_cause(const store_world_t *join, const char *folder,
                                          mp_status_t status) {
  mp_status_t cause = NULL;
  if (mp_status_code(status) != MP_UNAVAILABLE) return status;
  for (uint32_t rank = 0; rank < join->size && rank < MP_MOST_MISSING && cause == NULL; ++rank) {
    char key[MP_STORE_KEY_BYTES];
    store_world_make_key(key, folder, rank);
    mp_strbuf_t value;
    mp_strbuf_init(&value);
    mp_status_t got = join->store->get(join->store->context, key, k_look_seconds, &value);
    if (got == NULL) cause = store_world_hear(join, rank, &value);
    mp_status_ignore(got);
    mp_strbuf_deinit(&value);
  }
  if (cause == NULL) return status;
  mp_status_ignore(status);
  return cause;
}

static mp_status_t store_world_take_hellos(store_world_t *join) {
  mp_hello_take(join->world, join->rank, &join->hellos[join->rank]);
  for (uint32_t rank = 0; rank < join->size; ++rank) {
    if (rank != join->rank) MP_RETURN_IF_ERROR(store_world_take_hello(join, rank));
  }
  return NULL;
}

// What processes say once they know rank 0 is under the name of their job, in case the store has
// seen others before.
static mp_status_t store_world_meet(store_world_t *join, double exit_timeout_s) {
  mp_status_t status = store_world_take_hellos(join);
  if (status == NULL) status = store_world_connect(join);
  if (status == NULL) status = mp_leave_prepare(NULL, false, (int)join->rank, exit_timeout_s);
  if (status != NULL && join->hellos[0].job == 0) return status;  // all miss rank 0
  char folder[MP_STORE_KEY_BYTES / 2];
  snprintf(folder, sizeof(folder), "minipod/%016" PRIx64 "/connected", join->hellos[0].job);
  if (status != NULL) {
    return store_world_tell(join, folder, store_world_find_cause(join, folder, status), MP_STR(""));
  }
  mp_leave_set_world(join->world, NULL);
  // The agreement closes the gap between those that have heard all others in the store and those
  // whom the store has failed meanwhile.
  mp_agreement_t agreement;
  mp_agreement_begin(join->world, join->timeout_s, &agreement);
  join->agreement = &agreement;
  status = store_world_tell(join, folder, NULL, MP_STR(""));
  if (status == NULL) status = store_world_await_all(join, folder);
  join->agreement = NULL;
  status = mp_agreement_end(&agreement, status);
  if (status != NULL) mp_world_say_goodbye(join->world, 0);
  return status;
}

static mp_status_t store_world_join(store_world_t *join, double exit_timeout_s) {
  mp_status_t status = store_world_prepare(join);
  const mp_str_t hello = {status == NULL ? (const char *)&join->hellos[join->rank] : "",
                          status == NULL ? sizeof(mp_hello_t) : 0};
  MP_RETURN_IF_ERROR(store_world_tell(join, k_hello, status, hello));
  return store_world_meet(join, exit_timeout_s);
}

// Drops what an attempt that failed has made. The own memory stays, once: others may only now be
// looking for it, and are to see an error that says more.
static void store_world_give_up(store_world_t *join) {
  static mp_segment_t *kept;  // under the lock of joining (bootstrap.c)
  mp_leave_set_world(NULL, NULL);
  if (join->world == NULL) return;
  mp_segment_t *segment = join->world->segment;
  if (kept == NULL && segment != NULL) kept = mp_segment_retain(segment);
  mp_world_release(join->world);
}

mp_status_t mp_store_world_join(const mp_options_t *options, const mp_key_value_store_t *store,
                                mp_world_t **out_world) {
  if (options->node_id < 0 || options->node_id >= options->num_nodes) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "option 'node_id': expected the number of this process, 0 to %" PRId64
                          " (num_nodes is %" PRId64 "), got %" PRId64,
                          options->num_nodes - 1, options->num_nodes, options->node_id);
  }
  store_world_t join = {.store = store,
                        .rank = (uint32_t)options->node_id,
                        .size = (uint32_t)options->num_nodes,
                        .timeout_s = (double)options->init_timeout};
  join.deadline = mp_clock_seconds() + join.timeout_s;
  mp_status_t status = store_world_join(&join, (double)options->exit_timeout);
  for (uint32_t i = 0; join.segments != NULL && i < join.size; ++i) {
    mp_segment_release(join.segments[i]);
  }
  mp_free(join.segments);
  mp_free(join.hello_pointers);
  mp_free(join.hellos);
  if (status == NULL) {
    *out_world = join.world;
  } else {
    store_world_give_up(&join);
  }
  return status;
}
