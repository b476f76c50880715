// The order in which a block's kernels, collectives and loops are done: as the program has them, or
// where collectives can go on beside work, as a scheduler that hides them would.
//
// What is ordered are *items*: a cluster, a collective, a loop or branch, a barrier. A collective
// that is decomposed beside a product is part of the product's item.
#include "collectives/collective_parts.h"
#include "sim/base/assert.h"
#include "sim/base/hash.h"
#include "sim/chip/schedule/combine.h"
#include "sim/chip/schedule/schedule.h"
#include "sim/chip/twin_order_impl.h"
#include "sim/plan/plan.h"
#include "sim/work/rounds.h"

typedef mp_twin_ordering_t order_t;
typedef mp_twin_order_item_t item_t;
typedef mp_combine_edge_t edge_t;

// ---- what is an item ----

static bool twin_order_has_meeting(const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_regions; ++i) {
    for (const mp_op_t *in = op->regions[i]->first; in != NULL; in = in->next) {
      if (mp_plan_is_collective(in) || twin_order_has_meeting(in)) return true;
    }
  }
  return false;
}

// What keeps its place: whose order is the order of what comes and goes.
static bool twin_order_is_fixed(const mp_op_t *op) {
  const mp_op_role_t role = mp_op_info(op->code)->role;
  if (op->code == MP_OP_SEND || op->code == MP_OP_RECV || role == MP_OP_ROLE_COMMAND) return true;
  return role == MP_OP_ROLE_CONTROL && twin_order_has_meeting(op);
}

static double twin_order_block_seconds(order_t *o, const mp_block_t *block);

// Of a loop or branch; what collectives in it take is not counted.
static double twin_order_control_seconds(order_t *o, const mp_op_t *op) {
  double seconds = 0;
  for (uint32_t i = 0; i < op->num_regions; ++i)
    seconds += twin_order_block_seconds(o, op->regions[i]);
  const int64_t rounds = op->code == MP_OP_WHILE ? mp_work_rounds(op) : 1;
  return rounds < 0 ? seconds : seconds * (double)rounds;
}

static double twin_order_seconds(order_t *o, const mp_op_t *op) {
  if (mp_plan_is_collective(op)) return 0;
  if (mp_op_info(op->code)->role == MP_OP_ROLE_CONTROL) return twin_order_control_seconds(o, op);
  return mp_twin_kernel_seconds(o->b, op, NULL);
}

static double twin_order_block_seconds(order_t *o, const mp_block_t *block) {
  double seconds = 0;
  for (const mp_op_t *op = block->first; op != NULL; op = op->next)
    seconds += twin_order_seconds(o, op);
  return seconds;
}

static bool twin_order_is_too_small(const order_t *o, const mp_collective_t *collective) {
  return mp_overlap_is_too_small(&o->b->chip->figures, collective->kind,
                                 mp_twin_order_result_bytes(collective));
}

// What of a collective may go on beside work at the most.
static mp_overlap_t twin_order_overlap(const order_t *o, const mp_collective_t *collective) {
  if (twin_order_is_too_small(o, collective)) return MP_OVERLAP_SYNC;
  return mp_overlap_order(&o->b->chip->figures, collective->kind,
                          mp_twin_order_num_members(collective));
}

static mp_status_t twin_order_add_item(order_t *o, const mp_op_t *op, uint32_t *out_item) {
  mp_twin_builder_t *b = o->b;
  item_t item = {.is = {.op = op, .collective = ORDER_NONE, .copy = ORDER_NONE},
                 .attached = ORDER_NONE};
  *out_item = item.node = o->items.count;
  if (mp_plan_is_collective(op)) {
    MP_RETURN_IF_ERROR(mp_twin_add_collective(b, op, &item.is.collective));
    mp_twin_collective_t *one = &b->collectives.items[item.is.collective];
    const mp_chip_figures_t *figures = &b->chip->figures;
    one->overlap = twin_order_overlap(o, one->collective);
    if (op->code == MP_OP_EXCHANGE && !op->by_permutes) {
      one->overlap = mp_overlap_order(figures, MP_COLLECTIVE_ALL_TO_ALL, 0);
    }
    o->has_async |= one->overlap != MP_OVERLAP_SYNC;
    MP_RETURN_IF_ERROR(b->links->seconds(b->links->context, one->collective, &item.is.seconds));
  } else if (mp_op_crosses(op)) {
    MP_RETURN_IF_ERROR(mp_twin_add_host_copy(b, op, &item.is.copy));
    item.is.seconds = b->copies.items[item.is.copy].seconds;
    o->has_async |= b->copies.items[item.is.copy].is_async;
  } else {
    const mp_cluster_t *cluster = mp_cluster_at(&b->clusters, op);
    item.is_product = cluster != NULL && cluster->work.work_class == MP_WORK_MATMUL;
    item.is.seconds = twin_order_seconds(o, op);
  }
  return MP_ARRAY_PUSH(o->arena, &o->items, item);
}

