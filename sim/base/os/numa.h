// libnuma, opened at run time: the package does not depend on it.
//
// Only those of its functions are used that allocate nothing, because the others end the process
// where memory is short. Thread-safe.
#ifndef MINIPOD_SIM_BASE_OS_NUMA_H_
#define MINIPOD_SIM_BASE_OS_NUMA_H_

// As numa(3), numaif.h and move_pages(2) have them.
#define MP_NUMA_FUNCTIONS(X)                                                                   \
  X(int, numa_available, (void))                                                               \
  X(int, numa_max_possible_node, (void))                                                       \
  X(long, mbind, (void *, unsigned long, int, const unsigned long *, unsigned long, unsigned)) \
  X(int, numa_move_pages, (int, unsigned long, void **, const int *, int *, int))

typedef struct {
#define MP_NUMA_MEMBER(result, name, parameters) result(*name) parameters;
  MP_NUMA_FUNCTIONS(MP_NUMA_MEMBER)
#undef MP_NUMA_MEMBER
} mp_numa_library_t;

// The library; NULL where there is none, or where it says that the system has no NUMA policy.
// Opened by the first call.
const mp_numa_library_t *mp_numa_library(void);
// What binds memory to nodes, for people: the library's file, or why it is not used. Static.
const char *mp_numa_name(void);

#endif  // MINIPOD_SIM_BASE_OS_NUMA_H_
