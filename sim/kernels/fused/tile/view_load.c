// Reading elements through a view.
#include <string.h>

#include "sim/base/assert.h"
#include "sim/base/vector.h"
#include "sim/kernels/counting.h"
#include "sim/kernels/fused/tile/view.h"
#include "sim/kernels/fused/tile/view_nest.h"
#include "sim/kernels/fused/tile/view_shuffle.h"
#include "sim/kernels/shape.h"
#include "sim/kernels/strided.h"

// A position in a view: the index in each dimension, and the element's place in the base.
typedef struct {
  const mp_view_t *view;
  int64_t index[MP_MAX_RANK];
  int64_t place;
} cursor_t;

static void view_load_seek(const mp_view_t *view, int64_t position, cursor_t *out_cursor) {
  out_cursor->view = view;
  out_cursor->place = view->offset;
  for (uint32_t d = view->rank; d-- > 0;) {
    const int64_t extent = view->dims[d].extent;
    const int64_t index = position == 0 ? 0 : position % extent;
    out_cursor->index[d] = index;
    out_cursor->place += index * view->dims[d].stride;
    position = position == 0 ? 0 : position / extent;
  }
}

// How many elements, at most `count`, follow in the innermost dimension.
static int64_t view_load_run_length(const cursor_t *cursor, int64_t count) {
  const mp_view_t *view = cursor->view;
  if (view->rank == 0) return count;
  return mp_min_i64(count, view->dims[view->rank - 1].extent - cursor->index[view->rank - 1]);
}

// Moves forward in dimension `d`, at most to its end; does nothing in a view without dimensions.
static void view_load_skip(cursor_t *cursor, uint32_t d, int64_t length) {
  const mp_view_t *view = cursor->view;
  if (view->rank == 0) return;
  cursor->index[d] += length;
  cursor->place += length * view->dims[d].stride;
  while (cursor->index[d] == view->dims[d].extent && d > 0) {
    cursor->place -= cursor->index[d] * view->dims[d].stride;
    cursor->index[d] = 0;
    --d;
    ++cursor->index[d];
    cursor->place += view->dims[d].stride;
  }
}

bool mp_view_find_run(const mp_view_t *view, int64_t begin, int64_t count, int64_t *out_first) {
  if (view->rank == 0) {
    *out_first = view->offset;
    return count == 1;
  }
  if (view->dims[view->rank - 1].stride != 1) return false;
  cursor_t cursor;
  view_load_seek(view, begin, &cursor);
  *out_first = cursor.place;
  return view_load_run_length(&cursor, count) == count;
}

// Copies `count` runs of `bytes` bytes that are `step` bytes apart. Prefetches some short runs
// ahead, because processors do not recognise that runs are at equal distances.
MP_VECTOR static void view_load_copy_runs(char *to, const char *from, int64_t step, int64_t bytes,
                                          int64_t count) {
  enum { AHEAD = 2048, LINE = 64 };
  const int64_t ahead = bytes < AHEAD ? AHEAD / bytes * step : 0;
  for (int64_t i = 0; i < count; ++i, to += bytes, from += step) {
    int64_t done = 0;
    for (; done + LINE <= bytes; done += LINE) {
      __builtin_prefetch(from + ahead + done);
      memcpy(to + done, from + done, LINE);
    }
    if (done == bytes) continue;
    __builtin_prefetch(from + ahead + done);
    memcpy(to + done, from + done, (size_t)(bytes - done));
  }
}

// Loads what follows in a run, or the whole runs up to the end of the dimension around; returns the
// number of elements.
static int64_t view_load_runs(cursor_t *cursor, size_t size, const void *base, int64_t count,
                              char *to) {
  const mp_view_t *view = cursor->view;
  const char *from = (const char *)base + cursor->place * (int64_t)size;
  int64_t length = view_load_run_length(cursor, count), runs = 1, step = 0;
  uint32_t d = view->rank - 1;
  if (d > 0 && cursor->index[d] == 0 && length == view->dims[d].extent) {
    --d;
    runs = mp_min_i64(count / length, view->dims[d].extent - cursor->index[d]);
    step = view->dims[d].stride * (int64_t)size;
  }
  view_load_copy_runs(to, from, step, length * (int64_t)size, runs);
  view_load_skip(cursor, d, d + 1 < view->rank ? runs : length);
  return runs * length;
}

// Writes `bytes` bytes of an endless repetition of the `period` bytes at `from`, beginning with
// byte `skip` of these: one period first, then copies of it.
static void view_load_repeat(char *to, const char *from, int64_t period, int64_t skip,
                             int64_t bytes) {
  const int64_t end = mp_min_i64(period - skip, bytes);
  memcpy(to, from + skip, (size_t)end);
  memcpy(to + end, from, (size_t)mp_min_i64(skip, bytes - end));
  for (int64_t done = period, n; done < bytes; done += n) {
    n = mp_min_i64(done, bytes - done);
    memcpy(to + done, to, (size_t)n);
  }
}

// Whether a run of neighbours is repeated along the enclosing dimension, as a bias is for each row.
static bool view_load_has_cycles(const mp_view_t *view) {
  return view->rank >= 2 && view->dims[view->rank - 1].stride == 1 &&
         view->dims[view->rank - 2].stride == 0;
}

static void view_load_cycles(const mp_view_t *view, int64_t size, const char *base, int64_t begin,
                             int64_t count, char *to) {
  const uint32_t last = view->rank - 1;
  const int64_t period = view->dims[last].extent, all = period * view->dims[last - 1].extent;
  cursor_t cursor;
  for (int64_t length; count > 0; count -= length, begin += length, to += length * size) {
    view_load_seek(view, begin, &cursor);
    const int64_t skip = cursor.index[last];
    length = mp_min_i64(count, all - cursor.index[last - 1] * period - skip);
    view_load_repeat(to, base + (cursor.place - skip) * size, period * size, skip * size,
                     length * size);
  }
}

