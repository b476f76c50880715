// The cases of tests/fixtures/operands: programs on operands that are hard on kernels, with the
// results that they must have to the bit. See the README there for their form.
#include "tests/unit/support/unit.h"

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/support/fixtures.h"
#include "tests/unit/support/text_runs.h"

enum { MAX_CHECKS = 64, MAX_TEXT = 32 * 1024 };

// A case while it is put together: the parts of its program's text.
typedef struct {
  const char *file;
  char name[128];
  int replicas;
  char refusal[128];  // what the message says when it must not compile, or ""
  uint32_t num_checks;
  mp_strbuf_t body, types, results;
} case_t;

static mp_client_t *g_client;
static const char *g_only = "";  // of the cases' names
static uint32_t g_num_cases, g_num_checks;

static void case_begin(case_t *c, const char *file, const char *name) {
  *c = (case_t){.file = file, .replicas = 1};
  snprintf(c->name, sizeof(c->name), "%s", name);
  mp_strbuf_init(&c->body);
  mp_strbuf_init(&c->types);
  mp_strbuf_init(&c->results);
}

static void case_end(case_t *c) {
  mp_strbuf_deinit(&c->body);
  mp_strbuf_deinit(&c->types);
  mp_strbuf_deinit(&c->results);
}

// "%name : type = value"; the parts are cut out of the line.
static void split(const case_t *c, char *line, char **out_name, char **out_type, char **out_value) {
  char *colon = strstr(line, " : "), *equals = strstr(line, " = ");
  if (colon == NULL || equals == NULL || equals < colon) {
    fail_msg("%s: %s: '%s' is not '%%name : type = value'", c->file, c->name, line);
    return;
  }
  *colon = *equals = '\0';
  *out_name = line;
  *out_type = colon + 3;
  *out_value = equals + 3;
}

static const char *comma(const mp_strbuf_t *list) {
  return list->size == 0 ? "" : ", ";
}

// Operands pass through a barrier, so that folding does not see constants.
static void add_operand(case_t *c, char *line) {
  char *name = NULL, *type = NULL, *value = NULL;
  split(c, line, &name, &type, &value);
  mp_strbuf_printf(&c->body, "    %s_given = stablehlo.constant %s : %s\n", name, value, type);
  mp_strbuf_printf(&c->body, "    %s = stablehlo.optimization_barrier %s_given : %s\n", name, name,
                   type);
}

static void add_check(case_t *c, char *line) {
  char *name = NULL, *type = NULL, *value = NULL;
  split(c, line, &name, &type, &value);
  mp_strbuf_printf(&c->body, "    %%expected_%u = stablehlo.constant %s : %s\n", c->num_checks,
                   value, type);
  mp_strbuf_printf(&c->types, "%s%s, %s", comma(&c->types), type, type);
  mp_strbuf_printf(&c->results, "%s%s, %%expected_%u", comma(&c->results), name, c->num_checks);
  ++c->num_checks;
}

static bool is_nan(mp_dtype_t dtype, const char *element) {
  return mp_dtype_is_float(dtype) && isnan(mp_float_decode(dtype, element));
}

// Element by element, real and imaginary parts by themselves.
static void compare(const case_t *c, uint32_t check, uint32_t device, const mp_type_t *type,
                    const char *found, const char *expected) {
  const mp_dtype_t dtype = mp_dtype_real_part(type->dtype);
  const size_t size = mp_dtype_size(dtype);
  int64_t bytes = 0;
  assert_true(mp_type_num_bytes(type, &bytes));
  for (size_t at = 0; at < (size_t)bytes; at += size) {
    if (memcmp(found + at, expected + at, size) == 0) continue;
    if (is_nan(dtype, found + at) && is_nan(dtype, expected + at)) continue;
    uint64_t a = 0, b = 0;
    memcpy(&a, found + at, size);
    memcpy(&b, expected + at, size);
    fail_msg("%s: %s: expectation %u on device %u: element %zu is 0x%llx, not 0x%llx", c->file,
             c->name, check + 1, device, at / size, (unsigned long long)a, (unsigned long long)b);
  }
}

