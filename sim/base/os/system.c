#include "sim/base/os/system.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/base/fault.h"

mp_status_code_t mp_system_code(int error, mp_status_code_t otherwise) {
  const bool has_run_out =
      error == ENOMEM || error == EMFILE || error == ENFILE || error == ENOSPC || error == EAGAIN;
  return has_run_out ? MP_RESOURCE_EXHAUSTED : otherwise;
}

// Counted only while a test watches, like g_live in alloc.c: a sum that orders nothing.
static _Atomic int64_t g_mapped;

void *mp_mmap(size_t bytes, int protection, int flags, int file) {
  if (mp_fault_strikes(MP_FAULT_MMAP)) return MAP_FAILED;
  void *address = mmap(NULL, bytes, protection, flags, file, 0);
  if (address != MAP_FAILED && mp_fault_is_watched()) {
    atomic_fetch_add(&g_mapped, (int64_t)bytes);
  }
  return address;
}

void mp_munmap(void *address, size_t bytes) {
  if (mp_fault_is_watched()) atomic_fetch_sub(&g_mapped, (int64_t)bytes);
  (void)munmap(address, bytes);
}

int64_t mp_mmap_live(void) {
  return atomic_load(&g_mapped);
}

int mp_memfd_create(const char *name, unsigned flags) {
  return mp_fault_strikes(MP_FAULT_MEMFD) ? -1 : memfd_create(name, flags);
}

int mp_open(const char *path, int flags) {
  return mp_fault_strikes(MP_FAULT_OPEN) ? -1 : open(path, flags);
}

FILE *mp_fopen(const char *path, const char *mode) {
  return mp_fault_strikes(MP_FAULT_OPEN) ? NULL : fopen(path, mode);
}

FILE *mp_fopen_out(const char *path, const char *mode) {
  if (mp_fault_strikes(MP_FAULT_OPEN)) return NULL;
  const int how = mode[0] == 'a' ? O_APPEND : O_TRUNC;
  const int file = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | how, 0666);
  if (file < 0) return NULL;
  FILE *stream = fdopen(file, mode);
  if (stream == NULL) {
    const int cause = errno;
    close(file);
    errno = cause;
  }
  return stream;
}

void *mp_dlopen(const char *name) {
  return mp_fault_strikes(MP_FAULT_OPEN) ? NULL : dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

const char *mp_system_text(int error) {
  return error == ELOOP ? "it is a symbolic link, which is not followed" : strerror(error);
}

int mp_thread_create(pthread_t *out_thread, size_t stack, void *(*run)(void *context),
                     void *context) {
  if (mp_fault_strikes(MP_FAULT_THREAD)) return errno;
  pthread_attr_t attributes;
  const int no_memory = pthread_attr_init(&attributes);
  if (no_memory != 0) return no_memory;
  if (stack != 0) (void)pthread_attr_setstacksize(&attributes, stack);
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  const int error = pthread_create(out_thread, &attributes, run, context);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  pthread_attr_destroy(&attributes);
  return error;
}
