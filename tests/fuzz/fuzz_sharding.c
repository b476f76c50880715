// GSPMD sharding strings. What is accepted must be a grid again, and must cover the tensor.
#include "sim/spmd/gspmd/gspmd.h"
#include "sim/spmd/sharding/placement.h"
#include "tests/fuzz/fuzz.h"

enum { NUM_PARTITIONS = 12 };

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  return fuzz_set_limits(argc, argv);
}

// Elements that some partition holds.
static int64_t count_covered(const mp_boxes_t *boxes, const mp_type_t *type) {
  uint8_t seen[16][16] = {{0}};
  int64_t covered = 0;
  for (uint32_t p = 0; p < NUM_PARTITIONS; ++p) {
    const int64_t *start = boxes->starts + (size_t)p * type->rank;
    const int64_t *size = boxes->sizes + (size_t)p * type->rank;
    const int64_t rows = type->rank == 2 ? size[1] : 1;
    for (int64_t i = 0; i < size[0]; ++i) {
      for (int64_t k = 0; k < rows; ++k) {
        const int64_t column = type->rank == 2 ? start[1] + k : 0;
        if (start[0] + i >= type->dims[0] || column >= 16) __builtin_trap();
        covered += seen[start[0] + i][column]++ == 0;
      }
    }
  }
  return covered;
}

// The first byte chooses the tensor.
static void place(mp_arena_t *arena, const uint8_t *data, size_t size) {
  const int64_t dims[2] = {data[0] % 16, data[0] / 16};
  const uint32_t rank = 1 + data[0] % 2;
  const mp_spmd_scope_t *scope = NULL;
  const mp_type_t *type = NULL;
  const mp_boxes_t *boxes = NULL;
  mp_tiles_t tiles;
  bool is_grid = false;
  int64_t elements = 0;
  if (mp_type_tensor(arena, MP_DTYPE_F32, dims, rank, &type) != NULL) return;
  if (mp_spmd_scope_top(arena, NUM_PARTITIONS, &scope) != NULL) return;
  const mp_str_t text = {(const char *)data + 1, size - 1};
  mp_status_t status = mp_placement_from_gspmd(scope, type, text, &boxes);
  if (status == NULL && boxes != NULL) {
    status = mp_placement_to_tiles(arena, boxes, &is_grid, &tiles);
    if (!is_grid || !mp_type_num_elements(type, &elements)) __builtin_trap();
    if (count_covered(boxes, type) != elements) __builtin_trap();
  }
  mp_status_release(status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mp_arena_t *arena = NULL;
  if (size == 0 || mp_arena_create(&arena) != NULL) return 0;
  place(arena, data, size);
  mp_arena_release(arena);
  return 0;
}
