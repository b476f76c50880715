// One backward sweep per block: an op is decided about after all that use its results.
#include "sim/chip/clusters/cluster.h"

#include <math.h>

#include "sim/base/hash.h"
#include "sim/chip/clusters/cluster_impl.h"
#include "sim/plan/plan.h"

// ---- what is known ----

static mp_status_t cluster_use(mp_cluster_find_t *find, const mp_value_t *value, const mp_op_t *op,
                               const mp_cluster_user_t *user, double emitted) {
  mp_cluster_value_t *entry;
  MP_RETURN_IF_ERROR(mp_cluster_value(find, value, &entry));
  const mp_cluster_use_t use = {
      user->cluster, entry->first_use, user->is_along, user->is_reused, user->sides, op, emitted};
  entry->first_use = find->uses.count;
  return MP_ARRAY_PUSH(find->scratch_arena, &find->uses, use);
}

static mp_status_t cluster_use_in_memory_at(mp_cluster_find_t *find, const mp_value_t *value,
                                            bool is_outside, uint32_t place) {
  mp_cluster_value_t *entry;
  MP_RETURN_IF_ERROR(mp_cluster_value(find, value, &entry));
  entry->narrowed = 1;
  entry->is_outside |= is_outside;
  if (place < entry->memory_use) entry->memory_use = place;
  return NULL;
}

static mp_status_t cluster_use_in_memory(mp_cluster_find_t *find, const mp_value_t *value,
                                         bool is_outside) {
  return cluster_use_in_memory_at(find, value, is_outside, find->place);
}

// Something that is no cluster reads all the operands' bytes from memory: those that lie there.
static mp_status_t cluster_use_all_in_memory(mp_cluster_find_t *find, const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (op->operands[i]->is_on_host) continue;
    if (mp_cluster_makes_start(find->compiler, op, i)) continue;
    MP_RETURN_IF_ERROR(cluster_use_in_memory(find, mp_cluster_root(op->operands[i]), true));
  }
  return NULL;
}

// The share of an operand's bits that the op makes use of: of a conversion to a narrower type.
static double cluster_share_of_bits(const mp_op_t *op) {
  if (op->code != MP_OP_CONVERT) return 1;
  const double from = (double)mp_dtype_bits(op->operands[0]->type->dtype);
  return fmin(1, (double)mp_dtype_bits(op->results[0].type->dtype) / from);
}

// A value that is only converted to a narrower type is made in that type.
static double cluster_narrowed(const mp_cluster_find_t *find, const mp_cluster_value_t *entry) {
  if (entry->memory_use != MP_CLUSTER_NONE) {
    return entry->first_use == MP_CLUSTER_NONE && entry->narrowed > 0 ? entry->narrowed : 1;
  }
  if (entry->first_use == MP_CLUSTER_NONE) return 1;
  const mp_cluster_use_t *use = &find->uses.items[entry->first_use];
  return use->next == MP_CLUSTER_NONE ? cluster_share_of_bits(use->op) : 1;
}

// On a TPU a part of a concatenation lies in tiles as the whole does, however much of them that
// leaves empty.
static mp_status_t cluster_use_part(mp_cluster_find_t *find, const mp_value_t *value,
                                    const mp_op_t *op) {
  if (op->code != MP_OP_CONCATENATE || find->compiler != MP_CHIP_COMPILER_TPU) return NULL;
  mp_cluster_value_t *entry;
  MP_RETURN_IF_ERROR(mp_cluster_value(find, &op->results[0], &entry));
  const double share = cluster_narrowed(find, entry);
  MP_RETURN_IF_ERROR(mp_cluster_value(find, value, &entry));
  entry->padding = share * mp_cluster_part_padding(op, value->type);
  return NULL;
}

// ---- the op at hand ----

typedef struct {
  const mp_op_t *op;
  mp_work_t work;
  mp_cluster_kind_t kind;
  uint32_t memory_use;  // the place of the first who wants a result in memory
  double bytes;         // of its results
} cluster_op_t;

static mp_status_t cluster_add_user(mp_cluster_find_t *find, const mp_cluster_use_t *use) {
  const uint32_t number = mp_cluster_now(find, use->cluster);
  const uint32_t num_slices = use->op->code == MP_OP_SLICE;
  const bool moves = num_slices > 0 || use->op->code == MP_OP_TRANSPOSE;
  mp_cluster_state_t *state = &find->states.items[number];
  if (state->seen == find->num_decided) {
    mp_cluster_user_t *user = &find->users.items[state->user];
    user->is_along = user->is_along && use->is_along;
    user->is_reused = user->is_reused || use->is_reused;
    user->sides |= use->sides;
    user->num_slices += num_slices;
    user->moves |= moves;
    return NULL;
  }
  state->seen = find->num_decided;
  state->user = find->users.count;
  const mp_cluster_user_t user = {number,     use->is_along, use->is_reused,
                                  use->sides, num_slices,    moves};
  return MP_ARRAY_PUSH(find->scratch_arena, &find->users, user);
}

