// The network of a pod as SVG: well-formed, complete, coloured by load.

#include <stdlib.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/model/picture/picture.h"
#include "tests/unit/support/unit.h"

static mp_network_t *network_of(const char *text) {
  mp_pod_t *pod = NULL;
  mp_network_t *network = NULL;
  assert_ok(mp_pod_create_from_name(mp_str(text), "topology", &pod));
  assert_ok(mp_network_create(pod, NULL, &network));
  mp_pod_release(pod);
  return network;
}

static size_t count_of(const char *text, const char *part) {
  size_t count = 0;
  for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part)) ++count;
  return count;
}

// Reads one tag at '<': checks that names and quotes match. Returns what is behind it.
static const char *check_tag(const char *at, const char *open[], size_t sizes[], size_t *depth) {
  const char *end = at + strcspn(at, ">");
  assert_true(*end == '>');
  if (at[1] == '?') return end + 1;
  const bool closes = at[1] == '/';
  const char *name = at + 1 + closes;
  const size_t size = strcspn(name, " />");
  assert_true(size > 0);
  if (closes) {
    assert_true(*depth > 0);
    --*depth;
    assert_int_equal(sizes[*depth], size);
    assert_memory_equal(open[*depth], name, size);
    return end + 1;
  }
  size_t quotes = 0;
  for (const char *c = name; c < end; ++c) quotes += *c == '"';
  assert_int_equal(quotes % 2, 0);
  if (end[-1] != '/') {
    assert_true(*depth < 16);
    open[*depth] = name;
    sizes[(*depth)++] = size;
  }
  return end + 1;
}

// Enough of XML's rules for what the writer uses; tests/e2e/tools/test_picture.py has a real
// parser.
static void check_well_formed(const char *text) {
  const char *open[16];
  size_t sizes[16];
  size_t depth = 0;
  for (const char *at = text; *at != '\0';) {
    if (*at == '<') {
      at = check_tag(at, open, sizes, &depth);
    } else {
      assert_true(*at != '>');
      if (*at == '&') assert_non_null(strchr(at, ';'));
      ++at;
    }
  }
  assert_int_equal(depth, 0);
}

static char *picture_of(const mp_network_t *network, const double *loads) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  assert_ok(mp_picture_write(network, loads, &text));
  size_t size = 0;
  return mp_strbuf_take(&text, &size);
}

static void every_chip_link_and_host_is_listed(void **state) {
  (void)state;
  static const struct {
    const char *name;
    size_t chips, links, hosts;  // links without those inside chips and to hosts
  } cases[] = {
      {"v5e:4x4", 16, 48 + 8, 4},
      {"torus:4x4", 16, 64, 0},
      {"torus:4x4x4", 64, 384, 0},
      {"ring:8", 8, 16, 0},
      {"v2:2x2", 4, 8, 0},
      {"h100:8 slices:4", 32, 64 + 8, 4},
      {"h100:8 slices:4 dcn.leaf_hosts:2", 32, 64 + 8 + 4, 4},
      {"fully_connected:5", 5, 20, 0},
      {"ring,fully_connected,switch:2x3x2", 12, 12 + 24 + 24, 0},
      {"torus:1", 1, 0, 0},
      {"torus:2x2x2x2x2x2 slices:7", 448, 448 * 6 + 14, 7},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    mp_network_t *network = network_of(cases[i].name);
    char *text = picture_of(network, NULL);
    check_well_formed(text);
    assert_int_equal(count_of(text, "<circle "), cases[i].chips);
    assert_int_equal(count_of(text, "<path "), cases[i].links);
    assert_int_equal(count_of(text, "class=\"host\""), cases[i].hosts);
    mp_free(text);
    mp_network_release(network);
  }
}

