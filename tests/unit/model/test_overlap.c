// Collectives overlapped with compute, checked against times computed by hand: their hidden and
// exposed parts on one track or two, next to matmuls, in loops, and with devices that drift apart.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/support/timed.h"

// Round numbers: 1 us per launch and op, 1 GB/s and 1 us per link, 1 TB/s of memory, 1 TFLOP/s.
#define POD                                                                                    \
  "ring:4 hbm:1GiB launch_latency:1us op_latency:1us links.latency:1us links.bandwidth:1GB/s " \
  "memory.bandwidth:1TB/s host_link.latency:2us host_link.bandwidth:1GB/s flops.f32:1T chip:%s"

#define HEAD     "module @m attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} {\n"
#define MEGABYTE "tensor<250x1000xf32>"
#define SQUARE   "tensor<1000x1000xf32>"

// Moves a megabyte on to the next device: 1001 us.
#define SHIFT(to, from)                          \
  to " = \"stablehlo.collective_permute\"(" from \
     ") <{source_target_pairs = "                \
     "dense<[[0,1],[1,2],[2,3],[3,0]]> : tensor<4x2xi64>}> : (" MEGABYTE ") -> " MEGABYTE "\n"
// A product of 500 MFLOP: 500 us and that of a kernel.
#define PRODUCT(to, a, b)                                                               \
  to " = stablehlo.dot_general " a ", " b ", contracting_dims = [1] x [0] : (" MEGABYTE \
     ", " SQUARE ") -> " MEGABYTE "\n"
#define ADD(to, a, b) to " = stablehlo.add " a ", " b " : " MEGABYTE "\n"

// What is needed of a message: two megabytes at the end, 3 us.
static const char k_beside[] =
    HEAD "func.func @main(%x: " MEGABYTE ", %w: " SQUARE ") -> (" MEGABYTE ", " MEGABYTE
         ") {\n" SHIFT("%s", "%x") PRODUCT("%a", "%x", "%w") PRODUCT("%b", "%a", "%w")
             PRODUCT("%c", "%b", "%w") ADD("%r", "%s", "%s") "return %r, %c : " MEGABYTE
                                                             ", " MEGABYTE "\n}\n}\n";

static const char k_short[] =
    HEAD "func.func @main(%x: " MEGABYTE ", %w: " SQUARE ") -> (" MEGABYTE ", " MEGABYTE
         ") {\n" SHIFT("%s", "%x") PRODUCT("%a", "%x", "%w")
             ADD("%r", "%s", "%s") "return %r, %a : " MEGABYTE ", " MEGABYTE "\n}\n}\n";

static const char k_two[] =
    HEAD "func.func @main(%x: " MEGABYTE ", %w: " SQUARE ") -> (" MEGABYTE ", " MEGABYTE
         ", " MEGABYTE ") {\n" SHIFT("%s", "%x") SHIFT("%t", "%x") PRODUCT("%a", "%x", "%w")
             PRODUCT("%b", "%a", "%w") PRODUCT("%c", "%b", "%w") ADD("%r", "%s", "%s")
                 ADD("%q", "%t", "%t") "return %r, %q, %c : " MEGABYTE ", " MEGABYTE ", " MEGABYTE
                                       "\n}\n}\n";

// A quarter of the matrix from each device: a ring of four both ways, 3/4 of 4 MB, half of it each
// way, and three steps.
static const char k_gather[] =
    HEAD "func.func @main(%x: " MEGABYTE ", %w: " MEGABYTE ") -> " MEGABYTE
         " {\n"
         "%g = \"stablehlo.all_gather\"(%w) <{all_gather_dim = 0 : i64, replica_groups = "
         "dense<[[0,1,2,3]]> : tensor<1x4xi64>}> : (" MEGABYTE ") -> " SQUARE
         "\n" PRODUCT("%a", "%x", "%g") "return %a : " MEGABYTE "\n}\n}\n";

#define SUM_BODY                                  \
  "({\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n" \
  "  %s2 = stablehlo.add %p, %q : tensor<f32>\n"  \
  "  stablehlo.return %s2 : tensor<f32>\n})"