// Adds the clusters that read a value to those of the op at hand. Those of other blocks read it
// from memory.
static mp_status_t cluster_add_users(mp_cluster_find_t *find, const mp_value_t *value,
                                     const mp_block_t *block, uint32_t *memory_use) {
  mp_cluster_value_t *entry;
  MP_HASH_MAP_GET(&find->values, mp_hash_pointer(value), entry);
  if (entry == NULL) return NULL;
  for (uint32_t at = entry->first_use; at != MP_CLUSTER_NONE; at = find->uses.items[at].next) {
    const uint32_t number = mp_cluster_now(find, find->uses.items[at].cluster);
    if (find->out->clusters.items[number].block == block) {
      MP_RETURN_IF_ERROR(cluster_add_user(find, &find->uses.items[at]));
      continue;
    }
    const uint32_t place = find->states.items[number].place;
    entry->is_outside = true;
    if (place < entry->memory_use) entry->memory_use = place;
  }
  if (entry->memory_use < *memory_use) *memory_use = entry->memory_use;
  return NULL;
}

// The user that is done first.
static const mp_cluster_user_t *cluster_first_user(const mp_cluster_find_t *find) {
  const mp_cluster_user_t *first = &find->users.items[0];
  for (uint32_t i = 1; i < find->users.count; ++i) {
    const mp_cluster_user_t *user = &find->users.items[i];
    if (find->states.items[user->cluster].place < find->states.items[first->cluster].place) {
      first = user;
    }
  }
  return first;
}

// Joins the readers of a value that no cluster makes.
static mp_status_t cluster_join_readers(mp_cluster_find_t *find, const mp_value_t *value,
                                        const mp_block_t *block) {
  uint32_t memory_use = MP_CLUSTER_NONE;
  ++find->num_decided;
  find->users.count = 0;
  MP_RETURN_IF_ERROR(cluster_add_users(find, value, block, &memory_use));
  mp_cluster_join_siblings(find, value);
  return NULL;
}

// ---- membership ----

// Of two classes, that of the kernel in which both are.
static mp_work_class_t cluster_class(mp_work_class_t a, mp_work_class_t b) {
  static const mp_work_class_t order[] = {MP_WORK_GATHER, MP_WORK_ELEMENTWISE, MP_WORK_COPY,
                                          MP_WORK_SCALAR};
  for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); ++i) {
    if (a == order[i] || b == order[i]) return order[i];
  }
  return a;
}

static void cluster_add_work(mp_cluster_find_t *find, uint32_t number, const cluster_op_t *at) {
  mp_cluster_t *cluster = &find->out->clusters.items[number];
  mp_cluster_state_t *state = &find->states.items[number];
  mp_work_t *sum = &cluster->work;
  sum->flops += at->work.flops;
  sum->transcendentals += at->work.transcendentals;
  sum->vector_flops += at->work.vector_flops;
  sum->vector_transcendentals += at->work.vector_transcendentals;
  if (cluster->has_hero && state->kind == MP_CLUSTER_PRODUCT && at->kind == MP_CLUSTER_PRODUCT) {
    cluster->inner = at->work.product;
    return;
  }
  if (at->kind == MP_CLUSTER_LOOP) {
    if (!cluster->has_hero) {
      sum->work_class = cluster_class(sum->work_class, at->work.work_class);
    }
  } else if (!cluster->has_hero || at->kind == MP_CLUSTER_PRODUCT) {
    cluster->leader = at->op;
    cluster->has_hero = true;
    sum->work_class = at->work.work_class;
    sum->product = at->work.product;
    state->kind = at->kind;
  }
  if (at->kind == MP_CLUSTER_REDUCTION) state->reduced_dims |= mp_cluster_reduced_dims(at->op);
  cluster->count = fmax(cluster->count, mp_cluster_extent(at->op, at->kind));
}

// Whether rows that were put together are laid out anew before they are read.
static bool cluster_is_copied(const mp_cluster_find_t *find, const mp_value_t *operand,
                              const mp_value_t *value) {
  return find->compiler == MP_CHIP_COMPILER_TPU && value->op != NULL &&
         value->op->code == MP_OP_CONCATENATE && mp_cluster_cuts_rows(value->op) &&
         mp_cluster_is_relaid(operand);
}

// The op reads a copy of the value, in the type in which it wants it.
static mp_status_t cluster_use_copied(mp_cluster_find_t *find, const mp_value_t *value,
                                      const mp_op_t *op) {
  mp_cluster_value_t *entry;
  MP_RETURN_IF_ERROR(mp_cluster_value(find, value, &entry));
  const double share = fmax(entry->narrowed, cluster_share_of_bits(op));
  MP_RETURN_IF_ERROR(cluster_use_in_memory(find, value, false));
  entry->narrowed = share;
  return NULL;
}

// The op finds an operand in memory.
static mp_status_t cluster_find_in_memory(mp_cluster_find_t *find, const cluster_op_t *at,
                                          const mp_cluster_user_t *user, const mp_value_t *value) {
  const bool is_gpu = find->compiler == MP_CHIP_COMPILER_GPU;
  // On a TPU what is updated in place lies where the updated array does, which is the memory.
  const bool is_there = at->kind == MP_CLUSTER_UPDATE && find->compiler == MP_CHIP_COMPILER_TPU;
  // On a GPU it is needed no sooner than the kernel that the op is in.
  const uint32_t place = is_gpu ? find->states.items[user->cluster].place : find->place;
  MP_RETURN_IF_ERROR(cluster_use_in_memory_at(find, value, is_there, place));
  return cluster_use_part(find, value, at->op);
}

