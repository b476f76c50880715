// A program on a pod, for `minipod exec`: does what a framework does with the PJRT C API, for whole
// arrays.
//
// Arguments and results are whole arrays: they are split into the devices' parts, and assembled
// from them, by the program's shardings. If a program has several replicas, arrays have an
// additional first dimension with the array of each replica (as with `jax.pmap`).
#ifndef MINIPOD_PJRT_COMMAND_EXEC_POD_H_
#define MINIPOD_PJRT_COMMAND_EXEC_POD_H_

#include "pjrt/command/exec_array.h"
#include "pjrt/pjrt_objects.h"

typedef struct {
  PJRT_Client *client;
  PJRT_LoadedExecutable *loaded;
  const mp_program_t *program;  // of `loaded`
  uint32_t num_devices;
  PJRT_Device *const *devices;  // by their numbers in the program
  PJRT_Buffer ***arguments;     // [num_devices][params]; NULL where there is none yet
  PJRT_Buffer ***results;       // [num_devices][results]
} mp_exec_pod_t;

typedef struct {
  mp_str_t code;
  const char *form;                       // as PJRT names it
  uint32_t num_replicas, num_partitions;  // both at least 1
} mp_exec_program_t;

// Compiles for the pod that the environment describes; if it describes none, for a pod with as many
// devices as the program needs. UNIMPLEMENTED for pods over several processes. After an error
// mp_exec_pod_close must be called, too.
MP_NODISCARD mp_status_t mp_exec_pod_open(const mp_exec_program_t *program, mp_exec_pod_t *pod);
void mp_exec_pod_close(mp_exec_pod_t *pod);

// The type and shape of the whole array of an argument or a result, without data. UNIMPLEMENTED,
// with its name (`what`), for values without a whole array: tokens, unreduced sums, uneven parts,
// other layouts.
MP_NODISCARD mp_status_t mp_exec_pod_shape_of_argument(const mp_exec_pod_t *pod, uint32_t index,
                                                       const char *what,
                                                       mp_exec_array_t *out_array);
MP_NODISCARD mp_status_t mp_exec_pod_shape_of_result(const mp_exec_pod_t *pod, uint32_t index,
                                                     const char *what, mp_exec_array_t *out_array);

// Puts the parts of argument `index` onto the devices: those of `array` or, if it has no data,
// random ones from `seed`. Destroys earlier buffers of the argument.
MP_NODISCARD mp_status_t mp_exec_pod_put(mp_exec_pod_t *pod, uint32_t index,
                                         const mp_exec_array_t *array, uint64_t seed);
// Whether argument `index` must be put: it was not put yet, or a run has taken its buffers over.
bool mp_exec_pod_needs(const mp_exec_pod_t *pod, uint32_t index);
// Whether large arrays have no values on this pod (option `values`).
bool mp_exec_pod_is_absent(const mp_exec_pod_t *pod);
// Runs the program once, and waits for all devices. The times are in seconds; the virtual time is
// negative if none is kept.
MP_NODISCARD mp_status_t mp_exec_pod_run(mp_exec_pod_t *pod, double *out_real, double *out_virtual);
// Allocates `array` and fills it with result `index` of the last run.
MP_NODISCARD mp_status_t mp_exec_pod_get(mp_exec_pod_t *pod, uint32_t index,
                                         mp_exec_array_t *array);

#endif  // MINIPOD_PJRT_COMMAND_EXEC_POD_H_
