// The model of a client: what its programs would take on the described pod.
//
// The running program only keeps a log: which launches the host made and on what they waited, which
// transfers, and the choices of runs (path.h). The virtual times are computed from the log on
// demand, or when the log grows long, in its order. So they do not depend on workers, processes or
// the machine, and results never depend on them.
//
// The host. Its clock goes on by what a launch costs it (the figure host.dispatch), and when it
// waits for results or transfers; a launch begins on a device when the device is done with what was
// launched before, the inputs are there, and the launch latency has gone by since the host's
// moment. A wait for one result of a launch is a wait for the whole launch, on all devices, so that
// one process that has all devices and many that have some come to the same times. Several threads
// of the host share its clock: their times depend on the order in which they launch and wait.
//
// Thread-safe. Functions that keep the log never fail: when memory is short an entry is left out,
// and the report says so.
#ifndef MINIPOD_SIM_MODEL_CLOCK_MODEL_H_
#define MINIPOD_SIM_MODEL_CLOCK_MODEL_H_

#include "sim/base/options.h"
#include "sim/model/clock/replay/replay.h"
#include "sim/model/faults/health.h"

typedef struct mp_model_s mp_model_t;
typedef struct mp_model_program_s mp_model_program_t;

// Names an entry of the log, and whether it is a transfer; 0: none. What a buffer was made by.
typedef uint64_t mp_stamp_t;

// Makes the model of a pod, which it retains. INVALID_ARGUMENT for an algorithm or a calibration
// that cannot be read.
MP_NODISCARD mp_status_t mp_model_create(mp_pod_t *pod, const mp_options_t *options,
                                         mp_model_t **out_model);
// Frees the model; its programs are all released. NULL has no effect.
void mp_model_release(mp_model_t *model);

// Appends the flags in LIBTPU_INIT_ARGS on which times depend, for comparisons.
void mp_model_write_libtpu_flags(mp_strbuf_t *out);
// Whether times depend on this flag of libtpu, "name=value".
bool mp_model_takes_libtpu_flag(mp_str_t flag);

// Switches rules of the chip model for programs that are made from now on; there are none yet.
void mp_model_set_rules(mp_model_t *model, const mp_chip_switches_t *rules);

// ---- Programs ----

// A program on devices: ids[logical] is the global id of each. The ids are copied.
// One reference is the caller's; entries of the log hold others.
MP_NODISCARD mp_status_t mp_model_program_create(mp_model_t *model, const mp_program_t *program,
                                                 uint32_t num_devices, const uint32_t *ids,
                                                 mp_model_program_t **out_program);
// Gives the reference back and adopts `device_program`, which is what it was made of: it is freed
// once the log says nothing of it any more. The retirement is reported (mp_model_on_retire). NULL
// frees just `device_program`.
void mp_model_program_release(mp_model_program_t *program, mp_program_t *device_program);

// Where programs run for their shapes alone: the branch to take where an absent value decides, of
// the branches of this number (mp_op_t.control); there may be fewer. estimate.c
uint32_t mp_model_program_branch(const mp_model_program_t *program, uint32_t control);

// The time of a TPU kernel (mp_op_t.control) for these values of its operands, in picoseconds; 0:
// its time does not depend on them. `operands`: NULL where values are not known. Any thread may
// call it. model_program.c
uint64_t mp_model_program_kernel(const mp_model_program_t *program, uint32_t control,
                                 const void *const *operands, uint32_t num_operands);

// One launch on an idle pod.
typedef struct {
  double seconds;
  double work_seconds;                // kernels and local control flow, the mean of the devices
  double by_figure[MP_FIGURE_COUNT];  // of these, by the parameter that decides each kernel
} mp_model_estimate_t;

// Loops go round as often as the program says (mp_cmd_t.rounds), or once where it does not.
// estimate.c
MP_NODISCARD mp_status_t mp_model_program_estimate(mp_model_program_t *program,
                                                   mp_model_estimate_t *out_estimate);

// ---- The log ----

// The share of a run whose path is needed.
typedef struct mp_model_share_s mp_model_share_t;

// A launch as the host makes it.
typedef struct {
  // Launches of one number of a program, or of its compilation again for the same devices, belong
  // together (a launch on all devices at once: each has a number of its own; a thread per device:
  // the same), if the program has collectives; without, a launch on some devices is one on these
  // alone. Numbers that belong together grow on each device.
  uint64_t number;
  int64_t traced;      // a profiler's number of the call, for observers; 0: none
  const char *caller;  // where the script makes it, borrowed; NULL: not known
} mp_model_call_t;

// A launch on some devices of this process.
// `inputs[i]` is the newest transfer that device i's arguments come from; NULL: none.
// `out_shares[i]` receives what the run has to write its path to, or NULL when it has no choices.
mp_stamp_t mp_model_launch(mp_model_program_t *program, const mp_model_call_t *call,
                           uint32_t num_shares, const uint32_t *logical, const mp_stamp_t *inputs,
                           mp_model_share_t **out_shares);
