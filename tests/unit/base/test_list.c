// Units of sim/base/list: queues and lists hold what was put into them, in order.

#include "sim/base/containers/list.h"

#include "tests/unit/support/unit.h"

typedef struct item_s item_t;
struct item_s {
  int number;
  item_t *prev, *next;
  item_t *later;  // of another queue
};

typedef MP_QUEUE(item_t) queue_t;
typedef MP_LIST(item_t) list_t;

enum { COUNT = 6 };

static void number(item_t *items) {
  for (int i = 0; i < COUNT; ++i) items[i] = (item_t){.number = i};
}

// The queue's numbers, as decimal digits with a 1 before them.
static int digits_of(const queue_t *queue) {
  int digits = 1;
  const item_t *last = NULL;
  for (const item_t *item = queue->first; item != NULL; last = item, item = item->next) {
    digits = digits * 10 + item->number;
  }
  assert_ptr_equal(queue->last, last);
  return digits;
}

static int list_digits_of(const list_t *list) {
  int digits = 1;
  const item_t *last = NULL;
  for (const item_t *item = list->first; item != NULL; last = item, item = item->next) {
    assert_ptr_equal(item->prev, last);
    digits = digits * 10 + item->number;
  }
  assert_ptr_equal(list->last, last);
  return digits;
}

static void queues_are_first_in_first_out(void **state) {
  (void)state;
  item_t items[COUNT];
  number(items);
  queue_t queue = {0};
  assert_int_equal(digits_of(&queue), 1);
  for (int i = 0; i < COUNT; ++i) MP_QUEUE_PUSH(&queue, &items[i], next);
  assert_int_equal(digits_of(&queue), 1012345);
  for (int i = 0; i < COUNT; ++i) {
    assert_int_equal(queue.first->number, i);
    MP_QUEUE_POP(&queue, next);
  }
  assert_int_equal(digits_of(&queue), 1);
  MP_QUEUE_PUSH(&queue, &items[3], next);
  assert_int_equal(digits_of(&queue), 13);
}

static void queues_lose_any_item(void **state) {
  (void)state;
  static const int left[COUNT] = {112345, 102345, 101345, 101245, 101235, 101234};
  for (int lost = 0; lost < COUNT; ++lost) {
    item_t items[COUNT];
    number(items);
    queue_t queue = {0};
    for (int i = 0; i < COUNT; ++i) MP_QUEUE_PUSH(&queue, &items[i], next);
    item_t *previous = lost == 0 ? NULL : &items[lost - 1];
    MP_QUEUE_REMOVE(&queue, previous, &items[lost], next);
    assert_int_equal(digits_of(&queue), left[lost]);
  }
  item_t only = {.number = 7};
  queue_t queue = {0};
  item_t *previous = NULL;
  MP_QUEUE_PUSH(&queue, &only, next);
  MP_QUEUE_REMOVE(&queue, previous, &only, next);
  assert_int_equal(digits_of(&queue), 1);
}

static void queues_join(void **state) {
  (void)state;
  item_t items[COUNT];
  number(items);
  queue_t a = {0}, b = {0};
  MP_QUEUE_APPEND(&a, &b, next);
  assert_int_equal(digits_of(&a), 1);
  MP_QUEUE_PUSH(&b, &items[1], next);
  MP_QUEUE_PUSH(&b, &items[2], next);
  MP_QUEUE_APPEND(&a, &b, next);
  assert_int_equal(digits_of(&a), 112);
  assert_int_equal(digits_of(&b), 1);
  MP_QUEUE_PUSH(&b, &items[3], next);
  MP_QUEUE_APPEND(&a, &b, next);
  assert_int_equal(digits_of(&a), 1123);
  MP_QUEUE_APPEND(&a, &b, next);
  assert_int_equal(digits_of(&a), 1123);
}

static void an_item_may_be_in_two_queues(void **state) {
  (void)state;
  item_t items[COUNT];
  number(items);
  queue_t queue = {0}, later = {0};
  for (int i = 0; i < 3; ++i) MP_QUEUE_PUSH(&queue, &items[i], next);
  for (int i = 2; i >= 0; --i) MP_QUEUE_PUSH(&later, &items[i], later);
  assert_int_equal(digits_of(&queue), 1012);
  assert_ptr_equal(later.first, &items[2]);
  assert_ptr_equal(items[2].later, &items[1]);
  assert_ptr_equal(later.last, &items[0]);
  assert_null(items[0].later);
}

static void lists_take_and_lose_items_anywhere(void **state) {
  (void)state;
  item_t items[COUNT];
  number(items);
  list_t list = {0};
  MP_LIST_APPEND(&list, &items[3], prev, next);
  MP_LIST_APPEND(&list, &items[5], prev, next);
  MP_LIST_INSERT_BEFORE(&list, &items[3], &items[1], prev, next);
  MP_LIST_INSERT_BEFORE(&list, &items[5], &items[4], prev, next);
  MP_LIST_INSERT_BEFORE(&list, &items[1], &items[0], prev, next);
  assert_int_equal(list_digits_of(&list), 101345);
  MP_LIST_REMOVE(&list, &items[0], prev, next);
  assert_int_equal(list_digits_of(&list), 11345);
  MP_LIST_REMOVE(&list, &items[5], prev, next);
  assert_int_equal(list_digits_of(&list), 1134);
  MP_LIST_REMOVE(&list, &items[3], prev, next);
  assert_int_equal(list_digits_of(&list), 114);
  assert_null(items[3].prev);
  assert_null(items[3].next);
  MP_LIST_REMOVE(&list, &items[1], prev, next);
  MP_LIST_REMOVE(&list, &items[4], prev, next);
  assert_int_equal(list_digits_of(&list), 1);
  MP_LIST_PREPEND(&list, &items[2], prev, next);
  assert_int_equal(list_digits_of(&list), 12);
  MP_LIST_PREPEND(&list, &items[0], prev, next);
  MP_LIST_APPEND(&list, &items[1], prev, next);
  assert_int_equal(list_digits_of(&list), 1021);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(queues_are_first_in_first_out),
      cmocka_unit_test(queues_lose_any_item),
      cmocka_unit_test(queues_join),
      cmocka_unit_test(an_item_may_be_in_two_queues),
      cmocka_unit_test(lists_take_and_lose_items_anywhere),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
