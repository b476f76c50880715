#include "collectives/transport/tpu/tpu_job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MP_TPU_MOST_PROCESSES = 1 << 16 };

// ---- Variables ----

// The first variable of the two that is set and not empty; NULL: none is.
static const char *tpu_job_find(const char *const names[2], const char **out_text) {
  for (int i = 0; i < 2; ++i) {
    const char *text = names[i] == NULL ? NULL : getenv(names[i]);
    if (text == NULL || text[0] == '\0') continue;
    *out_text = text;
    return names[i];
  }
  return NULL;
}

// A number from 0 to `most`; false if the text is none.
static bool tpu_job_number(mp_str_t text, int64_t most, int64_t *out_value) {
  long long value;
  if (!mp_str_parse_i64(mp_str_trim(text), &value) || value < 0 || value > most) return false;
  *out_value = value;
  return true;
}

static uint32_t tpu_job_count(const char *list) {
  uint32_t count = 1;
  for (const char *at = list; (at = strchr(at, ',')) != NULL; ++at) ++count;
  return count;
}

// ---- Addresses ----

mp_str_t mp_tpu_job_address(const mp_tpu_job_t *job, uint32_t rank) {
  mp_str_t rest = mp_str(job->addresses), address = MP_STR("");
  for (uint32_t i = 0; i <= rank; ++i) address = mp_str_cut(&rest, ',');
  return mp_str_trim(address);
}

void mp_tpu_job_first(const mp_tpu_job_t *job, char host[MP_TPU_HOST_BYTES],
                      char port[MP_TPU_PORT_BYTES]) {
  mp_str_t name;
  uint16_t number;
  (void)mp_tpu_split_address(mp_tpu_job_address(job, 0), &name, &number);
  snprintf(host, MP_TPU_HOST_BYTES, "%.*s", MP_STR_SHOWN(name, MP_TPU_HOST_BYTES - 1));
  snprintf(port, MP_TPU_PORT_BYTES, "%" PRIu16, number);
}

bool mp_tpu_split_address(mp_str_t address, mp_str_t *out_host, uint16_t *out_port) {
  size_t colon = address.size;
  while (colon > 0 && address.data[colon - 1] != ':' && address.data[colon - 1] != ']') --colon;
  int64_t port = MP_TPU_PORT;
  bool has_port = colon > 1 && address.data[colon - 1] == ':';
  // Of several colons, all are of an IPv6 address, unless that is in brackets.
  if (has_port && address.data[colon - 2] != ']') {
    has_port = memchr(address.data, ':', colon - 1) == NULL;
  }
  if (has_port) {
    const mp_str_t text = {address.data + colon, address.size - colon};
    has_port = tpu_job_number(text, UINT16_MAX, &port);
  }
  mp_str_t host = {address.data, has_port ? colon - 1 : address.size};
  if (host.size > 2 && host.data[0] == '[' && host.data[host.size - 1] == ']') {
    host = (mp_str_t){host.data + 1, host.size - 2};
  }
  *out_host = host;
  *out_port = (uint16_t)port;
  return has_port;
}

// Checks the list of addresses; sets the number of processes.
static mp_status_t tpu_job_read_addresses(mp_tpu_job_t *job) {
  const uint32_t size = tpu_job_count(job->addresses);
  if (size > MP_TPU_MOST_PROCESSES) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "%s lists %" PRIu32 " processes; a job has at most %d",
                          job->list_variable, size, MP_TPU_MOST_PROCESSES);
  }
  mp_str_t rest = mp_str(job->addresses);
  for (uint32_t rank = 0; rank < size; ++rank) {
    if (mp_str_trim(mp_str_cut(&rest, ',')).size != 0) continue;
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "%s is '%.200s': the address of process %" PRIu32
                          " is empty; expected one HOST:PORT per process, separated by commas",
                          job->list_variable, job->addresses, rank);
  }
  job->size = size;
  return NULL;
}

// ---- This process ----

static const char *const k_port_variables[2] = {"TPU_PROCESS_PORT", NULL};

