#include "collectives/transport/store/store_talk.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "collectives/transport/transport.h"
#include "sim/base/os/clock.h"

// How long one wait in the store lasts. Between two waits, dead processes are looked for.
static const double k_slice_seconds = 1;
// How long to wait once more for each late process, to name all missing ones.
static const double k_look_seconds = 0.05;

enum {
  MP_MOST_MISSING = 64,  // a message with more would not be read
};

static void store_talk_make_key(char key[MP_STORE_KEY_BYTES], const char *folder, uint32_t rank) {
  snprintf(key, MP_STORE_KEY_BYTES, "%s/%" PRIu32, folder, rank);
}

static mp_status_t store_talk_put(const mp_store_talk_t *talk, const char *key,
                                  mp_status_code_t code, mp_str_t bytes) {
  mp_strbuf_t value;
  mp_strbuf_init(&value);
  mp_strbuf_putc(&value, (char)code);
  mp_strbuf_append(&value, bytes.data, bytes.size);
  mp_status_t status = mp_strbuf_status(&value);
  if (status == NULL) {
    status = talk->store->put(talk->store->context, key, (mp_str_t){value.data, value.size});
  }
  mp_strbuf_deinit(&value);
  return status;
}

mp_status_t mp_store_tell(const mp_store_talk_t *talk, const char *folder, mp_status_t status,
                          mp_str_t bytes) {
  char key[MP_STORE_KEY_BYTES];
  store_talk_make_key(key, folder, talk->rank);
  if (status == NULL) {
    status = store_talk_put(talk, key, MP_OK, bytes);
    if (status == NULL) return NULL;
    if (mp_status_code(status) == MP_ALREADY_EXISTS) {
      return mp_status_annotate(
          status, "another process has joined as process %" PRIu32 " (node_id) already",
          talk->rank);
    }
    status = mp_status_annotate(status, "telling the other processes through the key-value store");
  }
  const mp_str_t text = mp_str(mp_status_message(status));
  mp_status_t told = store_talk_put(talk, key, mp_status_code(status), text);
  if (told != NULL) {
    mp_status_ignore(told);
    const char code = (char)mp_status_code(status);
    told = talk->store->put(talk->store->context, key, (mp_str_t){&code, 1});
  }
  mp_status_ignore(told);
  return status;
}

// Reads the value of another process; if it is an error, returns that, with the process's name.
static mp_status_t store_talk_read(const mp_store_talk_t *talk, uint32_t rank,
                                   const mp_strbuf_t *value) {
  if (value->size != 0 && value->data[0] == MP_OK) return NULL;
  char name[MP_PEER_NAME_BYTES];
  mp_world_peer_name(talk->world, rank, name);
  if (value->size == 0) return mp_status_make(MP_INTERNAL, "%s has sent an empty value", name);
  const mp_status_code_t code = mp_status_code_of_number((unsigned char)value->data[0]);
  if (value->size == 1) return mp_status_make(code, "%s has failed without a message", name);
  return mp_status_make(code, "%s has failed: %.*s", name, mp_str_precision(value->size - 1),
                        value->data + 1);
}

static bool store_talk_is_pending(mp_status_t status) {
  return mp_status_code(status) == MP_DEADLINE_EXCEEDED || mp_status_code(status) == MP_NOT_FOUND;
}

// "process 2 (localhost:8072)", after the others.
static void store_talk_write_name(const mp_store_talk_t *talk, uint32_t rank, const char *name,
                                  mp_strbuf_t *text) {
  mp_strbuf_printf(text, "%s%s", text->size == 0 ? "" : ", ", name);
  if (talk->store->write_address == NULL) return;
  mp_strbuf_puts(text, " (");
  talk->store->write_address(talk->store->context, rank, text);
  mp_strbuf_puts(text, ")");
}

// Names the missing processes: `rank`, and those of higher rank that have put nothing either.
static mp_status_t store_talk_name_missing(const mp_store_talk_t *talk, const char *folder,
                                           uint32_t rank) {
  mp_strbuf_t text, value;
  mp_strbuf_init(&text);
  mp_strbuf_init(&value);
  for (uint32_t i = rank; i < talk->size && i - rank < MP_MOST_MISSING; ++i) {
    char key[MP_STORE_KEY_BYTES], name[MP_PEER_NAME_BYTES];
    store_talk_make_key(key, folder, i);
    mp_status_t status = talk->store->get(talk->store->context, key, k_look_seconds, &value);
    mp_world_peer_name(talk->world, i, name);
    if (status != NULL) store_talk_write_name(talk, i, name, &text);
    mp_status_ignore(status);
  }
  mp_status_t status = mp_status_make(
      MP_DEADLINE_EXCEEDED,
      "no message within %g s from %s (of the %" PRIu32
      " processes that %s counts); does each of them use minipod?",
      talk->timeout_s, text.size == 0 ? "some process" : mp_strbuf_text(&text), talk->size,
      talk->store->counted_by == NULL ? "num_nodes" : talk->store->counted_by);
  mp_strbuf_deinit(&value);
  mp_strbuf_deinit(&text);
  return status;
}

