// Memory on NUMA nodes: through libnuma and through system calls alike; libnuma's interface as we
// declare it.
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/fault.h"
#include "sim/base/os/numa.h"
#include "sim/base/os/pages.h"
#include "sim/base/os/system.h"
#include "tests/unit/support/unit.h"

#if __has_include(<numa.h>)
#include <numa.h>
#include <numaif.h>

// Without the library, which the tests do not link either.
#define SAME(name)                                                                        \
  _Static_assert(__builtin_types_compatible_p(__typeof__(((mp_numa_library_t *)0)->name), \
                                              __typeof__(&(name))),                       \
                 #name " has another type")
SAME(numa_available);
SAME(numa_max_possible_node);
SAME(mbind);
SAME(numa_move_pages);
#endif

enum { BYTES = 1 << 20, STEP = 4096, NUM_NODES = 5 };

typedef struct {
  bool has_library;
  char name[80];
  bool is_bound[NUM_NODES], is_known[NUM_NODES];
  mp_pages_t pages[NUM_NODES];
} answers_t;

static void ask(answers_t *answers) {
  static const int32_t nodes[NUM_NODES] = {0, -1, 1000, 1024, 5000};
  answers->has_library = mp_numa_library() != NULL;
  snprintf(answers->name, sizeof(answers->name), "%s", mp_numa_name());
  for (int i = 0; i < NUM_NODES; ++i) {
    char *memory = mp_mmap(BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (memory == MAP_FAILED) _exit(1);
    answers->is_bound[i] = mp_pages_bind(memory, BYTES, nodes[i]);
    memset(memory, 1, BYTES / 2);
    answers->is_known[i] = mp_pages_look(memory, BYTES, STEP, nodes[i], &answers->pages[i]);
    mp_munmap(memory, BYTES);
  }
}

// In a process of its own: libnuma is looked for once.
static void ask_in_child(bool without_library, answers_t *answers) {
  answers_t *shared =
      mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(shared, MAP_FAILED);
  const pid_t child = fork();
  if (child == 0) {
    mp_fault_watch();
    if (without_library) mp_fault_at(MP_FAULT_OPEN, 1, 1);
    ask(shared);
    _exit(0);
  }
  int end = -1;
  assert_int_equal(waitpid(child, &end, 0), child);
  assert_int_equal(end, 0);
  *answers = *shared;
  munmap(shared, sizeof(*shared));
}

static void both_ways_answer_alike(void **state) {
  (void)state;
  answers_t with, without;
  ask_in_child(false, &with);
  ask_in_child(true, &without);
  assert_false(without.has_library);
  assert_string_equal(without.name, "system calls (no libnuma.so.1: apt install libnuma1)");
  if (with.has_library) assert_string_equal(with.name, "libnuma.so.1");
  for (int i = 0; i < NUM_NODES; ++i) {
    assert_int_equal(with.is_bound[i], without.is_bound[i]);
    assert_int_equal(with.is_known[i], without.is_known[i]);
    assert_true(with.pages[i].here == without.pages[i].here);
    assert_true(with.pages[i].elsewhere == without.pages[i].elsewhere);
    if (i != 0) assert_false(with.is_bound[i]);
    if (with.is_known[i]) {
      assert_true(with.pages[i].here + with.pages[i].elsewhere == BYTES / 2);
      if (with.is_bound[i]) assert_true(with.pages[i].elsewhere == 0);
    }
  }
}

// The tests have it (tools/setup.sh), and a system with NUMA uses it.
static void libnuma_is_used_where_it_is(void **state) {
  (void)state;
  void *library = mp_dlopen("libnuma.so.1");
  if (library == NULL) skip();
  assert_true(mp_numa_library() != NULL || strstr(mp_numa_name(), "no NUMA policy") != NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(both_ways_answer_alike),
      cmocka_unit_test(libnuma_is_used_where_it_is),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