static mp_status_t tpu_job_read_port(int64_t *out_port) {
  const char *text = NULL;
  *out_port = -1;
  if (tpu_job_find(k_port_variables, &text) == NULL) return NULL;
  if (tpu_job_number(mp_str(text), UINT16_MAX, out_port) && *out_port != 0) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "TPU_PROCESS_PORT is '%.100s': expected the port of this process", text);
}

// The process with this port, if it is the only one; false otherwise.
static bool tpu_job_find_port(const mp_tpu_job_t *job, int64_t port, uint32_t *out_rank) {
  mp_str_t rest = mp_str(job->addresses);
  uint32_t count = 0;
  for (uint32_t rank = 0; rank < job->size; ++rank) {
    mp_str_t host;
    uint16_t own;
    (void)mp_tpu_split_address(mp_str_trim(mp_str_cut(&rest, ',')), &host, &own);
    if (own != port) continue;
    *out_rank = rank;
    ++count;
  }
  return count == 1;
}

static mp_status_t tpu_job_read_rank(mp_tpu_job_t *job, int64_t port) {
  const char *text = NULL;
  static const char *const names[2] = {"CLOUD_TPU_TASK_ID", "TPU_WORKER_ID"};
  job->rank_variable = tpu_job_find(names, &text);
  if (job->rank_variable == NULL) {
    job->rank_variable = k_port_variables[0];
    if (port >= 0 && tpu_job_find_port(job, port, &job->rank)) return NULL;
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "%s lists %" PRIu32
                          " processes, but neither CLOUD_TPU_TASK_ID nor TPU_WORKER_ID has the "
                          "number of this one",
                          job->list_variable, job->size);
  }
  int64_t rank;
  if (!tpu_job_number(mp_str(text), UINT32_MAX, &rank)) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "%s is '%.100s': expected the number of this process, 0 to %" PRIu32,
                          job->rank_variable, text, job->size - 1);
  }
  if (rank >= job->size) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "%s is %" PRId64 ", but %s lists %" PRIu32 " processes, 0 to %" PRIu32,
                          job->rank_variable, rank, job->list_variable, job->size, job->size - 1);
  }
  job->rank = (uint32_t)rank;
  return NULL;
}

static mp_status_t tpu_job_check_port(const mp_tpu_job_t *job, int64_t port) {
  mp_str_t host;
  uint16_t own;
  const mp_str_t address = mp_tpu_job_address(job, job->rank);
  if (port < 0 || !mp_tpu_split_address(address, &host, &own) || own == port) return NULL;
  return mp_status_make(
      MP_INVALID_ARGUMENT,
      "TPU_PROCESS_PORT is %" PRId64 ", but %s has the address %.*s for process %" PRIu32 " (%s)",
      port, job->list_variable, MP_STR_SHOWN(address, 200), job->rank, job->rank_variable);
}

// ---- Bounds ----

static mp_status_t tpu_job_read_bounds(const char *const names[2], mp_tpu_bounds_t *bounds) {
  const char *text = NULL;
  bounds->variable = tpu_job_find(names, &text);
  if (bounds->variable == NULL) return NULL;
  for (int d = 0; d < MP_TPU_DIMS; ++d) bounds->sizes[d] = 1;
  bool is_valid = tpu_job_count(text) <= MP_TPU_DIMS;
  mp_str_t rest = mp_str(text);
  for (bounds->num_dims = 0; is_valid && rest.size != 0; ++bounds->num_dims) {
    int64_t size = 0;
    is_valid = tpu_job_number(mp_str_cut(&rest, ','), MP_TPU_MOST_PROCESSES, &size) && size > 0;
    bounds->sizes[bounds->num_dims] = (int32_t)size;
  }
  if (is_valid) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "%s is '%.100s': expected the sizes of a grid, such as 2,2,1",
                        bounds->variable, text);
}

static int64_t tpu_job_product(const mp_tpu_bounds_t *bounds) {
  int64_t product = 1;
  for (int d = 0; d < MP_TPU_DIMS; ++d) {
    product *= bounds->sizes[d];
    if (product > INT32_MAX) return INT32_MAX;
  }
  return product;
}