// Whether something is done at the place of an op.
static bool twin_order_is_item(const order_t *o, const mp_op_t *op) {
  const mp_op_role_t role = mp_op_info(op->code)->role;
  if (mp_cluster_at(&o->b->clusters, op) != NULL || mp_plan_is_collective(op)) return true;
  if (mp_op_crosses(op)) return true;
  if (role == MP_OP_ROLE_CONTROL || role == MP_OP_ROLE_COMMAND) return true;
  return role != MP_OP_ROLE_KERNEL && op->num_operands > 1;
}

static mp_status_t twin_order_add_edge(order_t *o, uint32_t from, uint32_t to) {
  if (from == to || from == ORDER_NONE) return NULL;
  return MP_ARRAY_PUSH(o->arena, &o->edges, (edge_t){from, to});
}

// The item reads a value: it comes after the one that makes it. What nobody makes is that of its
// operand under another type, or made by whoever reads it.
static mp_status_t twin_order_read(order_t *o, const mp_block_t *block, const mp_value_t *value,
                                   uint32_t item) {
  while (value->op != NULL && value->op->parent == block) {
    // Barriers of remat are not there for what comes from the host.
    if (value->op->code == MP_OP_OPTIMIZATION_BARRIER && value->is_on_host) {
      value = value->op->operands[value->index];
      continue;
    }
    const uint32_t from = o->b->items[value->op->id];
    if (from != ORDER_NONE) return twin_order_add_edge(o, from, item);
    if (value->op->num_operands == 0) return NULL;
    // What was copied into an array on the host.
    if (value->op->code == MP_OP_DYNAMIC_UPDATE_SLICE && value->is_on_host) {
      MP_RETURN_IF_ERROR(twin_order_read(o, block, value->op->operands[1], item));
    }
    value = value->op->operands[0];
  }
  return NULL;
}

// ---- what comes before what ----

static mp_status_t twin_order_read_cluster(order_t *o, const mp_cluster_t *cluster, uint32_t item) {
  const mp_cluster_access_t *accesses = mp_cluster_accesses(&o->b->clusters, cluster);
  for (uint32_t i = 0; i < cluster->num_reads; ++i) {
    MP_RETURN_IF_ERROR(twin_order_read(o, cluster->block, accesses[i].value, item));
  }
  return NULL;
}

// The item makes the results of an op, or those that its cluster writes.
static void twin_order_write(order_t *o, const mp_op_t *op, uint32_t item) {
  const mp_cluster_t *cluster = mp_cluster_at(&o->b->clusters, op);
  if (cluster == NULL) {
    o->b->items[op->id] = item;
    return;
  }
  const mp_cluster_access_t *accesses = mp_cluster_accesses(&o->b->clusters, cluster);
  for (uint32_t i = 0; i < cluster->num_writes; ++i) {
    const mp_value_t *value = accesses[cluster->num_reads + i].value;
    if (value->op != NULL) o->b->items[value->op->id] = item;
  }
}

static mp_status_t twin_order_read_all(order_t *o, const mp_op_t *op, uint32_t item) {
  const mp_cluster_t *cluster = mp_cluster_at(&o->b->clusters, op);
  if (cluster != NULL) return twin_order_read_cluster(o, cluster, item);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(twin_order_read(o, op->parent, op->operands[i], item));
  }
  if (op->num_regions == 0) return NULL;
  uint32_t count = 0;
  mp_value_t **captures = NULL;
  MP_RETURN_IF_ERROR(mp_op_captures(op, o->arena, &captures, &count));
  for (uint32_t i = 0; i < count; ++i) {
    MP_RETURN_IF_ERROR(twin_order_read(o, op->parent, captures[i], item));
  }
  return NULL;
}

