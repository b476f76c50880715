#include "collectives/transport/bootstrap/hello.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "collectives/transport/world_impl.h"
#include "sim/base/hash.h"
#include "sim/base/os/system.h"

// Incremented with every change of the messages between processes.
enum { MP_WIRE_PROTOCOL = 6 };

// A fingerprint of the file that this code is in; 0 when it cannot be read.
static uint64_t hello_build_id(void) {
  Dl_info info;
  static const char here = 0;
  if (dladdr(&here, &info) == 0 || info.dli_fname == NULL) return 0;
  FILE *file = mp_fopen(info.dli_fname, "re");
  if (file == NULL) return 0;
  uint64_t hash = MP_HASH_START;
  unsigned char buffer[1 << 14];
  for (size_t size; (size = fread(buffer, 1, sizeof(buffer), file)) != 0;) {
    hash = mp_hash_bytes(hash, buffer, size);
  }
  fclose(file);
  return hash;
}

mp_hello_t mp_hello_make(uint32_t num_processes, int64_t leader, const mp_segment_t *segment) {
  mp_hello_t hello;
  memset(&hello, 0, sizeof(hello));  // gaps between the members too
  hello.protocol = MP_WIRE_PROTOCOL;
  snprintf(hello.version, sizeof(hello.version), "%s", MINIPOD_VERSION);
  (void)gethostname(hello.hostname, sizeof(hello.hostname) - 1);
  hello.build = hello_build_id();
  hello.process = mp_process_self();
  hello.num_processes = num_processes;
  hello.leader = leader;
  if (getrandom(&hello.job, sizeof(hello.job), 0) != (ssize_t)sizeof(hello.job)) {
    hello.job = (uint64_t)hello.process.pid;  // early at boot
  }
  if (segment != NULL) hello.address = mp_segment_address(segment);
  return hello;
}

// The received bytes as a hello; missing ones are zero.
static mp_hello_t hello_read(mp_str_t bytes) {
  mp_hello_t hello;
  memset(&hello, 0, sizeof(hello));
  memcpy(&hello, bytes.data, bytes.size < sizeof(hello) ? bytes.size : sizeof(hello));
  return hello;
}

mp_status_t mp_hello_compare(uint32_t a, mp_str_t hello_a, uint32_t b, mp_str_t hello_b) {
  const size_t common = offsetof(mp_hello_t, build);
  if (hello_a.size < common || hello_b.size < common) {
    return mp_status_make(MP_FAILED_PRECONDITION, "rank %" PRIu32 " does not run minipod",
                          hello_a.size < common ? a : b);
  }
  const mp_hello_t one_hello = hello_read(hello_a), other_hello = hello_read(hello_b);
  const mp_hello_t *one = &one_hello, *other = &other_hello;
  if (other->protocol != one->protocol || hello_a.size != hello_b.size ||
      hello_a.size != sizeof(mp_hello_t) ||
      strncmp(other->version, one->version, sizeof(one->version)) != 0) {
    return mp_status_make(MP_FAILED_PRECONDITION,
                          "the job mixes versions of minipod: rank %" PRIu32
                          " (host %.63s) runs %.27s (protocol %" PRIu32 "), rank %" PRIu32
                          " (host %.63s) runs %.27s (protocol %" PRIu32 ")",
                          a, one->hostname, one->version, one->protocol, b, other->hostname,
                          other->version, other->protocol);
  }
  if (other->build != one->build) {
    return mp_status_make(
        MP_FAILED_PRECONDITION,
        "the job mixes builds of minipod %s: rank %" PRIu32 " (host %.63s) runs build %016" PRIx64
        ", rank %" PRIu32 " (host %.63s) runs build %016" PRIx64,
        MINIPOD_VERSION, a, one->hostname, one->build, b, other->hostname, other->build);
  }
  if (other->num_processes != one->num_processes) {
    return mp_status_make(MP_FAILED_PRECONDITION,
                          "the processes disagree on how many they are: rank %" PRIu32
                          " expects %" PRId64 ", rank %" PRIu32 " %" PRId64,
                          a, one->num_processes, b, other->num_processes);
  }
  return NULL;
}

bool mp_hello_is_same_host(const mp_hello_t *a, const mp_hello_t *b) {
  return strncmp(a->hostname, b->hostname, sizeof(a->hostname)) == 0 &&
         strncmp(a->process.boot_id, b->process.boot_id, sizeof(a->process.boot_id)) == 0;
}

void mp_hello_take(mp_world_t *world, uint32_t rank, const mp_hello_t *hello) {
  mp_peer_state_t *peer = &world->peers[rank];
  snprintf(peer->hostname, sizeof(peer->hostname), "%.*s", (int)sizeof(hello->hostname),
           hello->hostname);
  peer->peer.pid = hello->process.pid;
  // Last: in a job with MPI the world's thread may be naming this peer right now.
  atomic_store(&peer->peer.hostname, peer->hostname);
}
