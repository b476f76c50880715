// Hello: the first message of each process to all others, by any transport.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_HELLO_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_HELLO_H_

#include "collectives/transport/segment.h"
#include "collectives/transport/world.h"
#include "sim/base/os/process.h"
#include "sim/base/str.h"

// The first three members must stay as they are in all versions. The texts fill their arrays with
// zeros, so hellos may be compared byte by byte.
typedef struct {
  uint32_t protocol;
  char version[28];
  char hostname[64];
  uint64_t build;
  mp_process_id_t process;
  int64_t num_processes;         // number of processes, from this one's point of view
  int64_t leader;                // lowest rank that shares memory with this one
  uint64_t job;                  // random; that of rank 0 names the job
  mp_segment_address_t address;  // all zero: none
} mp_hello_t;

// The hello of this process, in a job of `num_processes`. `segment` may be NULL.
mp_hello_t mp_hello_make(uint32_t num_processes, int64_t leader, const mp_segment_t *segment);

// Checks that the hellos of rank `a` and rank `b` are of the same build in the same job;
// FAILED_PRECONDITION with both sides otherwise.
MP_NODISCARD mp_status_t mp_hello_compare(uint32_t a, mp_str_t hello_a, uint32_t b,
                                          mp_str_t hello_b);

// Copies pid and host name from the hello of `rank` into the world.
void mp_hello_take(mp_world_t *world, uint32_t rank, const mp_hello_t *hello);

// Whether two processes run on one host, by their hellos.
bool mp_hello_is_same_host(const mp_hello_t *a, const mp_hello_t *b);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_HELLO_H_
