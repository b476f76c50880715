#include "collectives/spread.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/alloc.h"

typedef struct {
  mp_spread_t spread;
  uint32_t *ranks, *process_of, *offsets, *positions, *pieces_of, *index_of;
  uint32_t *host_of, *column_of, *grid;
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

// One allocation for everything.
static mp_status_t allocate(mp_spread_maker_t *m, mp_spread_t **out_spread) {
  const size_t n = m->spread.size;
  mp_spread_t *spread =
      mp_calloc(1, sizeof(*spread) + n * sizeof(mp_piece_t) + (9 * n + 1) * sizeof(uint32_t));
  MP_RETURN_IF_NULL(spread);
  m->pieces = (mp_piece_t *)(void *)(spread + 1);
  uint32_t **arrays[] = {&m->ranks,   &m->process_of, &m->positions, &m->pieces_of, &m->index_of,
                         &m->host_of, &m->column_of,  &m->grid,      &m->offsets};
  uint32_t *cursor = (uint32_t *)(m->pieces + n);
  for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); ++i, cursor += n) *arrays[i] = cursor;
  m->spread.ranks = m->ranks;
  m->spread.process_of = m->process_of;
  m->spread.offsets = m->offsets;
  m->spread.positions = m->positions;
  m->spread.pieces_of = m->pieces_of;
  m->spread.index_of = m->index_of;
  m->spread.host_of = m->host_of;
  m->spread.column_of = m->column_of;
  m->spread.grid = m->grid;
  m->spread.pieces = m->pieces;
  *out_spread = spread;
  return NULL;
}

// All processes on one host.
static void make_row(mp_spread_maker_t *m) {
  m->spread.num_hosts = 1;
  m->spread.num_columns = m->spread.num_processes;
  for (uint32_t p = 0; p < m->spread.num_processes; ++p) {
    m->host_of[p] = 0;
    m->column_of[p] = m->grid[p] = p;
  }
}

// Lays the processes out in a grid of hosts, if they make one.
static mp_status_t make_grid(mp_spread_maker_t *m, const uint32_t *hosts_of) {
  mp_spread_t *spread = &m->spread;
  make_row(m);
  if (hosts_of == NULL) return NULL;
  const uint32_t own_host = hosts_of[m->positions[m->offsets[spread->self]]];
  mp_spread_t *hosts = NULL;
  MP_RETURN_IF_ERROR(mp_spread_create(spread->size, hosts_of, NULL, own_host, &hosts));
  const uint32_t num_columns = spread->num_processes / hosts->num_processes;
  uint32_t *filled = m->grid;  // counts first, the grid itself below
  memset(filled, 0, hosts->num_processes * sizeof(*filled));
  bool is_grid = hosts->num_processes > 1 && num_columns > 1 &&
                 num_columns * hosts->num_processes == spread->num_processes;
  for (uint32_t p = 0; p < spread->num_processes && is_grid; ++p) {
    m->host_of[p] = hosts->process_of[m->positions[m->offsets[p]]];
    m->column_of[p] = filled[m->host_of[p]]++;
    is_grid = m->column_of[p] < num_columns;
  }
  if (!is_grid) {
    mp_spread_release(hosts);
    make_row(m);
    return NULL;
  }
  for (uint32_t p = 0; p < spread->num_processes; ++p) {
    m->grid[m->host_of[p] * num_columns + m->column_of[p]] = p;
  }
  spread->num_hosts = hosts->num_processes;
  spread->num_columns = num_columns;
  spread->hosts = hosts;
  return NULL;
}

mp_status_t mp_spread_create(uint32_t size, const uint32_t *ranks_of, const uint32_t *hosts_of,
                             uint32_t self, mp_spread_t **out_spread) {
  mp_spread_maker_t m = {.spread = {.size = size}};
  mp_spread_t *spread = NULL;
  MP_RETURN_IF_ERROR(allocate(&m, &spread));
  count_processes(&m, ranks_of);
  sort_positions(&m, ranks_of);
  cut(&m, 0, size);
  m.spread.self = (uint32_t)mp_spread_find(&m.spread, self);
  mp_status_t status = make_grid(&m, hosts_of);
  if (status != NULL) {
    mp_free(spread);
    return status;
  }
  *spread = m.spread;
  *out_spread = spread;
  return NULL;
}

void mp_spread_release(mp_spread_t *spread) {
  if (spread == NULL) return;
  mp_spread_release(spread->hosts);
  mp_free(spread);
}
