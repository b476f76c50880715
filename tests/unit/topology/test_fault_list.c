// Lists of faults: every key, where lists may stand, and the errors of bad ones.
#include <stdlib.h>
#include <string.h>

#include "tests/unit/support/unit.h"
#include "topology/faults/fault_list.h"
#include "topology/spec.h"

typedef struct {
  mp_arena_t *arena;
  mp_pod_fault_list_t list;
} faults_t;

static int make(void **state) {
  faults_t *faults = calloc(1, sizeof(*faults));
  assert_non_null(faults);
  assert_ok(mp_arena_create(&faults->arena));
  *state = faults;
  return 0;
}

static int drop(void **state) {
  faults_t *faults = *state;
  mp_arena_release(faults->arena);
  free(faults);
  return 0;
}

static void read(faults_t *faults, const char *text) {
  assert_ok(mp_pod_fault_list_read(faults->arena, "f.yaml", mp_str(text), false, &faults->list));
}

static void slices_and_hosts_are_dead_or_have_outages(void **state) {
  faults_t *faults = *state;
  read(faults,
       "- {slice: 1, dead: true, step: 4}\n"
       "- {host: 0, dead: true}\n"
       "- outages: {seed: 7, every: 100, length: 20}\n"
       "- outages: {of: host, every: 10, length: 10}\n");
  const mp_pod_fault_t *f = faults->list.items;
  assert_true(f[0].kind == MP_POD_FAULT_SLICE && f[0].slice == 1 && f[0].is_dead && f[0].step == 4);
  assert_true(f[1].kind == MP_POD_FAULT_HOST && f[1].host == 0 && f[1].is_dead);
  assert_true(f[2].kind == MP_POD_FAULT_OUTAGES && f[2].is_dead && f[2].outage_seed == 7);
  assert_true(f[2].outage_every == 100 && f[2].outage_length == 20);
  assert_string_equal(f[2].outage_of, "slice");
  assert_string_equal(f[3].outage_of, "host");
}

static void devices_and_links_have_all_their_keys(void **state) {
  faults_t *faults = *state;
  read(faults,
       "# what is wrong\n"
       "- {device: 3, slow: 2.5}\n"
       "- device: 0\n"
       "  dead: true\n"
       "  program: train_step\n"
       "  step: 5\n"
       "- {link: 'slice 0 (1,2) +x', bandwidth: 0.5, latency: 10us, loss: 0.01, until: 7}\n");
  assert_int_equal(faults->list.count, 3);
  const mp_pod_fault_t *f = faults->list.items;
  assert_true(f[0].kind == MP_POD_FAULT_DEVICE && f[0].device == 3 && f[0].slow == 2.5);
  assert_true(!f[0].is_dead && f[0].step == 1 && f[0].until == UINT64_MAX && f[0].line == 2);
  assert_null(f[0].program);
  assert_true(f[1].device == 0 && f[1].is_dead && f[1].slow == 1 && f[1].step == 5);
  assert_string_equal(f[1].program, "train_step");
  assert_int_equal(f[1].line, 3);
  assert_int_equal(f[2].kind, MP_POD_FAULT_LINK);
  assert_string_equal(f[2].link, "slice 0 (1,2) +x");
  assert_true(f[2].bandwidth == 0.5 && f[2].latency == 10 * 1e-6 && f[2].loss == 0.01);
  assert_int_equal(f[2].until, 7);
}

static void stragglers_and_flips_are_mappings(void **state) {
  faults_t *faults = *state;
  read(faults,
       "faults:\n"
       "- stragglers: {seed: 7, spread: 0.3, share: 0.1}\n"
       "- flip: {result: 1, device: 2, element: 9, bit: 30}\n"
       "  program: step\n"
       "  step: 4\n"
       "- {program: step, flip: {argument: 0, device: 0, bit: 0}, until: 3}\n");
  const mp_pod_fault_t *f = faults->list.items;
  assert_int_equal(faults->list.count, 3);
  assert_true(f[0].kind == MP_POD_FAULT_STRAGGLERS && f[0].seed == 7);
  assert_true(f[0].spread == 0.3 && f[0].share == 0.1);
  assert_true(f[1].kind == MP_POD_FAULT_FLIP && strcmp(f[1].flip_result, "1") == 0);
  assert_true(f[1].flip_device == 2 && f[2].flip_result == NULL);
  assert_true(f[1].flip_element == 9 && f[1].flip_bit == 30);
  assert_true(f[1].step == 4 && f[1].until == 4);  // a bit flips once
  assert_true(f[2].flip_argument == 0 && f[2].step == 1 && f[2].until == 3);
}