// The same matrix for two products, behind something else.
#define SHARED(FIRST)                                                                             \
  HEAD "func.func @main(%x: " MEGABYTE ", %w: " MEGABYTE ", %v: " SQUARE ") -> (" MEGABYTE        \
       ", " MEGABYTE                                                                              \
       ") {\n%g = \"stablehlo.all_gather\"(%w) <{all_gather_dim = 0 : i64, "                      \
       "replica_groups = dense<[[0,1,2,3]]> : tensor<1x4xi64>}> : (" MEGABYTE ") -> " SQUARE      \
       "\n" FIRST PRODUCT("%a", "%p", "%g") PRODUCT("%b", "%a", "%g") "return %b, %p : " MEGABYTE \
                                                                      ", " MEGABYTE "\n}\n}\n"
static const char k_shared[] = SHARED(PRODUCT("%p", "%x", "%v"));
static const char k_after_sum[] = SHARED(ADD("%p", "%x", "%x"));

// A sum over all devices and a shift, neither of which waits for the other one.
static const char k_both[] = HEAD
    "func.func @main(%x: " MEGABYTE ", %w: " SQUARE ") -> (" MEGABYTE ", " MEGABYTE ") {\n"
    SHIFT("%s", "%x") PRODUCT("%a", "%x", "%w")
    "%t = \"stablehlo.all_reduce\"(%a) <{replica_groups = dense<[[0,1,2,3]]> : tensor<1x4xi64>}> "
    SUM_BODY " : (" MEGABYTE ") -> " MEGABYTE "\n" PRODUCT("%b", "%t", "%w") ADD("%r", "%s", "%s")
    "return %r, %b : " MEGABYTE ", " MEGABYTE "\n}\n}\n";

// What a product has made is added up over all devices, a quarter on each.
static const char k_scatter[] =
    HEAD "func.func @main(%x: " MEGABYTE ", %w: " SQUARE
         ") -> tensor<250x250xf32> {\n" PRODUCT("%a", "%x", "%w")
             "%s = \"stablehlo.reduce_scatter\"(%a) <{scatter_dimension = 1 : i64, replica_groups = "
             "dense<[[0,1,2,3]]> : tensor<1x4xi64>}> " SUM_BODY " : (" MEGABYTE
             ") -> tensor<250x250xf32>\nreturn %s : tensor<250x250xf32>\n}\n}\n";

// What products could be, as the partitioner would say.
static uint8_t rings_of_products = MP_OP_RING_RHS | MP_OP_RING_SUM;

// The matrix is gathered, and what the product has made is added up.
#define SCATTER(to, from)                                               \
  to " = \"stablehlo.reduce_scatter\"(" from                            \
     ") <{scatter_dimension = 1 : i64, replica_groups = "               \
     "dense<[[0,1,2,3]]> : tensor<1x4xi64>}> " SUM_BODY " : (" MEGABYTE \
     ") -> tensor<250x250xf32>\n"
static const char k_both_ends[] = HEAD
    "func.func @main(%x: " MEGABYTE ", %w: " MEGABYTE
    ") -> tensor<250x250xf32> {\n"
    "%g = \"stablehlo.all_gather\"(%w) <{all_gather_dim = 0 : i64, replica_groups = "
    "dense<[[0,1,2,3]]> : tensor<1x4xi64>}> : (" MEGABYTE ") -> " SQUARE
    "\n" PRODUCT("%a", "%x", "%g") SCATTER("%s", "%a") "return %s : tensor<250x250xf32>\n}\n}\n";

// Two products are added up, and then over all devices.
static const char k_terms[] =
    HEAD "func.func @main(%x: " MEGABYTE ", %w: " SQUARE ", %v: " SQUARE
         ") -> tensor<250x250xf32> {\n" PRODUCT("%a", "%x", "%w") PRODUCT("%b", "%x", "%v")
             ADD("%c", "%a", "%b") SCATTER("%s", "%c") "return %s : tensor<250x250xf32>\n}\n}\n";

// One matrix is gathered for a product, and another one is returned.
#define GATHER(to, from)                               \
  to " = \"stablehlo.all_gather\"(" from               \
     ") <{all_gather_dim = 0 : i64, replica_groups = " \
     "dense<[[0,1,2,3]]> : tensor<1x4xi64>}> : (" MEGABYTE ") -> " SQUARE "\n"
static const char k_two_gathers[] =
    HEAD "func.func @main(%x: " MEGABYTE ", %w: " MEGABYTE ") -> (" MEGABYTE ", " SQUARE
         ") {\n" GATHER("%g", "%w") GATHER("%h", "%x")
             PRODUCT("%a", "%x", "%g") "return %a, %h : " MEGABYTE ", " SQUARE "\n}\n}\n";

