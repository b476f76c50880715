// The runs of a kernel on the devices of a launch: how they reach each other's memory and
// semaphores. Thread-safe.
//
// A device is *inside* from mp_mosaic_peers_enter to mp_mosaic_peers_leave. Only then others may
// write its memory and semaphores. A copy or signal to a device that is not inside yet waits; to
// one that has left it is an error. The semaphore for barriers is always there.
//
// Memory is copied without the lock of the peers, so that other devices can go on. What a kernel
// must not read before it has waited is not protected otherwise, as on a TPU.
#ifndef MINIPOD_SIM_MOSAIC_RUN_MOSAIC_PEERS_H_
#define MINIPOD_SIM_MOSAIC_RUN_MOSAIC_PEERS_H_

#include "sim/base/containers/array.h"
#include "sim/base/os/lock.h"
#include "sim/kernels/talk.h"
#include "sim/mosaic/run/mosaic_clocks.h"
#include "sim/mosaic/run/mosaic_program.h"

typedef enum {
  MP_MOSAIC_NOT_YET,
  MP_MOSAIC_INSIDE,
  MP_MOSAIC_GONE,
} mp_mosaic_presence_t;

// What a run waits for.
typedef enum {
  MP_MOSAIC_WAITS_NOT,
  MP_MOSAIC_WAITS_FOR_SEMAPHORE,
  MP_MOSAIC_WAITS_FOR_PEER,    // until it is inside
  MP_MOSAIC_WAITS_FOR_CHANGE,  // of any semaphore: the run polls
} mp_mosaic_wait_kind_t;

typedef struct {
  mp_mosaic_wait_kind_t kind;
  const int64_t *semaphore;  // FOR_CHANGE: the one that it reads; NULL: it reads other memory
  int64_t wanted;
  uint32_t peer;
  uint64_t changes;  // FOR_CHANGE: since so many
} mp_mosaic_wait_t;

// A place that is the same on all devices: in the memory of a run, in an argument's array, or a
// semaphore of mp_mosaic_peer_t.
typedef struct {
  uint32_t root;  // as in views
  bool is_in_part;
  int64_t offset;
  uint64_t block;  // of the argument; 0: no argument
} mp_mosaic_spot_t;

// Where an argument is. Blocks of arrays move from step to step; `block` is then a hash of their
// index.
typedef struct {
  char *base;
  uint64_t block;
} mp_mosaic_arg_t;

// A DMA of another device to this one, for checks.
typedef struct {
  uint32_t from;  // the device
  const mp_mosaic_instruction_t *in;
  mp_mosaic_view_t target;
  const int64_t *semaphore;
  int64_t amount;
} mp_mosaic_incoming_t;
typedef MP_ARRAY(mp_mosaic_incoming_t) mp_mosaic_incomings_t;  // on the heap

// The run on one device.
typedef struct {
  mp_lock_t memory;  // held while another device copies into its memory; taken before `lock`
  // ---- Under the peers' lock; presence becomes GONE only with both locks held ----
  mp_mosaic_presence_t presence;
  char *part;             // the memory of the run, of mp_mosaic_peers_t.part_bytes
  mp_mosaic_arg_t *args;  // [num_args]
  int64_t barrier;        // the semaphore for barriers
  int64_t ends;           // a semaphore that each other device signals when it ends
  uint64_t changes;       // how often a DMA or signal has changed one of its semaphores
  mp_mosaic_wait_t wait;
  mp_mosaic_watcher_t *watcher;    // of its run; NULL: none
  mp_mosaic_incomings_t incoming;  // if runs are watched: what its check has not taken
} mp_mosaic_peer_t;

typedef struct mp_mosaic_peers_s mp_mosaic_peers_t;
struct mp_mosaic_peers_s {
  const char *kernel;  // its name
  mp_talk_link_t link;
  size_t part_bytes;
  uint32_t num_args;
  const mp_mosaic_program_t *watched;  // the program, if runs are watched; or NULL
  mp_lock_t lock;
  mp_mosaic_clocks_t *clocks;      // if runs are watched, all in this process; or NULL
  uint32_t num_waiting_for_peers;  // how many devices wait for one that is not inside yet
  mp_mosaic_peer_t *peers;         // [link.num_devices]
  mp_status_t failure;  // under the lock: of the first device that has failed; NULL: none
};

// The kernel's name is borrowed. `part_bytes`: of the memory that a run has at one place, and at
// the same offsets on all devices.
MP_NODISCARD mp_status_t mp_mosaic_peers_create(const char *kernel, size_t part_bytes,
                                                uint32_t num_args, const mp_talk_link_t *link,
                                                mp_mosaic_peers_t **out_peers);
// NULL: nothing.
void mp_mosaic_peers_release(mp_mosaic_peers_t *peers);

