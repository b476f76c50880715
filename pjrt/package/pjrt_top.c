#include "pjrt/package/pjrt_top.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "pjrt/package/pjrt_clients.h"
#include "pjrt/package/pjrt_time.h"
#include "sim/base/log.h"
#include "sim/base/os/process.h"
#include "sim/base/os/system.h"
#include "sim/runtime/look/look.h"

enum { TOP_STACK = 128 * 1024, TOP_WAITING = 8, TOP_SEND_SECONDS = 2 };

// The generation of the listening process, plus 1; 0: none. A forked child does not have the
// thread.
static atomic_uint g_listening;

// ---- The answer ----

static void pjrt_top_put_device(mp_strbuf_t *out, mp_device_t *device) {
  mp_look_t look;
  mp_look(device, &look);
  mp_strbuf_printf(out,
                   "{\"id\": %" PRIu32 ", \"state\": \"%s\", \"program\": ", mp_device_id(device),
                   mp_look_state_name(look.state));
  mp_strbuf_put_json(out, mp_str(look.program));
  mp_strbuf_puts(out, ", \"at\": ");
  mp_strbuf_put_json(out, mp_str(look.place));
  mp_strbuf_printf(out,
                   ", \"queued\": %" PRIu64 ", \"launches\": %" PRIu64 ", \"bytes\": %" PRId64
                   ", \"peak\": %" PRId64 ", \"limit\": %" PRId64 "}",
                   look.queued, look.completed, look.memory.bytes_in_use,
                   look.memory.peak_bytes_in_use, look.memory.bytes_limit);
}

static void pjrt_top_put_client(mp_strbuf_t *out, const mp_client_t *client) {
  const mp_pod_info_t *info = mp_pod_info(mp_client_pod(client));
  mp_strbuf_puts(out, "{\"pod\": ");
  mp_strbuf_put_json(out, mp_str(info->name));
  mp_strbuf_printf(out, ", \"process\": %d, \"processes\": %d, \"faults\": %s", info->process_index,
                   info->num_processes, mp_look_is_faulty(client) ? "true" : "false");
  mp_strbuf_puts(out, ", \"devices\": [");
  for (int32_t i = 0; i < info->num_local_devices; ++i) {
    if (i != 0) mp_strbuf_puts(out, ", ");
    pjrt_top_put_device(out, mp_client_device(client, (uint32_t)(info->first_local_device + i)));
  }
  mp_strbuf_puts(out, "]}");
}

static void pjrt_top_put(mp_strbuf_t *out) {
  uint32_t count = 0;
  mp_client_t **clients = NULL;
  mp_status_ignore(mp_pjrt_clients_list(&count, &clients));
  mp_strbuf_printf(out, "{\"pid\": %ld, ", (long)getpid());
  const double now = minipod_virtual_time();
  if (now >= 0) {
    mp_strbuf_puts(out, "\"virtual_seconds\": ");
    mp_strbuf_put_double(out, now);
    mp_strbuf_puts(out, ", ");
  }
  mp_strbuf_puts(out, "\"clients\": [");
  for (uint32_t i = 0; i < count; ++i) {
    if (i != 0) mp_strbuf_puts(out, ", ");
    pjrt_top_put_client(out, clients[i]);
  }
  mp_pjrt_clients_free(count, clients);
  mp_strbuf_puts(out, "]}\n");
}

// ---- Requests ----

static bool pjrt_top_may_ask(int asker) {
  struct ucred who;
  socklen_t size = sizeof(who);
  if (getsockopt(asker, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return false;
  return who.uid == geteuid() || who.uid == 0;
}

static void pjrt_top_answer(int asker) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  pjrt_top_put(&text);
  // A client that does not read its answer delays others only briefly.
  const struct timeval limit = {.tv_sec = TOP_SEND_SECONDS};
  (void)setsockopt(asker, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  size_t sent = 0;
  while (!text.failed && sent < text.size) {
    const ssize_t part = send(asker, text.data + sent, text.size - sent, MSG_NOSIGNAL);
    if (part <= 0) break;
    sent += (size_t)part;
  }
  mp_strbuf_deinit(&text);
}

static void *pjrt_top_listen(void *context) {
  const int listener = (int)(intptr_t)context;
  (void)pthread_setname_np(pthread_self(), "mp-top");
  for (;;) {
    const int asker = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (asker < 0 && errno != EINTR && errno != ECONNABORTED) break;
    if (asker < 0) continue;
    if (pjrt_top_may_ask(asker)) pjrt_top_answer(asker);
    (void)close(asker);
  }
  (void)close(listener);
  return NULL;
}

// ---- Beginning and end ----

// A socket that listens; -1 and errno.
static int pjrt_top_open(void) {
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) return -1;
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  const int size =
      snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "minipod-top-%ld", (long)getpid());
  const socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size);
  if (bind(listener, (const struct sockaddr *)&name, bytes) == 0 &&
      listen(listener, TOP_WAITING) == 0) {
    return listener;
  }
  const int cause = errno;
  (void)close(listener);
  errno = cause;
  return -1;
}

void mp_pjrt_top_begin(void) {
  const uint32_t self = mp_process_generation() + 1;
  if (atomic_exchange(&g_listening, self) == self) return;
  pthread_t thread;
  const int listener = pjrt_top_open();
  const int error = listener < 0 ? errno
                                 : mp_thread_create(&thread, TOP_STACK, pjrt_top_listen,
                                                    (void *)(intptr_t)listener);
  if (error == 0) {
    pthread_detach(thread);
    return;
  }
  if (listener >= 0) (void)close(listener);
  mp_log(MP_LOG_DEBUG, "minipod top cannot look at this process: %s", mp_system_text(error));
}
