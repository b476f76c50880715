#include "pjrt/command/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

int mp_command_misuse(const char *program, const char *argument) {
  if (argument == NULL) {
    fprintf(stderr, "%s: an argument is missing; '%s --help' lists them\n", program, program);
  } else {
    fprintf(stderr, "%s: '%s' is no argument here; '%s --help' lists them\n", program, argument,
            program);
  }
  return MP_EXIT_USAGE;
}

int mp_command_end(const char *program, mp_status_t status) {
  if (status == NULL) return MP_EXIT_GOOD;
  fprintf(stderr, "%s: %s\n", program, mp_status_message(status));
  mp_status_release(status);
  return MP_EXIT_FAILED;
}

mp_status_t mp_command_read(const char *path, mp_strbuf_t *out_text) {
  const bool is_input = strcmp(path, "-") == 0;
  FILE *file = is_input ? stdin : mp_fopen(path, "rb");
  if (file == NULL) {
    return mp_status_make(MP_NOT_FOUND, "cannot open '%s': %s", path, mp_system_text(errno));
  }
  char block[65536];
  for (size_t size; (size = fread(block, 1, sizeof(block), file)) > 0;) {
    mp_strbuf_append(out_text, block, size);
  }
  const bool failed = ferror(file) != 0;
  const int cause = errno;
  if (!is_input) fclose(file);
  if (failed) {
    return mp_status_make(MP_DATA_LOSS, "cannot read '%s': %s", path, mp_system_text(cause));
  }
  return mp_strbuf_status(out_text);
}
