#include "sim/spmd/sharding/atoms.h"

#include <string.h>

#include "sim/base/assert.h"
#include "sim/base/hash.h"
#include "sim/ir/mesh.h"

// ---- the space ----

enum { MP_MAX_CUTS = 64 };

typedef struct {
  int64_t cuts[MP_MAX_CUTS];  // ascending divisors of the number of partitions
  uint32_t count;
} cuts_t;

static bool atoms_add_cut(cuts_t *cuts, int64_t value) {
  uint32_t at = 0;
  while (at < cuts->count && cuts->cuts[at] < value) ++at;
  if (at < cuts->count && cuts->cuts[at] == value) return true;
  if (cuts->count == MP_MAX_CUTS) return false;
  memmove(cuts->cuts + at + 1, cuts->cuts + at, (cuts->count - at) * sizeof(int64_t));
  cuts->cuts[at] = value;
  ++cuts->count;
  return true;
}

// Adds the products of a mesh's last axes, its strides, to the cuts; false when the mesh does not
// have all partitions.
static bool atoms_cut_by_mesh(const mp_mesh_t *mesh, uint32_t num_partitions, cuts_t *cuts) {
  int64_t size = 1;
  for (uint32_t i = mesh->num_axes; i-- > 0;) {
    if (mesh->axes[i].size < 1 || mesh->axes[i].size > (int64_t)num_partitions) return false;
    size *= mesh->axes[i].size;
    if (size > (int64_t)num_partitions || !atoms_add_cut(cuts, size)) return false;
  }
  return size == 1 || size == (int64_t)num_partitions;  // a mesh of one device adds nothing
}

static bool atoms_same_order(const mp_mesh_t *a, const mp_mesh_t *b) {
  return a->num_device_ids == b->num_device_ids &&
         (a->num_device_ids == 0 ||
          memcmp(a->device_ids, b->device_ids, a->num_device_ids * sizeof(*a->device_ids)) == 0);
}

// Finds the order of devices that all meshes of more than one device have in common; false when
// they have different ones.
static bool atoms_find_order(const mp_mesh_t *const *meshes, uint32_t num_meshes,
                             const mp_mesh_t **out_mesh) {
  const mp_mesh_t *first = NULL;
  for (uint32_t i = 0; i < num_meshes; ++i) {
    if (mp_mesh_size(meshes[i]) == 1) continue;
    if (first == NULL) first = meshes[i];
    if (!atoms_same_order(first, meshes[i])) return false;
  }
  *out_mesh = first;
  return true;
}

// Divides a ratio into primes, of which the smallest become the major atoms, and appends these
// after the atoms so far.
static bool atoms_append_primes(mp_atom_space_t *space, int64_t ratio, int64_t stride) {
  int64_t primes[MP_MAX_ATOMS];
  uint32_t count = 0;
  for (int64_t p = 2; ratio > 1; ++p) {
    if (p * p > ratio) p = ratio;
    for (; ratio % p == 0; ratio /= p) {
      if (count == MP_MAX_ATOMS) return false;
      primes[count++] = p;
    }
  }
  if (space->count + count > MP_MAX_ATOMS) return false;
  for (uint32_t i = count; i-- > 0;) {
    space->prime[space->count + i] = primes[i];
    space->stride[space->count + i] = stride;
    stride *= primes[i];
  }
  space->count += count;
  return true;
}

