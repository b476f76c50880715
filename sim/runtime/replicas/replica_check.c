#include "sim/runtime/replicas/replica_check.h"

#include <inttypes.h>

#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/runtime/devices/unread.h"

// An array on the device of a share.
typedef struct {
  mp_storage_t *storage;  // a hold until the array was compared; NULL: an error buffer
  mp_event_t *ready;      // retained, until the check begins; NULL: a result
} held_t;

struct mp_replica_check_s {
  atomic_int references;
  mp_replicas_t *replicas;  // retained
  uint32_t num_shares;
  uint32_t *logical;  // [num_shares]
  uint64_t launch;
  char *caller;  // NULL: not known
  bool is_exchanged;
  mp_event_t *arguments, *compared, *done;
  // How many additions are still awaited, and one for the thread that adds them. The thread that
  // counts down to 0 compares; it sees what all the others have added.
  atomic_uint num_arguments, num_runs;
  atomic_uint num_verdicts;         // missing verdicts: of this process, and of all processes
  atomic_bool has_failed_argument;  // an argument has failed, so the runs fail anyway
  // The first error of a run, a comparison or the exchange; owned.
  _Atomic(mp_status_t) error;
  held_t *held;       // [num_shares][num_arrays]
  uint64_t *digests;  // [num_shares][num_arrays]; written by the thread that compares
};

static uint32_t replica_check_num_arrays(const mp_replica_check_t *check) {
  return check->replicas->num_arrays;
}

static size_t replica_check_at(const mp_replica_check_t *check, uint32_t share, uint32_t array) {
  MP_ASSERT(share < check->num_shares && array < replica_check_num_arrays(check));
  return (size_t)share * replica_check_num_arrays(check) + array;
}

static mp_status_t replica_check_fill(mp_replica_check_t *check,
                                      const mp_replica_check_spec_t *spec) {
  const size_t count = (size_t)spec->num_shares * spec->replicas->num_arrays;
  check->logical = mp_calloc(spec->num_shares, sizeof(*check->logical));
  check->held = mp_calloc(count, sizeof(*check->held));
  check->digests = mp_calloc(count, sizeof(*check->digests));
  if (check->logical == NULL || check->held == NULL || check->digests == NULL) {
    return mp_status_out_of_memory();
  }
  memcpy(check->logical, spec->logical, spec->num_shares * sizeof(*check->logical));
  if (spec->caller != NULL && spec->caller[0] != '\0') {
    const size_t size = strlen(spec->caller) + 1;
    check->caller = mp_malloc(size);
    MP_RETURN_IF_NULL(check->caller);
    memcpy(check->caller, spec->caller, size);
  }
  MP_RETURN_IF_ERROR(mp_event_create(&check->arguments));
  MP_RETURN_IF_ERROR(mp_event_create(&check->compared));
  return mp_event_create(&check->done);
}

mp_status_t mp_replica_check_create(const mp_replica_check_spec_t *spec,
                                    mp_replica_check_t **out_check) {
  mp_replica_check_t *check = mp_calloc(1, sizeof(*check));
  MP_RETURN_IF_NULL(check);
  atomic_init(&check->references, 1);
  atomic_init(&check->num_arguments, 1);
  atomic_init(&check->num_runs, 1);
  atomic_init(&check->num_verdicts, spec->is_exchanged ? 2 : 1);
  check->replicas = mp_replicas_retain(spec->replicas);
  check->num_shares = spec->num_shares;
  check->launch = spec->launch;
  check->is_exchanged = spec->is_exchanged;
  mp_status_t status = replica_check_fill(check, spec);
  if (status == NULL) {
    *out_check = check;
  } else {
    mp_replica_check_release(check);
  }
  return status;
}

mp_replica_check_t *mp_replica_check_retain(mp_replica_check_t *check) {
  // Relaxed: the caller has a reference already.
  if (check != NULL) atomic_fetch_add_explicit(&check->references, 1, memory_order_relaxed);
  return check;
}

