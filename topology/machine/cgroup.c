#include "topology/machine/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/alloc.h"
#include "sim/base/os/system.h"

enum {
  MP_CGROUP_PATH_MAX = 1024,
  MP_CGROUP_TEXT_MAX = 65536,
};

// The state of reading all limits.
typedef struct {
  mp_cgroup_limits_t limits;
  mp_status_t failure;  // the error of the first existing file that could not be opened
} look_t;

// Reads one limit of one directory. A reader does not change the limits when its file is missing.
typedef void (*reader_t)(const char *directory, look_t *look);

static void cgroup_fail_to_open(look_t *look, const char *path, int error) {
  if (look->failure != NULL || mp_system_code(error, MP_OK) == MP_OK) return;
  look->failure =
      mp_status_make(mp_system_code(error, MP_OK),
                     "cannot open '%s' for the limits of this process: %s", path, strerror(error));
}

// Reads a whole small file as a string; false if there is none or it does not fit.
static bool cgroup_read_text(look_t *look, const char *path, char *text, size_t size) {
  int file = mp_open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    cgroup_fail_to_open(look, path, errno);
    return false;
  }
  size_t used = 0;
  ssize_t got = 0;
  while (used < size - 1 && (got = read(file, text + used, size - 1 - used)) > 0) {
    used += (size_t)got;
  }
  close(file);
  text[used] = '\0';
  return got >= 0;
}

static bool cgroup_read_file_in(look_t *look, const char *directory, const char *name, char *text,
                                size_t size) {
  char path[MP_CGROUP_PATH_MAX + 64];
  int length = snprintf(path, sizeof(path), "%s/%s", directory, name);
  return length > 0 && (size_t)length < sizeof(path) && cgroup_read_text(look, path, text, size);
}

static void cgroup_limit_cpus(mp_cgroup_limits_t *limits, double quota, double period) {
  if (quota <= 0 || period <= 0) return;
  double cpus = quota / period;
  if (limits->cpus == 0 || cpus < limits->cpus) limits->cpus = cpus;
}

// Version 1 writes "no limit" as the largest number of pages it can hold.
static void cgroup_limit_memory(mp_cgroup_limits_t *limits, const char *text) {
  if (text[0] < '0' || text[0] > '9') return;  // "max"
  unsigned long long bytes = strtoull(text, NULL, 10);
  if (bytes == 0 || bytes >= (1ull << 62)) return;
  if (limits->memory == 0 || bytes < limits->memory) limits->memory = bytes;
}

static void cgroup_read_v2(const char *directory, look_t *look) {
  char text[128];
  double quota = 0;
  double period = 0;
  if (cgroup_read_file_in(look, directory, "cpu.max", text, sizeof(text)) &&
      sscanf(text, "%lf %lf", &quota, &period) == 2) {
    cgroup_limit_cpus(&look->limits, quota, period);
  }
  if (cgroup_read_file_in(look, directory, "memory.max", text, sizeof(text)))
    cgroup_limit_memory(&look->limits, text);
}

static void cgroup_read_v1_cpu(const char *directory, look_t *look) {
  char quota[64];
  char period[64];
  if (cgroup_read_file_in(look, directory, "cpu.cfs_quota_us", quota, sizeof(quota)) &&
      cgroup_read_file_in(look, directory, "cpu.cfs_period_us", period, sizeof(period))) {
    cgroup_limit_cpus(&look->limits, atof(quota), atof(period));
  }
}

static void cgroup_read_v1_memory(const char *directory, look_t *look) {
  char text[64];
  if (cgroup_read_file_in(look, directory, "memory.limit_in_bytes", text, sizeof(text))) {
    cgroup_limit_memory(&look->limits, text);
  }
}

// True if the comma-separated list holds the word.
static bool cgroup_list_has(const char *list, const char *word) {
  size_t size = strlen(word);
  for (const char *at = list; *at != '\0';) {
    size_t length = strcspn(at, ",");
    if (length == size && memcmp(at, word, size) == 0) return true;
    at += length;
    if (*at == ',') ++at;
  }
  return false;
}

