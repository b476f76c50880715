// Units of sim/runtime/client_check: each invariant is broken on purpose, in a process of its own,
// and the check must say which one; untouched clients pass, and every launch looks.
#include "sim/runtime/runs/client_check.h"

#include <dirent.h>

#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/memory/heap.h"
#include "sim/runtime/remote/router_impl.h"
#include "sim/runtime/runs/executable_impl.h"
#include "sim/runtime/runs/run.h"
#include "sim/runtime/workers/workers.h"
#include "tests/unit/support/aborts.h"
#include "tests/unit/support/launches.h"
#include "tests/unit/support/processes/worlds.h"
#include "tests/unit/support/programs.h"

#ifdef MINIPOD_ASSERTS

// ---- Programs ----

// Device 0 receives from device 1, which sends nothing.
static mp_program_t *receive_program(void) {
  test_program_t p;
  program_begin(&p, "receive", 1, 2);
  mp_slot_t x = slot_param(program_param(&p, MP_DTYPE_F32, 4));
  mp_slot_t y = slot_result(program_result(&p, MP_DTYPE_F32, 4));
  mp_collective_t *c = program_collective(&p, MP_COLLECTIVE_SEND_RECV, "stablehlo.recv", 4, x, y);
  const uint32_t pair[] = {1, 0};
  c->num_pairs = 1;
  c->pairs = mp_arena_copy(p.arena, pair, sizeof(pair));
  p.commands[0].kind = MP_CMD_RECV;
  p.commands[0].num_operands = 0;
  return program_end(&p);
}

// ---- A client with everything in it ----

enum { NUM_DEVICES = 4 };

// Devices 0 and 1 are parked at a meeting that misses device 2; a second launch is queued behind on
// device 0. Device 3 is free, and has live, adopted and freed memory.
typedef struct {
  mp_client_t *client;
  mp_device_t *devices;
  test_launch_t parked, queued;
  mp_session_t *session;
  mp_meeting_t *meeting;
  mp_memory_t *memory;
  mp_buffer_t *buffers[3];  // the middle one was freed
  float adopted[4];
} scene_t;

static void wait_until_parked(mp_session_t *session, uint32_t count) {
  for (bool is_there = false; !is_there;) {
    usleep(1000);
    mp_lock(&session->lock);
    is_there = session->num_parked == count;
    mp_unlock(&session->lock);
  }
}

// Whether the kernel has all threads but this one asleep. It has a thread that waits for a core as
// one that runs.
static bool all_others_sleep(void) {
  DIR *tasks = opendir("/proc/self/task");
  assert_non_null(tasks);
  bool is_so = true;
  for (const struct dirent *task; (task = readdir(tasks)) != NULL;) {
    if (task->d_name[0] == '.' || atoi(task->d_name) == getpid()) continue;
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%.16s/stat", task->d_name);
    FILE *file = fopen(path, "r");
    char state = 'X';
    if (file == NULL) continue;  // it has ended
    is_so = fscanf(file, "%*d (%*[^)]) %c", &state) == 1 && state == 'S' && is_so;
    fclose(file);
  }
  closedir(tasks);
  return is_so;
}

// A worker that counts itself idle looks for a deadlock and at its queue before it sleeps. These
// looks must be over, or they find what a test breaks before the checker does.
static void wait_until_asleep(mp_client_t *client) {
  while (atomic_load(&client->workers->num_idle) != client->workers->num_workers ||
         !all_others_sleep())
    usleep(1000);
}

static void launch_on(test_launch_t *l, mp_executable_t *executable, uint32_t count) {
  launch_begin(l, executable, 1);
  l->num_devices = count;
  for (uint32_t d = 0; d < count; ++d) {
    l->logical[d] = d;
    l->arguments[d][0] = make_f32(mp_executable_device(executable, d), 4, 1);
  }
  launch_go(l);
}

