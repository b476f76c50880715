#include "pjrt/extensions/tpu_slices.h"

#include "pjrt/extensions/tpu_places.h"

// ---- slices ----

enum {
  CUBE = 4,  // chips along each side of the cubes that make up larger slices
  MOST_CHIPS = 9216,
  LONGEST_SIDE = 256,
};

// Slices within a cube, which have no rings.
static const int32_t g_small[][MP_TPU_DIMS] = {{1, 1, 1}, {1, 2, 1}, {2, 2, 1},
                                               {2, 2, 2}, {2, 2, 4}, {2, 4, 4}};

mp_status_t mp_tpu_check_platform(mp_str_t platform) {
  if (mp_str_is(platform, "tpu7x")) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT, "Unsupported platform type name: %.*s",
                        MP_STR_ARG(platform));
}

static PJRT_TpuTopology_SliceConfig tpu_slices_make(const int32_t dims[MP_TPU_DIMS], bool is_ring,
                                                    bool is_twisted) {
  PJRT_TpuTopology_SliceConfig slice = {.dim_size = MP_TPU_DIMS, .twist = is_twisted};
  for (int32_t d = 0; d < MP_TPU_DIMS; ++d) {
    slice.dimensions[d] = dims[d];
    slice.wrap[d] = is_ring;
  }
  return slice;
}

// Slices of n x n x 2n and n x 2n x 2n chips are twisted unless the name says otherwise.
static bool tpu_slices_is_twisted(const int32_t dims[MP_TPU_DIMS]) {
  const int32_t n = dims[0];
  return dims[2] == 2 * n && (dims[1] == n || dims[1] == 2 * n);
}

// Those of n x 2n x 4n (8n, 16n) chips may be twisted.
static bool tpu_slices_may_be_twisted(const int32_t dims[MP_TPU_DIMS]) {
  const int32_t n = dims[0];
  return tpu_slices_is_twisted(dims) ||
         (dims[1] == 2 * n && (dims[2] == 4 * n || dims[2] == 8 * n || dims[2] == 16 * n));
}

static bool tpu_slices_is_large(const int32_t dims[MP_TPU_DIMS]) {
  for (int32_t d = 0; d < MP_TPU_DIMS; ++d) {
    if (dims[d] < CUBE || dims[d] % CUBE != 0 || dims[d] > LONGEST_SIDE) return false;
  }
  return dims[0] <= dims[1] && dims[1] <= dims[2] &&
         (int64_t)dims[0] * dims[1] * dims[2] <= MOST_CHIPS;
}

static bool tpu_slices_is_small(const int32_t dims[MP_TPU_DIMS]) {
  for (size_t i = 0; i < sizeof(g_small) / sizeof(g_small[0]); ++i) {
    if (memcmp(g_small[i], dims, sizeof(g_small[i])) == 0) return true;
  }
  return false;
}

// "4x4x8_twisted" to its numbers, and what follows them.
static bool tpu_slices_parse(mp_str_t name, int32_t dims[MP_TPU_DIMS], mp_str_t *out_rest) {
  mp_str_t numbers = mp_str_cut(&name, '_');
  for (int32_t d = 0; d < MP_TPU_DIMS; ++d) {
    long long number = 0;
    if (!mp_str_parse_i64(mp_str_cut(&numbers, 'x'), &number)) return false;
    if (number < 1 || number > LONGEST_SIDE) return false;
    dims[d] = (int32_t)number;
  }
  *out_rest = name;
  return numbers.size == 0;
}