// An op is done at its place, before those that read what it makes.
static mp_status_t twin_order_find_items(order_t *o, const mp_block_t *block) {
  for (const mp_op_t *op = block->first; op != block->last; op = op->next) {
    if (!twin_order_is_item(o, op)) continue;
    uint32_t item;
    MP_RETURN_IF_ERROR(twin_order_add_item(o, op, &item));
    twin_order_write(o, op, item);
  }
  return NULL;
}

static mp_status_t twin_order_find_edges(order_t *o) {
  for (uint32_t item = 0; item < o->items.count; ++item) {
    const mp_op_t *op = o->items.items[item].is.op;
    MP_RETURN_IF_ERROR(twin_order_read_all(o, op, item));
    if (!twin_order_is_fixed(op)) continue;
    MP_RETURN_IF_ERROR(twin_order_add_edge(o, o->last_fixed, item));
    o->last_fixed = item;
  }
  return NULL;
}

// ---- collectives in other rounds ----

// Whether an item only moves what a loop carries to a collective, or from it.
static bool twin_order_is_light(const item_t *item) {
  const bool is_work =
      item->is.copy == ORDER_NONE && mp_op_info(item->is.op->code)->role == MP_OP_ROLE_KERNEL;
  return is_work && !item->is_product && item->is.collective == ORDER_NONE;
}

// Of each item, whether all that it comes of in the block is light, or all that comes of it. Edges
// lead to later items, and are in their order.
static void twin_order_find_light(const order_t *o, bool is_back, uint8_t *lights) {
  const uint32_t count = o->edges.count;
  for (uint32_t i = 0; i < o->items.count; ++i) lights[i] = 1;
  for (uint32_t k = 0; k < count; ++k) {
    const edge_t *edge = &o->edges.items[is_back ? count - 1 - k : k];
    const uint32_t from = is_back ? edge->to : edge->from, to = is_back ? edge->from : edge->to;
    lights[to] &= lights[from] && twin_order_is_light(&o->items.items[from]);
  }
}

// Whether copies from the host are made in the round before. So does the TPU's compiler in programs
// for several devices; the first round's, before the loop, is not counted.
static bool twin_order_fetches_early(const order_t *o) {
  const mp_program_t *program = o->b->program;
  return o->b->chip->figures.compiler == MP_CHIP_COMPILER_TPU &&
         (uint64_t)program->num_replicas * program->num_partitions > 1;
}

static bool twin_order_is_fetch(const order_t *o, uint32_t item) {
  const uint32_t copy = o->items.items[item].is.copy;
  return copy != ORDER_NONE && !o->b->copies.items[copy].is_to_host;
}

// A gather of what a loop carries may be done in the round before, a sum for what it carries in the
// one behind: such a collective waits for nobody in its round, or nobody for it. So may a copy from
// the host.
static mp_status_t twin_order_pipeline(order_t *o, const mp_block_t *block) {
  const bool is_loop = block->parent_op != NULL && block->parent_op->code == MP_OP_WHILE;
  const bool may_meet = o->b->chip->figures.overlap_pipeline > 0;
  const bool may_fetch = twin_order_fetches_early(o);
  if (!is_loop || (!may_meet && !may_fetch)) return NULL;
  uint8_t *before = MP_ARENA_ARRAY(o->arena, uint8_t, (size_t)o->items.count + 1);
  uint8_t *behind = MP_ARENA_ARRAY(o->arena, uint8_t, (size_t)o->items.count + 1);
  MP_RETURN_IF_NULL(before);
  MP_RETURN_IF_NULL(behind);
  twin_order_find_light(o, false, before);
  twin_order_find_light(o, true, behind);
  uint32_t count = 0;
  for (uint32_t e = 0; e < o->edges.count; ++e) {
    const edge_t edge = o->edges.items[e];
    const bool is_gather = may_meet && mp_twin_order_kind(o, edge.from) == MP_COLLECTIVE_ALL_GATHER;
    const bool is_early = is_gather || (may_fetch && twin_order_is_fetch(o, edge.from));
    const uint32_t kind = may_meet ? mp_twin_order_kind(o, edge.to) : MP_COLLECTIVE_KINDS;
    const bool is_late = kind == MP_COLLECTIVE_REDUCE_SCATTER || kind == MP_COLLECTIVE_ALL_REDUCE;
    if ((is_early && before[edge.from]) || (is_late && behind[edge.to])) continue;
    o->edges.items[count++] = edge;
  }
  o->edges.count = count;
  return NULL;
}