// The error that a process has put into a folder, or OK.
static mp_status_t store_talk_look(const mp_store_talk_t *talk, const char *folder, uint32_t rank) {
  char key[MP_STORE_KEY_BYTES];
  store_talk_make_key(key, folder, rank);
  const mp_key_value_store_t *store = talk->store;
  mp_strbuf_t value;
  mp_strbuf_init(&value);
  mp_status_t got = store->try_get != NULL
                        ? store->try_get(store->context, key, &value)
                        : store->get(store->context, key, k_look_seconds, &value);
  mp_status_t status = got == NULL ? store_talk_read(talk, rank, &value) : NULL;
  mp_status_ignore(got);
  mp_strbuf_deinit(&value);
  return status;
}

// The error that any process has put into a folder, or OK.
static mp_status_t store_talk_look_at_all(const mp_store_talk_t *talk, const char *folder) {
  mp_status_t status = NULL;
  for (uint32_t rank = 0; rank < talk->size && rank < MP_MOST_MISSING && status == NULL; ++rank) {
    if (rank != talk->rank) status = store_talk_look(talk, folder, rank);
  }
  return status;
}

// Looks for errors elsewhere: in the agreement and the verdicts of the awaited process, and in the
// verdicts of all processes, because the awaited one may itself wait for one that has failed.
static mp_status_t store_talk_check(const mp_store_talk_t *talk, uint32_t rank) {
  if (talk->agreement != NULL) MP_RETURN_IF_ERROR(mp_agreement_check(talk->agreement));
  MP_RETURN_IF_ERROR(store_talk_look(talk, talk->verdicts, rank));
  mp_status_t status = talk->check == NULL ? NULL : talk->check(talk->context);
  if (status == NULL && talk->store->try_get == NULL)
    return NULL;  // without try_get, looking at all takes too long
  // A process may have ended after it reported why it failed: its report comes first.
  mp_status_t cause = store_talk_look_at_all(talk, talk->verdicts);
  if (cause == NULL) return status;
  mp_status_ignore(status);
  return cause;
}

// Waits until a process has put its value, and appends that to `value`.
static mp_status_t store_talk_await(const mp_store_talk_t *talk, const char *folder, uint32_t rank,
                                    mp_strbuf_t *value) {
  char key[MP_STORE_KEY_BYTES];
  store_talk_make_key(key, folder, rank);
  for (;;) {
    const double begin = mp_clock_seconds();
    const double left = talk->deadline - begin;
    if (left <= 0) return store_talk_name_missing(talk, folder, rank);
    const double slice = left < k_slice_seconds ? left : k_slice_seconds;
    mp_status_t status = talk->store->get(talk->store->context, key, slice, value);
    if (status == NULL) return mp_strbuf_status(value);
    if (!store_talk_is_pending(status)) {
      return mp_status_annotate(status, "looking for process %" PRIu32 " in the key-value store",
                                rank);
    }
    mp_status_ignore(status);
    MP_RETURN_IF_ERROR(store_talk_check(talk, rank));
    // A store that does not wait itself must not be asked without a pause.
    const struct timespec pause = {.tv_nsec = 10000000};
    if (mp_clock_seconds() - begin < slice / 2) nanosleep(&pause, NULL);
  }
}

mp_status_t mp_store_hear(const mp_store_talk_t *talk, const char *folder, uint32_t rank,
                          mp_strbuf_t *bytes) {
  mp_strbuf_t value;
  mp_strbuf_init(&value);
  mp_status_t status = store_talk_await(talk, folder, rank, &value);
  if (status == NULL) status = store_talk_read(talk, rank, &value);
  if (status == NULL) {
    mp_strbuf_append(bytes, value.data + 1, value.size - 1);
    status = mp_strbuf_status(bytes);
  }
  mp_strbuf_deinit(&value);
  return status;
}

mp_status_t mp_store_await_all(const mp_store_talk_t *talk, const char *folder) {
  mp_status_t status = NULL;
  for (uint32_t rank = 0; rank < talk->size && status == NULL; ++rank) {
    mp_strbuf_t bytes;
    mp_strbuf_init(&bytes);
    status = mp_store_hear(talk, folder, rank, &bytes);
    mp_strbuf_deinit(&bytes);
  }
  return status;
}

mp_status_t mp_store_find_cause(const mp_store_talk_t *talk, const char *folder,
                                mp_status_t status) {
  if (mp_status_code(status) != MP_UNAVAILABLE) return status;
  mp_status_t cause = store_talk_look_at_all(talk, folder);
  if (cause == NULL) return status;
  mp_status_ignore(status);
  return cause;
}
