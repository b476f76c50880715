// A TPU's product writes tiles of one dimension of either factor: the last one of those that are
// neither of the batch nor summed up, or the longest if that is short. Results of main lie in the
// order of their types, but for the two dimensions of their tiles, which leave the least of these
// empty. Where these are others than the product's, a copy lays the array out behind it. The rule
// is that of 150 products of libtpu 0.0.52 for v5e, which it makes for other chips, too: orders of
// up to four dimensions, with and without batches, reshapes and ops behind them.
#include "sim/chip/clusters/cluster_turned.h"

#include <math.h>
#include <string.h>

#include "sim/chip/clusters/cluster_impl.h"
#include "sim/chip/rules/rules.h"

enum { TURNED_RANK = 12, TURNED_FAR = 8, TURNED_ROWS = 8 };

// Dimensions of more than one element, the outermost first.
typedef struct {
  int32_t dims[TURNED_RANK];
  uint32_t count;
} turned_order_t;

// What is known of a result on the way back to the product.
typedef struct {
  const mp_op_t *product;
  turned_order_t physical;  // as it lies in memory: rows and lanes are the last ones
  turned_order_t logical;   // as its type has it
  bool is_ordered;          // `logical` is known
  bool is_split;            // one dimension of the product's became several that lie otherwise
  bool is_moved;            // a transpose, with nothing between it and the product
} turned_t;

// ---- how a result of main lies ----

static turned_order_t cluster_turned_order(const mp_type_t *type) {
  turned_order_t order = {.count = 0};
  for (uint32_t d = 0; d < type->rank; ++d) {
    if (type->dims[d] != 1) order.dims[order.count++] = (int32_t)d;
  }
  return order;
}

static void cluster_turned_put_last(turned_order_t *order, int32_t dim) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < order->count; ++i) {
    if (order->dims[i] != dim) order->dims[kept++] = order->dims[i];
  }
  order->dims[kept] = dim;
}

// Of several tiles that leave as little empty the one of the last dimensions.
static turned_order_t cluster_turned_physical(const mp_type_t *type) {
  turned_order_t order = cluster_turned_order(type);
  double least = INFINITY;
  int32_t best_row = 0, best_lane = 0;
  for (uint32_t l = order.count; l-- > 0;) {
    for (uint32_t r = order.count; r-- > 0;) {
      if (r == l) continue;
      const double padding = mp_cluster_padding(type, order.dims[r], order.dims[l]);
      if (padding >= least) continue;
      least = padding;
      best_row = order.dims[r];
      best_lane = order.dims[l];
    }
  }
  cluster_turned_put_last(&order, best_row);
  cluster_turned_put_last(&order, best_lane);
  return order;
}

// ---- back through reshapes ----

// Which dimensions of a reshape's operand and of its result have the same elements.
typedef struct {
  uint32_t group_of[TURNED_RANK];    // of the result's dimensions
  turned_order_t from[TURNED_RANK];  // the operand's, of each group
  uint32_t num_to[TURNED_RANK];      // how many of the result's
} turned_groups_t;

static turned_groups_t cluster_turned_groups(const mp_type_t *from, const mp_type_t *to) {
  turned_groups_t groups = {.group_of = {0}};
  const turned_order_t a = cluster_turned_order(from), b = cluster_turned_order(to);
  uint32_t i = 0, j = 0;
  for (uint32_t g = 0; i < a.count && j < b.count; ++g) {
    int64_t left = 1, right = 1;
    do {
      if (left <= right && i < a.count) {
        left *= from->dims[a.dims[i]];
        groups.from[g].dims[groups.from[g].count++] = a.dims[i++];
      } else if (j < b.count) {
        right *= to->dims[b.dims[j]];
        groups.group_of[b.dims[j++]] = g;
        groups.num_to[g] += 1;
      } else {
        break;
      }
    } while (left != right);
  }
  return groups;
}

