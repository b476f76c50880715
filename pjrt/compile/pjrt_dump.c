#include "pjrt/compile/pjrt_dump.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/log.h"
#include "sim/base/os/system.h"

static atomic_uint g_next_number;  // relaxed: numbers only have to differ

// Only the first failure is reported: it already shows what is wrong with the folder.
static void pjrt_dump_complain(const char *path, int cause) {
  static atomic_flag has_complained = ATOMIC_FLAG_INIT;
  const bool is_first = !atomic_flag_test_and_set(&has_complained);
  mp_log(is_first ? MP_LOG_WARNING : MP_LOG_DEBUG, "cannot write dump file %s: %s%s", path,
         mp_system_text(cause), is_first ? " (more are not reported)" : "");
}

static void pjrt_dump_write_file(const char *path, const char *data, size_t size) {
  FILE *file = mp_fopen_out(path, "wb");
  bool written = file != NULL && fwrite(data, 1, size, file) == size;
  int cause = errno;
  if (file != NULL && fclose(file) != 0) {
    if (written) cause = errno;  // only this may report a full disk
    written = false;
  }
  if (!written) pjrt_dump_complain(path, cause);
}

// Names come from the client; only harmless characters are kept.
static void pjrt_dump_put_name(mp_strbuf_t *path, mp_str_t name) {
  enum { MAX_NAME = 80 };
  for (size_t i = 0; i < name.size && i < MAX_NAME; ++i) {
    const char c = name.data[i];
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '_' || c == '-';
    mp_strbuf_putc(path, is_plain ? c : '_');
  }
}

static void pjrt_dump_write_as(const char *folder, uint32_t number, mp_str_t name,
                               const char *ending, const char *data, size_t size) {
  mp_strbuf_t path;
  mp_strbuf_init(&path);
  mp_strbuf_printf(&path, "%s/%ld.%04u.", folder, (long)getpid(), number);
  if (name.size != 0) {
    pjrt_dump_put_name(&path, name);
    mp_strbuf_putc(&path, '.');
  }
  mp_strbuf_puts(&path, ending);
  if (!path.failed) pjrt_dump_write_file(mp_strbuf_text(&path), data, size);
  mp_strbuf_deinit(&path);
}

uint32_t mp_pjrt_dump_input(const char *folder, const mp_pjrt_source_t *source) {
  if (folder == NULL || folder[0] == '\0') return 0;
  const uint32_t number = atomic_fetch_add(&g_next_number, 1);
  (void)mkdir(folder, 0777);  // its parent must exist; a failure shows when files are written
  static const char magic[] = "ML\xefR";
  const char *ending = mp_str_starts_with(source->code, magic) ? "input.mlirbc" : "input.mlir";
  if (mp_str_is(source->format, "hlo")) ending = "input.hlo";
  if (mp_str_is(source->format, "hlo_with_config")) ending = "input.hlo_with_config";
  pjrt_dump_write_as(folder, number, (mp_str_t){"", 0}, ending, source->code.data,
                     source->code.size);
  return number;
}

void mp_pjrt_dump_program(const char *folder, uint32_t number, const mp_program_t *program) {
  if (folder == NULL || folder[0] == '\0') return;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_status_t status = mp_pjrt_print_program(program, program->module->attrs, false, &text);
  if (status == NULL && !text.failed) {
    pjrt_dump_write_as(folder, number, program->name, "partitioned.mlir", text.data, text.size);
  }
  mp_status_ignore(status);
  mp_strbuf_deinit(&text);
  mp_strbuf_init(&text);
  mp_program_print(program, &text);
  if (!text.failed && text.size != 0) {
    pjrt_dump_write_as(folder, number, program->name, "commands.txt", text.data, text.size);
  }
  mp_strbuf_deinit(&text);
}

static void pjrt_dump_write_time(const char *folder, unsigned number, const char *ending,
                                 const mp_strbuf_t *text) {
  mp_strbuf_t path;
  mp_strbuf_init(&path);
  mp_strbuf_printf(&path, "%s/%ld.time", folder, (long)getpid());
  if (number > 1) mp_strbuf_printf(&path, ".%u", number);
  mp_strbuf_puts(&path, ending);
  if (!path.failed) pjrt_dump_write_file(mp_strbuf_text(&path), mp_strbuf_text(text), text->size);
  mp_strbuf_deinit(&path);
}

void mp_pjrt_dump_time(const char *folder, const mp_strbuf_t *table, const mp_strbuf_t *json) {
  static atomic_uint num_tables;
  if (folder == NULL || folder[0] == '\0' || table->failed || json->failed) return;
  const unsigned number = atomic_fetch_add(&num_tables, 1) + 1;
  (void)mkdir(folder, 0777);
  pjrt_dump_write_time(folder, number, ".txt", table);
  pjrt_dump_write_time(folder, number, ".json", json);
}
