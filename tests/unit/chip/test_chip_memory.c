// What programs need of a chip's memory, by hand: lives, shared places, loops, branches, donation.
#include "sim/chip/chip_compile.h"
#include "sim/chip/chip_program.h"
#include "sim/plan/compile.h"
#include "tests/unit/support/op_samples.h"

enum { KIB = 1024, MIB = 1024 * 1024 };

typedef struct {
  mp_arena_t *arena;
  mp_program_t *program;
  const mp_chip_memory_t *memory;
} planned_t;

static mp_chip_t chip_of(mp_chip_compiler_t compiler) {
  mp_chip_t chip = {.vector_flops = 1e12, .memory_bandwidth = 1e12, .op_latency = 1e-6};
  for (int i = 0; i < MP_FLOP_KIND_COUNT; ++i) chip.flops[i] = 1e14;
  for (int i = 0; i < MP_WORK_CLASS_COUNT; ++i) chip.efficiency[i] = 1;
  chip.figures = mp_chip_figures_none();
  chip.figures.compiler = compiler;
  return chip;
}

static planned_t plan_for(const mp_chip_t *chip, const char *text, uint32_t num_replicas) {
  planned_t p = {0};
  mp_module_t *module = NULL;
  const mp_chip_program_t *chip_program = NULL;
  const mp_compile_request_t request = {
      .num_replicas = num_replicas, .num_partitions = 1, .keep_partitioned = true};
  assert_ok(mp_read_text(text, strlen(text), &module));
  assert_ok(mp_arena_create(&p.arena));
  assert_ok(mp_compile_module(module, &request, &p.program));
  assert_ok(mp_chip_program_create(chip, p.program, NULL, p.arena, &chip_program));
  p.memory = &chip_program->memory;
  return p;
}

static planned_t plan_on(const mp_chip_t *chip, const char *text) {
  return plan_for(chip, text, 2);
}

static void plan_end(planned_t *p) {
  mp_program_release(p->program);
  mp_arena_release(p->arena);
}

static void assert_temporaries(const char *text, uint64_t expected) {
  const mp_chip_t chip = chip_of(MP_CHIP_COMPILER_PLAIN);
  planned_t p = plan_on(&chip, text);
  assert_int_equal(p.memory->device.temporaries, expected);
  plan_end(&p);
}

// A matmul of 512 x 512 in f32, of 1 MiB.
#define DOT(result, a, b)                          \
  "  " result " = stablehlo.dot_general " a ", " b \
  ", contracting_dims = [1] x [0] :\n"             \
  "       (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>\n"
#define MAIN(arguments, body) "func.func @main(" arguments ") -> tensor<512x512xf32> {\n" body "}\n"
#define M                     "tensor<512x512xf32>"

// A matmul of a chain has its operand and its result in memory. The last one is a result of main,
// whose memory the first one has before.
static void chains_have_two_places(void **state) {
  (void)state;
  assert_temporaries(MAIN("%x: " M, DOT("%a", "%x", "%x") "  return %a : " M "\n"), 0);
  assert_temporaries(
      MAIN("%x: " M, DOT("%a", "%x", "%x") DOT("%b", "%a", "%x") "  return %b : " M "\n"), 1 * MIB);
  assert_temporaries(
      MAIN("%x: " M, DOT("%a", "%x", "%x") DOT("%b", "%a", "%x") DOT("%c", "%b", "%x")
                         DOT("%d", "%c", "%x") "  return %d : " M "\n"),
      2 * MIB);
}

// What a kernel of the user's has inside is in VMEM; a result may lie in an operand's.
#define KERNEL(attributes)                                                                      \
  MAIN("%x: " M, DOT("%a", "%x", "%x")                                                        \
       "  %b = stablehlo.composite \"minipod.kernel\" %a {composite_attributes = {" attributes \
       "}, decomposition = @body} : (" M ") -> " M "\n" DOT("%c", "%b", "%x")                 \
       "  return %c : " M "\n") \
  "func.func private @body(%x: " M ") -> " M " {\n" DOT("%a", "%x", "%x") DOT("%b", "%a", "%x") \
      DOT("%c", "%b", "%a") "  return %c : " M "\n}\n"
#define ALIAS                                                                             \
  "output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], " \
  "operand_index = 0, operand_tuple_indices = []>]"