// The order of a reshape's operand if its result has this one; false if it has none: parts of a
// dimension do not lie side by side, or are rows and lanes.
static bool cluster_turned_before(const turned_groups_t *groups, bool is_physical,
                                  turned_order_t *order) {
  turned_order_t before = {.count = 0};
  for (uint32_t i = 0; i < order->count;) {
    const uint32_t g = groups->group_of[order->dims[i]], num = groups->num_to[g];
    const turned_order_t *from = &groups->from[g];
    if (num > 1 && from->count > 1) return false;
    for (uint32_t k = 1; k < num; ++k) {
      if (i + k >= order->count || groups->group_of[order->dims[i + k]] != g) return false;
      if (order->dims[i + k] < order->dims[i + k - 1]) return false;
    }
    if (is_physical && num > 1 && i + num == order->count) return false;
    for (uint32_t k = 0; k < from->count; ++k) before.dims[before.count++] = from->dims[k];
    i += num;
  }
  *order = before;
  return true;
}

static void cluster_turned_reshape(turned_t *t, const mp_op_t *op) {
  const turned_groups_t groups = cluster_turned_groups(op->operands[0]->type, op->results[0].type);
  t->is_ordered = t->is_ordered && cluster_turned_before(&groups, false, &t->logical);
  t->is_split = t->is_split || !cluster_turned_before(&groups, true, &t->physical);
}

static void cluster_turned_transpose(turned_t *t, const mp_op_t *op) {
  const mp_index_list_t order = mp_op_ints(op, MP_ATTR_PERMUTATION);
  turned_order_t *both[] = {&t->physical, &t->logical};
  for (uint32_t k = 0; k < 2; ++k) {
    for (uint32_t i = 0; i < both[k]->count; ++i) {
      both[k]->dims[i] = (int32_t)order.values[both[k]->dims[i]];
    }
  }
  t->is_moved = true;
}

// ---- back to the product ----

static bool cluster_turned_find(turned_t *t, const mp_value_t *value, uint32_t far);

// Through the operand that comes of the product.
static bool cluster_turned_elements(turned_t *t, const mp_op_t *op, uint32_t far) {
  const mp_type_t *type = op->results[0].type;
  t->is_moved = false;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_type_t *of = op->operands[i]->type;
    if (!mp_type_is_tensor(of) || of->rank != type->rank) continue;
    if (memcmp(of->dims, type->dims, type->rank * sizeof(type->dims[0])) != 0) continue;
    turned_t tried = *t;
    if (!cluster_turned_find(&tried, op->operands[i], far)) continue;
    *t = tried;
    return true;
  }
  return false;
}

static bool cluster_turned_find(turned_t *t, const mp_value_t *value, uint32_t far) {
  const mp_op_t *op = value->op;
  if (op == t->product) return true;
  if (op == NULL || far == 0 || op->num_results != 1 || op->parent != t->product->parent) {
    return false;
  }
  if (op->code == MP_OP_RESHAPE) {
    cluster_turned_reshape(t, op);
  } else if (op->code == MP_OP_TRANSPOSE) {
    cluster_turned_transpose(t, op);
  } else {
    return mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE) && cluster_turned_elements(t, op, far - 1);
  }
  return cluster_turned_find(t, op->operands[0], far - 1);
}

// ---- at the product ----

// The dimensions of its result: those of the batch, then the first factor's, then the other's.
typedef struct {
  int32_t batch, second, rank;      // where the first and the second factor's begin
  int32_t first_tile, second_tile;  // those that are in tiles; -1: there is none
  int32_t lane;                     // which of them is in the lanes, if nobody wants the other one
} turned_product_t;

// The last one of a factor's dimensions that is in tiles, or, where that is short, the longest.
static int32_t cluster_turned_tile(const mp_type_t *type, int32_t from, int32_t to) {
  enum { SHORT = 17 };
  int32_t longest = -1;
  for (int32_t d = to; d-- > from;) {
    if (type->dims[d] == 1) continue;
    if (longest < 0 || type->dims[d] > type->dims[longest]) longest = d;
    if (longest == d && type->dims[d] >= SHORT) break;
  }
  return longest;
}

