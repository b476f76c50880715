// Orders the kernels, collectives and loops of a block by the latency-hiding scheduler.
//
// The units are *items*: a fusion, a collective, a host copy, a loop or branch, a barrier. An item
// may be part of another one: the collective of a collective matmul of the matmul, combined
// collectives of the first one. The other items are the scheduler's *nodes*.
#include "sim/base/assert.h"
#include "sim/chip/schedule/chip_order_impl.h"

typedef mp_chip_ordering_t order_t;

// The default of `overlap.started`: how many collectives may be started at a time. The results of
// started collectives occupy memory.
enum { ORDER_MOST_STARTED = 4 };

// ---- nodes: items in topological order ----

typedef enum { ORDER_NEW, ORDER_OPEN, ORDER_CLOSED } order_state_t;

typedef struct {
  order_t *o;
  mp_adjacency_t inputs;  // of items that are nodes
  uint8_t *states;        // [items]
  uint32_t *stack;
  uint32_t *sorted;  // items that are nodes
  uint32_t count;
} sort_t;

// Appends an item after all items that it depends on (depth-first search).
static void chip_order_visit(sort_t *s, uint32_t first) {
  uint32_t depth = 0;
  s->stack[depth++] = first;
  while (depth != 0) {
    const uint32_t item = s->stack[depth - 1];
    if (s->states[item] != ORDER_NEW) {
      if (s->states[item] == ORDER_OPEN) s->sorted[s->count++] = item;
      s->states[item] = ORDER_CLOSED;
      depth -= 1;
      continue;
    }
    s->states[item] = ORDER_OPEN;
    for (uint32_t i = s->inputs.first[item + 1]; i-- > s->inputs.first[item];) {
      const uint32_t input = s->inputs.nodes[i];
      if (s->states[input] == ORDER_NEW) s->stack[depth++] = input;
    }
  }
}

static mp_status_t chip_order_sort(order_t *o, sort_t *s) {
  const size_t count = o->items.count;
  for (uint32_t e = 0; e < o->edges.count; ++e) {
    mp_edge_t *edge = &o->edges.items[e];
    *edge = (mp_edge_t){o->items.items[edge->from].node, o->items.items[edge->to].node};
  }
  *s = (sort_t){.o = o,
                .states = MP_ARENA_ARRAY(o->arena, uint8_t, count + 1),
                .stack = MP_ARENA_ARRAY(o->arena, uint32_t, count + o->edges.count + 1),
                .sorted = MP_ARENA_ARRAY(o->arena, uint32_t, count + 1)};
  MP_RETURN_IF_NULL(s->states);
  MP_RETURN_IF_NULL(s->stack);
  MP_RETURN_IF_NULL(s->sorted);
  MP_RETURN_IF_ERROR(
      mp_edges_sort(o->arena, o->items.count, o->edges.count, o->edges.items, true, &s->inputs));
  for (uint32_t i = 0; i < count; ++i) {
    if (o->items.items[i].node == i) chip_order_visit(s, i);
  }
  return NULL;
}

// A node without its inputs.
static mp_schedule_node_t chip_order_node(const order_t *o, uint32_t item) {
  const mp_chip_collective_t *one = mp_chip_order_collective(o, item);
  const uint32_t number = o->items.items[item].copy;
  mp_schedule_node_t node = {.seconds = o->items.items[item].seconds,
                             .is_async = one != NULL && one->overlap == MP_OVERLAP_ASYNC,
                             .stream = MP_SCHEDULE_COLLECTIVES};
  if (number == ORDER_NONE) return node;
  const mp_chip_copy_t *copy = &o->c->copies.items[number];
  node.is_async = copy->is_async;
  node.stream = copy->is_to_host ? MP_SCHEDULE_TO_HOST : MP_SCHEDULE_FROM_HOST;
  return node;
}

// Makes the nodes. If items became one, dependencies may go in a circle; one of them is dropped.
static mp_status_t chip_order_make_nodes(const sort_t *s, const mp_schedule_node_t **out_nodes) {
  const order_t *o = s->o;
  mp_schedule_node_t *nodes = MP_ARENA_ARRAY(o->arena, mp_schedule_node_t, (size_t)s->count + 1);
  uint32_t *numbers = MP_ARENA_ARRAY(o->arena, uint32_t, (size_t)o->items.count + 1);
  MP_RETURN_IF_NULL(nodes);
  MP_RETURN_IF_NULL(numbers);
  for (uint32_t i = 0; i < o->items.count; ++i) numbers[i] = ORDER_NONE;
  for (uint32_t n = 0; n < s->count; ++n) {
    const uint32_t item = s->sorted[n], first = s->inputs.first[item];
    uint32_t *inputs = &s->inputs.nodes[first], count = 0;
    for (uint32_t e = first; e < s->inputs.first[item + 1]; ++e) {
      const uint32_t number = numbers[s->inputs.nodes[e]];
      if (number != ORDER_NONE) inputs[count++] = number;
    }
    numbers[item] = n;
    nodes[n] = chip_order_node(o, item);
    nodes[n].num_inputs = count;
    nodes[n].inputs = inputs;
  }
  *out_nodes = nodes;
  return NULL;
}

