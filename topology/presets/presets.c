// Well-known machines, as keys of the one schema.
//
// Kinds, coordinates (three, the first fastest in the order of ids), cores, hosts and what a
// program may use of a device's memory are what libtpu 0.0.42 says of described TPUs
// (tests/fixtures/tpu/topologies.json). Everything else is a published figure, with its source.
// Rates are peaks, per device: of one core where a chip is two devices, of the whole chip
// elsewhere. Rates of links are per link and direction, half of what is published as bidirectional.
// Unpublished rates are left out.
//
// Sources, by the letters in brackets:
//   [D]   Google Cloud TPU documentation: docs.cloud.google.com/tpu/docs/v4, v5e, v5p, v6e, tpu7x
//   [J20] Jouppi et al., "A Domain-Specific Supercomputer for Training Deep Neural Networks",
//         Communications of the ACM 63(7), 2020
//   [J23] Jouppi et al., "TPU v4: An Optically Reconfigurable Supercomputer for Machine Learning
//   with
//         Hardware Support for Embeddings", arXiv:2304.01433
//   [N21] Norrie et al., "The Design Process for Google's Training Chips: TPUv2 and TPUv3",
//         IEEE Micro 41(2), 2021
//   [S]   Austin et al., "How to Scale Your Model", jax-ml.github.io/scaling-book/tpus
//   [A]   NVIDIA A100 80GB and DGX A100 datasheets; [H] NVIDIA H100 and DGX H100 datasheets;
//         [B] NVIDIA DGX B200 and HGX B200 datasheets; [H2] NVIDIA H200 datasheet;
//         [G] NVIDIA GB200 NVL72 datasheet, of a superchip with two GPUs, without sparsity
//   [X]   openxla/xla, xla/backends/gpu/target_config/specs: what CUDA reports of a device
//   [M]   docs.cloud.google.com/compute/docs/gpus/gpu-network-bandwidth: cards of GPUs, per machine
//   [T]   JAX, pltpu.get_tpu_info: VMEM and SMEM of all TPUs
//   [R]   astra-sim/astra-sim, examples/network/analytical/HGX-H100-validated.yml: latency to and
//   from the
//         NVLink switches, fitted to NCCL's collectives
#include "topology/presets/presets.h"

#include <stddef.h>

#include "topology/presets/cloud_names.h"

typedef mp_preset_setting_t setting_t;

enum { MAX_SETTINGS = 32 };

struct mp_preset_s {
  const char *name;
  const char *alias;        // or NULL
  const setting_t *family;  // common settings before its own; ends with NULL
  const char *base;         // the preset that has all other settings, or NULL
  setting_t settings[MAX_SETTINGS];
};

// All TPUs: three coordinates, hosts of 2x2 chips, a microsecond per link [S]. Pods of 16x16 or
// 32x32 chips are tori, and slices have rings along the sides that span the whole pod; the others
// consist of optically switched blocks, and slices of whole blocks have rings [S]. Valid slices:
// [D].
static const setting_t g_tpu[] = {{"dims", "3"},
                                  {"host_shape", "2x2x1"},
                                  {"topology", "torus"},
                                  {"links.latency", "1us"},
                                  {NULL, NULL}};

// Hosts with eight GPUs, each with its own network card: a slice is the set of GPUs that the NVLink
// switches connect.
static const setting_t g_gpu[] = {
    {"topology", "switch"}, {"dcn.topology", "fat_tree"}, {"dcn.links", "8"}, {NULL, NULL}};