static turned_product_t cluster_turned_product(const mp_op_t *op) {
  const mp_type_t *type = op->results[0].type, *lhs = op->operands[0]->type;
  const uint32_t batch = mp_op_ints(op, MP_ATTR_LHS_BATCHING_DIMENSIONS).count;
  const uint32_t summed = mp_op_ints(op, MP_ATTR_LHS_CONTRACTING_DIMENSIONS).count;
  turned_product_t p = {.batch = (int32_t)batch,
                        .second = (int32_t)(lhs->rank - summed),
                        .rank = (int32_t)type->rank};
  p.first_tile = cluster_turned_tile(type, p.batch, p.second);
  p.second_tile = p.lane = cluster_turned_tile(type, p.second, p.rank);
  if (p.first_tile < 0 || p.second_tile < 0) return p;
  const double as_is = mp_cluster_padding(type, p.first_tile, p.second_tile);
  if (mp_cluster_padding(type, p.second_tile, p.first_tile) < as_is) p.lane = p.first_tile;
  return p;
}

// Whether the dimensions of both factors come in the order of a product of them, or of both
// exchanged.
static bool cluster_turned_is_plain(const turned_product_t *p, const turned_order_t *logical) {
  uint32_t changes = 0;
  int32_t last = -1;
  for (uint32_t i = 0; i < logical->count; ++i) {
    const int32_t dim = logical->dims[i];
    if (dim < p->batch) continue;
    if (last >= 0 && (last < p->second) != (dim < p->second)) {
      changes += 1;
    } else if (dim < last) {
      return false;
    }
    last = dim;
  }
  return changes <= 1;
}

// Whether an array that is transposed lies as the product makes it by itself: the first factor's
// outer dimensions, the second one's, and rows and lanes of tiles.
static bool cluster_turned_is_own(const turned_product_t *p, const turned_order_t *physical) {
  int32_t last = -1;
  for (uint32_t i = 0; i + 2 < physical->count; ++i) {
    const int32_t dim = physical->dims[i];
    if (dim < p->batch) continue;
    if (dim < last) return false;
    last = dim;
  }
  return physical->dims[physical->count - 1] == p->lane;
}

static bool cluster_turned_is_known(const turned_t *t, const turned_product_t *p) {
  const int64_t *dims = t->product->results[0].type->dims;
  // Nothing is known of rows that fill no tile.
  return p->first_tile >= 0 && p->second_tile >= 0 && t->physical.count >= 2 &&
         dims[p->first_tile] >= TURNED_ROWS && dims[p->second_tile] >= TURNED_ROWS;
}

static mp_cluster_lay_t cluster_turned_lay(const turned_t *t, const turned_product_t *p) {
  const int32_t row = t->physical.dims[t->physical.count - 2];
  const int32_t lane = t->physical.dims[t->physical.count - 1];
  const bool is_tile = (row == p->first_tile && lane == p->second_tile) ||
                       (row == p->second_tile && lane == p->first_tile);
  const bool is_moved = t->is_moved && t->is_ordered && !cluster_turned_is_plain(p, &t->logical);
  if (is_tile && (!is_moved || cluster_turned_is_own(p, &t->physical))) return MP_CLUSTER_LAID;
  const bool is_crossed = (p->batch > 0 || is_moved) && lane != p->lane;
  return is_crossed ? MP_CLUSTER_CROSSED : MP_CLUSTER_RELAID;
}

mp_cluster_lay_t mp_cluster_lay(const mp_value_t *result, const mp_op_t *product) {
  const mp_type_t *type = result->type;
  if (!mp_type_is_tensor(type) || type->rank > TURNED_RANK || mp_work_bytes_of(type) == 0) {
    return MP_CLUSTER_LAID;
  }
  turned_t t = {.product = product, .logical = cluster_turned_order(type), .is_ordered = true};
  if (t.logical.count < 2) return MP_CLUSTER_LAID;
  t.physical = cluster_turned_physical(type);
  if (!cluster_turned_find(&t, result, TURNED_FAR)) return MP_CLUSTER_LAID;
  const turned_product_t p = cluster_turned_product(product);
  if (!cluster_turned_is_known(&t, &p)) return MP_CLUSTER_LAID;
  return t.is_split ? MP_CLUSTER_RELAID : cluster_turned_lay(&t, &p);
}

