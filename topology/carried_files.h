// Files of configs/ that the library carries, so that their names are enough; CMake makes the
// tables (tools/embed_files.cmake).
#ifndef MINIPOD_TOPOLOGY_CARRIED_FILES_H_
#define MINIPOD_TOPOLOGY_CARRIED_FILES_H_

#include <stddef.h>

typedef struct {
  const char *name;  // "v5e", of v5e.yaml
  const char *text;
} mp_carried_file_t;

// Figures of chips: configs/chips/.
extern const mp_carried_file_t mp_chip_files[];
extern const size_t mp_num_chip_files;

// Described pods: configs/.
extern const mp_carried_file_t mp_pod_files[];
extern const size_t mp_num_pod_files;

#endif  // MINIPOD_TOPOLOGY_CARRIED_FILES_H_