static mp_status_t tpu_job_check_bounds(const mp_tpu_job_t *job) {
  const int64_t count = tpu_job_product(&job->processes);
  if (count == job->size) return NULL;
  const char *text = getenv(job->processes.variable);
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "%s is %.100s, a grid of %" PRId64 " process%s, but %s lists %" PRIu32,
                        job->processes.variable, text == NULL ? "" : text, count,
                        count == 1 ? "" : "es", job->list_variable, job->size);
}

static mp_status_t tpu_job_read_grids(mp_tpu_job_t *job) {
  static const char *const processes[2] = {"TPU_PROCESS_BOUNDS", "TPU_HOST_BOUNDS"};
  static const char *const chips[2] = {"TPU_CHIPS_PER_PROCESS_BOUNDS", "TPU_CHIPS_PER_HOST_BOUNDS"};
  MP_RETURN_IF_ERROR(tpu_job_read_bounds(processes, &job->processes));
  MP_RETURN_IF_ERROR(tpu_job_read_bounds(chips, &job->chips));
  if (job->processes.variable == NULL || job->chips.variable == NULL) {
    job->processes.variable = job->chips.variable = NULL;
    return NULL;
  }
  return tpu_job_check_bounds(job);
}

// ---- Visible chips ----

// Whether the text before `end` has this number.
static bool tpu_job_is_listed(const char *text, const char *end, int64_t number) {
  mp_str_t rest = {text, (size_t)(end - text)};
  int64_t other;
  while (rest.size != 0) {
    if (tpu_job_number(mp_str_cut(&rest, ','), INT32_MAX, &other) && other == number) return true;
  }
  return false;
}

static mp_status_t tpu_job_read_visible(mp_tpu_job_t *job) {
  static const char *const names[2] = {"TPU_VISIBLE_CHIPS", "TPU_VISIBLE_DEVICES"};
  const char *text = NULL;
  const char *name = tpu_job_find(names, &text);
  job->visible = name == NULL ? "" : text;
  if (name == NULL) return NULL;
  mp_str_t rest = mp_str(text);
  while (rest.size != 0) {
    const char *at = rest.data;
    int64_t chip;
    if (tpu_job_number(mp_str_cut(&rest, ','), INT32_MAX, &chip) &&
        !tpu_job_is_listed(text, at, chip)) {
      continue;
    }
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "%s is '%.100s': expected the numbers of different chips of the host, "
                          "such as 0,1",
                          name, text);
  }
  const int64_t count = tpu_job_count(text);
  if (job->chips.variable == NULL || count == tpu_job_product(&job->chips)) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "%s is %.100s, which are %" PRId64 " chips, but %s has %" PRId64
                        " per process",
                        name, text, count, job->chips.variable, tpu_job_product(&job->chips));
}

// ---- The job ----

// Processes of several slices find each other through the framework's coordinator.
static bool tpu_job_has_slices(void) {
  const char *text = getenv("MEGASCALE_NUM_SLICES");
  int64_t count;
  return text != NULL && tpu_job_number(mp_str(text), INT32_MAX, &count) && count > 1;
}

mp_status_t mp_tpu_job_read(const mp_options_t *options, mp_tpu_job_t *out_job) {
  mp_tpu_job_t job = {.size = 0};
  *out_job = job;
  const bool is_tpu = strcmp(options->platform, "tpu") == 0;
  const char *const lists[2] = {"TPU_PROCESS_ADDRESSES", is_tpu ? "TPU_WORKER_HOSTNAMES" : NULL};
  job.list_variable = tpu_job_find(lists, &job.addresses);
  if (job.list_variable == NULL || tpu_job_count(job.addresses) == 1 || tpu_job_has_slices()) {
    return NULL;
  }
  int64_t port;
  MP_RETURN_IF_ERROR(tpu_job_read_addresses(&job));
  MP_RETURN_IF_ERROR(tpu_job_read_port(&port));
  MP_RETURN_IF_ERROR(tpu_job_read_rank(&job, port));
  MP_RETURN_IF_ERROR(tpu_job_check_port(&job, port));
  MP_RETURN_IF_ERROR(tpu_job_read_grids(&job));
  MP_RETURN_IF_ERROR(tpu_job_read_visible(&job));
  *out_job = job;
  return NULL;
}
