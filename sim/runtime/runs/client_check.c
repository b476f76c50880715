// Other threads continue while the checks run, so each object is read under its own lock, and only
// what that lock guarantees is asserted. No run enters a stream meanwhile, because the launch lock
// is held.
#include "sim/runtime/runs/client_check.h"

#ifdef MINIPOD_ASSERTS

#include "sim/runtime/devices/device_impl.h"
#include "sim/runtime/memory/heap.h"
#include "sim/runtime/order/launch_order.h"
#include "sim/runtime/remote/router_impl.h"
#include "sim/runtime/runs/executable_impl.h"
#include "sim/runtime/runs/run.h"
#include "sim/runtime/workers/workers.h"

enum {
  MP_CHECK_STEPS = 2000,   // about the number of objects that are checked per launch
  MP_CHECK_MARK = 1 << 7,  // set in a participant's state when it was found waiting in a list
};

typedef struct {
  mp_client_t *client;
  uint64_t number;  // of this check
  uint64_t steps;
} check_t;

// ---- Sessions; the session's lock is held ----

static bool client_check_is_local(const mp_session_t *session, uint32_t logical) {
  return session->peers == NULL || session->peers->ranks_of[logical] == session->peers->self;
}

// The states of participants, and their counters.
static void client_check_states(const mp_session_t *session) {
  uint32_t counts[MP_PARTICIPANT_REMOTE + 1] = {0}, num_local = 0, num_joined = 0;
  for (uint32_t i = 0; i < session->num_participants; ++i) {
    const uint8_t state = session->states[i];
    const mp_run_t *run = session->runs[i];
    MP_ASSERT(state <= MP_PARTICIPANT_REMOTE);
    counts[state] += 1;
    if (client_check_is_local(session, i)) {
      MP_ASSERT(state != MP_PARTICIPANT_REMOTE);
      num_local += 1;
      num_joined += state != MP_PARTICIPANT_ABSENT;
    } else {
      MP_ASSERT(state == MP_PARTICIPANT_REMOTE || state == MP_PARTICIPANT_DONE);
    }
    const bool has_run = state == MP_PARTICIPANT_ACTIVE || state == MP_PARTICIPANT_PARKED;
    MP_ASSERT_MSG(has_run == (run != NULL), "participant %u, state %u", i, state);
    if (has_run) MP_ASSERT(run->session == session && run->logical == i);
  }
  MP_ASSERT(session->num_local == num_local && session->num_joined == num_joined);
  MP_ASSERT(session->num_active == counts[MP_PARTICIPANT_ACTIVE]);
  MP_ASSERT(session->num_parked == counts[MP_PARTICIPANT_PARKED]);
}

// Checks a participant that waits in a list: it is parked, and in no list that was checked before.
static void client_check_waiter(mp_session_t *session, uint32_t logical) {
  MP_ASSERT(logical < session->num_participants);
  MP_ASSERT_MSG(session->states[logical] == MP_PARTICIPANT_PARKED, "participant %u, state %u",
                logical, session->states[logical]);
  session->states[logical] |= MP_CHECK_MARK;
}

// Checks that the participants that have arrived at a meeting wait there, except `holder`; returns
// their number.
static uint32_t client_check_arrivals(mp_session_t *session, const mp_meeting_t *meeting,
                                      const mp_arrival_t *holder) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < meeting->num_members; ++i) {
    const mp_arrival_t *arrival = meeting->arrivals[i];
    if (arrival == NULL || arrival == holder) continue;
    MP_ASSERT(arrival->logical == meeting->members[i]);
    client_check_waiter(session, arrival->logical);
    count += 1;
  }
  return count;
}

static uint32_t client_check_meetings(mp_session_t *session) {
  const mp_rendezvous_t *table = &session->rendezvous;
  uint32_t num_open = 0, count = 0;
  const mp_meeting_t *meeting = NULL;
  while ((meeting = mp_rendezvous_next(table, meeting)) != NULL) {
    MP_ASSERT(num_open < table->num_open);
    num_open += 1;
    MP_ASSERT(meeting->bucket < table->num_buckets);
    MP_ASSERT(meeting->next == NULL || meeting->next->prev == meeting);
    const uint32_t num_arrived = client_check_arrivals(session, meeting, NULL);
    MP_ASSERT(num_arrived == meeting->num_arrived);
    MP_ASSERT(num_arrived > 0 &&
              num_arrived < meeting->num_needed);  // or the meeting would be held
    count += num_arrived;
  }
  MP_ASSERT(num_open == table->num_open);
  return count;
}