mp_status_t mp_tpu_find_slice(mp_str_t platform, mp_str_t name,
                              PJRT_TpuTopology_SliceConfig *out_slice) {
  MP_RETURN_IF_ERROR(mp_tpu_check_platform(platform));
  int32_t dims[MP_TPU_DIMS];
  mp_str_t rest;
  if (tpu_slices_parse(name, dims, &rest)) {
    const bool is_twisted = mp_str_is(rest, "twisted"), is_untwisted = mp_str_is(rest, "untwisted");
    const bool is_plain = rest.size == 0 && name.data[name.size - 1] != '_';
    if (tpu_slices_is_small(dims) && is_plain) {
      *out_slice = tpu_slices_make(dims, false, false);
      return NULL;
    }
    const bool may_be = tpu_slices_may_be_twisted(dims) && (is_twisted || is_untwisted);
    if (tpu_slices_is_large(dims) && (is_plain || may_be)) {
      *out_slice = tpu_slices_make(dims, true, is_plain ? tpu_slices_is_twisted(dims) : is_twisted);
      return NULL;
    }
  }
  return mp_status_make(MP_INVALID_ARGUMENT, "Unsupported slice name: %.*s", MP_STR_ARG(name));
}

mp_status_t mp_tpu_list_slices(mp_str_t platform, PJRT_TpuTopology_SliceConfig *slices,
                               size_t capacity, size_t *out_count) {
  MP_RETURN_IF_ERROR(mp_tpu_check_platform(platform));
  size_t count = 0;
#define ADD(...)                                                        \
  do {                                                                  \
    if (count < capacity) slices[count] = tpu_slices_make(__VA_ARGS__); \
    ++count;                                                            \
  } while (0)
  for (size_t i = 0; i < sizeof(g_small) / sizeof(g_small[0]); ++i) ADD(g_small[i], false, false);
  int32_t dims[MP_TPU_DIMS];
  for (dims[0] = CUBE; dims[0] <= LONGEST_SIDE; dims[0] += CUBE) {
    for (dims[1] = dims[0]; dims[1] <= LONGEST_SIDE; dims[1] += CUBE) {
      for (dims[2] = dims[1]; dims[2] <= LONGEST_SIDE; dims[2] += CUBE) {
        if (!tpu_slices_is_large(dims)) break;
        ADD(dims, true, tpu_slices_is_twisted(dims));
        if (tpu_slices_may_be_twisted(dims)) ADD(dims, true, !tpu_slices_is_twisted(dims));
      }
    }
  }
#undef ADD
  if (count > capacity) {
    return mp_status_make(MP_INVALID_ARGUMENT, "`max_slice_configs` must be >= %zu, got %zu.",
                          count, capacity);
  }
  *out_count = count;
  return NULL;
}

// ---- topologies ----

// The name of the chips in a description: "v4-megacore" of "v4-megacore:2x2x1".
static mp_str_t tpu_slices_preset(const mp_pod_info_t *info) {
  const char *colon = strchr(info->name, ':');
  if (colon == NULL) return mp_str(info->chip);
  return (mp_str_t){info->name, (size_t)(colon - info->name)};
}

mp_status_t mp_tpu_make_topology(const PJRT_TopologyDescription *topology, const int32_t *box,
                                 const int32_t *hosts, PJRT_TopologyDescription **out_topology) {
  const mp_pod_info_t *info = mp_pod_info(topology->pod);
  const mp_str_t preset = tpu_slices_preset(info);
  if (preset.size == 0) {
    return mp_status_make(MP_UNIMPLEMENTED,
                          "the pod '%s' is described without the name of a chip, so no other "
                          "topology of its chips can be made",
                          info->name);
  }
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_printf(&text, "%.*s", MP_STR_ARG(preset));
  for (int32_t d = 0; d < info->num_dims; ++d) {
    mp_strbuf_printf(&text, "%c%d", d == 0 ? ':' : 'x', box[d] * hosts[d]);
  }
  for (int32_t d = 0; d < info->num_dims; ++d) {
    mp_strbuf_printf(&text, "%s%d", d == 0 ? " host_shape:" : "x", box[d]);
  }
  mp_strbuf_puts(&text, " shapes:any");
  mp_pod_t *pod = NULL;
  mp_status_t status = mp_strbuf_status(&text);
  if (status == NULL) {
    status = mp_pod_create_from_name((mp_str_t){mp_strbuf_text(&text), text.size},
                                     "topology of a part", &pod);
  }
  mp_strbuf_deinit(&text);
  MP_RETURN_IF_ERROR(status);
  return mp_pjrt_topology_create(pod, topology->platform, true, out_topology);
}
