// Subsets: which processes of the job a client has, if not all of them.
//
// The option `subset` lists them ("0,2,3", ranks of the job), and then node_id and num_nodes say
// which of the job's processes this is, as in JAX. Without it, a client whose num_nodes is smaller
// than the job is one of that many processes, which its node_id numbers.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_STORE_SUBSET_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_STORE_SUBSET_H_

#include "collectives/transport/store/store_talk.h"
#include "sim/base/options.h"

typedef struct {
  uint32_t rank, size;  // this process, among those of the subset
  uint32_t job_rank,
      job_size;   // and among all processes of the job; sizes that nothing gives are 0
  uint64_t name;  // the same in all processes of the subset, and different in other subsets
} mp_subset_t;

// Reads the option `subset`. INVALID_ARGUMENT when it is no list of different processes of the job,
// or lacks this process (node_id).
MP_NODISCARD mp_status_t mp_subset_read(const mp_options_t *options, mp_subset_t *out_subset);
// The subset of num_nodes processes in which this one has the rank node_id; these are given. In the
// job it has `job_rank` of `job_size`.
mp_subset_t mp_subset_of_numbers(const mp_options_t *options, uint32_t job_rank, uint32_t job_size);
// The folder of the job's store for values of its processes, such as their hellos.
void mp_subset_folder(const mp_subset_t *subset, const char *what,
                      char folder[MP_STORE_FOLDER_BYTES]);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_STORE_SUBSET_H_