// Whether the dimensions of the second factor come before those of the first one in a value that
// comes of the product.
static bool cluster_turned_is_across(const mp_value_t *value, const mp_op_t *product) {
  if (!mp_type_is_tensor(value->type) || value->type->rank > TURNED_RANK) return false;
  turned_t t = {
      .product = product, .logical = cluster_turned_order(value->type), .is_ordered = true};
  if (!cluster_turned_find(&t, value, TURNED_FAR) || !t.is_ordered) return false;
  const turned_product_t p = cluster_turned_product(product);
  for (uint32_t i = 0; i < t.logical.count; ++i) {
    if (t.logical.dims[i] >= p.batch) return t.logical.dims[i] >= p.second;
  }
  return false;
}

// ---- of a cluster ----

static mp_cluster_access_t *cluster_turned_writes(mp_cluster_find_t *find, uint32_t number) {
  const mp_cluster_t *cluster = &find->out->clusters.items[number];
  return find->out->accesses.items + cluster->first_access + cluster->num_reads;
}

// Whether somebody wants what the product makes as it is: another one who reads it, or a sum in its
// kernel.
static bool cluster_turned_is_wanted_plain(mp_cluster_find_t *find, uint32_t number) {
  const mp_cluster_t *cluster = &find->out->clusters.items[number];
  const mp_cluster_access_t *writes = cluster_turned_writes(find, number);
  const double made = mp_cluster_value_count(&cluster->leader->results[0]);
  for (uint32_t i = 0; i < cluster->num_writes; ++i) {
    const mp_value_t *value = writes[i].value;
    const bool is_like = mp_cluster_value_count(value) == made;
    if (is_like && !cluster_turned_is_across(value, cluster->leader)) return true;
  }
  for (uint32_t at = cluster->first_member; at != MP_CLUSTER_NONE;) {
    const mp_cluster_member_t *member = &find->out->members.items[at];
    if (member->op->code == MP_OP_REDUCE && member->is_epilogue) return true;
    at = member->next;
  }
  return false;
}

static mp_cluster_lay_t cluster_turned_lay_of(const mp_cluster_find_t *find, const mp_op_t *product,
                                              const mp_value_t *value, bool is_wanted_plain) {
  const mp_op_t *end = mp_block_terminator(find->main);
  for (uint32_t i = 0; i < end->num_operands; ++i) {
    const mp_value_t *result = end->operands[i];
    if (mp_cluster_root(result) != value) continue;
    const mp_cluster_lay_t lay = mp_cluster_lay(result, product);
    const bool is_second = is_wanted_plain && lay == MP_CLUSTER_LAID &&
                           cluster_turned_is_across(result, product) &&
                           mp_chip_rule(find->figures, MP_CHIP_RULE_result_read_plain);
    if (is_second) return MP_CLUSTER_CROSSED;
    return lay != MP_CLUSTER_LAID && mp_chip_rule(find->figures, MP_CHIP_RULE_result_layout)
               ? lay
               : MP_CLUSTER_LAID;
  }
  return MP_CLUSTER_LAID;
}

void mp_cluster_turn_results(mp_cluster_find_t *find, uint32_t number,
                             mp_cluster_scratch_t *scratch) {
  const mp_cluster_t *cluster = &find->out->clusters.items[number];
  const mp_op_t *leader = cluster->leader;
  if (find->compiler != MP_CHIP_COMPILER_TPU || cluster->block != find->main) return;
  if (leader == NULL || leader->code != MP_OP_DOT_GENERAL || cluster->is_rows) return;
  const bool is_wanted_plain = cluster_turned_is_wanted_plain(find, number);
  mp_cluster_access_t *writes = cluster_turned_writes(find, number);
  for (uint32_t i = 0; i < cluster->num_writes; ++i) {
    mp_cluster_access_t *access = &writes[i];
    access->lay = cluster_turned_lay_of(find, leader, access->value, is_wanted_plain);
    if (access->lay == MP_CLUSTER_LAID || access->is_fetched) continue;
    if (scratch->kept + access->bytes > find->scratch) continue;
    scratch->kept += access->bytes;
    scratch->freed_kept[number] += access->bytes;
    access->is_lay_near = true;
  }
}
