// Kernels that communicate: while they run on the devices of a launch, they write each other's
// memory and signal each other's semaphores.
//
// Such a kernel is not run part by part. Its runs on all devices of a launch, of one call, are a
// *talk*. Each device enters the talk, runs until it is done or has to wait for another device, and
// leaves. Code of the kernel never waits: a device that has to is parked by the runtime, and the
// kernel wakes it. Devices may enter in any order, and at different times.
#ifndef MINIPOD_SIM_KERNELS_TALK_H_
#define MINIPOD_SIM_KERNELS_TALK_H_

#include <stdbool.h>

#include "sim/base/str.h"
#include "sim/kernels/kernel.h"

// Kernels embed this as the first member of their own struct.
typedef struct mp_talk_s {
  const mp_kernel_t *kernel;
} mp_talk_t;

// Writes a message to memory of its size, 64-byte aligned.
typedef mp_status_t (*mp_talk_write_t)(const void *message, void *out_data);

// The launch, as a talk sees it. It outlives the talk.
typedef struct {
  void *context;
  uint32_t num_devices;   // of the program; they are numbered replica by replica
  const uint32_t *names;  // [num_devices] for messages
  // A device that waits may go on now. The caller holds no lock. Thread-safe, like the next two.
  void (*wake)(void *context, uint32_t device);
  // Whether the device is in another process: it never enters here, and gets messages.
  bool (*is_far)(void *context, uint32_t device);
  // Sends a message to such a device, where `deliver` gets it when the device is inside. Does not
  // wait. is_lasting: it is dropped without an error if the device has left.
  mp_status_t (*send)(void *context, uint32_t device, bool is_lasting, mp_talk_write_t write,
                      const void *message, size_t bytes);
} mp_talk_link_t;

// How a device's run has stopped.
typedef enum {
  MP_TALK_RUN_IS_OVER,
  MP_TALK_RUN_WAITS,
  MP_TALK_RUN_YIELDS,  // it may continue, but looks for what another device does
} mp_talk_stop_t;

// What a kernel that communicates has in place of `run`. Thread-safe; the functions for one device
// are called by one thread at a time.
typedef struct mp_talk_ops_s {
  // The link is copied.
  mp_status_t (*create)(const mp_kernel_t *kernel, const mp_talk_link_t *link,
                        mp_talk_t **out_talk);
  // All devices that entered have left.
  void (*release)(mp_talk_t *talk);
  // The operands and results stay where they are until the device leaves. After an error the
  // device must leave, too.
  mp_status_t (*enter)(mp_talk_t *talk, uint32_t device, const void *const *operands,
                       void *const *results);
  // Runs until the kernel is done on this device, has to wait or yields. Then it is called again.
  mp_status_t (*go_on)(mp_talk_t *talk, uint32_t device, mp_talk_stop_t *out_stop);
  // Whether what the device waited for when it returned has happened. Takes no lock but the talk's.
  bool (*may_go_on)(mp_talk_t *talk, uint32_t device);
  // A message from a device of another process has come for this one, which is inside. Called
  // between two calls of go_on, by the same thread.
  mp_status_t (*deliver)(mp_talk_t *talk, uint32_t device, const void *data, size_t bytes);
  void (*leave)(mp_talk_t *talk, uint32_t device);
  // Appends where and for what a device waits: "kernel 'ring', grid step (0), ...".
  void (*describe)(mp_talk_t *talk, uint32_t device, mp_strbuf_t *out);
} mp_talk_ops_t;

#endif  // MINIPOD_SIM_KERNELS_TALK_H_
