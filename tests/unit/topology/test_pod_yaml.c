// Pod descriptions: the YAML and one-line forms, and the errors of bad ones.

#include <stdlib.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "tests/unit/support/unit.h"
#include "topology/pod.h"
#include "topology/spec.h"
#include "topology/spec_astra.h"

#define CONFIGS  MINIPOD_SOURCE_DIR "/configs/"
#define FIXTURES MINIPOD_SOURCE_DIR "/tests/fixtures/topology/"

static mp_pod_t *pod_named(const char *text) {
  mp_pod_t *pod = NULL;
  assert_ok(mp_pod_create_from_name(mp_str(text), "topology", &pod));
  return pod;
}

static mp_status_t read_yaml(const char *text) {
  mp_pod_spec_t spec = {0};
  MP_RETURN_IF_ERROR(mp_spec_read_yaml(&spec, "pod.yaml", mp_str(text)));
  return mp_spec_finish(&spec, "pod.yaml");
}

static void the_shipped_files_read(void **state) {
  (void)state;
  mp_pod_t *pod = pod_named(CONFIGS "rack.yaml");
  const mp_pod_info_t *info = mp_pod_info(pod);
  assert_string_equal(info->name, "rack");
  assert_string_equal(info->kind, "simcore");
  assert_int_equal(info->num_devices, 64);
  assert_int_equal(info->num_hosts, 4);
  assert_int_equal(info->wiring, MP_WIRING_TORUS);
  assert_int_equal(mp_pod_device(pod, 63)->host_index, 3);
  assert_int_equal(mp_pod_device(pod, 0)->capacity[MP_MEMORY_DEVICE], 64 << 20);
  assert_true(mp_pod_device(pod, 0)->capacity[MP_MEMORY_UNPINNED_HOST] == UINT64_MAX);
  assert_true(info->ici.latency == 1e-6 && info->ici.bandwidth == 45e9);
  assert_true(info->dcn.bandwidth == 25e9 && info->host_link.bandwidth == 16e9);
  assert_true(info->flops[MP_FLOP_BF16] == 140e12 && info->memory_bandwidth == 1200e9);
  mp_pod_release(pod);

  pod = pod_named(CONFIGS "v5e-16.yaml");
  assert_int_equal(mp_pod_info(pod)->num_devices, 16);
  assert_string_equal(mp_pod_info(pod)->kind, "TPU v5 lite");
  mp_pod_release(pod);

  pod = pod_named(CONFIGS "two-slices.yaml");
  assert_int_equal(mp_pod_info(pod)->num_devices, 16);
  assert_int_equal(mp_pod_device(pod, 7)->slice_index, 0);
  assert_int_equal(mp_pod_device(pod, 8)->slice_index, 1);
  mp_pod_release(pod);

  pod = pod_named(CONFIGS "gpu-cluster.yaml");
  info = mp_pod_info(pod);
  assert_int_equal(info->num_devices, 32);
  assert_int_equal(info->num_hosts, 4);
  assert_int_equal(info->wiring, MP_WIRING_SWITCH);
  assert_true(info->dcn_oversubscription == 2 && info->ici.bandwidth == 450e9);
  mp_pod_release(pod);

  pod = pod_named(CONFIGS "hierarchy.yaml");
  info = mp_pod_info(pod);
  assert_int_equal(info->wiring, MP_WIRING_MIXED);
  assert_int_equal(info->dims[1].wiring, MP_WIRING_FULLY_CONNECTED);
  assert_true(info->dims[2].link.bandwidth == 50e9 && info->dims[2].link.latency == 2 * 1e-6);
  mp_pod_release(pod);
}

