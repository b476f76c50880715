#include "collectives/transport/tpu/tpu_server.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "collectives/transport/tpu/tpu_message.h"
#include "sim/base/alloc.h"
#include "sim/base/containers/array.h"
#include "sim/base/hash.h"
#include "sim/base/os/clock.h"
#include "sim/base/os/system.h"

// How long an address may be in use: an earlier job may be about to end.
static const double k_bind_seconds = 3;
// How long a connected program may take to greet, or to read an answer.
static const double k_patience_seconds = 5;
// How often the thread looks whether it is to end.
static const int k_look_ms = 50;

static const uint32_t k_no_rank = UINT32_MAX;

typedef struct {
  char *key, *value;
  size_t size;
} tpu_entry_t;

typedef struct {
  int file;
  uint32_t rank;         // k_no_rank: it has not greeted
  double greet_until;    // until it has greeted
  mp_strbuf_t received;  // the beginning of a request
  char *awaited;         // the key that it waits for; NULL: none
  double await_until;
} tpu_client_t;

struct mp_tpu_server_s {
  uint32_t size;
  uint64_t job;
  const char *failures;
  int file;  // that listens
  pthread_t thread;
  atomic_bool must_end;
  double end_by;  // written before must_end
  MP_ARRAY(tpu_entry_t) entries;
  MP_ARRAY(tpu_client_t) clients;
  bool *has_come;  // [size], the process has greeted; it does so once
};

uint64_t mp_tpu_job_hash(const mp_tpu_job_t *job) {
  return mp_hash_bytes(MP_HASH_START, job->addresses, strlen(job->addresses));
}

// ---- Entries ----

static const tpu_entry_t *tpu_server_find(const mp_tpu_server_t *server, const char *key) {
  for (uint32_t i = 0; i < server->entries.count; ++i) {
    if (strcmp(server->entries.items[i].key, key) == 0) return &server->entries.items[i];
  }
  return NULL;
}

static mp_status_t tpu_server_copy(mp_str_t text, char **out_copy) {
  char *copy = mp_malloc(text.size + 1);
  MP_RETURN_IF_NULL(copy);
  memcpy(copy, text.data, text.size);
  copy[text.size] = '\0';
  *out_copy = copy;
  return NULL;
}

static mp_status_t tpu_server_add(mp_tpu_server_t *server, const char *key, mp_str_t value) {
  if (tpu_server_find(server, key) != NULL) {
    return mp_status_make(MP_ALREADY_EXISTS, "the key %s has a value", key);
  }
  tpu_entry_t entry = {.size = value.size};
  mp_status_t status = tpu_server_copy(mp_str(key), &entry.key);
  if (status == NULL) status = tpu_server_copy(value, &entry.value);
  if (status == NULL) status = MP_ARRAY_PUSH(NULL, &server->entries, entry);
  if (status == NULL) return NULL;
  mp_free(entry.key);
  mp_free(entry.value);
  return status;
}

// ---- Answers ----

static void tpu_server_stop_waiting(tpu_client_t *client) {
  mp_free(client->awaited);
  client->awaited = NULL;
}

// Sends the value, or the error, which is consumed. False: the connection has ended.
static bool tpu_server_answer(const tpu_client_t *client, mp_status_t error, mp_str_t value) {
  mp_status_t status = mp_tpu_send_answer(client->file, error, value);
  mp_status_ignore(error);
  const bool is_sent = status == NULL;
  mp_status_ignore(status);
  return is_sent;
}

// A process sends a request only after the answer to the one before, so nothing else was received.
static void tpu_server_clear(tpu_client_t *client) {
  mp_strbuf_deinit(&client->received);
  mp_strbuf_init(&client->received);
}

