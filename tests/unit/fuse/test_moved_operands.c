// Fused ops whose operands are transposed on the way, or moved in runs: one launch, with the bits
// of the ops one by one.
#include "tests/unit/support/unit.h"

#include <stdio.h>

#include "tests/unit/support/fused_runs.h"

enum { TEXT = 4096 };

static const char *const g_types[] = {"i8",  "bf16", "f16",          "f32",
                                      "i64", "f64",  "complex<f32>", "complex<f64>"};

// A type, its operand's, and the permutation between them.
typedef struct {
  const char *from, *to, *order;
} moved_t;

// Rows shorter and longer than a tile's part of a block, and no multiples of it; few and many rows;
// dimensions around; runs that are whole cache lines and not; rows of few elements.
static const moved_t g_moved[] = {
    {"70x300", "300x70", "[1, 0]"},
    {"300x70", "70x300", "[1, 0]"},
    {"257x130", "130x257", "[1, 0]"},
    {"1030x67", "67x1030", "[1, 0]"},
    {"3x300x50", "3x50x300", "[0, 2, 1]"},
    {"5x64x100", "5x100x64", "[0, 2, 1]"},
    {"2x9x300x40", "2x9x40x300", "[0, 1, 3, 2]"},
    {"2x300x8x20", "2x8x20x300", "[0, 2, 3, 1]"},
    {"4x50x7x64", "4x7x50x64", "[0, 2, 1, 3]"},
    {"4x50x7x33", "4x7x50x33", "[0, 2, 1, 3]"},
    {"40x40x5x8", "5x40x40x8", "[2, 1, 0, 3]"},
    {"9x140x3", "140x9x3", "[1, 0, 2]"},
    {"3x700", "700x3", "[1, 0]"},
    {"5x11x130", "5x130x11", "[0, 2, 1]"},
};
enum { NUM_MOVED = sizeof(g_moved) / sizeof(g_moved[0]) };

// The body with the types FROM and TO and the permutation ORDER put in.
static void write_text(const char *body, const char *type, const moved_t *moved, char *out) {
  char from[64], to[64];
  snprintf(from, sizeof(from), "tensor<%sx%s>", moved->from, type);
  snprintf(to, sizeof(to), "tensor<%sx%s>", moved->to, type);
  const char *const names[][2] = {{"FROM", from}, {"TO", to}, {"ORDER", moved->order}};
  size_t used = 0;
  while (*body != '\0') {
    const char *by = body;
    size_t length = 1, skipped = 1;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
      if (strncmp(body, names[i][0], strlen(names[i][0])) != 0) continue;
      by = names[i][1];
      length = strlen(by);
      skipped = strlen(names[i][0]);
    }
    assert_true(used + length < TEXT);
    memcpy(out + used, by, length);
    used += length;
    body += skipped;
  }
  out[used] = '\0';
}

static void check_moved(mp_client_t *client, const char *body, const char *type,
                        const moved_t *moved, uint32_t launches) {
  char text[TEXT];
  write_text(body, type, moved, text);
  const uint32_t found = check_text(client, text, strlen(text));
  if (found != launches) fail_msg("%u launches, not %u\n%s", found, launches, text);
  if (native_is_there()) check_native(client, text, strlen(text));
}

// All types move in all ways. Under sanitizers, where that would take minutes, all types move, and
// all ways are gone.
#ifdef UNIT_SANITIZED
enum { EACH = 3 };
#else
enum { EACH = 1 };
#endif

static void check_all(const char *body, uint32_t launches) {
  mp_client_t *client = make_client(1);
  for (size_t t = 0; t < sizeof(g_types) / sizeof(g_types[0]); ++t) {
    for (size_t i = t % EACH; i < NUM_MOVED; i += EACH) {
      check_moved(client, body, g_types[t], &g_moved[i], launches);
    }
  }
  mp_client_release(client);
}

static void one_op_reads_a_transposed_operand(void **state) {
  (void)state;
  check_all(
      "func.func @main(%x: FROM) -> TO {\n"
      "%t = stablehlo.transpose %x, dims = ORDER : (FROM) -> TO\n"
      "%r = stablehlo.add %t, %t : TO\nreturn %r : TO\n}\n",
      1);
}

// Two transposed operands, one in its own order, and two results.
static void many_operands_and_results(void **state) {
  (void)state;
  check_all(
      "func.func @main(%x: FROM, %y: FROM, %z: TO) -> (TO, TO) {\n"
      "%t = stablehlo.transpose %x, dims = ORDER : (FROM) -> TO\n"
      "%u = stablehlo.transpose %y, dims = ORDER : (FROM) -> TO\n"
      "%a = stablehlo.add %t, %z : TO\n"
      "%b = stablehlo.multiply %a, %u : TO\n"
      "%c = stablehlo.subtract %b, %t : TO\nreturn %b, %c : TO, TO\n}\n",
      1);
}

// %b is read in its own order and not needed later: the result has its memory.
static void the_result_may_lie_in_an_operand(void **state) {
  (void)state;
  check_all(
      "func.func @main(%x: FROM, %z: TO) -> TO {\n"
      "%n = stablehlo.negate %z : TO\n"
      "%b = stablehlo.optimization_barrier %n : TO\n"
      "%t = stablehlo.transpose %x, dims = ORDER : (FROM) -> TO\n"
      "%a = stablehlo.add %t, %b : TO\n"
      "%r = stablehlo.multiply %a, %b : TO\nreturn %r : TO\n}\n",
      2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_op_reads_a_transposed_operand),
      cmocka_unit_test(many_operands_and_results),
      cmocka_unit_test(the_result_may_lie_in_an_operand),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