static void a_fault_may_stand_alone(void **state) {
  faults_t *faults = *state;
  static const char *const texts[] = {"{device: 1, dead: true}", "device: 1\ndead: true\n",
                                      "{dead: true, device: 1}"};
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
    read(faults, texts[i]);
    assert_int_equal(faults->list.count, 1);
    assert_true(faults->list.items[0].device == 1 && faults->list.items[0].is_dead);
  }
  read(faults, "{flip: {argument: 0, device: 3, bit: 2}, program: f}");
  assert_true(faults->list.items[0].flip_device == 3 && faults->list.items[0].line == 1);
}

static void a_pod_may_have_a_list_among_its_keys(void **state) {
  faults_t *faults = *state;
  static const char pod[] =
      "topology: torus\n"
      "shape: [2, 2]\n"
      "links: {bandwidth: 1GB/s}\n"
      "faults:\n"
      "  - device: 1\n"
      "    slow: 2\n";
  assert_ok(mp_pod_fault_list_read(faults->arena, "pod.yaml", mp_str(pod), true, &faults->list));
  assert_int_equal(faults->list.count, 1);
  assert_int_equal(faults->list.items[0].line, 5);
  mp_pod_spec_t spec = {0};
  assert_ok(mp_spec_read_yaml(&spec, "pod.yaml", mp_str(pod)));
  assert_int_equal(spec.shape.num_dims, 2);
  assert_ok(
      mp_pod_fault_list_read(faults->arena, "pod.yaml", MP_STR("shape: 4"), true, &faults->list));
  assert_int_equal(faults->list.count, 0);
}

static void the_shipped_file_reads(void **state) {
  faults_t *faults = *state;
  assert_ok(mp_pod_fault_list_read_file(faults->arena, MINIPOD_SOURCE_DIR "/configs/faults.yaml",
                                        false, &faults->list));
  assert_int_equal(faults->list.count, 6);
}

static void no_faults_are_no_error(void **state) {
  faults_t *faults = *state;
  static const char *const texts[] = {"", "# none\n", "[]", "faults: []"};
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
    read(faults, texts[i]);
    assert_int_equal(faults->list.count, 0);
  }
}