// As if the partitioner had made the collectives: rings are made of those alone.
static mp_program_t *compile_with_rings(const char *text) {
  mp_program_t *program = compile_text(text);
  for (mp_op_t *op = program->partitioned->main->body->first; op != NULL; op = op->next) {
    op->rings = op->code == MP_OP_DOT_GENERAL ? rings_of_products : 0;
    op->by_permutes = true;
  }
  return program;
}

static void write_figures(char *path, const char *figures) {
  const int file = mkstemps(path, 5);
  assert_true(file >= 0);
  assert_int_equal(write(file, figures, strlen(figures)), strlen(figures));
  close(file);
}

static timed_t time_text(const char *figures, const char *text) {
  char path[] = "/tmp/minipod_overlap_XXXXXX.yaml", pod[512];
  write_figures(path, figures);
  (void)snprintf(pod, sizeof(pod), POD, path);
  const timed_t t = time_program_on(pod, compile_with_rings(text), 4);
  unlink(path);
  return t;
}

// What a launch took, in microseconds, of all devices together.
typedef struct {
  double now, work, waiting, exposed, hidden;
} sums_t;

static void take_sums(const mp_model_program_books_t *program, void *context) {
  const mp_replay_device_books_t total = mp_books_total(&program->books);
  sums_t *sums = context;
  sums->work = mp_moment_seconds(total.work) * 1e6;
  sums->waiting = mp_moment_seconds(total.waiting) * 1e6;
  sums->exposed = mp_moment_seconds(total.traffic) * 1e6;
  sums->hidden = mp_moment_seconds(total.hidden) * 1e6;
}

static sums_t sums_of(timed_t *t) {
  mp_model_books_t books;
  sums_t sums = {0};
  mp_model_read(t->model, &books, take_sums, &sums);
  assert_int_equal(books.lost, 0);
  sums.now = mp_moment_seconds(books.now) * 1e6;
  return sums;
}

static void expect_near(double found, double expected) {
  if (fabs(found - expected) > 1e-6 * fmax(expected, 1))
    fail_msg("%f, expected %f", found, expected);
}

// One launch; sums over the four devices.
static void expect_times(const char *figures, const char *text, double now, double exposed,
                         double hidden) {
  timed_t t = time_text(figures, text);
  (void)time_launch(&t, 4, NULL);
  const sums_t sums = sums_of(&t);
  expect_near(sums.now, now);
  expect_near(sums.exposed, exposed);
  expect_near(sums.hidden, hidden);
  expect_near(sums.waiting, 0);
  expect_near(sums.work + sums.exposed, 4 * (now - 1));
  time_end(&t);
}

static void a_message_is_hidden_by_products(void **state) {
  (void)state;
  expect_times("compiler: plain\n", k_beside, 1 + 1001 + 3 * 501 + 3, 4 * 1001, 0);
  expect_times("compiler: gpu\n", k_beside, 1 + 3 * 501 + 3, 0, 4 * 1001);
}

static void what_work_does_not_cover_is_exposed(void **state) {
  (void)state;
  expect_times("compiler: gpu\n", k_short, 1 + 1001 + 3, 4 * 500, 4 * 501);
}

// While the message is in flight, a quarter of the multiprocessors is not available to matmuls: the
// time that matmuls lose counts as exposed.
static void a_collective_takes_units_from_work(void **state) {
  (void)state;
  static const char figures[] = "compiler: gpu\noverlap.units: 1\nmatmul.units: 4\n";
  expect_times(figures, k_beside, 1 + 3 * 501 + 1001 / 4.0 + 3, 1001, 3 * 1001);
  // Products that are done sooner have lost a quarter of the time that they took.
  const double work = 501 / 0.75;
  expect_times(figures, k_short, 1 + 1001 + 3, 4 * (1001 - 0.75 * work), 3 * work);
  // Products whose last blocks wait for the others lose more.
  expect_times("compiler: gpu\noverlap.units: 1\noverlap.lost: 0.5\nmatmul.units: 4\n", k_beside,
               1 + 3 * 501 + 1001 / 2.0 + 3, 2 * 1001, 2 * 1001);
}