// Answers a process that waits for a key, if the key has a value or the wait is over. False: the
// connection has ended.
static bool tpu_server_answer_wait(const mp_tpu_server_t *server, tpu_client_t *client) {
  if (client->awaited == NULL) return true;
  const tpu_entry_t *entry = tpu_server_find(server, client->awaited);
  mp_status_t error = NULL;
  if (entry == NULL) {
    if (mp_clock_seconds() < client->await_until) return true;
    error = mp_status_make(MP_NOT_FOUND, "the key %s has no value", client->awaited);
  }
  const mp_str_t value = entry == NULL ? MP_STR("") : (mp_str_t){entry->value, entry->size};
  tpu_server_stop_waiting(client);
  return tpu_server_answer(client, error, value);
}

static mp_status_t tpu_server_check_greeting(const mp_tpu_server_t *server,
                                             const mp_tpu_greeting_t *greeting) {
  if (greeting->job != server->job || greeting->size != server->size ||
      greeting->rank >= server->size) {
    return mp_status_make(MP_FAILED_PRECONDITION,
                          "process 0 there (pid %d) is of another job, which lists %" PRIu32
                          " processes: all processes of a job need the same list of addresses",
                          (int)getpid(), server->size);
  }
  if (!server->has_come[greeting->rank]) return NULL;
  return mp_status_make(MP_ALREADY_EXISTS,
                        "another process has joined as process %" PRIu32 " already",
                        greeting->rank);
}

// Takes the greeting; false: the connection is to be closed.
static bool tpu_server_greet(mp_tpu_server_t *server, tpu_client_t *client) {
  mp_tpu_greeting_t greeting;
  if (client->received.size < sizeof(greeting)) return true;
  memcpy(&greeting, client->received.data, sizeof(greeting));
  if (memcmp(greeting.magic, MP_TPU_MAGIC, sizeof(MP_TPU_MAGIC)) != 0) return false;
  mp_status_t refusal = tpu_server_check_greeting(server, &greeting);
  const bool is_welcome = refusal == NULL;
  if (!tpu_server_answer(client, refusal, MP_STR("")) || !is_welcome) return false;
  client->rank = greeting.rank;
  server->has_come[greeting.rank] = true;
  tpu_server_clear(client);
  return true;
}

// Serves the received request; false: the connection is to be closed.
static bool tpu_server_serve(mp_tpu_server_t *server, tpu_client_t *client) {
  mp_tpu_request_t request;
  if (client->received.size < sizeof(request)) return true;
  memcpy(&request, client->received.data, sizeof(request));
  if (request.kind == MP_TPU_BYE) {
    client->rank = k_no_rank;
    return false;
  }
  if (request.kind >= MP_TPU_REQUEST_COUNT || request.key_size >= MP_TPU_MOST_KEY ||
      request.value_size > MP_TPU_MOST_VALUE) {
    return false;
  }
  if (client->received.size < sizeof(request) + request.key_size + request.value_size) return true;
  char key[MP_TPU_MOST_KEY];
  const char *at = client->received.data + sizeof(request);
  memcpy(key, at, request.key_size);
  key[request.key_size] = '\0';
  mp_status_t error = NULL;
  if (request.kind == MP_TPU_PUT) {
    error = tpu_server_add(server, key, (mp_str_t){at + request.key_size, request.value_size});
  } else {
    error = tpu_server_copy(mp_str(key), &client->awaited);
    client->await_until = mp_clock_seconds() + request.wait_ms / 1e3;
  }
  tpu_server_clear(client);
  if (request.kind == MP_TPU_GET && error == NULL) return tpu_server_answer_wait(server, client);
  return tpu_server_answer(client, error, MP_STR(""));
}

// ---- Connections ----

