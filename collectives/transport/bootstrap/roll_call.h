// The roll call: which ranks of this host have got as far as joining, without MPI's help.
//
// Each process that begins to join takes a name in the kernel's abstract socket space, made of the
// job's and its rank. MPI_Init waits for all without saying for whom; these names tell. They are
// gone when the process is; nothing is ever sent.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_ROLL_CALL_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_ROLL_CALL_H_

#include <stdint.h>

#include "collectives/transport/bootstrap/launcher.h"
#include "sim/base/str.h"

// A file descriptor to close when the job has come together; -1 where the launcher names no job.
int mp_roll_call_answer(const mp_launcher_t *launcher);
// Appends "; not heard of: rank 1, rank 3", or nothing when all are there, or when the job has
// other hosts, of which these names tell nothing.
void mp_roll_call_missing(const mp_launcher_t *launcher, mp_strbuf_t *text);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_ROLL_CALL_H_
