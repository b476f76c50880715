// What a program of the model keeps, and its end.
#include <math.h>

#include "collectives/mailbox.h"
#include "sim/base/alloc.h"
#include "sim/base/hash.h"
#include "sim/chip/mosaic/mosaic_cost.h"
#include "sim/model/clock/model_impl.h"
#include "sim/model/network/traffic/traffic.h"

void mp_model_set_kin(mp_model_program_t *program) {
  const mp_program_t *text = program->chip_program->program;
  const double sizes[] = {text->flops, text->bytes_accessed};
  uint64_t key = mp_hash_bytes(MP_HASH_START, program->name.data, program->name.size);
  key = mp_hash_bytes(key, sizes, sizeof(sizes));
  key = mp_hash_u64(key, (uint64_t)program->num_devices << 32 | program->chip_program->num_kernels);
  program->kin.key = mp_hash_u64(key, program->chip_program->num_collectives);
  program->kin.devices =
      mp_hash_bytes(MP_HASH_START, program->ids, program->num_devices * sizeof(*program->ids));
}

void mp_model_fold_memo(mp_model_program_t *program, mp_memo_t *memo) {
  if (memo->hits != 0) mp_books_add(&program->books, &memo->books, memo->hits);
  memo->hits = 0;
}

static void model_program_fold_memos(mp_model_program_t *program) {
  for (uint32_t i = 0; i < MP_MODEL_MEMOS; ++i) mp_model_fold_memo(program, &program->memos[i]);
  mp_model_fold_memo(program, &program->again);
}

mp_model_program_books_t mp_model_books_of(mp_model_program_t *program) {
  model_program_fold_memos(program);
  return (mp_model_program_books_t){.name = program->name,
                                    .key = program->kin.key,
                                    .serial = program->serial,
                                    .program = program->chip_program->program,
                                    .chip_program = program->chip_program,
                                    .num_devices = program->num_devices,
                                    .ids = program->ids,
                                    .launches = program->launches,
                                    .runs = program->runs,
                                    .time = program->time,
                                    .available = program->available,
                                    .transfers = program->transfers,
                                    .rhythm = mp_model_rhythm_of(program),
                                    .num_callers = program->callers.count,
                                    .callers = program->callers.items,
                                    .books = program->books,
                                    .branches = program->branches,
                                    .unknown_branch = program->model->unknown_branch,
                                    .unknown_trip_count = program->model->unknown_trip_count};
}

// ---- Links ----

mp_status_t mp_model_collective_seconds(void *context, const mp_collective_t *collective,
                                        double *out_seconds) {
  const mp_model_program_t *program = context;
  mp_network_t *network = program->model->network;
  if (mp_network_is_of_pairs(collective)) {
    double longest = 0;
    for (uint32_t i = 0; i < collective->num_pairs && i < MP_MODEL_PAIRS; ++i) {
      mp_transfer_t transfer;
      MP_RETURN_IF_ERROR(
          mp_network_message(network, mp_network_device(program->ids[collective->pairs[2 * i]]),
                             mp_network_device(program->ids[collective->pairs[2 * i + 1]]),
                             (double)mp_message_bytes(collective), &transfer));
      longest = fmax(longest, mp_flows_transfer_alone(network, &transfer));
    }
    *out_seconds = longest;
    return NULL;
  }
  const mp_traffic_t *traffic = NULL;
  *out_seconds = 0;
  if (collective->groups->num_groups == 0) return NULL;
  MP_RETURN_IF_ERROR(mp_network_traffic(network, collective, 0, program->ids, &traffic));
  *out_seconds = traffic->alone;
  return NULL;
}

// The device of a member of a collective's first group.
static const mp_pod_device_t *model_program_member(const mp_model_program_t *program,
                                                   const mp_groups_t *groups, uint32_t member) {
  return mp_pod_device(mp_network_pod(program->model->network),
                       program->ids[groups->members[groups->offsets[0] + member]]);
}

// How many places the first group has along a dimension; 0: its places are not neighbours.
static uint32_t model_program_places(const mp_model_program_t *program, const mp_groups_t *groups,
                                     int32_t dim) {
  enum { BITS = 64, WORDS = 16 };
  const uint32_t size = groups->offsets[1] - groups->offsets[0];
  uint64_t seen[WORDS] = {0};
  uint32_t count = 0;
  for (uint32_t i = 0; i < size; ++i) {
    const uint32_t at = (uint32_t)model_program_member(program, groups, i)->coords[dim];
    if (at >= BITS * WORDS) return 0;
    const uint64_t bit = (uint64_t)1 << at % BITS;
    count += (seen[at / BITS] & bit) == 0;
    seen[at / BITS] |= bit;
  }
  return count;
}