static void case_run(case_t *c) {
  if (strstr(c->name, g_only) == NULL) return;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_printf(&text,
                   "module attributes {mhlo.num_replicas = %d : i32} {\n"
                   "  func.func @main() -> (%s) {\n%s    return %s : %s\n  }\n}\n",
                   c->replicas, mp_strbuf_text(&c->types), mp_strbuf_text(&c->body),
                   mp_strbuf_text(&c->results), mp_strbuf_text(&c->types));
  text_run_t run = {0};
  mp_status_t status = text_run_begin(g_client, mp_strbuf_text(&text), &run);
  if (c->refusal[0] != '\0') {
    if (status == NULL) fail_msg("%s: %s: it compiles", c->file, c->name);
    assert_status(status, mp_status_code(status), c->refusal);
    mp_strbuf_deinit(&text);
    ++g_num_cases;
    return;
  }
  if (status == NULL) status = text_run_launch(&run, NULL);
  if (status != NULL) {
    fail_msg("%s: %s: %s\n%s", c->file, c->name, mp_status_message(status), mp_strbuf_text(&text));
  }
  assert_int_equal(run.program->num_results, 2 * c->num_checks);
  for (uint32_t d = 0; d < run.num_devices; ++d) {
    for (uint32_t i = 0; i < c->num_checks; ++i) {
      compare(c, i, d, run.program->results[2 * i].type, run.results[d][2 * i],
              run.results[d][2 * i + 1]);
    }
  }
  text_run_end(&run);
  mp_strbuf_deinit(&text);
  ++g_num_cases;
  g_num_checks += c->num_checks;
}

static bool take_word(char **line, const char *word) {
  size_t length = strlen(word);
  if (strncmp(*line, word, length) != 0) return false;
  *line += length;
  return true;
}

static void add_line(case_t *c, char *line) {
  char *comment = strstr(line, " # ");
  if (comment != NULL) *comment = '\0';
  if (take_word(&line, "operand ")) {
    add_operand(c, line);
  } else if (take_word(&line, "expect ")) {
    add_check(c, line);
  } else if (take_word(&line, "replicas ")) {
    c->replicas = atoi(line);
  } else if (take_word(&line, "refused ")) {
    snprintf(c->refusal, sizeof(c->refusal), "%s", line);
  } else if (!take_word(&line, "differs ") && !take_word(&line, "alone ")) {
    mp_strbuf_printf(&c->body, "    %s\n", line);
  }
}

static void run_file(const char *path) {
  fixture_t fixture = fixture_read_path(path);
  const char *file = strrchr(path, '/') + 1;
  case_t c;
  bool is_open = false;
  char *rest = fixture.data;
  for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
    if (*line == '\0' || *line == '#') continue;
    if (strncmp(line, "case ", 5) != 0) {
      if (!is_open) fail_msg("%s: '%s' comes before the first case", file, line);
      add_line(&c, line);
      continue;
    }
    if (is_open) {
      case_run(&c);
      case_end(&c);
    }
    case_begin(&c, file, line + 5);
    is_open = true;
  }
  assert_true(is_open);
  case_run(&c);
  case_end(&c);
  free(fixture.data);
}

static void test_cases(void **state) {
  (void)state;
  glob_t found;
  assert_int_equal(glob(MINIPOD_SOURCE_DIR "/tests/fixtures/operands/*.txt", 0, NULL, &found), 0);
  g_client = make_client(TEXT_RUN_DEVICES);
  for (size_t i = 0; i < found.gl_pathc; ++i) run_file(found.gl_pathv[i]);
  mp_client_release(g_client);
  globfree(&found);
  print_message("%u cases, %u results\n", g_num_cases, g_num_checks);
}

// An argument is a part of the names of the cases to run.
int main(int argc, char **argv) {
  if (argc > 1) g_only = argv[1];
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
