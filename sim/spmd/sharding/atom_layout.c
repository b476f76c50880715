#include "sim/spmd/sharding/atom_layout.h"

#include <string.h>

#include "sim/base/assert.h"

// ---- spaces ----

static uint32_t atom_layout_prime_factors(uint32_t number, int64_t *primes) {
  uint32_t count = 0;
  for (uint32_t p = 2; number > 1; ++p) {
    if (p * p > number) p = number;
    for (; number % p == 0 && count < MP_MAX_ATOMS; number /= p) primes[count++] = p;
  }
  return count;
}

// Changes the numbers to their next order, beginning with the ascending one; false after the last.
static bool atom_layout_next_order(int64_t *numbers, uint32_t count) {
  if (count < 2) return false;
  uint32_t i = count - 1;
  while (i > 0 && numbers[i - 1] >= numbers[i]) --i;
  if (i == 0) return false;
  uint32_t j = count - 1;
  while (numbers[j] <= numbers[i - 1]) --j;
  const int64_t swapped = numbers[i - 1];
  numbers[i - 1] = numbers[j];
  numbers[j] = swapped;
  for (uint32_t a = i, b = count - 1; a < b; ++a, --b) {
    const int64_t other = numbers[a];
    numbers[a] = numbers[b];
    numbers[b] = other;
  }
  return true;
}

uint32_t mp_layout_spaces(uint32_t num_partitions, mp_atom_space_t *spaces) {
  int64_t primes[MP_MAX_ATOMS];
  const uint32_t count = atom_layout_prime_factors(num_partitions, primes);
  uint32_t num_spaces = 0;
  do {
    mp_atom_space_t *space = &spaces[num_spaces++];
    *space = (mp_atom_space_t){.num_partitions = num_partitions, .count = count};
    int64_t stride = 1;
    for (uint32_t a = count; a-- > 0;) {
      space->prime[a] = primes[a];
      space->stride[a] = stride;
      stride *= primes[a];
    }
  } while (num_spaces < MP_MAX_SPACES && atom_layout_next_order(primes, count));
  return num_spaces;
}

// ---- from boxes ----

// Orders a dimension's atoms by how much each changes the part's number, from the largest change to
// the smallest. Each change must be the product of the digits after it; otherwise false.
static bool atom_layout_order_atoms(const mp_atom_space_t *space, const int64_t *moves,
                                    int64_t parts, mp_atoms_t *out_list) {
  mp_atoms_t list = {0};
  for (int64_t rest = parts; rest > 1;) {
    uint32_t a = 0;
    while (a < space->count && moves[a] * space->prime[a] != rest) ++a;
    if (a == space->count) return false;
    list.atoms[list.count++] = (uint8_t)a;
    rest = moves[a];
  }
  *out_list = list;
  return true;
}

static bool atom_layout_read_dim(const mp_atom_space_t *space, const mp_boxes_t *boxes, uint32_t d,
                                 mp_layout_t *layout) {
  const int64_t step = boxes->sizes[d];
  if (step == 0 || boxes->dims[d] % step != 0 || boxes->starts[d] != 0) return false;
  if (boxes->dims[d] == step) return true;
  int64_t moves[MP_MAX_ATOMS] = {0};
  for (uint32_t a = 0; a < space->count; ++a) {
    moves[a] = boxes->starts[(size_t)space->stride[a] * boxes->rank + d] / step;
  }
  mp_atoms_t list;
  if (!atom_layout_order_atoms(space, moves, boxes->dims[d] / step, &list)) return false;
  for (uint32_t p = 0; p < boxes->num_partitions; ++p) {
    const int64_t start = mp_atoms_number(space, &list, p) * step;
    const size_t at = (size_t)p * boxes->rank + d;
    if (boxes->starts[at] != start || boxes->sizes[at] != step) return false;
  }
  for (uint32_t i = 0; i < list.count; ++i) {
    if (layout->dim[list.atoms[i]] != MP_LAYOUT_COPIES) return false;
    layout->dim[list.atoms[i]] = (uint8_t)d;
    layout->place[list.atoms[i]] = (uint8_t)i;
  }
  return true;
}

static bool atom_layout_read_terms(const mp_atom_space_t *space, const mp_boxes_t *boxes,
                                   mp_layout_t *layout) {
  for (uint32_t a = 0; a < space->count; ++a) {
    if (boxes->partials[space->stride[a]] != 0) continue;
    if (layout->dim[a] != MP_LAYOUT_COPIES) return false;
    layout->dim[a] = MP_LAYOUT_TERMS;
  }
  const mp_atoms_t terms = mp_layout_atoms(space, layout, MP_LAYOUT_TERMS);
  for (uint32_t p = 0; p < boxes->num_partitions; ++p) {
    int64_t first = p;
    for (uint32_t i = 0; i < terms.count; ++i) {
      const int64_t stride = space->stride[terms.atoms[i]];
      first -= (int64_t)p / stride % space->prime[terms.atoms[i]] * stride;
    }
    if (boxes->partials[p] != first) return false;
  }
  return true;
}

bool mp_layout_from_boxes(const mp_atom_space_t *space, const mp_boxes_t *boxes,
                          mp_layout_t *out_layout) {
  mp_layout_t layout;
  memset(layout.dim, MP_LAYOUT_COPIES, sizeof(layout.dim));
  memset(layout.place, 0, sizeof(layout.place));
  if (boxes != NULL) {
    if (!mp_placement_is_even(boxes)) return false;
    for (uint32_t d = 0; d < boxes->rank; ++d) {
      if (!atom_layout_read_dim(space, boxes, d, &layout)) return false;
    }
    if (boxes->partials != NULL && !atom_layout_read_terms(space, boxes, &layout)) return false;
  }
  *out_layout = layout;
  return true;
}

// ---- reading and changing ----

mp_atoms_t mp_layout_atoms(const mp_atom_space_t *space, const mp_layout_t *layout, uint8_t dim) {
  mp_atoms_t list = {0};
  const bool is_ordered = dim != MP_LAYOUT_COPIES && dim != MP_LAYOUT_TERMS;
  for (uint32_t a = 0; a < space->count; ++a) {
    if (layout->dim[a] != dim) continue;
    MP_ASSERT(layout->place[a] < space->count);
    list.atoms[is_ordered ? layout->place[a] : list.count] = (uint8_t)a;
    ++list.count;
  }
  return list;
}

void mp_layout_move(const mp_atom_space_t *space, mp_layout_t *layout, const mp_atoms_t *atoms,
                    uint8_t dim) {
  const bool is_ordered = dim != MP_LAYOUT_COPIES && dim != MP_LAYOUT_TERMS;
  uint32_t place = is_ordered ? mp_layout_atoms(space, layout, dim).count : 0;
  for (uint32_t i = 0; i < atoms->count; ++i) {
    MP_ASSERT(atoms->atoms[i] < space->count);
    layout->dim[atoms->atoms[i]] = dim;
    layout->place[atoms->atoms[i]] = is_ordered ? (uint8_t)place++ : 0;
  }
}

int64_t mp_layout_parts(const mp_atom_space_t *space, const mp_layout_t *layout, uint8_t dim) {
  int64_t parts = 1;
  for (uint32_t a = 0; a < space->count; ++a) {
    if (layout->dim[a] == dim) parts *= space->prime[a];
  }
  return parts;
}

bool mp_layout_equal(const mp_layout_t *a, const mp_layout_t *b) {
  return memcmp(a, b, sizeof(*a)) == 0;
}