mp_status_t mp_atom_space_create(mp_arena_t *arena, const mp_mesh_t *const *meshes,
                                 uint32_t num_meshes, uint32_t num_partitions,
                                 mp_atom_space_t *out_space, bool *out_found) {
  cuts_t cuts = {.cuts = {1}, .count = 1};
  mp_atom_space_t space = {.num_partitions = num_partitions};
  bool found = atoms_add_cut(&cuts, num_partitions);
  for (uint32_t i = 0; i < num_meshes && found; ++i) {
    found = atoms_cut_by_mesh(meshes[i], num_partitions, &cuts);
  }
  for (uint32_t i = cuts.count; i-- > 1 && found;) {
    found = cuts.cuts[i] % cuts.cuts[i - 1] == 0 &&
            atoms_append_primes(&space, cuts.cuts[i] / cuts.cuts[i - 1], cuts.cuts[i - 1]);
  }
  const mp_mesh_t *ordered = NULL;
  found = found && atoms_find_order(meshes, num_meshes, &ordered);
  if (found && ordered != NULL) {
    MP_RETURN_IF_ERROR(mp_mesh_positions(arena, ordered, num_partitions, &space.positions));
  }
  int64_t covered = 1;
  for (uint32_t a = 0; a < space.count; ++a) covered *= space.prime[a];
  MP_ASSERT(!found || covered == (int64_t)num_partitions);  // the atoms number all partitions
  *out_space = space;
  *out_found = found;
  return NULL;
}

// ---- lists ----

int64_t mp_atoms_product(const mp_atom_space_t *space, const mp_atoms_t *atoms) {
  int64_t product = 1;
  for (uint32_t i = 0; i < atoms->count; ++i) product *= space->prime[atoms->atoms[i]];
  return product;
}

int64_t mp_atoms_take(const mp_atom_space_t *space, const mp_atoms_t *from, uint32_t *next,
                      int64_t size, bool may_be_uneven, mp_atoms_t *to) {
  while (*next < from->count) {
    const uint8_t atom = from->atoms[*next];
    MP_ASSERT(atom < space->count && to->count < MP_MAX_ATOMS);
    if (!may_be_uneven) {
      if (size % space->prime[atom] != 0) break;
      size /= space->prime[atom];
    }
    to->atoms[to->count++] = atom;
    ++*next;
  }
  return size;
}

uint32_t mp_atoms_set(const mp_atoms_t *atoms) {
  uint32_t set = 0;
  for (uint32_t i = 0; i < atoms->count; ++i) set |= 1u << atoms->atoms[i];
  return set;
}

int64_t mp_atoms_number(const mp_atom_space_t *space, const mp_atoms_t *atoms, uint32_t partition) {
  MP_ASSERT(partition < space->num_partitions);
  const int64_t position =
      space->positions == NULL ? (int64_t)partition : space->positions[partition];
  int64_t number = 0;
  for (uint32_t i = 0; i < atoms->count; ++i) {
    const uint8_t atom = atoms->atoms[i];
    number = number * space->prime[atom] + position / space->stride[atom] % space->prime[atom];
  }
  return number;
}

uint32_t mp_atoms_common_prefix(const mp_atoms_t *a, const mp_atoms_t *b) {
  uint32_t i = 0;
  while (i < a->count && i < b->count && a->atoms[i] == b->atoms[i]) ++i;
  return i;
}

bool mp_atoms_of_axis(const mp_atom_space_t *space, const mp_mesh_t *mesh,
                      const mp_axis_ref_t *axis, mp_atoms_t *list) {
  mp_mesh_digit_t digit = {1, 1};
  mp_status_t status = mp_mesh_find_digit(mesh, axis, &digit);
  if (status != NULL) {
    mp_status_ignore(status);
    return false;
  }
  int64_t covered = 1;
  for (uint32_t a = 0; a < space->count; ++a) {
    if (space->stride[a] < digit.stride || space->stride[a] >= digit.stride * digit.size) continue;
    if (list->count == MP_MAX_ATOMS) return false;
    list->atoms[list->count++] = (uint8_t)a;
    covered *= space->prime[a];
  }
  return covered == digit.size;
}

// ---- shardings ----

mp_status_t mp_atom_sharding_create(mp_arena_t *arena, uint32_t rank, bool is_open,
                                    mp_atom_sharding_t **out_sharding) {
  mp_atom_sharding_t *sharding = MP_ARENA_NEW(arena, mp_atom_sharding_t);
  mp_dim_atoms_t *dims = MP_ARENA_ARRAY(arena, mp_dim_atoms_t, rank);
  if (sharding == NULL || dims == NULL) return mp_status_out_of_memory();
  for (uint32_t d = 0; d < rank; ++d) dims[d].is_open = is_open;
  sharding->rank = rank;
  sharding->dims = dims;
  *out_sharding = sharding;
  return NULL;
}