static void tracks_are_used_one_by_one(void **state) {
  (void)state;
  // The second begins when the first is over. Products and the first sum are beside both.
  expect_times("compiler: gpu\n", k_two, 1 + 2 * 1001 + 3, 4 * (2002 - 3 * 501 - 3),
               4 * (3 * 501 + 3));
  // Two at a time are started as late as one by one would be hidden, behind the first product. They
  // share the links.
  const double exposed = 501 + 2001 - 3 * 501;
  expect_times("compiler: gpu\noverlap.tracks: 2\n", k_two, 1 + 501 + 2001 + 2 * 3, 4 * exposed,
               4 * (2 * 2001 - exposed));
}

static void a_gather_overlaps_its_matmul(void **state) {
  (void)state;
  const double gather = 1500 + 3;
  expect_times("compiler: plain\n", k_gather, 1 + gather + 501, 4 * gather, 0);
  expect_times("compiler: plain\noverlap.all_gather: 1\n", k_gather, 1 + gather + 501, 4 * gather,
               0);
  expect_times("compiler: plain\noverlap.all_gather: 2\n", k_gather, 1 + gather, 4 * (gather - 501),
               4 * 501);
}

// The gather of a ring is part of its product, and not combined with another gather: the ring waits
// for the links that the other one has.
static void a_ring_is_not_combined(void **state) {
  (void)state;
  timed_t t =
      time_text("compiler: plain\noverlap.all_gather: 2\noverlap.combine: 1GB\n", k_two_gathers);
  (void)time_launch(&t, 4, NULL);
  const sums_t sums = sums_of(&t);
  expect_near(sums.now, 1 + 2 * (1500 + 3));
  expect_near(sums.work, 4 * 501);
  time_end(&t);
}

// What two products read is there as a whole: gathered beside what comes before, if at all.
static void a_gather_of_two_products_is_no_ring(void **state) {
  (void)state;
  const double gather = 1500 + 3;
  expect_times("compiler: plain\noverlap.all_gather: 2\n", k_shared, 1 + gather + 2 * 501,
               4 * (gather - 501), 4 * 501);
  expect_times("compiler: plain\noverlap.all_gather: 2\noverlap.no_ring: 0\n", k_shared,
               1 + gather + 3 * 501, 4 * gather, 0);
}

// The product takes half as long as one message of the ring.
static void a_ring_has_to_be_worth_it(void **state) {
  (void)state;
  const double gather = 1500 + 3;
  expect_times("compiler: plain\noverlap.all_gather: 2\noverlap.ring_work: 0.49\n", k_gather,
               1 + gather, 4 * (gather - 501), 4 * 501);
  expect_times("compiler: plain\noverlap.all_gather: 2\noverlap.ring_work: 0.51\n", k_gather,
               1 + gather + 501, 4 * gather, 0);
}

// Of a product that is in terms the collective that takes longer is its ring; the other one is not,
// even where that one is too much for the product.
static void one_of_two_collectives_is_a_ring(void **state) {
  (void)state;
  const double gather = 1500 + 3, scatter = 375 + 3, product = 501;
  rings_of_products |= MP_OP_RING_IN_TERMS;
  expect_times("compiler: tpu\n", k_both_ends, 1 + gather + scatter,
               4 * (gather - product + scatter), 4 * product);
  expect_times("compiler: tpu\noverlap.no_ring: 0\noverlap.ring_work: 0.51\n", k_both_ends,
               1 + gather + product + scatter, 4 * (gather + scatter), 0);
  rings_of_products = MP_OP_RING_SUM | MP_OP_RING_IN_TERMS;
  expect_times("compiler: tpu\noverlap.no_ring: 0\n", k_both_ends, 1 + gather + product, 4 * gather,
               4 * scatter);
  rings_of_products = MP_OP_RING_RHS | MP_OP_RING_SUM;
}

// Each of two products whose sum is scattered has a ring of its own.
static void terms_are_scattered_one_by_one(void **state) {
  (void)state;
  const double scatter = 375 + 3;
  rings_of_products |= MP_OP_RING_IN_TERMS;
  expect_times("compiler: tpu\n", k_terms, 1 + 2 * 501, 0, 4 * 2 * scatter);
  expect_times("compiler: tpu\noverlap.ring_members: 2\n", k_terms, 1 + 2 * 501 + scatter,
               4 * scatter, 0);
  rings_of_products = MP_OP_RING_RHS | MP_OP_RING_SUM;
}