// Releases the arrays from `begin` to `end`.
static void replica_check_let_go(mp_replica_check_t *check, uint32_t begin, uint32_t end) {
  for (uint32_t s = 0; s < check->num_shares && check->held != NULL; ++s) {
    for (uint32_t a = begin; a < end; ++a) {
      held_t *held = &check->held[replica_check_at(check, s, a)];
      mp_storage_release(held->storage);
      mp_event_release(held->ready);
      *held = (held_t){0};
    }
  }
}

void mp_replica_check_release(mp_replica_check_t *check) {
  if (check == NULL) return;
  // As all counts of references: the last one frees it after the others.
  if (atomic_fetch_sub_explicit(&check->references, 1, memory_order_acq_rel) != 1) return;
  replica_check_let_go(check, 0, replica_check_num_arrays(check));
  mp_status_release(atomic_load(&check->error));
  mp_event_release(check->arguments);
  mp_event_release(check->compared);
  mp_event_release(check->done);
  mp_replicas_release(check->replicas);
  mp_free(check->logical);
  mp_free(check->caller);
  mp_free(check->held);
  mp_free(check->digests);
  mp_free(check);
}

mp_event_t *mp_replica_check_arguments(const mp_replica_check_t *check) {
  return check->arguments;
}

mp_event_t *mp_replica_check_done(const mp_replica_check_t *check) {
  return check->done;
}

mp_event_t *mp_replica_check_compared(const mp_replica_check_t *check) {
  return check->compared;
}

const mp_replicas_t *mp_replica_check_replicas(const mp_replica_check_t *check) {
  return check->replicas;
}

void mp_replica_check_add(mp_replica_check_t *check, uint32_t share, uint32_t array,
                          mp_storage_t *storage, mp_event_t *ready) {
  check->held[replica_check_at(check, share, array)] =
      (held_t){mp_storage_retain(storage), mp_event_retain(ready)};
}

// ---- Comparing ----

// The difference in one array: the number of devices that differ, and a description of the first.
typedef struct {
  uint32_t array, share, reference;  // shares
  uint32_t num_devices;
  mp_replicas_difference_t difference;
} finding_t;

// The number of devices that hold the same part of an array as device d.
static uint32_t replica_check_count_same(const mp_replicas_t *replicas,
                                         const mp_replicated_t *array, uint32_t d) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < replicas->num_devices; ++i) count += array->first[i] == array->first[d];
  return count;
}

// "result w of jit_step should be the same on 8 devices; device 3 differs from device 0"
static void replica_check_print_devices(const mp_replica_check_t *check,
                                        const mp_replicated_t *array, uint32_t d,
                                        uint32_t reference, mp_strbuf_t *out) {
  const mp_replicas_t *replicas = check->replicas;
  mp_strbuf_printf(out,
                   "%s of %s should be the same on %" PRIu32 " devices; device %" PRIu32
                   " differs from device %" PRIu32,
                   array->name, replicas->program, replica_check_count_same(replicas, array, d),
                   replicas->ids[d], replicas->ids[reference]);
}

// ", since launch 1 of jit_step (a.py:13); it is computed by sub at a.py:9". Arguments already
// differed before the launch, because the caller has given them.
static void replica_check_print_launch(const mp_replica_check_t *check,
                                       const mp_replicated_t *array, mp_strbuf_t *out) {
  mp_strbuf_printf(out, ", %s launch %" PRIu64 " of %s", array->is_result ? "since" : "before",
                   check->launch, check->replicas->program);
  if (check->caller != NULL) mp_strbuf_printf(out, " (%s)", check->caller);
  if (array->maker[0] != '\0') mp_strbuf_printf(out, "; it is computed by %s", array->maker);
}

static mp_status_t replica_check_make_error(mp_strbuf_t *text) {
  mp_status_t status = mp_strbuf_status(text);
  if (status == NULL) {
    status = mp_status_make(MP_FAILED_PRECONDITION, "%s", mp_strbuf_text(text));
  }
  mp_strbuf_deinit(text);
  return status;
}