static uint32_t client_check_receivers(mp_session_t *session) {
  uint32_t count = 0;
  for (const mp_receiver_t *r = session->mailbox.receivers.first; r != NULL; r = r->next) {
    MP_ASSERT(count < session->mailbox.num_receivers);
    MP_ASSERT(r->message == NULL);  // or the receiver would have been resumed
    client_check_waiter(session, r->target);
    count += 1;
  }
  MP_ASSERT(count == session->mailbox.num_receivers);
  MP_ASSERT((session->mailbox.messages.first == NULL) == (session->mailbox.messages.last == NULL));
  return count;
}

static uint32_t client_check_talks(mp_session_t *session) {
  uint32_t count = 0;
  for (const mp_session_talk_t *talk = session->talks; talk != NULL; talk = talk->next) {
    for (uint32_t i = 0; i < session->num_participants; ++i) {
      if (talk->states[i] != MP_TALK_WAITS) continue;
      client_check_waiter(session, i);
      count += 1;
    }
  }
  return count;
}

// Checks a remote collective that waits: no thread works on it, so its state may be read.
static void client_check_missing(const mp_remote_collective_t *remote) {
  for (uint32_t stripe = remote->first_stripe; stripe < remote->num_begun; ++stripe) {
    uint32_t num_missing = 0;
    for (uint32_t p = 0; p < remote->sequence->layout->num_processes; ++p) {
      num_missing += mp_remote_stripe_misses(remote, stripe, p);
    }
    const mp_remote_stripe_t *at = &remote->stripes[stripe];
    MP_ASSERT(at->stripe == NULL || (num_missing != 0 && num_missing == at->num_missing));
  }
}

static uint32_t client_check_remotes(mp_session_t *session) {
  uint32_t count = 0;
  const mp_remote_collective_t *remote = session->peers == NULL ? NULL : session->peers->remotes;
  for (; remote != NULL; remote = remote->next) {
    const mp_group_sequence_t *sequence = remote->sequence;
    MP_ASSERT(sequence->remote == remote && remote->number < sequence->num_begun);
    MP_ASSERT(!(remote->is_waiting && remote->is_ready));
    count += client_check_arrivals(session, remote->meeting, remote->holder);
    MP_ASSERT(!(remote->is_carried && (remote->is_waiting || remote->is_ready)));
    if (remote->is_waiting) client_check_missing(remote);
    if (remote->is_waiting || remote->is_carried) {
      client_check_waiter(session, remote->holder->logical);
      count += 1;
    }
    if (session->error != NULL) MP_ASSERT(!remote->is_waiting && !remote->is_ready);
  }
  return count;
}

static void client_check_session(check_t *check, mp_session_t *session) {
  mp_lock_assert_held(&session->lock);
  if (session->checked == check->number) return;
  session->checked = check->number;
  check->steps += session->num_participants;
  MP_ASSERT(atomic_load(&session->references) > 0);
  MP_ASSERT((session->error != NULL) == mp_session_is_poisoned(session));
  client_check_states(session);
  const uint32_t num_meeting = client_check_meetings(session);
  const uint32_t num_receiving = client_check_receivers(session);
  const uint32_t num_talking = client_check_talks(session);
  const uint32_t num_listed =
      num_meeting + num_receiving + num_talking + client_check_remotes(session);
  MP_ASSERT_MSG(session->num_parked == num_listed + session->num_at_held,
                "%u parked, %u of them in lists, %u at meetings being held", session->num_parked,
                num_listed, session->num_at_held);
  if (session->error != NULL) {
    MP_ASSERT(num_meeting + num_receiving + num_talking == 0);  // all were resumed
  } else if (session->peers == NULL && session->num_joined == session->num_local) {
    MP_ASSERT(session->num_parked == 0 || session->num_active != 0);  // or it would be poisoned
  }
  for (uint32_t i = 0; i < session->num_participants; ++i) session->states[i] &= MP_CHECK_MARK - 1;
}

// ---- Devices ----

