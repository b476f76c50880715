#include "sim/mosaic/price/price.h"

#include <math.h>

#include "sim/mosaic/price/price_grid.h"
#include "sim/mosaic/run/mosaic_scalar.h"

// Memory of scalars that is followed element by element.
enum { PRICE_MOST_CELLS = 1 << 20 };

typedef struct {
  const mp_price_chip_t *chip;
  const mp_price_operand_t *operands;
  uint32_t num_operands, num_dynamic;
  mp_price_walk_t walk;
  mp_price_grid_t grid;
} pricer_t;

static uint32_t price_count(const mp_mosaic_func_t *func, const char *name) {
  const mp_mosaic_attr_t *attr = mp_mosaic_attr(func->attrs, func->num_attrs, name);
  return attr == NULL || attr->i64 < 0 || attr->i64 > func->body->num_args ? 0
                                                                           : (uint32_t)attr->i64;
}

// ---- arguments ----

static mp_status_t price_cells(pricer_t *p, const mp_mosaic_type_t *type,
                               mp_price_object_t *object) {
  int64_t count = 0;
  if (type->space != MP_MOSAIC_SPACE_SMEM || type->element != MP_MOSAIC_NUMBER) return NULL;
  if (!mp_mosaic_num_elements(type, &count) || count > PRICE_MOST_CELLS) return NULL;
  object->count = count;
  object->cells = MP_ARENA_ARRAY(p->walk.arena, int64_t, (size_t)count + 1);
  object->is_known = MP_ARENA_ARRAY(p->walk.arena, bool, (size_t)count + 1);
  return object->cells == NULL || object->is_known == NULL ? mp_status_out_of_memory() : NULL;
}

// A prefetched operand: the kernel may write over it.
static void price_fill_cells(const mp_price_operand_t *operand, mp_price_object_t *object) {
  const size_t bytes = mp_dtype_size(object->dtype);
  if (operand->data == NULL || object->cells == NULL || !mp_dtype_is_integer(object->dtype)) return;
  for (int64_t i = 0; i < object->count && i < operand->count; ++i) {
    const char *element = (const char *)operand->data + (operand->is_splat ? 0 : (size_t)i * bytes);
    object->cells[i] = mp_mosaic_scalar_load(object->dtype, element);
    object->is_known[i] = true;
  }
}

static mp_status_t price_set_argument(pricer_t *p, uint32_t arg) {
  const mp_mosaic_value_t *value = &p->grid.main->func->body->args[arg];
  const uint32_t first = p->grid.rank;
  if (value->type->kind != MP_MOSAIC_MEMREF) return NULL;
  mp_price_object_t *object = MP_ARENA_NEW(p->walk.arena, mp_price_object_t);
  MP_RETURN_IF_NULL(object);
  *object = (mp_price_object_t){.dtype = value->type->dtype};
  MP_RETURN_IF_ERROR(price_cells(p, value->type, object));
  const uint32_t operand = p->num_dynamic + arg - first;
  if (arg < first + p->grid.num_prefetched && operand < p->num_operands) {
    price_fill_cells(&p->operands[operand], object);
  }
  return mp_price_view(&p->walk, value->type, object, &p->grid.main->slots[value->id].view);
}

// ---- the grid ----

static mp_status_t price_read_bounds(pricer_t *p, const mp_mosaic_func_t *func) {
  const mp_mosaic_attr_t *bounds = mp_mosaic_attr(func->attrs, func->num_attrs, "iteration_bounds");
  if (bounds == NULL) return NULL;
  if (bounds->kind != MP_MOSAIC_INTS || bounds->ints.count > MP_PRICE_MAX_GRID)
    return mp_status_make(MP_UNIMPLEMENTED, "its grid has more than %d dimensions",
                          MP_PRICE_MAX_GRID);
  p->grid.rank = bounds->ints.count;
  for (uint32_t d = 0; d < p->grid.rank; ++d) {
    int64_t *bound = &p->grid.bounds[d];
    *bound = bounds->ints.values[d];
    if (*bound != MP_MOSAIC_DYNAMIC) continue;
    const mp_price_operand_t *operand =
        p->num_dynamic < p->num_operands ? &p->operands[p->num_dynamic] : NULL;
    ++p->num_dynamic;
    const bool is_known = operand != NULL && operand->data != NULL && operand->count > 0;
    *bound = is_known ? mp_mosaic_scalar_load(MP_DTYPE_S32, operand->data) : 1;
    if (!is_known) p->walk.is_guessed = true;
  }
  return NULL;
}

