// Locations that are stored beside a module.
#include "sim/mosaic/read/mosaic_bytecode.h"

// Goes through a module and counts; sets locations if `locs` is given.
typedef struct {
  const mp_mosaic_attr_t *locs;
  uint64_t at;
} locator_t;

static void mosaic_locations_next(locator_t *locator, const mp_loc_t **out_loc) {
  const uint64_t at = locator->at++;
  if (locator->locs == NULL) return;
  const mp_mosaic_attr_t *loc = locator->locs->list.items[at].value;
  if (loc->kind == MP_MOSAIC_LOC) *out_loc = loc->loc;
}

static void mosaic_locations_block(locator_t *locator, const mp_mosaic_block_t *block) {
  locator->at += block->num_args;
  for (mp_mosaic_op_t *op = block->first; op != NULL; op = op->next) {
    mosaic_locations_next(locator, &op->loc);
    for (uint32_t i = 0; i < op->num_regions; ++i) mosaic_locations_block(locator, op->regions[i]);
  }
}

static uint64_t mosaic_locations_module(mp_mosaic_module_t *module, const mp_mosaic_attr_t *locs) {
  locator_t locator = {.locs = locs, .at = 1};
  for (mp_mosaic_func_t *func = module->funcs.first; func != NULL; func = func->next) {
    mosaic_locations_next(&locator, &func->loc);
    mosaic_locations_block(&locator, func->body);
  }
  return locator.at;
}

void mp_mosaic_set_locations(mp_mosaic_module_t *module, const mp_mosaic_attr_t *locs) {
  if (mosaic_locations_module(module, NULL) != locs->list.count) return;
  mosaic_locations_module(module, locs);
}