static void words_override_the_file_and_the_file_the_preset(void **state) {
  (void)state;
  mp_pod_t *pod = pod_named(CONFIGS "v5e-16.yaml hosts:2 shape:4x2 kind:\"my core\"");
  assert_int_equal(mp_pod_info(pod)->num_hosts, 2);
  assert_int_equal(mp_pod_info(pod)->shape[0], 4);
  assert_string_equal(mp_pod_info(pod)->kind, "my core");
  assert_true(mp_pod_device(pod, 0)->capacity[MP_MEMORY_DEVICE] == 63ull << 28);
  assert_true(mp_pod_device(pod, 0)->capacity[MP_MEMORY_PINNED_HOST] == 2ull << 30);
  mp_pod_release(pod);
  // A second preset replaces all that the first gave.
  pod = pod_named(CONFIGS "v5e-16.yaml preset:v2");
  assert_string_equal(mp_pod_info(pod)->kind, "TPU v2");
  assert_int_equal(mp_pod_info(pod)->num_devices, 32);
  assert_true(mp_pod_info(pod)->flops[MP_FLOP_S8] == 0);
  mp_pod_release(pod);
}

static void both_forms_mean_the_same(void **state) {
  (void)state;
  static const char yaml[] =
      "{topology: torus, shape: [4, 4], hosts: 2, memory: {device: 16GiB}, links.latency: 1us}";
  mp_pod_spec_t spec = {0};
  assert_ok(mp_spec_read_yaml(&spec, "pod.yaml", mp_str(yaml)));
  assert_ok(mp_spec_finish(&spec, "pod.yaml"));
  mp_pod_spec_t line = {0};
  assert_ok(mp_spec_read_line(&line, "line",
                              MP_STR("  torus:4x4\thosts:2 hbm:16GiB links.latency:1us ")));
  assert_ok(mp_spec_finish(&line, "line"));
  mp_strbuf_t a;
  mp_strbuf_t b;
  mp_strbuf_init(&a);
  mp_strbuf_init(&b);
  mp_spec_write(&spec, &a);
  mp_spec_write(&line, &b);
  assert_string_equal(mp_strbuf_text(&a), mp_strbuf_text(&b));
  mp_strbuf_deinit(&a);
  mp_strbuf_deinit(&b);
}

// The wirings of the dimensions, "ring mesh", after the name of the whole.
static void check_wirings(const char *text, const char *expected) {
  mp_pod_t *pod = pod_named(text);
  const mp_pod_info_t *info = mp_pod_info(pod);
  mp_strbuf_t found;
  mp_strbuf_init(&found);
  mp_strbuf_puts(&found, mp_wiring_name(info->wiring));
  for (int32_t i = 0; i < info->num_dims; ++i) {
    mp_strbuf_printf(&found, " %s", mp_wiring_name(info->dims[i].wiring));
  }
  assert_string_equal(mp_strbuf_text(&found), expected);
  mp_strbuf_deinit(&found);
  mp_pod_release(pod);
}

static void each_dimension_has_its_wiring(void **state) {
  (void)state;
  check_wirings("torus:4x4", "torus ring ring");
  check_wirings("torus:8", "torus ring");
  check_wirings("mesh:4x1", "mesh mesh mesh");
  check_wirings("ring:4x1", "ring ring ring");
  check_wirings("switch:8", "switch switch");
  check_wirings("fully_connected:2x4", "fully_connected fully_connected fully_connected");
  check_wirings("ring,fully_connected,switch:2x8x4", "mixed ring fully_connected switch");
  check_wirings("ring,ring:4x4", "torus ring ring");
  check_wirings("mesh,mesh:4x4x1", "mesh mesh mesh mesh");
  check_wirings("ring,switch:4x4x1", "mixed ring switch mesh");
  check_wirings("ring,switch:1x4", "switch switch switch");
  // Which dimensions of a torus close to rings: by their lengths, or by blocks of the whole.
  check_wirings("torus:4x16 wrap.side:16", "mixed mesh ring");
  check_wirings("torus:16x16x1 wrap.side:16", "torus ring ring ring");
  check_wirings("torus:4x8x1 wrap.side:16", "mesh mesh mesh mesh");
  check_wirings("torus:4x4x8 wrap.block:4x4x4", "torus ring ring ring");
  check_wirings("torus:2x4x4 wrap.block:4x4x4", "mesh mesh mesh mesh");
  check_wirings("torus:4x4 wrap.block:4x4x4", "mesh mesh mesh");
}