void mp_view_load_block(const mp_view_t *view, size_t size, const void *base, int64_t begin,
                        mp_matrix_t block, void *out) {
  const int64_t bytes = (int64_t)size;
  cursor_t cursor;
  MP_ASSERT(mp_view_transposes(view));
  view_load_seek(view, begin, &cursor);
  block.src_step = view->dims[view->rank - 1].stride * bytes;
  mp_transpose(&block, size, out, (const char *)base + cursor.place * bytes);
}

// Loads the whole rows of a view that transposes among the next `count` elements, up to the end of
// the dimension around; returns how many rows these are.
static int64_t view_load_rows(cursor_t *cursor, size_t size, const void *base, int64_t count,
                              char *to) {
  const mp_view_t *view = cursor->view;
  const uint32_t last = view->rank - 1;
  const int64_t bytes = (int64_t)size, width = view->dims[last].extent;
  if (cursor->index[last] != 0 || count < 2 * width) return 0;
  const int64_t height =
      mp_min_i64(count / width, view->dims[last - 1].extent - cursor->index[last - 1]);
  const mp_matrix_t rows = {height, width, width * bytes, view->dims[last].stride * bytes};
  mp_transpose(&rows, size, to, (const char *)base + cursor->place * bytes);
  view_load_skip(cursor, last - 1, height);
  return height;
}

static void view_load_transposed(const mp_view_t *view, size_t size, const void *base,
                                 int64_t begin, int64_t count, char *to) {
  const uint32_t last = view->rank - 1;
  const int64_t bytes = (int64_t)size, stride = view->dims[last].stride * bytes;
  cursor_t cursor;
  view_load_seek(view, begin, &cursor);
  for (int64_t length; count > 0; count -= length, to += length * bytes) {
    length = view->dims[last].extent * view_load_rows(&cursor, size, base, count, to);
    if (length != 0) continue;
    length = view_load_run_length(&cursor, count);
    mp_copy_line(to, bytes, (const char *)base + cursor.place * bytes, stride, size, length);
    view_load_skip(&cursor, last, length);
  }
}

// Loads whole rows of a view, as many as the enclosing dimension has, or the rest of a row.
static void view_load_short_rows(const mp_view_t *view, size_t size, const void *base,
                                 int64_t begin, int64_t count, char *to) {
  const uint32_t last = view->rank - 1;
  const int64_t width = view->dims[last].extent, bytes = (int64_t)size;
  const int64_t row_stride = last == 0 ? 0 : view->dims[last - 1].stride;
  cursor_t cursor;
  view_load_seek(view, begin, &cursor);
  for (int64_t length; count > 0; count -= length, to += length * bytes) {
    const char *from = (const char *)base + cursor.place * bytes;
    if (last == 0 || cursor.index[last] != 0 || count < width) {
      length = view_load_run_length(&cursor, count);
      mp_view_nest(size, from, 1, 0, length, view->dims[last].stride, to);
      view_load_skip(&cursor, last, length);
      continue;
    }
    const int64_t rows =
        mp_min_i64(count / width, view->dims[last - 1].extent - cursor.index[last - 1]);
    mp_view_nest(size, from, rows, row_stride, width, view->dims[last].stride, to);
    view_load_skip(&cursor, last - 1, rows);
    length = rows * width;
  }
}

void mp_view_load(const mp_view_t *view, size_t size, const void *base, int64_t begin,
                  int64_t count, void *out) {
  if (view->shuffle != NULL && mp_view_shuffle_load(view->shuffle, size, base, begin, count, out)) {
    return;
  }
  if (view->rank > 0 && view->dims[view->rank - 1].extent < MP_VIEW_SHORT_ROW) {
    view_load_short_rows(view, size, base, begin, count, out);
    return;
  }
  if (view_load_has_cycles(view)) {
    view_load_cycles(view, (int64_t)size, base, begin, count, out);
    return;
  }
  if (mp_view_transposes(view)) {
    view_load_transposed(view, size, base, begin, count, out);
    return;
  }
  const uint32_t last = view->rank == 0 ? 0 : view->rank - 1;
  const int64_t stride = view->rank == 0 ? 0 : view->dims[last].stride;
  const int64_t bytes = (int64_t)size;
  cursor_t cursor;
  view_load_seek(view, begin, &cursor);
  char *to = out;
  for (int64_t length; count > 0; count -= length, to += length * bytes) {
    if (stride == 1) {
      length = view_load_runs(&cursor, size, base, count, to);
      continue;
    }
    length = view_load_run_length(&cursor, count);
    const char *from = (const char *)base + cursor.place * bytes;
    if (stride == 0) {
      mp_fill(to, from, size, length);
    } else {
      mp_copy_line(to, bytes, from, stride * bytes, size, length);
    }
    view_load_skip(&cursor, last, length);
  }
}

void mp_view_count(const mp_view_t *view, mp_dtype_t dtype, int64_t begin, int64_t count,
                   void *out) {
  const uint32_t last = view->rank == 0 ? 0 : view->rank - 1;
  const int64_t stride = view->rank == 0 ? 0 : view->dims[last].stride;
  const int64_t bytes = (int64_t)mp_dtype_size(dtype);
  cursor_t cursor;
  view_load_seek(view, begin, &cursor);
  char *to = out;
  for (int64_t length; count > 0; count -= length, view_load_skip(&cursor, last, length)) {
    length = view_load_run_length(&cursor, count);
    mp_count_line(dtype, cursor.place, stride, length, to);
    to += length * bytes;
  }
}