static mp_status_t replica_check_report(const mp_replica_check_t *check, const finding_t *found,
                                        uint32_t num_arrays) {
  const mp_replicated_t *array = &check->replicas->arrays[found->array];
  const mp_storage_t *own =
      check->held[replica_check_at(check, found->share, found->array)].storage;
  const mp_storage_t *other =
      check->held[replica_check_at(check, found->reference, found->array)].storage;
  const uint32_t d = check->logical[found->share];
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  replica_check_print_devices(check, array, d, check->logical[found->reference], &text);
  mp_strbuf_puts(&text, " in ");
  mp_replicas_print(check->replicas, array, d, &found->difference, own->data, other->data, &text);
  if (found->num_devices > 1) {
    mp_strbuf_printf(&text, ", and so %s %" PRIu32 " more", found->num_devices == 2 ? "does" : "do",
                     found->num_devices - 1);
  }
  replica_check_print_launch(check, array, &text);
  if (num_arrays > 1) {
    mp_strbuf_printf(&text, "; %" PRIu32 " more %s differ", num_arrays - 1,
                     array->is_result ? "results" : "arguments");
  }
  return replica_check_make_error(&text);
}

// Compares one array on all devices of this process, and records the digests. `reference` has room
// for a share per device: the first share that holds the same part.
static void replica_check_compare_array(mp_replica_check_t *check, uint32_t a, uint32_t *reference,
                                        finding_t *out_found) {
  const mp_replicas_t *replicas = check->replicas;
  const mp_replicated_t *array = &replicas->arrays[a];
  for (uint32_t d = 0; d < replicas->num_devices; ++d) reference[d] = UINT32_MAX;
  for (uint32_t s = 0; s < check->num_shares; ++s) {
    const uint32_t d = check->logical[s];
    const size_t at = replica_check_at(check, s, a);
    const mp_storage_t *own = check->held[at].storage;
    if (own == NULL) continue;
    uint32_t *first = &reference[array->first[d]];
    if (*first == UINT32_MAX) {
      *first = s;
      if (check->is_exchanged) {
        check->digests[at] = mp_replicas_digest(replicas, array, d, own->data);
      }
      continue;
    }
    check->digests[at] = check->digests[replica_check_at(check, *first, a)];
    const mp_storage_t *other = check->held[replica_check_at(check, *first, a)].storage;
    const mp_replicas_difference_t difference =
        mp_replicas_compare(replicas, array, d, own->data, other->data);
    if (difference.num_different == 0) continue;
    if (out_found->num_devices++ != 0) continue;
    out_found->array = a;
    out_found->share = s;
    out_found->reference = *first;
    out_found->difference = difference;
  }
}

// Compares the arrays from `begin` to `end`.
static mp_status_t replica_check_compare(mp_replica_check_t *check, uint32_t begin, uint32_t end) {
  uint32_t *reference = mp_calloc(check->replicas->num_devices, sizeof(*reference));
  MP_RETURN_IF_NULL(reference);
  finding_t first = {0};
  uint32_t num_arrays = 0;
  for (uint32_t a = begin; a < end; ++a) {
    finding_t found = {0};
    replica_check_compare_array(check, a, reference, &found);
    if (found.num_devices == 0) continue;
    if (num_arrays++ == 0) first = found;
  }
  mp_free(reference);
  return num_arrays == 0 ? NULL : replica_check_report(check, &first, num_arrays);
}

// ---- The arguments ----

static void replica_check_drop_argument(mp_replica_check_t *check) {
  if (atomic_fetch_sub(&check->num_arguments, 1) != 1) return;
  const uint32_t num_params = check->replicas->num_params;
  mp_status_t status = NULL;
  if (!atomic_load(&check->has_failed_argument)) {
    status = replica_check_compare(check, 0, num_params);
  }
  replica_check_let_go(check, 0, num_params);
  mp_event_set(check->arguments, status);
}

static void replica_check_on_argument(mp_status_t status, void *context) {
  mp_replica_check_t *check = context;
  if (status != NULL) atomic_store(&check->has_failed_argument, true);
  replica_check_drop_argument(check);
  mp_replica_check_release(check);
}

// Calls `callback` when the event is set; at once, with an error, if that fails.
static void replica_check_await(mp_replica_check_t *check, mp_event_t *event,
                                mp_event_callback_t callback) {
  mp_replica_check_retain(check);
  mp_status_t status = mp_event_on_ready(event, callback, check);
  if (status == NULL) return;
  callback(status, check);
  mp_status_release(status);
}

