#include "pjrt/command/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/os/numa.h"
#include "sim/base/os/system.h"

bool mp_command_answers(int argc, char **argv, const char *usage) {
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
      fputs(usage, stdout);
      return true;
    }
    if (strcmp(argv[i], "--version") == 0) {
      printf("%s %s\n", argv[0], MINIPOD_VERSION);
      return true;
    }
  }
  return false;
}

mp_status_t mp_command_unexpected(const char *argument) {
  return mp_status_make(MP_INVALID_ARGUMENT, "unexpected argument '%s'", argument);
}

mp_status_t mp_command_missing(const char *name) {
  return mp_status_make(MP_INVALID_ARGUMENT, "%s is missing", name);
}

mp_status_t mp_command_bad_value(const char *option, const char *value, const char *accepted) {
  if (value == NULL) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%s needs a value: %s", option, accepted);
  }
  return mp_status_make(MP_INVALID_ARGUMENT, "%s takes %s, not '%s'", option, accepted, value);
}

mp_status_t mp_command_read_number(const char *option, const char *value, long long least,
                                   long long most, long long *out_number) {
  const bool is_number = value != NULL && mp_str_parse_i64(mp_str(value), out_number);
  if (is_number && *out_number >= least && *out_number <= most) return NULL;
  char accepted[80];
  snprintf(accepted, sizeof(accepted), "a number from %lld to %lld", least, most);
  return mp_command_bad_value(option, value, accepted);
}

mp_status_t mp_command_read_form(const char *value, mp_program_form_t *out_form) {
  if (value != NULL && mp_program_form_from_name(mp_str(value), out_form)) return NULL;
  return mp_command_bad_value("--form", value, "mlir, hlo or hlo_with_config");
}

int mp_command_misuse(const char *program, mp_status_t status) {
  fprintf(stderr, "%s: %s; '%s --help' lists the arguments\n", program, mp_status_message(status),
          program);
  mp_status_release(status);
  return MP_EXIT_USAGE;
}

int mp_command_end(const char *program, mp_status_t status) {
  if (status == NULL) return MP_EXIT_GOOD;
  fprintf(stderr, "%s: %s\n", program, mp_status_message(status));
  mp_status_release(status);
  return MP_EXIT_FAILED;
}

// Devices such as /dev/zero never end; a terminal does.
static bool command_is_endless(FILE *file) {
  struct stat found;
  const int number = fileno(file);
  return fstat(number, &found) == 0 && S_ISCHR(found.st_mode) && !isatty(number);
}

static mp_status_t command_read_all(FILE *file, const char *path, mp_strbuf_t *out_text) {
  char block[65536];
  for (size_t size; (size = fread(block, 1, sizeof(block), file)) > 0;) {
    if (out_text->size + size > MP_COMMAND_MOST_BYTES) {
      return mp_status_make(MP_INVALID_ARGUMENT, "'%s' has more than 1 GiB, and is not read", path);
    }
    mp_strbuf_append(out_text, block, size);
  }
  if (ferror(file) == 0) return mp_strbuf_status(out_text);
  return mp_status_make(MP_DATA_LOSS, "cannot read '%s': %s", path, mp_system_text(errno));
}

mp_status_t mp_command_read(const char *path, mp_strbuf_t *out_text) {
  const bool is_input = strcmp(path, "-") == 0;
  FILE *file = is_input ? stdin : mp_fopen(path, "rb");
  if (file == NULL) {
    return mp_status_make(MP_NOT_FOUND, "cannot open '%s': %s", path, mp_system_text(errno));
  }
  mp_status_t status =
      command_is_endless(file)
          ? mp_status_make(MP_INVALID_ARGUMENT, "'%s' is a device, and no file", path)
          : command_read_all(file, path, out_text);
  if (!is_input) fclose(file);
  return status;
}

const char *minipod_numa_name(void) {
  return mp_numa_name();
}
