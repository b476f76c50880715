#include "collectives/spread.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/alloc.h"

typedef struct {
  mp_spread_t spread;
  uint32_t *ranks, *process_of, *offsets, *positions, *pieces_of, *index_of;
  mp_piece_t *pieces;
} mp_spread_maker_t;

static int compare(const void *a, const void *b) {
  const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
  return left < right ? -1 : left > right;
}

int64_t mp_spread_find(const mp_spread_t *spread, uint32_t rank) {
  const uint32_t *found =
      bsearch(&rank, spread->ranks, spread->num_processes, sizeof(rank), compare);
  return found == NULL ? -1 : found - spread->ranks;
}

static void count_processes(mp_spread_maker_t *m, const uint32_t *ranks_of) {
  mp_spread_t *spread = &m->spread;
  memcpy(m->ranks, ranks_of, spread->size * sizeof(*ranks_of));
  qsort(m->ranks, spread->size, sizeof(*m->ranks), compare);
  for (uint32_t i = 0; i < spread->size; ++i) {
    if (i == 0 || m->ranks[i] != m->ranks[i - 1]) {
      // Compares with what follows, which has not moved yet.
      m->ranks[spread->num_processes++] = m->ranks[i];
    }
  }
}

static void sort_positions(mp_spread_maker_t *m, const uint32_t *ranks_of) {
  mp_spread_t *spread = &m->spread;
  for (uint32_t i = 0; i < spread->size; ++i) {
    m->process_of[i] = (uint32_t)mp_spread_find(spread, ranks_of[i]);
    m->offsets[m->process_of[i] + 1] += 1;
  }
  for (uint32_t p = 0; p < spread->num_processes; ++p) m->offsets[p + 1] += m->offsets[p];
  for (uint32_t i = 0; i < spread->size; ++i) {
    // pieces_of counts up here and starts anew below.
    const uint32_t p = m->process_of[i];
    m->index_of[i] = m->pieces_of[p]++;
    m->positions[m->offsets[p] + m->index_of[i]] = i;
  }
  memset(m->pieces_of, 0, spread->num_processes * sizeof(*m->pieces_of));
}

// The pieces of the subtree [begin, begin + count).
static void cut(mp_spread_maker_t *m, uint32_t begin, uint32_t count) {
  const uint32_t process = m->process_of[begin];
  uint32_t same = 1;
  while (same < count && m->process_of[begin + same] == process) ++same;
  if (same == count) {
    m->pieces[m->spread.num_pieces++] =
        (mp_piece_t){begin, count, process, m->pieces_of[process]++};
    return;
  }
  const uint32_t left = mp_tree_left(count);
  cut(m, begin, left);
  cut(m, begin + left, count - left);
}

mp_status_t mp_spread_create(uint32_t size, const uint32_t *ranks_of, uint32_t self,
                             mp_spread_t **out_spread) {
  mp_spread_maker_t m = {.spread = {.size = size}};
  const size_t n = size;
  char *memory =
      mp_calloc(1, sizeof(mp_spread_t) + n * sizeof(mp_piece_t) + (6 * n + 1) * sizeof(uint32_t));
  MP_RETURN_IF_NULL(memory);
  m.pieces = (mp_piece_t *)(void *)(memory + sizeof(mp_spread_t));
  m.ranks = (uint32_t *)(m.pieces + n);
  m.process_of = m.ranks + n;
  m.positions = m.process_of + n;
  m.pieces_of = m.positions + n;
  m.index_of = m.pieces_of + n;
  m.offsets = m.index_of + n;
  mp_spread_t *spread = &m.spread;
  spread->ranks = m.ranks;
  spread->process_of = m.process_of;
  spread->index_of = m.index_of;
  spread->offsets = m.offsets;
  spread->positions = m.positions;
  spread->pieces_of = m.pieces_of;
  spread->pieces = m.pieces;
  count_processes(&m, ranks_of);
  sort_positions(&m, ranks_of);
  cut(&m, 0, size);
  spread->self = (uint32_t)mp_spread_find(spread, self);
  *(mp_spread_t *)(void *)memory = *spread;
  *out_spread = (mp_spread_t *)(void *)memory;
  return NULL;
}

void mp_spread_release(mp_spread_t *spread) {
  mp_free(spread);
}