void mp_replica_check_begin(mp_replica_check_t *check) {
  for (uint32_t s = 0; s < check->num_shares; ++s) {
    for (uint32_t a = 0; a < check->replicas->num_params; ++a) {
      mp_event_t *ready = check->held[replica_check_at(check, s, a)].ready;
      if (ready == NULL || mp_event_has_succeeded(ready)) continue;
      atomic_fetch_add(&check->num_arguments, 1);
      replica_check_await(check, ready, replica_check_on_argument);
    }
  }
  replica_check_drop_argument(check);
}

// ---- The runs ----

static void replica_check_set_error(mp_replica_check_t *check, mp_status_t error) {
  mp_status_t expected = NULL;
  if (!atomic_compare_exchange_strong(&check->error, &expected, error)) mp_status_release(error);
}

// Fails the check with `error` (consumed), which the user has not seen: it also ends each device's
// run.
static void replica_check_fail(mp_replica_check_t *check, mp_status_t error) {
  if (error == NULL) return;
  for (uint32_t s = 0; s < check->num_shares; ++s) mp_unread_add(error);
  replica_check_set_error(check, error);
}

static void replica_check_drop_verdict(mp_replica_check_t *check) {
  if (atomic_fetch_sub(&check->num_verdicts, 1) != 1) return;
  mp_event_set(check->done, mp_status_retain(atomic_load(&check->error)));
}

static void replica_check_drop_run(mp_replica_check_t *check) {
  if (atomic_fetch_sub(&check->num_runs, 1) != 1) return;
  const uint32_t begin = check->replicas->num_params, end = replica_check_num_arrays(check);
  if (atomic_load(&check->error) == NULL) {
    replica_check_fail(check, replica_check_compare(check, begin, end));
  }
  replica_check_let_go(check, begin, end);
  mp_event_set(check->compared, mp_status_retain(atomic_load(&check->error)));
  replica_check_drop_verdict(check);
}

static void replica_check_on_run(mp_status_t status, void *context) {
  mp_replica_check_t *check = context;
  if (status != NULL) replica_check_set_error(check, mp_status_retain(status));
  replica_check_drop_run(check);
  mp_replica_check_release(check);
}

void mp_replica_check_add_run(mp_replica_check_t *check, mp_event_t *event) {
  atomic_fetch_add(&check->num_runs, 1);
  replica_check_await(check, event, replica_check_on_run);
}

void mp_replica_check_end_runs(mp_replica_check_t *check) {
  replica_check_drop_run(check);
}

// ---- The other processes ----

void mp_replica_check_digests(const mp_replica_check_t *check, uint32_t share, uint64_t *out) {
  const uint32_t count = replica_check_num_arrays(check);
  memcpy(out, check->digests + (size_t)share * count, count * sizeof(*out));
}

static mp_status_t replica_check_compare_digests(const mp_replica_check_t *check,
                                                 const uint64_t *digests) {
  const mp_replicas_t *replicas = check->replicas;
  for (uint32_t a = 0; a < replicas->num_arrays; ++a) {
    const mp_replicated_t *array = &replicas->arrays[a];
    for (uint32_t d = 0; d < replicas->num_devices; ++d) {
      const uint32_t first = array->first[d];
      if (digests[(size_t)d * replicas->num_arrays + a] ==
          digests[(size_t)first * replicas->num_arrays + a]) {
        continue;
      }
      mp_strbuf_t text;
      mp_strbuf_init(&text);
      replica_check_print_devices(check, array, d, first, &text);
      mp_strbuf_puts(&text, " by the digests that processes compare");
      replica_check_print_launch(check, array, &text);
      return replica_check_make_error(&text);
    }
  }
  return NULL;
}

void mp_replica_check_judge(mp_replica_check_t *check, mp_status_t error, const uint64_t *digests) {
  MP_ASSERT(check->is_exchanged);
  if (error != NULL) {
    replica_check_set_error(check, mp_status_retain(error));
  } else if (atomic_load(&check->error) == NULL) {
    replica_check_fail(check, replica_check_compare_digests(check, digests));
  }
  replica_check_drop_verdict(check);
}