static void published_slices_have_their_rings(void **state) {
  (void)state;
  // Sides of 16 chips close to rings on the planes, and all sides of whole blocks.
  check_wirings("v5e:1x1", "torus ring ring ring");
  check_wirings("v5e:2x4", "mesh mesh mesh mesh");
  check_wirings("v5e:8x16", "mixed mesh ring mesh");
  check_wirings("v5e:16x16", "torus ring ring ring");
  check_wirings("v6e:8x16", "mixed mesh ring mesh");
  check_wirings("v3:32x32", "torus ring ring ring");
  check_wirings("v4:2x2x1", "mesh mesh mesh mesh");
  check_wirings("v4:2x2x4", "mesh mesh mesh mesh");
  check_wirings("v4-megacore:4x4x4", "torus ring ring ring");
  check_wirings("v5p:16x16x24", "torus ring ring ring");
  check_wirings("7x:4x4x8", "torus ring ring ring");
  check_wirings("tpu7x:2x4x4", "mesh mesh mesh mesh");
  // `topology: torus` makes it a torus, also together with a preset.
  check_wirings("v5e:4x4 topology:torus", "torus ring ring ring");
  check_wirings("v5e:16x16 topology:mesh", "mesh mesh mesh mesh");
  check_wirings("h100:8 slices:4", "switch switch");
}

static void machines_come_in_published_slices(void **state) {
  (void)state;
  static const char *const there[] = {"v5e:1",
                                      "v5e:4x2",
                                      "v5e:2x4x1",
                                      "v6e:16x16",
                                      "v2:16x16",
                                      "v3:32x16",
                                      "v4:2x2x1",
                                      "v4:4x4x4",
                                      "v4:2x4x2",
                                      "v5p:4x8x12",
                                      "v4-megacore:16x16x4",
                                      "7x:4x4x8",
                                      "h100:3x5",
                                      "v5e:8x4 slices:3",
                                      "v5e:3x5x7 shapes:any",
                                      "torus:3x5 shapes:3x5,4x4"};
  for (size_t i = 0; i < sizeof(there) / sizeof(there[0]); ++i) mp_pod_release(pod_named(there[i]));
  static const struct {
    const char *text, *message;
  } missing[] = {
      {"v5e:3x5x7",
       "key 'shape': no slice of v5e has the grid 3x5x7, expected 1x1, 2x2, 2x4, 4x4, "
       "4x8, 8x8, 8x16, 16x16, with the sides in any order (shapes:any allows all)"},
      {"v5e:2x2x2", "no slice of v5e has the grid 2x2x2"},
      {"v6e:16x32", "no slice of v6e has the grid 16x32x1"},
      {"v2:32x32", "no slice of v2 has the grid 32x32x1"},
      {"v4:2x2x8",
       "no slice of v4 has the grid 2x2x8, expected 1x1x1, 2x1x1, 2x2x1, 2x2x2, 2x2x4, "
       "2x4x4, blocks of 4x4x4, with the sides in any order"},
      {"v5p:8x8", "no slice of v5p has the grid 8x8x1"},
      {"7x:4x4x6", "no slice of 7x has the grid 4x4x6"},
      {"torus:3x5 shapes:4x4", "no slice has the grid 3x5, expected 4x4"},
      {"torus:3x5 shapes:4x,4", "key 'shapes': expected grids such as 2x2,2x4, or any"},
      {"preset:v5e chips:3", "key 'chips': no slice of v5e has the grid 3x1x1"},
  };
  for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); ++i) {
    mp_pod_spec_t spec = {0};
    mp_status_t status = mp_spec_read_line(&spec, "line", mp_str(missing[i].text));
    if (status == NULL) status = mp_spec_finish(&spec, "line");
    assert_status(status, MP_INVALID_ARGUMENT, missing[i].message);
  }
}

