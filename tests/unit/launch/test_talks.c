// Kernels that communicate, in programs on several devices: on workers and on the launching thread.
#include "tests/unit/support/text_runs.h"

#include "sim/base/str.h"

// ---- programs ----

#define OP  "\"stable_mosaic."
#define SEM "memref<!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>"
#define REG "memref<!tpu.semaphore, #tpu.memory_space<semaphore_mem>>"
#define ANY "memref<8x128xf32, #tpu.memory_space<any>>"
#define KERNEL(body)                                                                 \
  "module attributes {stable_mosaic.version = 13 : i64} {\n" OP                      \
  "func.func\"() ({\n"                                                               \
  "^bb0(%x: " ANY ", %y: " ANY ", %s: " SEM ", %r: " SEM                             \
  "):\n"                                                                             \
  "%me = " OP                                                                        \
  "tpu.device_id\"() : () -> i32\n"                                                  \
  "%one = " OP                                                                       \
  "arith.constant\"() {value = 1 : i32} : () -> i32\n"                               \
  "%four = " OP                                                                      \
  "arith.constant\"() {value = 4 : i32} : () -> i32\n"                               \
  "%next = " OP                                                                      \
  "arith.addi\"(%me, %one) : (i32, i32) -> i32\n"                                    \
  "%to = " OP "arith.remsi\"(%next, %four) : (i32, i32) -> i32\n" body OP            \
  "func.return\"() : () -> ()\n}) {function_type = (" ANY ", " ANY ", " SEM ", " SEM \
  ") -> (), sym_name = \"ring\", scratch_operands = 2 : i64} : () -> ()\n}\n"
#define SEND                                                                                 \
  OP "tpu.enqueue_dma\"(%x, %s, %y, %r, %to) {operandSegmentSizes = array<i32: 1, 1, 1, 1, " \
     "1, 0>} : (" ANY ", " SEM ", " ANY ", " SEM ", i32) -> ()\n"
#define WAIT(semaphore)                                         \
  OP "tpu.wait_dma2\"(" semaphore                               \
     ", %x, %y) {operandSegmentSizes = array<i32: 1, 1, 1, 0, " \
     "0>} : (" SEM ", " ANY ", " ANY ") -> ()\n"
#define BARRIER                                                                            \
  "%b = " OP "tpu.sem_barrier\"() : () -> " REG "\n" OP                                    \
  "tpu.sem_signal\"(%b, %one, %to) {operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (" REG \
  ", i32, i32) -> ()\n" OP "tpu.sem_wait\"(%b, %one) : (" REG ", i32) -> ()\n"

static void put_base64(mp_strbuf_t *out, const char *text) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const size_t size = strlen(text);
  for (size_t i = 0; i < size; i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (i + k < size ? (uint8_t)text[i + k] : 0u);
    for (size_t k = 0; k < 4; ++k) {
      mp_strbuf_putc(out, i + k > size ? '=' : digits[group >> (18 - 6 * k) & 63]);
    }
  }
}

// x + replica_id, which the kernel then passes on `rounds` times.
static void put_program(mp_strbuf_t *out, const char *kernel, int rounds) {
  mp_strbuf_puts(
      out,
      "module @ring attributes {mhlo.num_replicas = 4 : i32} {\n"
      "func.func @main(%arg: tensor<8x128xf32>) -> tensor<8x128xf32> {\n"
      "%id = stablehlo.replica_id : tensor<ui32>\n"
      "%f = stablehlo.convert %id : (tensor<ui32>) -> tensor<f32>\n"
      "%all = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<8x128xf32>\n"
      "%first = stablehlo.add %arg, %all : tensor<8x128xf32>\n"
      "%zero = stablehlo.constant dense<0> : tensor<i32>\n"
      "%one = stablehlo.constant dense<1> : tensor<i32>\n");
  mp_strbuf_printf(out, "%%end = stablehlo.constant dense<%d> : tensor<i32>\n", rounds);
  mp_strbuf_puts(
      out,
      "%r:2 = stablehlo.while(%i = %zero, %x = %first) : tensor<i32>, tensor<8x128xf32>\n"
      "cond {\n"
      "%c = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "stablehlo.return %c : tensor<i1>\n"
      "} do {\n"
      "%y = stablehlo.custom_call @tpu_custom_call(%x) {backend_config = "
      "\"{\\22custom_call_config\\22: {\\22body\\22: \\22");
  put_base64(out, kernel);
  mp_strbuf_puts(out,
                 "\\22}}\"} : (tensor<8x128xf32>) -> tensor<8x128xf32>\n"
                 "%n = stablehlo.add %i, %one : tensor<i32>\n"
                 "stablehlo.return %n, %y : tensor<i32>, tensor<8x128xf32>\n"
                 "}\nreturn %r#1 : tensor<8x128xf32>\n}\n}\n");
}

