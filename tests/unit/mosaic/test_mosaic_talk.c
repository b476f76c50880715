// Kernels that communicate, on several devices that one thread runs in turn.
#include "tests/unit/mosaic/mosaic_bench.h"

#include "sim/kernels/talk.h"

// ---- texts ----

#define SEM(type)        "memref<!tpu." type ", #tpu.memory_space<semaphore_mem>>"
#define ANY              "memref<8x128xf32, #tpu.memory_space<any>>"
#define ARGS_SEM         "%x: " ANY ", %y: " ANY ", %s: " SEM("dma_semaphore") ", %r: " SEM("dma_semaphore")
#define TYPES_SEM        ANY ", " ANY ", " SEM("dma_semaphore") ", " SEM("dma_semaphore")
#define INT(name, value) name " = " OP "arith.constant\"() {value = " value " : i32} : () -> i32\n"
#define DEVICE           OP "tpu.device_id\"() : () -> i32\n"
// %to: the device whose number is the other one of 0 and 1.
#define OTHER \
  "%me = " DEVICE INT("%one", "1") "%to = " OP "arith.subi\"(%one, %me) : (i32, i32) -> i32\n"
#define SEND                                                                                 \
  OP "tpu.enqueue_dma\"(%x, %s, %y, %r, %to) {operandSegmentSizes = array<i32: 1, 1, 1, 1, " \
     "1, 0>} : (" ANY ", " SEM("dma_semaphore") ", " ANY                                     \
                                                ", " SEM("dma_semaphore") ", i32) -> ()\n"
#define WAIT(semaphore)                                               \
  OP "tpu.wait_dma2\"(" semaphore                                     \
     ", %x, %y) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : " \
     "(" SEM("dma_semaphore") ", " ANY ", " ANY ") -> ()\n"
#define BARRIER "%b = " OP "tpu.sem_barrier\"() : () -> " SEM("semaphore") "\n"
#define SIGNAL                                                                                 \
  OP "tpu.sem_signal\"(%b, %one, %to) {operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (" SEM( \
      "semaphore") ", i32, i32) -> ()\n"
#define AWAIT OP "tpu.sem_wait\"(%b, %one) : (" SEM("semaphore") ", i32) -> ()\n"
// while (sem_read(%b) < 1) {}
#define POLL \
  OP "scf.while\"() ({\n%v = " OP "tpu.sem_read\"(%b) : (" SEM("semaphore") ") -> i32\n"         \
     "%c = " OP "arith.cmpi\"(%v, %one) {predicate = 2 : i64} : (i32, i32) -> i1\n" \
     OP "scf.condition\"(%c) : (i1) -> ()\n}, {\n" OP "scf.yield\"() : () -> ()\n}) : () -> ()\n"
// The same, counting.
#define COUNTING_POLL(most) \
  INT("%zero", "0") INT("%most", most)                                                          \
  "%n = " OP "scf.while\"(%zero) ({\n^bb0(%i: i32):\n%v = " OP "tpu.sem_read\"(%b) : ("          \
      SEM("semaphore") ") -> i32\n"                                                             \
     "%c = " OP "arith.cmpi\"(%v, %one) {predicate = 2 : i64} : (i32, i32) -> i1\n"              \
     "%d = " OP "arith.cmpi\"(%i, %most) {predicate = 2 : i64} : (i32, i32) -> i1\n"             \
     "%e = " OP "arith.andi\"(%c, %d) : (i1, i1) -> i1\n"                                        \
     "%j = " OP "arith.addi\"(%i, %one) : (i32, i32) -> i32\n"                                   \
     OP "scf.condition\"(%e, %j) : (i1, i32) -> ()\n}, {\n^bb0(%k: i32):\n"                       \
     OP "scf.yield\"(%k) : (i32) -> ()\n}) : (i32) -> i32\n"
#define TALK_MODULE(body) MODULE(ARGS_SEM, TYPES_SEM, body, ", scratch_operands = 2 : i64")

// ---- two devices ----

enum { COUNT = 1024 };

