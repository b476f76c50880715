#include "sim/base/os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "sim/base/alloc.h"
#include "sim/base/os/system.h"

// Reads what can be read, at most one byte more than allowed.
static mp_status_t file_read_all(int file, const char *what, const char *path, char *data,
                                 size_t *out_size) {
  size_t size = 0;
  ssize_t got = 0;
  while (size <= MP_FILE_MOST && (got = read(file, data + size, MP_FILE_MOST + 1 - size)) > 0) {
    size += (size_t)got;
  }
  if (got < 0) {
    return mp_status_make(MP_INVALID_ARGUMENT, "cannot read %s '%s': %s", what, path,
                          strerror(errno));
  }
  if (size > MP_FILE_MOST) {
    return mp_status_make(MP_INVALID_ARGUMENT, "%s '%s': expected at most 1MiB", what, path);
  }
  *out_size = size;
  return NULL;
}

mp_status_t mp_file_read(const char *what, const char *path, char **out_data, size_t *out_size) {
  const int file = mp_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    const int cause = errno;
    return mp_status_make(mp_system_code(cause, MP_NOT_FOUND), "cannot open %s '%s': %s", what,
                          path, strerror(cause));
  }
  char *data = mp_malloc(MP_FILE_MOST + 1);
  mp_status_t status =
      data == NULL ? mp_status_out_of_memory() : file_read_all(file, what, path, data, out_size);
  close(file);
  if (status != NULL) {
    mp_free(data);
    return status;
  }
  *out_data = data;
  return NULL;
}