// ---- collectives of whole arrays ----

// Has all members add up the whole array, of which each one takes its part, or has put in its part.
static mp_status_t twin_order_sum_whole(order_t *o, item_t *item, mp_twin_collective_t *one) {
  mp_collective_t *whole = MP_ARENA_NEW(o->b->arena, mp_collective_t);
  const uint32_t count = one->collective->num_operands;
  const bool is_gather = one->collective->kind == MP_COLLECTIVE_ALL_GATHER;
  mp_collective_operand_t *operands = MP_ARENA_ARRAY(o->b->arena, mp_collective_operand_t, count);
  MP_RETURN_IF_NULL(whole);
  MP_RETURN_IF_NULL(operands);
  for (uint32_t i = 0; i < count; ++i) {
    operands[i] = one->collective->operands[i];
    const int64_t *dims = is_gather ? operands[i].result_dims : operands[i].dims;
    operands[i].dims = operands[i].result_dims = dims;
  }
  *whole = *one->collective;
  whole->kind = MP_COLLECTIVE_ALL_REDUCE;
  whole->operands = operands;
  whole->digest = 0;
  one->collective = whole;
  if (is_gather || twin_order_is_too_small(o, whole)) one->overlap = twin_order_overlap(o, whole);
  return o->b->links->seconds(o->b->links->context, whole, &item->is.seconds);
}

// Whether it gathers a vector whose parts are too short.
static bool twin_order_gathers_short(const order_t *o, const mp_collective_t *collective) {
  const mp_collective_operand_t *part = &collective->operands[0];
  int64_t elements = 1;
  for (uint32_t d = 0; d < part->rank; ++d) elements *= part->dims[d];
  return collective->kind == MP_COLLECTIVE_ALL_GATHER && collective->num_operands == 1 &&
         mp_overlap_sums_short(&o->b->chip->figures, elements);
}

static bool twin_order_is_summed_whole(const order_t *o, const mp_twin_collective_t *one) {
  const mp_chip_figures_t *figures = &o->b->chip->figures;
  const mp_collective_t *collective = one->collective;
  const uint32_t all = o->b->program->num_replicas * o->b->program->num_partitions;
  if (one->overlap == MP_OVERLAP_DECOMPOSED) return false;
  if (twin_order_gathers_short(o, collective)) return true;
  if (collective->kind == MP_COLLECTIVE_REDUCE_SCATTER) {
    return mp_overlap_sums_whole(figures) && mp_twin_order_num_members(collective) == all;
  }
  return collective->kind == MP_COLLECTIVE_ALL_GATHER && mp_overlap_gathers_whole(figures, all) &&
         mp_twin_order_num_members(collective) == all;
}

static mp_status_t twin_order_sum_whole_arrays(order_t *o) {
  for (uint32_t i = 0; i < o->items.count; ++i) {
    item_t *item = &o->items.items[i];
    if (item->is.collective == ORDER_NONE) continue;
    mp_twin_collective_t *one = &o->b->collectives.items[item->is.collective];
    if (!twin_order_is_summed_whole(o, one)) continue;
    MP_RETURN_IF_ERROR(twin_order_sum_whole(o, item, one));
  }
  return NULL;
}

// ---- collectives that are one ----

// What those have in common that may be one; 0: it stays alone.
static uint64_t twin_order_key(const order_t *o, const mp_collective_t *collective) {
  const bool is_sum = collective->kind == MP_COLLECTIVE_ALL_REDUCE ||
                      collective->kind == MP_COLLECTIVE_REDUCE_SCATTER;
  if (!mp_overlap_may_combine(&o->b->chip->figures, collective->kind)) return 0;
  const mp_groups_t *groups = collective->groups;
  const uint64_t of[] = {collective->kind, collective->operands[0].dtype,
                         is_sum ? collective->reducer.digest : 0, groups->num_groups,
                         twin_order_is_too_small(o, collective)};
  uint64_t key = mp_hash_bytes(MP_HASH_START, of, sizeof(of));
  key = mp_hash_bytes(key, groups->offsets, (groups->num_groups + 1) * sizeof(*groups->offsets));
  key = mp_hash_bytes(key, groups->members,
                      groups->offsets[groups->num_groups] * sizeof(*groups->members));
  return key == 0 ? 1 : key;
}