static void names_are_escaped(void **state) {
  (void)state;
  mp_network_t *network = network_of("torus:2x2 name:\"<a> & b\" kind:\"k<1>\"");
  char *text = picture_of(network, NULL);
  check_well_formed(text);
  assert_non_null(strstr(text, "&lt;a&gt; &amp; b: 4 devices, k&lt;1&gt;"));
  mp_free(text);
  mp_network_release(network);
}

static void loads_colour_their_links(void **state) {
  (void)state;
  mp_network_t *network = network_of("v5e:4x4");
  double *loads = mp_calloc(mp_network_num_links(network), sizeof(*loads));
  assert_ok(mp_picture_read_loads(network, "loads.txt",
                                  MP_STR("# of a run\n"
                                         "slice 0 (1,2,0) +x: 0.25  # a quarter\n\n"
                                         "host 3 up:\t100 %\r\n"
                                         "device 2 to host\t1e-3\n"
                                         "host 1 down: 17"),
                                  loads));
  double sum = 0;
  for (uint32_t i = 0; i < mp_network_num_links(network); ++i) sum += loads[i];
  assert_float_equal(sum, 0.25 + 1 + 1e-3 + 17, 1e-12);
  char *text = picture_of(network, loads);
  check_well_formed(text);
  assert_non_null(strstr(text, "slice 0 (1,2,0) +x: 40 GB/s, load 25 %</title>"));
  assert_non_null(strstr(text, "host 3 up: 12.5 GB/s, load 100 %</title>"));
  assert_non_null(strstr(text, "device 2 to host: 15 GB/s, load 0 %</title>"));
  assert_null(strstr(text, "device 2 from host"));
  assert_int_equal(count_of(text, "class=\"link l7\""), 2);
  assert_int_equal(count_of(text, "class=\"link l0\""), 56 - 3);
  mp_free(text);
  mp_free(loads);
  mp_network_release(network);
}

static void bad_loads_name_their_line(void **state) {
  (void)state;
  static const struct {
    const char *text;
    const char *message;
  } cases[] = {
      {"host 0 up: 1\nhost 9 up: 1\n",
       "loads.txt:2: no link 'host 9 up' in this pod, did you mean"},
      {"\n\nslice 0 (0,0,0) +x\n",
       "loads.txt:3: expected a link and its load, such as 'host 3 up: 0.83'"},
      {"host 0 up: much\n", "loads.txt:1: expected a link and its load"},
      {"host 0 up: -1\n", "expected a link and its load"},
      {"host 0 up: 1 Gbit\n", "expected a link and its load"},
      {": 1\n", "expected a link and its load"},
      {"qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq: 1\n",
       "loads.txt:1: no link 'qqqqqqqq"},
  };
  mp_network_t *network = network_of("v5e:4x4");
  double *loads = mp_calloc(mp_network_num_links(network), sizeof(*loads));
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    assert_status(mp_picture_read_loads(network, "loads.txt", mp_str(cases[i].text), loads),
                  MP_INVALID_ARGUMENT, cases[i].message);
  }
  mp_free(loads);
  mp_network_release(network);
}

static void every_failed_allocation_is_an_error(void **state) {
  (void)state;
  mp_network_t *network = network_of("v5e:4x4");
  bool failed = true;
  for (int n = 1; failed; ++n) {
    assert_true(n < 200);
    mp_strbuf_t text;
    mp_strbuf_init(&text);
    mp_alloc_fail_at(n, 0);
    mp_status_t status = mp_picture_write(network, NULL, &text);
    mp_alloc_fail_at(0, 0);
    failed = status != NULL;
    if (failed) assert_int_equal(mp_status_code(status), MP_RESOURCE_EXHAUSTED);
    mp_status_release(status);
    mp_strbuf_deinit(&text);
  }
  mp_network_release(network);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_chip_link_and_host_is_listed),
      cmocka_unit_test(names_are_escaped),
      cmocka_unit_test(loads_colour_their_links),
      cmocka_unit_test(bad_loads_name_their_line),
      cmocka_unit_test(every_failed_allocation_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