// Makes an op that is decided about a member of the user's cluster.
static mp_status_t cluster_join(mp_cluster_find_t *find, const cluster_op_t *at,
                                const mp_cluster_user_t *user) {
  mp_clusters_t *out = find->out;
  mp_cluster_t *cluster = &out->clusters.items[user->cluster];
  const mp_cluster_member_t member = {at->op, user->is_along && at->kind != MP_CLUSTER_PRODUCT,
                                      user->sides, cluster->first_member};
  cluster->first_member = out->members.count;
  ++find->states.items[user->cluster].num_members;
  const double emitted = mp_cluster_emitted(find, at->op, user->cluster);
  mp_cluster_note_code(find, at->op, user->cluster);
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(find->arena, &out->members, member));
  cluster_add_work(find, user->cluster, at);
  // A reduction whose result is broadcast goes once through what it reduces.
  const bool is_row = at->kind == MP_CLUSTER_REDUCTION && user->is_reused;
  for (uint32_t i = 0; i < at->op->num_operands; ++i) {
    bool is_reused = false;
    const mp_value_t *value = mp_cluster_source(find->compiler, at->op, at->kind, i, &is_reused);
    if (value == NULL) continue;
    if (!mp_cluster_takes(find->compiler, at->op, at->kind, i)) {
      MP_RETURN_IF_ERROR(cluster_find_in_memory(find, at, user, value));
      continue;
    }
    if (cluster_is_copied(find, at->op->operands[i], value)) {
      MP_RETURN_IF_ERROR(cluster_use_copied(find, value, at->op));
      continue;
    }
    const bool is_along = (user->is_along || is_row) && !is_reused &&
                          mp_cluster_goes_along(at->op, at->kind, mp_cluster_value_count(value));
    const mp_cluster_user_t use = {.cluster = user->cluster,
                                   .is_along = is_along,
                                   .is_reused = is_reused || (user->is_reused && !is_row),
                                   .sides = mp_cluster_sides(&member, at->kind, i)};
    MP_RETURN_IF_ERROR(cluster_use(find, value, at->op, &use, emitted));
  }
  return NULL;
}

static mp_status_t cluster_begin(mp_cluster_find_t *find, const cluster_op_t *at) {
  const uint32_t number = find->out->clusters.count;
  const mp_cluster_t fresh = {.last = at->op,
                              .leader = at->op,
                              .block = at->op->parent,
                              .work.work_class = at->work.work_class,
                              .first_member = MP_CLUSTER_NONE};
  const mp_cluster_state_t state = {.place = find->place,
                                    .first_need = MP_CLUSTER_NONE,
                                    .merged_into = MP_CLUSTER_NONE,
                                    .kind = at->kind};
  const mp_cluster_entry_t entry = {mp_hash_pointer(at->op), number};
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(find->arena, &find->out->clusters, fresh));
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(find->scratch_arena, &find->states, state));
  MP_RETURN_IF_ERROR(MP_HASH_MAP_ADD(find->arena, &find->out->by_last, &entry));
  return cluster_join(
      find, at,
      &(mp_cluster_user_t){.cluster = number, .is_along = true, .sides = MP_CLUSTER_BESIDE});
}

// The cluster writes the op's results, which all its other users read from memory.
static mp_status_t cluster_write(mp_cluster_find_t *find, const cluster_op_t *at, uint32_t number) {
  mp_cluster_state_t *state = &find->states.items[number];
  for (uint32_t i = 0; i < at->op->num_results; ++i) {
    mp_cluster_value_t *entry;
    MP_RETURN_IF_ERROR(mp_cluster_value(find, &at->op->results[i], &entry));
    entry->written_by = number;
  }
  if (at->memory_use < state->first_need) state->first_need = at->memory_use;
  for (uint32_t i = 0; i < find->users.count; ++i) {
    const uint32_t user = find->users.items[i].cluster, place = find->states.items[user].place;
    if (user != number && place < state->first_need) state->first_need = place;
  }
  return NULL;
}

// ---- what may join ----

static bool cluster_has_member(const mp_cluster_find_t *find, const mp_cluster_t *cluster,
                               const mp_op_t *op) {
  uint32_t at = cluster->first_member;
  while (at != MP_CLUSTER_NONE && find->out->members.items[at].op != op) {
    at = find->out->members.items[at].next;
  }
  return at != MP_CLUSTER_NONE;
}

// Whether an op of the cluster reads a whole array besides the product's result.
static bool cluster_reads_array(const mp_cluster_find_t *find, const mp_cluster_t *cluster,
                                const mp_op_t *op, const mp_op_t *product) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    bool is_reused = false;
    const mp_value_t *value = mp_cluster_source(find->compiler, op, MP_CLUSTER_LOOP, i, &is_reused);
    if (value == NULL || is_reused || value->op == product) continue;
    if (value->op == NULL || !cluster_has_member(find, cluster, value->op)) return true;
  }
  return false;
}

// Whether the ops of a cluster are what a library of products does with a result: bias and
// activation, or the sum with another array.
static bool cluster_is_library_epilogue(const mp_cluster_find_t *find, uint32_t number,
                                        const mp_op_t *product) {
  enum { OPS_MOST = 16 };
  uint32_t num_ops = 0, num_sums = 0, num_scales = 0;
  bool reads_array = false;
  const mp_cluster_t *cluster = &find->out->clusters.items[number];
  for (uint32_t at = cluster->first_member; at != MP_CLUSTER_NONE;) {
    const mp_cluster_member_t *member = &find->out->members.items[at];
    const mp_opcode_t code = member->op->code;
    const bool is_known = code == MP_OP_ADD || code == MP_OP_MULTIPLY || code == MP_OP_MAXIMUM ||
                          code == MP_OP_TANH || code == MP_OP_POWER;
    if (!is_known || ++num_ops > OPS_MOST) return false;
    num_sums += code == MP_OP_ADD;
    num_scales += mp_cluster_scales(find->compiler, member->op);
    reads_array |= cluster_reads_array(find, cluster, member->op, product);
    at = member->next;
  }
  if (!reads_array) return num_ops > 0;
  // The product may be scaled before it is added.
  return num_sums == 1 && num_sums + num_scales == num_ops && num_scales <= 1;
}

