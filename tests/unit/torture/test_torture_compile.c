// Torture: programs of both forms and of every kind, read, printed and on their way to commands.
#include <glob.h>

#include "sim/ir/print/print_module.h"
#include "sim/plan/compile.h"
#include "sim/readers/reader.h"
#include "tests/unit/support/fixtures.h"
#include "tests/unit/torture/torture.h"
#include "tests/unit/torture/torture_texts.h"

enum { MAX_ROWS = 400, FORMS_PER_SAMPLE = 12 };

// Where a row's program is.
typedef struct {
  const char *path;  // of a captured program; NULL: the text
  const char *text;
  size_t size;
  bool is_form;  // only to be read and printed
} program_t;

// What the row's program becomes without failure.
static struct {
  fixture_t file;
  const program_t *program;
  mp_status_code_t code;
  mp_strbuf_t text;
} g_wanted;

static mp_status_t print_form(const char *data, size_t size, mp_strbuf_t *out) {
  mp_module_t *module = NULL;
  MP_RETURN_IF_ERROR(mp_read_program(data, size, MP_PROGRAM_MLIR, &module));
  mp_status_t status = mp_module_print(module, NULL, out);
  mp_module_release(module);
  return status;
}

static mp_status_t print_commands(const char *data, size_t size, mp_strbuf_t *out) {
  const mp_compile_request_t request = {0};
  mp_program_t *program = NULL;
  MP_RETURN_IF_ERROR(mp_compile(data, size, &request, &program));
  mp_program_print(program, out);
  for (uint32_t i = 0; i < program->num_commands; ++i) {
    const mp_collective_t *collective = program->commands[i].collective;
    if (collective == NULL) continue;
    mp_strbuf_printf(out, "%s %llx %llx\n", collective->location,
                     (unsigned long long)collective->digest,
                     (unsigned long long)collective->reducer.digest);
  }
  mp_program_release(program);
  return mp_strbuf_status(out);
}

static mp_status_t go(mp_strbuf_t *out) {
  const program_t *program = g_wanted.program;
  const char *data = program->path == NULL ? program->text : g_wanted.file.data;
  const size_t size = program->path == NULL ? program->size : g_wanted.file.size;
  return program->is_form ? print_form(data, size, out) : print_commands(data, size, out);
}

static void open_program(const void *subject) {
  g_wanted.program = subject;
  if (g_wanted.program->path != NULL) g_wanted.file = fixture_read_path(g_wanted.program->path);
  mp_strbuf_init(&g_wanted.text);
  mp_status_t status = go(&g_wanted.text);
  g_wanted.code = mp_status_code(status);
  mp_status_release(status);
}

static void close_program(void) {
  mp_strbuf_deinit(&g_wanted.text);
  free(g_wanted.file.data);
  g_wanted.file.data = NULL;
}

// A program that cannot be compiled is refused with the same code all the same.
static void try_program(const void *subject) {
  (void)subject;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_status_t status = go(&text);
  if (status != NULL && mp_status_code(status) == g_wanted.code) {
    assert_null(strstr(mp_status_message(status), "out of host memory"));
    mp_status_release(status);
  } else if (torture_survived(status)) {
    assert_int_equal(g_wanted.code, MP_OK);
    assert_string_equal(mp_strbuf_text(&text), mp_strbuf_text(&g_wanted.text));
  }
  mp_strbuf_deinit(&text);
}

static program_t g_programs[MAX_ROWS];
static torture_row_t g_rows[MAX_ROWS];
static size_t g_count;
static bool g_has_all_forms;

static void add(const char *name, program_t program) {
  if (g_count == MAX_ROWS) return;
  g_programs[g_count] = program;
  g_rows[g_count] = (torture_row_t){.name = name,
                                    .open = open_program,
                                    .attempt = try_program,
                                    .close = close_program,
                                    .subject = &g_programs[g_count]};
  ++g_count;
}

static void add_text(const char *name, const char *text) {
  add(name, (program_t){.text = text, .size = strlen(text)});
}

// Every day one form of many.
static void add_form(const char *name, const char *text) {
  static size_t number;
  if (!g_has_all_forms && number++ % FORMS_PER_SAMPLE != 0) return;
  add(name, (program_t){.text = text, .size = strlen(text), .is_form = true});
}

int main(int argc, char **argv) {
  glob_t found;
  if (glob(MINIPOD_SOURCE_DIR "/tests/fixtures/programs/*.mlirbc", 0, NULL, &found) != 0) return 2;
  for (size_t i = 0; i < found.gl_pathc; ++i) {
    add(strrchr(found.gl_pathv[i], '/') + 1, (program_t){.path = found.gl_pathv[i]});
  }
  fixture_t programs = fixture_read("torture_programs.txt");
  torture_texts(programs.data, NULL, add_text);
  fixture_t forms = fixture_read("stablehlo_forms.txt");
  g_has_all_forms = argc > 1 || torture_is_full();
  torture_texts(forms.data, "\n---\n", add_form);
  const int result = torture_main(g_rows, g_count, argc, argv);
  free(programs.data);
  free(forms.data);
  globfree(&found);
  return result;
}