// Cores divide the first dimension that is parallel. Returns how many run.
static uint32_t price_divide(pricer_t *p, const mp_mosaic_func_t *func) {
  const mp_mosaic_attr_t *semantics =
      mp_mosaic_attr(func->attrs, func->num_attrs, "dimension_semantics");
  const uint32_t cores = p->chip->cores;
  if (cores < 2 || semantics == NULL || semantics->kind != MP_MOSAIC_ARRAY) return 1;
  for (uint32_t d = 0; d < p->grid.rank && d < semantics->list.count; ++d) {
    const mp_mosaic_attr_t *word = semantics->list.items[d].value;
    if (word->kind == MP_MOSAIC_DIALECT && word->list.count == 1) word = word->list.items[0].value;
    if (word->kind != MP_MOSAIC_STRING || !mp_str_is(word->str, "parallel")) continue;
    if (p->grid.bounds[d] < 2) continue;
    p->grid.bounds[d] = (p->grid.bounds[d] + cores - 1) / cores;
    return cores;
  }
  return 1;
}

static mp_price_shape_t price_shape(const mp_price_grid_t *grid) {
  mp_price_shape_t shape = {.rank = grid->rank};
  for (uint32_t d = 0; d < grid->rank; ++d) shape.dims[d] = grid->bounds[d];
  return shape;
}

// ---- the price ----

// Cycles that a kernel with fewer steps would not need: units and bandwidth are busy without them.
static double price_overhead(const pricer_t *p) {
  const mp_price_walk_t *walk = &p->walk;
  const double moved = walk->bytes / p->chip->bandwidth * p->chip->clock;
  const double needed = fmax(walk->compute - p->grid.overhead, moved);
  return p->grid.steps > 1 ? fmax(0, walk->now - p->grid.fill - needed) : 0;
}

static void price_finish(const pricer_t *p, uint32_t cores, mp_price_t *out) {
  const mp_price_walk_t *walk = &p->walk;
  const double clock = p->chip->clock;
  out->seconds = walk->now / clock;
  out->fill = p->grid.fill / clock;
  out->compute = walk->compute / clock;
  out->wait = walk->wait / clock;
  out->overhead = price_overhead(p) / clock;
  out->steps = p->grid.steps;
  out->copies = walk->copies * cores;
  out->bytes = walk->bytes * cores;
  out->flops = walk->flops * cores;
  out->block = p->grid.block;
  out->is_guessed = walk->is_guessed;
  out->is_sampled = walk->is_sampled;
  for (int u = 0; u < MP_PRICE_UNIT_COUNT; ++u) out->units[u] = walk->units[u] / clock;
}

static mp_status_t price_run(pricer_t *p, const mp_mosaic_func_t *func, mp_price_t *out) {
  mp_price_grid_t *grid = &p->grid;
  *out = (mp_price_t){0};
  grid->walk = &p->walk;
  MP_RETURN_IF_ERROR(price_read_bounds(p, func));
  out->grid = price_shape(grid);
  const uint32_t cores = price_divide(p, func);
  grid->num_prefetched = price_count(func, "scalar_prefetch");
  p->walk.bounds = grid->bounds;
  MP_RETURN_IF_ERROR(mp_price_prepare(&p->walk, func, &grid->main));
  for (uint32_t i = grid->rank; i < func->body->num_args; ++i)
    MP_RETURN_IF_ERROR(price_set_argument(p, i));
  const uint32_t before = p->num_dynamic + grid->num_prefetched;
  const uint32_t num_inputs = p->num_operands < before ? 0 : p->num_operands - before;
  MP_RETURN_IF_ERROR(mp_price_make_windows(grid, num_inputs, &out->vmem));
  MP_RETURN_IF_ERROR(mp_price_grid_run(grid));
  price_finish(p, cores, out);
  return NULL;
}

mp_status_t mp_price_kernel(const mp_price_chip_t *chip, const mp_mosaic_module_t *module,
                            const mp_price_operand_t *operands, uint32_t num_operands,
                            mp_price_t *out_price) {
  pricer_t p = {.chip = chip, .operands = operands, .num_operands = num_operands};
  const mp_mosaic_func_t *func = mp_mosaic_find_kernel(module);
  uint32_t num_funcs = 0;
  if (func == NULL) return mp_status_make(MP_INVALID_ARGUMENT, "the module is empty");
  for (const mp_mosaic_func_t *f = module->funcs.first; f != NULL; f = f->next) ++num_funcs;
  p.walk = (mp_price_walk_t){.chip = chip, .module = module};
  MP_RETURN_IF_ERROR(mp_arena_create(&p.walk.arena));
  p.walk.funcs = MP_ARENA_ARRAY(p.walk.arena, mp_price_func_t, num_funcs);
  mp_status_t status =
      p.walk.funcs == NULL ? mp_status_out_of_memory() : price_run(&p, func, out_price);
  mp_arena_release(p.walk.arena);
  return status;
}
