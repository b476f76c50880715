#include "topology/presets/cloud_names.h"

#include <stdio.h>
#include <string.h>

static const struct {
  const char *name, *preset;
  int dims, cores;  // dimensions of the grid; cores per chip, if the name counts cores
} g_names[] = {
    {"v2-", "v2", 2, 2},         {"v3-", "v3", 2, 2},   {"v4-", "v4", 3, 2},
    {"v5p-", "v5p", 3, 2},       {"v5e-", "v5e", 2, 1}, {"v6e-", "v6e", 2, 1},
    {"v5litepod-", "v5e", 2, 1},
};

// The sides of a grid of 2^k chips: as equal as possible, the shortest first. With three
// dimensions, up to four chips are a plane.
static void cloud_names_put_shape(int dims, int k, char *out_shape) {
  if (dims == 2) {
    snprintf(out_shape, MP_CLOUD_SHAPE, "%dx%d", 1 << k / 2, 1 << (k + 1) / 2);
  } else if (k <= 2) {
    snprintf(out_shape, MP_CLOUD_SHAPE, "%dx%dx1", 1 << (k + 1) / 2, 1 << k / 2);
  } else {
    snprintf(out_shape, MP_CLOUD_SHAPE, "%dx%dx%d", 1 << k / 3, 1 << (k + 1) / 3, 1 << (k + 2) / 3);
  }
}

bool mp_cloud_name_read(mp_str_t name, const char **out_preset, char *out_shape) {
  for (size_t i = 0; i < sizeof(g_names) / sizeof(g_names[0]); ++i) {
    if (!mp_str_starts_with(name, g_names[i].name)) continue;
    const size_t begin = strlen(g_names[i].name);
    long long count;
    if (!mp_str_parse_i64((mp_str_t){name.data + begin, name.size - begin}, &count)) return false;
    if (count < g_names[i].cores || count > 1 << 20) return false;
    int k = 0;
    while ((long long)g_names[i].cores << k < count) ++k;
    if ((long long)g_names[i].cores << k != count) return false;
    *out_preset = g_names[i].preset;
    cloud_names_put_shape(g_names[i].dims, k, out_shape);
    return true;
  }
  return false;
}

// Removes the end from the name, if it has it.
static void cloud_names_cut_end(mp_str_t *name, const char *end) {
  if (mp_str_ends_with(*name, end)) name->size -= strlen(end);
}

// Other names of chips at Google Cloud and Kubernetes Engine.
static const struct {
  const char *name, *preset;
} g_chips[] = {
    {"trillium", "v6e"},           {"ironwood", "7x"},           {"v5-lite", "v5e"},
    {"nvidia-a100-80gb", "a100"},  {"nvidia-h100-80gb", "h100"}, {"nvidia-h100-mega-80gb", "h100"},
    {"nvidia-h200-141gb", "h200"}, {"nvidia-b200", "b200"},      {"nvidia-gb200", "gb200"},
};

mp_str_t mp_cloud_name_preset(mp_str_t name) {
  if (mp_str_starts_with(name, "tpu-")) {
    name = (mp_str_t){name.data + 4, name.size - 4};
    cloud_names_cut_end(&name, "-podslice");
    cloud_names_cut_end(&name, "-slice");
    cloud_names_cut_end(&name, "-device");
  }
  for (size_t i = 0; i < sizeof(g_chips) / sizeof(g_chips[0]); ++i) {
    if (mp_str_is(name, g_chips[i].name)) return mp_str(g_chips[i].preset);
  }
  return name;
}
