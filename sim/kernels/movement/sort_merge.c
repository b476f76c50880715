// Sorting by merging in many lanes at once: each lane merges a stretch of one pair of runs. How
// many rows of each run come before a stretch is found by bisection, for all lanes at once.
#include <string.h>

#include "sim/base/assert.h"
#include "sim/kernels/lanes.h"
#include "sim/kernels/movement/sort.h"
#include "sim/kernels/shape.h"

enum { LANES = MP_REGION_MAX_LANES, SHORTEST_STRETCH = 32 };

// A lane and the rows that it merges, as positions in `order`.
typedef struct {
  int64_t a, a_end;  // the next row of the first run, and its end
  int64_t b, b_end;
  int64_t out;
  int64_t left;
} lane_t;

typedef struct {
  const mp_region_fn_t *comparator;
  const mp_sort_rows_t *rows;
  const uint32_t *order;
  int64_t *first, *second;  // [LANES]: places in `order` to compare; `compare` overwrites them
  uint8_t *less;            // [LANES]: whether the first comes before the second
  lane_t *lanes;            // [LANES]
  int64_t *low, *high;      // [LANES] of the bisection
  void **values;            // [2 * num_operands] of LANES elements
  void *registers;
} merge_t;

static size_t sort_merge_lanes_bytes(uint32_t num_operands) {
  return LANES * (4 * sizeof(int64_t) + sizeof(lane_t) + sizeof(uint8_t)) +
         (size_t)num_operands * 2 * (LANES * 16 + sizeof(void *)) + 64;
}

size_t mp_sort_merge_scratch(const mp_region_fn_t *comparator, uint32_t num_operands,
                             int64_t rows) {
  return mp_round_up_64((size_t)rows * sizeof(uint32_t)) +
         mp_round_up_64(sort_merge_lanes_bytes(num_operands)) +
         mp_region_fn_scratch_bytes(comparator);
}

// less[i] = comparator(row order[first[i]], row order[second[i]])
static void sort_merge_compare(const merge_t *merge, int64_t lanes) {
  const mp_sort_rows_t *rows = merge->rows;
  for (int64_t i = 0; i < lanes; ++i) {
    merge->first[i] = merge->order[merge->first[i]];
    merge->second[i] = merge->order[merge->second[i]];
  }
  for (uint32_t k = 0; k < rows->num_operands; ++k) {
    if (rows->data[k] == NULL) continue;
    mp_lanes_gather(rows->sizes[k], lanes, rows->data[k], merge->first, merge->values[2 * k]);
    mp_lanes_gather(rows->sizes[k], lanes, rows->data[k], merge->second, merge->values[2 * k + 1]);
  }
  void *out = merge->less;
  mp_region_fn_run(merge->comparator, lanes, (const void *const *)merge->values, rows->captures,
                   &out, merge->registers);
}

// A level with runs of `width` rows. Each pair of runs has `per_pair` stretches of `length` rows,
// each slice `per_slice`.
typedef struct {
  int64_t width, length, per_pair, per_slice;
} level_t;

// Sets up lane i for stretch `number` of a level. The number of rows before the stretch goes to
// `left` for the bisection.
static void sort_merge_begin_lane(const merge_t *merge, const level_t *level, int64_t i,
                                  int64_t number) {
  const int64_t width = level->width, rest = number % level->per_slice;
  int64_t base = number / level->per_slice * merge->rows->length, end = base + merge->rows->length;
  int64_t begin = base + rest / level->per_pair * 2 * width;
  int64_t diagonal = rest % level->per_pair * level->length;
  lane_t *lane = &merge->lanes[i];
  lane->a = begin;
  lane->a_end = mp_min_i64(begin + width, end);
  lane->b = lane->a_end;
  lane->b_end = mp_min_i64(begin + 2 * width, end);
  int64_t rows = lane->b_end - begin;
  diagonal = mp_min_i64(diagonal, rows);
  lane->out = begin + diagonal;
  lane->left = mp_min_i64(level->length, rows - diagonal);
  merge->low[i] = mp_max_i64(0, diagonal - (lane->b_end - lane->b));
  merge->high[i] = mp_min_i64(diagonal, lane->a_end - lane->a);
  MP_ASSERT(lane->left >= 0 && merge->low[i] >= 0 && merge->low[i] <= merge->high[i]);
  MP_ASSERT(lane->a <= lane->a_end && lane->b <= lane->b_end && lane->b_end <= end);
}