static void make_scene(scene_t *s) {
  static const int64_t four = 4;
  memset(s, 0, sizeof(*s));
  s->client = make_client_with(NUM_DEVICES, 8 << 20);
  s->devices = mp_client_device(s->client, 0);
  mp_executable_t *executable = make_executable(s->client, psum_program(3, 4));
  launch_on(&s->parked, executable, 2);
  s->session = s->devices[0].first->session;
  wait_until_parked(s->session, 2);
  launch_on(&s->queued, executable, 1);
  s->meeting = mp_rendezvous_next(&s->session->rendezvous, NULL);
  s->memory = mp_device_memory(&s->devices[3], MP_MEMORY_DEVICE);
  for (int i = 0; i < 3; ++i) s->buffers[i] = make_f32(&s->devices[3], 1024, 1);
  mp_buffer_release(s->buffers[1]);
  mp_buffer_t *view;
  assert_ok(
      mp_buffer_view_external(s->memory, MP_DTYPE_F32, &four, 1, s->adopted, NULL, NULL, &view));
  wait_until_asleep(s->client);
}

// ---- Breaking it ----

static void nothing(scene_t *s) {
  (void)s;
}

static void last_run_is_lost(scene_t *s) {
  s->devices[0].last = NULL;
}
static void run_is_cut_off(scene_t *s) {
  s->devices[0].first->next = NULL;
}
static void run_has_a_wrong_number(scene_t *s) {
  s->devices[0].first->next->number += 1;
}
static void device_counts_a_run_too_many(scene_t *s) {
  s->devices[0].enqueued += 1;
}
static void run_is_over_before_it_ran(scene_t *s) {
  mp_event_set(s->devices[0].first->next->event, NULL);
}
static void queued_run_has_no_blocker(scene_t *s) {
  atomic_store(&s->devices[0].first->next->blockers, 0);
}
static void parked_run_has_a_blocker(scene_t *s) {
  atomic_store(&s->devices[0].first->blockers, 1);
}
static void run_is_of_another_device(scene_t *s) {
  s->devices[0].first->device = &s->devices[1];
}
static void parked_run_is_with_a_worker(scene_t *s) {
  atomic_store(&s->devices[0].owner, MP_OWNER_WORKER);
}
static void nobodys_run_is_in_a_list(scene_t *s) {
  atomic_store(&s->devices[3].owner, MP_OWNER_LIST);
}
static void completed_goes_back(scene_t *s) {
  atomic_store(&s->devices[0].completed, UINT64_MAX);
}

static void one_more_is_parked(scene_t *s) {
  s->session->num_parked += 1;
}
static void one_more_is_active(scene_t *s) {
  s->session->num_active += 1;
}
static void one_more_has_joined(scene_t *s) {
  s->session->num_joined += 1;
}
static void parked_one_is_active(scene_t *s) {
  s->session->states[0] = MP_PARTICIPANT_ACTIVE;
  s->session->num_active += 1;
  s->session->num_parked -= 1;
}
static void parked_one_has_no_run(scene_t *s) {
  s->session->runs[1] = NULL;
}
static void parked_one_is_remote(scene_t *s) {
  s->session->states[1] = MP_PARTICIPANT_REMOTE;
}
static void poison_without_error(scene_t *s) {
  atomic_store(&s->session->is_poisoned, true);
}
static void error_with_open_meeting(scene_t *s) {
  s->session->error = mp_status_make(MP_ABORTED, "for the test");
  atomic_store(&s->session->is_poisoned, true);
}
static void nobody_holds_the_session(scene_t *s) {
  atomic_store(&s->session->references, 0);
}
static void meeting_counts_wrong(scene_t *s) {
  s->meeting->num_arrived += 1;
}
static void meeting_is_complete_and_open(scene_t *s) {
  s->meeting->num_needed = 2;
}
static void meeting_has_somebody_else(scene_t *s) {
  s->meeting->arrivals[0]->logical = 1;
}
static void table_counts_a_meeting_too_many(scene_t *s) {
  s->session->rendezvous.num_open += 1;
}
static void table_counts_a_meeting_too_few(scene_t *s) {
  s->session->rendezvous.num_open -= 1;
}
static void parked_one_is_in_no_meeting(scene_t *s) {
  s->meeting->arrivals[1] = NULL;
  s->meeting->num_arrived -= 1;
}
static void parked_one_waits_twice(scene_t *s) {
  static mp_receiver_t receiver = {.source = 1, .target = 0};
  s->session->mailbox.receivers.first = &receiver;
  s->session->mailbox.num_receivers = 1;
}
static void mailbox_counts_wrong(scene_t *s) {
  s->session->mailbox.num_receivers = 1;
}
static void stuck_without_a_word(scene_t *s) {
  // As if device 2 had come and gone.
  s->session->states[2] = MP_PARTICIPANT_DONE;
  s->session->num_joined += 1;
}

