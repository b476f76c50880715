// The list of the locks that a thread holds, and the checks of the rules. None of this exists in
// builds without assertions.
#include "sim/base/os/lock.h"

#ifdef MINIPOD_ASSERTS

enum { MP_MAX_HELD = 16 };  // far more than any function needs to hold at once

typedef enum {
  MP_LOCK_RULE_PLAIN,
  MP_LOCK_RULE_LEAF,
  MP_LOCK_RULE_LONG,
} lock_rule_t;

static const struct {
  const char *words;
  lock_rule_t rule;
} k_lock_ranks[MP_LOCK_COUNT] = {
#define MP_LOCK_ROW(name, words, rule) [MP_LOCK_##name] = {words, MP_LOCK_RULE_##rule},
    MP_LOCK_RANKS(MP_LOCK_ROW)
#undef MP_LOCK_ROW
};

typedef struct {
  const mp_lock_t *lock;
  mp_lock_rank_t rank;
  const char *file;  // where it was taken
  int line;
} held_t;

// The thread's own, so that checking takes no lock.
static _Thread_local struct {
  uint32_t count;
  held_t at[MP_MAX_HELD];
} t_held;

static const char *lock_words(const mp_lock_t *lock) {
  return k_lock_ranks[lock->rank].words;
}

// The lock's index in the thread's list; t_held.count when the thread does not hold it.
static uint32_t lock_find(const mp_lock_t *lock) {
  uint32_t i = 0;
  while (i < t_held.count && t_held.at[i].lock != lock) ++i;
  return i;
}

static void lock_check_usable(const mp_lock_t *lock, const char *file, int line) {
  if (lock->rank > MP_LOCK_UNUSABLE && lock->rank < MP_LOCK_COUNT) return;
  mp_assert_fail(file, line, "mp_lock", "use of a lock",
                 "it is not initialized, or not any more (rank %d)", (int)lock->rank);
}

static void lock_check_order(const held_t *held, const mp_lock_t *lock, const char *file,
                             int line) {
  if (held->rank < lock->rank && k_lock_ranks[held->rank].rule != MP_LOCK_RULE_LEAF) return;
  const char *reason = "which comes further in";
  if (held->lock == lock) {
    reason = "which is the same lock";
  } else if (held->rank == lock->rank) {
    reason = "which has the same rank";
  } else if (held->rank < lock->rank) {
    reason = "which is a leaf";
  }
  mp_assert_fail(file, line, "mp_lock", "the lock order",
                 "'%s' is taken while '%s' is held (since %s:%d), %s", lock_words(lock),
                 lock_words(held->lock), held->file, held->line, reason);
}

void mp_lock_init(mp_lock_t *lock, mp_lock_rank_t rank) {
  MP_ASSERT(rank > MP_LOCK_UNUSABLE && rank < MP_LOCK_COUNT);
  pthread_mutex_init(&lock->mutex, NULL);
  lock->rank = rank;
}

void mp_lock_deinit(mp_lock_t *lock) {
  lock_check_usable(lock, __FILE__, __LINE__);
  MP_ASSERT_MSG(lock_find(lock) == t_held.count, "'%s' is destroyed while it is held",
                lock_words(lock));
  const int error = pthread_mutex_destroy(&lock->mutex);
  MP_ASSERT_MSG(error == 0, "'%s' is destroyed while another thread holds it (error %d)",
                lock_words(lock), error);
  lock->rank = MP_LOCK_UNUSABLE;
}

void mp_lock_note_take(const mp_lock_t *lock, const char *file, int line) {
  lock_check_usable(lock, file, line);
  for (uint32_t i = 0; i < t_held.count; ++i) lock_check_order(&t_held.at[i], lock, file, line);
  MP_ASSERT(t_held.count < MP_MAX_HELD);
  t_held.at[t_held.count++] = (held_t){lock, lock->rank, file, line};
}

void mp_lock_note_give(const mp_lock_t *lock, const char *file, int line) {
  lock_check_usable(lock, file, line);
  uint32_t i = lock_find(lock);
  if (i == t_held.count) {
    mp_assert_fail(file, line, "mp_unlock", "giving a lock back", "'%s' is not held by this thread",
                   lock_words(lock));
  }
  for (t_held.count--; i < t_held.count; ++i) t_held.at[i] = t_held.at[i + 1];
}

void mp_lock_note_wait(const mp_lock_t *lock, const char *file, int line) {
  mp_lock_check_held(lock, file, line, "mp_lock_wait_until");
  for (uint32_t i = 0; i < t_held.count; ++i) {
    const held_t *held = &t_held.at[i];
    if (held->lock == lock || k_lock_ranks[held->rank].rule == MP_LOCK_RULE_LONG) continue;
    mp_assert_fail(file, line, "mp_lock_wait_until", "the lock order",
                   "a thread waits on '%s' while it holds '%s' (since %s:%d)", lock_words(lock),
                   lock_words(held->lock), held->file, held->line);
  }
}

void mp_lock_check_held(const mp_lock_t *lock, const char *file, int line, const char *function) {
  lock_check_usable(lock, file, line);
  if (lock_find(lock) != t_held.count) return;
  mp_assert_fail(file, line, function, "a precondition", "'%s' is not held", lock_words(lock));
}

void mp_lock_check_none_held(const char *file, int line, const char *function) {
  for (uint32_t i = 0; i < t_held.count; ++i) {
    const held_t *held = &t_held.at[i];
    if (k_lock_ranks[held->rank].rule == MP_LOCK_RULE_LONG) continue;
    mp_assert_fail(file, line, function, "a precondition",
                   "nothing may be held here, but '%s' is (since %s:%d)", lock_words(held->lock),
                   held->file, held->line);
  }
}

#endif  // MINIPOD_ASSERTS