typedef struct {
  bench_t bench;
  mp_talk_t *talk;
  const mp_talk_ops_t *ops;
  float *x[2], *y[2];
  uint32_t woken;  // bits
  // Device 1 - `here` is in another process if `is_apart`; the last message for it.
  bool is_apart;
  uint32_t here;
  char *message;
  size_t bytes;
  bool is_lasting;
} duet_t;

static void duet_wake(void *context, uint32_t device) {
  ((duet_t *)context)->woken |= 1u << device;
}

static bool duet_is_far(void *context, uint32_t device) {
  const duet_t *duet = context;
  return duet->is_apart && device != duet->here;
}

static mp_status_t duet_send(void *context, uint32_t device, bool is_lasting, mp_talk_write_t write,
                             const void *message, size_t bytes) {
  duet_t *duet = context;
  assert_int_equal(device, 1 - duet->here);
  assert_null(duet->message);
  duet->message = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
  duet->bytes = bytes;
  duet->is_lasting = is_lasting;
  return write(message, duet->message);
}

static void duet_begin(duet_t *duet, const char *text) {
  static const uint32_t names[] = {10, 11};
  memset(duet, 0, sizeof(*duet));
  bench_begin(&duet->bench);
  bench_operand(&duet->bench, MP_DTYPE_F32, 8, 128);
  bench_result(&duet->bench, MP_DTYPE_F32, 8, 128);
  assert_ok(bench_compile(&duet->bench, text));
  duet->ops = duet->bench.kernel->talk;
  assert_non_null(duet->ops);
  const mp_talk_link_t link = {duet, 2, names, duet_wake, duet_is_far, duet_send};
  assert_ok(duet->ops->create(duet->bench.kernel, &link, &duet->talk));
  for (int d = 0; d < 2; ++d) {
    duet->x[d] = counting(COUNT);
    duet->y[d] = counting(COUNT);
    for (int i = 0; i < COUNT; ++i) duet->x[d][i] += (float)(10000 * d);
  }
}

static void duet_end(duet_t *duet) {
  duet->ops->release(duet->talk);
  for (int d = 0; d < 2; ++d) {
    free(duet->x[d]);
    free(duet->y[d]);
  }
  bench_end(&duet->bench);
}

static void duet_enter(duet_t *duet, uint32_t device) {
  // Kept by the device until it leaves.
  static const void *operands[2][1];
  static void *results[2][1];
  operands[device][0] = duet->x[device];
  results[device][0] = duet->y[device];
  assert_ok(duet->ops->enter(duet->talk, device, operands[device], results[device]));
}

// True: the device has to wait.
static bool duet_waits(duet_t *duet, uint32_t device) {
  mp_talk_stop_t stop = MP_TALK_RUN_IS_OVER;
  do {
    assert_ok(duet->ops->go_on(duet->talk, device, &stop));
  } while (stop == MP_TALK_RUN_YIELDS);
  assert_true(stop != MP_TALK_RUN_WAITS || !duet->ops->may_go_on(duet->talk, device));
  return stop == MP_TALK_RUN_WAITS;
}

static void duet_check_wait(const duet_t *duet, uint32_t device, const char *words) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  duet->ops->describe(duet->talk, device, &text);
  if (strstr(mp_strbuf_text(&text), words) == NULL) fail_msg("%s", mp_strbuf_text(&text));
  mp_strbuf_deinit(&text);
}

// ---- tests ----

static void test_a_device_waits_until_its_peer_comes(void **state) {
  (void)state;
  duet_t duet;
  duet_begin(&duet, TALK_MODULE(OTHER SEND WAIT("%s") WAIT("%r")));
  duet_enter(&duet, 0);
  assert_true(duet_waits(&duet, 0));
  duet_check_wait(&duet, 0, "kernel 'k', grid step (): tpu.enqueue_dma");
  duet_check_wait(&duet, 0, "device 11 has not reached the kernel");
  duet_enter(&duet, 1);
  assert_int_equal(duet.woken & 1, 1);
  assert_true(duet.ops->may_go_on(duet.talk, 0));
  assert_true(duet_waits(&duet, 0));
  duet_check_wait(&duet, 0,
                  "the semaphore of argument 3 of the kernel is 0, and the wait is for 4096");
  duet.woken = 0;
  assert_false(duet_waits(&duet, 1));
  assert_int_equal(duet.woken, 1);
  duet.ops->leave(duet.talk, 1);
  assert_false(duet_waits(&duet, 0));
  duet.ops->leave(duet.talk, 0);
  for (int d = 0; d < 2; ++d) assert_memory_equal(duet.y[d], duet.x[1 - d], COUNT * 4);
  duet_end(&duet);
}