// Whether the result of a product is cut out of a larger one: a library that puts it there does no
// more with it.
static bool cluster_is_cut(const mp_cluster_find_t *find, const mp_op_t *op) {
  mp_product_padding_t padding;
  if (mp_cluster_merged(find->out, op) != NULL) return true;
  return mp_cluster_pads(find->compiler, op, &padding) && padding.m * padding.n > 1;
}

// Whether a product or a reduction may end in the cluster that goes through its result.
static bool cluster_takes_result(const mp_cluster_find_t *find, const cluster_op_t *at,
                                 const mp_cluster_user_t *user) {
  const mp_cluster_t *cluster = &find->out->clusters.items[user->cluster];
  const mp_cluster_kind_t kind = find->states.items[user->cluster].kind;
  if (!user->is_along || user->is_reused) return false;
  if (cluster->is_rows &&
      (at->kind != MP_CLUSTER_PRODUCT || !mp_cluster_makes_rows(find, at->op, user->cluster))) {
    return false;
  }
  if (cluster->count != mp_cluster_op_count(at->op)) return false;
  const bool is_only = find->users.count == 1 && at->memory_use == MP_CLUSTER_NONE;
  if (at->kind == MP_CLUSTER_REDUCTION) {
    return kind == MP_CLUSTER_LOOP && is_only && find->compiler != MP_CHIP_COMPILER_TPU;
  }
  if (find->compiler == MP_CHIP_COMPILER_GPU) {
    return kind == MP_CLUSTER_LOOP && is_only && !cluster_is_cut(find, at->op) &&
           cluster_is_library_epilogue(find, user->cluster, at->op);
  }
  return kind == MP_CLUSTER_LOOP || kind == MP_CLUSTER_REDUCTION || kind == MP_CLUSTER_UPDATE;
}

// Whether a product may be done in the kernel of the one of which it makes a factor.
static bool cluster_takes_factor(const mp_cluster_find_t *find, const cluster_op_t *at,
                                 const mp_cluster_user_t *user) {
  const bool is_only = find->users.count == 1 && at->memory_use == MP_CLUSTER_NONE;
  return is_only && !user->is_reused && mp_cluster_chains(find, at->op, &at->work, user);
}

// Whether a cluster reads the value already, as far as its latest readers show.
static bool cluster_reads(const mp_cluster_find_t *find, uint32_t number, const mp_value_t *value) {
  enum { LATEST = 8 };
  const mp_cluster_value_t *entry;
  MP_HASH_MAP_GET(&find->values, mp_hash_pointer(value), entry);
  uint32_t at = entry == NULL ? MP_CLUSTER_NONE : entry->first_use;
  for (uint32_t i = 0; i < LATEST && at != MP_CLUSTER_NONE; ++i) {
    if (mp_cluster_now(find, find->uses.items[at].cluster) == number) return true;
    at = find->uses.items[at].next;
  }
  return false;
}

// Whether a cluster reads, for all of their elements, the array that rows are made of.
static bool cluster_reads_rows(const mp_cluster_find_t *find, uint32_t number, const mp_op_t *op) {
  enum { OPS_MOST = 6 };
  const mp_value_t *value = mp_cluster_root(op->operands[0]);
  for (uint32_t i = 0; i < OPS_MOST && value != NULL; ++i) {
    if (cluster_reads(find, number, value)) return true;
    value = value->op == NULL ? NULL : mp_cluster_rows_operand(find, value->op);
  }
  return false;
}

// Whether the reduction of rows may be done in the cluster that then goes through the rows again.
static bool cluster_keeps_rows(const mp_cluster_find_t *find, const cluster_op_t *at,
                               const mp_cluster_user_t *user) {
  const mp_cluster_t *cluster = &find->out->clusters.items[user->cluster];
  const mp_cluster_state_t *state = &find->states.items[user->cluster];
  const double row = mp_cluster_row(at->op);
  if (!user->is_reused || row == 0 || row > find->rows_most) return false;
  if (state->kind != MP_CLUSTER_LOOP && state->kind != MP_CLUSTER_REDUCTION) return false;
  if (cluster->count != mp_cluster_extent(at->op, at->kind)) return false;
  const uint64_t dims = mp_cluster_reduced_dims(at->op);
  if (state->reduced_dims != 0 && state->reduced_dims != dims) return false;
  const bool is_only = find->users.count == 1;
  if (find->compiler == MP_CHIP_COMPILER_TPU && !mp_cluster_leaves_rows(at->op)) return false;
  if (find->compiler != MP_CHIP_COMPILER_GPU) return is_only && mp_cluster_is_of_softmax(at->op);
  if (state->is_untiled || mp_cluster_is_turned(find, at->op)) return false;
  if (is_only && mp_cluster_meets_rows(find, at->op) &&
      cluster_reads_rows(find, user->cluster, at->op)) {
    return true;
  }
  return mp_cluster_closes_rows(find, at->op) ||
         (mp_cluster_follows_rows(find, at->op) && !mp_cluster_sums_written(find, at->op) &&
          (is_only || mp_cluster_pays_sum_again(find, at->op)));
}

