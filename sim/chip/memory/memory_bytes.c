// How large values are in a chip's memory.
#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/memory/chip_memory.h"

uint64_t mp_memory_round(const mp_chip_figures_t *figures, double bytes) {
  // Allocations begin at multiples of so many bytes.
  enum { OF_TPUS = 512, OF_OTHERS = 256 };
  const uint64_t to = figures->compiler == MP_CHIP_COMPILER_TPU ? OF_TPUS : OF_OTHERS;
  return ((uint64_t)bytes + to - 1) / to * to;
}

uint64_t mp_memory_bytes(const mp_chip_figures_t *figures, const mp_type_t *type) {
  return mp_memory_round(figures, mp_chip_fusion_bytes_of(figures, type));
}