// The semaphore for barriers is there before its device comes.
static void test_a_barrier_counts_early_signals(void **state) {
  (void)state;
  duet_t duet;
  duet_begin(&duet, TALK_MODULE(OTHER BARRIER SIGNAL AWAIT));
  duet_enter(&duet, 1);
  assert_true(duet_waits(&duet, 1));
  duet_check_wait(&duet, 1, "the semaphore for barriers is 0, and the wait is for 1");
  duet_enter(&duet, 0);
  assert_false(duet_waits(&duet, 0));
  assert_int_equal(duet.woken, 2);
  duet.ops->leave(duet.talk, 0);
  assert_false(duet_waits(&duet, 1));
  duet.ops->leave(duet.talk, 1);
  duet_end(&duet);
}

static void test_a_poll_waits_for_a_change(void **state) {
  (void)state;
  duet_t duet;
  duet_begin(&duet, TALK_MODULE(OTHER BARRIER SIGNAL POLL AWAIT));
  duet_enter(&duet, 0);
  assert_true(duet_waits(&duet, 0));
  duet_check_wait(&duet, 0, "tpu.sem_read");
  duet_check_wait(&duet, 0, "it reads the semaphore for barriers again and again, and it stays 0");
  duet.woken = 0;
  duet_enter(&duet, 1);
  assert_false(duet_waits(&duet, 1));
  assert_int_equal(duet.woken, 1);
  assert_true(duet.ops->may_go_on(duet.talk, 0));
  assert_false(duet_waits(&duet, 0));
  for (uint32_t d = 0; d < 2; ++d) duet.ops->leave(duet.talk, d);
  duet_end(&duet);
}

static void test_a_poll_that_counts_yields(void **state) {
  (void)state;
  duet_t duet;
  mp_talk_stop_t stop = MP_TALK_RUN_IS_OVER;
  duet_begin(&duet, TALK_MODULE(OTHER BARRIER COUNTING_POLL("5000") SIGNAL));
  duet_enter(&duet, 0);
  uint32_t num_yields = 0;
  do {
    assert_ok(duet.ops->go_on(duet.talk, 0, &stop));
    num_yields += stop == MP_TALK_RUN_YIELDS;
  } while (stop == MP_TALK_RUN_YIELDS);
  assert_int_equal(stop, MP_TALK_RUN_IS_OVER);
  assert_int_equal(num_yields, 4);
  duet.ops->leave(duet.talk, 0);
  duet_end(&duet);
}

// It counts so far that it is not believed to end.
static void test_a_poll_that_counts_for_ever_waits(void **state) {
  (void)state;
  duet_t duet;
  duet_begin(&duet, TALK_MODULE(OTHER BARRIER COUNTING_POLL("2000000000")));
  duet_enter(&duet, 0);
  assert_true(duet_waits(&duet, 0));
  duet_check_wait(&duet, 0, "it reads the semaphore for barriers again and again");
  duet.ops->leave(duet.talk, 0);
  duet_end(&duet);
}

static void test_a_device_that_has_left_is_not_written(void **state) {
  (void)state;
  duet_t duet;
  mp_talk_stop_t stop = MP_TALK_RUN_IS_OVER;
  duet_begin(&duet, TALK_MODULE(OTHER SEND));
  duet_enter(&duet, 0);
  duet.ops->leave(duet.talk, 0);
  duet_enter(&duet, 1);
  assert_status(duet.ops->go_on(duet.talk, 1, &stop), MP_FAILED_PRECONDITION,
                "device 10 has ended the kernel 'k' before device 11 did this");
  duet.ops->leave(duet.talk, 1);
  duet_end(&duet);
}