// Whether all that read a window's result, or a sum of windows, go through it one by one: XLA's
// compiler for GPUs has no kernel of its own for it, but for cumulative ones.
static bool cluster_takes_windows(const mp_cluster_find_t *find, const cluster_op_t *at,
                                  const mp_cluster_user_t *user) {
  if (find->compiler != MP_CHIP_COMPILER_GPU || at->op->code != MP_OP_REDUCE_WINDOW) return false;
  const mp_cluster_t *cluster = &find->out->clusters.items[user->cluster];
  const bool is_only = find->users.count == 1 && at->memory_use == MP_CLUSTER_NONE;
  return is_only && user->is_along && !user->is_reused && !cluster->is_rows &&
         find->states.items[user->cluster].kind == MP_CLUSTER_LOOP &&
         cluster->count == mp_cluster_op_count(at->op) && mp_cluster_cumulative(at->op) < 0;
}

// Whether an op is made again in each kernel of a cumulative op: XLA's compiler for GPUs adds up
// tiles, and then goes through them again, reading each element for several results. It writes
// before what is dear or made of several arrays.
static bool cluster_is_made_again(const mp_cluster_find_t *find, const cluster_op_t *at) {
  uint32_t num_arrays = 0;
  for (uint32_t i = 0; i < at->op->num_operands; ++i) {
    bool is_reused = false;
    const mp_value_t *value = mp_cluster_source(find->compiler, at->op, at->kind, i, &is_reused);
    num_arrays += value != NULL && mp_cluster_value_count(value) > 1;
  }
  return num_arrays <= 1 && !mp_cluster_is_dear(at->op, &at->work);
}

// Whether the user sums up in another direction than rows what a kernel makes that has rows at
// hand: XLA's compiler for GPUs has them in two kernels, and what goes between is written. It is
// the last thing made of such rows, if somebody wants that in memory.
static bool cluster_sums_across(const mp_cluster_find_t *find, const cluster_op_t *at,
                                const mp_cluster_user_t *user) {
  if (find->compiler != MP_CHIP_COMPILER_GPU) return false;
  const mp_cluster_t *cluster = &find->out->clusters.items[user->cluster];
  return find->states.items[user->cluster].kind == MP_CLUSTER_REDUCTION && !cluster->is_rows &&
         cluster->leader->code == MP_OP_REDUCE && mp_cluster_row(cluster->leader) == 0 &&
         (mp_cluster_needs_rows(find, at->op) ||
          (at->memory_use != MP_CLUSTER_NONE && mp_cluster_has_rows(find, at->op)));
}

// Whether the user's cluster can compute the op.
static bool cluster_accepts(const mp_cluster_find_t *find, const cluster_op_t *at,
                            const mp_cluster_user_t *user) {
  if (at->kind == MP_CLUSTER_PRODUCT) {
    return cluster_takes_result(find, at, user) || cluster_takes_factor(find, at, user);
  }
  if (at->kind == MP_CLUSTER_REDUCTION) {
    return cluster_takes_result(find, at, user) ||
           (find->users.count == 1 && cluster_keeps_rows(find, at, user));
  }
  if (at->kind == MP_CLUSTER_WINDOW) return cluster_takes_windows(find, at, user);
  if (at->kind != MP_CLUSTER_LOOP) return false;
  const mp_cluster_t *cluster = &find->out->clusters.items[user->cluster];
  if (find->compiler == MP_CHIP_COMPILER_GPU && cluster->is_rows && mp_cluster_is_untiled(at->op)) {
    return false;
  }
  // A kernel that keeps rows writes an array, and no part of one in its place.
  if (find->compiler == MP_CHIP_COMPILER_GPU &&
      find->states.items[user->cluster].kind == MP_CLUSTER_UPDATE &&
      mp_cluster_is_of_rows(find, at->op)) {
    return false;
  }
  if (find->compiler == MP_CHIP_COMPILER_GPU && mp_cluster_cumulative(cluster->leader) >= 0 &&
      !cluster_is_made_again(find, at)) {
    return false;
  }
  if (!mp_cluster_has_room(find, at->op, user->cluster)) return false;
  if (mp_cluster_is_turned_for(find, at->op, user->cluster)) return false;
  if (cluster_sums_across(find, at, user)) return false;
  if (mp_cluster_overwrites_source(find, at->op, user->cluster)) return false;
  // Slices are users of their own: what several of them read is not computed for each.
  const bool is_read = user->num_slices < 2 || mp_cluster_is_generator(at->op);
  if (find->compiler == MP_CHIP_COMPILER_TPU && !is_read) return false;
  // A library's product is as it is.
  if (find->compiler == MP_CHIP_COMPILER_GPU &&
      find->states.items[user->cluster].kind == MP_CLUSTER_PRODUCT) {
    return false;
  }
  if (!user->is_reused || !mp_cluster_is_dear(at->op, &at->work)) return true;
  // What is the same for a row is computed once a row where rows are at hand.
  const double count = mp_cluster_op_count(at->op);
  return find->compiler == MP_CHIP_COMPILER_GPU &&
         find->out->clusters.items[user->cluster].count <= count * find->rows_most;
}

// ---- what pays ----