static void links_may_differ_by_dimension(void **state) {
  (void)state;
  mp_pod_t *pod = pod_named(
      "ring,switch:2x8x1 links.bandwidth:200GB/s,50GB/s links.latency:50ns links.count:2");
  const mp_pod_info_t *info = mp_pod_info(pod);
  assert_true(info->dims[0].link.bandwidth == 400e9 && info->dims[1].link.bandwidth == 100e9);
  assert_true(info->dims[1].link.latency == info->dims[0].link.latency);
  assert_true(info->ici.bandwidth == 400e9 && info->ici.latency == 50 * 1e-9);
  mp_pod_release(pod);
  // Dimensions of size 1 have no links, whatever the description gives for them.
  pod = pod_named("ring,switch:1x4 links.bandwidth:3GB/s,2GB/s");
  assert_int_equal(mp_pod_info(pod)->wiring, MP_WIRING_SWITCH);
  assert_true(mp_pod_info(pod)->ici.bandwidth == 2e9);
  mp_pod_release(pod);
  mp_pod_t *a = pod_named("ring,mesh:4x4x1 links.bandwidth:3GB/s,2GB/s,1GB/s");
  mp_pod_t *b = pod_named("ring,mesh:4x4x1 links.bandwidth:3GB/s,2GB/s");
  assert_true(mp_pod_fingerprint(a) == mp_pod_fingerprint(b));
  mp_pod_release(a);
  mp_pod_release(b);
}

static void networks_between_hosts(void **state) {
  (void)state;
  mp_pod_t *pod = pod_named("switch:8 slices:4 dcn.topology:fat_tree dcn.links:8");
  const mp_pod_info_t *info = mp_pod_info(pod);
  assert_int_equal(info->dcn_fabric, MP_FABRIC_FAT_TREE);
  assert_int_equal(info->dcn_links, 8);
  assert_int_equal(info->dcn_leaf_hosts, 32);
  assert_true(info->dcn_oversubscription == 1);
  mp_pod_release(pod);
  pod = pod_named("switch:8 op_latency:2us matrix_unit:128x256 flops.vector:2T");
  info = mp_pod_info(pod);
  assert_int_equal(info->dcn_fabric, MP_FABRIC_SWITCH);
  assert_int_equal(info->dcn_links, 1);
  assert_int_equal(info->dcn_leaf_hosts, 0);
  assert_true(info->op_latency == 2 * 1e-6 && info->vector_flops == 2e12);
  assert_int_equal(info->matrix_unit[0], 128);
  assert_int_equal(info->matrix_unit[1], 256);
  mp_pod_release(pod);
}