static mp_device_set_t *set_of(const scene_t *s) {
  return s->parked.executable->set;
}
static void parked_one_was_never_launched(scene_t *s) {
  set_of(s)->num_launches[1] = 0;
}
static void two_sessions_of_one_number(scene_t *s) {
  set_of(s)->waiting->number = set_of(s)->waiting->next->number;
}
static void complete_session_waits(scene_t *s) {
  s->session->num_local = 2;
}
static void set_has_another_endpoint(scene_t *s) {
  static int endpoint;
  set_of(s)->endpoint = (mp_endpoint_t *)&endpoint;
}

static void queue_counts_wrong(scene_t *s) {
  atomic_store(&s->devices[0].queue->length, 1);
}
static void parked_device_is_in_a_queue(scene_t *s) {
  mp_device_list_push(&s->devices[0].queue->devices, &s->devices[0]);
  atomic_store(&s->devices[0].queue->length, 1);
}
static void jobs_count_wrong(scene_t *s) {
  atomic_store(&s->client->workers->jobs.count, 1);
}
static void more_idle_than_there_are(scene_t *s) {
  atomic_fetch_add(&s->client->workers->num_idle, 1);
}

static void stream_counts_wrong(scene_t *s) {
  atomic_fetch_add(&s->devices[0].num_ahead, 1);
}
static void stream_has_too_few_bytes(scene_t *s) {
  atomic_fetch_sub(&s->devices[0].bytes_ahead, 4);
}

static void books_have_too_much(scene_t *s) {
  s->memory->in_use += 64;
}
static void books_have_too_little(scene_t *s) {
  s->memory->adopted -= 16;
}
static void more_in_use_than_fits(scene_t *s) {
  s->memory->capacity = s->memory->in_use - 1;
}
static void peak_is_too_low(scene_t *s) {
  s->memory->peak = 0;
}
static void block_is_locked_and_not_pinned(scene_t *s) {
  s->memory->num_locked = 1;
}
static void block_is_nobodys(scene_t *s) {
  s->memory->live.first->label = NULL;
}
static void block_lies_over_the_next(scene_t *s) {
  s->memory->live.first->next->data -= 64;
}
static void block_is_too_large(scene_t *s) {
  s->memory->live.first->bytes += 64;
  s->memory->in_use += 64;
  s->memory->peak += 64;
}
static mp_span_t *freed_block(const scene_t *s) {
  mp_span_t *block = s->memory->live.first;
  while (block->prev == NULL || !block->prev->is_free) block = block->list_next;
  return block->prev;
}
static void free_block_waits_for_a_run_to_come(scene_t *s) {
  freed_block(s)->free_after = 7;
}
static void free_block_is_of_another_pool(scene_t *s) {
  freed_block(s)->pool += 1;
}
static void free_block_has_too_many_pages(scene_t *s) {
  freed_block(s)->touched += 64;
}
static void free_block_is_live(scene_t *s) {
  freed_block(s)->is_free = false;
}
static void free_neighbours_were_not_joined(scene_t *s) {
  freed_block(s)->next->is_free = true;
}
static void block_does_not_know_its_neighbour(scene_t *s) {
  freed_block(s)->next->prev = NULL;
}
static void client_counts_wrong(scene_t *s) {
  atomic_fetch_add(&s->client->budget.bytes_in_use, 1);
}
static void client_counts_idle_wrong(scene_t *s) {
  atomic_fetch_add(&s->client->budget.bytes_idle, 1);
}