static const mp_preset_t g_presets[] = {
    // 46 Tflop/s, 700 GB/s, links of 496 Gbit/s [J20].
    {"v2",
     NULL,
     g_tpu,
     NULL,
     {{"shapes", "2x2,4x4,4x8,8x8,8x16,16x16"},
      {"wrap.side", "16"},
      {"kind", "TPU v2"},
      {"cores_per_chip", "2"},
      {"matrix_unit", "128x128"},
      {"memory.vmem", "16MiB"},
      {"memory.smem", "16KiB"},
      {"memory.device", "7660MiB"},
      {"memory.bandwidth", "350GB/s"},
      {"links.bandwidth", "62GB/s"},
      {"flops.bf16", "23T"}}},
    // 123 Tflop/s, 900 GB/s, links of 656 Gbit/s, pods of 32x32 chips [J20]; 1024 lanes with two
    // units each at 0.94 GHz do vector operations [N21].
    {"v3",
     NULL,
     g_tpu,
     NULL,
     {{"chip", "v3"},
      {"shapes", "2x2,4x4,4x8,8x8,8x16,16x16,16x32,32x32"},
      {"wrap.side", "32"},
      {"kind", "TPU v3"},
      {"cores_per_chip", "2"},
      {"matrix_unit", "128x128"},
      {"memory.vmem", "16MiB"},
      {"memory.smem", "16KiB"},
      {"memory.device", "15852MiB"},
      {"memory.bandwidth", "450GB/s"},
      {"links.bandwidth", "82GB/s"},
      {"flops.bf16", "61.5T"},
      {"flops.vector", "1.92T"}}},
    // A device of a v4 chip is one of its two cores or, as megacore, both. 275 Tflop/s, 1200 GB/s,
    // 6
    // links of 2400 Gbit/s together [D]; the host's card, PCIe [S]; 2 x 1024 lanes at 1.05 GHz do
    // vector operations [J23, S].
    {"v4",
     NULL,
     g_tpu,
     NULL,
     {{"chip", "v4"},
      {"shapes", "1x1x1,2x1x1,2x2x1,2x2x2,2x2x4,2x4x4"},
      {"wrap.block", "4x4x4"},
      {"kind", "TPU v4"},
      {"matrix_unit", "128x128"},
      {"memory.vmem", "16MiB"},
      {"memory.smem", "1MiB"},
      {"links.bandwidth", "50GB/s"},
      {"dcn.bandwidth", "25GB/s"},
      {"host_link.bandwidth", "16GB/s"},
      {"cores_per_chip", "2"},
      {"memory.device", "15.25GiB"},
      {"memory.bandwidth", "600GB/s"},
      {"flops.bf16", "137.5T"},
      {"flops.s8", "137.5T"},
      {"flops.vector", "2.15T"}}},
    {"v4-megacore",
     NULL,
     g_tpu,
     NULL,
     {{"chip", "v4-megacore"},
      {"shapes", "1x1x1,2x1x1,2x2x1,2x2x2,2x2x4,2x4x4"},
      {"wrap.block", "4x4x4"},
      {"kind", "TPU v4"},
      {"matrix_unit", "128x128"},
      {"memory.vmem", "16MiB"},
      {"memory.smem", "1MiB"},
      {"links.bandwidth", "50GB/s"},
      {"dcn.bandwidth", "25GB/s"},
      {"host_link.bandwidth", "16GB/s"},
      {"cores_per_device", "2"},
      {"memory.device", "30.75GiB"},
      {"memory.bandwidth", "1200GB/s"},
      {"flops.bf16", "275T"},
      {"flops.s8", "275T"},
      {"flops.vector", "4.3T"}}},
    // 197 Tflop/s, 393 Top/s, 819 GB/s, 4 links of 400 GB/s together, both directions, two cards of
    // 100 Gbit/s for 8 chips [D]; PCIe, 4 x 1024 lanes at 1.5 GHz [S].
    {"v5e",
     NULL,
     g_tpu,
     NULL,
     {{"chip", "v5e"},
      {"shapes", "1x1,2x2,2x4,4x4,4x8,8x8,8x16,16x16"},
      {"wrap.side", "16"},
      {"kind", "TPU v5 lite"},
      {"matrix_unit", "128x128"},
      {"memory.vmem", "128MiB"},
      {"memory.smem", "1MiB"},
      {"memory.scoped_vmem", "16MiB"},
      {"memory.device", "15.75GiB"},
      {"memory.bandwidth", "819GB/s"},
      {"links.bandwidth", "50GB/s"},
      {"dcn.bandwidth", "12.5GB/s"},
      {"host_link.bandwidth", "15GB/s"},
      {"flops.bf16", "197T"},
      {"flops.s8", "393T"},
      {"flops.vector", "6.1T"}}},
    // 459 Tflop/s, 2765 GB/s, 6 links of 1200 GB/s together, both directions, 50 Gbit/s of the
    // network
    // for each of 4 chips [D]; 918 Top/s, PCIe, 2 x 4 x 1024 lanes at 1.75 GHz [S].
    {"v5p",
     "v5p-megacore",
     g_tpu,
     NULL,
     {{"chip", "v5p"},
      {"shapes", "1x1x1,2x1x1,2x2x1,2x2x2,2x2x4,2x4x4"},
      {"wrap.block", "4x4x4"},
      {"kind", "TPU v5"},
      {"cores_per_device", "2"},
      {"matrix_unit", "128x128"},
      {"memory.vmem", "64MiB"},
      {"memory.smem", "1MiB"},
      {"memory.scoped_vmem", "16MiB"},
      {"memory.device", "98038MiB"},
      {"memory.bandwidth", "2765GB/s"},
      {"links.bandwidth", "100GB/s"},
      {"dcn.bandwidth", "25GB/s"},
      {"host_link.bandwidth", "15GB/s"},
      {"flops.bf16", "459T"},
      {"flops.f8", "459T"},
      {"flops.s8", "918T"},
      {"flops.vector", "14.3T"}}},
    // 918 Tflop/s, 1836 Top/s, 1638 GB/s, 4 links of 800 GB/s together, both directions, four cards
    // of
    // 200 Gbit/s for 8 chips [D]; PCIe [S].
    {"v6e",
     NULL,
     g_tpu,
     NULL,
     {{"chip", "v6e"},
      {"shapes", "1x1,2x2,2x4,4x4,4x8,8x8,8x16,16x16"},
      {"wrap.side", "16"},
      {"kind", "TPU v6 lite"},
      {"matrix_unit", "256x256"},
      {"memory.vmem", "128MiB"},
      {"memory.smem", "1MiB"},
      {"memory.scoped_vmem", "32MiB"},
      {"memory.device", "31.25GiB"},
      {"memory.bandwidth", "1638GB/s"},
      {"links.bandwidth", "100GB/s"},
      {"dcn.links", "2"},
      {"dcn.bandwidth", "25GB/s"},
      {"host_link.bandwidth", "32GB/s"},
      {"flops.bf16", "918T"},
      {"flops.f8", "918T"},
      {"flops.s8", "1836T"}}},
    // 2307 Tflop/s, 4614 in 8-bit floats, 7380 GB/s, 6 links of 1200 GB/s together, both
    // directions,
    // 100 Gbit/s of the network for each of 4 chips [D].
    {"7x",
     "tpu7x",
     g_tpu,
     NULL,
     {{"chip", "7x"},
      {"shapes", "1x1x1,2x1x1,2x2x1,2x2x2,2x2x4,2x4x4"},
      {"wrap.block", "4x4x4"},
      {"kind", "TPU7x"},
      {"cores_per_chip", "2"},
      {"matrix_unit", "256x256"},
      {"memory.vmem", "64MiB"},
      {"memory.smem", "1MiB"},
      {"memory.scoped_vmem", "32MiB"},
      {"memory.device", "94.75GiB"},
      {"memory.bandwidth", "3690GB/s"},
      {"links.bandwidth", "100GB/s"},
      {"dcn.bandwidth", "50GB/s"},
      {"flops.bf16", "1153.5T"},
      {"flops.f8", "2307T"}}},
    // a100:8 is a host, a100:8 slices:4 are four. f32 matmuls run in TF32. 12 links of 25 GB/s,
    // PCIe 4, eight cards of 200 Gbit/s [A].
    {"a100",
     NULL,
     g_gpu,
     NULL,
     {{"chip", "a100"},
      {"kind", "NVIDIA A100-SXM4-80GB"},
      {"compute_capability", "8.0"},
      {"memory.device", "80GiB"},
      {"memory.bandwidth", "2039GB/s"},
      {"links.count", "12"},
      {"links.bandwidth", "25GB/s"},
      {"dcn.bandwidth", "25GB/s"},
      {"host_link.bandwidth", "32GB/s"},
      {"flops.f64", "19.5T"},
      {"flops.f32", "156T"},
      {"flops.bf16", "312T"},
      {"flops.f16", "312T"},
      {"flops.s8", "624T"},
      {"flops.s4", "1248T"},
      {"flops.vector", "19.5T"}}},
    // 18 links of 25 GB/s, PCIe 5, eight cards of 400 Gbit/s [H]; latency [R].
    {"h100",
     NULL,
     g_gpu,
     NULL,
     {{"chip", "h100"},
      {"kind", "NVIDIA H100 80GB HBM3"},
      {"compute_capability", "9.0"},
      {"memory.device", "80GiB"},
      {"memory.bandwidth", "3350GB/s"},
      {"links.count", "18"},
      {"links.latency", "936ns"},
      {"links.bandwidth", "25GB/s"},
      {"dcn.bandwidth", "50GB/s"},
      {"host_link.bandwidth", "64GB/s"},
      {"flops.f64", "66.9T"},
      {"flops.f32", "494.7T"},
      {"flops.bf16", "989.4T"},
      {"flops.f16", "989.4T"},
      {"flops.f8", "1978.9T"},
      {"flops.s8", "1978.9T"},
      {"flops.vector", "66.9T"}}},
    // An H100's chip with other memory, 141 GB at 4.8 TB/s [H2], of which CUDA reports 139.8 GiB.
    {"h200",
     NULL,
     g_gpu,
     "h100",
     {{"chip", "h200"},
      {"kind", "NVIDIA H200"},
      {"memory.device", "139.8GiB"},
      {"memory.bandwidth", "4800GB/s"}}},
    // 18 links of 50 GB/s, PCIe 5, eight cards of 400 Gbit/s [B]; the memory is what CUDA reports.
    {"b200",
     NULL,
     g_gpu,
     NULL,
     {{"chip", "b200"},
      {"kind", "NVIDIA B200"},
      {"compute_capability", "10.0"},
      {"memory.device", "178GiB"},
      {"memory.bandwidth", "7700GB/s"},
      {"links.count", "18"},
      {"links.bandwidth", "50GB/s"},
      {"dcn.bandwidth", "50GB/s"},
      {"host_link.bandwidth", "64GB/s"},
      {"flops.f64", "37T"},
      {"flops.f32", "1100T"},
      {"flops.bf16", "2250T"},
      {"flops.f16", "2250T"},
      {"flops.f8", "4500T"},
      {"flops.s8", "4500T"},
      {"flops.vector", "75T"}}},
    // A slice is the set of GPUs that a rack's NVLink switches connect, up to 72 (gb200:72). A host
    // has four GPUs with a card of 400 Gbit/s each. 900 GB/s in both directions from a CPU to two
    // GPUs [G]; memory [X].
    {"gb200",
     NULL,
     g_gpu,
     "b200",
     {{"chip", "gb200"},
      {"kind", "NVIDIA GB200"},
      {"host_shape", "4"},
      {"dcn.links", "4"},
      {"memory.device", "184.3GiB"},
      {"memory.bandwidth", "8000GB/s"},
      {"host_link.bandwidth", "225GB/s"},
      {"flops.f64", "40T"},
      {"flops.f32", "1250T"},
      {"flops.bf16", "2500T"},
      {"flops.f16", "2500T"},
      {"flops.f8", "5000T"},
      {"flops.s8", "5000T"},
      {"flops.vector", "80T"}}},
    // Machines of Google Cloud with eight GPUs, or four: `slices` counts them. Four cards of 200
    // Gbit/s for eight GPUs, eight of 200, eight of 400; four of 400 [M].
    {"a3-highgpu-8g",
     NULL,
     g_gpu,
     "h100",
     {{"shape", "8"}, {"dcn.links", "4"}, {"dcn.bandwidth", "25GB/s"}}},
    {"a3-megagpu-8g", NULL, g_gpu, "h100", {{"shape", "8"}, {"dcn.bandwidth", "25GB/s"}}},
    {"a3-ultragpu-8g", NULL, g_gpu, "h200", {{"shape", "8"}}},
    {"a4-highgpu-8g", NULL, g_gpu, "b200", {{"shape", "8"}}},
    {"a4x-highgpu-4g", NULL, g_gpu, "gb200", {{"shape", "4"}}},
};

