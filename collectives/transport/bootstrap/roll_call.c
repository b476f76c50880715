#include "collectives/transport/bootstrap/roll_call.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

// The largest number of missing ranks that are listed.
enum { MP_MOST_CALLED = 1024 };

// Writes the name of one rank of this job; returns its size, or 0 if the rank cannot have a name.
static socklen_t roll_call_name_of(const mp_launcher_t *launcher, int64_t rank,
                                   struct sockaddr_un *name) {
  if (launcher == NULL || launcher->job == NULL) return 0;
  *name = (struct sockaddr_un){.sun_family = AF_UNIX};
  // The leading zero byte makes it abstract: no file.
  int length = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "minipod/%s/%" PRId64,
                        launcher->job, rank);
  if (length < 0 || (size_t)length >= sizeof(name->sun_path) - 1) return 0;
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

int mp_roll_call_answer(const mp_launcher_t *launcher) {
  struct sockaddr_un name;
  socklen_t size = launcher == NULL ? 0 : roll_call_name_of(launcher, launcher->rank, &name);
  if (size == 0) return -1;
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (bind(fd, (const struct sockaddr *)&name, size) == 0) return fd;
  close(fd);
  return -1;
}

static bool roll_call_is_present(const mp_launcher_t *launcher, int64_t rank) {
  struct sockaddr_un name;
  socklen_t size = roll_call_name_of(launcher, rank, &name);
  int fd = size == 0 ? -1 : socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return true;  // unknown, so the rank is not listed as missing
  bool is_bound = connect(fd, (const struct sockaddr *)&name, size) == 0;
  close(fd);
  return is_bound;
}

void mp_roll_call_missing(const mp_launcher_t *launcher, mp_strbuf_t *text) {
  if (launcher == NULL || launcher->job == NULL || !launcher->is_one_host) return;
  const char *separator = "; not heard of: rank ";
  for (int64_t rank = 0; rank < launcher->size && rank < MP_MOST_CALLED; ++rank) {
    if (roll_call_is_present(launcher, rank)) continue;
    mp_strbuf_printf(text, "%s%" PRId64, separator, rank);
    separator = ", rank ";
  }
}
