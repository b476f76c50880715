// Labels of eager ops by a stack of frames like Python's.

#include "pjrt/package/pjrt_frames.h"
#include "tests/unit/support/unit.h"

typedef struct {
  const char *code;
  int instruction;
  const void *self;  // NULL: the frame has none
} frame_t;

// The innermost is the first; behind the last there is none.
static frame_t g_stack[200];
static size_t g_depth;
static int g_held, g_exceptions;

static void *stack_current(void) {
  return &g_stack[0];
}

static void *stack_back(void *frame) {
  const size_t next = (size_t)((frame_t *)frame - g_stack) + 1;
  if (next == g_depth) return NULL;
  ++g_held;
  return &g_stack[next];
}

static void *stack_code(void *frame) {
  ++g_held;
  return (void *)(uintptr_t)((frame_t *)frame)->code;
}

static int stack_instruction(void *frame) {
  return ((frame_t *)frame)->instruction;
}

static void *stack_variable(void *frame, const char *name) {
  assert_string_equal(name, "self");
  void *self = (void *)(uintptr_t)((frame_t *)frame)->self;
  if (self == NULL) {
    ++g_exceptions;
  } else {
    ++g_held;
  }
  return self;
}

static void stack_clear(void) {
  --g_exceptions;
}

static void stack_drop(void *object) {
  assert_non_null(object);
  --g_held;
}

static const char mode[] = "mode", linear[] = "linear", call[] = "call", script[] = "script",
                  package[] = "package", shards[] = "shards";
static const char up[] = "up", down[] = "down";

static int set_up(void **state) {
  (void)state;
  minipod_frames_begin(&(minipod_frames_python_t){sizeof(minipod_frames_python_t), stack_current,
                                                  stack_back, stack_code, stack_instruction,
                                                  stack_variable, stack_clear, stack_drop});
  minipod_frames_know(linear, MP_FRAMES_PASSED);
  minipod_frames_know(call, MP_FRAMES_MODULE);
  minipod_frames_know(script, MP_FRAMES_USER);
  minipod_frames_know(package, MP_FRAMES_LIBRARY);
  minipod_frames_know(shards, MP_FRAMES_OTHER);
  minipod_frames_name(up, true);
  minipod_frames_name(down, true);
  return 0;
}

static void stack_set(const frame_t *frames, size_t count) {
  g_stack[0] = (frame_t){.code = mode};
  memcpy(g_stack + 1, frames, count * sizeof(*frames));
  g_depth = count + 1;
}

#define STACK(...)                          \
  stack_set((const frame_t[]){__VA_ARGS__}, \
            sizeof((const frame_t[]){__VA_ARGS__}) / sizeof(frame_t))

static const char *find(void) {
  const char *label = minipod_frames_find();
  assert_int_equal(g_held, 0);
  assert_int_equal(g_exceptions, 0);
  return label;
}

// What the package does if the library does not know the label.
static void learn(const char *label) {
  assert_null(find());
  minipod_frames_keep(label);
  assert_ptr_equal(find(), label);
}

static void a_label_belongs_to_a_module_and_an_instruction(void **state) {
  (void)state;
  STACK({linear, 3, NULL}, {call, 1, up}, {script, 7, NULL});
  learn("up at 7");
  STACK({linear, 9, NULL}, {call, 1, up}, {script, 7, NULL});
  assert_string_equal(find(), "up at 7");  // another op of the module
  STACK({linear, 3, NULL}, {call, 1, down}, {script, 7, NULL});
  learn("down at 7");
  STACK({linear, 3, NULL}, {call, 1, up}, {script, 8, NULL});
  learn("up at 8");
  STACK({script, 7, NULL}, {call, 1, down}, {script, 8, NULL});
  assert_string_equal(find(), "down at 7");  // the script's code in a module
  STACK({script, 7, NULL}, {linear, 2, NULL});
  learn("7");
  STACK({package, 5, NULL}, {call, 1, up}, {script, 7, NULL});
  learn("up at 7, in 5");
  STACK({package, 6, NULL}, {package, 5, NULL}, {call, 1, up}, {script, 7, NULL});
  learn("up at 7, in 6");
}

static void a_module_of_another_name_has_another_label(void **state) {
  (void)state;
  STACK({call, 1, up}, {script, 7, NULL});
  learn("up at 7");
  minipod_frames_name(up, false);
  assert_null(find());
  minipod_frames_keep("nothing");  // the search has failed, so this has no effect
  minipod_frames_name(up, true);
  learn("blocks.0.up at 7");
}

static void the_package_finds_what_the_library_cannot(void **state) {
  (void)state;
  const char other[] = "other";
  STACK({linear, 1, NULL});
  assert_null(find());  // no line
  minipod_frames_keep("nothing");
  assert_null(find());
  STACK({other, 1, NULL}, {script, 7, NULL});
  assert_null(find());
  STACK({shards, 1, up}, {script, 7, NULL});
  assert_null(find());
  STACK({call, 1, other}, {script, 7, NULL});
  assert_null(find());
  STACK({call, 1, NULL}, {script, 7, NULL});
  assert_null(find());
  minipod_frames_keep("nothing");
  assert_null(find());
}

static void a_search_looks_at_64_frames_for_the_line(void **state) {
  (void)state;
  frame_t frames[150];
  for (size_t i = 0; i < 150; ++i) frames[i] = (frame_t){linear, 1, NULL};
  frames[63] = (frame_t){script, 7, NULL};
  frames[126] = (frame_t){call, 1, up};
  stack_set(frames, 150);
  learn("up at 7");
  frames[126] = (frame_t){linear, 1, NULL};
  frames[130] = (frame_t){call, 1, up};
  stack_set(frames, 150);
  learn("7");
  frames[63] = (frame_t){linear, 1, NULL};
  frames[64] = (frame_t){script, 7, NULL};
  stack_set(frames, 150);
  assert_null(find());
}

static void new_labels_begin_with_none(void **state) {
  STACK({call, 1, up}, {script, 7, NULL});
  learn("up at 7");
  set_up(state);
  learn("another");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(a_label_belongs_to_a_module_and_an_instruction, set_up),
      cmocka_unit_test_setup(a_module_of_another_name_has_another_label, set_up),
      cmocka_unit_test_setup(the_package_finds_what_the_library_cannot, set_up),
      cmocka_unit_test_setup(a_search_looks_at_64_frames_for_the_line, set_up),
      cmocka_unit_test_setup(new_labels_begin_with_none, set_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