// Appends the atoms of `list` that are not manual to `to`.
static void atoms_take_free(const mp_atoms_t *list, uint32_t manual, mp_atoms_t *to) {
  for (uint32_t i = 0; i < list->count; ++i) {
    if ((manual >> list->atoms[i] & 1) == 0) to->atoms[to->count++] = list->atoms[i];
  }
}

static bool atoms_import_set(const mp_atom_space_t *space, const mp_mesh_t *mesh,
                             const mp_axis_list_t *axes, uint32_t *out_set) {
  mp_atoms_t list = {0};
  for (uint32_t i = 0; i < axes->count; ++i) {
    if (!mp_atoms_of_axis(space, mesh, &axes->axes[i], &list)) return false;
  }
  *out_set = mp_atoms_set(&list);
  return true;
}

mp_status_t mp_atom_sharding_import(mp_arena_t *arena, const mp_atom_space_t *space,
                                    const mp_sdy_sharding_t *sharding, uint32_t manual,
                                    mp_atom_sharding_t **out_sharding, bool *out_found) {
  mp_atom_sharding_t *result = NULL;
  MP_RETURN_IF_ERROR(mp_atom_sharding_create(arena, sharding->rank, false, &result));
  *out_sharding = result;
  *out_found = false;
  for (uint32_t d = 0; d < sharding->rank; ++d) {
    result->dims[d].is_open = sharding->dims[d].is_open;
    result->dims[d].priority = sharding->dims[d].priority < 0 ? 0 : sharding->dims[d].priority;
  }
  result->mesh = sharding->mesh;
  result->unreduced_kind = sharding->unreduced_kind;
  result->manual = manual;
  // A mesh of one device has no influence on a sharding.
  if (sharding->mesh != NULL && mp_mesh_size(sharding->mesh) != 1) {
    uint32_t seen = 0;
    for (uint32_t d = 0; d < sharding->rank; ++d) {
      mp_atoms_t list = {0};
      const mp_axis_list_t *axes = &sharding->dims[d].axes;
      for (uint32_t i = 0; i < axes->count; ++i) {
        if (!mp_atoms_of_axis(space, sharding->mesh, &axes->axes[i], &list)) return NULL;
      }
      if ((seen & mp_atoms_set(&list)) != 0) return NULL;
      seen |= mp_atoms_set(&list);
      atoms_take_free(&list, manual, &result->dims[d].atoms);
    }
    if (!atoms_import_set(space, sharding->mesh, &sharding->replicated, &result->replicated) ||
        !atoms_import_set(space, sharding->mesh, &sharding->unreduced, &result->unreduced)) {
      return NULL;
    }
    result->unreduced &= ~manual;
    result->replicated &= ~manual;
  }
  MP_ASSERT(mp_atom_sharding_is_sound(space, result));
  *out_found = true;
  return NULL;
}

uint32_t mp_atom_sharding_used(const mp_atom_sharding_t *sharding) {
  uint32_t used = 0;
  for (uint32_t d = 0; d < sharding->rank; ++d) used |= mp_atoms_set(&sharding->dims[d].atoms);
  return used;
}

#ifdef MINIPOD_ASSERTS
bool mp_atom_sharding_is_sound(const mp_atom_space_t *space, const mp_atom_sharding_t *sharding) {
  uint32_t seen = 0;
  for (uint32_t d = 0; d < sharding->rank; ++d) {
    const mp_atoms_t *atoms = &sharding->dims[d].atoms;
    if (atoms->count > space->count) return false;
    for (uint32_t i = 0; i < atoms->count; ++i) {
      const uint32_t bit = 1u << atoms->atoms[i];
      if (atoms->atoms[i] >= space->count || (seen & bit) != 0) return false;
      seen |= bit;
    }
  }
  return ((sharding->replicated | sharding->unreduced | sharding->manual) >> space->count) == 0;
}
#endif

