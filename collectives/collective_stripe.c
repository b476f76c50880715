#include "collectives/collective_stripe.h"

#include "collectives/collective_parts.h"
#include "sim/base/alloc.h"

enum {
  MP_MAX_STRIPES = 256,
  // Ranges begin at multiples of this many elements, so that rows of them stay aligned.
  MP_STRIPE_GRAIN = 64,
};

bool mp_collective_is_striped(const mp_collective_t *collective, bool spans_hosts) {
  return spans_hosts && collective->kind == MP_COLLECTIVE_ALL_REDUCE;
}

uint32_t mp_collective_num_stripes(const mp_collective_t *collective,
                                   const mp_group_layout_t *layout) {
  if (!mp_collective_is_striped(collective, layout->spans_hosts)) return 1;
  double bytes = mp_operands_bytes(collective);
  // Two processes usually send each other everything (schedule_reduce.c), more processes one share
  // each.
  if (layout->num_processes > 2) bytes /= layout->num_processes;
  const double stripes = bytes / MP_STRIPE_BYTES;
  if (stripes < 1) return 1;
  return stripes > MP_MAX_STRIPES ? MP_MAX_STRIPES : (uint32_t)stripes;
}

// The first element of a stripe, for `index` = `count`: the end.
static int64_t collective_stripe_begin(int64_t elements, uint32_t index, uint32_t count) {
  const int64_t grains = (elements + MP_STRIPE_GRAIN - 1) / MP_STRIPE_GRAIN;
  const int64_t begin = grains * index / count * MP_STRIPE_GRAIN;
  return begin < elements ? begin : elements;
}

// A stripe in one allocation, with room for its slices: operands, each with one dimension, and the
// arrays of `size` members.
static mp_collective_stripe_t *collective_stripe_allocate(uint32_t num_operands, uint32_t size) {
  const size_t arrays = 2 * (size_t)size * num_operands;
  return mp_calloc(1, sizeof(mp_collective_stripe_t) +
                          num_operands * (sizeof(mp_collective_operand_t) + sizeof(int64_t)) +
                          size * sizeof(mp_contribution_t) + arrays * sizeof(void *));
}

// Slices the range of this stripe from every operand. Returns the room after the operands.
static void *collective_stripe_cut_operands(mp_collective_stripe_t *stripe,
                                            const mp_collective_t *collective, uint32_t index,
                                            uint32_t count) {
  stripe->collective = *collective;
  mp_collective_operand_t *operands = (mp_collective_operand_t *)(stripe + 1);
  int64_t *dims = (int64_t *)(void *)(operands + collective->num_operands);
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    const int64_t elements = mp_operand_elements(&collective->operands[i]);
    dims[i] = collective_stripe_begin(elements, index + 1, count) -
              collective_stripe_begin(elements, index, count);
    operands[i] = collective->operands[i];
    operands[i].rank = 1;
    operands[i].dims = operands[i].result_dims = &dims[i];
  }
  stripe->collective.operands = operands;
  return dims + collective->num_operands;
}

// The same for the arrays of this process's members: other members have none here. Returns the
// contributions, which are at `room`.
static mp_contribution_t *collective_stripe_cut_arrays(const mp_collective_t *collective,
                                                       uint32_t index, uint32_t count,
                                                       uint32_t size,
                                                       const mp_contribution_t *contributions,
                                                       void *room) {
  mp_contribution_t *cut = room;
  const void **inputs = (const void **)(cut + size);
  void **outputs = (void **)(inputs + (size_t)size * collective->num_operands);
  for (uint32_t m = 0; m < size; ++m) {
    if (contributions[m].outputs == NULL) continue;
    cut[m] = (mp_contribution_t){inputs, outputs};
    for (uint32_t i = 0; i < collective->num_operands; ++i) {
      const mp_collective_operand_t *operand = &collective->operands[i];
      const size_t at =
          (size_t)collective_stripe_begin(mp_operand_elements(operand), index, count) *
          mp_dtype_size(operand->dtype);
      *inputs++ = (const char *)contributions[m].inputs[i] + at;
      *outputs++ = (char *)contributions[m].outputs[i] + at;
    }
  }
  return cut;
}

mp_status_t mp_collective_stripe_create(const mp_collective_t *collective, uint32_t group,
                                        uint32_t index, uint32_t count,
                                        const mp_group_layout_t *layout,
                                        mp_contribution_t *contributions, const uint32_t *names,
                                        mp_collective_stripe_t **out_stripe) {
  MP_ASSERT(index < count);
  const bool is_whole = count == 1;
  const uint32_t num_operands = is_whole ? 0 : collective->num_operands;
  mp_collective_stripe_t *stripe =
      collective_stripe_allocate(num_operands, is_whole ? 0 : layout->size);
  MP_RETURN_IF_NULL(stripe);
  if (!is_whole) {
    void *room = collective_stripe_cut_operands(stripe, collective, index, count);
    contributions =
        collective_stripe_cut_arrays(collective, index, count, layout->size, contributions, room);
    collective = &stripe->collective;
  }
  mp_status_t status = mp_collective_schedule_create(collective, group, layout, contributions,
                                                     names, &stripe->schedule);
  if (status != NULL) {
    mp_free(stripe);
    return status;
  }
  *out_stripe = stripe;
  return NULL;
}

void mp_collective_stripe_release(mp_collective_stripe_t *stripe) {
  if (stripe == NULL) return;
  mp_collective_schedule_release(stripe->schedule);
  mp_free(stripe);
}
