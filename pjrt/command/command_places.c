// Adds the name of a program's file, which the reader of texts does not know.
#include <stdio.h>
#include <string.h>

#include "pjrt/command/command.h"
#include "sim/ir/module.h"

#define NO_NAME "<text>"

static bool command_places_has_name(const char *path) {
  return path != NULL && strcmp(path, "-") != 0;
}

typedef struct {
  mp_module_t *module;
  mp_str_t name;
} file_t;

// An operation without a location is at its place in the text (readers/text), whose file has a
// name.
static mp_status_t command_places_name_op(void *context, mp_op_t *op) {
  const file_t *file = context;
  if (op->loc == NULL || op->loc->kind != MP_LOC_FILE || !mp_str_is(op->loc->text, NO_NAME)) {
    return NULL;
  }
  mp_loc_t *loc = MP_ARENA_NEW(file->module->arena, mp_loc_t);
  MP_RETURN_IF_NULL(loc);
  *loc = *op->loc;
  loc->text = file->name;
  op->loc = loc;
  return NULL;
}

mp_status_t mp_command_name_places(const char *path, mp_module_t *module) {
  if (!command_places_has_name(path)) return NULL;
  file_t file = {module, mp_str(path)};  // the name lives longer than the module
  return mp_module_walk(module, command_places_name_op, &file);
}

int mp_command_end_of(const char *program, const char *path, mp_status_t status) {
  if (status == NULL || !command_places_has_name(path)) return mp_command_end(program, status);
  const char *rest = mp_status_message(status);
  fprintf(stderr, "%s: ", program);
  for (const char *at; (at = strstr(rest, NO_NAME ":")) != NULL; rest = at + strlen(NO_NAME)) {
    fprintf(stderr, "%.*s%s", (int)(at - rest), rest, path);
  }
  fprintf(stderr, "%s\n", rest);
  mp_status_release(status);
  return MP_EXIT_FAILED;
}
