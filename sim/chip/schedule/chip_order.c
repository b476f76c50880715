// Orders the kernels, collectives and loops of a block: by the latency-hiding scheduler if any of
// them can overlap with compute, else in the order of the program.
//
// The units are *items*: a fusion, a collective, a host copy, a loop or branch, a barrier. The
// collective of a collective matmul is scheduled as part of the matmul.
#include "sim/base/assert.h"
#include "sim/chip/schedule/chip_order_impl.h"
#include "sim/chip/schedule/schedule.h"

typedef mp_chip_ordering_t order_t;
typedef mp_chip_order_item_t item_t;
typedef mp_combine_edge_t edge_t;

// The default of `overlap.started`: how many collectives may be started at a time. The results of
// started collectives occupy memory.
enum { ORDER_MOST_STARTED = 4 };

// ---- nodes: items in topological order ----

// The items that item i depends on: [offsets[i], offsets[i + 1]) of `inputs`.
typedef struct {
  uint32_t *offsets, *inputs;
} inputs_t;

static mp_status_t chip_order_collect_inputs(order_t *o, inputs_t *out) {
  const uint32_t count = o->items.count;
  out->offsets = MP_ARENA_ARRAY(o->arena, uint32_t, (size_t)count + 2);
  out->inputs = MP_ARENA_ARRAY(o->arena, uint32_t, (size_t)o->edges.count + 1);
  MP_RETURN_IF_NULL(out->offsets);
  MP_RETURN_IF_NULL(out->inputs);
  for (uint32_t e = 0; e < o->edges.count; ++e) {
    out->offsets[o->items.items[o->edges.items[e].to].node + 2] += 1;
  }
  for (uint32_t i = 0; i < count; ++i) out->offsets[i + 2] += out->offsets[i + 1];
  for (uint32_t e = 0; e < o->edges.count; ++e) {
    const edge_t *edge = &o->edges.items[e];
    const uint32_t to = o->items.items[edge->to].node;
    out->inputs[out->offsets[to + 1]++] = o->items.items[edge->from].node;
  }
  return NULL;
}

// An item, and its next input to visit.
typedef struct {
  uint32_t item, next;
} visit_t;

typedef enum { ORDER_NEW, ORDER_OPEN, ORDER_CLOSED } order_state_t;

typedef struct {
  order_t *o;
  const inputs_t *inputs;
  uint8_t *states;  // [items]
  visit_t *stack;
  uint32_t *sorted;  // items that are nodes
  uint32_t count;
  bool is_circular;
} sort_t;

// Appends an item after all items that it depends on (depth-first search).
static void chip_order_visit(sort_t *s, uint32_t item) {
  uint32_t depth = 0;
  s->stack[depth++] = (visit_t){item, s->inputs->offsets[item]};
  s->states[item] = ORDER_OPEN;
  while (depth != 0) {
    visit_t *top = &s->stack[depth - 1];
    if (top->next == s->inputs->offsets[top->item + 1]) {
      s->states[top->item] = ORDER_CLOSED;
      s->sorted[s->count++] = top->item;
      depth -= 1;
      continue;
    }
    const uint32_t input = s->inputs->inputs[top->next++];
    if (input == top->item) continue;
    s->is_circular |= s->states[input] == ORDER_OPEN;
    if (s->states[input] != ORDER_NEW) continue;
    s->states[input] = ORDER_OPEN;
    s->stack[depth++] = (visit_t){input, s->inputs->offsets[input]};
  }
}

static mp_status_t chip_order_sort(order_t *o, const inputs_t *inputs, sort_t *s) {
  const size_t count = o->items.count;
  *s = (sort_t){.o = o,
                .inputs = inputs,
                .states = MP_ARENA_ARRAY(o->arena, uint8_t, count + 1),
                .stack = MP_ARENA_ARRAY(o->arena, visit_t, count + 1),
                .sorted = MP_ARENA_ARRAY(o->arena, uint32_t, count + 1)};
  MP_RETURN_IF_NULL(s->states);
  MP_RETURN_IF_NULL(s->stack);
  MP_RETURN_IF_NULL(s->sorted);
  for (uint32_t i = 0; i < o->items.count; ++i) {
    if (o->items.items[i].node == i && s->states[i] == ORDER_NEW) chip_order_visit(s, i);
  }
  return NULL;
}