static void bad_lists_are_refused(void **state) {
  faults_t *faults = *state;
  static const struct {
    const char *text, *words;
  } bad[] = {
      {"- {devce: 3, dead: true}", "f.yaml:1: key 'devce': unknown, did you mean 'device'?"},
      {"- device: 3\n  dead: maybe", "f.yaml:2: key 'dead': expected true, got 'maybe'"},
      {"- {device: -1, dead: true}", "key 'device': expected a whole number from 0, got '-1'"},
      {"- {device: 1, slow: 0.5}", "key 'slow': expected a number from 1 to 1000000"},
      {"- {device: 1, slow: nan}", "key 'slow': expected a number"},
      {"- {link: a, loss: 1}", "key 'loss': expected a number from 0 and below 1"},
      {"- {link: a, bandwidth: 0}", "key 'bandwidth': expected a number above 0"},
      {"- {link: a, latency: 3 parsecs}", "key 'latency': expected a time"},
      {"- {link: \"a\\tb\", dead: true}", "key 'link': expected a name"},
      {"- {device: 1, device: 2}", "key 'device': given twice, first in line 1"},
      {"- {device: 1, slow: 2,\n   loss: 0.1}", "f.yaml:2: key 'loss': does not go with 'slow'"},
      {"- {device: 1, dead: true, slow: 2}", "needs one of slow and dead"},
      {"- {device: 1}", "f.yaml:1: a fault of 'device' needs one of slow and dead"},
      {"- {slice: 0}", "a fault of 'slice' needs dead"},
      {"- {slice: 0, host: 1, dead: true}", "does not go with"},
      {"- {outages: {length: 2}}", "a fault of 'outages' needs every: a number of launches"},
      {"- {outages: {every: 2, length: 3}}", "needs a length of at most every"},
      {"- {outages: {every: 2, length: 1, of: rack}}", "needs outages of slice, host or device"},
      {"- {dead: true}",
       "a fault needs one of the keys device, host, slice, outages, link, stragglers, flip"},
      {"- {link: a}", "needs dead, or some of bandwidth, latency and loss"},
      {"- {link: a, dead: true, loss: 0.1}", "needs dead, or some of"},
      {"- stragglers: {seed: 1}", "needs a spread"},
      {"- stragglers: 0.1", "key 'stragglers': expected a mapping, got '0.1'"},
      {"- {flip: {result: 0, argument: 0, device: 0, bit: 0}, program: f}",
       "needs one of argument"},
      {"- {flip: {result: 0, bit: 0}, program: f}", "needs a device"},
      {"- {flip: {result: 0, device: 0}, program: f}", "needs a bit"},
      {"- {flip: {result: 0, device: 0, bit: 0}}", "needs a program"},
      {"- {flip: {bytes: 3}}", "key 'flip.bytes': unknown"},
      {"- {flip: {bit: {a: 1}}}", "key 'flip.bit': expected a whole number from 0, got a mapping"},
      {"- {device: 1, dead: true, step: 0}", "key 'step': expected a whole number from 1"},
      {"- {device: 1, dead: true, step: 3, until: 2}", "key 'until': before step 3"},
      {"- {device: [1], dead: true}", "got a list"},
      {"- &a {device: 1, dead: true}\n- *a", "f.yaml:2: expected a list of faults"},
      {"- {? [a] : 1}", "expected a key"},
      {"- {device: 1, \"dead\\0ly\": true}", "f.yaml:1: expected a key without NUL"},
      {"- 3", "expected a list of faults"},
      {"device: 3", "f.yaml:1: a fault of 'device' needs one of slow and dead"},
      {"{faults: [], device: 3}", "expected no other key than 'faults'"},
      {"{device: 3, faults: []}", "key 'faults': unknown"},
      {"- {flip: {result: -1, device: 0, bit: 0}, program: f}",
       "key 'flip.result': expected the number of a result, from 0, or its name, got '-1'"},
      {"faults: {device: 3}", "expected a list of faults"},
      {"{faults: [], faults: []}", "the key 'faults' once"},
      {"{}", "expected a list of faults"},
      {"- {device: 3", "not YAML"},
      {"[]\n---\n[]", "expected one document"},
  };
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
    assert_status(
        mp_pod_fault_list_read(faults->arena, "f.yaml", mp_str(bad[i].text), false, &faults->list),
        MP_INVALID_ARGUMENT, bad[i].words);
  }
  assert_status(mp_pod_fault_list_read_file(faults->arena, "/nowhere/f.yaml", false, &faults->list),
                MP_NOT_FOUND, "/nowhere/f.yaml");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(slices_and_hosts_are_dead_or_have_outages, make, drop),
      cmocka_unit_test_setup_teardown(devices_and_links_have_all_their_keys, make, drop),
      cmocka_unit_test_setup_teardown(stragglers_and_flips_are_mappings, make, drop),
      cmocka_unit_test_setup_teardown(a_fault_may_stand_alone, make, drop),
      cmocka_unit_test_setup_teardown(a_pod_may_have_a_list_among_its_keys, make, drop),
      cmocka_unit_test_setup_teardown(the_shipped_file_reads, make, drop),
      cmocka_unit_test_setup_teardown(no_faults_are_no_error, make, drop),
      cmocka_unit_test_setup_teardown(bad_lists_are_refused, make, drop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