static void kernels_have_scratch_memory(void **state) {
  (void)state;
  assert_temporaries(KERNEL(""), 1 * MIB);
  assert_temporaries(KERNEL(ALIAS), 1 * MIB);
}

static void arrays_without_elements_need_nothing(void **state) {
  (void)state;
  assert_temporaries(
      "func.func @main() -> (tensor<0xi32>, tensor<3x0xf32>) {\n"
      "  %a = stablehlo.iota dim = 0 : tensor<0xi32>\n"
      "  %b = stablehlo.iota dim = 1 : tensor<3x0xf32>\n"
      "  return %a, %b : tensor<0xi32>, tensor<3x0xf32>\n}\n",
      0);
}

// What is read late lives long.
static void lives_end_with_the_last_reader(void **state) {
  (void)state;
  assert_temporaries(
      MAIN("%x: " M, DOT("%a", "%x", "%x") DOT("%b", "%a", "%x") DOT("%c", "%b", "%x")
                         DOT("%d", "%c", "%a") "  return %d : " M "\n"),
      2 * MIB);
}

// Values inside of a fusion have no place.
static void fusions_hide_values(void **state) {
  (void)state;
  assert_temporaries(MAIN("%x: " M, DOT("%a", "%x", "%x") "  %b = stablehlo.add %a, %x : " M "\n"
                                                          "  %c = stablehlo.tanh %b : " M "\n"
                                                          "  return %c : " M "\n"),
                     0);
}

static const char k_loop[] =
    "func.func @main(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {\n"
    "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %n = stablehlo.constant dense<5> : tensor<i32>\n"
    "  %start = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] :\n"
    "       (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>\n"
    "  %r:2 = stablehlo.while(%i = %zero, %s = %start) : tensor<i32>, tensor<512x512xf32>\n"
    "   cond {\n"
    "    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "    stablehlo.return %c : tensor<i1>\n"
    "  } do {\n"
    "    %j = stablehlo.add %i, %one : tensor<i32>\n"
    "    %t = stablehlo.%s %s, %s%s\n"
    "    stablehlo.return %j, %t : tensor<i32>, tensor<512x512xf32>\n"
    "  }\n"
    "  %d = stablehlo.dot_general %r#1, %x, contracting_dims = [1] x [0] :\n"
    "       (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>\n"
    "  return %d : tensor<512x512xf32>\n"
    "}\n";

// A copy of the loop with this op in its body.
static void assert_loop(const char *op, const char *rest, uint64_t expected) {
  char text[4 * KIB], *out = text;
  for (const char *at = k_loop; *at != '\0';) {
    if (strncmp(at, "stablehlo.%s %s, %s%s", 21) == 0) {
      out += sprintf(out, "stablehlo.%s %%s, %%s%s", op, rest);
      at += 21;
    } else {
      *out++ = *at++;
    }
  }
  *out = '\0';
  assert_temporaries(text, expected);
}

// Initial value, iterations and result are one place; an iteration that makes its value by a matmul
// has another one, in the memory of main's result. The counter and the condition are places, too:
// one of them in that memory if there is room.
static void loops_carry_in_place(void **state) {
  (void)state;
  const uint64_t scalar = 256;
  assert_loop("multiply", " : tensor<512x512xf32>", 1 * MIB + scalar);
  assert_loop("dot_general",
              ", contracting_dims = [1] x [0] : (tensor<512x512xf32>, tensor<512x512xf32>) -> "
              "tensor<512x512xf32>",
              1 * MIB + scalar);
}

// An array that is updated keeps its place; one that is still read does not.
static void updates_are_in_place(void **state) {
  (void)state;
  static const char head[] =
      "func.func @main(%x: tensor<512x512xf32>, %u: tensor<1x512xf32>, %i: tensor<i32>) -> "
      "tensor<512x512xf32> {\n" DOT("%a", "%x", "%x")
      "  %b = stablehlo.dynamic_update_slice %a, %u, %i, %i : (tensor<512x512xf32>, "
      "tensor<1x512xf32>, tensor<i32>, tensor<i32>) -> tensor<512x512xf32>\n";
  char text[4 * KIB];
  (void)snprintf(text, sizeof(text), "%s%s", head,
                 DOT("%c", "%b", "%x") "  return %c : " M "\n}\n");
  assert_temporaries(text, 1 * MIB);
  (void)snprintf(text, sizeof(text), "%s%s", head,
                 DOT("%c", "%b", "%a") "  return %c : " M "\n}\n");
  assert_temporaries(text, 2 * MIB);
}