// A collective matmul takes at least as long as its collective.
static double chip_order_node_seconds(const order_t *o, const item_t *item) {
  if (item->ring == ORDER_NONE) return item->is.seconds;
  const double messages = o->items.items[item->ring].is.seconds;
  return messages > item->is.seconds ? messages : item->is.seconds;
}

static mp_status_t chip_order_make_nodes(order_t *o, const inputs_t *inputs, const sort_t *s,
                                         const mp_schedule_node_t **out_nodes) {
  mp_schedule_node_t *nodes = MP_ARENA_ARRAY(o->arena, mp_schedule_node_t, (size_t)s->count + 1);
  uint32_t *number = MP_ARENA_ARRAY(o->arena, uint32_t, (size_t)o->items.count + 1);
  MP_RETURN_IF_NULL(nodes);
  MP_RETURN_IF_NULL(number);
  for (uint32_t n = 0; n < s->count; ++n) {
    const uint32_t i = s->sorted[n];
    const item_t *item = &o->items.items[i];
    const mp_chip_collective_t *one =
        item->is.collective == ORDER_NONE ? NULL : &o->c->collectives.items[item->is.collective];
    uint32_t *into = &inputs->inputs[inputs->offsets[i]], count = 0;
    for (uint32_t e = inputs->offsets[i]; e < inputs->offsets[i + 1]; ++e) {
      if (inputs->inputs[e] == i) continue;
      into[count++] = number[inputs->inputs[e]];
      MP_ASSERT(into[count - 1] < n);  // inputs are earlier nodes
    }
    number[i] = n;
    const mp_chip_copy_t *copy =
        item->is.copy == ORDER_NONE ? NULL : &o->c->copies.items[item->is.copy];
    mp_schedule_stream_t stream = MP_SCHEDULE_COLLECTIVES;
    if (copy != NULL) stream = copy->is_to_host ? MP_SCHEDULE_TO_HOST : MP_SCHEDULE_FROM_HOST;
    nodes[n] = (mp_schedule_node_t){
        .seconds = chip_order_node_seconds(o, item),
        .is_async = copy != NULL ? copy->is_async : one != NULL && one->overlap == MP_OVERLAP_ASYNC,
        .stream = stream,
        .num_inputs = count,
        .inputs = into};
  }
  *out_nodes = nodes;
  return NULL;
}

// ---- slots ----

static void chip_order_put(const order_t *o, mp_chip_order_t *out, uint32_t item,
                           mp_chip_slot_part_t part) {
  mp_chip_slot_t *slot = &out->slots[out->num_slots];
  *slot = (mp_chip_slot_t){.item = o->items.items[item].is, .part = part};
  if (part == MP_CHIP_SLOT_FINISH && slot->item.collective != ORDER_NONE) {
    slot->lost = mp_chip_order_lost_seconds(o->c, out, out->num_slots);
  }
  out->num_slots += 1;
}

// All items whole, in the order of the program.
static void chip_order_put_plainly(order_t *o, mp_chip_order_t *out) {
  for (uint32_t i = 0; i < o->items.count; ++i) {
    const uint32_t collective = o->items.items[i].is.collective;
    if (o->combined != NULL && o->combined[i] != i) continue;
    if (collective != ORDER_NONE) o->c->collectives.items[collective].overlap = MP_OVERLAP_SYNC;
    chip_order_put(o, out, i, MP_CHIP_SLOT_WHOLE);
  }
}

// Whether the collective that starts at a slot overlaps with nothing: it ends before any other
// work, or, if only matmuls carry gathers, before the next matmul.
static bool chip_order_hides_nothing(const order_t *o, const sort_t *s,
                                     const mp_schedule_slot_t *slots, uint32_t i,
                                     uint32_t num_started) {
  const item_t *item = &o->items.items[s->sorted[slots[i].node]];
  const mp_collective_kind_t kind = o->c->collectives.items[item->is.collective].collective->kind;
  const mp_chip_figures_t *figures = &o->c->chip->figures;
  if (kind != MP_COLLECTIVE_ALL_GATHER || !mp_overlap_is_carried(figures)) {
    return num_started == 0 && slots[i + 1].node == slots[i].node;
  }
  for (uint32_t k = i + 1; slots[k].node != slots[i].node; ++k) {
    if (o->items.items[s->sorted[slots[k].node]].is_matmul) return false;
  }
  return true;
}

