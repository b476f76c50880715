// Messages between process 0, which has the store, and all processes, over TCP.
//
// A process connects, and sends a greeting. After that it sends one request at a time and gets one
// answer to each. All processes run the same build, and their machines have the same byte order:
// the greeting checks that they run the same protocol, and the hellos in the store compare the
// builds.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_TPU_TPU_MESSAGE_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_TPU_TPU_MESSAGE_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"
#include "sim/base/str.h"

#define MP_TPU_MAGIC "minipod tpu 1"

typedef struct {
  char magic[16];
  uint32_t rank, size;
  uint64_t job;  // a hash of the addresses; equal in all processes of a job
} mp_tpu_greeting_t;

typedef enum {
  MP_TPU_PUT,
  MP_TPU_GET,
  MP_TPU_BYE,  // the process will send no more; without an answer
  MP_TPU_REQUEST_COUNT,
} mp_tpu_request_kind_t;

// Followed by key and value.
typedef struct {
  uint32_t kind;
  uint32_t key_size;
  uint32_t value_size;
  uint32_t wait_ms;  // how long a get waits for the value
} mp_tpu_request_t;

// Followed by the value, or by the text of the error.
typedef struct {
  uint32_t code;  // mp_status_code_t
  uint32_t size;
} mp_tpu_answer_t;

enum {
  MP_TPU_MOST_KEY = 256,
  MP_TPU_MOST_VALUE = 1 << 20,
};

// Sends all bytes. UNAVAILABLE when the connection has ended.
MP_NODISCARD mp_status_t mp_tpu_send(int file, const void *bytes, size_t size);
// Receives this number of bytes within `seconds`. UNAVAILABLE when the connection has ended,
// DEADLINE_EXCEEDED.
MP_NODISCARD mp_status_t mp_tpu_receive(int file, void *bytes, size_t size, double seconds);
// Sends the answer to a request: the value, or the error, which is not consumed.
MP_NODISCARD mp_status_t mp_tpu_send_answer(int file, mp_status_t error, mp_str_t value);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_TPU_TPU_MESSAGE_H_
