// Processes that are restarted into a world: the others continue with them, and messages of their
// predecessors do not count as theirs.
#include <stdatomic.h>

#include "collectives/transport/world_impl.h"
#include "sim/base/alloc.h"
#include "tests/unit/support/processes/store_processes.h"
#include "tests/unit/support/processes/ucx_sanitized.h"

enum { SIZE = 3, VICTIM = 2, LONG = 100000, RETURNS = 3, CHANNEL = 0 };

// What has come, and the first long packet of each process, which is kept beyond its end.
static struct {
  atomic_uint num_lost, num_returned, num_packets[SIZE];
  _Atomic(mp_packet_t *) kept;
  atomic_ullong incarnation;
} g_inbox;

static void deliver(void *context, mp_packet_t *packet) {
  (void)context;
  const unsigned char *data = packet->data;
  check(packet->bytes == LONG && data[0] == packet->from && data[LONG - 1] == packet->from,
        "other bytes");
  const uint32_t from = packet->from;
  if (from == VICTIM && atomic_load(&g_inbox.kept) == NULL) {
    atomic_store(&g_inbox.kept, packet);
  } else {
    mp_packet_release(packet);
  }
  atomic_fetch_add(&g_inbox.num_packets[from], 1);
}

static void lose(void *context, uint32_t rank, mp_status_t why) {
  (void)context, (void)why;
  if (rank != VICTIM) return;  // at the end
  check(atomic_load(&g_inbox.num_lost) == atomic_load(&g_inbox.num_returned), "lost twice");
  atomic_fetch_add(&g_inbox.num_lost, 1);
}

static void welcome(void *context, uint32_t rank, uint64_t incarnation) {
  (void)context;
  if (rank != VICTIM || g_process->rank == VICTIM) return;
  check(incarnation != 0 && incarnation != atomic_load(&g_inbox.incarnation), "no incarnation");
  atomic_store(&g_inbox.incarnation, incarnation);
  atomic_fetch_add(&g_inbox.num_returned, 1);
  check(atomic_load(&g_inbox.num_lost) == atomic_load(&g_inbox.num_returned), "back, not lost");
}

static void await(const atomic_uint *count, unsigned wanted, const char *what) {
  const double deadline = mp_clock_seconds() + LIMIT_SECONDS / 2;
  while (atomic_load(count) < wanted && mp_clock_seconds() < deadline) usleep(200);
  check(atomic_load(count) == wanted, what);
}

static void send_long(mp_world_t *world) {
  mp_payload_t *payload = NULL;
  check(mp_payload_create(world, LONG, &payload) == NULL, "no payload");
  memset(payload->data, (int)mp_world_rank(world), LONG);
  for (uint32_t to = 0; to < SIZE; ++to) {
    const mp_envelope_t envelope = {.channel = CHANNEL};
    if (to != mp_world_rank(world)) {
      check(mp_world_send(world, to, &envelope, payload) == NULL, "nothing can be sent");
    }
  }
  mp_payload_release(payload);
}

// All send to all, and agree: a restarted process counts its agreements like the others.
static void meet(mp_world_t *world, unsigned number) {
  send_long(world);
  const uint32_t self = mp_world_rank(world);
  for (uint32_t from = 0; from < SIZE; ++from) {
    const unsigned wanted = self == VICTIM ? 1 : number;
    if (from != self) await(&g_inbox.num_packets[from], wanted, "packets are missing");
  }
  mp_agreement_t agreement;
  mp_agreement_begin(world, LIMIT_SECONDS / 2, &agreement);
  void **all = NULL;
  size_t *sizes = NULL;
  mp_status_t status = mp_agreement_exchange(&agreement, &self, sizeof(self), &all, &sizes);
  for (uint32_t i = 0; status == NULL && i < SIZE; ++i) {
    check(sizes[i] == sizeof(i) && memcmp(all[i], &i, sizeof(i)) == 0, "another exchange");
  }
  if (status == NULL) {
    mp_free(all);
    status = mp_agreement_set_memo(&agreement, &agreement.number, sizeof(agreement.number));
  }
  status = mp_agreement_end(&agreement, status);
  if (status != NULL) check(false, mp_status_message(status));
}