// Makes the collective of `leader` the one of all that it leads.
static mp_status_t twin_order_join(order_t *o, uint32_t leader) {
  mp_twin_builder_t *b = o->b;
  uint32_t count = 0;
  for (uint32_t i = leader; i < o->items.count; ++i) {
    if (o->leaders[i] != leader) continue;
    count += b->collectives.items[o->items.items[i].is.collective].collective->num_operands;
  }
  mp_twin_collective_t *one = &b->collectives.items[o->items.items[leader].is.collective];
  if (count == one->collective->num_operands) return NULL;
  mp_collective_operand_t *operands = MP_ARENA_ARRAY(b->arena, mp_collective_operand_t, count);
  mp_collective_t *all = MP_ARENA_NEW(b->arena, mp_collective_t);
  MP_RETURN_IF_NULL(operands);
  MP_RETURN_IF_NULL(all);
  *all = *one->collective;
  all->digest = 0;
  all->num_operands = 0;
  all->operands = operands;
  for (uint32_t i = leader; i < o->items.count; ++i) {
    if (o->leaders[i] != leader) continue;
    const mp_collective_t *part = b->collectives.items[o->items.items[i].is.collective].collective;
    for (uint32_t k = 0; k < part->num_operands; ++k) {
      operands[all->num_operands++] = part->operands[k];
    }
  }
  one->collective = all;
  return b->links->seconds(b->links->context, all, &o->items.items[leader].is.seconds);
}

// Collectives that the chip's compiler makes one of, up to so many bytes.
static mp_status_t twin_order_combine(order_t *o) {
  const double most_bytes = mp_figure_or(o->b->chip->figures.overlap_combine, 0);
  const uint32_t count = o->items.count;
  if (most_bytes <= 0) return NULL;
  mp_combine_node_t *nodes = MP_ARENA_ARRAY(o->arena, mp_combine_node_t, (size_t)count + 1);
  MP_RETURN_IF_NULL(nodes);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t number = o->items.items[i].is.collective;
    if (number == ORDER_NONE) continue;
    const mp_collective_t *collective = o->b->collectives.items[number].collective;
    nodes[i] =
        (mp_combine_node_t){twin_order_key(o, collective), mp_twin_order_result_bytes(collective)};
  }
  MP_RETURN_IF_ERROR(mp_combine_find(o->arena, count, nodes, o->edges.count, o->edges.items,
                                     most_bytes, &o->leaders));
  for (uint32_t i = 0; i < count; ++i) {
    if (o->leaders[i] != i) o->items.items[i].node = o->leaders[i];
    if (nodes[i].key != 0 && o->leaders[i] == i) MP_RETURN_IF_ERROR(twin_order_join(o, i));
  }
  return NULL;
}

// ---- nodes: items in an order in which they can be done ----

// What each item waits for, as the others' numbers: [offsets[i], offsets[i + 1]) of `inputs`.
typedef struct {
  uint32_t *offsets, *inputs;
} inputs_t;

