// The table of verbs; separate from what they share, so that no two files call each other.
#include <stdio.h>
#include <string.h>

#include "pjrt/command/command.h"

static const struct {
  const char *name;
  mp_verb_t *verb;
} g_verbs[] = {
    {"topo", mp_verb_topo},           {"network", mp_verb_network}, {"opt", mp_verb_opt},
    {"partition", mp_verb_partition}, {"exec", mp_verb_exec},       {"options", mp_verb_options},
    {"chip", mp_verb_chip},
};

int minipod_command(const char *name, int argc, char **argv) {
  for (size_t i = 0; i < sizeof(g_verbs) / sizeof(g_verbs[0]); ++i) {
    if (strcmp(g_verbs[i].name, name) != 0) continue;
    const int code = g_verbs[i].verb(argc, argv);
    // The caller's Python has its own buffers.
    fflush(stdout);
    return code;
  }
  return -1;
}