// Whether a product makes the value, perhaps with a few ops behind it.
static bool cluster_is_of_product(const mp_cluster_find_t *find, const mp_value_t *value) {
  enum { OPS_MOST = 6 };
  if (find->compiler == MP_CHIP_COMPILER_GPU) return false;
  const double count = mp_cluster_value_count(value);
  for (uint32_t i = 0; i < OPS_MOST && value->op != NULL; ++i) {
    const mp_op_t *op = value->op;
    if (op->code == MP_OP_DOT_GENERAL || op->code == MP_OP_CONVOLUTION) return true;
    if (!mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) return false;
    uint32_t operand = 0;
    while (operand + 1 < op->num_operands &&
           (mp_cluster_is_generator(op) ||
            mp_cluster_value_count(mp_cluster_root(op->operands[operand])) != count ||
            (op->operands[operand]->op != NULL &&
             mp_cluster_is_generator(op->operands[operand]->op)))) {
      ++operand;
    }
    value = mp_cluster_root(op->operands[operand]);
  }
  return false;
}

// The bytes of two ways to make what several clusters read.
typedef struct {
  double copied;   // each of them computes it
  double written;  // the first of them writes it, and the others read it
} cluster_ways_t;

static cluster_ways_t cluster_weigh(const mp_cluster_find_t *find, const cluster_op_t *at,
                                    const mp_cluster_user_t *first, bool first_may_write) {
  const double others = find->users.count - 1;
  cluster_ways_t ways = {.written = at->bytes * (1 + others)};
  if (!first_may_write) ways.written += at->bytes;
  for (uint32_t i = 0; i < at->op->num_operands; ++i) {
    bool is_reused = false;
    const mp_value_t *value = mp_cluster_source(find->compiler, at->op, at->kind, i, &is_reused);
    if (value == NULL) continue;
    enum { OPS_MOST = 4 };
    const double bytes =
        fmin(mp_work_bytes_read(at->op, i), mp_cluster_source_bytes(find, value, OPS_MOST));
    if (cluster_is_of_product(find, value)) {
      ways.copied += mp_work_bytes_of(value->type) + others * bytes;
      continue;
    }
    for (uint32_t j = 0; j < find->users.count; ++j) {
      const bool reads = cluster_reads(find, find->users.items[j].cluster, value);
      if (!reads) ways.copied += bytes;
      if (find->users.items[j].cluster == first->cluster && first_may_write && !reads) {
        ways.written += bytes;
      }
    }
    if (!first_may_write) ways.written += bytes;
  }
  return ways;
}

// Whether all users may and should compute the op themselves.
static bool cluster_should_copy(mp_cluster_find_t *find, const cluster_op_t *at,
                                const mp_cluster_user_t *first, bool first_may_write) {
  enum { USERS_MOST = 16, COPIED_MOST = 64, TRANSCENDENTAL = 8 };
  if (at->kind != MP_CLUSTER_LOOP || find->users.count > USERS_MOST) return false;
  const bool is_of_rows = mp_cluster_is_shifted_exp(at->op, find->rows_most);
  if (find->compiler == MP_CHIP_COMPILER_TPU && is_of_rows && at->op->results[0].type->rank > 2) {
    return false;
  }
  const double cost = at->work.transcendentals > 0 ? TRANSCENDENTAL : 1;
  for (uint32_t i = 0; i < find->users.count; ++i) {
    const mp_cluster_user_t *user = &find->users.items[i];
    if (!cluster_accepts(find, at, user)) return false;
    if (find->states.items[user->cluster].copied + cost > COPIED_MOST) return false;
  }
  const cluster_ways_t ways = cluster_weigh(find, at, first, first_may_write);
  if (ways.copied > ways.written) return false;
  if (!mp_cluster_pays_again(find, at->op)) return false;
  for (uint32_t i = 0; i < find->users.count; ++i) {
    if (find->users.items[i].cluster == first->cluster) continue;
    find->states.items[find->users.items[i].cluster].copied += cost;
  }
  return true;
}

// ---- decisions ----

static mp_status_t cluster_join_all(mp_cluster_find_t *find, const cluster_op_t *at) {
  for (uint32_t i = 0; i < find->users.count; ++i) {
    MP_RETURN_IF_ERROR(cluster_join(find, at, &find->users.items[i]));
  }
  return NULL;
}

// Whether reading the result takes more bytes than making it: a conversion to a wider type.
static bool cluster_widens(const mp_cluster_find_t *find, const cluster_op_t *at) {
  return at->op->code == MP_OP_CONVERT && find->users.count > 0 &&
         mp_work_bytes_of(at->op->operands[0]->type) < at->bytes;
}

// All that can make the result do so, though `writer` writes it for others.
static mp_status_t cluster_join_others(mp_cluster_find_t *find, const cluster_op_t *at,
                                       uint32_t writer) {
  for (uint32_t i = 0; i < find->users.count; ++i) {
    const mp_cluster_user_t user = find->users.items[i];
    if (user.cluster == writer || !cluster_accepts(find, at, &user)) continue;
    MP_RETURN_IF_ERROR(cluster_join(find, at, &user));
  }
  return NULL;
}

// The cluster goes through the rows of a reduction again.
static void cluster_keep_rows(mp_cluster_find_t *find, const cluster_op_t *at, uint32_t number) {
  mp_cluster_state_t *state = &find->states.items[number];
  find->out->clusters.items[number].is_rows = true;
  state->row = fmax(state->row, mp_cluster_row(at->op));
}

// Whether somebody reads a result.
static bool cluster_is_used(const mp_cluster_find_t *find, const cluster_op_t *at) {
  return find->users.count > 0 || at->memory_use != MP_CLUSTER_NONE;
}