typedef struct {
  void (*break_it)(scene_t *s);
  const char *said;
} row_t;

static const row_t k_rows[] = {
    {last_run_is_lost, "(device->first == NULL) == (device->last == NULL)"},
    {run_is_cut_off, "(run->next == NULL) == (run == device->last)"},
    {run_has_a_wrong_number, "run 3 comes after run 1"},
    {completed_goes_back, "run->number == number"},
    {device_counts_a_run_too_many, "number == device->enqueued"},
    {run_is_over_before_it_ran, "!mp_event_is_ready(run->event)"},
    {queued_run_has_no_blocker, "atomic_load(&run->blockers) >= "},
    {parked_run_has_a_blocker, "atomic_load(&run->blockers) == 0"},
    {run_is_of_another_device, "run->device == device"},
    {parked_run_is_with_a_worker,
     "(state == MP_PARTICIPANT_PARKED) == (owner == MP_OWNER_SESSION)"},
    {nobodys_run_is_in_a_list, "atomic_load(&device->owner) == MP_OWNER_BLOCKERS"},
    {one_more_is_parked, "session->num_parked == counts["},
    {one_more_is_active, "session->num_active == counts["},
    {one_more_has_joined, "session->num_joined == num_joined"},
    {parked_one_is_active, "(state == MP_PARTICIPANT_PARKED) == (owner == MP_OWNER_SESSION)"},
    {parked_one_has_no_run, "has_run == (run != NULL)"},
    {parked_one_is_remote, "state != MP_PARTICIPANT_REMOTE"},
    {poison_without_error, "(session->error != NULL) == mp_session_is_poisoned(session)"},
    {error_with_open_meeting, "num_meeting + num_receiving + num_talking == 0"},
    {nobody_holds_the_session, "atomic_load(&session->references) > 0"},
    {meeting_counts_wrong, "num_arrived == meeting->num_arrived"},
    {meeting_is_complete_and_open, "num_arrived < meeting->num_needed"},
    {meeting_has_somebody_else, "arrival->logical == meeting->members[i]"},
    {table_counts_a_meeting_too_many, "num_open == table->num_open"},
    {table_counts_a_meeting_too_few, "num_open < table->num_open"},
    {parked_one_is_in_no_meeting, "2 parked, 1 of them in lists, 0 at meetings being held"},
    {parked_one_waits_twice, "participant 0, state 130"},
    {mailbox_counts_wrong, "count == session->mailbox.num_receivers"},
    {stuck_without_a_word, "session->num_parked == 0 || session->num_active != 0"},
    {parked_one_was_never_launched, "session->states[i] == MP_PARTICIPANT_ABSENT"},
    {two_sessions_of_one_number, "other->number != session->number"},
    {complete_session_waits, "session->num_local == num_local"},
    {set_has_another_endpoint, "set->endpoint == NULL || set->endpoint == client->endpoint"},
    {queue_counts_wrong, "count == atomic_load(&queue->length)"},
    {parked_device_is_in_a_queue, "atomic_load(&device->owner) == MP_OWNER_QUEUE"},
    {jobs_count_wrong, "count == atomic_load(&jobs->count)"},
    {more_idle_than_there_are, "num_idle) <= check->client->workers->num_workers"},
    {stream_counts_wrong, "num_ahead"},
    {stream_has_too_few_bytes, "bytes_ahead"},
    {books_have_too_much, "memory->in_use == live + memory->adopted"},
    {books_have_too_little, "memory->in_use == live + memory->adopted"},
    {more_in_use_than_fits, "memory->in_use <= memory->capacity"},
    {peak_is_too_low, "memory->in_use <= memory->peak"},
    {block_is_locked_and_not_pinned, "memory->num_locked + memory->num_unlocked == "},
    {block_is_nobodys, "block->label != NULL"},
    {block_lies_over_the_next, "->data"},
    {block_is_too_large, "prev->data + prev->bytes == block->data"},
    {free_block_waits_for_a_run_to_come, "it waits for run 7 of 0"},
    {free_block_is_of_another_pool, "block->pool == pool"},
    {free_block_has_too_many_pages, "block->touched <= block->bytes"},
    {free_block_is_live, "block->is_free"},
    {free_neighbours_were_not_joined, "!prev->is_free || !block->is_free"},
    {block_does_not_know_its_neighbour, "next->prev == block"},
    {client_counts_wrong, "in_use == atomic_load(&client->budget.bytes_in_use)"},
    {client_counts_idle_wrong, "idle == atomic_load(&client->budget.bytes_idle)"},
};