static mp_status_t twin_order_collect_inputs(order_t *o, inputs_t *out) {
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

// An item and the input of it that is looked at next.
typedef struct {
  uint32_t item, next;
} visit_t;

typedef enum { ORDER_NEW, ORDER_OPEN, ORDER_CLOSED } order_state_t;

typedef struct {
  order_t *o;
  const inputs_t *inputs;
  uint8_t *states;  // [items]
  visit_t *stack;
  uint32_t *sorted;  // items, those that are nodes
  uint32_t count;
  bool is_circular;
} sort_t;

// Puts an item behind all that it waits for.
static void twin_order_visit(sort_t *s, uint32_t item) {
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

static mp_status_t twin_order_sort(order_t *o, const inputs_t *inputs, sort_t *s) {
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
    if (o->items.items[i].node == i && s->states[i] == ORDER_NEW) twin_order_visit(s, i);
  }
  return NULL;
}

// Of a product, no less than what is beside it.
static double twin_order_node_seconds(const order_t *o, const item_t *item) {
  if (item->attached == ORDER_NONE) return item->is.seconds;
  const double beside = o->items.items[item->attached].is.seconds;
  return beside > item->is.seconds ? beside : item->is.seconds;
}

static mp_status_t twin_order_make_nodes(order_t *o, const inputs_t *inputs, const sort_t *s,
                                         const mp_schedule_node_t **out_nodes) {
  mp_schedule_node_t *nodes = MP_ARENA_ARRAY(o->arena, mp_schedule_node_t, (size_t)s->count + 1);
  uint32_t *number = MP_ARENA_ARRAY(o->arena, uint32_t, (size_t)o->items.count + 1);
  MP_RETURN_IF_NULL(nodes);
  MP_RETURN_IF_NULL(number);
  for (uint32_t n = 0; n < s->count; ++n) {
    const uint32_t i = s->sorted[n];
    const item_t *item = &o->items.items[i];
    const mp_twin_collective_t *one =
        item->is.collective == ORDER_NONE ? NULL : &o->b->collectives.items[item->is.collective];
    uint32_t *into = &inputs->inputs[inputs->offsets[i]], count = 0;
    for (uint32_t e = inputs->offsets[i]; e < inputs->offsets[i + 1]; ++e) {
      if (inputs->inputs[e] != i) into[count++] = number[inputs->inputs[e]];
    }
    number[i] = n;
    const mp_twin_copy_t *copy =
        item->is.copy == ORDER_NONE ? NULL : &o->b->copies.items[item->is.copy];
    mp_schedule_stream_t stream = MP_SCHEDULE_COLLECTIVES;
    if (copy != NULL) stream = copy->is_to_host ? MP_SCHEDULE_TO_HOST : MP_SCHEDULE_FROM_HOST;
    nodes[n] = (mp_schedule_node_t){
        .seconds = twin_order_node_seconds(o, item),
        .is_async = copy != NULL ? copy->is_async : one != NULL && one->overlap == MP_OVERLAP_ASYNC,
        .stream = stream,
        .num_inputs = count,
        .inputs = into};
  }
  *out_nodes = nodes;
  return NULL;
}

// ---- slots ----

static void twin_order_put(const order_t *o, mp_twin_order_t *out, uint32_t item,
                           mp_twin_part_t part) {
  mp_twin_slot_t *slot = &out->slots[out->num_slots++];
  *slot = (mp_twin_slot_t){.item = o->items.items[item].is, .part = part};
}

// Everything one after the other, as the program has it.
static void twin_order_put_plainly(order_t *o, mp_twin_order_t *out) {
  for (uint32_t i = 0; i < o->items.count; ++i) {
    const uint32_t collective = o->items.items[i].is.collective;
    if (o->leaders != NULL && o->leaders[i] != i) continue;
    if (collective != ORDER_NONE) o->b->collectives.items[collective].overlap = MP_OVERLAP_SYNC;
    twin_order_put(o, out, i, MP_TWIN_WHOLE);
  }
}

// Whether an item is next to nothing: on a TPU numbers like a loop's, which its scalar unit has.
static bool twin_order_is_scalar(const order_t *o, const item_t *item) {
  const mp_cluster_t *cluster = mp_cluster_at(&o->b->clusters, item->is.op);
  return o->b->chip->figures.compiler == MP_CHIP_COMPILER_TPU && cluster != NULL &&
         cluster->work.work_class == MP_WORK_SCALAR;
}

// Whether what is started at a slot is waited for before anything that it can go on beside: before
// anything at all, or of a gather that products carry, before the next one. Permutations always are
// started.
static bool twin_order_is_waited_for(const order_t *o, const sort_t *s,
                                     const mp_schedule_slot_t *slots, uint32_t i,
                                     uint32_t num_started) {
  const item_t *item = &o->items.items[s->sorted[slots[i].node]];
  const mp_collective_kind_t kind = o->b->collectives.items[item->is.collective].collective->kind;
  if (kind == MP_COLLECTIVE_PERMUTE || kind == MP_COLLECTIVE_EXCHANGE) return false;
  if (kind != MP_COLLECTIVE_ALL_GATHER || !mp_overlap_is_carried(&o->b->chip->figures)) {
    uint32_t next = i + 1;
    while (slots[next].node != slots[i].node && slots[next].part == MP_SCHEDULE_ALL &&
           twin_order_is_scalar(o, &o->items.items[s->sorted[slots[next].node]])) {
      ++next;
    }
    return num_started == 0 && slots[next].node == slots[i].node;
  }
  for (uint32_t k = i + 1; slots[k].node != slots[i].node; ++k) {
    if (o->items.items[s->sorted[slots[k].node]].is_product) return false;
  }
  return true;
}

static void twin_order_put_slots(order_t *o, const sort_t *s, const mp_schedule_slot_t *slots,
                                 uint32_t count, mp_twin_order_t *out) {
  uint32_t num_started = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t item = s->sorted[slots[i].node], attached = o->items.items[item].attached;
    const uint32_t number = o->items.items[item].is.collective;
    mp_twin_collective_t *one = number == ORDER_NONE ? NULL : &o->b->collectives.items[number];
    if (o->items.items[item].is.copy != ORDER_NONE) {
      static const mp_twin_part_t parts[] = {[MP_SCHEDULE_ALL] = MP_TWIN_WHOLE,
                                             [MP_SCHEDULE_START] = MP_TWIN_BEGIN,
                                             [MP_SCHEDULE_DONE] = MP_TWIN_FINISH};
      twin_order_put(o, out, item, parts[slots[i].part]);
    } else if (slots[i].part == MP_SCHEDULE_ALL) {
      if (attached != ORDER_NONE) twin_order_put(o, out, attached, MP_TWIN_BEGIN);
      twin_order_put(o, out, item, MP_TWIN_WHOLE);
      if (attached != ORDER_NONE) twin_order_put(o, out, attached, MP_TWIN_FINISH);
    } else if (slots[i].part == MP_SCHEDULE_START) {
      if (twin_order_is_waited_for(o, s, slots, i, num_started)) {
        one->overlap = MP_OVERLAP_SYNC;
        continue;
      }
      twin_order_put(o, out, item, MP_TWIN_BEGIN);
      num_started += 1;
    } else if (one->overlap == MP_OVERLAP_SYNC) {
      twin_order_put(o, out, item, MP_TWIN_WHOLE);
    } else {
      twin_order_put(o, out, item, MP_TWIN_FINISH);
      num_started -= 1;
    }
  }
}