static const mp_preset_t *presets_find(mp_str_t name) {
  for (size_t i = 0; i < sizeof(g_presets) / sizeof(g_presets[0]); ++i) {
    const mp_preset_t *preset = &g_presets[i];
    if (mp_str_is(name, preset->name)) return preset;
    if (preset->alias != NULL && mp_str_is(name, preset->alias)) return preset;
  }
  return NULL;
}

const mp_preset_t *mp_preset_find(mp_str_t name) {
  return presets_find(mp_cloud_name_preset(name));
}

const char *mp_preset_name(const mp_preset_t *preset) {
  return preset->name;
}

// The base of a preset; NULL: none.
static const mp_preset_t *presets_base(const mp_preset_t *preset) {
  return preset->base == NULL ? NULL : presets_find(mp_str(preset->base));
}

static bool presets_has_key(const setting_t *settings, const char *key) {
  for (; settings->key != NULL; ++settings) {
    if (mp_str_is(mp_str(key), settings->key)) return true;
  }
  return false;
}

// Whether a preset that is built on this one, from `top` on, overrides a setting.
static bool presets_is_overridden(const mp_preset_t *top, const mp_preset_t *preset,
                                  const char *key) {
  for (; top != preset; top = presets_base(top)) {
    if (presets_has_key(top->settings, key)) return true;
  }
  return false;
}

