// Schedules from the end to the beginning: time runs backwards here, and the "next" node runs
// before.
#include "sim/chip/schedule/schedule.h"

#include <math.h>
#include <stdlib.h>

#include "sim/base/assert.h"
#include "sim/base/containers/array.h"

// Ready nodes: the ends of async ones by stream, and the others.
enum { SCHEDULE_WHOLE = MP_SCHEDULE_STREAMS, SCHEDULE_SETS };

typedef struct {
  uint32_t count, end;  // ranks of the set are below `end`
} ready_t;

// An async node whose end is placed, and whose start is not.
typedef struct {
  uint32_t node;
  double due;  // a start at this time hides all of it
} pending_t;

typedef struct {
  const mp_schedule_node_t *nodes;
  const mp_schedule_limits_t *limits;
  mp_arena_t *scratch;
  uint32_t *num_users;  // [num_nodes] the node's readers that are not placed yet
  uint32_t *ranks;      // [num_nodes] nodes of higher rank run later
  uint32_t *of_rank;    // [num_nodes] the node of a rank
  bool *is_ready;       // [num_nodes] by rank: all readers of the node are placed, it is not
  ready_t ready[SCHEDULE_SETS];
  MP_ARRAY(pending_t) pending;  // in the order in which their ends were placed
  uint32_t num_started;         // the pending collectives
  double now;
  double *tracks;                       // [num_tracks] when each track of collectives is free
  double streams[MP_SCHEDULE_STREAMS];  // when each other stream is free
  mp_schedule_slot_t *slots;            // filled from the end
  uint32_t first;                       // the first filled slot
} sweep_t;

// ---- ready nodes ----

// The set of a node that may be placed.
static uint8_t schedule_set(const sweep_t *s, uint32_t node) {
  return s->nodes[node].is_async ? (uint8_t)s->nodes[node].stream : SCHEDULE_WHOLE;
}

static void schedule_push(sweep_t *s, uint32_t node) {
  const uint32_t rank = s->ranks[node];
  ready_t *ready = &s->ready[schedule_set(s, node)];
  s->is_ready[rank] = true;
  ready->count += 1;
  if (rank >= ready->end) ready->end = rank + 1;
}

// The ready node of the highest rank.
static uint32_t schedule_pop(sweep_t *s, uint8_t set) {
  ready_t *ready = &s->ready[set];
  do {
    MP_ASSERT(ready->end > 0);
    ready->end -= 1;
  } while (!s->is_ready[ready->end] || schedule_set(s, s->of_rank[ready->end]) != set);
  s->is_ready[ready->end] = false;
  ready->count -= 1;
  return s->of_rank[ready->end];
}

// ---- placing nodes ----

// The node is placed: inputs whose readers are all placed may be placed next.
static void schedule_release(sweep_t *s, uint32_t node) {
  for (uint32_t i = 0; i < s->nodes[node].num_inputs; ++i) {
    const uint32_t input = s->nodes[node].inputs[i];
    MP_ASSERT(input < node && s->num_users[input] > 0);
    if (--s->num_users[input] == 0) schedule_push(s, input);
  }
}

static void schedule_put(sweep_t *s, uint32_t node, mp_schedule_part_t part) {
  s->slots[--s->first] = (mp_schedule_slot_t){node, part};
}

static void schedule_put_whole(sweep_t *s) {
  const uint32_t node = schedule_pop(s, SCHEDULE_WHOLE);
  schedule_put(s, node, MP_SCHEDULE_ALL);
  s->now += s->nodes[node].seconds;
  schedule_release(s, node);
}

// When a stream is free; for collectives the track that is free first.
static double *schedule_track(sweep_t *s, mp_schedule_stream_t stream) {
  if (stream != MP_SCHEDULE_COLLECTIVES) return &s->streams[stream];
  uint32_t track = 0;
  for (uint32_t t = 1; t < s->limits->num_tracks; ++t) {
    if (s->tracks[t] < s->tracks[track]) track = t;
  }
  return &s->tracks[track];
}

// Places the end of an async node. It runs as soon as its track is free.
static mp_status_t schedule_put_end(sweep_t *s, mp_schedule_stream_t stream) {
  const uint32_t node = schedule_pop(s, (uint8_t)stream);
  double *track = schedule_track(s, stream);
  schedule_put(s, node, MP_SCHEDULE_DONE);
  s->num_started += stream == MP_SCHEDULE_COLLECTIVES;
  *track = fmax(s->now, *track) + s->nodes[node].seconds;
  return MP_ARRAY_PUSH(s->scratch, &s->pending, (pending_t){node, *track});
}

static uint32_t schedule_next_start(const sweep_t *s) {
  uint32_t next = 0;
  for (uint32_t i = 1; i < s->pending.count; ++i) {
    if (s->pending.items[i].due < s->pending.items[next].due) next = i;
  }
  return next;
}

static void schedule_put_start(sweep_t *s, uint32_t at) {
  const pending_t one = s->pending.items[at];
  s->pending.count -= 1;
  s->num_started -= s->nodes[one.node].stream == MP_SCHEDULE_COLLECTIVES;
  for (uint32_t i = at; i < s->pending.count; ++i) s->pending.items[i] = s->pending.items[i + 1];
  schedule_put(s, one.node, MP_SCHEDULE_START);
  s->now = fmax(s->now, one.due);  // the device waits for the part that nothing hides
  schedule_release(s, one.node);
}

