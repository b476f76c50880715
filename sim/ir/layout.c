#include "sim/ir/layout.h"

#include "sim/base/assert.h"
#include "sim/ir/type.h"

bool mp_layout_is_row_major(const int64_t *minor_to_major, uint32_t rank) {
  for (uint32_t i = 0; i < rank; ++i) {
    if (minor_to_major[i] != (int64_t)(rank - 1 - i)) return false;
  }
  return true;
}

static mp_status_t layout_bad(mp_str_t text, uint32_t rank) {
  return mp_status_make(MP_INVALID_ARGUMENT, "'%.*s' is not a layout of %u dimensions",
                        MP_STR_ARG(text), rank);
}

// Reads "{" number ("," number)* "}", where each dimension must occur once.
static mp_status_t layout_parse(mp_str_t text, uint32_t rank, int64_t *out_minor_to_major) {
  MP_ASSERT(rank <= MP_MAX_RANK);  // one bit of `seen` per dimension
  if (text.size < 2 || text.data[0] != '{' || text.data[text.size - 1] != '}') {
    return layout_bad(text, rank);
  }
  if (memchr(text.data, ':', text.size) != NULL) {
    return mp_status_make(MP_UNIMPLEMENTED,
                          "layout '%.*s': tiles and packed elements are not "
                          "supported",
                          MP_STR_ARG(text));
  }
  uint64_t seen = 0;
  const char *at = text.data + 1, *end = text.data + text.size - 1;
  for (uint32_t i = 0; i < rank; ++i) {
    if (i > 0 && (at == end || *at++ != ',')) return layout_bad(text, rank);
    const char *start = at;
    while (at < end && *at >= '0' && *at <= '9') ++at;
    long long dim = -1;
    if (!mp_str_parse_i64((mp_str_t){start, (size_t)(at - start)}, &dim) || dim < 0 ||
        dim >= (long long)rank || (seen >> dim & 1) != 0) {
      return layout_bad(text, rank);
    }
    seen |= UINT64_C(1) << dim;
    out_minor_to_major[i] = dim;
  }
  return at == end ? NULL : layout_bad(text, rank);
}

mp_status_t mp_layout_from_attrs(const mp_attr_t *attrs, uint32_t rank,
                                 int64_t *out_minor_to_major) {
  const mp_attr_t *mode = mp_attr_dict_get(attrs, MP_ATTR_MHLO_LAYOUT_MODE);
  if (mode == NULL || mode->kind != MP_KIND_STRING || mp_str_is(mode->u.str, "default") ||
      mp_str_is(mode->u.str, "auto")) {
    for (uint32_t i = 0; i < rank; ++i) out_minor_to_major[i] = rank - 1 - i;
    return NULL;
  }
  if (rank > MP_MAX_RANK) return layout_bad(mode->u.str, rank);
  return layout_parse(mode->u.str, rank, out_minor_to_major);
}