// The program's runs are watched.
MP_NODISCARD mp_status_t mp_mosaic_peers_watch(mp_mosaic_peers_t *peers,
                                               const mp_mosaic_program_t *program);

// The device's run is ready to be reached: its memory is `part`. `watcher` may be NULL.
void mp_mosaic_peers_enter(mp_mosaic_peers_t *peers, uint32_t device, char *part,
                           mp_mosaic_watcher_t *watcher);
// Where its arguments are from now on. Called before it enters, and when a block moves.
void mp_mosaic_peers_move(mp_mosaic_peers_t *peers, uint32_t device, const mp_mosaic_arg_t *args);
// Its memory is not used by other devices from here on. Has no effect if it is not inside.
void mp_mosaic_peers_leave(mp_mosaic_peers_t *peers, uint32_t device);

// The device's run has failed, and it will leave. The status stays the caller's.
void mp_mosaic_peers_fail(mp_mosaic_peers_t *peers, uint32_t device, mp_status_t status);

// Whether the device, whose last instruction had to wait, may try it again.
bool mp_mosaic_peers_may_go_on(mp_mosaic_peers_t *peers, uint32_t device);
// What it waits for, and the value of the semaphore.
mp_mosaic_wait_t mp_mosaic_peers_wait(mp_mosaic_peers_t *peers, uint32_t device,
                                      int64_t *out_value);

// The device has ended a kernel that passes semaphores on. Until all have, others may change its
// memory.
MP_NODISCARD mp_status_t mp_mosaic_peers_end(mp_mosaic_state_t *state);
// True if it has to wait for others to end.
bool mp_mosaic_peers_await_ends(mp_mosaic_peers_t *peers, uint32_t device);

// Takes the DMAs that have come to the device since the last call; the caller frees the array.
void mp_mosaic_peers_take_incoming(mp_mosaic_peers_t *peers, uint32_t device,
                                   mp_mosaic_incomings_t *out);

// How often other devices have changed the device's memory or semaphores.
uint64_t mp_mosaic_peers_changes(mp_mosaic_peers_t *peers, uint32_t device);
// The device, which polls, waits until the number of changes is another one; false: it is already.
// `semaphore`: that it reads; NULL: it reads other memory.
bool mp_mosaic_peers_await_change(mp_mosaic_peers_t *peers, uint32_t device,
                                  const int64_t *semaphore, uint64_t changes);

// ---- for mosaic_remote.c; the caller holds the lock ----

void mp_mosaic_peers_set_wait(mp_mosaic_peers_t *peers, uint32_t device, mp_mosaic_wait_t wait);
// Adds to a semaphore of the device. True: the caller must wake it, without the lock.
bool mp_mosaic_peers_signal(mp_mosaic_peers_t *peers, uint32_t device, int64_t *semaphore,
                            int64_t count);
// Where the view begins on a device that is inside, and the address of such a spot on another one,
// which is inside, too, or of which only the semaphore for barriers is wanted.
MP_NODISCARD mp_status_t mp_mosaic_peers_spot(const mp_mosaic_peers_t *peers, uint32_t device,
                                              const mp_mosaic_view_t *view,
                                              mp_mosaic_spot_t *out_spot);
MP_NODISCARD mp_status_t mp_mosaic_peers_find(const mp_mosaic_peers_t *peers, uint32_t device,
                                              const mp_mosaic_spot_t *spot, char **out_address);

// A DMA comes to the device. Has no effect if runs are not watched.
MP_NODISCARD mp_status_t mp_mosaic_peers_add_incoming(mp_mosaic_peers_t *peers, uint32_t device,
                                                      const mp_mosaic_incoming_t *incoming);

// ---- mosaic_message.c ----

// Adds `count` to a semaphore of a device of another process. No lock is held.
MP_NODISCARD mp_status_t mp_mosaic_message_signal(mp_mosaic_state_t *state, uint32_t device,
                                                  const mp_mosaic_view_t *semaphore, int64_t count);
// Does the DMA, to such a device.
MP_NODISCARD mp_status_t mp_mosaic_message_copy(mp_mosaic_state_t *state, uint32_t device,
                                                const mp_mosaic_instruction_t *in);
// Does what the message says, on a device that is inside and does not run now.
MP_NODISCARD mp_status_t mp_mosaic_message_take(mp_mosaic_peers_t *peers, uint32_t device,
                                                const void *data, size_t bytes);

// ---- mosaic_remote.c ----

// DMAs and semaphores of a run that has peers (mp_mosaic_step_async).
MP_NODISCARD mp_status_t mp_mosaic_peers_step(const mp_mosaic_instruction_t *in,
                                              mp_mosaic_state_t *state, bool *out_blocks);

#endif  // MINIPOD_SIM_MOSAIC_RUN_MOSAIC_PEERS_H_