static bool tpu_server_read(mp_tpu_server_t *server, tpu_client_t *client) {
  char bytes[1 << 14];
  const ssize_t size = recv(client->file, bytes, sizeof(bytes), MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (size <= 0) return false;
  mp_strbuf_append(&client->received, bytes, (size_t)size);
  if (client->received.failed) return false;
  return client->rank == k_no_rank ? tpu_server_greet(server, client)
                                   : tpu_server_serve(server, client);
}

// Notes that a process has ended before it said goodbye. In the folder, as in all of the store, a
// value begins with a status code (../store/store_talk.h).
static void tpu_server_note_end(mp_tpu_server_t *server, uint32_t rank) {
  char key[MP_TPU_MOST_KEY];
  snprintf(key, sizeof(key), "%s/%" PRIu32, server->failures, rank);
  static const char text[] = "\x0eit ended before all processes had joined; see its own output";
  _Static_assert(MP_UNAVAILABLE == 0x0e, "the first byte of the text");
  mp_status_ignore(tpu_server_add(server, key, (mp_str_t){text, sizeof(text) - 1}));
}

static void tpu_server_drop(mp_tpu_server_t *server, uint32_t index) {
  tpu_client_t *client = &server->clients.items[index];
  if (client->rank != k_no_rank) tpu_server_note_end(server, client->rank);
  close(client->file);
  tpu_server_stop_waiting(client);
  mp_strbuf_deinit(&client->received);
  *client = server->clients.items[--server->clients.count];
}

static void tpu_server_accept(mp_tpu_server_t *server) {
  tpu_client_t client = {.rank = k_no_rank,
                         .greet_until = mp_clock_seconds() + k_patience_seconds,
                         .file = accept4(server->file, NULL, NULL, SOCK_CLOEXEC)};
  if (client.file < 0) return;
  // A process that does not read its answers must not keep the others waiting.
  const struct timeval patience = {.tv_sec = (time_t)k_patience_seconds};
  const int on = 1;
  (void)setsockopt(client.file, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  (void)setsockopt(client.file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  mp_strbuf_init(&client.received);
  mp_status_t status = MP_ARRAY_PUSH(NULL, &server->clients, client);
  if (status != NULL) close(client.file);
  mp_status_ignore(status);
}

// The time until the next wait of a client is over, at most k_look_ms.
static int tpu_server_pause_ms(const mp_tpu_server_t *server) {
  double pause = k_look_ms;
  const double now = mp_clock_seconds();
  for (uint32_t i = 0; i < server->clients.count; ++i) {
    const tpu_client_t *client = &server->clients.items[i];
    const double left = (client->await_until - now) * 1e3;
    if (client->awaited != NULL && left < pause) pause = left < 0 ? 0 : left;
  }
  return (int)pause + 1;
}

// Reads from the ready ones of the first `count` clients, and answers those that wait. From the
// last to the first, because dropping one moves the last one.
static void tpu_server_work(mp_tpu_server_t *server, const struct pollfd *files, uint32_t count) {
  for (uint32_t i = count; i-- > 0;) {
    tpu_client_t *client = &server->clients.items[i];
    bool is_alive = files[i].revents == 0 || tpu_server_read(server, client);
    if (is_alive && client->rank == k_no_rank) {
      is_alive = mp_clock_seconds() < client->greet_until;
    }
    if (!is_alive) tpu_server_drop(server, i);
  }
  for (uint32_t i = server->clients.count; i-- > 0;) {
    if (!tpu_server_answer_wait(server, &server->clients.items[i])) tpu_server_drop(server, i);
  }
}

static void tpu_server_turn(mp_tpu_server_t *server) {
  const uint32_t count = server->clients.count;
  struct pollfd *files = mp_calloc(count + 1, sizeof(*files));
  if (files == NULL) {
    nanosleep(&(struct timespec){.tv_nsec = k_look_ms * 1000000}, NULL);
    return;
  }
  for (uint32_t i = 0; i < count; ++i) {
    files[i] = (struct pollfd){.fd = server->clients.items[i].file, .events = POLLIN};
  }
  files[count] = (struct pollfd){.fd = server->file, .events = POLLIN};
  if (poll(files, count + 1, tpu_server_pause_ms(server)) >= 0) {
    tpu_server_work(server, files, count);
    if (files[count].revents != 0) tpu_server_accept(server);
  }
  mp_free(files);
}

// The process itself is connected, too, until it stops the server.
static void *tpu_server_run(void *context) {
  mp_tpu_server_t *server = context;
  while (!atomic_load(&server->must_end) ||
         (server->clients.count != 0 && mp_clock_seconds() < server->end_by)) {
    tpu_server_turn(server);
  }
  return NULL;
}

// ---- The port ----

// Listens at one of the addresses of a name; -1 and errno.
static int tpu_server_listen_at(const struct addrinfo *at) {
  const int file = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file < 0) return -1;
  const int on = 1;
  (void)setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(file, at->ai_addr, at->ai_addrlen) == 0 && listen(file, SOMAXCONN) == 0) return file;
  const int error = errno;
  close(file);
  errno = error;
  return -1;
}

// Listens at the address of this name; `host` is NULL: at all addresses of the host.
static int tpu_server_listen(const char *host, const char *port) {
  const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                 .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
  struct addrinfo *found = NULL;
  errno = EADDRNOTAVAIL;
  if (getaddrinfo(host, port, &hints, &found) != 0) return -1;
  int file = -1;
  for (const struct addrinfo *at = found; at != NULL && file < 0; at = at->ai_next) {
    file = tpu_server_listen_at(at);
  }
  const int error = errno;
  freeaddrinfo(found);
  errno = error;
  return file;
}

// The name of process 0 may be one that only other hosts know it by, such as a service's.
static int tpu_server_open_port(const char *host, const char *port) {
  const double deadline = mp_clock_seconds() + k_bind_seconds;
  for (;;) {
    int file = tpu_server_listen(host, port);
    if (file < 0 && errno == EADDRNOTAVAIL) file = tpu_server_listen(NULL, port);
    if (file >= 0 || errno != EADDRINUSE || mp_clock_seconds() > deadline) return file;
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
  }
}

static void tpu_server_free(mp_tpu_server_t *server) {
  if (server->file >= 0) close(server->file);
  while (server->clients.count != 0) {
    server->clients.items[server->clients.count - 1].rank = k_no_rank;
    tpu_server_drop(server, server->clients.count - 1);
  }
  for (uint32_t i = 0; i < server->entries.count; ++i) {
    mp_free(server->entries.items[i].key);
    mp_free(server->entries.items[i].value);
  }
  MP_ARRAY_FREE(&server->entries);
  MP_ARRAY_FREE(&server->clients);
  mp_free(server->has_come);
  mp_free(server);
}

static mp_status_t tpu_server_begin(mp_tpu_server_t *server, const mp_tpu_job_t *job) {
  server->has_come = mp_calloc(job->size, sizeof(*server->has_come));
  MP_RETURN_IF_NULL(server->has_come);
  char host[MP_TPU_HOST_BYTES], port[MP_TPU_PORT_BYTES];
  mp_tpu_job_first(job, host, port);
  server->file = tpu_server_open_port(host, port);
  if (server->file < 0) {
    const mp_str_t address = mp_tpu_job_address(job, 0);
    return mp_status_make(MP_UNAVAILABLE, "process 0 cannot listen at %.*s, its address in %s: %s",
                          MP_STR_SHOWN(address, 255), job->list_variable, mp_system_text(errno));
  }
  const int error = mp_thread_create(&server->thread, 0, tpu_server_run, server);
  if (error == 0) return NULL;
  return mp_status_make(mp_system_code(error, MP_INTERNAL),
                        "no thread for the port of process 0: %s", mp_system_text(error));
}

mp_status_t mp_tpu_server_start(const mp_tpu_job_t *job, const char *failures,
                                mp_tpu_server_t **out_server) {
  mp_tpu_server_t *server = mp_calloc(1, sizeof(*server));
  MP_RETURN_IF_NULL(server);
  server->size = job->size;
  server->job = mp_tpu_job_hash(job);
  server->failures = failures;
  server->file = -1;
  mp_status_t status = tpu_server_begin(server, job);
  if (status != NULL) {
    tpu_server_free(server);
  } else {
    *out_server = server;
  }
  return status;
}

void mp_tpu_server_stop(mp_tpu_server_t *server, double seconds) {
  if (server == NULL) return;
  server->end_by = mp_clock_seconds() + seconds;
  atomic_store(&server->must_end, true);
  pthread_join(server->thread, NULL);
  tpu_server_free(server);
}
