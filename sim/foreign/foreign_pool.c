#include "sim/foreign/foreign_pool.h"

#include <stdatomic.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/os/futex.h"
#include "sim/base/os/lock.h"

// One thread takes about 0.1 s for this many operations. With far fewer, two threads of OpenBLAS
// took as long or longer for LU, QR, Cholesky, eigenvalues and singular values.
#define MP_POOL_LARGE 5e9

enum { LARGE, SMALL, KINDS };

struct mp_foreign_pool_s {
  mp_str_t prefix;
  mp_foreign_pool_calls_t calls;
  bool is_limited;  // minipod has set the number of threads to 1
  int running[KINDS], waiting[KINDS];
  atomic_uint epoch;  // futex word: changes when a kind has ended
  mp_foreign_pool_t *next;
};

// Of the list and of all pools, except `epoch`.
static mp_lock_t g_lock = MP_LOCK_INITIALIZER(MP_LOCK_FOREIGN);
static mp_foreign_pool_t *g_pools;

static mp_foreign_pool_t *foreign_pool_find(mp_str_t name) {
  mp_lock_assert_held(&g_lock);
  mp_foreign_pool_t *pool = g_pools;
  while (pool != NULL && (pool->prefix.size > name.size ||
                          memcmp(pool->prefix.data, name.data, pool->prefix.size) != 0)) {
    pool = pool->next;
  }
  return pool;
}

mp_status_t mp_foreign_register_pool(mp_str_t prefix, mp_foreign_pool_calls_t calls) {
  if (prefix.size == 0 || calls.get == NULL || calls.set == NULL) {
    return mp_status_make(MP_INVALID_ARGUMENT, "a thread pool needs a prefix and its functions");
  }
  mp_foreign_pool_t *pool = mp_calloc(1, sizeof(*pool) + prefix.size);
  MP_RETURN_IF_NULL(pool);
  char *text = (char *)(pool + 1);
  memcpy(text, prefix.data, prefix.size);
  pool->prefix = (mp_str_t){text, prefix.size};
  pool->calls = calls;
  mp_lock(&g_lock);
  const bool is_new = foreign_pool_find(prefix) == NULL;
  if (is_new) {
    pool->next = g_pools;
    g_pools = pool;
  }
  mp_unlock(&g_lock);
  if (!is_new) mp_free(pool);
  return NULL;
}

mp_foreign_pool_t *mp_foreign_find_pool(mp_str_t name) {
  mp_lock(&g_lock);
  mp_foreign_pool_t *pool = foreign_pool_find(name);
  mp_unlock(&g_lock);
  return pool;
}

bool mp_foreign_pool_is_small(double operations) {
  return operations < MP_POOL_LARGE;
}

// A new call lets waiting calls of the other kind go first.
static bool foreign_pool_must_wait(const mp_foreign_pool_t *pool, int kind) {
  return pool->running[1 - kind] != 0 || (pool->running[kind] != 0 && pool->waiting[1 - kind] != 0);
}

void mp_foreign_pool_enter(mp_foreign_pool_t *pool, bool is_small) {
  if (pool == NULL) return;
  const int kind = is_small ? SMALL : LARGE;
  mp_lock_assert_none_held();
  mp_lock(&g_lock);
  pool->waiting[kind] += 1;
  while (foreign_pool_must_wait(pool, kind)) {
    const unsigned epoch =
        atomic_load(&pool->epoch);  // read under the lock, so any change comes later
    mp_unlock(&g_lock);
    mp_futex_wait(&pool->epoch, epoch, NULL);
    mp_lock(&g_lock);
  }
  pool->waiting[kind] -= 1;
  pool->running[kind] += 1;
  if (is_small && pool->running[kind] == 1) {
    pool->is_limited = pool->calls.usual > 1 && pool->calls.get() == pool->calls.usual;
    if (pool->is_limited) pool->calls.set(1);
  }
  mp_unlock(&g_lock);
}

void mp_foreign_pool_leave(mp_foreign_pool_t *pool, bool is_small) {
  if (pool == NULL) return;
  const int kind = is_small ? SMALL : LARGE;
  mp_lock(&g_lock);
  pool->running[kind] -= 1;
  const bool is_last = pool->running[kind] == 0;
  // Any other number than 1 was chosen by the user meanwhile.
  if (is_last && is_small && pool->is_limited && pool->calls.get() == 1) {
    pool->calls.set(pool->calls.usual);
  }
  const bool has_waiters = is_last && pool->waiting[LARGE] + pool->waiting[SMALL] != 0;
  if (has_waiters) atomic_fetch_add(&pool->epoch, 1);
  mp_unlock(&g_lock);
  if (has_waiters) mp_futex_wake_all(&pool->epoch);
}
