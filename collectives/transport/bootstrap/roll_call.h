// The roll call: finds the ranks of this host that have begun to join, without MPI's help.
//
// MPI_Init waits for all ranks without saying which ones are missing. So each process that begins
// to join takes a name in the kernel's abstract socket space, made of the job's name and its rank,
// and the names that are not taken show which ranks are missing. A name disappears with its
// process; nothing is ever sent.
#ifndef MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_ROLL_CALL_H_
#define MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_ROLL_CALL_H_

#include <stdint.h>

#include "collectives/transport/bootstrap/launcher.h"
#include "sim/base/str.h"

// Takes this process's name. Returns a file descriptor, which the caller closes when all ranks have
// joined; -1 when the launcher names no job, or the name cannot be taken.
int mp_roll_call_answer(const mp_launcher_t *launcher);
// Appends "; not heard of: rank 1, rank 3". Appends nothing when none is missing, or when the job
// has other hosts, whose names are not visible here.
void mp_roll_call_missing(const mp_launcher_t *launcher, mp_strbuf_t *text);

#endif  // MINIPOD_COLLECTIVES_TRANSPORT_BOOTSTRAP_ROLL_CALL_H_