// Places the next slot: a start that is due, else an end, else a whole node by rank. A start that
// is not due only if nothing else is left.
static mp_status_t schedule_step(sweep_t *s) {
  const uint32_t next = schedule_next_start(s);
  const bool is_due = s->pending.count != 0 && s->pending.items[next].due <= s->now;
  for (int stream = MP_SCHEDULE_STREAMS - 1; stream >= 0 && !is_due; --stream) {
    const bool is_full =
        stream == MP_SCHEDULE_COLLECTIVES && s->num_started >= s->limits->most_started;
    if (s->ready[stream].count == 0 || is_full) continue;
    return schedule_put_end(s, (mp_schedule_stream_t)stream);
  }
  if (!is_due && s->ready[SCHEDULE_WHOLE].count != 0) {
    schedule_put_whole(s);
  } else {
    schedule_put_start(s, next);
  }
  return NULL;
}

// ---- ranks ----
//
// Nodes that wait for more seconds of collectives run later, so that the other nodes run between
// collectives and their readers. Ties keep the given order.

typedef struct {
  double depth;
  uint32_t node;
} ranked_t;

static int schedule_compare(const void *a, const void *b) {
  const ranked_t *x = a, *y = b;
  if (x->depth != y->depth) return x->depth < y->depth ? -1 : 1;
  return x->node < y->node ? -1 : x->node > y->node;
}

static mp_status_t schedule_rank(sweep_t *s, uint32_t num_nodes) {
  ranked_t *sorted = MP_ARENA_ARRAY(s->scratch, ranked_t, (size_t)num_nodes + 1);
  double *depths = MP_ARENA_ARRAY(s->scratch, double, (size_t)num_nodes + 1);
  MP_RETURN_IF_NULL(sorted);
  MP_RETURN_IF_NULL(depths);
  for (uint32_t n = 0; n < num_nodes; ++n) {
    for (uint32_t i = 0; i < s->nodes[n].num_inputs; ++i) {
      const uint32_t input = s->nodes[n].inputs[i];
      const double own = s->nodes[input].is_async ? s->nodes[input].seconds : 0;
      depths[n] = fmax(depths[n], depths[input] + own);
    }
    sorted[n] = (ranked_t){depths[n], n};
  }
  if (num_nodes != 0) qsort(sorted, num_nodes, sizeof(*sorted), schedule_compare);
  for (uint32_t r = 0; r < num_nodes; ++r) {
    s->of_rank[r] = sorted[r].node;
    s->ranks[sorted[r].node] = r;
  }
  return NULL;
}

// ---- the sweep ----

static mp_status_t schedule_begin(sweep_t *s, uint32_t num_nodes) {
  for (uint32_t n = 0; n < num_nodes; ++n) {
    for (uint32_t i = 0; i < s->nodes[n].num_inputs; ++i) s->num_users[s->nodes[n].inputs[i]] += 1;
  }
  for (uint32_t n = 0; n < num_nodes; ++n) {
    if (s->num_users[n] == 0) schedule_push(s, n);
  }
  while (s->first != 0) MP_RETURN_IF_ERROR(schedule_step(s));
  MP_ASSERT(s->pending.count == 0 && s->num_started == 0);
  return NULL;
}

static mp_status_t schedule_sweep(sweep_t *s, uint32_t num_nodes) {
  s->num_users = MP_ARENA_ARRAY(s->scratch, uint32_t, (size_t)num_nodes + 1);
  s->tracks = MP_ARENA_ARRAY(s->scratch, double, s->limits->num_tracks);
  s->ranks = MP_ARENA_ARRAY(s->scratch, uint32_t, (size_t)num_nodes + 1);
  s->of_rank = MP_ARENA_ARRAY(s->scratch, uint32_t, (size_t)num_nodes + 1);
  s->is_ready = MP_ARENA_ARRAY(s->scratch, bool, (size_t)num_nodes + 1);
  MP_RETURN_IF_NULL(s->num_users);
  MP_RETURN_IF_NULL(s->ranks);
  MP_RETURN_IF_NULL(s->of_rank);
  MP_RETURN_IF_NULL(s->is_ready);
  MP_RETURN_IF_NULL(s->tracks);
  MP_RETURN_IF_ERROR(schedule_rank(s, num_nodes));
  return schedule_begin(s, num_nodes);
}

mp_status_t mp_schedule_order(mp_arena_t *arena, uint32_t num_nodes,
                              const mp_schedule_node_t *nodes, const mp_schedule_limits_t *limits,
                              uint32_t *out_count, const mp_schedule_slot_t **out_slots) {
  MP_ASSERT(limits->num_tracks > 0 && limits->most_started > 0);
  sweep_t s = {.nodes = nodes, .limits = limits, .first = num_nodes};
  for (uint32_t n = 0; n < num_nodes; ++n) s.first += nodes[n].is_async;
  const uint32_t count = s.first;
  s.slots = MP_ARENA_ARRAY(arena, mp_schedule_slot_t, (size_t)count + 1);
  MP_RETURN_IF_NULL(s.slots);
  MP_RETURN_IF_ERROR(mp_arena_create(&s.scratch));
  mp_status_t status = schedule_sweep(&s, num_nodes);
  mp_arena_release(s.scratch);
  MP_RETURN_IF_ERROR(status);
  *out_count = count;
  *out_slots = s.slots;
  return NULL;
}
