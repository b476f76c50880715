// The files of configs/chips/, as the library carries them; CMake makes the table.
#ifndef MINIPOD_TOPOLOGY_FIGURES_FIGURES_FILES_H_
#define MINIPOD_TOPOLOGY_FIGURES_FIGURES_FILES_H_

#include <stddef.h>

typedef struct {
  const char *name;  // "v5e"
  const char *text;
} mp_figures_file_t;

extern const mp_figures_file_t mp_figures_files[];
extern const size_t mp_num_figures_files;

#endif  // MINIPOD_TOPOLOGY_FIGURES_FIGURES_FILES_H_