static void bad_yaml_names_line_key_and_what_was_expected(void **state) {
  (void)state;
  static const struct {
    const char *text;
    const char *message;
  } cases[] = {
      {"shape: 4x4\nhost: 2\n", "pod.yaml:2: key 'host': unknown, did you mean 'hosts'?"},
      {"shape: 4x4\nmemory:\n  devise: 1\n",
       "pod.yaml:3: key 'memory.devise': unknown, did you mean 'memory.device'?"},
      {"shape: 4x4\nqqqqqqqqqqqq: 2\n", "pod.yaml:2: key 'qqqqqqqqqqqq': unknown; known are"},
      {"shape: 4x4\n\nhosts: two\n",
       "pod.yaml:3: key 'hosts': expected a whole number from 1 to 65536, got 'two'"},
      {"hosts: 0\n", "pod.yaml:1: key 'hosts': expected a whole number from 1"},
      {"hosts:\n", "key 'hosts': expected a whole number from 1 to 65536, got ''"},
      {"hosts: 99999999999999999999\n", "expected a whole number from 1 to 65536"},
      {"hosts: [1]\n", "key 'hosts': expected a whole number from 1 to 65536, got a list"},
      {"hosts: {a: 1}\n", "key 'hosts': expected a whole number from 1 to 65536, got a mapping"},
      {"dims: 7\n", "key 'dims': expected a whole number from 1 to 6, got '7'"},
      {"memory: 16GiB\n",
       "pod.yaml:1: key 'memory': expected a mapping of device, pinned_host, unpinned_host, "
       "vmem, smem, scoped_vmem, bandwidth, got '16GiB'"},
      {"memory: {device: 16 gigs}\n", "expected a size such as 16GiB, or unlimited"},
      {"memory: {device: 0}\n", "expected a size such as 16GiB"},
      {"shape: 4\nhbm: unlimited\n", "expected a size such as 16GiB, got 'unlimited'"},
      {"shape: 4x0\n",
       "key 'shape': expected up to 6 sizes such as 4x4 or [4, 4], of 65536 in all, got '4x0'"},
      {"shape: 65537\n", "of 65536 in all, got '65537'"},
      {"shape: 4x\n", "got '4x'"},
      {"shape: []\n", "key 'shape': expected up to 6 sizes"},
      {"shape: [4, [4]]\n", "got a list of something else"},
      {"shape: 1x1x1x1x1x1x1\n", "expected up to 6 sizes"},
      {"shape: 65536x65536x65536x65536x65536x65536\n", "expected at most 65536 devices in all"},
      {"shape: 65536\nslices: 65536\ncores_per_chip: 65536\n", "at most 65536 devices"},
      {"shape: 4x4\ntime: fast\n",
       "pod.yaml:2: key 'time': expected off, model or paced, got 'fast'"},
      {"values: none\n", "pod.yaml:1: key 'values': expected real or shapes, got 'none'"},
      {"platform: cuda\n",
       "pod.yaml:1: key 'platform': expected auto, minipod, tpu, gpu or cpu, got 'cuda'"},
      {"pace: 0\n", "pod.yaml:1: key 'pace': expected a number from 1e-9 to 1e9 such as 1 or"},
      {"pace: -1\n", "got '-1'"},
      {"pace: 2x\n", "got '2x'"},
      {"calibration: [a]\n", "key 'calibration': expected 1 to 128 printable characters"},
      {"algorithms: {all_reduce: ring}\n", "or a list of texts, got a mapping"},
      {"shape: 4x4\nchips: 8\n",
       "pod.yaml:2: key 'chips': expected the 16 chips of the shape 4x4, got 8"},
      {"shape: 4x4\nhosts: 3\n",
       "pod.yaml:2: key 'hosts': expected a number that divides 1 slice(s) of 16 chip(s) into "
       "equal parts, got 3"},
      {"shape: 4x4\nhosts: 3\nhost_shape: 2x2\n",
       "pod.yaml:2: key 'hosts': expected the 4 hosts that 'host_shape' makes, got 3"},
      {"shape: 4x4\nhost_shape: 2x2x1\n", "key 'host_shape': has more sizes than 'shape'"},
      {"shape: 2\nslices: 2\nhosts: 1\n", "expected a number that divides 2 slice(s)"},
      {"topology: cube\n",
       "key 'topology': expected torus, mesh, ring, switch or fully_connected, or a list of them "
       "by dimension, got 'cube'"},
      {"topology: mixed\nshape: 4\n", "got 'mixed'"},
      {"topology: [ring, cube]\n", "got 'ring,cube'"},
      {"topology: []\n", "key 'topology': expected torus"},
      {"shape: 4x4x2\ntopology: [ring, switch]\n",
       "pod.yaml:2: key 'topology': expected one wiring, or one for each dimension of 'shape'"},
      {"shape: 4x4\ntopology: [ring, switch, ring]\n", "or one for each dimension of 'shape'"},
      {"shape: 4x4\ntopology: [torus, mesh]\n", "key 'topology': a dimension is not a torus"},
      {"shape: 4x4\nlinks: {bandwidth: [1GB/s, 2GB/s, 3GB/s]}\n",
       "pod.yaml:2: key 'links.bandwidth': expected one value, or one for each dimension"},
      {"shape: 4x4\nlinks: {latency: [1us, fast]}\n",
       "key 'links.latency': expected a time such as 1us or 500ns, or a list of them by dimension, "
       "got '1us,fast'"},
      {"shape: 4x4\ntopology: switch\nlinks: {latency: [1us, 2us]}\n",
       "key 'links.latency': expected one value, because the wiring is that of the whole slice"},
      {"shape: 4x4\ntopology: mesh\nwrap: {side: 2}\n",
       "pod.yaml:3: key 'wrap.side': only a torus has it"},
      {"shape: 4\ndcn: {topology: ring}\n",
       "pod.yaml:2: key 'dcn.topology': expected switch or fat_tree, got 'ring'"},
      {"shape: 4\ndcn: {leaf_hosts: 2}\n", "key 'dcn.leaf_hosts': only a fat tree has it"},
      {"shape: 4\ndcn: {topology: fat_tree, oversubscription: 0.5}\n",
       "key 'dcn.oversubscription': expected a number from 1 such as 2 or 1.5, got '0.5'"},
      {"shape: 4\nmatrix_unit: 128\n",
       "pod.yaml:2: key 'matrix_unit': expected two sizes such as 128x128"},
      {"topology: ring\nshape: 2x2\n", "pod.yaml:1: key 'topology': a ring has one dimension"},
      {"preset: v9\n",
       "key 'preset': expected one of v2, v3, v4, v4-megacore, v5e, v5p, v6e, 7x, a100, h100, "
       "h200, b200, gb200, a3-highgpu-8g, a3-megagpu-8g, a3-ultragpu-8g, a4-highgpu-8g, "
       "a4x-highgpu-4g, got 'v9'"},
      {"preset: v5e\n", "key 'shape': missing, expected the grid"},
      {"kind: x\n", "pod.yaml: key 'shape': missing"},
      {"kind: \"a\\tb\"\n", "key 'kind': expected 1 to 128 printable characters"},
      {"kind: ''\n", "key 'kind': expected 1 to 128"},
      {"links: {latency: -1us}\n", "key 'links.latency': expected a time such as 1us"},
      {"links: {latency: 1 parsec}\n", "expected a time such as 1us"},
      {"links: {latency: nan}\n", "expected a time such as 1us"},
      {"links: {bandwidth: 1e400}\n", "expected a rate such as 45GB/s"},
      {"flops: {bf16: fast}\n", "expected operations per second such as 197T"},
      {"flops: {f33: 1T}\n", "key 'flops.f33': unknown, did you mean 'flops.f32'?"},
      {"hosts: 1\nhosts: 2\n", "pod.yaml:2: key 'hosts': given twice, first in line 1"},
      {"hbm: 1GiB\nmemory: {device: 1GiB}\n",
       "pod.yaml:2: key 'memory.device': given twice, "
       "first in line 1"},
      {"", "pod.yaml:1: expected keys and values"},
      {"- 1\n", "expected keys and values"},
      {"4x4\n", "expected keys and values"},
      {"{[1]: 2}\n", "pod.yaml:1: expected a key"},
      {"shape: &a 4\nchips: *a\n",
       "key 'chips': expected a whole number from 1 to 65536, got an "
       "alias"},
      {"shape: 4\n---\nshape: 5\n", "pod.yaml:2: expected one document, got a second"},
      {"shape: 4\n\thosts: 2\n\thosts: 2\n", "pod.yaml:2: not YAML: found a tab"},
      {"shape: [4\n", "not YAML: "},
      {"shape: 4\n@x: 2\n", "pod.yaml:2: not YAML: "},
      {"\xff\xfe\xff", "pod.yaml:1: not YAML: "},
      {"memory: {memory: {memory: {memory: {memory: {memory: 1}}}}}\n", "'memory.memory': unknown"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    assert_status(read_yaml(cases[i].text), MP_INVALID_ARGUMENT, cases[i].message);
  }
}

static void bad_lines_name_the_word_and_what_was_expected(void **state) {
  (void)state;
  static const struct {
    const char *text;
    const char *message;
  } cases[] = {
      {"",
       "topology \"\": expected a preset (v2, v3, v4, v4-megacore, v5e, v5p, v6e, 7x, "
       "a100, h100, h200, b200, gb200, a3-highgpu-8g, a3-megagpu-8g, a3-ultragpu-8g, "
       "a4-highgpu-8g, a4x-highgpu-4g), a wiring"},
      {"   ", "expected a preset"},
      {"v5:4x4", "got 'v5'"},
      {"v5e:4y4",
       "topology \"v5e:4y4\": key 'shape': expected up to 6 sizes such as 4x4 or "
       "[4, 4], of 65536 in all, got '4y4'"},
      {"v5e", "key 'shape': missing"},
      {"v5e:", "key 'shape': expected up to 6 sizes"},
      {"torus:4x4 hosts", "expected a word key:value, got 'hosts'"},
      {"torus:4x4 hosts:", "key 'hosts': expected a whole number from 1 to 65536, got ''"},
      {"torus:4x4 host:2", "key 'host': unknown, did you mean 'hosts'?"},
      {"torus:4x4 memory:2GiB", "key 'memory': expected a mapping of device"},
      {"torus:4x4 shape:2x2", "key 'shape': given twice"},
      {"torus:4x4 hosts:2 hosts:2", "key 'hosts': given twice"},
      {"torus:4x4 kind:\"a", "key 'kind': expected 1 to 128 printable characters"},
      {FIXTURES "unknown_key.yaml",
       "unknown_key.yaml:5: key 'memory.devise': unknown, did you "
       "mean 'memory.device'?"},
      {FIXTURES, "cannot read topology file"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    mp_pod_t *pod = NULL;
    assert_status(mp_pod_create_from_name(mp_str(cases[i].text), "topology", &pod),
                  MP_INVALID_ARGUMENT, cases[i].message);
    assert_null(pod);
  }
  mp_pod_t *pod = NULL;
  assert_status(mp_pod_create_from_name(MP_STR("no/such.yaml"), "topology", &pod), MP_NOT_FOUND,
                "cannot open topology file 'no/such.yaml'");
}

static void networks_of_astra_sim_are_pods(void **state) {
  (void)state;
  // What stands in quotes makes no network of a description.
  assert_false(mp_astra_is_network(MP_STR("kind: \"a,npus_count\"\nshape: 4\n")));
  assert_true(mp_astra_is_network(MP_STR("# 3\" wide\n{npus_count: [4]}")));
  mp_pod_t *pod = pod_named(FIXTURES "astra_network.yml");
  const mp_pod_info_t *info = mp_pod_info(pod);
  static const mp_wiring_t wirings[] = {MP_WIRING_RING, MP_WIRING_FULLY_CONNECTED,
                                        MP_WIRING_SWITCH};
  static const double latencies[] = {50e-9, 500e-9, 0};
  static const double rates[] = {200, 100, 50.5};
  assert_int_equal(info->num_devices, 64);
  assert_int_equal(info->num_dims, 3);
  for (int32_t i = 0; i < 3; ++i) {
    assert_int_equal(info->dims[i].wiring, wirings[i]);
    assert_true(info->dims[i].link.bandwidth == rates[i] * (1 << 30));
    assert_float_equal(info->dims[i].link.latency, latencies[i], 1e-18);
  }
  mp_pod_release(pod);
  // What such a file does not say, words may.
  pod = pod_named(FIXTURES "astra_network.yml hosts:4 kind:npu flops.bf16:200T");
  assert_int_equal(mp_pod_info(pod)->num_hosts, 4);
  assert_string_equal(mp_pod_info(pod)->kind, "npu");
  mp_pod_release(pod);

  static const struct {
    const char *text;
    const char *message;
  } cases[] = {
      {"topology: [ Ring, Mesh ]\nnpus_count: [ 2, 2 ]\n",
       "pod.yaml:1: key 'topology': expected names such as [ Ring, FullyConnected, Switch ], got "
       "'Ring,Mesh'"},
      {"npus_count: [ 2, two ]\n",
       "pod.yaml:1: key 'npus_count': expected whole numbers such as [ 8, 4 ], got '2,two'"},
      {"npus_count: [ 2 ]\n\nbandwidth: [ tbd ]\n",
       "pod.yaml:3: key 'bandwidth': expected GB/s such as [ 200.0, 50.0 ], got 'tbd'"},
      {"npus_count: [ 2 ]\nbandwidth: [ 0 ]\n", "key 'bandwidth': expected GB/s"},
      {"npus_count: [ 2 ]\nbandwidth: [ 1GB/s ]\n", "key 'bandwidth': expected GB/s"},
      {"npus_count: [ 2 ]\nlatency: [ -1 ]\n", "pod.yaml:2: key 'latency': expected nanoseconds"},
      {"npus_count: []\n", "key 'npus_count': expected whole numbers"},
      {"npus_count: {a: 1}\n", "key 'npus_count': expected a list of values, got a mapping"},
      {"npus_count: [ 2 ]\nhosts: 2\n",
       "pod.yaml:2: key 'hosts': unknown in a network of ASTRA-sim, which has topology"},
      {"npus_count: [ 2 ]\ntopology: [ Ring ]\nlatency: [ 1 ]\n",
       "pod.yaml: key 'bandwidth': missing"},
      {"{topology: [ Ring ], npus_count: [ 2 ], latency: [ 1, 2 ], bandwidth: [ 1 ]}\n",
       "pod.yaml:1: key 'latency': expected 1 value(s), one for each of 'topology', got 2"},
      {"npus_count: [ 2 ]\nnpus_count: [ 2 ]\n", "pod.yaml:2: key 'npus_count': given twice"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    assert_status(read_yaml(cases[i].text), MP_INVALID_ARGUMENT, cases[i].message);
  }
}

// Random edits of a valid description: any answer but a crash, a leak or a hang.
static void edited_descriptions_never_crash(void **state) {
  (void)state;
  static const char *const texts[] = {
      "preset: v4\nshape: [2, 2, 4]\nmemory: {device: 16GiB, bandwidth: 1GB/s}\nhosts: 4\n"
      "flops:\n  bf16: 1T\nkind: \"a b\"\n",
      "topology: [ring, switch]\nshape: [2, 4]\nlinks: {latency: [1us, 2us], count: 2}\n"
      "wrap.side: 2\ndcn: {topology: fat_tree, oversubscription: 2}\nmatrix_unit: 128x128\n",
      "topology: [ Ring, Switch ]\nnpus_count: [ 2, 4 ]\nbandwidth: [ 2.5, 1 ]\nlatency: [ 5, 0 "
      "]\n"};
  static const char alphabet[] = "0123456789abxyz:{}[],-\"'&*!|>%@ \n\t.#?\\\x80";
  unsigned seed = 20260101;
  int accepted = 0, refused = 0;
  for (int n = 0; n < 20000; ++n) {
    char edited[256];
    const size_t all = strlen(texts[n % 3]);
    memcpy(edited, texts[n % 3], all);
    for (unsigned edits = 1 + (unsigned)rand_r(&seed) % 6; edits > 0; --edits) {
      size_t at = (size_t)rand_r(&seed) % all;
      edited[at] = alphabet[(size_t)rand_r(&seed) % (sizeof(alphabet) - 1)];
    }
    // Every other text is cut off somewhere.
    size_t size = n % 2 == 0 ? all : (size_t)rand_r(&seed) % all;
    mp_pod_spec_t spec = {0};
    mp_status_t status = mp_spec_read_yaml(&spec, "pod.yaml", (mp_str_t){edited, size});
    if (status == NULL) status = mp_spec_finish(&spec, "pod.yaml");
    *(status == NULL ? &accepted : &refused) += 1;
    if (status != NULL) assert_int_equal(mp_status_code(status), MP_INVALID_ARGUMENT);
    mp_status_release(status);
    mp_pod_t *pod = NULL;
    status = mp_pod_create_from_name((mp_str_t){edited, size}, "topology", &pod);
    assert_int_equal(status == NULL, pod != NULL);
    mp_status_release(status);
    mp_pod_release(pod);
  }
  assert_true(accepted > 100 && refused > 10000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_shipped_files_read),
      cmocka_unit_test(words_override_the_file_and_the_file_the_preset),
      cmocka_unit_test(both_forms_mean_the_same),
      cmocka_unit_test(each_dimension_has_its_wiring),
      cmocka_unit_test(published_slices_have_their_rings),
      cmocka_unit_test(machines_come_in_published_slices),
      cmocka_unit_test(links_may_differ_by_dimension),
      cmocka_unit_test(networks_between_hosts),
      cmocka_unit_test(bad_yaml_names_line_key_and_what_was_expected),
      cmocka_unit_test(bad_lines_name_the_word_and_what_was_expected),
      cmocka_unit_test(networks_of_astra_sim_are_pods),
      cmocka_unit_test(edited_descriptions_never_crash),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