static void gathers_may_need_a_product_that_carries_them(void **state) {
  (void)state;
  const double gather = 1500 + 3;
  const char *const carried = "compiler: plain\noverlap.all_gather: 2\noverlap.carried: 1\n";
  expect_times("compiler: plain\noverlap.all_gather: 2\n", k_after_sum, 1 + gather + 2 * 501,
               4 * (gather - 3), 4 * 3);
  expect_times(carried, k_after_sum, 1 + gather + 3 + 2 * 501, 4 * gather, 0);
  expect_times(carried, k_shared, 1 + gather + 2 * 501, 4 * (gather - 501), 4 * 501);
}

static void large_groups_may_sum_whole_arrays(void **state) {
  (void)state;
  const double scatter = 3 + 375;
  const char *const parts = "compiler: tpu\noverlap.ring_members: 2\n";
  const char *const whole = "compiler: tpu\noverlap.ring_members: 2\noverlap.whole_sums: 1\n";
  timed_t t = time_text("compiler: tpu\n", k_scatter);
  (void)time_launch(&t, 4, NULL);
  const double ring = sums_of(&t).now, product = 1 + 501;
  time_end(&t);
  expect_near(ring, product);  // beside the product
  expect_times(parts, k_scatter, product + scatter, 4 * scatter, 0);
  expect_times(whole, k_scatter, product + 2 * scatter, 4 * 2 * scatter, 0);
  // A gather: all have put in their part, and add up 4 MB.
  const double gather = 1500 + 3;
  expect_times("compiler: tpu\noverlap.ring_members: 2\noverlap.whole_gathers: 1\n", k_gather,
               1 + 2 * gather + 501, 4 * 2 * gather, 0);
}

// What goes on and what devices meet in share the links, half for each, but for the latencies: the
// shift has sent 2 KB when the sum begins to, 3 more between its two stages of 375 KB, and 755 when
// it ends.
static void meetings_share_the_links(void **state) {
  (void)state;
  timed_t t = time_text("compiler: plain\noverlap.permute: 1\n", k_both);
  (void)time_launch(&t, 4, NULL);
  const sums_t sums = sums_of(&t);
  const double all_reduce = 2 * (3 + 2 * 375);
  expect_near(sums.work, 4 * (2 * 501 + 3));
  expect_near(sums.now, 1 + 501 + all_reduce + 501 + 3);
  expect_near(sums.exposed, 4 * all_reduce);
  expect_near(sums.hidden, 4 * (all_reduce + 1000 - 755));
  time_end(&t);
}

// A device that comes late is waited for where the result is needed, and not before.
static void a_late_device_is_waited_for_late(void **state) {
  (void)state;
  timed_t t = time_text("compiler: gpu\n", k_beside);
  const mp_stamp_t put = mp_model_put(t.model, 3, 398000);  // 400 us
  const mp_stamp_t inputs[4] = {0, 0, 0, put};
  (void)time_launch(&t, 4, inputs);
  mp_model_books_t books;
  mp_model_read(t.model, &books, NULL, NULL);
  expect_near(mp_moment_seconds(books.devices[1]) * 1e6, 1 + 3 * 501 + 3);
  expect_near(mp_moment_seconds(books.devices[3]) * 1e6, 400 + 3 * 501 + 3);
  time_end(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_message_is_hidden_by_products),
      cmocka_unit_test(what_work_does_not_cover_is_exposed),
      cmocka_unit_test(a_collective_takes_units_from_work),
      cmocka_unit_test(tracks_are_used_one_by_one),
      cmocka_unit_test(a_gather_overlaps_its_matmul),
      cmocka_unit_test(a_ring_is_not_combined),
      cmocka_unit_test(a_gather_of_two_products_is_no_ring),
      cmocka_unit_test(a_ring_has_to_be_worth_it),
      cmocka_unit_test(one_of_two_collectives_is_a_ring),
      cmocka_unit_test(terms_are_scattered_one_by_one),
      cmocka_unit_test(gathers_may_need_a_product_that_carries_them),
      cmocka_unit_test(large_groups_may_sum_whole_arrays),
      cmocka_unit_test(meetings_share_the_links),
      cmocka_unit_test(a_late_device_is_waited_for_late),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
