// The insides of executables.
#ifndef MINIPOD_SIM_RUNTIME_RUNS_EXECUTABLE_IMPL_H_
#define MINIPOD_SIM_RUNTIME_RUNS_EXECUTABLE_IMPL_H_

#include "sim/runtime/buffers/buffer_form.h"
#include "sim/runtime/buffers/storage.h"
#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/memory/name.h"
#include "sim/runtime/order/device_set.h"
#include "sim/runtime/replicas/replica_check.h"
#include "sim/runtime/runs/executable.h"

typedef struct mp_shapes_s mp_shapes_t;

// How inline runs of an executable went (inline_run.h): guesses about speed, which nothing else
// depends on, so relaxed.
typedef struct {
  atomic_int slowness;    // grows with runs that took much longer than guessed
  atomic_int num_left;    // launches that workers get before another inline run is tried
  atomic_int num_breaks;  // of that kind, without good runs in between
  atomic_uint last_us;    // that the last long run took; 0: there was none, or it meets others
} mp_inline_record_t;

// Nothing but `references`, `users`, `newest`, `num_launches`, `num_vain_waits` and `inline_record`
// changes once the executable is made.
struct mp_executable_s {
  atomic_int references;
  mp_client_t *client;    // held
  mp_program_t *program;  // owned
  mp_shapes_t *shapes;    // for runs without values; NULL: they have values
  // The newest values of each result (runs/shape_memory.h), [num_results] references, under the
  // lock of the client's regions; NULL: see `shapes`.
  mp_contents_t **newest;
  mp_model_program_t *timed;  // the same in the client's model of time; NULL: there is none
  mp_link_users_t *users;     // of the pod's links (sim/model/faults); under the launch lock
  mp_name_t *name;            // the program's, for labels of memory that outlives the executable
  mp_buffer_form_t **forms;   // [num_results] references: the forms of the arrays of each result
  mp_label_t **labels;        // [num_results] references: the labels of the results' memory
  uint32_t num_devices;
  const uint32_t *ids;                 // [num_devices] global, in logical order; the set's
  uint32_t num_local;                  // may be 0
  uint32_t *local;                     // [num_local] logical numbers of this process's devices
  mp_device_set_t *set;                // the client's
  uint32_t num_donatable;              // parameters
  uint32_t max_operands, max_results;  // of any command
  uint32_t max_edges;                  // of any loop that is one command, if time is modelled
  bool is_for_others;    // it also runs on devices of processes that do not exist (client_impl.h)
  bool has_collectives;  // or sends, receives, talks; false if it is for others
  bool needs_workers;    // for collectives with other processes
  bool has_stages;       // of foreign functions: prepare or initialize
  bool may_block;        // it makes calls that may block
  uint64_t digest;       // equal for equal programs in all processes
  // With the option `check`: which arrays should be equal on several devices, and the program that
  // sends their digests to all processes. NULL: there are no such arrays, or all devices are in
  // this process.
  mp_replicas_t *replicas;
  mp_executable_t *exchange;
  _Atomic uint64_t num_launches;  // launches that were checked
  // Consecutive launches that were not over after mp_executable_patience; orders nothing.
  atomic_int num_vain_waits;
  double inline_seconds;  // rough time of a run on one device; infinite: not for inline runs
  mp_inline_record_t inline_record;
};

#endif  // MINIPOD_SIM_RUNTIME_RUNS_EXECUTABLE_IMPL_H_