// Finds how many rows of the first run come before each lane's stretch.
static void sort_merge_bisect(const merge_t *merge, int64_t lanes) {
  for (bool searching = true; searching;) {
    searching = false;
    for (int64_t i = 0; i < lanes; ++i) {
      const lane_t *lane = &merge->lanes[i];
      int64_t middle = (merge->low[i] + merge->high[i]) / 2;
      bool active = merge->low[i] < merge->high[i];
      searching = searching || active;
      // If `middle` of the rows before the stretch are of the first run, this is the last one of
      // the second.
      merge->second[i] = active ? lane->a + middle : 0;
      merge->first[i] = active ? lane->b + (lane->out - lane->a) - 1 - middle : 0;
    }
    if (!searching) break;
    sort_merge_compare(merge, lanes);
    for (int64_t i = 0; i < lanes; ++i) {
      if (merge->low[i] >= merge->high[i]) continue;
      int64_t middle = (merge->low[i] + merge->high[i]) / 2;
      if (merge->less[i] != 0) {
        merge->high[i] = middle;
      } else {
        merge->low[i] = middle + 1;
      }
    }
  }
  for (int64_t i = 0; i < lanes; ++i) {
    lane_t *lane = &merge->lanes[i];
    int64_t diagonal = lane->out - lane->a;
    lane->a += merge->low[i];
    lane->b += diagonal - merge->low[i];
    MP_ASSERT(lane->a <= lane->a_end && lane->b <= lane->b_end);
  }
}

static void sort_merge_lanes(const merge_t *merge, int64_t lanes, int64_t steps, uint32_t *next) {
  for (int64_t step = 0; step < steps; ++step) {
    bool undecided = false;
    for (int64_t i = 0; i < lanes; ++i) {
      const lane_t *lane = &merge->lanes[i];
      bool open = lane->left > 0 && lane->a < lane->a_end && lane->b < lane->b_end;
      undecided = undecided || open;
      merge->first[i] = open ? lane->b : 0;
      merge->second[i] = open ? lane->a : 0;
    }
    if (undecided) sort_merge_compare(merge, lanes);
    for (int64_t i = 0; i < lanes; ++i) {
      lane_t *lane = &merge->lanes[i];
      if (lane->left == 0) continue;
      // Of equal rows, that of the first run comes first.
      bool second = lane->a == lane->a_end || (lane->b < lane->b_end && merge->less[i] != 0);
      next[lane->out++] = merge->order[second ? lane->b : lane->a];
      if (second) {
        ++lane->b;
      } else {
        ++lane->a;
      }
      --lane->left;
    }
  }
}

void mp_sort_by_merging(const mp_region_fn_t *comparator, const mp_sort_rows_t *rows,
                        uint32_t *order, void *scratch) {
  int64_t total = rows->num_slices * rows->length;
  MP_ASSERT(total >= 0 && total <= UINT32_MAX);  // rows are numbered in 32 bits
  merge_t merge = {.comparator = comparator, .rows = rows};
  uint32_t *from = order, *to = scratch;
  char *memory = (char *)scratch + mp_round_up_64((size_t)total * sizeof(uint32_t));
  merge.registers = memory + mp_round_up_64(sort_merge_lanes_bytes(rows->num_operands));
  merge.first = (int64_t *)(void *)memory;
  merge.second = merge.first + LANES;
  merge.low = merge.second + LANES;
  merge.high = merge.low + LANES;
  merge.lanes = (lane_t *)(void *)(merge.high + LANES);
  char *arrays = (char *)(merge.lanes + LANES);
  merge.values = (void **)(void *)(arrays + (size_t)rows->num_operands * 2 * LANES * 16);
  for (uint32_t k = 0; k < 2 * rows->num_operands; ++k) {
    merge.values[k] = arrays + (size_t)k * LANES * 16;
  }
  merge.less = (uint8_t *)(merge.values + 2 * rows->num_operands);
  for (int64_t i = 0; i < total; ++i) from[i] = (uint32_t)i;
  int64_t stretch = mp_max_i64(SHORTEST_STRETCH, total / LANES);
  for (int64_t width = 1; width < rows->length; width *= 2) {
    merge.order = from;
    level_t level = {.width = width, .length = mp_min_i64(2 * width, stretch)};
    level.per_pair = (2 * width + level.length - 1) / level.length;
    level.per_slice = (rows->length + 2 * width - 1) / (2 * width) * level.per_pair;
    int64_t stretches = level.per_slice * rows->num_slices;
    for (int64_t begin = 0; begin < stretches; begin += LANES) {
      int64_t lanes = mp_min_i64(stretches - begin, LANES);
      for (int64_t i = 0; i < lanes; ++i) {
        sort_merge_begin_lane(&merge, &level, i, begin + i);
      }
      sort_merge_bisect(&merge, lanes);
      sort_merge_lanes(&merge, lanes, level.length, to);
    }
    uint32_t *swap = from;
    from = to;
    to = swap;
  }
  if (from != order) memcpy(order, from, (size_t)total * sizeof(uint32_t));
}