// ---- slots ----

static void chip_order_put(const order_t *o, mp_chip_order_t *out, uint32_t item,
                           mp_schedule_part_t part) {
  mp_chip_slot_t *slot = &out->slots[out->num_slots];
  *slot = (mp_chip_slot_t){.item = &o->items.items[item], .part = part};
  if (part == MP_SCHEDULE_DONE && slot->item->collective != ORDER_NONE) {
    slot->lost = mp_chip_order_lost_seconds(&o->c->chip->figures, out, out->num_slots);
  }
  out->num_slots += 1;
}

// Whether the collective that starts at a slot overlaps with nothing: it ends before any other
// work, or, if only matmuls carry gathers, before the next matmul.
static bool chip_order_hides_nothing(const sort_t *s, const mp_schedule_slot_t *slots, uint32_t i,
                                     uint32_t num_started) {
  const uint32_t kind = mp_chip_order_kind(s->o, s->sorted[slots[i].node]);
  if (kind != MP_COLLECTIVE_ALL_GATHER || s->o->c->chip->figures.overlap_carried != 1) {
    return num_started == 0 && slots[i + 1].node == slots[i].node;
  }
  for (uint32_t k = i + 1; slots[k].node != slots[i].node; ++k) {
    if (s->o->items.items[s->sorted[slots[k].node]].is_matmul) return false;
  }
  return true;
}

static void chip_order_put_slots(const sort_t *s, const mp_schedule_slot_t *slots, uint32_t count,
                                 mp_chip_order_t *out) {
  uint32_t num_started = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t item = s->sorted[slots[i].node], ring = s->o->items.items[item].messages;
    mp_chip_collective_t *one = mp_chip_order_collective(s->o, item);
    mp_schedule_part_t part = slots[i].part;
    if (one != NULL && part == MP_SCHEDULE_START) {
      if (chip_order_hides_nothing(s, slots, i, num_started)) {
        one->overlap = MP_OVERLAP_SYNC;
        continue;
      }
      num_started += 1;
    } else if (one != NULL && part == MP_SCHEDULE_DONE) {
      if (one->overlap == MP_OVERLAP_SYNC) part = MP_SCHEDULE_ALL;
      num_started -= part == MP_SCHEDULE_DONE;
    }
    if (ring != ORDER_NONE) chip_order_put(s->o, out, ring, MP_SCHEDULE_START);
    chip_order_put(s->o, out, item, part);
    if (ring != ORDER_NONE) chip_order_put(s->o, out, ring, MP_SCHEDULE_DONE);
  }
  MP_ASSERT(num_started == 0);  // every start has its end
}

// ---- blocks ----

static mp_status_t chip_order_schedule(order_t *o, mp_chip_order_t *out) {
  const mp_chip_t *chip = o->c->chip;
  const mp_schedule_limits_t limits = {
      .num_tracks = mp_communication_num_tracks(chip),
      .most_started = (uint32_t)mp_figure_or(chip->figures.overlap_started, ORDER_MOST_STARTED)};
  sort_t sorted;
  const mp_schedule_node_t *nodes = NULL;
  const mp_schedule_slot_t *slots = NULL;
  uint32_t count = 0;
  MP_RETURN_IF_ERROR(chip_order_sort(o, &sorted));
  MP_RETURN_IF_ERROR(chip_order_make_nodes(&sorted, &nodes));
  MP_RETURN_IF_ERROR(mp_schedule_order(o->arena, sorted.count, nodes, &limits, &count, &slots));
  chip_order_put_slots(&sorted, slots, count, out);
  return NULL;
}

static mp_status_t chip_order_block(order_t *o, const mp_block_t *block, mp_chip_order_t *out) {
  MP_RETURN_IF_ERROR(mp_chip_order_find_graph(o, block));
  MP_RETURN_IF_ERROR(mp_chip_order_pipeline(o, block));
  MP_RETURN_IF_ERROR(mp_chip_order_decompose(o));
  MP_RETURN_IF_ERROR(mp_chip_order_sum_whole_arrays(o));
  MP_RETURN_IF_ERROR(mp_chip_order_combine(o));
  // An item has at most two slots: its start and its end.
  out->slots = MP_ARENA_ARRAY(o->c->scratch, mp_chip_slot_t, 2 * (size_t)o->items.count + 1);
  MP_RETURN_IF_NULL(out->slots);
  return chip_order_schedule(o, out);
}

mp_status_t mp_chip_order_block(mp_communication_t *c, const mp_block_t *block,
                                mp_chip_order_t *out_order) {
  order_t o = {.c = c};
  *out_order = (mp_chip_order_t){0};
  MP_RETURN_IF_ERROR(mp_arena_create(&o.arena));
  mp_status_t status = chip_order_block(&o, block, out_order);
  mp_arena_release(o.arena);
  return status;
}