// Regions of a branch come one or the other: the larger one counts, beside what both may read.
static void branches_count_the_larger_region(void **state) {
  (void)state;
  assert_temporaries(
      "func.func @main(%x: tensor<512x512xf32>, %w: tensor<i32>) -> tensor<512x512xf32> {\n"
      "  %r = \"stablehlo.case\"(%w) ({\n" DOT("%a", "%x", "%x") DOT("%b", "%a", "%x")
      "    stablehlo.return %b : tensor<512x512xf32>\n"
      "  }, {\n" DOT("%c", "%x", "%x") DOT("%d", "%c", "%x") DOT("%e", "%d", "%c")
      "    stablehlo.return %e : tensor<512x512xf32>\n"
      "  }) : (tensor<i32>) -> tensor<512x512xf32>\n" DOT("%z", "%r", "%x")
      "  return %z : tensor<512x512xf32>\n"
      "}\n",
      2 * MIB);
}

// A result that is to lie in a donated argument waits elsewhere while that is read.
static void donated_arguments_are_taken_over(void **state) {
  (void)state;
#define DONATED "%x: tensor<512x512xf32> {tf.aliasing_output = 0 : i32}"
  assert_temporaries(MAIN(DONATED, "  %a = stablehlo.add %x, %x : " M "\n  return %a : " M "\n"),
                     0);
  assert_temporaries(MAIN(DONATED, DOT("%a", "%x", "%x") "  return %a : " M "\n"), 1 * MIB);
  const mp_chip_t chip = chip_of(MP_CHIP_COMPILER_PLAIN);
  planned_t p =
      plan_on(&chip, MAIN(DONATED, "  %a = stablehlo.add %x, %x : " M "\n  return %a : " M "\n"));
  assert_int_equal(p.memory->device.arguments, 1 * MIB);
  assert_int_equal(p.memory->device.results, 1 * MIB);
  assert_int_equal(p.memory->device.aliased, 1 * MIB);
  assert_int_equal(mp_chip_space_total(&p.memory->device), 1 * MIB);
  plan_end(&p);
}