static void break_and_check(void *context) {
  scene_t scene;
  make_scene(&scene);
  ((const row_t *)context)->break_it(&scene);
  mp_client_check_all(scene.client, true);
}

static void sound_clients_pass(void **state) {
  (void)state;
  row_t row = {nothing, NULL};
  expect_no_abort(break_and_check, &row);
}

static void each_broken_invariant_is_found(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(k_rows) / sizeof(k_rows[0]); ++i) {
    row_t row = k_rows[i];
    expect_abort_with(break_and_check, &row, row.said);
  }
}

// ---- Receivers ----

static mp_session_t *make_receiver(void) {
  static test_launch_t l;
  mp_client_t *client = make_client(2);
  mp_executable_t *executable = make_executable(client, receive_program());
  launch_on(&l, executable, 1);
  mp_session_t *session = mp_client_device(client, 0)->first->session;
  wait_until_parked(session, 1);
  wait_until_asleep(client);
  mp_client_check_all(client, true);
  return session;
}

static mp_client_t *client_of(const mp_session_t *session) {
  return session->devices[0]->client;
}

static void receiver_has_its_message(void *context) {
  (void)context;
  mp_session_t *session = make_receiver();
  static int message;
  session->mailbox.receivers.first->message = (mp_message_t *)&message;
  mp_client_check_all(client_of(session), true);
}

static void receiver_is_somebody_else(void *context) {
  (void)context;
  mp_session_t *session = make_receiver();
  session->mailbox.receivers.first->target = 1;
  mp_client_check_all(client_of(session), true);
}

static void receivers_are_checked(void **state) {
  (void)state;
  expect_abort_with(receiver_has_its_message, NULL, "r->message == NULL");
  expect_abort_with(receiver_is_somebody_else, NULL, "participant 1, state 0");
}

// ---- Two processes ----

// Rank 0's devices wait for those of rank 1.
static mp_client_t *make_waiting_rank(mp_session_t **out_session) {
  static const pod_option_t options[] = {{"num_devices", "2"}, {"workers", "2"}, {NULL, NULL}};
  static pods_t pods;
  static test_launch_t l;
  start_pods(&pods, 2, 2, options);
  mp_executable_t *executable = make_executable(pods.clients[0], psum_program(4, 4));
  launch_on(&l, executable, 2);
  mp_session_t *session = mp_client_device(pods.clients[0], 0)->first->session;
  wait_until_parked(session, 2);
  wait_until_asleep(pods.clients[0]);
  mp_client_check_all(pods.clients[0], true);
  *out_session = session;
  return pods.clients[0];
}

