// The job that the variables of TPU hosts describe: which processes there are, which one this is,
// and which chips each of them has.
//
// TorchTPU sets these variables before it makes its client, and programs that run several
// processes per TPU host set them for JAX. They are those that libtpu reads:
//
//   TPU_PROCESS_ADDRESSES         HOST:PORT of each process, by number
//   CLOUD_TPU_TASK_ID             the number of this process (or TPU_WORKER_ID)
//   TPU_PROCESS_PORT              the port of this process
//   TPU_PROCESS_BOUNDS            the grid of processes, such as 2,2,1 (or TPU_HOST_BOUNDS)
//   TPU_CHIPS_PER_PROCESS_BOUNDS  the box of chips of each (or TPU_CHIPS_PER_HOST_BOUNDS)
//   TPU_VISIBLE_CHIPS             the chips of this process on its host (or TPU_VISIBLE_DEVICES)
//   TPU_WORKER_HOSTNAMES          the hosts, where each of them has one process (GKE)
//
// TPU hosts set the last one for all programs. So it counts only if the platform is tpu.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_TPU_TPU_JOB_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_TPU_TPU_JOB_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/options.h"
#include "sim/base/str.h"

// Three dimensions of chips, and the cores of a chip where the variable has a fourth number.
enum { MP_TPU_DIMS = 4 };

typedef struct {
  const char *variable;        // NULL: not set
  int32_t sizes[MP_TPU_DIMS];  // 1 where the variable has fewer numbers
  int32_t num_dims;            // numbers of the variable: 1 to MP_TPU_DIMS
} mp_tpu_bounds_t;

// Texts are in the environment or static.
typedef struct {
  uint32_t rank, size;        // size 0: the variables describe no job of several processes
  const char *addresses;      // one per process, separated by commas
  const char *list_variable;  // the variable of `addresses`
  const char *rank_variable;  // the variable of `rank`
  mp_tpu_bounds_t processes;  // these two are either both set or both not
  mp_tpu_bounds_t chips;
  const char *visible;  // "": not set
} mp_tpu_job_t;

// Reads the variables. INVALID_ARGUMENT, with the variable and its value, when one of them is
// missing, malformed, or contradicts another one. No other thread may change the environment
// meanwhile.
MP_NODISCARD mp_status_t mp_tpu_job_read(const mp_options_t *options, mp_tpu_job_t *out_job);

// The address of a process as it is written, "localhost:8070".
mp_str_t mp_tpu_job_address(const mp_tpu_job_t *job, uint32_t rank);
// Host and port of process 0, as getaddrinfo takes them.
enum { MP_TPU_HOST_BYTES = 256, MP_TPU_PORT_BYTES = 8 };
void mp_tpu_job_first(const mp_tpu_job_t *job, char host[MP_TPU_HOST_BYTES],
                      char port[MP_TPU_PORT_BYTES]);
// Divides an address into host and port; true: it has a port. The port is MP_TPU_PORT otherwise.
enum { MP_TPU_PORT = 8471 };
bool mp_tpu_split_address(mp_str_t address, mp_str_t *out_host, uint16_t *out_port);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_TPU_TPU_JOB_H_