// Finds this process's path in the hierarchy of `controller` ("" for version 2) in the text of
// /proc/self/cgroup, whose lines are "number:controllers:path".
static bool cgroup_find_path(const char *cgroup, const char *controller, char *path, size_t size) {
  for (const char *line = cgroup; *line != '\0';) {
    size_t length = strcspn(line, "\n");
    char text[MP_CGROUP_PATH_MAX];
    if (length < sizeof(text)) {
      memcpy(text, line, length);
      text[length] = '\0';
      char *controllers = strchr(text, ':');
      char *found = controllers == NULL ? NULL : strchr(controllers + 1, ':');
      if (found != NULL) {
        *found = '\0';
        bool same = controller[0] == '\0' ? controllers[1] == '\0'
                                          : cgroup_list_has(controllers + 1, controller);
        if (same && strlen(found + 1) < size) {
          strcpy(path, found + 1);
          return true;
        }
      }
    }
    line += length;
    if (*line == '\n') ++line;
  }
  return false;
}

// Reads the limits of the process's directory and all directories above it up to the mount point.
static void cgroup_read_chain(const char *root, const char *mount_point, const char *mount_root,
                              const char *path, reader_t reader, look_t *look) {
  // In a container without a cgroup namespace the path is the host's, and the mount shows only the
  // part below `mount_root`.
  size_t skip = strlen(mount_root);
  if (strcmp(mount_root, "/") == 0) skip = 0;
  if (strncmp(path, mount_root, skip) != 0) skip = strlen(path);
  char directory[MP_CGROUP_PATH_MAX];
  int length = snprintf(directory, sizeof(directory), "%s%s%s", root, mount_point, path + skip);
  if (length <= 0 || (size_t)length >= sizeof(directory)) return;
  size_t base = strlen(root) + strlen(mount_point);
  for (;;) {
    reader(directory, look);
    char *slash = strrchr(directory, '/');
    if (slash == NULL || (size_t)(slash - directory) < base) return;
    *slash = '\0';
  }
}

// One line of mountinfo: "id parent major:minor root mount-point options … - type source super".
static void cgroup_read_mount(const char *root, const char *line, const char *cgroup,
                              look_t *look) {
  char mount_root[MP_CGROUP_PATH_MAX];
  char mount_point[MP_CGROUP_PATH_MAX];
  char type[32];
  char super[256];
  const char *tail = strstr(line, " - ");
  if (tail == NULL || sscanf(tail, " - %31s %*s %255s", type, super) != 2) return;
  bool v2 = strcmp(type, "cgroup2") == 0;
  if (!v2 && strcmp(type, "cgroup") != 0) return;
  if (sscanf(line, "%*s %*s %*s %1023s %1023s", mount_root, mount_point) != 2) return;
  char path[MP_CGROUP_PATH_MAX];
  if (v2) {
    if (cgroup_find_path(cgroup, "", path, sizeof(path))) {
      cgroup_read_chain(root, mount_point, mount_root, path, cgroup_read_v2, look);
    }
    return;
  }
  static const struct {
    const char *controller;
    reader_t reader;
  } v1[] = {{"cpu", cgroup_read_v1_cpu}, {"memory", cgroup_read_v1_memory}};
  for (size_t i = 0; i < sizeof(v1) / sizeof(v1[0]); ++i) {
    if (cgroup_list_has(super, v1[i].controller) &&
        cgroup_find_path(cgroup, v1[i].controller, path, sizeof(path))) {
      cgroup_read_chain(root, mount_point, mount_root, path, v1[i].reader, look);
    }
  }
}

// Reads the limits of all control group mounts that /proc/self/mountinfo names.
static void cgroup_read_mounts(const char *root, const char *cgroup, look_t *look) {
  char path[MP_CGROUP_PATH_MAX];
  char *mounts = mp_malloc(MP_CGROUP_TEXT_MAX);
  if (mounts == NULL) {
    look->failure = mp_status_out_of_memory();
    return;
  }
  snprintf(path, sizeof(path), "%s/proc/self/mountinfo", root);
  if (cgroup_read_text(look, path, mounts, MP_CGROUP_TEXT_MAX)) {
    char *rest = NULL;
    for (char *line = strtok_r(mounts, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
      cgroup_read_mount(root, line, cgroup, look);
    }
  }
  mp_free(mounts);
}

mp_status_t mp_cgroup_limits(const char *root, mp_cgroup_limits_t *out_limits) {
  look_t look = {0};
  char path[MP_CGROUP_PATH_MAX];
  char cgroup[4096];
  snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
  if (cgroup_read_text(&look, path, cgroup, sizeof(cgroup))) {
    cgroup_read_mounts(root, cgroup, &look);
  }
  if (look.failure == NULL) *out_limits = look.limits;
  return look.failure;
}