static void remote_is_ready_and_waits(mp_session_t *session) {
  session->peers->remotes->is_ready = true;
}
static void remote_misses_nobody(mp_session_t *session) {
  session->peers->remotes->stripes[0].num_missing = 0;
}
static void remote_is_not_in_its_sequence(mp_session_t *session) {
  session->peers->remotes->sequence->remote = NULL;
}
static void remote_is_not_begun(mp_session_t *session) {
  session->peers->remotes->sequence->num_begun = 0;
}
static void holder_runs(mp_session_t *session) {
  session->peers->remotes->is_waiting = false;
}
static void remote_one_is_active(mp_session_t *session) {
  session->states[3] = MP_PARTICIPANT_ACTIVE;
}
static void queue_has_not_come_so_far(mp_session_t *session) {
  session->peers->endpoint->queues->num_entered = 0;
}
static void queue_has_lost_its_last(mp_session_t *session) {
  session->peers->endpoint->queues->peers.last = NULL;
}
static void session_is_in_anothers_queue(mp_session_t *session) {
  session->peers->endpoint->queues->devices += 1;
}
static void endpoint_is_not_open(mp_session_t *session) {
  session->peers->endpoint->is_open = false;
}
static void endpoint_is_of_the_future(mp_session_t *session) {
  session->peers->endpoint->epoch = 1000;
}

typedef struct {
  void (*break_it)(mp_session_t *session);
  const char *said;
} rank_row_t;

static const rank_row_t k_rank_rows[] = {
    {remote_is_ready_and_waits, "!(remote->is_waiting && remote->is_ready)"},
    {remote_misses_nobody, "num_missing == at->num_missing"},
    {remote_is_not_in_its_sequence, "sequence->remote == remote"},
    {remote_is_not_begun, "remote->number < sequence->num_begun"},
    {holder_runs, "2 parked, 1 of them in lists"},
    {remote_one_is_active, "state == MP_PARTICIPANT_REMOTE || state == MP_PARTICIPANT_DONE"},
    {queue_has_not_come_so_far, "number < queue->num_entered"},
    {queue_has_lost_its_last, "last == queue->peers.last"},
    {session_is_in_anothers_queue, "peers->devices == queue->devices"},
    {endpoint_is_not_open, "(found == endpoint) == endpoint->is_open"},
    {endpoint_is_of_the_future, "endpoint->epoch < endpoint->router->num_epochs"},
};

static void break_rank_and_check(void *context) {
  mp_session_t *session = NULL;
  mp_client_t *client = make_waiting_rank(&session);
  ((const rank_row_t *)context)->break_it(session);
  mp_client_check_all(client, true);
}

static void what_crosses_processes_is_checked(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(k_rank_rows) / sizeof(k_rank_rows[0]); ++i) {
    rank_row_t row = k_rank_rows[i];
    expect_abort_with(break_rank_and_check, &row, row.said);
  }
}

// ---- At launches ----

static void launch_once(mp_executable_t *executable) {
  launch_and_expect(executable, 1, 1);
}

// Something is wrong on the last of many devices; launches on the first one come to it in turn.
static void launch_on_many_devices(void *context) {
  const int num_launches = *(const int *)context;
  mp_client_t *client = make_client(1024);
  mp_executable_t *executable = make_executable(client, psum_program(1, 4));
  launch_once(executable);
  mp_client_device(client, 1023)->enqueued += 1;
  for (int i = 0; i < num_launches; ++i) launch_once(executable);
}

static void launch_with_a_broken_device(void *context) {
  (void)context;
  mp_client_t *client = make_client(2);
  mp_executable_t *executable = make_executable(client, psum_program(1, 4));
  launch_once(executable);
  mp_client_device(client, 1)->enqueued += 1;
  launch_once(executable);
}

static void every_launch_looks(void **state) {
  (void)state;
  expect_abort_with(launch_with_a_broken_device, NULL, "number == device->enqueued");
  int one = 1, some = 200;
  expect_no_abort(launch_on_many_devices, &one);  // a part of them only
  expect_abort_with(launch_on_many_devices, &some, "number == device->enqueued");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sound_clients_pass),    cmocka_unit_test(each_broken_invariant_is_found),
      cmocka_unit_test(receivers_are_checked), cmocka_unit_test(what_crosses_processes_is_checked),
      cmocka_unit_test(every_launch_looks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void) {
  return 0;  // there are no checks in this build
}

#endif