mp_chip_spread_t mp_model_collective_spread(void *context, const mp_collective_t *collective) {
  const mp_model_program_t *program = context;
  const mp_groups_t *groups = collective->groups;
  if (groups == NULL || groups->num_groups == 0) return (mp_chip_spread_t){1, 1};
  const uint32_t size = groups->offsets[1] - groups->offsets[0];
  const mp_pod_device_t *first = model_program_member(program, groups, 0);
  uint32_t cores = 0, num_dims = 0;
  for (uint32_t i = 0; i < size; ++i) {
    const mp_pod_device_t *device = model_program_member(program, groups, i);
    cores += device->slice_index == first->slice_index && device->chip_index == first->chip_index;
  }
  const int32_t all_dims = mp_pod_info(mp_network_pod(program->model->network))->num_dims;
  uint64_t places = 1;
  for (int32_t dim = 0; dim < all_dims; ++dim) {
    const uint32_t along = model_program_places(program, groups, dim);
    num_dims += along > 1;
    places *= along;
  }
  const uint32_t chips = size / cores;
  return (mp_chip_spread_t){chips, places == chips ? num_dims : 1};
}

// ---- Ends ----

static void model_program_free_variants(mp_model_program_t *program) {
  while (program->variants != NULL) {
    mp_variant_t *variant = program->variants;
    program->variants = variant->next;
    mp_replay_release(variant->replay);
    mp_free(variant);
  }
}

static void model_program_free_kernels(mp_model_program_t *program) {
  if (program->kernels == NULL) return;
  for (uint32_t i = 0; i < program->chip_program->num_controls; ++i) {
    mp_mosaic_module_release(program->kernels[i]);
  }
}

void mp_model_free_program(mp_model_program_t *program) {
  model_program_free_variants(program);
  mp_replay_release(program->replay);
  for (uint32_t i = 0; i < MP_MODEL_MEMOS; ++i) MP_ARRAY_FREE(&program->memos[i].spans);
  MP_ARRAY_FREE(&program->callers);
  model_program_free_kernels(program);
  mp_arena_release(program->arena);
  mp_program_release(program->adopted);
  mp_free(program);
}

void mp_model_unref_program(mp_model_program_t *program) {
  if (--program->references != 0) return;
  mp_model_t *model = program->model;
  if (model->on_retire != NULL) {
    const mp_model_program_books_t books = mp_model_books_of(program);
    model->on_retire(&books, model->retire_context);
  }
  MP_LIST_REMOVE(&model->programs, program, prev, next);
  program->next = model->dead;
  model->dead = program;
}

void mp_model_unlock(mp_model_t *model) {
  // They have no owner now, so they can be freed without the lock, which foreign code must not be
  // called under.
  mp_model_program_t *dead = model->dead;
  model->dead = NULL;
  mp_unlock(&model->lock);
  while (dead != NULL) {
    mp_model_program_t *program = dead;
    dead = program->next;
    mp_model_free_program(program);
  }
}

// Gives back what a launch holds.
static void model_program_empty_entry(mp_entry_t *entry) {
  if (entry->shares != NULL) {
    for (uint32_t i = 0; i < entry->program->num_devices; ++i)
      mp_path_clear(&entry->shares[i].path);
  }
  if (entry->program != NULL) mp_model_unref_program(entry->program);
  entry->shares = NULL;
  entry->program = NULL;
}

void mp_model_free_entry(mp_entry_t *entry) {
  model_program_empty_entry(entry);
  mp_health_release(entry->health);
  mp_free(entry);
}

void mp_model_set_aside(mp_model_t *model, mp_entry_t *entry) {
  model_program_empty_entry(entry);
  entry->next = model->aside;
  model->aside = entry;
}

// ---- Kernels whose time depends on values ----

static bool model_program_is_by_values(const mp_chip_kernel_t *kernel) {
  return kernel->price != NULL && kernel->price->is_guessed && kernel->op->control != 0;
}

mp_status_t mp_model_read_kernels(mp_model_program_t *program) {
  const mp_chip_program_t *chip_program = program->chip_program;
  for (uint32_t k = 0; k < chip_program->num_kernels; ++k) {
    const mp_chip_kernel_t *kernel = &chip_program->kernels[k];
    if (!model_program_is_by_values(kernel)) continue;
    if (program->kernels == NULL) {
      program->kernels =
          MP_ARENA_ARRAY(program->arena, mp_mosaic_module_t *, chip_program->num_controls);
      MP_RETURN_IF_NULL(program->kernels);
    }
    mp_mosaic_module_t **module = &program->kernels[kernel->op->control];
    if (*module == NULL) *module = mp_mosaic_price_module(&program->model->chip, kernel->op);
  }
  return NULL;
}

uint64_t mp_model_program_kernel(const mp_model_program_t *program, uint32_t control,
                                 const void *const *operands, uint32_t num_operands) {
  const mp_chip_program_t *chip_program = program->chip_program;
  const mp_chip_t *chip = &program->model->chip;
  const mp_mosaic_module_t *module =
      program->kernels != NULL && control < chip_program->num_controls ? program->kernels[control]
                                                                       : NULL;
  for (uint32_t k = 0; k < chip_program->num_kernels && module != NULL; ++k) {
    const mp_chip_kernel_t *kernel = &chip_program->kernels[k];
    mp_price_t price;
    if (kernel->op->control != control || !model_program_is_by_values(kernel)) continue;
    if (kernel->op->num_operands != num_operands) return 0;
    if (!mp_mosaic_price(chip, kernel->op, module, operands, &price)) return 0;
    return mp_moment_of(mp_mosaic_seconds(chip, &price));
  }
  return 0;
}
