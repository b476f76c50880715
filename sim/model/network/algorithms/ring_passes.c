// Passes on rings.
#include <math.h>

#include "sim/model/network/algorithms/algorithms.h"

// The latencies of the links between neighbours in one direction of a ring. Everything passes all
// of them but one: at worst, all but the shortest.
typedef struct {
  double sum, shortest;
} ring_latency_t;

static void ring_passes_add(ring_latency_t *ring, double latency, bool is_first) {
  ring->sum += latency;
  if (is_first || latency < ring->shortest) ring->shortest = latency;
}

// One transfer: all steps of a pass on a ring of each group.
static void ring_passes_transfer(mp_builder_t *builder, const mp_groups_of_devices_t *groups,
                                 double bytes, bool is_both_ways) {
  const uint32_t size = groups->size;
  double longest = 0;
  for (uint32_t g = 0; g < groups->count; ++g) {
    const int32_t *devices = groups->devices + (size_t)g * size;
    ring_latency_t up = {0}, down = {0};
    for (uint32_t i = 0; i < size; ++i) {
      const int32_t next = devices[i + 1 == size ? 0 : i + 1];
      ring_passes_add(&up, mp_builder_flow(builder, devices[i], next, 1), i == 0);
      if (is_both_ways) {
        ring_passes_add(&down, mp_builder_flow(builder, next, devices[i], 1), i == 0);
      }
    }
    longest = fmax(longest, fmax(up.sum - up.shortest, down.sum - down.shortest));
  }
  mp_builder_end_steps(builder, bytes / size / (is_both_ways ? 2 : 1), size - 1, longest);
}

void mp_ring_pass(mp_builder_t *builder, const mp_groups_of_devices_t *groups, double bytes,
                  bool is_both_ways) {
  ring_passes_transfer(builder, groups, bytes, is_both_ways);
  mp_builder_end_stage(builder);
}

// The lines along all dimensions.
static void ring_passes_lines(mp_builder_t *builder, mp_arena_t *scratch,
                              const mp_groups_of_devices_t *boxes, mp_groups_of_devices_t *lines) {
  for (uint32_t d = 0; d < boxes->num_dims; ++d) {
    mp_builder_fail(builder, mp_device_groups_lines(scratch, boxes, d, &lines[d]));
  }
}

void mp_dimension_pass(mp_builder_t *builder, mp_arena_t *scratch,
                       const mp_groups_of_devices_t *boxes, double bytes, bool is_gather) {
  mp_groups_of_devices_t lines[MP_GROUP_MAX_DIMS] = {0};
  double left[MP_GROUP_MAX_DIMS];  // bytes before each dimension of a reduce_scatter
  ring_passes_lines(builder, scratch, boxes, lines);
  for (uint32_t d = 0; d < boxes->num_dims; ++d) {
    left[d] = d == 0 ? bytes : left[d - 1] / boxes->dims[d - 1];
  }
  for (uint32_t i = 0; i < boxes->num_dims && builder->status == NULL; ++i) {
    const uint32_t d = is_gather ? boxes->num_dims - 1 - i : i;
    mp_ring_pass(builder, &lines[d], left[d], true);
  }
}

// Divides bytes among the dimensions in proportion to the speed of their rings, so that the parts
// that begin with each of them are done with it at the same time.
static void ring_passes_divide(mp_builder_t *builder, const mp_groups_of_devices_t *lines,
                               uint32_t num_dims, double bytes, double *parts) {
  static const double much = 1e18;  // bytes beside which no latency counts
  double speeds = 0;
  for (uint32_t d = 0; d < num_dims && builder->status == NULL; ++d) {
    mp_builder_t estimate;
    mp_builder_init(&estimate, builder->network, MP_BUILD_ESTIMATE, builder->arena);
    mp_ring_pass(&estimate, &lines[d], much, true);
    parts[d] = much / estimate.seconds;
    speeds += parts[d];
    mp_builder_fail(builder, mp_builder_status(&estimate));
    mp_builder_deinit(&estimate);
  }
  for (uint32_t d = 0; d < num_dims; ++d) parts[d] *= bytes / speeds;
}

// One turn: each part along its dimension of this turn.
static void ring_passes_turn(mp_builder_t *builder, const mp_groups_of_devices_t *lines,
                             uint32_t num_dims, const double *parts, uint32_t turn) {
  for (uint32_t part = 0; part < num_dims; ++part) {
    double left = parts[part];
    for (uint32_t t = 0; t < turn; ++t) left /= lines[(part + t) % num_dims].size;
    ring_passes_transfer(builder, &lines[(part + turn) % num_dims], left, true);
  }
  mp_builder_end_stage(builder);
}

void mp_multiport_pass(mp_builder_t *builder, mp_arena_t *scratch,
                       const mp_groups_of_devices_t *boxes, double bytes, bool is_gather) {
  mp_groups_of_devices_t all_lines[MP_GROUP_MAX_DIMS] = {0};
  double parts[MP_GROUP_MAX_DIMS] = {0};
  ring_passes_lines(builder, scratch, boxes, all_lines);
  // The cores of a chip share its links: between them first.
  const uint32_t num_dims = boxes->num_dims - boxes->has_cores;
  const mp_groups_of_devices_t *lines = all_lines + boxes->has_cores;
  if (boxes->has_cores && !is_gather) mp_ring_pass(builder, &all_lines[0], bytes, true);
  ring_passes_divide(builder, lines, num_dims, boxes->has_cores ? bytes / boxes->dims[0] : bytes,
                     parts);
  for (uint32_t i = 0; i < num_dims && builder->status == NULL; ++i) {
    ring_passes_turn(builder, lines, num_dims, parts, is_gather ? num_dims - 1 - i : i);
  }
  if (boxes->has_cores && is_gather) mp_ring_pass(builder, &all_lines[0], bytes, true);
}