// The path that the run of a share adds its choices to.
mp_path_t *mp_model_share_path(mp_model_share_t *share);
// The run is over, well or badly; the share is not touched any more.
void mp_model_share_end(mp_model_share_t *share);

// Where a transfer begins or ends: in a memory of a device, of which those of its host are two.
typedef struct {
  uint32_t device;
  mp_memory_space_t space;
} mp_model_place_t;

// A transfer from the host's own memory to a device.
mp_stamp_t mp_model_put(mp_model_t *model, uint32_t device, uint64_t bytes);
// A copy of what was made by `source`: between devices, or between a device and the memory of a
// host. Only users of the copy wait for it. Between memories of one host it takes no time.
mp_stamp_t mp_model_copy(mp_model_t *model, mp_model_place_t from, mp_model_place_t to,
                         uint64_t bytes, mp_stamp_t source);
// The host reads what was made by `source` from a device, and waits for it. 0 bytes: it only waits.
mp_stamp_t mp_model_get(mp_model_t *model, uint32_t device, uint64_t bytes, mp_stamp_t source);
// The host waits for all that was launched on this process's devices so far.
void mp_model_wait(mp_model_t *model);
// From here on the pod has this health, a reference that the model takes; NULL: all is well.
void mp_model_set_health(mp_model_t *model, mp_health_t *health);
// The newer one of two stamps, if it is of a transfer.
mp_stamp_t mp_stamp_newer_transfer(mp_stamp_t a, mp_stamp_t b);

// ---- Pace ----

// Whether real time is to follow virtual time (time: paced), or the host's clock.
bool mp_model_is_paced(const mp_model_t *model);
// Whether that is the host's clock (clock: virtual, sim/base/os/host_clock.h): then it is paced.
bool mp_model_is_virtual(const mp_model_t *model);
// Of a paced model: the moment (mp_clock_seconds, or of the host's clock) before which the host
// must not see what a stamp names. False: it is not known yet, because runs that come before go on
// or are still to come. 0 is never waited for.
bool mp_model_due(mp_model_t *model, mp_stamp_t stamp, double *out_moment);

// Of a paced model whose real time is real: what was due at `due` came as late as `moment`. The
// first time that this is more than a little of all time so far, it is logged.
void mp_model_note_late(mp_model_t *model, double due, double moment);

// ---- What came out ----

// How a script launches a program again and again, by a clock of its own that is paced or virtual:
// medians over the last MP_MODEL_RHYTHM launches, so that one that compiled before is none of them.
enum { MP_MODEL_RHYTHM = 32 };
typedef struct {
  uint32_t count;       // distances between launches that were looked at; 0: nothing is known
  double seconds;       // virtual, from one launch to the next
  double host_seconds;  // of these the pod stood, because the host had its own work to do
} mp_rhythm_t;

// Waits, at most `seconds` of real time, until the paths of all launches that are in the log by now
// are known: only then are their times. A launch that has not come on all of its devices is not
// waited for, nor is what follows it, because the caller may be the one that brings the rest.
// False: the time was too short. No lock but long ones is held.
bool mp_model_await(mp_model_t *model, double seconds);

// The launches of a program from one place of the script. Of the rows of a program, the last one is
// of all places beyond the limit.
#define MP_MODEL_OTHER_CALLERS "(others)"
enum { MP_MODEL_CALLERS = 1024 };
typedef struct {
  const char *text;  // mp_model_call_t.caller; in the model's books it lives as long as the model
  uint64_t launches;
  uint64_t runs;
  mp_moment_t time, available;  // as of the program
} mp_model_caller_books_t;

// Adds the numbers of a row to those of another one.
void mp_model_caller_add(mp_model_caller_books_t *row, const mp_model_caller_books_t *more);

// Of one program.
typedef struct {
  mp_str_t name;
  uint64_t key;     // equal for the same program, or its compilation again, in all processes
  uint64_t serial;  // from 1 on, in the order in which the model's programs were made
  const mp_program_t *program;
  const mp_chip_program_t *chip_program;
  uint32_t num_devices;
  const int32_t *ids;  // [num_devices] global
  uint64_t launches;
  uint64_t runs;          // devices that took part in these, together
  mp_moment_t time;       // of the device that took longest, summed over launches
  mp_moment_t available;  // of all devices that took part
  mp_moment_t transfers;  // that these waited for arguments before they began
  mp_rhythm_t rhythm;     // of a paced model
  uint32_t num_callers;
  const mp_model_caller_books_t *callers;  // in the order in which they came first
  mp_replay_books_t books;                 // summed over launches
  const uint32_t *branches;                // by mp_op_t.control: as mp_model_program_branch says
  int32_t unknown_branch;                  // the options that the guesses follow (topology/pod.h)
  int64_t unknown_trip_count;
} mp_model_program_books_t;

