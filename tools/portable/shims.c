// What the libraries ask for and glibc 2.28 does not have, in terms of what it has; and what stands
// in for names in other people's archives (portable.cmake). All of it stays inside of the library
// that it is linked into.

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>

// ---- Newer than glibc 2.28 ----

// What these were before 2.33; the first argument is the version of the structure.
#ifdef __x86_64__
enum { STAT_VERSION = 1, MKNOD_VERSION = 0 };
#else  // processors that came to Linux later have one version of each
enum { STAT_VERSION = 0, MKNOD_VERSION = 0 };
#endif
int __xstat(int version, const char *path, struct stat *out);
int __lxstat(int version, const char *path, struct stat *out);
int __fxstat(int version, int file, struct stat *out);
int __fxstatat(int version, int folder, const char *path, struct stat *out, int flags);
int __xmknod(int version, const char *path, mode_t mode, dev_t *device);

int stat(const char *restrict path, struct stat *restrict out) {
  return __xstat(STAT_VERSION, path, out);
}

int lstat(const char *restrict path, struct stat *restrict out) {
  return __lxstat(STAT_VERSION, path, out);
}

int fstat(int file, struct stat *out) {
  return __fxstat(STAT_VERSION, file, out);
}

int fstatat(int folder, const char *restrict path, struct stat *restrict out, int flags) {
  return __fxstatat(STAT_VERSION, folder, path, out, flags);
}

// On 64-bit processors they are the same structure.
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one structure");

int stat64(const char *restrict path, struct stat64 *restrict out) {
  return __xstat(STAT_VERSION, path, (struct stat *)out);
}

int lstat64(const char *restrict path, struct stat64 *restrict out) {
  return __lxstat(STAT_VERSION, path, (struct stat *)out);
}

int fstat64(int file, struct stat64 *out) {
  return __fxstat(STAT_VERSION, file, (struct stat *)out);
}

int mknod(const char *path, mode_t mode, dev_t device) {
  return __xmknod(MKNOD_VERSION, path, mode, &device);
}

// LLVM asks how much is in use, for statistics that are never printed here.
struct mallinfo2 mallinfo2(void) {
  return (struct mallinfo2){0};
}

uint32_t arc4random(void) {
  uint32_t number = 0;
  while (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number)) {
    if (errno != EINTR) abort();
  }
  return number;
}

// libstdc++ counts references without atomic operations while this is true. It never is.
char __libc_single_threaded = 0;

// ---- In place of names in archives ----

FILE *minipod_portable_stdin, *minipod_portable_stdout, *minipod_portable_stderr;
char *minipod_portable_program_invocation_name;

__attribute__((constructor)) static void shims_set_variables(void) {
  minipod_portable_stdin = stdin;
  minipod_portable_stdout = stdout;
  minipod_portable_stderr = stderr;
  minipod_portable_program_invocation_name = program_invocation_name;
}

// No plugins.
void *minipod_portable_dlopen(const char *path, int flags) {
  (void)path;
  (void)flags;
  return NULL;
}

// No udev: without one hwloc asks for nothing more.
void *minipod_portable_udev_new(void) {
  return NULL;
}

void *minipod_portable_udev_unref(void *udev) {
  (void)udev;
  return NULL;
}

void *minipod_portable_udev_device_new_from_subsystem_sysname(void *udev, const char *subsystem,
                                                              const char *name) {
  (void)udev;
  (void)subsystem;
  (void)name;
  return NULL;
}

const char *minipod_portable_udev_device_get_property_value(void *device, const char *key) {
  (void)device;
  (void)key;
  return NULL;
}

void *minipod_portable_udev_device_unref(void *device) {
  (void)device;
  return NULL;
}
