// One backward sweep per block: an op is decided about after all that use its results.
#include "sim/chip/clusters/cluster.h"

#include <math.h>

#include "sim/base/hash.h"
#include "sim/plan/plan.h"

// Who uses a value: nobody yet, one cluster alone, or several or something that is no cluster.
#define USED_BY_NONE UINT32_MAX
#define USED_BY_MANY (UINT32_MAX - 1)

typedef struct {
  uint64_t hash;  // mp_hash_pointer of the value
  uint32_t users;
  bool may_end;     // all users could take the result of a hero as it is computed
  uint32_t reader;  // the cluster for which `bytes` holds
  double bytes;     // that it reads of the value
} cluster_value_t;

typedef struct {
  mp_arena_t *arena, *scratch;
  mp_clusters_t *out;
  MP_HASH_MAP(cluster_value_t) values;
} find_t;

static mp_status_t cluster_value(find_t *find, const mp_value_t *value, cluster_value_t **out) {
  cluster_value_t *entry;
  const uint64_t hash = mp_hash_pointer(value);
  MP_HASH_MAP_GET(&find->values, hash, entry);
  if (entry == NULL) {
    const cluster_value_t fresh = {
        .hash = hash, .users = USED_BY_NONE, .may_end = true, .reader = MP_CLUSTER_NONE};
    MP_RETURN_IF_ERROR(MP_HASH_MAP_ADD(find->scratch, &find->values, &fresh));
    MP_HASH_MAP_GET(&find->values, hash, entry);
  }
  *out = entry;
  return NULL;
}

// ---- what ops are ----

// Computes its result element by element wherever it is wanted.
static bool cluster_is_loop(const mp_op_t *op, mp_work_class_t work_class) {
  if (op->code == MP_OP_DYNAMIC_UPDATE_SLICE) return false;
  return work_class == MP_WORK_ELEMENTWISE || work_class == MP_WORK_COPY ||
         work_class == MP_WORK_SCALAR || work_class == MP_WORK_GATHER;
}

// Has a kernel of its own, which can compute its operands or go on with its results.
static bool cluster_is_hero(mp_work_class_t work_class) {
  return work_class == MP_WORK_MATMUL || work_class == MP_WORK_CONVOLUTION ||
         work_class == MP_WORK_REDUCTION || work_class == MP_WORK_WINDOW;
}

// Made again by whoever reads it.
static bool cluster_is_generator(const mp_op_t *op) {
  return op->code == MP_OP_BROADCAST_IN_DIM || op->code == MP_OP_IOTA || op->code == MP_OP_CONSTANT;
}

// Whether the op's kernel can compute operand `operand` itself, element by element. What is looked
// up in a table, or is updated, has to be in memory.
static bool cluster_takes(const mp_op_t *op, mp_work_class_t work_class, uint32_t operand) {
  if (op->code == MP_OP_DYNAMIC_UPDATE_SLICE || op->code == MP_OP_GATHER) return operand != 0;
  if (op->code == MP_OP_SCATTER) return operand >= op->num_operands / 2;
  return cluster_is_loop(op, work_class) || cluster_is_hero(work_class);
}

static double cluster_count(const mp_op_t *op) {
  double most = 0;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    int64_t count = 0;
    const mp_type_t *type = op->results[i].type;
    if (mp_type_is_tensor(type) && mp_type_num_elements(type, &count)) {
      most = fmax(most, (double)count);
    }
  }
  return most;
}

// Whether the op goes through an array of `count` elements one by one, so that it can do so while
// its operand is being computed.
static bool cluster_goes_along(const mp_op_t *op, mp_work_class_t work_class, double count) {
  const bool is_along = work_class == MP_WORK_ELEMENTWISE || work_class == MP_WORK_SCALAR ||
                        op->code == MP_OP_TRANSPOSE;
  return is_along && cluster_count(op) == count;
}

// The value whose bytes this one has.
static const mp_value_t *cluster_root(const mp_value_t *value) {
  for (const mp_value_t *of; (of = mp_plan_aliased(value)) != NULL;) value = of;
  return value;
}

// What an op that takes its operand element by element reads in place of it; NULL: nothing.
static const mp_value_t *cluster_source(const mp_value_t *value) {
  for (;;) {
    value = cluster_root(value);
    if (value->op == NULL || !cluster_is_generator(value->op)) return value;
    if (value->op->code == MP_OP_IOTA) return NULL;
    if (value->op->code == MP_OP_CONSTANT) return mp_op_splat(value->op) == NULL ? value : NULL;
    value = value->op->operands[0];
  }
}

// ---- uses ----

static mp_status_t cluster_use(find_t *find, const mp_value_t *value, uint32_t cluster,
                               bool may_end) {
  cluster_value_t *entry;
  MP_RETURN_IF_ERROR(cluster_value(find, value, &entry));
  entry->users = entry->users == USED_BY_NONE || entry->users == cluster ? cluster : USED_BY_MANY;
  entry->may_end &= may_end;
  return NULL;
}

