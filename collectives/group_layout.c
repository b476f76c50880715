#include "collectives/group_layout.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/assert.h"

typedef struct {
  mp_group_layout_t layout;
  uint32_t *ranks, *process_of, *offsets, *positions, *pieces_of, *index_of;
  uint32_t *host_of, *column_of, *grid;
  mp_piece_t *pieces;
} group_layout_maker_t;

static int group_layout_compare(const void *a, const void *b) {
  const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
  return left < right ? -1 : left > right;
}

int64_t mp_group_layout_find(const mp_group_layout_t *layout, uint32_t rank) {
  const uint32_t *found =
      bsearch(&rank, layout->ranks, layout->num_processes, sizeof(rank), group_layout_compare);
  return found == NULL ? -1 : found - layout->ranks;
}

static void group_layout_count_processes(group_layout_maker_t *m, const uint32_t *ranks_of) {
  mp_group_layout_t *layout = &m->layout;
  memcpy(m->ranks, ranks_of, layout->size * sizeof(*ranks_of));
  qsort(m->ranks, layout->size, sizeof(*m->ranks), group_layout_compare);
  for (uint32_t i = 0; i < layout->size; ++i) {
    if (i == 0 || m->ranks[i] != m->ranks[i - 1]) {
      // In place: the value compared above has not been overwritten yet, except by an equal one.
      m->ranks[layout->num_processes++] = m->ranks[i];
    }
  }
}

static void group_layout_sort_positions(group_layout_maker_t *m, const uint32_t *ranks_of) {
  mp_group_layout_t *layout = &m->layout;
  for (uint32_t i = 0; i < layout->size; ++i) {
    m->process_of[i] = (uint32_t)mp_group_layout_find(layout, ranks_of[i]);
    m->offsets[m->process_of[i] + 1] += 1;
  }
  for (uint32_t p = 0; p < layout->num_processes; ++p) m->offsets[p + 1] += m->offsets[p];
  for (uint32_t i = 0; i < layout->size; ++i) {
    // pieces_of serves as a counter here and is cleared below.
    const uint32_t p = m->process_of[i];
    m->index_of[i] = m->pieces_of[p]++;
    m->positions[m->offsets[p] + m->index_of[i]] = i;
  }
  memset(m->pieces_of, 0, layout->num_processes * sizeof(*m->pieces_of));
}

// Finds the pieces of the subtree [begin, begin + count).
static void group_layout_cut(group_layout_maker_t *m, uint32_t begin, uint32_t count) {
  const uint32_t process = m->process_of[begin];
  uint32_t same = 1;
  while (same < count && m->process_of[begin + same] == process) ++same;
  if (same == count) {
    m->pieces[m->layout.num_pieces++] =
        (mp_piece_t){begin, count, process, m->pieces_of[process]++};
    return;
  }
  const uint32_t left = mp_tree_left(count);
  group_layout_cut(m, begin, left);
  group_layout_cut(m, begin + left, count - left);
}

// One allocation for everything.
static mp_status_t group_layout_allocate(group_layout_maker_t *m, mp_group_layout_t **out_layout) {
  const size_t n = m->layout.size;
  mp_group_layout_t *layout =
      mp_calloc(1, sizeof(*layout) + n * sizeof(mp_piece_t) + (9 * n + 1) * sizeof(uint32_t));
  MP_RETURN_IF_NULL(layout);
  m->pieces = (mp_piece_t *)(void *)(layout + 1);
  uint32_t **arrays[] = {&m->ranks,   &m->process_of, &m->positions, &m->pieces_of, &m->index_of,
                         &m->host_of, &m->column_of,  &m->grid,      &m->offsets};
  uint32_t *cursor = (uint32_t *)(m->pieces + n);
  for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); ++i, cursor += n) *arrays[i] = cursor;
  m->layout.ranks = m->ranks;
  m->layout.process_of = m->process_of;
  m->layout.offsets = m->offsets;
  m->layout.positions = m->positions;
  m->layout.pieces_of = m->pieces_of;
  m->layout.index_of = m->index_of;
  m->layout.host_of = m->host_of;
  m->layout.column_of = m->column_of;
  m->layout.grid = m->grid;
  m->layout.pieces = m->pieces;
  *out_layout = layout;
  return NULL;
}

// Treats all processes as being on one host.
static void group_layout_make_row(group_layout_maker_t *m) {
  m->layout.num_hosts = 1;
  m->layout.num_columns = m->layout.num_processes;
  for (uint32_t p = 0; p < m->layout.num_processes; ++p) {
    m->host_of[p] = 0;
    m->column_of[p] = m->grid[p] = p;
  }
}

// Arranges the processes in a grid of hosts, if they form one.
static mp_status_t group_layout_make_grid(group_layout_maker_t *m, const uint32_t *hosts_of) {
  mp_group_layout_t *layout = &m->layout;
  group_layout_make_row(m);
  if (hosts_of == NULL) return NULL;
  for (uint32_t i = 1; i < layout->size; ++i) layout->spans_hosts |= hosts_of[i] != hosts_of[0];
  const uint32_t own_host = hosts_of[m->positions[m->offsets[layout->self]]];
  mp_group_layout_t *hosts = NULL;
  MP_RETURN_IF_ERROR(mp_group_layout_create(layout->size, hosts_of, NULL, own_host, &hosts));
  const uint32_t num_columns = layout->num_processes / hosts->num_processes;
  uint32_t *filled = m->grid;  // holds counts here; the grid itself is written below
  memset(filled, 0, hosts->num_processes * sizeof(*filled));
  bool is_grid = hosts->num_processes > 1 && num_columns > 1 &&
                 num_columns * hosts->num_processes == layout->num_processes;
  for (uint32_t p = 0; p < layout->num_processes && is_grid; ++p) {
    m->host_of[p] = hosts->process_of[m->positions[m->offsets[p]]];
    m->column_of[p] = filled[m->host_of[p]]++;
    is_grid = m->column_of[p] < num_columns;
  }
  if (!is_grid) {
    mp_group_layout_release(hosts);
    group_layout_make_row(m);
    return NULL;
  }
  for (uint32_t p = 0; p < layout->num_processes; ++p) {
    m->grid[m->host_of[p] * num_columns + m->column_of[p]] = p;
  }
  layout->num_hosts = hosts->num_processes;
  layout->num_columns = num_columns;
  layout->hosts = hosts;
  return NULL;
}

mp_status_t mp_group_layout_create(uint32_t size, const uint32_t *ranks_of,
                                   const uint32_t *hosts_of, uint32_t self,
                                   mp_group_layout_t **out_layout) {
  group_layout_maker_t m = {.layout = {.size = size}};
  mp_group_layout_t *layout = NULL;
  MP_RETURN_IF_ERROR(group_layout_allocate(&m, &layout));
  group_layout_count_processes(&m, ranks_of);
  group_layout_sort_positions(&m, ranks_of);
  group_layout_cut(&m, 0, size);
  MP_ASSERT(mp_group_layout_find(&m.layout, self) >= 0);
  m.layout.self = (uint32_t)mp_group_layout_find(&m.layout, self);
  mp_status_t status = group_layout_make_grid(&m, hosts_of);
  if (status != NULL) {
    mp_free(layout);
    return status;
  }
  *layout = m.layout;
  *out_layout = layout;
  return NULL;
}

void mp_group_layout_release(mp_group_layout_t *layout) {
  if (layout == NULL) return;
  mp_group_layout_release(layout->hosts);
  mp_free(layout);
}