static bool atoms_equal(const mp_atoms_t *a, const mp_atoms_t *b) {
  return a->count == b->count && memcmp(a->atoms, b->atoms, a->count) == 0;
}

bool mp_atom_sharding_identical(const mp_atom_sharding_t *a, const mp_atom_sharding_t *b) {
  if (!mp_atom_sharding_equal(a, b) || a->replicated != b->replicated) return false;
  if (a->mesh != b->mesh &&
      (a->mesh == NULL || b->mesh == NULL || !mp_mesh_same_devices(a->mesh, b->mesh))) {
    return false;
  }
  for (uint32_t d = 0; d < a->rank; ++d) {
    if (a->dims[d].is_open != b->dims[d].is_open) return false;
    if (a->dims[d].priority != b->dims[d].priority) return false;
  }
  return true;
}

mp_status_t mp_atom_sharding_copy(mp_arena_t *arena, const mp_atom_sharding_t *from,
                                  mp_atom_sharding_t **out_sharding) {
  mp_atom_sharding_t *copy = MP_ARENA_NEW(arena, mp_atom_sharding_t);
  mp_dim_atoms_t *dims = MP_ARENA_ARRAY(arena, mp_dim_atoms_t, from->rank);
  if (copy == NULL || dims == NULL) return mp_status_out_of_memory();
  *copy = *from;
  copy->dims = dims;
  copy->next_in_group = NULL;
  if (from->rank != 0) memcpy(dims, from->dims, from->rank * sizeof(*dims));
  *out_sharding = copy;
  return NULL;
}

void mp_atom_sharding_share(const mp_atom_sharding_t *sharding) {
  mp_atom_sharding_t *other = sharding->next_in_group;
  for (; other != NULL && other != sharding; other = other->next_in_group) {
    MP_ASSERT(other->rank == sharding->rank);
    for (uint32_t d = 0; d < other->rank; ++d) other->dims[d] = sharding->dims[d];
    other->mesh = sharding->mesh;
    other->replicated = sharding->replicated;
    other->unreduced = sharding->unreduced;
    other->unreduced_kind = sharding->unreduced_kind;
  }
}

bool mp_atom_sharding_equal(const mp_atom_sharding_t *a, const mp_atom_sharding_t *b) {
  if (a->rank != b->rank || a->unreduced != b->unreduced) return false;
  if (a->unreduced != 0 && a->unreduced_kind != b->unreduced_kind) return false;
  for (uint32_t d = 0; d < a->rank; ++d) {
    if (!atoms_equal(&a->dims[d].atoms, &b->dims[d].atoms)) return false;
  }
  return true;
}

// ---- boxes ----

// Makes mp_boxes_t.partials: partitions that differ only in the unreduced atoms hold terms of one
// sum.
static mp_status_t atoms_make_partials(const mp_atom_space_t *space, const mp_spmd_scope_t *scope,
                                       uint32_t unreduced, const int32_t **out_partials) {
  mp_mesh_digit_t digits[MP_MAX_ATOMS];
  uint32_t count = 0;
  for (uint32_t a = 0; a < space->count; ++a) {
    if (unreduced >> a & 1) digits[count++] = (mp_mesh_digit_t){space->stride[a], space->prime[a]};
  }
  return mp_placement_partials(scope, space->positions, digits, count, out_partials);
}

// The key of a sharding's boxes, as numbers: everything that they depend on. Boxes of thousands of
// partitions are cached, because most are requested again and again.
enum { ATOMS_KEY = 6 + 2 * MP_MAX_RANK + 4 * MP_MAX_ATOMS };

static void atoms_add_digit(const mp_atom_space_t *space, uint32_t atom, int64_t *key,
                            uint32_t *count) {
  key[(*count)++] = space->prime[atom];
  key[(*count)++] = space->stride[atom];
}

