// build/minipod-<verb>: a verb of the command `minipod`, for a build tree without the package.
#include "pjrt/command/command.h"

int main(int argc, char **argv) {
  return MINIPOD_VERB(argc, argv);
}
