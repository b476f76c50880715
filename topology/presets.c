// Well-known machines, as keys of the one schema.
//
// Kinds, coordinates (three, the first fastest in the order of ids) and cores per chip are what
// those machines' own plugins report. Capacities and rates are per device: of one core on the
// machines with two cores per chip, of the whole chip elsewhere. Rates are the makers' published
// peaks; link rates are per link and direction.
#include "topology/spec.h"

typedef struct {
  const char *key;
  const char *value;
} setting_t;

enum { MP_PRESET_MAX_SETTINGS = 32 };

typedef struct {
  const char *name;
  setting_t settings[MP_PRESET_MAX_SETTINGS];
} preset_t;

// What all TPU pods have in common: three coordinates, hosts of 2x2 chips.
#define MP_TPU            \
  {"dims", "3"}, {        \
    "host_shape", "2x2x1" \
  }

static const preset_t g_presets[] = {
    {"v2",
     {MP_TPU,
      {"kind", "TPU v2"},
      {"topology", "torus"},
      {"cores_per_chip", "2"},
      {"memory.device", "8GiB"},
      {"memory.bandwidth", "350GB/s"},
      {"links.bandwidth", "62GB/s"},
      {"flops.bf16", "22.5T"}}},
    {"v3",
     {MP_TPU,
      {"kind", "TPU v3"},
      {"topology", "torus"},
      {"cores_per_chip", "2"},
      {"memory.device", "16GiB"},
      {"memory.bandwidth", "450GB/s"},
      {"links.bandwidth", "82GB/s"},
      {"flops.bf16", "61.5T"}}},
    {"v4",
     {MP_TPU,
      {"kind", "TPU v4"},
      {"topology", "torus"},
      {"memory.device", "32GiB"},
      {"memory.bandwidth", "1228GB/s"},
      {"links.bandwidth", "45GB/s"},
      {"flops.bf16", "275T"},
      {"flops.s8", "275T"}}},
    // The grids of v5e and v6e are tori only if they have 16 chips along a side; for those the user
    // adds topology:torus.
    {"v5e",
     {MP_TPU,
      {"kind", "TPU v5 lite"},
      {"topology", "mesh"},
      {"memory.device", "16GiB"},
      {"memory.bandwidth", "819GB/s"},
      {"links.bandwidth", "45GB/s"},
      {"flops.bf16", "197T"},
      {"flops.s8", "394T"}}},
    {"v5p",
     {MP_TPU,
      {"kind", "TPU v5"},
      {"topology", "torus"},
      {"memory.device", "95GiB"},
      {"memory.bandwidth", "2765GB/s"},
      {"links.bandwidth", "90GB/s"},
      {"flops.bf16", "459T"},
      {"flops.s8", "918T"}}},
    {"v6e",
     {MP_TPU,
      {"kind", "TPU v6 lite"},
      {"topology", "mesh"},
      {"memory.device", "32GiB"},
      {"memory.bandwidth", "1640GB/s"},
      {"links.bandwidth", "90GB/s"},
      {"flops.bf16", "918T"},
      {"flops.s8", "1836T"}}},
};

static const preset_t *presets_find(mp_str_t name) {
  for (size_t i = 0; i < sizeof(g_presets) / sizeof(g_presets[0]); ++i) {
    if (mp_str_is(name, g_presets[i].name)) return &g_presets[i];
  }
  return NULL;
}

bool mp_spec_is_preset(mp_str_t name) {
  return presets_find(name) != NULL;
}

mp_status_t mp_spec_apply_preset(mp_pod_spec_t *spec, mp_str_t name) {
  const preset_t *preset = presets_find(name);
  if (preset == NULL) {
    return mp_status_make(MP_NOT_FOUND, "no preset '%.*s'", MP_STR_ARG(name));
  }
  mp_spec_clear_layer(spec, MP_LAYER_PRESET);
  mp_spec_place_t place = {preset->name, 0, MP_LAYER_PRESET};
  for (int i = 0; i < MP_PRESET_MAX_SETTINGS && preset->settings[i].key != NULL; ++i) {
    MP_RETURN_IF_ERROR(mp_spec_set(spec, place, mp_str(preset->settings[i].key),
                                   mp_str(preset->settings[i].value)));
  }
  return NULL;
}

void mp_spec_list_presets(mp_strbuf_t *out_text) {
  for (size_t i = 0; i < sizeof(g_presets) / sizeof(g_presets[0]); ++i) {
    mp_strbuf_printf(out_text, "%s%s", i == 0 ? "" : ", ", g_presets[i].name);
  }
}