// Something reads all the values' bytes from memory.
static mp_status_t cluster_use_in_memory(find_t *find, const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(cluster_use(find, cluster_root(op->operands[i]), USED_BY_MANY, false));
  }
  return NULL;
}

static double cluster_value_count(const mp_value_t *value) {
  int64_t count = 0;
  if (!mp_type_is_tensor(value->type) || !mp_type_num_elements(value->type, &count)) return 0;
  return (double)count;
}

static mp_status_t cluster_use_operands(find_t *find, const mp_op_t *op, mp_work_class_t work_class,
                                        uint32_t cluster) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const bool takes = cluster_takes(op, work_class, i);
    const mp_value_t *value = takes ? cluster_source(op->operands[i]) : NULL;
    if (!takes) value = cluster_root(op->operands[i]);
    if (value == NULL) continue;
    const bool along = cluster_goes_along(op, work_class, cluster_value_count(value));
    MP_RETURN_IF_ERROR(cluster_use(find, value, takes ? cluster : USED_BY_MANY, along));
  }
  return NULL;
}

// ---- membership ----

// The cluster that uses all results of the op, and no others do; MP_CLUSTER_NONE if there is none.
static mp_status_t cluster_only_user(find_t *find, const mp_op_t *op, uint32_t *out_cluster,
                                     bool *out_may_end) {
  uint32_t only = USED_BY_NONE;
  *out_cluster = MP_CLUSTER_NONE;
  *out_may_end = true;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    cluster_value_t *entry;
    MP_RETURN_IF_ERROR(cluster_value(find, &op->results[i], &entry));
    if (entry->users == USED_BY_NONE) continue;
    if (only != USED_BY_NONE && only != entry->users) return NULL;
    only = entry->users;
    *out_may_end &= entry->may_end;
  }
  if (only == USED_BY_NONE || only == USED_BY_MANY) return NULL;
  if (find->out->clusters.items[only].block == op->parent) *out_cluster = only;
  return NULL;
}

// Of two classes, that of the kernel in which both are.
static mp_work_class_t cluster_class(mp_work_class_t a, mp_work_class_t b) {
  static const mp_work_class_t order[] = {MP_WORK_GATHER, MP_WORK_ELEMENTWISE, MP_WORK_COPY,
                                          MP_WORK_SCALAR};
  for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); ++i) {
    if (a == order[i] || b == order[i]) return order[i];
  }
  return a;
}

static void cluster_add_work(mp_cluster_t *cluster, const mp_op_t *op, const mp_work_t *work) {
  mp_work_t *sum = &cluster->work;
  sum->flops += work->flops;
  sum->transcendentals += work->transcendentals;
  sum->vector_flops += work->vector_flops;
  sum->vector_transcendentals += work->vector_transcendentals;
  if (!cluster_is_loop(op, work->work_class)) {
    cluster->leader = op;
    sum->work_class = work->work_class;
    sum->product = work->product;
    cluster->has_hero = true;
  } else if (!cluster->has_hero) {
    sum->work_class = cluster_class(sum->work_class, work->work_class);
  }
  cluster->count = fmax(cluster->count, cluster_count(op));
}

static mp_status_t cluster_add_op(find_t *find, const mp_op_t *op, uint32_t number) {
  mp_clusters_t *out = find->out;
  mp_cluster_t *cluster = &out->clusters.items[number];
  const mp_cluster_member_t member = {op, cluster->first_member};
  const mp_cluster_entry_t entry = {mp_hash_pointer(op), number};
  cluster->first_member = out->members.count;
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(find->arena, &out->members, member));
  return MP_HASH_MAP_ADD(find->arena, &out->of_op, &entry);
}

// Whether the op can be in the only cluster that uses its results.
static bool cluster_can_join(const mp_cluster_t *cluster, const mp_op_t *op,
                             mp_work_class_t work_class, bool may_end) {
  if (cluster_is_loop(op, work_class)) return true;
  return cluster_is_hero(work_class) && may_end && !cluster->has_hero &&
         cluster->count == cluster_count(op);
}

static mp_status_t cluster_place(find_t *find, const mp_op_t *op, const mp_work_t *work) {
  uint32_t number = MP_CLUSTER_NONE;
  bool may_end = false;
  MP_RETURN_IF_ERROR(cluster_only_user(find, op, &number, &may_end));
  mp_clusters_t *out = find->out;
  if (number == MP_CLUSTER_NONE ||
      !cluster_can_join(&out->clusters.items[number], op, work->work_class, may_end)) {
    const mp_cluster_t fresh = {.leader = op,
                                .block = op->parent,
                                .work.work_class = work->work_class,
                                .first_member = MP_CLUSTER_NONE};
    number = out->clusters.count;
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(find->arena, &out->clusters, fresh));
  }
  cluster_add_work(&out->clusters.items[number], op, work);
  MP_RETURN_IF_ERROR(cluster_add_op(find, op, number));
  return cluster_use_operands(find, op, work->work_class, number);
}

// ---- the sweep ----

static mp_status_t cluster_sweep(find_t *find, const mp_block_t *block);