// Gives the message of one process to the device of the other one.
static void duet_pass_on(duet_t *from, duet_t *to) {
  assert_non_null(from->message);
  assert_ok(to->ops->deliver(to->talk, to->here, from->message, from->bytes));
  free(from->message);
  from->message = NULL;
}

static void test_devices_of_two_processes(void **state) {
  (void)state;
  duet_t duets[2];
  for (uint32_t d = 0; d < 2; ++d) {
    duet_begin(&duets[d], TALK_MODULE(OTHER BARRIER SIGNAL AWAIT SEND WAIT("%s") WAIT("%r")));
    duets[d].is_apart = true;
    duets[d].here = d;
    duet_enter(&duets[d], d);
    assert_true(duet_waits(&duets[d], d));
    assert_true(duets[d].is_lasting);
  }
  for (int d = 0; d < 2; ++d) duet_pass_on(&duets[1 - d], &duets[d]);
  for (uint32_t d = 0; d < 2; ++d) {
    assert_true(duet_waits(&duets[d], d));
    duet_check_wait(&duets[d], d, "the semaphore of argument 3 of the kernel is 0");
    assert_false(duets[d].is_lasting);
  }
  for (int d = 0; d < 2; ++d) duet_pass_on(&duets[1 - d], &duets[d]);
  for (uint32_t d = 0; d < 2; ++d) {
    assert_false(duet_waits(&duets[d], d));
    duets[d].ops->leave(duets[d].talk, d);
    assert_memory_equal(duets[d].y[d], duets[d].x[1 - d], COUNT * 4);
    duet_end(&duets[d]);
  }
}

static void test_messages_of_another_size(void **state) {
  (void)state;
  duet_t duet;
  char message[1024] = {0};
  duet_begin(&duet, TALK_MODULE(OTHER SEND));
  duet_enter(&duet, 0);
  assert_status(duet.ops->deliver(duet.talk, 0, message, 3), MP_INVALID_ARGUMENT, "3 bytes");
  assert_status(duet.ops->deliver(duet.talk, 0, message, 1000), MP_INVALID_ARGUMENT, "1000 bytes");
  duet.ops->leave(duet.talk, 0);
  duet_end(&duet);
}

static void test_no_such_device(void **state) {
  (void)state;
  duet_t duet;
  mp_talk_stop_t stop = MP_TALK_RUN_IS_OVER;
  duet_begin(&duet, TALK_MODULE(INT("%to", "-1") SEND));
  duet_enter(&duet, 0);
  assert_status(duet.ops->go_on(duet.talk, 0, &stop), MP_OUT_OF_RANGE,
                "device -1: the program runs on 2 devices");
  duet.ops->leave(duet.talk, 0);
  duet_end(&duet);
}

// A kernel that communicates does not run part by part.
static void test_it_cannot_run_alone(void **state) {
  (void)state;
  duet_t duet;
  duet_begin(&duet, TALK_MODULE(OTHER SEND));
  const void *operands[] = {duet.x[0]};
  void *results[] = {duet.y[0]};
  assert_status(bench_run(&duet.bench, operands, results), MP_UNIMPLEMENTED,
                "the kernel 'k' communicates with other devices");
  duet_end(&duet);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_device_waits_until_its_peer_comes),
      cmocka_unit_test(test_a_barrier_counts_early_signals),
      cmocka_unit_test(test_a_poll_waits_for_a_change),
      cmocka_unit_test(test_a_poll_that_counts_yields),
      cmocka_unit_test(test_a_poll_that_counts_for_ever_waits),
      cmocka_unit_test(test_a_device_that_has_left_is_not_written),
      cmocka_unit_test(test_devices_of_two_processes),
      cmocka_unit_test(test_messages_of_another_size),
      cmocka_unit_test(test_no_such_device),
      cmocka_unit_test(test_it_cannot_run_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