static void begin(mp_client_t *client, const char *kernel, int rounds, text_run_t *run) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  put_program(&text, kernel, rounds);
  assert_ok(mp_strbuf_status(&text));
  assert_ok(
      text_run_begin_with(client, mp_strbuf_text(&text), &(mp_compile_request_t){0}, false, run));
  mp_strbuf_deinit(&text);
}

static void check(const text_run_t *run, int rounds) {
  for (int d = 0; d < 4; ++d) {
    const float *y = (const float *)run->results[d][0];
    const int from = ((d - rounds) % 4 + 4) % 4;
    for (int i = 0; i < 1024; ++i) assert_true(y[i] == (float)(i + from));
  }
}

static void free_results(text_run_t *run) {
  for (int d = 0; d < 4; ++d) {
    for (uint32_t r = 0; r < run->program->num_results; ++r) free(run->results[d][r]);
    free(run->results[d]);
    run->results[d] = NULL;
  }
}

// ---- tests ----

static void test_a_ring(void **state) {
  (void)state;
  static const char *const kernels[] = {KERNEL(SEND WAIT("%s") WAIT("%r")),
                                        KERNEL(BARRIER SEND WAIT("%s") WAIT("%r"))};
  float x[1024];
  for (int i = 0; i < 1024; ++i) x[i] = (float)i;
  mp_client_t *client = make_client_with(4, 1 << 24);
  for (int k = 0; k < 2; ++k) {
    for (int rounds = 0; rounds < 40; rounds += 13) {
      text_run_t run;
      begin(client, kernels[k], rounds, &run);
      for (int launch = 0; launch < 10; ++launch) {
        assert_ok(text_run_launch(&run, (const void *const[]){x}));
        check(&run, rounds);
        free_results(&run);
      }
      text_run_end(&run);
    }
  }
  mp_client_release(client);
}

static void test_a_wait_that_never_ends(void **state) {
  (void)state;
  float x[1024] = {0};
  text_run_t run;
  mp_client_t *client = make_client_with(4, 1 << 24);
  begin(client, KERNEL(SEND WAIT("%r") WAIT("%r")), 2, &run);
  for (int launch = 0; launch < 10; ++launch) {
    assert_status(text_run_launch(&run, (const void *const[]){x}), MP_ABORTED,
                  "the semaphore of argument 3 of the kernel is 0, and the wait is for 4096");
    free_results(&run);
  }
  text_run_end(&run);
  mp_client_release(client);
}

// The other devices are parked when one fails.
static void test_one_device_fails(void **state) {
  (void)state;
  float x[1024] = {0};
  text_run_t run;
  mp_client_t *client = make_client_with(4, 1 << 24);
  begin(client,
        KERNEL("%far = " OP "arith.muli\"(%to, %to) : (i32, i32) -> i32\n" OP
               "tpu.enqueue_dma\"(%x, %s, %y, %r, %far) {operandSegmentSizes = array<i32: 1, "
               "1, 1, 1, 1, 0>} : (" ANY ", " SEM ", " ANY ", " SEM ", i32) -> ()\n" WAIT("%r")
                   WAIT("%r")),
        3, &run);
  for (int launch = 0; launch < 10; ++launch) {
    mp_status_t status = text_run_launch(&run, (const void *const[]){x});
    assert_non_null(status);
    mp_status_release(status);
    free_results(&run);
  }
  text_run_end(&run);
  mp_client_release(client);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_ring),
      cmocka_unit_test(test_a_wait_that_never_ends),
      cmocka_unit_test(test_one_device_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