const mp_preset_setting_t *mp_preset_setting(const mp_preset_t *preset, size_t index) {
  const mp_preset_t *top = preset;
  for (; preset != NULL; preset = presets_base(preset)) {
    for (const setting_t *setting = preset->settings; setting->key != NULL; ++setting) {
      if (!presets_is_overridden(top, preset, setting->key) && index-- == 0) return setting;
    }
  }
  for (const setting_t *setting = top->family; setting->key != NULL; ++setting) {
    if (!presets_is_overridden(top, NULL, setting->key) && index-- == 0) return setting;
  }
  return NULL;
}

void mp_preset_list(mp_strbuf_t *out_text) {
  for (size_t i = 0; i < sizeof(g_presets) / sizeof(g_presets[0]); ++i) {
    mp_strbuf_printf(out_text, "%s%s", i == 0 ? "" : ", ", g_presets[i].name);
  }
}

const mp_carried_file_t *mp_carried_file_find(const mp_carried_file_t *files, mp_str_t name) {
  for (; files->name != NULL; ++files) {
    if (mp_str_is(name, files->name)) return files;
  }
  return NULL;
}

void mp_carried_files_list(const mp_carried_file_t *files, mp_strbuf_t *out_text) {
  for (size_t i = 0; files[i].name != NULL; ++i) {
    mp_strbuf_printf(out_text, "%s%s", i == 0 ? "" : ", ", files[i].name);
  }
}