// Those of several clusters that go through the rows of a reduction again make it themselves, as
// XLA's compiler for GPUs has it: they read the rows anyway. The others are left.
static mp_status_t cluster_give_rows(mp_cluster_find_t *find, const cluster_op_t *at) {
  if (find->compiler != MP_CHIP_COMPILER_GPU || at->kind != MP_CLUSTER_REDUCTION) return NULL;
  if (find->users.count < 2) return NULL;
  uint32_t num_left = 0;
  for (uint32_t i = 0; i < find->users.count; ++i) {
    const mp_cluster_user_t user = find->users.items[i];
    if (!cluster_keeps_rows(find, at, &user)) {
      find->users.items[num_left++] = user;
      continue;
    }
    cluster_keep_rows(find, at, user.cluster);
    MP_RETURN_IF_ERROR(cluster_join(find, at, &user));
  }
  find->users.count = num_left;
  return NULL;
}

// Whether some user wants in memory what a kernel makes that has rows at hand. That kernel has no
// other result.
static bool cluster_is_summed_across(const mp_cluster_find_t *find, const cluster_op_t *at) {
  if (at->kind != MP_CLUSTER_LOOP) return false;
  for (uint32_t i = 0; i < find->users.count; ++i) {
    if (cluster_sums_across(find, at, &find->users.items[i])) return true;
  }
  return false;
}

// Whether a kernel that goes through rows has to write what it makes of them, as it would take
// longer to make it again: nothing that reads it is in that kernel.
static bool cluster_ends_rows(const mp_cluster_find_t *find, const cluster_op_t *at) {
  return find->compiler == MP_CHIP_COMPILER_GPU && at->kind == MP_CLUSTER_LOOP &&
         find->users.count > 1 && at->memory_use == MP_CLUSTER_NONE &&
         mp_cluster_is_of_rows(find, at->op) && mp_cluster_line(at->op) <= find->rows_most &&
         !mp_cluster_pays_again(find, at->op);
}

static mp_status_t cluster_decide(mp_cluster_find_t *find, const cluster_op_t *at) {
  const bool had_users = find->users.count > 0;
  MP_RETURN_IF_ERROR(cluster_give_rows(find, at));
  if (had_users && !cluster_is_used(find, at)) return NULL;
  const bool is_summed = cluster_is_summed_across(find, at);
  const bool widens = is_summed || cluster_widens(find, at);
  if (find->users.count > 0 && !is_summed && !cluster_ends_rows(find, at)) {
    const mp_cluster_user_t first = *cluster_first_user(find);
    const bool accepts = cluster_accepts(find, at, &first);
    const bool is_only = find->users.count == 1 && at->memory_use == MP_CLUSTER_NONE;
    const bool keeps_rows = accepts && at->kind == MP_CLUSTER_REDUCTION && first.is_reused;
    if (accepts && is_only) {
      if (keeps_rows) cluster_keep_rows(find, at, first.cluster);
      return cluster_join(find, at, &first);
    }
    // What is broadcast, sliced or a factor of a product is no array that the cluster goes through.
    const bool may_write = accepts && ((first.is_along && !first.is_reused) || keeps_rows) &&
                           find->states.items[first.cluster].place < at->memory_use;
    if (at->memory_use == MP_CLUSTER_NONE && cluster_should_copy(find, at, &first, may_write)) {
      return cluster_join_all(find, at);
    }
    if (may_write) {
      if (keeps_rows) cluster_keep_rows(find, at, first.cluster);
      MP_RETURN_IF_ERROR(cluster_write(find, at, first.cluster));
      if (widens) MP_RETURN_IF_ERROR(cluster_join_others(find, at, first.cluster));
      return cluster_join(find, at, &first);
    }
  }
  const uint32_t number = find->out->clusters.count;
  MP_RETURN_IF_ERROR(cluster_begin(find, at));
  MP_RETURN_IF_ERROR(cluster_write(find, at, number));
  return widens ? cluster_join_others(find, at, number) : NULL;
}

// Makes an op a cluster of its own, which writes what others read.
static mp_status_t cluster_set_apart(mp_cluster_find_t *find, const cluster_op_t *at) {
  const uint32_t number = find->out->clusters.count;
  MP_RETURN_IF_ERROR(cluster_begin(find, at));
  return cluster_write(find, at, number);
}

// Whether the op is so dear that XLA's compiler for GPUs writes it for the kernels that read it. It
// makes one kernel of these afterwards.
static bool cluster_is_dear_to_all(const mp_cluster_find_t *find, const cluster_op_t *at) {
  return find->compiler == MP_CHIP_COMPILER_GPU && find->users.count > 1 &&
         at->kind == MP_CLUSTER_LOOP && at->memory_use == MP_CLUSTER_NONE &&
         mp_op_has(at->op, MP_OP_TRAIT_ELEMENTWISE) && !mp_cluster_pays_again(find, at->op);
}

static mp_status_t cluster_place(mp_cluster_find_t *find, const mp_op_t *op) {
  cluster_op_t at = {.op = op, .memory_use = MP_CLUSTER_NONE};
  if (op->code == MP_OP_CONSTANT) return NULL;
  at.kind = mp_cluster_kind(find->compiler, op, &at.work);
  ++find->num_decided;
  find->users.count = 0;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    at.bytes += mp_work_bytes_of(op->results[i].type);
    MP_RETURN_IF_ERROR(cluster_add_users(find, &op->results[i], op->parent, &at.memory_use));
  }
  // All users make broadcasts and iotas themselves, unless one of them wants it in memory.
  const bool is_free = mp_cluster_is_generator(op) || op->code == MP_OP_TRANSPOSE;
  // Of what is looked up in a table the table's own elements are read.
  const bool is_seen_through = find->compiler == MP_CHIP_COMPILER_GPU &&
                               (mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE) || mp_cluster_is_cut(op));
  if ((is_free || is_seen_through) && !cluster_is_used(find, &at)) return NULL;
  const bool is_dear = cluster_is_dear_to_all(find, &at);
  if (op->num_results == 1) mp_cluster_join_siblings(find, &op->results[0]);
  if (is_dear && find->users.count == 1) return cluster_set_apart(find, &at);
  return cluster_decide(find, &at);
}

