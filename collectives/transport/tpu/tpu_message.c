#include "collectives/transport/tpu/tpu_message.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "sim/base/os/clock.h"
#include "sim/base/os/system.h"

mp_status_t mp_tpu_send(int file, const void *bytes, size_t size) {
  const char *at = bytes;
  while (size != 0) {
    const ssize_t sent = send(file, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) {
      return mp_status_make(MP_UNAVAILABLE, "the connection has ended (%s)", mp_system_text(errno));
    }
    at += sent;
    size -= (size_t)sent;
  }
  return NULL;
}

static mp_status_t tpu_message_await(int file, double deadline) {
  for (;;) {
    const double left = deadline - mp_clock_seconds();
    struct pollfd poll_file = {.fd = file, .events = POLLIN};
    const int ready = left <= 0 ? 0 : poll(&poll_file, 1, left < 1e6 ? (int)(left * 1e3) + 1 : -1);
    if (ready > 0) return NULL;
    if (ready < 0 && errno == EINTR) continue;
    return mp_status_make(MP_DEADLINE_EXCEEDED, "no answer");
  }
}

mp_status_t mp_tpu_receive(int file, void *bytes, size_t size, double seconds) {
  const double deadline = mp_clock_seconds() + seconds;
  char *at = bytes;
  while (size != 0) {
    MP_RETURN_IF_ERROR(tpu_message_await(file, deadline));
    const ssize_t received = recv(file, at, size, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) {
      return mp_status_make(MP_UNAVAILABLE, "the connection has ended%s%s",
                            received == 0 ? "" : ": ", received == 0 ? "" : mp_system_text(errno));
    }
    at += received;
    size -= (size_t)received;
  }
  return NULL;
}

mp_status_t mp_tpu_send_answer(int file, mp_status_t error, mp_str_t value) {
  if (error != NULL) value = mp_str(mp_status_message(error));
  const mp_tpu_answer_t answer = {.code = (uint32_t)mp_status_code(error),
                                  .size = (uint32_t)value.size};
  MP_RETURN_IF_ERROR(mp_tpu_send(file, &answer, sizeof(answer)));
  return mp_tpu_send(file, value.data, value.size);
}
