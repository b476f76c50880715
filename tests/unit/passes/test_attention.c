// cuDNN's attention: what it becomes, and calls that are malformed. Values: tests/e2e/programs/.
#include "tests/unit/support/unit.h"

#include <stdio.h>
#include <string.h>

#include "sim/ir/verify/verify.h"
#include "sim/passes/attention/attention.h"
#include "sim/readers/text/text.h"

#define Q "tensor<2x16x4x8xbf16>"
#define K "tensor<2x24x2x8xbf16>"
#define O "tensor<2x4x16x8xbf16>"
#define CONFIG(more)                                                                     \
  "{\\22cudnn_fmha_backend_config\\22: {\\22fmha_scale\\22: 0.5, \\22mask_type\\22: "    \
  "\\22NO_MASK\\22, \\22bmm1_dot_dimension_numbers\\22: {\\22rhs_batch_dimensions\\22: " \
  "[\\220\\22, \\222\\22]}" more "}}"

// A program with one call of these operands and results.
static mp_status_t open_call(const char *name, const char *config, const char *operands,
                             const char *types, const char *results, mp_module_t **out_module) {
  char text[2048];
  snprintf(text, sizeof(text),
           "func.func @main(%%q: " Q ", %%k: " K
           ", %%n: tensor<2xi32>) {\n"
           "%%0%s = \"stablehlo.custom_call\"(%s) {call_target_name = \"__cudnn$%s\", "
           "api_version = 2 : i32, has_side_effect = true, backend_config = \"%s\"} : (%s) -> %s\n"
           "return\n}\n",
           results[0] == '(' ? ":2" : "", operands, name, config, types, results);
  assert_ok(mp_read_text(text, strlen(text), out_module));
  assert_ok(mp_module_verify(*out_module));
  bool is_changed = false;
  return mp_pass_open_attention(*out_module, &is_changed);
}

static void calls_become_plain_ops(void **state) {
  (void)state;
  mp_module_t *module = NULL;
  assert_ok(open_call("fmhaSoftmax", CONFIG(""), "%q, %k, %k", Q ", " K ", " K,
                      "(" O ", tensor<2x4x16xf32>)", &module));
  assert_ok(mp_module_verify(module));
  uint32_t products = 0;
  for (const mp_op_t *op = module->main->body->first; op != NULL; op = op->next) {
    assert_true(op->code != MP_OP_CUSTOM_CALL);
    products += op->code == MP_OP_DOT_GENERAL;
  }
  assert_int_equal(products, 2);
  mp_module_release(module);
}

static void malformed_calls_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *name, *config, *operands, *types, *results, *words;
    mp_status_code_t code;
  } cases[] = {
      {"fmhaSoftmax", CONFIG(""), "%q, %k", Q ", " K, O, "too few operands", MP_INVALID_ARGUMENT},
      {"fmhaSoftmax", CONFIG(""), "%q, %k, %k, %k", Q ", " K ", " K ", " K, O, "too many operands",
       MP_INVALID_ARGUMENT},
      {"fmhaSoftmax", CONFIG(""), "%q, %q, %k", Q ", " Q ", " K, O, "do not fit each other",
       MP_INVALID_ARGUMENT},
      {"fmhaSoftmax", CONFIG(""), "%k, %q, %q", K ", " Q ", " Q, O, "not a multiple",
       MP_INVALID_ARGUMENT},
      {"fmhaSoftmax", CONFIG(""), "%q, %n, %k", Q ", tensor<2xi32>, " K, O, "rank 4",
       MP_INVALID_ARGUMENT},
      {"fmhaSoftmax", CONFIG(""), "%q, %k, %k", Q ", " K ", " K, "tensor<2x4x16x9xbf16>",
       "result 0", MP_INVALID_ARGUMENT},
      {"fmhaSoftmaxBackward", CONFIG(""), "%q, %k, %k, %n, %q, %q",
       Q ", " K ", " K ", tensor<2xi32>, " Q ", " Q, O, "do not fit each other",
       MP_INVALID_ARGUMENT},
      {"fmhaScaleBiasSoftmax", CONFIG(""), "%q, %k, %k, %k", Q ", " K ", " K ", " K, O,
       "do not fit each other", MP_INVALID_ARGUMENT},
      {"fmhaSoftmax", "{}", "%q, %k, %k", Q ", " K ", " K, O, "no dimension numbers",
       MP_INVALID_ARGUMENT},
      {"fmhaSoftmax", CONFIG(", \\22sliding_window_length\\22: x"), "%q, %k, %k", Q ", " K ", " K,
       O, "no number for \"sliding_window_length\"", MP_INVALID_ARGUMENT},
      {"fmhaSoftmax", CONFIG(", \\22max_seg_per_batch\\22: 2"), "%q, %k, %k", Q ", " K ", " K, O,
       "packed sequences", MP_UNIMPLEMENTED},
      {"fmhaSoftmax", CONFIG(", \\22dropout_rate\\22: 0.1"), "%q, %k, %k", Q ", " K ", " K, O,
       "dropout", MP_UNIMPLEMENTED},
      {"fmhaSoftmaxF8", CONFIG(""), "%q, %k, %k", Q ", " K ", " K, O, "FP8", MP_UNIMPLEMENTED},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    mp_module_t *module = NULL;
    mp_status_t status = open_call(cases[i].name, cases[i].config, cases[i].operands,
                                   cases[i].types, cases[i].results, &module);
    assert_status(status, cases[i].code, cases[i].words);
    mp_module_release(module);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(calls_become_plain_ops),
      cmocka_unit_test(malformed_calls_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