// A kernel that sums up what it writes reads a donated argument element by element.
static void sums_with_an_update_are_in_place(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(" DONATED ") -> (" M
      ", tensor<f32>) {\n"
      "  %a = stablehlo.add %x, %x : " M
      "\n"
      "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %s = \"stablehlo.reduce\"(%a, %z) <{dimensions = array<i64: 0, 1>}> ({\n"
      "    ^bb0(%p: tensor<f32>, %q: tensor<f32>):\n"
      "    %t = stablehlo.add %p, %q : tensor<f32>\n"
      "    stablehlo.return %t : tensor<f32>\n"
      "  }) : (" M
      ", tensor<f32>) -> tensor<f32>\n"
      "  return %a, %s : " M ", tensor<f32>\n}\n";
  static const mp_chip_compiler_t compilers[] = {MP_CHIP_COMPILER_TPU, MP_CHIP_COMPILER_GPU};
  for (size_t i = 0; i < 2; ++i) {
    const mp_chip_t chip = chip_of(compilers[i]);
    planned_t p = plan_on(&chip, text);
    assert_int_equal(p.memory->device.temporaries, 0);
    plan_end(&p);
  }
}

// An array is updated in its place by a kernel that cuts what it writes out of something else.
static void updates_of_parts_are_in_place(void **state) {
  (void)state;
  const mp_chip_t chip = chip_of(MP_CHIP_COMPILER_GPU);
  planned_t p = plan_on(&chip, "func.func @main(%x: " M " {tf.aliasing_output = 0 : i32}, %y: " M
                               ", %i: tensor<i32>) -> " M " {\n  %a = stablehlo.add %y, %y : " M
                               "\n"
                               "  %b = stablehlo.slice %a [0:1, 0:512] : (" M
                               ") -> tensor<1x512xf32>\n"
                               "  %c = stablehlo.dynamic_update_slice %x, %b, %i, %i : (" M
                               ", tensor<1x512xf32>, tensor<i32>, tensor<i32>) -> " M
                               "\n  return %c : " M "\n}\n");
  assert_int_equal(p.memory->device.temporaries, 0);
  plan_end(&p);
}

// Both sides of a gather are there while it runs; a sum lies where its operand was.
static void collectives_have_both_buffers(void **state) {
  (void)state;
  assert_temporaries(
      MAIN("%x: tensor<256x512xf32>, %y: " M,
           "  %a = stablehlo.tanh %x : tensor<256x512xf32>\n"
           "  %g = \"stablehlo.all_gather\"(%a) {all_gather_dim = 0 : i64, replica_groups = "
           "dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<256x512xf32>) -> " M
           "\n" DOT("%b", "%g", "%y") "  return %b : " M "\n"),
      1 * MIB);
  assert_temporaries(
      MAIN("%x: " M,
           DOT("%a", "%x", "%x") "  %s = \"stablehlo.all_reduce\"(%a) ({\n"
                                 "    ^bb0(%p: tensor<f32>, %q: tensor<f32>):\n"
                                 "    %t = stablehlo.add %p, %q : tensor<f32>\n"
                                 "    stablehlo.return %t : tensor<f32>\n"
                                 "  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (" M
                                 ") -> " M "\n" DOT("%b", "%s", "%x") "  return %b : " M "\n"),
      1 * MIB);
}

static void assert_on_tpu(const char *text, double scratch, uint64_t expected) {
  mp_chip_t chip = chip_of(MP_CHIP_COMPILER_TPU);
  chip.figures.memory_scratch = scratch;
  planned_t p = plan_on(&chip, text);
  assert_int_equal(p.memory->device.temporaries, expected);
  plan_end(&p);
}

#define GATHER                                                                       \
  "  %g = \"stablehlo.all_gather\"(%x) {all_gather_dim = 0 : i64, replica_groups = " \
  "dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<256x512xf32>) -> " M "\n  return %g : " M "\n"

// What devices gathered is copied to where main returns it, out of the chip's memory or of scratch
// memory. A donated argument is read in a copy, then.
static void tpus_copy_what_devices_gathered(void **state) {
  (void)state;
  assert_temporaries(MAIN("%x: tensor<256x512xf32>", GATHER), 0);
  assert_on_tpu(MAIN("%x: tensor<256x512xf32>", GATHER), 0, 1 * MIB);
  assert_on_tpu(MAIN("%x: tensor<256x512xf32>", GATHER), 1 * MIB, 0);
  static const char donated[] = MAIN("%p: " M " {tf.aliasing_output = 0 : i32}",
                                     "  %a = stablehlo.slice %p [0:256, 0:512] : (" M
                                     ") -> tensor<256x512xf32>\n"
                                     "  %x = stablehlo.tanh %a : tensor<256x512xf32>\n" GATHER);
  assert_on_tpu(donated, 0, 1 * MIB + MIB / 2);
}

// On TPUs a kernel does not find its operand where main's result is to be.
static void tpus_keep_results_for_main(void **state) {
  (void)state;
  static const char text[] =
      MAIN("%x: " M ", %y: " M,
           DOT("%a", "%x", "%x") DOT("%b", "%x", "%y") "  %c = stablehlo.subtract %a, %b : " M
                                                       "\n  return %c : " M "\n");
  assert_temporaries(text, 0);
  assert_on_tpu(text, 0, 1 * MIB);
}

// The op of a kind that is there once.
static const mp_op_t *op_of(const mp_program_t *program, mp_opcode_t code) {
  const mp_op_t *op = program->partitioned->main->body->first;
  while (op->code != code) op = op->next;
  return op;
}

static void assert_with_ring(const char *text, mp_opcode_t matmul, mp_opcode_t collective,
                             bool adds, bool is_last, uint64_t expected) {
  const mp_chip_t chip = chip_of(MP_CHIP_COMPILER_TPU);
  planned_t p = plan_for(&chip, text, 16);
  const mp_memory_ring_t ring = {op_of(p.program, matmul), op_of(p.program, collective), adds,
                                 is_last};
  const mp_memory_extras_t extras = {.num_rings = 1, .rings = &ring};
  mp_chip_fusions_t fusions;
  mp_chip_memory_t memory;
  assert_ok(mp_chip_make_fusions(p.program->partitioned, &chip.figures, p.arena, &fusions));
  assert_ok(mp_chip_memory_plan(&chip.figures, &fusions, p.program, &extras, p.arena, &memory));
  assert_int_equal(memory.device.temporaries, expected);
  plan_end(&p);
}

// Of what a ring brings there are four parts, as long as no other needs the whole; of a sum that a
// ring takes away as many, and two that are added up. A matmul whose parts are added has two sums.
static void rings_have_parts(void **state) {
  (void)state;
#define GROUP                                                                           \
  "replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]]> : " \
  "tensor<1x16xi64>"
  static const char gathered[] =
      MAIN("%x: tensor<32x512xf32>, %y: " M,
           "  %g = \"stablehlo.all_gather\"(%x) {all_gather_dim = 0 : i64, " GROUP
           "} : (tensor<32x512xf32>) -> " M "\n" DOT("%b", "%y", "%g")
               DOT("%c", "%b", "%y") "  return %c : " M "\n");
  const mp_opcode_t gather = MP_OP_ALL_GATHER, scatter = MP_OP_REDUCE_SCATTER;
  assert_with_ring(gathered, MP_OP_DOT_GENERAL, gather, false, false, 1 * MIB + MIB / 4);
  assert_with_ring(gathered, MP_OP_DOT_GENERAL, gather, false, true, 1 * MIB);
  assert_with_ring(gathered, MP_OP_DOT_GENERAL, gather, true, true, 1 * MIB + MIB / 4);
  static const char scattered[] =
      "func.func @main(%x: " M ") -> tensor<32x512xf32> {\n" DOT("%a", "%x", "%x")
      "  %s = \"stablehlo.reduce_scatter\"(%a) ({\n"
      "    ^bb0(%p: tensor<f32>, %q: tensor<f32>):\n"
      "    %t = stablehlo.add %p, %q : tensor<f32>\n"
      "    stablehlo.return %t : tensor<f32>\n"
      "  }) {scatter_dimension = 0 : i64, " GROUP "} : (" M ") -> tensor<32x512xf32>\n"
      "  return %s : tensor<32x512xf32>\n}\n";
  assert_with_ring(scattered, MP_OP_DOT_GENERAL, scatter, false, true, 6 * MIB / 16);
}

// TPUs keep tiles of 8 x 128, whichever two dimensions waste least.
static void tpus_pad_tiles(void **state) {
  (void)state;
  const mp_chip_t chip = chip_of(MP_CHIP_COMPILER_TPU);
  planned_t p = plan_on(&chip,
                        "func.func @main(%x: tensor<65x100x3xf32>) -> tensor<65x100x3xf32> {\n"
                        "  %a = stablehlo.tanh %x : tensor<65x100x3xf32>\n"
                        "  return %a : tensor<65x100x3xf32>\n"
                        "}\n");
  // 100 in lanes (128), 65 in sublanes (72), 3 tiles; 3 in sublanes would have tiles of 4 rows.
  assert_int_equal(p.memory->device.arguments, 72 * 128 * 3 * 4);
  assert_int_equal(p.memory->device.results, 72 * 128 * 3 * 4);
  plan_end(&p);
}

// Rows of 64 lie crosswise, where they waste nothing; who looks them up has them in whole tiles.
static void tpus_copy_tables_of_short_rows(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%t: tensor<4096x64xf32>, %i: tensor<8x1xi32>) -> tensor<8x64xf32> {\n"
      "  %r = \"stablehlo.gather\"(%t, %i) {dimension_numbers = #stablehlo.gather<offset_dims = "
      "[1], "
      "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = "
      "array<i64: 1, 64>} : (tensor<4096x64xf32>, tensor<8x1xi32>) -> tensor<8x64xf32>\n"
      "  return %r : tensor<8x64xf32>\n"
      "}\n";
  mp_chip_t chip = chip_of(MP_CHIP_COMPILER_TPU);
  planned_t p = plan_on(&chip, text);
  assert_int_equal(p.memory->device.temporaries, 4096 * 128 * 4);
  plan_end(&p);
  chip.figures.memory_scratch = 4 * MIB;
  p = plan_on(&chip, text);
  assert_int_equal(p.memory->device.temporaries, 0);
  plan_end(&p);
}

// On GPUs the values and places of windows lie beside the gradient: 3 x 4 bytes for each of 2 x
// 512.
static void places_of_largest_elements_are_kept_on_gpus(void **state) {
  (void)state;
  static const char text[] =
      "func.func @main(%x: tensor<2x1024xf32>, %g: tensor<2x512xf32>) -> tensor<2x1024xf32> {\n"
      "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "%0 = \"stablehlo.select_and_scatter\"(%x, %g, %z) ({\n"
      "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
      "%c = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
      "stablehlo.return %c : tensor<i1>\n}, {\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
      "%c = stablehlo.add %a, %b : tensor<f32>\nstablehlo.return %c : tensor<f32>\n}) {"
      "window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>} : "
      "(tensor<2x1024xf32>, tensor<2x512xf32>, tensor<f32>) -> tensor<2x1024xf32>\n"
      "return %0 : tensor<2x1024xf32>\n}\n";
  const mp_chip_t chip = chip_of(MP_CHIP_COMPILER_GPU);
  planned_t p = plan_on(&chip, text);
  assert_int_equal(p.memory->device.temporaries, 2 * 512 * 3 * 4);
  plan_end(&p);
}

// Libraries' matmuls work in memory of their own.
static void products_have_working_memory(void **state) {
  (void)state;
  mp_chip_t chip = chip_of(MP_CHIP_COMPILER_GPU);
  chip.figures.memory_workspace = 4 * MIB;
  planned_t p = plan_on(&chip, MAIN("%x: " M, DOT("%a", "%x", "%x") "  return %a : " M "\n"));
  assert_int_equal(p.memory->device.temporaries, 4 * MIB);
  plan_end(&p);
}

// What does not fit is refused with the table of what lives where most of it does.
static void too_much_is_refused(void **state) {
  (void)state;
  const mp_chip_t chip = chip_of(MP_CHIP_COMPILER_PLAIN);
  planned_t p = plan_on(&chip, MAIN("%x: " M, DOT("%a", "%x", "%x") DOT("%b", "%a", "%x")
                                                  DOT("%c", "%b", "%x") "  return %c : " M "\n"));
  assert_int_equal(mp_chip_space_total(&p.memory->device), 3 * MIB);
  assert_ok(mp_chip_memory_check(p.memory, p.program, 3 * MIB));
  mp_status_t status = mp_chip_memory_check(p.memory, p.program, 3 * MIB - 1);
  assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
  const char *text = mp_status_message(status);
  assert_non_null(strstr(text, "does not fit into the memory of the described chip"));
  assert_non_null(strstr(text, "1.00 MiB  arguments"));
  assert_non_null(strstr(text, "1.00 MiB  temporaries"));
  assert_non_null(strstr(text, "1.00 MiB  tensor<512x512xf32> of stablehlo.dot_general ("));
  mp_status_release(status);
  plan_end(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(chains_have_two_places),
      cmocka_unit_test(arrays_without_elements_need_nothing),
      cmocka_unit_test(lives_end_with_the_last_reader),
      cmocka_unit_test(kernels_have_scratch_memory),
      cmocka_unit_test(fusions_hide_values),
      cmocka_unit_test(loops_carry_in_place),
      cmocka_unit_test(updates_are_in_place),
      cmocka_unit_test(branches_count_the_larger_region),
      cmocka_unit_test(donated_arguments_are_taken_over),
      cmocka_unit_test(sums_with_an_update_are_in_place),
      cmocka_unit_test(updates_of_parts_are_in_place),
      cmocka_unit_test(collectives_have_both_buffers),
      cmocka_unit_test(tpus_copy_what_devices_gathered),
      cmocka_unit_test(tpus_keep_results_for_main),
      cmocka_unit_test(rings_have_parts),
      cmocka_unit_test(tpus_pad_tiles),
      cmocka_unit_test(tpus_copy_tables_of_short_rows),
      cmocka_unit_test(products_have_working_memory),
      cmocka_unit_test(places_of_largest_elements_are_kept_on_gpus),
      cmocka_unit_test(too_much_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
