// Programs that stand in one file, each after a line "=== name".
#ifndef MINIPOD_TESTS_UNIT_TORTURE_TORTURE_TEXTS_H_
#define MINIPOD_TESTS_UNIT_TORTURE_TORTURE_TEXTS_H_

#include <string.h>

// Calls `visit` with the name and the text of each. Cuts the file's text into pieces; what is
// behind `end` (NULL: nothing) is left out.
static inline void torture_texts(char *text, const char *end,
                                 void (*visit)(const char *name, const char *text)) {
  for (char *next = strstr(text, "=== "); next != NULL;) {
    char *name = next + strlen("=== "), *line = strchr(name, '\n');
    next = strstr(line, "\n=== ");
    if (next != NULL) *next++ = '\0';
    *line = '\0';
    char *stop = end == NULL ? NULL : strstr(line + 1, end);
    if (stop != NULL) *stop = '\0';
    visit(name, line + 1);
  }
}

#endif  // MINIPOD_TESTS_UNIT_TORTURE_TORTURE_TEXTS_H_
