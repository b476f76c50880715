// Small files of users, read at once.
#ifndef MINIPOD_SIM_BASE_OS_FILE_H_
#define MINIPOD_SIM_BASE_OS_FILE_H_

#include "sim/base/str.h"

enum { MP_FILE_MOST = 1 << 20 };

// Reads a file of at most MP_FILE_MOST bytes; mp_free(*out_data). Messages call it `what`
// ("topology file"). NOT_FOUND when there is none, INVALID_ARGUMENT for what cannot be read or is
// larger; the name of a pipe does not make it wait.
MP_NODISCARD mp_status_t mp_file_read(const char *what, const char *path, char **out_data,
                                      size_t *out_size);

#endif  // MINIPOD_SIM_BASE_OS_FILE_H_
