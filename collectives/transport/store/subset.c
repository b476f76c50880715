#include "collectives/transport/store/subset.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/base/hash.h"

static mp_status_t subset_refuse(const mp_options_t *options, const char *why) {
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "option 'subset': expected processes of the job, each once, such as "
                        "0,2,3; got '%.200s': %s",
                        options->subset, why);
}

// The number at `*text`, which is moved behind it and the comma that follows; -1: there is none.
static int64_t subset_next(const char **text) {
  if (!isdigit((unsigned char)**text)) return -1;
  char *end;
  const unsigned long long number = strtoull(*text, &end, 10);
  const bool is_last = *end == '\0';
  if (number > INT32_MAX || (!is_last && (*end != ',' || end[1] == '\0'))) return -1;
  *text = is_last ? end : end + 1;
  return (int64_t)number;
}

static bool subset_is_before(const char *list, const char *at, int64_t number) {
  while (list < at) {
    if (subset_next(&list) == number) return true;
  }
  return false;
}

mp_status_t mp_subset_read(const mp_options_t *options, mp_subset_t *out_subset) {
  mp_subset_t subset = {.rank = UINT32_MAX, .name = MP_HASH_START};
  const char *text = options->subset;
  do {
    const char *at = text;
    const int64_t number = subset_next(&text);
    if (number < 0) return subset_refuse(options, "not a list of numbers");
    if (options->num_nodes != MP_OPTION_UNSET && number >= options->num_nodes) {
      return subset_refuse(options, "the job has fewer processes (num_nodes)");
    }
    if (subset_is_before(options->subset, at, number)) {
      return subset_refuse(options, "a process is listed twice");
    }
    if (number == options->node_id) subset.rank = subset.size;
    subset.name = mp_hash_bytes(subset.name, &number, sizeof(number));
    subset.size += 1;
  } while (*text != '\0');
  if (subset.rank == UINT32_MAX) {
    return subset_refuse(options, "this process (node_id) is not among them");
  }
  subset.job_rank = (uint32_t)options->node_id;
  if (options->num_nodes != MP_OPTION_UNSET) subset.job_size = (uint32_t)options->num_nodes;
  *out_subset = subset;
  return NULL;
}

mp_subset_t mp_subset_of_numbers(const mp_options_t *options, uint32_t job_rank,
                                 uint32_t job_size) {
  // Differs from the input of any list, which has another number of bytes.
  const uint32_t size = (uint32_t)options->num_nodes;
  return (mp_subset_t){.rank = (uint32_t)options->node_id,
                       .size = size,
                       .job_rank = job_rank,
                       .job_size = job_size,
                       .name = mp_hash_bytes(MP_HASH_START, &size, sizeof(size))};
}

void mp_subset_folder(const mp_subset_t *subset, const char *what,
                      char folder[MP_STORE_FOLDER_BYTES]) {
  snprintf(folder, MP_STORE_FOLDER_BYTES, "minipod/%016" PRIx64 "/%s", subset->name, what);
}