typedef struct {
  mp_moment_t now;  // the latest moment that the host or a device has come to
  mp_moment_t host;
  const mp_moment_t *devices;  // [num_devices of the pod]; they go on meanwhile
  uint64_t launches, transfers;
  uint64_t pending;  // entries that wait for runs that are not over
  uint64_t lost;     // entries that were left out because memory was short
  double late;       // real seconds that the host has waited longer than the pace says
  double pace;       // 0: the model is not paced, or the clock is virtual
} mp_model_books_t;

// Gets the books of a program, with the model's lock held: it takes no lock itself.
typedef void (*mp_model_visitor_t)(const mp_model_program_books_t *program, void *context);

// Computes what the log says and hands it out; the visitor (may be NULL) is called for each
// program that is in use, in the order in which they were made.
void mp_model_read(mp_model_t *model, mp_model_books_t *out_books, mp_model_visitor_t visit,
                   void *context);
// From now on `visit` is called with the last books of each program that goes.
void mp_model_on_retire(mp_model_t *model, mp_model_visitor_t visit, void *context);
mp_network_t *mp_model_network(const mp_model_t *model);
const mp_pod_t *mp_model_pod(const mp_model_t *model);
const mp_chip_t *mp_model_chip(const mp_model_t *model);

// ---- Timelines ----

typedef enum { MP_TRANSFER_PUT, MP_TRANSFER_COPY, MP_TRANSFER_GET } mp_model_transfer_kind_t;

// A transfer between the host and a device, or (COPY) from another device to it.
typedef struct {
  mp_model_transfer_kind_t kind;
  uint32_t device;
  uint64_t bytes;
  uint32_t num_uses;  // of links
  const mp_network_use_t *uses;
} mp_model_transfer_t;

// A device's part of a collective: when the device arrived, and when the collective took place.
typedef struct {
  uint32_t device;
  uint32_t collective;
  mp_moment_t arrival, begin, end;
} mp_model_meeting_t;

// A send or a receive of a device (replay.h): `other` is the device at the other end.
typedef struct {
  uint32_t device, other;
  uint32_t collective;
  bool is_send;
  mp_moment_t begin, end;
} mp_model_message_t;

// Bytes of a collective that crossed a link.
typedef struct {
  uint32_t link;
  uint32_t collective;
  double bytes;
  mp_moment_t begin, end;
} mp_model_carried_t;

// Gets everything on the pod from now on, with moments since the client was made. Called with the
// model's lock held; takes no lock that is outside of it. No function may be NULL.
typedef struct {
  // The host hands a launch over.
  void (*on_enqueue)(void *context, const mp_model_program_t *program, mp_moment_t moment);
  // `traced` as the launch came with.
  void (*on_launch)(void *context, const mp_model_program_t *program, uint32_t device,
                    int64_t traced, mp_moment_t begin, mp_moment_t end);
  void (*on_work)(void *context, const mp_model_program_t *program, uint32_t device, uint32_t step,
                  mp_moment_t begin, mp_moment_t end);
  void (*on_meeting)(void *context, const mp_model_program_t *program,
                     const mp_model_meeting_t *meeting);
  // A collective that goes on while the device does something else (replay.h).
  void (*on_stream)(void *context, const mp_model_program_t *program, uint32_t device,
                    uint32_t collective, mp_moment_t begin, mp_moment_t end);
  // A device that had to wait for a message has a meeting, too.
  void (*on_message)(void *context, const mp_model_program_t *program,
                     const mp_model_message_t *message);
  void (*on_link)(void *context, const mp_model_program_t *program,
                  const mp_model_carried_t *carried);
  // Transfers of one kind to or from one device do not overlap.
  void (*on_transfer)(void *context, const mp_model_transfer_t *transfer, mp_moment_t begin,
                      mp_moment_t end);
  void *context;
} mp_model_observer_t;

// Sets the observer (copied), or takes it away (NULL). What the log says so far is computed first.
void mp_model_observe(mp_model_t *model, const mp_model_observer_t *observer);
// What an observer may ask about a program.
mp_str_t mp_model_program_name(const mp_model_program_t *program);
const mp_chip_program_t *mp_model_program_chip(const mp_model_program_t *program);
uint32_t mp_model_program_num_devices(const mp_model_program_t *program);
const int32_t *mp_model_program_ids(const mp_model_program_t *program);
// Of a meeting that the observer gets; AUTO: of a message, which has none.
mp_algorithm_t mp_model_program_algorithm(const mp_model_program_t *program, uint32_t collective);

#endif  // MINIPOD_SIM_MODEL_CLOCK_MODEL_H_
