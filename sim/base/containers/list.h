// Intrusive lists: the links are members of the items, so that nothing is allocated and nothing can
// fail. An item is in one list per link at a time.
//
// There is no macro for walking a list, because a plain loop does it:
//
//   for (mp_op_t *op = block->first; op != NULL; op = op->next) ...
//
// The macros take pointers to lists and items, and evaluate them several times. Not thread-safe.
#ifndef MINIPOD_SIM_BASE_CONTAINERS_LIST_H_
#define MINIPOD_SIM_BASE_CONTAINERS_LIST_H_

#include <stddef.h>

// ---- queues: one link per item; first in, first out ----

// Any struct with members `first` and `last`, both NULL when it is empty, is a queue and a list.
#define MP_QUEUE(type)  \
  struct {              \
    type *first, *last; \
  }

// Adds an item at the end. `link` names its member that points to the next item.
#define MP_QUEUE_PUSH(queue, item, link) \
  do {                                   \
    (item)->link = NULL;                 \
    if ((queue)->last != NULL)           \
      (queue)->last->link = (item);      \
    else                                 \
      (queue)->first = (item);           \
    (queue)->last = (item);              \
  } while (0)

// Takes out the first item, which must exist; its link is left as it is.
#define MP_QUEUE_POP(queue, link)                     \
  do {                                                \
    (queue)->first = (queue)->first->link;            \
    if ((queue)->first == NULL) (queue)->last = NULL; \
  } while (0)

// Takes out the item that comes after `previous`, which is NULL for the first item.
#define MP_QUEUE_REMOVE(queue, previous, item, link)         \
  do {                                                       \
    if ((previous) != NULL)                                  \
      (previous)->link = (item)->link;                       \
    else                                                     \
      (queue)->first = (item)->link;                         \
    if ((queue)->last == (item)) (queue)->last = (previous); \
  } while (0)

// Moves all items of `other` to the end of `queue`.
#define MP_QUEUE_APPEND(queue, other, link) \
  do {                                      \
    if ((other)->first == NULL) break;      \
    if ((queue)->last != NULL)              \
      (queue)->last->link = (other)->first; \
    else                                    \
      (queue)->first = (other)->first;      \
    (queue)->last = (other)->last;          \
    (other)->first = (other)->last = NULL;  \
  } while (0)

// ---- lists: links to both sides; `prev` and `next` name the item's members that are these ----

#define MP_LIST(type) MP_QUEUE(type)

// Adds an item at the front.
#define MP_LIST_PREPEND(list, item, prev, next) \
  do {                                          \
    (item)->prev = NULL;                        \
    (item)->next = (list)->first;               \
    if ((list)->first != NULL)                  \
      (list)->first->prev = (item);             \
    else                                        \
      (list)->last = (item);                    \
    (list)->first = (item);                     \
  } while (0)

// Adds an item at the end.
#define MP_LIST_APPEND(list, item, prev, next) \
  do {                                         \
    (item)->prev = (list)->last;               \
    (item)->next = NULL;                       \
    if ((list)->last != NULL)                  \
      (list)->last->next = (item);             \
    else                                       \
      (list)->first = (item);                  \
    (list)->last = (item);                     \
  } while (0)

// Adds an item before `position`, which is in the list.
#define MP_LIST_INSERT_BEFORE(list, position, item, prev, next) \
  do {                                                          \
    (item)->prev = (position)->prev;                            \
    (item)->next = (position);                                  \
    if ((position)->prev != NULL)                               \
      (position)->prev->next = (item);                          \
    else                                                        \
      (list)->first = (item);                                   \
    (position)->prev = (item);                                  \
  } while (0)

// Takes an item out, wherever it is; its links are NULL afterwards.
#define MP_LIST_REMOVE(list, item, prev, next) \
  do {                                         \
    if ((item)->prev != NULL)                  \
      (item)->prev->next = (item)->next;       \
    else                                       \
      (list)->first = (item)->next;            \
    if ((item)->next != NULL)                  \
      (item)->next->prev = (item)->prev;       \
    else                                       \
      (list)->last = (item)->prev;             \
    (item)->prev = (item)->next = NULL;        \
  } while (0)

#endif  // MINIPOD_SIM_BASE_CONTAINERS_LIST_H_
