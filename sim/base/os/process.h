// How the library notices a fork.
//
// After a fork the child has a copy of all our memory but none of our threads, and locks that other
// threads held stay locked for ever. Objects that depend on threads therefore note in which
// generation of processes they were made, and refuse to work in a later one.
#ifndef MINIPOD_SIM_BASE_OS_PROCESS_H_
#define MINIPOD_SIM_BASE_OS_PROCESS_H_

#include <stdbool.h>
#include <stdint.h>

// Starts counting forks; to be called before making an object that must notice a fork. Thread-safe,
// and cheap when repeated.
void mp_process_watch_forks(void);
// The generation: 0 in the process that first called mp_process_watch_forks, 1 in its children, and
// so on. One relaxed load.
uint32_t mp_process_generation(void);

// A file that tells when another process of this host ends, which the caller closes; -1 where the
// kernel has none (before 5.3), and when there is no such process.
int mp_process_open(int64_t pid);
// Whether the process has ended. With its file `file` it counts as ended at once, without (-1) when
// its parent has asked for its exit status.
bool mp_process_has_ended(int64_t pid, int file);
// Which process of which machine this is: what others need to see that it has ended. Gaps and the
// rest of texts are zero.
typedef struct {
  int64_t pid;
  uint64_t start;    // in ticks since the machine started: a later process may have this number
  uint64_t numbers;  // the kernel's name of the set of processes that share numbers; 0: not known
  char boot_id[40];  // of the running kernel; "": not known
} mp_process_id_t;

// This process.
mp_process_id_t mp_process_self(void);
// Whether a process has ended, as far as this one, `self`, can see it: false, too, of one on
// another machine or in another container.
bool mp_process_is_gone(const mp_process_id_t *self, const mp_process_id_t *id);
// Whether both are the same process.
bool mp_process_is_same(const mp_process_id_t *a, const mp_process_id_t *b);
// Waits for the end of another process of this host, at most so long; false when it goes on.
bool mp_process_await_end(int64_t pid, double seconds);

#endif  // MINIPOD_SIM_BASE_OS_PROCESS_H_
