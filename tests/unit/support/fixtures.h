// Files of tests/fixtures.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_FIXTURES_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_FIXTURES_H_

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/support/unit.h"

typedef struct {
  char *data;
  size_t size;
} fixture_t;

// The whole file; free `data`.
static inline fixture_t fixture_read_path(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) fail_msg("cannot open %s", path);
  fixture_t fixture = {NULL, 0};
  fseek(file, 0, SEEK_END);
  fixture.size = (size_t)ftell(file);
  rewind(file);
  fixture.data = malloc(fixture.size + 1);
  assert_non_null(fixture.data);
  assert_int_equal(fread(fixture.data, 1, fixture.size, file), fixture.size);
  fixture.data[fixture.size] = '\0';
  fclose(file);
  return fixture;
}

// By its path below tests/fixtures.
static inline fixture_t fixture_read(const char *name) {
  char path[512];
  snprintf(path, sizeof(path), MINIPOD_SOURCE_DIR "/tests/fixtures/%s", name);
  return fixture_read_path(path);
}

// Calls `visit` with the path of every captured program.
static inline void fixture_programs(void (*visit)(const char *path)) {
  glob_t found;
  assert_int_equal(glob(MINIPOD_SOURCE_DIR "/tests/fixtures/programs/*.mlirbc", 0, NULL, &found),
                   0);
  assert_true(found.gl_pathc >= 40);
  for (size_t i = 0; i < found.gl_pathc; ++i) visit(found.gl_pathv[i]);
  globfree(&found);
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_FIXTURES_H_
