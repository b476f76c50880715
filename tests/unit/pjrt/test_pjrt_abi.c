// Our declarations of the PJRT C API against the facts in tests/fixtures/pjrt_abi.txt: each slot,
// struct, field and enumerator.

#include <string.h>

#include "pjrt/c_api/c_api.h"
#include "pjrt/c_api/c_api_ext.h"
#include "pjrt/c_api/c_api_profiler.h"
#include "pjrt/c_api/c_api_tpu_topology.h"
#include "tests/unit/support/unit.h"

typedef struct {
  const char *name;
  const char *field;  // NULL: a struct's own sizes
  size_t ours[2];     // slot and offset, offset and size, size and struct size, or value
  size_t wanted[2];
} fact_t;

// The end of the last field, tail padding left out, is what a struct declares as its size; the
// fixture's FIELD lines give it together with the STRUCT line.
#define SLOT(name, slot, offset)                                                          \
  {#name,                                                                                 \
   "slot",                                                                                \
   {(offsetof(PJRT_Api, name) - offsetof(PJRT_Api, PJRT_Error_Destroy)) / sizeof(void *), \
    offsetof(PJRT_Api, name)},                                                            \
   {slot, offset}},
#define STRUCT(name, size, struct_size) \
  {#name, NULL, {sizeof(name), struct_size}, {size, struct_size}},
#define FIELD(name, field, offset, size) \
  {#name, #field, {offsetof(name, field), sizeof(((name *)0)->field)}, {offset, size}},
#define ENUM(name, value) {#name, "value", {(size_t)(name), 0}, {value, 0}},

static const fact_t facts[] = {
#include "tests/fixtures/pjrt_abi.txt"
};
static const size_t num_facts = sizeof(facts) / sizeof(facts[0]);

static void every_fact_holds(void **state) {
  (void)state;
  for (size_t i = 0; i < num_facts; ++i) {
    const fact_t *fact = &facts[i];
    for (int k = 0; k < 2; ++k) {
      if (fact->ours[k] == fact->wanted[k]) continue;
      fail_msg("%s %s: %zu, should be %zu", fact->name, fact->field == NULL ? "" : fact->field,
               fact->ours[k], fact->wanted[k]);
    }
  }
}

// A struct's fields in the fixture end where its STRUCT line says, so none is missing there.
static void the_fixture_is_complete(void **state) {
  (void)state;
  for (size_t i = 0; i < num_facts; ++i) {
    if (facts[i].field != NULL) continue;
    size_t end = 0;
    for (size_t k = i + 1; k < num_facts && facts[k].field != NULL; ++k) {
      if (strcmp(facts[k].name, facts[i].name) != 0) break;
      size_t field_end = facts[k].wanted[0] + facts[k].wanted[1];
      if (field_end > end) end = field_end;
    }
    if (end != facts[i].wanted[1]) fail_msg("%s ends at %zu", facts[i].name, end);
  }
}

#define COUNT_FUNCTION(result, name, required) +1
static void the_table_has_no_gap_and_no_more(void **state) {
  (void)state;
  size_t functions = 0 PJRT_FUNCTIONS(COUNT_FUNCTION);
  size_t slots = 0;
  for (size_t i = 0; i < num_facts; ++i) {
    slots += facts[i].field != NULL && strcmp(facts[i].field, "slot") == 0;
  }
  assert_int_equal(functions, slots);
  assert_int_equal(sizeof(PJRT_Api),
                   offsetof(PJRT_Api, PJRT_Error_Destroy) + functions * sizeof(void *));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_fact_holds),
      cmocka_unit_test(the_fixture_is_complete),
      cmocka_unit_test(the_table_has_no_gap_and_no_more),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