// ---- blocks ----

static mp_status_t twin_order_schedule(order_t *o, mp_twin_order_t *out) {
  const mp_chip_figures_t *figures = &o->b->chip->figures;
  const mp_schedule_limits_t limits = {
      .num_tracks = o->b->num_tracks,
      .most_started = (uint32_t)mp_figure_or(figures->overlap_started, MP_TWIN_MOST_STARTED)};
  inputs_t inputs;
  sort_t sorted;
  const mp_schedule_node_t *nodes = NULL;
  const mp_schedule_slot_t *slots = NULL;
  uint32_t count = 0;
  MP_RETURN_IF_ERROR(twin_order_collect_inputs(o, &inputs));
  MP_RETURN_IF_ERROR(twin_order_sort(o, &inputs, &sorted));
  if (sorted.is_circular) {
    twin_order_put_plainly(o, out);
    return NULL;
  }
  MP_RETURN_IF_ERROR(twin_order_make_nodes(o, &inputs, &sorted, &nodes));
  MP_RETURN_IF_ERROR(
      mp_schedule_order(o->b->scratch, sorted.count, nodes, &limits, &count, &slots));
  twin_order_put_slots(o, &sorted, slots, count, out);
  return NULL;
}

static mp_status_t twin_order_block(order_t *o, const mp_block_t *block, mp_twin_order_t *out) {
  MP_RETURN_IF_ERROR(twin_order_find_items(o, block));
  MP_RETURN_IF_ERROR(twin_order_find_edges(o));
  MP_RETURN_IF_ERROR(twin_order_pipeline(o, block));
  out->slots = MP_ARENA_ARRAY(o->b->scratch, mp_twin_slot_t, 2 * (size_t)o->items.count + 1);
  MP_RETURN_IF_NULL(out->slots);
  if (o->has_async) MP_RETURN_IF_ERROR(mp_twin_order_attach(o));
  MP_RETURN_IF_ERROR(twin_order_sum_whole_arrays(o));
  MP_RETURN_IF_ERROR(twin_order_combine(o));
  if (o->has_async) return twin_order_schedule(o, out);
  twin_order_put_plainly(o, out);
  return NULL;
}

mp_status_t mp_twin_order_block(mp_twin_builder_t *b, const mp_block_t *block,
                                mp_twin_order_t *out_order) {
  order_t o = {.b = b, .last_fixed = ORDER_NONE};
  *out_order = (mp_twin_order_t){0};
  MP_RETURN_IF_ERROR(mp_arena_create(&o.arena));
  mp_status_t status = twin_order_block(&o, block, out_order);
  mp_arena_release(o.arena);
  return status;
}
