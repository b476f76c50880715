#include "sim/base/os/gzip.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/os/system.h"

// Of zlib.h, whose names these are.
enum { Z_OK = 0, Z_SYNC_FLUSH = 2 };
typedef struct gzFile_s *gzFile;

static struct {
  gzFile (*dopen)(int file, const char *mode);
  int (*write)(gzFile file, const void *bytes, unsigned size);
  int (*flush)(gzFile file, int how);
  int (*close)(gzFile file);
} g_zlib;
static bool g_is_there;

static bool gzip_find(void *library, const char *name, void *out_function) {
  void *found = dlsym(library, name);
  memcpy(out_function, &found, sizeof(found));
  return found != NULL;
}

static void gzip_load(void) {
  void *library = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return;
  g_is_there = gzip_find(library, "gzdopen", &g_zlib.dopen) &&
               gzip_find(library, "gzwrite", &g_zlib.write) &&
               gzip_find(library, "gzflush", &g_zlib.flush) &&
               gzip_find(library, "gzclose", &g_zlib.close);
}

bool mp_gzip_is_named(const char *path) {
  const size_t size = strlen(path);
  return size > 3 && strcmp(path + size - 3, ".gz") == 0;
}

// Each write is what the stream was flushed for, so that it is on disk at once.
static ssize_t gzip_write(void *cookie, const char *bytes, size_t size) {
  const unsigned part = size > 1u << 30 ? 1u << 30 : (unsigned)size;
  if (g_zlib.write(cookie, bytes, part) != (int)part) return 0;
  return g_zlib.flush(cookie, Z_SYNC_FLUSH) == Z_OK ? (ssize_t)part : 0;
}

static int gzip_close(void *cookie) {
  return g_zlib.close(cookie) == Z_OK ? 0 : EOF;
}

// zlib owns a descriptor of its own: that of `file` goes with it.
static gzFile gzip_of(FILE *file) {
  const int descriptor = dup(fileno(file));
  gzFile zipped = descriptor < 0 ? NULL : g_zlib.dopen(descriptor, "wb");
  if (zipped == NULL && descriptor >= 0) close(descriptor);
  return zipped;
}

mp_status_t mp_gzip_open(FILE *file, FILE **out_stream) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, gzip_load);
  if (!g_is_there) {
    (void)fclose(file);
    return mp_status_make(MP_UNAVAILABLE, "compressing needs libz.so.1 (Debian: zlib1g)");
  }
  gzFile zipped = gzip_of(file);
  (void)fclose(file);
  const cookie_io_functions_t functions = {.write = gzip_write, .close = gzip_close};
  FILE *stream = zipped == NULL ? NULL : fopencookie(zipped, "w", functions);
  if (stream != NULL) {
    *out_stream = stream;
    return NULL;
  }
  if (zipped != NULL) (void)g_zlib.close(zipped);
  return mp_status_make(MP_RESOURCE_EXHAUSTED, "compressing it: %s", mp_system_text(errno));
}
