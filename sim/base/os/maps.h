// How many memory maps the process has left.
//
// The system allows a process so many maps (vm.max_map_count). When they are used up, every further
// mapping fails, also those of the C library's malloc, and what depends on that ends in
// std::bad_alloc or abort. So code that makes many maps asks here first, and leaves a reserve.
// Thread-safe.
#ifndef MINIPOD_SIM_BASE_OS_MAPS_H_
#define MINIPOD_SIM_BASE_OS_MAPS_H_

#include <stdbool.h>
#include <stdint.h>

// Whether only the reserve is left. To be called before each mapping that may stay a map of its
// own. Maps are counted seldom while many are left (a count takes as long as there are many), and
// each time when they are few. False where the system does not say.
bool mp_maps_are_short(void);
// How many maps there are and may be, counted now. False where the system does not say.
bool mp_maps_count(uint64_t *out_count, uint64_t *out_limit);

#endif  // MINIPOD_SIM_BASE_OS_MAPS_H_