// Checks the owner of the device's first run against its state in its session. The device's lock is
// held.
static void client_check_first_run(check_t *check, mp_device_t *device) {
  const mp_run_t *run = device->first;
  if (atomic_load(&device->owner) != MP_OWNER_BLOCKERS) {
    MP_ASSERT(atomic_load(&run->blockers) == 0);
  }
  mp_session_t *session = run->session;
  if (session == NULL) {
    MP_ASSERT(atomic_load(&device->owner) != MP_OWNER_SESSION);
    return;
  }
  mp_lock(&session->lock);
  const unsigned owner = atomic_load(&device->owner);
  const uint8_t state = session->states[run->logical];
  MP_ASSERT((state == MP_PARTICIPANT_PARKED) == (owner == MP_OWNER_SESSION));
  if (state == MP_PARTICIPANT_DONE) {
    MP_ASSERT(owner == MP_OWNER_WORKER);  // which is ending it
  } else {
    MP_ASSERT(state == MP_PARTICIPANT_ACTIVE || state == MP_PARTICIPANT_PARKED);
    MP_ASSERT(session->runs[run->logical] == run);
    MP_ASSERT(session->devices[run->logical] == device);
  }
  client_check_session(check, session);
  mp_unlock(&session->lock);
}

static void client_check_stream(check_t *check, mp_device_t *device) {
  mp_lock(&device->lock);
  MP_ASSERT((device->first == NULL) == (device->last == NULL));
  uint64_t number = mp_device_completed(device);
  uint64_t bytes = 0;
  uint32_t num_behind_call = 0;
  for (const mp_run_t *run = device->first; run != NULL; run = run->next) {
    number += 1;
    bytes += run->bytes;
    num_behind_call += run->is_behind_call;
    MP_ASSERT_MSG(run->number == number, "run %llu comes after run %llu",
                  (unsigned long long)run->number, (unsigned long long)number - 1);
    MP_ASSERT(run->device == device && atomic_load(&run->references) > 0);
    MP_ASSERT(!mp_event_is_ready(run->event));
    MP_ASSERT(atomic_load(&run->blockers) >= (run == device->first ? 0 : 1));
    MP_ASSERT((run->next == NULL) == (run == device->last));
    check->steps += 1;
  }
  MP_ASSERT(number == device->enqueued);
  MP_ASSERT(atomic_load(&device->num_ahead) == number - mp_device_completed(device));
  MP_ASSERT(atomic_load(&device->bytes_ahead) == bytes);
  MP_ASSERT(atomic_load(&device->num_behind_call) == num_behind_call);
  if (device->first == NULL) {
    MP_ASSERT(atomic_load(&device->owner) == MP_OWNER_BLOCKERS);
  } else {
    client_check_first_run(check, device);
  }
  mp_unlock(&device->lock);
}

static void client_check_memory(check_t *check, mp_memory_t *memory) {
  mp_lock(&memory->lock);
  uint64_t live = 0, num_live = 0;
  for (const mp_span_t *block = memory->live.first; block != NULL; block = block->list_next) {
    MP_ASSERT(block->label != NULL);
    live += memory->budget->is_counted_only ? block->charged : block->bytes;
    num_live += 1;
  }
  MP_ASSERT_MSG(memory->in_use == live + memory->adopted,
                "the books have %llu bytes, live blocks %llu, adopted memory %llu",
                (unsigned long long)atomic_load(&memory->in_use), (unsigned long long)live,
                (unsigned long long)memory->adopted);
  MP_ASSERT(memory->in_use <= memory->capacity && memory->in_use <= memory->peak);
  const bool is_pinned = memory->space == MP_MEMORY_PINNED_HOST;
  const bool is_counted_only = memory->budget->is_counted_only;
  const bool is_lockable = is_pinned && !is_counted_only;
  MP_ASSERT(memory->num_locked + memory->num_unlocked == (is_lockable ? num_live : 0));
  MP_ASSERT(memory->heap != NULL || num_live == 0 || is_counted_only);
  if (memory->heap != NULL) {
    check->steps += mp_heap_check(memory->heap, memory->live.first, memory->device->enqueued);
  }
  check->steps += 1;
  mp_unlock(&memory->lock);
}

static void client_check_device(check_t *check, mp_device_t *device) {
  MP_ASSERT(device->is_local && device->client == check->client);
  check->steps += 1;
  client_check_stream(check, device);
  for (int space = 0; space < MP_MEMORY_SPACE_COUNT; ++space) {
    client_check_memory(check, &device->memories[space]);
  }
}

// ---- What all devices share ----