// A broadcast, an iota or a constant: all its users make it themselves, unless one of them wants it
// in memory.
static mp_status_t cluster_generator(find_t *find, const mp_op_t *op, const mp_work_t *work) {
  cluster_value_t *entry;
  if (op->code == MP_OP_CONSTANT) return NULL;
  MP_RETURN_IF_ERROR(cluster_value(find, &op->results[0], &entry));
  return entry->users == USED_BY_NONE ? NULL : cluster_place(find, op, work);
}

static mp_status_t cluster_op(find_t *find, const mp_op_t *op) {
  const mp_op_role_t role = mp_op_info(op->code)->role;
  mp_work_t work;
  mp_work_of_op(op, &work);
  if (cluster_is_generator(op)) return cluster_generator(find, op, &work);
  if (role == MP_OP_ROLE_CONTROL) {
    for (uint32_t i = 0; i < op->num_regions; ++i) {
      MP_RETURN_IF_ERROR(cluster_sweep(find, op->regions[i]));
    }
    return cluster_use_in_memory(find, op);
  }
  if (role == MP_OP_ROLE_KERNEL) {
    // A change of type alone has no kernel.
    if (op->num_results == 1 && mp_plan_aliased(&op->results[0]) != NULL) return NULL;
    return cluster_place(find, op, &work);
  }
  const bool is_alias = mp_op_has(op, MP_OP_TRAIT_ALIAS) && !mp_op_has(op, MP_OP_TRAIT_FLOW);
  return is_alias ? NULL : cluster_use_in_memory(find, op);
}

static mp_status_t cluster_sweep(find_t *find, const mp_block_t *block) {
  for (const mp_op_t *op = block->last; op != NULL; op = op->prev) {
    MP_RETURN_IF_ERROR(cluster_op(find, op));
  }
  return NULL;
}

// ---- bytes ----

// Adds what the op reads of a value that its cluster does not make; all of the value at most, be
// it read by several ops of the cluster.
static mp_status_t cluster_read(find_t *find, uint32_t number, const mp_value_t *value,
                                double bytes) {
  cluster_value_t *entry;
  MP_RETURN_IF_ERROR(cluster_value(find, value, &entry));
  if (entry->reader != number) {
    entry->reader = number;
    entry->bytes = 0;
  }
  bytes = fmin(bytes, mp_work_bytes_of(value->type) - entry->bytes);
  entry->bytes += bytes;
  find->out->clusters.items[number].bytes += bytes;
  return NULL;
}

static bool cluster_makes(const mp_clusters_t *clusters, uint32_t number, const mp_value_t *value) {
  const mp_cluster_entry_t *entry;
  if (value->op == NULL) return false;
  MP_HASH_MAP_GET(&clusters->of_op, mp_hash_pointer(value->op), entry);
  return entry != NULL && entry->cluster == number;
}

static mp_status_t cluster_read_operands(find_t *find, uint32_t number, const mp_op_t *op) {
  mp_work_t work;
  mp_work_of_op(op, &work);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const bool takes = cluster_takes(op, work.work_class, i);
    const mp_value_t *value =
        takes ? cluster_source(op->operands[i]) : cluster_root(op->operands[i]);
    if (value == NULL || cluster_makes(find->out, number, value)) continue;
    MP_RETURN_IF_ERROR(cluster_read(find, number, value, mp_work_bytes_read(op, i)));
  }
  return NULL;
}

static mp_status_t cluster_write_results(find_t *find, uint32_t number, const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_results; ++i) {
    cluster_value_t *entry;
    MP_RETURN_IF_ERROR(cluster_value(find, &op->results[i], &entry));
    if (entry->users == number) continue;
    find->out->clusters.items[number].bytes += mp_work_bytes_written(op, i);
  }
  return NULL;
}

static mp_status_t cluster_count_bytes(find_t *find) {
  const mp_clusters_t *out = find->out;
  for (uint32_t number = 0; number < out->clusters.count; ++number) {
    uint32_t at = out->clusters.items[number].first_member;
    for (; at != MP_CLUSTER_NONE; at = out->members.items[at].next) {
      MP_RETURN_IF_ERROR(cluster_read_operands(find, number, out->members.items[at].op));
      MP_RETURN_IF_ERROR(cluster_write_results(find, number, out->members.items[at].op));
    }
  }
  return NULL;
}

mp_status_t mp_clusters_find(const mp_module_t *module, mp_arena_t *arena,
                             mp_clusters_t *out_clusters) {
  find_t find = {.arena = arena, .out = out_clusters};
  *out_clusters = (mp_clusters_t){0};
  MP_RETURN_IF_ERROR(mp_arena_create(&find.scratch));
  mp_status_t status = cluster_sweep(&find, module->main->body);
  if (status == NULL) status = cluster_count_bytes(&find);
  mp_arena_release(find.scratch);
  return status;
}

const mp_cluster_t *mp_cluster_of(const mp_clusters_t *clusters, const mp_op_t *op) {
  const mp_cluster_entry_t *entry;
  MP_HASH_MAP_GET(&clusters->of_op, mp_hash_pointer(op), entry);
  return entry == NULL ? NULL : &clusters->clusters.items[entry->cluster];
}