// ---- the sweep ----

static mp_status_t cluster_sweep(mp_cluster_find_t *find, const mp_block_t *block);

static mp_status_t cluster_op(mp_cluster_find_t *find, const mp_op_t *op) {
  const mp_op_role_t role = mp_op_info(op->code)->role;
  const bool is_of_host = mp_op_is_of_host(op), crosses = mp_op_crosses(op);
  const bool may_be_kernel = role == MP_OP_ROLE_KERNEL || mp_cluster_is_generator(op);
  const bool is_kernel = may_be_kernel && !is_of_host && !crosses;
  const uint32_t place = find->place--;
  if (op->code == MP_OP_WHILE) {
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(find->scratch_arena, &find->bodies, op->regions[1]));
  }
  if (role == MP_OP_ROLE_CONTROL) {
    for (uint32_t i = 0; i < op->num_regions; ++i) {
      MP_RETURN_IF_ERROR(cluster_sweep(find, op->regions[i]));
    }
  }
  const uint32_t next = find->place;
  mp_status_t status = NULL;
  find->place = place;
  if (is_kernel) {
    // A change of type alone has no kernel.
    const bool is_alias = op->num_results == 1 && mp_plan_aliased(&op->results[0]) != NULL;
    if (!is_alias) status = cluster_place(find, op);
  } else if (is_of_host) {
    status = cluster_use_all_in_memory(find, op);
  } else if (crosses || !mp_op_has(op, MP_OP_TRAIT_ALIAS) || mp_op_has(op, MP_OP_TRAIT_FLOW)) {
    for (uint32_t i = 0; i < op->num_results && status == NULL; ++i) {
      status = cluster_join_readers(find, &op->results[i], op->parent);
    }
    if (status == NULL) status = cluster_use_all_in_memory(find, op);
  }
  find->place = next;
  return status;
}

static mp_status_t cluster_sweep(mp_cluster_find_t *find, const mp_block_t *block) {
  for (const mp_op_t *op = block->last; op != NULL; op = op->prev) {
    MP_RETURN_IF_ERROR(cluster_op(find, op));
  }
  for (uint32_t i = 0; i < block->num_args; ++i) {
    MP_RETURN_IF_ERROR(cluster_join_readers(find, &block->args[i], block));
  }
  return NULL;
}

// ---- all ----

static mp_cluster_find_t cluster_rules(const mp_chip_figures_t *figures) {
  enum { TPU_ROW = 8192 };
  mp_cluster_find_t find = {.compiler = figures->compiler, .place = MP_CLUSTER_NONE - 1};
  double row = 0;
  if (figures->compiler == MP_CHIP_COMPILER_TPU) row = TPU_ROW;
  if (figures->compiler == MP_CHIP_COMPILER_GPU) row = MP_CLUSTER_GPU_ROW;
  find.rows_most = mp_figure_or(figures->cluster_row, row);
  find.product_rows_most = mp_figure_or(figures->cluster_product_row, 0);
  find.mixed_rows_most = mp_figure_or(figures->cluster_mixed_row, find.product_rows_most);
  find.scratch = mp_figure_or(figures->memory_scratch, 0);
  find.resident = mp_figure_or(figures->product_resident, 0);
  find.figures = figures;
  find.keeps_rows = !isnan(figures->product_rows);
  find.is_shared_out = mp_figure_or(figures->cluster_cores, 1) > 1;
  return find;
}

mp_status_t mp_clusters_find(const mp_module_t *module, const mp_chip_figures_t *figures,
                             mp_arena_t *arena, mp_clusters_t *out_clusters) {
  mp_cluster_find_t find = cluster_rules(figures);
  find.arena = arena;
  find.out = out_clusters;
  find.main = module->main->body;
  find.arg_attrs = module->main->arg_attrs;
  *out_clusters = (mp_clusters_t){0};
  MP_RETURN_IF_ERROR(mp_arena_create(&find.scratch_arena));
  mp_status_t status = mp_cluster_find_merged(&find);
  if (status == NULL) status = mp_cluster_note_tables(&find, module->main->body);
  if (status == NULL) status = cluster_sweep(&find, module->main->body);
  if (status == NULL) status = mp_cluster_find_bytes(&find);
  mp_arena_release(find.scratch_arena);
  return status;
}

const mp_cluster_t *mp_cluster_at(const mp_clusters_t *clusters, const mp_op_t *op) {
  const mp_cluster_entry_t *entry;
  MP_HASH_MAP_GET(&clusters->by_last, mp_hash_pointer(op), entry);
  if (entry == NULL) return NULL;
  const mp_cluster_t *cluster = &clusters->clusters.items[entry->cluster];
  return cluster->first_member == MP_CLUSTER_NONE ? NULL : cluster;
}

const mp_cluster_access_t *mp_cluster_accesses(const mp_clusters_t *clusters,
                                               const mp_cluster_t *cluster) {
  if (cluster->num_reads + cluster->num_writes == 0) return NULL;
  return &clusters->accesses.items[cluster->first_access];
}