static void check_memo(mp_world_t *world, bool has_come_back) {
  uint64_t number = 0, told = 0;
  void *bytes = NULL;
  size_t size = 0;
  check(mp_world_take_memo(world, &number, &bytes, &size) == has_come_back, "another memo");
  if (!has_come_back) return;
  check(size == sizeof(told), "a memo of another size");
  memcpy(&told, bytes, sizeof(told));
  check(told == number, "another agreement's memo");
  mp_free(bytes);
}

static void attach(mp_world_t *world) {
  mp_world_attach(world, CHANNEL,
                  &(mp_handler_t){.deliver = deliver, .lost = lose, .returned = welcome});
}

static void stay(mp_world_t *world) {
  check_memo(world, false);
  attach(world);
  meet(world, 1);
  for (unsigned i = 1; i <= RETURNS; ++i) {
    await(&g_inbox.num_lost, i, "nobody is lost");
    await(&g_inbox.num_returned, i, "nobody comes back");
    meet(world, i + 1);
  }
  const mp_packet_t *kept = atomic_load(&g_inbox.kept);
  check(((const unsigned char *)kept->data)[LONG / 2] == VICTIM, "what was kept has changed");
  mp_packet_release(atomic_load(&g_inbox.kept));
}

static void die_after(mp_world_t *world, bool has_come_back, bool is_last) {
  check_memo(world, has_come_back);
  attach(world);
  meet(world, 1);
  if (is_last) return;
  // What the others need to agree is on its way.
  check(mp_world_drain(world, LIMIT_SECONDS / 2), "something stays");
  usleep(200000);
  raise(SIGKILL);
}

static void die_first(mp_world_t *world) {
  die_after(world, false, false);
}
static void die_again(mp_world_t *world) {
  die_after(world, true, false);
}
static void die_no_more(mp_world_t *world) {
  die_after(world, true, true);
}

static pid_t start(const process_t *process, uint32_t place) {
  const pid_t child = fork();
  if (child == 0) exit(run_process(process, &g_shared->outcomes[place], SIZE));
  return child;
}

static void await_end(pid_t child, int wanted) {
  int end = 0;
  assert_int_equal(waitpid(child, &end, 0), child);
  assert_int_equal(end, wanted);
}

// `tampers`: of the hellos of the processes.
static void run_with_returns(void (*const *tampers)(mp_hello_t *)) {
  void (*const lives[RETURNS + 1])(mp_world_t *) = {die_first, die_again, die_again, die_no_more};
  g_shared->num_entries = 0;
  pid_t children[SIZE];
  process_t processes[SIZE];
  for (uint32_t i = 0; i < SIZE; ++i) {
    processes[i] = (process_t){.rank = i, .afterwards = stay, .tamper = tampers[i]};
    if (i == VICTIM) processes[i].afterwards = lives[0];
    children[i] = start(&processes[i], i);
  }
  for (int life = 1; life <= RETURNS; ++life) {
    await_end(children[VICTIM], SIGKILL);
    processes[VICTIM].afterwards = lives[life];
    children[VICTIM] = start(&processes[VICTIM], VICTIM);
  }
  for (uint32_t i = 0; i < SIZE; ++i) await_end(children[i], 0);
  assert_true(g_shared->outcomes[VICTIM].seconds < 10);
}

static void on_one_host(void **state) {
  (void)state;
  void (*const none[SIZE])(mp_hello_t *) = {NULL};
  run_with_returns(none);
}

static void be_elsewhere(mp_hello_t *hello) {
  snprintf(hello->hostname, sizeof(hello->hostname), "elsewhere");
}

// One of the surviving processes is on another host, and then both are.
static void over_hosts(void **state) {
  (void)state;
  if (!ucx_is_here()) {
    skip();
  }
  void (*const one[SIZE])(mp_hello_t *) = {NULL, be_elsewhere, NULL};
  run_with_returns(one);
  void (*const both[SIZE])(mp_hello_t *) = {be_elsewhere, be_elsewhere, NULL};
  run_with_returns(both);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(on_one_host), cmocka_unit_test(over_hosts)};
  return cmocka_run_group_tests(tests, store_setup, store_teardown);
}