static void client_check_queue(check_t *check, mp_core_queue_t *queue) {
  mp_lock(&queue->lock);
  uint32_t count = 0;
  const mp_device_t *last = NULL;
  for (mp_device_t *device = queue->devices.first; device != NULL;
       last = device, device = device->next_runnable) {
    MP_ASSERT(count < queue->devices.length);
    MP_ASSERT(device->queue == queue && atomic_load(&device->owner) == MP_OWNER_QUEUE);
    count += 1;
  }
  MP_ASSERT(count == queue->devices.length && count == atomic_load(&queue->length));
  MP_ASSERT(last == queue->devices.last);
  MP_ASSERT(atomic_load(&queue->sleepers) <= queue->num_workers);
  check->steps += 1 + count;
  mp_unlock(&queue->lock);
}

static void client_check_jobs(check_t *check) {
  mp_job_list_t *jobs = &check->client->workers->jobs;
  mp_lock(&jobs->lock);
  uint32_t count = 0;
  const mp_job_t *last = NULL;
  for (const mp_job_t *job = jobs->first; job != NULL; last = job, job = job->next) {
    MP_ASSERT(count < atomic_load(&jobs->count));
    MP_ASSERT(job->is_linked && job->prev == last && atomic_load(&job->references) != 0);
    count += 1;
  }
  MP_ASSERT(last == jobs->last && count == atomic_load(&jobs->count));
  check->steps += 1 + count;
  mp_unlock(&jobs->lock);
  MP_ASSERT(atomic_load(&check->client->workers->num_idle) <= check->client->workers->num_workers);
}

// Checks a session that waits for launches on some devices of the set.
static void client_check_waiting(check_t *check, const mp_device_set_t *set,
                                 mp_session_t *session) {
  for (const mp_session_t *other = session->next; other != NULL; other = other->next) {
    MP_ASSERT(other->number != session->number);
    check->steps += 1;
  }
  mp_lock(&session->lock);
  MP_ASSERT(session->num_participants == set->num_devices);
  MP_ASSERT(session->num_joined < session->num_local);
  for (uint32_t i = 0; i < set->num_devices; ++i) {
    const bool is_to_come =
        client_check_is_local(session, i) && set->num_launches[i] <= session->number;
    if (is_to_come) MP_ASSERT(session->states[i] == MP_PARTICIPANT_ABSENT);
  }
  client_check_session(check, session);
  mp_unlock(&session->lock);
}

static void client_check_sets(check_t *check) {
  const mp_client_t *client = check->client;
  for (const mp_device_set_t *set = client->launches->sets; set != NULL; set = set->next) {
    check->steps += 1;
    MP_ASSERT(set->endpoint == NULL || set->endpoint == client->endpoint);
    MP_ASSERT((set->endpoint != NULL) == (set->num_ranks != 0));
    for (mp_session_t *session = set->waiting; session != NULL; session = session->next) {
      client_check_waiting(check, set, session);
    }
  }
}

static void client_check_sides(check_t *check) {
  for (mp_device_t *side = check->client->launches->sides; side != NULL; side = side->next_side) {
    MP_ASSERT(side->client == check->client);
    MP_ASSERT(side->memories == check->client->devices[side->id].memories);
    check->steps += 1;
    client_check_stream(check, side);
    mp_lock(&side->lock);
    MP_ASSERT(side->first == NULL || side->first->next == NULL || side->is_calling);
    mp_unlock(&side->lock);
  }
}

static void client_check_launch_queue(check_t *check, mp_endpoint_t *endpoint,
                                      const mp_launch_queue_t *queue) {
  const mp_peers_t *last = NULL;
  for (mp_peers_t *peers = queue->peers.first; peers != NULL; last = peers, peers = peers->next) {
    mp_session_t *session = peers->session;
    const uint64_t number = peers->number;
    MP_ASSERT(session->peers == peers);
    MP_ASSERT(peers->endpoint == endpoint && peers->devices == queue->devices);
    MP_ASSERT(number < queue->num_entered);
    MP_ASSERT(last == NULL || last->number < number);
    mp_lock(&session->lock);
    client_check_session(check, session);
    mp_unlock(&session->lock);
  }
  MP_ASSERT(last == queue->peers.last);
  for (const mp_launch_queue_t *other = queue->next; other != NULL; other = other->next) {
    MP_ASSERT(other->devices != queue->devices);
    check->steps += 1;
  }
}

