// Cells: the bytes that a loop reads and writes, split where an access begins or ends.
#include <stdlib.h>

#include "sim/native/module/emit_loop.h"

// Larger cells are in memory: there are too few registers.
enum { MAX_CELL_BYTES = 256 };

// Whether an access splits its bytes into cells.
static bool emit_cells_cuts(const access_t *access) {
  return access->bytes != 0 && access->bytes <= MAX_CELL_BYTES && !access->is_part &&
         !access->is_call;
}

// ---- cutting ----

typedef struct {
  uint32_t memory, ref;
  uint64_t at;
} cut_t;

static int emit_cells_compare(const void *a, const void *b) {
  const cut_t *x = a, *y = b;
  if (x->memory != y->memory) return x->memory < y->memory ? -1 : 1;
  return x->at < y->at ? -1 : x->at > y->at;
}

// Lists all borders of accesses, if `cuts` is not NULL; returns their number.
static uint32_t emit_cells_find_cuts(const loop_t *l, cut_t *cuts) {
  uint32_t count = 0;
  access_t access;
  for (uint32_t n = 0; n < l->loop->num_instructions; ++n) {
    for (uint32_t k = 0; emit_access(l->loop, &l->loop->instructions[n], k, &access); ++k) {
      if (!emit_cells_cuts(&access)) continue;
      const mp_native_ref_t *ref = &l->loop->refs[access.ref];
      const uint64_t step = l->is_single[n] ? emit_bytes(access.dtype) : access.bytes;
      for (uint64_t at = 0; at <= access.bytes; at += step) {
        if (cuts != NULL) cuts[count] = (cut_t){ref->memory, access.ref, ref->offset + at};
        ++count;
      }
    }
  }
  return count;
}

// Makes a cell from each cut to the next one, including some that no access has.
static void emit_cells_cut(loop_t *l, const cut_t *cuts, uint32_t count) {
  for (uint32_t i = 0; i + 1 < count; ++i) {
    const cut_t *from = &cuts[i], *to = &cuts[i + 1];
    if (from->memory != to->memory || from->at == to->at) continue;
    l->cells[l->num_cells++] = (cell_t){.memory = from->memory,
                                        .ref = UINT32_MAX,
                                        .begin = from->at,
                                        .end = to->at,
                                        .is_temporary = true,
                                        .dtype = MP_DTYPE_INVALID};
  }
}

// ---- finding cells ----

uint32_t emit_first_cell(const loop_t *l, uint32_t memory, uint64_t begin) {
  uint32_t low = 0, high = l->num_cells;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    const cell_t *cell = &l->cells[middle];
    if (cell->memory < memory || (cell->memory == memory && cell->end <= begin)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

bool emit_cell_meets(const loop_t *l, uint32_t cell, uint32_t memory, uint64_t begin,
                     uint64_t end) {
  return cell < l->num_cells && l->cells[cell].memory == memory && l->cells[cell].begin < end &&
         begin < l->cells[cell].end;
}

// ---- properties of cells ----

static void emit_cells_note(loop_t *l, const access_t *access) {
  const mp_native_ref_t *ref = &l->loop->refs[access->ref];
  const uint64_t end = ref->offset + access->bytes;
  const bool cuts = emit_cells_cuts(access);
  for (uint32_t c = emit_first_cell(l, ref->memory, ref->offset);
       emit_cell_meets(l, c, ref->memory, ref->offset, end); ++c) {
    cell_t *cell = &l->cells[c];
    if (cuts) cell->ref = access->ref;
    if (cuts && (cell->dtype == MP_DTYPE_INVALID || !emit_is_float(cell->dtype))) {
      if (access->dtype != MP_DTYPE_INVALID) cell->dtype = access->dtype;
    }
    cell->is_written |= access->is_written;
    cell->is_temporary &= ref->is_temporary;
    cell->is_resident |= !cuts && !access->is_call;
  }
}

// Makes all cells of an access either variables or memory. True if that has changed something.
static bool emit_cells_agree(loop_t *l, const access_t *access) {
  if (!emit_cells_cuts(access)) return false;
  const mp_native_ref_t *ref = &l->loop->refs[access->ref];
  const uint64_t end = ref->offset + access->bytes;
  const uint32_t first = emit_first_cell(l, ref->memory, ref->offset);
  bool has_resident = false, has_changed = false;
  for (uint32_t c = first; emit_cell_meets(l, c, ref->memory, ref->offset, end); ++c) {
    has_resident |= l->cells[c].is_resident;
  }
  if (!has_resident) return false;
  for (uint32_t c = first; emit_cell_meets(l, c, ref->memory, ref->offset, end); ++c) {
    has_changed |= !l->cells[c].is_resident;
    l->cells[c].is_resident = true;
  }
  return has_changed;
}

// Makes the cells of each access either variables or memory.
static bool emit_cells_for_all(loop_t *l, bool is_agreeing) {
  bool has_changed = false;
  access_t access;
  for (uint32_t n = 0; n < l->loop->num_instructions; ++n) {
    for (uint32_t k = 0; emit_access(l->loop, &l->loop->instructions[n], k, &access); ++k) {
      if (is_agreeing) {
        has_changed |= emit_cells_agree(l, &access);
      } else if (access.bytes != 0) {
        emit_cells_note(l, &access);
      }
    }
  }
  return has_changed;
}

// Removes cells that no access has.
static void emit_cells_drop(loop_t *l) {
  uint32_t kept = 0;
  for (uint32_t c = 0; c < l->num_cells; ++c) {
    if (l->cells[c].ref != UINT32_MAX) l->cells[kept++] = l->cells[c];
  }
  l->num_cells = kept;
}

bool emit_cut_cells(loop_t *l) {
  const uint32_t count = emit_cells_find_cuts(l, NULL);
  cut_t *cuts = calloc((size_t)count + 1, sizeof(*cuts));
  free(l->cells);
  l->num_cells = 0;
  l->cells = calloc((size_t)count + 1, sizeof(*l->cells));
  if (cuts != NULL && l->cells != NULL) {
    emit_cells_find_cuts(l, cuts);
    qsort(cuts, count, sizeof(*cuts), emit_cells_compare);
    emit_cells_cut(l, cuts, count);
  }
  free(cuts);
  return cuts != NULL && l->cells != NULL;
}

void emit_describe_cells(loop_t *l) {
  emit_cells_for_all(l, false);
  emit_cells_drop(l);
  while (emit_cells_for_all(l, true)) continue;
}