static uint32_t atoms_make_key(const mp_atom_space_t *space, const mp_spmd_scope_t *scope,
                               const mp_type_t *type, const mp_atom_sharding_t *sharding,
                               int64_t *key) {
  uint32_t count = 0;
  key[count++] = scope->num_partitions;
  key[count++] = (int64_t)(intptr_t)scope->groups;
  key[count++] = (int64_t)(intptr_t)space->positions;
  const size_t bytes = space->num_partitions * sizeof(*space->positions);
  const bool is_in_order = space->positions == NULL;
  // The contents count, too: positions of another space may have had the same address.
  key[count++] = is_in_order ? 0 : (int64_t)mp_hash_bytes(MP_HASH_START, space->positions, bytes);
  key[count++] = type->rank;
  key[count++] = sharding->unreduced_kind;
  for (uint32_t d = 0; d < type->rank; ++d) {
    const mp_atoms_t *atoms = &sharding->dims[d].atoms;
    key[count++] = type->dims[d];
    key[count++] = atoms->count;
    for (uint32_t i = 0; i < atoms->count; ++i)
      atoms_add_digit(space, atoms->atoms[i], key, &count);
  }
  for (uint32_t a = 0; a < space->count; ++a) {
    if (sharding->unreduced >> a & 1) atoms_add_digit(space, a, key, &count);
  }
  MP_ASSERT(count <= ATOMS_KEY);
  return count;
}

static mp_status_t atoms_make_boxes(const mp_atom_space_t *space, const mp_spmd_scope_t *scope,
                                    const mp_type_t *type, const mp_atom_sharding_t *sharding,
                                    const mp_boxes_t **out_boxes) {
  const int32_t *partials = NULL;
  if (sharding->unreduced != 0) {
    MP_RETURN_IF_ERROR(atoms_make_partials(space, scope, sharding->unreduced, &partials));
  }
  mp_boxes_t boxes;
  int64_t *starts = NULL;
  int64_t *sizes = NULL;
  MP_RETURN_IF_ERROR(mp_placement_start(scope, type, &boxes, &starts, &sizes));
  boxes.partials = partials;
  boxes.unreduced_kind = sharding->unreduced_kind;
  for (uint32_t d = 0; d < type->rank; ++d) {
    const mp_atoms_t *atoms = &sharding->dims[d].atoms;
    const int64_t parts = mp_atoms_product(space, atoms);
    for (uint32_t p = 0; p < space->num_partitions; ++p) {
      const size_t at = (size_t)p * type->rank + d;
      mp_placement_part(type->dims[d], parts, mp_atoms_number(space, atoms, p), &starts[at],
                        &sizes[at]);
    }
  }
  return mp_spmd_pool_boxes(scope->pool, &boxes, out_boxes);
}

mp_status_t mp_atom_sharding_boxes(const mp_atom_space_t *space, const mp_spmd_scope_t *scope,
                                   const mp_type_t *type, const mp_atom_sharding_t *sharding,
                                   const mp_boxes_t **out_boxes) {
  *out_boxes = NULL;
  if (!mp_type_is_static(type) || sharding == NULL) return NULL;
  MP_ASSERT(sharding->rank == type->rank && mp_atom_sharding_is_sound(space, sharding));
  if (mp_atom_sharding_used(sharding) == 0 && sharding->unreduced == 0) return NULL;
  if (type->rank > MP_MAX_RANK) {
    return atoms_make_boxes(space, scope, type, sharding, out_boxes);  // an error
  }
  int64_t key[ATOMS_KEY];
  const uint32_t count = atoms_make_key(space, scope, type, sharding, key);
  *out_boxes = mp_spmd_pool_recall(scope->pool, key, count);
  if (*out_boxes != NULL) return NULL;
  MP_RETURN_IF_ERROR(atoms_make_boxes(space, scope, type, sharding, out_boxes));
  return mp_spmd_pool_note(scope->pool, key, count, *out_boxes);
}