static void chip_order_put_slots(order_t *o, const sort_t *s, const mp_schedule_slot_t *slots,
                                 uint32_t count, mp_chip_order_t *out) {
  uint32_t num_started = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t item = s->sorted[slots[i].node], ring = o->items.items[item].ring;
    const uint32_t number = o->items.items[item].is.collective;
    mp_chip_collective_t *one = number == ORDER_NONE ? NULL : &o->c->collectives.items[number];
    if (o->items.items[item].is.copy != ORDER_NONE) {
      static const mp_chip_slot_part_t parts[] = {[MP_SCHEDULE_ALL] = MP_CHIP_SLOT_WHOLE,
                                                  [MP_SCHEDULE_START] = MP_CHIP_SLOT_BEGIN,
                                                  [MP_SCHEDULE_DONE] = MP_CHIP_SLOT_FINISH};
      chip_order_put(o, out, item, parts[slots[i].part]);
    } else if (slots[i].part == MP_SCHEDULE_ALL) {
      if (ring != ORDER_NONE) chip_order_put(o, out, ring, MP_CHIP_SLOT_BEGIN);
      chip_order_put(o, out, item, MP_CHIP_SLOT_WHOLE);
      if (ring != ORDER_NONE) chip_order_put(o, out, ring, MP_CHIP_SLOT_FINISH);
    } else if (slots[i].part == MP_SCHEDULE_START) {
      if (chip_order_hides_nothing(o, s, slots, i, num_started)) {
        one->overlap = MP_OVERLAP_SYNC;
        continue;
      }
      chip_order_put(o, out, item, MP_CHIP_SLOT_BEGIN);
      num_started += 1;
    } else if (one->overlap == MP_OVERLAP_SYNC) {
      chip_order_put(o, out, item, MP_CHIP_SLOT_WHOLE);
    } else {
      chip_order_put(o, out, item, MP_CHIP_SLOT_FINISH);
      MP_ASSERT(num_started > 0);
      num_started -= 1;
    }
  }
  MP_ASSERT(num_started == 0);  // every start has its end
}

// ---- blocks ----

static mp_status_t chip_order_schedule(order_t *o, mp_chip_order_t *out) {
  const mp_chip_figures_t *figures = &o->c->chip->figures;
  const mp_schedule_limits_t limits = {
      .num_tracks = mp_communication_num_tracks(o->c->chip),
      .most_started = (uint32_t)mp_figure_or(figures->overlap_started, ORDER_MOST_STARTED)};
  inputs_t inputs;
  sort_t sorted;
  const mp_schedule_node_t *nodes = NULL;
  const mp_schedule_slot_t *slots = NULL;
  uint32_t count = 0;
  MP_RETURN_IF_ERROR(chip_order_collect_inputs(o, &inputs));
  MP_RETURN_IF_ERROR(chip_order_sort(o, &inputs, &sorted));
  if (sorted.is_circular) {
    chip_order_put_plainly(o, out);
    return NULL;
  }
  MP_RETURN_IF_ERROR(chip_order_make_nodes(o, &inputs, &sorted, &nodes));
  MP_RETURN_IF_ERROR(
      mp_schedule_order(o->c->scratch, sorted.count, nodes, &limits, &count, &slots));
  chip_order_put_slots(o, &sorted, slots, count, out);
  return NULL;
}

static mp_status_t chip_order_block(order_t *o, const mp_block_t *block, mp_chip_order_t *out) {
  MP_RETURN_IF_ERROR(mp_chip_order_find_graph(o, block));
  MP_RETURN_IF_ERROR(mp_chip_order_pipeline(o, block));
  if (o->has_async) MP_RETURN_IF_ERROR(mp_chip_order_decompose(o));
  MP_RETURN_IF_ERROR(mp_chip_order_sum_whole_arrays(o));
  MP_RETURN_IF_ERROR(mp_chip_order_combine(o));
  // An item has at most two slots: its start and its end.
  out->slots = MP_ARENA_ARRAY(o->c->scratch, mp_chip_slot_t, 2 * (size_t)o->items.count + 1);
  MP_RETURN_IF_NULL(out->slots);
  if (o->has_async) return chip_order_schedule(o, out);
  chip_order_put_plainly(o, out);
  return NULL;
}

mp_status_t mp_chip_order_block(mp_communication_t *c, const mp_block_t *block,
                                mp_chip_order_t *out_order) {
  order_t o = {.c = c, .last_fixed = ORDER_NONE};
  *out_order = (mp_chip_order_t){0};
  MP_RETURN_IF_ERROR(mp_arena_create(&o.arena));
  mp_status_t status = chip_order_block(&o, block, out_order);
  mp_arena_release(o.arena);
  return status;
}