static void client_check_endpoint(check_t *check) {
  mp_endpoint_t *endpoint = check->client->endpoint;
  if (endpoint == NULL) return;
  mp_lock(&endpoint->router->lock);
  MP_ASSERT(endpoint->client == check->client && endpoint->epoch < endpoint->router->num_epochs);
  const mp_endpoint_t *found = endpoint->router->endpoints;
  while (found != NULL && found != endpoint) found = found->next;
  MP_ASSERT((found == endpoint) == endpoint->is_open);
  for (const mp_launch_queue_t *queue = endpoint->queues; queue != NULL; queue = queue->next) {
    check->steps += 1;
    client_check_launch_queue(check, endpoint, queue);
  }
  mp_unlock(&endpoint->router->lock);
}

// ---- All of it ----

// The items of a check, by number: the local devices, then the core queues, then these.
enum { MP_CHECK_JOBS, MP_CHECK_SETS, MP_CHECK_SIDES, MP_CHECK_ENDPOINT, MP_CHECK_OTHERS };

static uint32_t client_check_num_items(const mp_client_t *client) {
  return client->num_local + client->workers->num_queues + MP_CHECK_OTHERS;
}

static void client_check_item(check_t *check, uint32_t item) {
  mp_client_t *client = check->client;
  if (item < client->num_local) {
    client_check_device(check, &client->devices[client->first_local + item]);
    return;
  }
  item -= client->num_local;
  if (item < client->workers->num_queues) {
    client_check_queue(check, &client->workers->queues[item]);
    return;
  }
  item -= client->workers->num_queues;
  if (item == MP_CHECK_JOBS) client_check_jobs(check);
  if (item == MP_CHECK_SETS) client_check_sets(check);
  if (item == MP_CHECK_SIDES) client_check_sides(check);
  if (item == MP_CHECK_ENDPOINT) client_check_endpoint(check);
}

void mp_client_check_launch(mp_client_t *client) {
  mp_lock_assert_held(&client->launches->lock);
  if (mp_client_is_stopping(client)) return;  // runs are being ended wherever they are
  mp_client_check_t *state = &client->launches->check;
  if (state->debt >= MP_CHECK_STEPS) {
    state->debt -= MP_CHECK_STEPS;
    return;
  }
  check_t check = {.client = client, .number = ++state->number, .steps = state->debt};
  const uint32_t num_items = client_check_num_items(client);
  for (uint32_t i = 0; i < num_items && check.steps < MP_CHECK_STEPS; ++i) {
    client_check_item(&check, state->next);
    state->next = (state->next + 1) % num_items;
  }
  state->debt = check.steps < MP_CHECK_STEPS ? 0 : check.steps - MP_CHECK_STEPS;
}

// Memories that share a capacity hold as much as their pool has counted.
static void client_check_pools(const mp_client_t *client) {
  for (uint32_t node = 0; node < client->num_pool_nodes; ++node) {
    for (int space = 0; space < MP_MEMORY_SPACE_COUNT; ++space) {
      const mp_memory_pool_t *pool = &client->pools[node][space];
      uint64_t in_use = 0;
      for (uint32_t i = 0; i < client->num_local * MP_MEMORY_SPACE_COUNT; ++i) {
        if (client->memories[i].pool == pool) in_use += atomic_load(&client->memories[i].in_use);
      }
      MP_ASSERT(in_use == atomic_load(&pool->bytes_in_use) && in_use <= pool->capacity);
    }
  }
}

// Compares the sums over all memories. They are exact only while no thread allocates or frees.
static void client_check_sums(mp_client_t *client) {
  uint64_t in_use = 0, idle = 0;
  for (uint32_t i = 0; i < client->num_local * MP_MEMORY_SPACE_COUNT; ++i) {
    mp_memory_t *memory = &client->memories[i];
    mp_lock(&memory->lock);
    in_use += memory->in_use;
    if (memory->heap != NULL) idle += mp_heap_idle_bytes(memory->heap);
    mp_unlock(&memory->lock);
  }
  MP_ASSERT(in_use == atomic_load(&client->budget.bytes_in_use));
  client_check_pools(client);
  MP_ASSERT(idle == atomic_load(&client->budget.bytes_idle));
}

void mp_client_check_all(mp_client_t *client, bool is_alone) {
  mp_lock(&client->launches->lock);
  check_t check = {.client = client, .number = ++client->launches->check.number};
  const uint32_t num_items = client_check_num_items(client);
  for (uint32_t i = 0; i < num_items && !mp_client_is_stopping(client); ++i)
    client_check_item(&check, i);
  mp_unlock(&client->launches->lock);
  if (is_alone) client_check_sums(client);
}

#endif  // MINIPOD_ASSERTS
