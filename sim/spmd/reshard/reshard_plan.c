#include "sim/spmd/reshard/reshard_plan.h"

#include <string.h>

#include "sim/base/containers/hash_map.h"
#include "sim/base/hash.h"
#include "sim/numeric/dtype.h"

enum { MP_MAX_NODES = 2048, MP_MAX_EXPANSIONS = 600 };

// A layout that the search has reached.
typedef struct {
  mp_layout_t layout;
  double cost;
  uint32_t parent;
  mp_reshard_kind_t kind;  // of the step from the parent
  uint8_t from_dim, to_dim;
  bool is_done;
  mp_atoms_t atoms;
} node_t;

typedef struct {
  uint64_t hash;  // of the layout
  uint32_t node;
} node_entry_t;

typedef struct {
  const mp_atom_space_t *space;
  const mp_type_t *type;
  mp_layout_t target;
  uint32_t manual;       // set of atoms along which partitions have different values
  bool may_split_terms;  // terms may be summed up in two steps
  double bytes;          // the size of the whole value
  uint32_t num_dims;
  uint8_t dims[MP_MAX_RANK];  // the dimensions that have atoms at the start or at the end
  node_t *nodes;              // [MP_MAX_NODES]
  uint32_t num_nodes;
  mp_arena_t *scratch;
  MP_HASH_MAP(node_entry_t) by_layout;  // with room for all nodes
} search_t;

// ---- the sizes of layouts ----

static bool reshard_plan_is_dim(uint8_t dim) {
  return dim != MP_LAYOUT_COPIES && dim != MP_LAYOUT_TERMS;
}

static mp_atoms_t reshard_plan_list_of(const search_t *search, const mp_layout_t *layout,
                                       uint8_t dim) {
  return mp_layout_atoms(search->space, layout, dim);
}

// The bytes of a device's part.
static double reshard_plan_part_bytes(const search_t *search, const mp_layout_t *layout) {
  double bytes = search->bytes;
  for (uint32_t a = 0; a < search->space->count; ++a) {
    if (reshard_plan_is_dim(layout->dim[a])) bytes /= (double)search->space->prime[a];
  }
  return bytes;
}

// Whether the parts of a dimension can be cut further by the atoms, into equal parts.
static bool reshard_plan_has_room(const search_t *search, const mp_layout_t *layout, uint8_t dim,
                                  const mp_atoms_t *atoms) {
  const int64_t parts =
      mp_layout_parts(search->space, layout, dim) * mp_atoms_product(search->space, atoms);
  return search->type->dims[dim] % parts == 0;
}

// The number of atoms, from the major end of a dimension's list, that are in their final place.
static uint32_t reshard_plan_num_settled(const search_t *search, const mp_layout_t *layout,
                                         uint8_t dim) {
  const mp_atoms_t list = reshard_plan_list_of(search, layout, dim);
  const mp_atoms_t wanted = reshard_plan_list_of(search, &search->target, dim);
  return mp_atoms_common_prefix(&list, &wanted);
}

static mp_atoms_t reshard_plan_suffix_of(const mp_atoms_t *list, uint32_t count) {
  mp_atoms_t suffix = {.count = (uint8_t)count};
  memcpy(suffix.atoms, list->atoms + list->count - count, count);
  return suffix;
}

// ---- the graph ----

// The fixed cost of a step, so small that it only makes the shorter of two ways win that send
// equally many bytes.
static double reshard_plan_step_cost(mp_reshard_kind_t kind) {
  return kind == MP_RESHARD_SLICE ? 0.01 : 0.5;
}

// Records that `step` leads from node `parent` to its layout.
static void reshard_plan_reach(search_t *search, uint32_t parent, node_t step, double bytes) {
  step.parent = parent;
  step.cost = search->nodes[parent].cost + bytes + reshard_plan_step_cost(step.kind);
  step.is_done = false;
  const uint64_t hash = mp_hash_bytes(MP_HASH_START, &step.layout, sizeof(step.layout));
  const node_entry_t *known;
  MP_HASH_MAP_EACH(&search->by_layout, hash, known) {
    node_t *node = &search->nodes[known->node];
    if (!mp_layout_equal(&node->layout, &step.layout)) continue;
    if (step.cost < node->cost && !node->is_done) *node = step;
    return;
  }
  if (search->num_nodes == MP_MAX_NODES) return;
  const node_entry_t entry = {hash, search->num_nodes};
  search->nodes[search->num_nodes++] = step;
  // This cannot fail, because the map has room for all nodes.
  mp_status_ignore(MP_HASH_MAP_ADD(search->scratch, &search->by_layout, &entry));
}

// Does all slices that put an atom into its final place at once; nothing is cheaper.
static bool reshard_plan_reach_by_settling(search_t *search, uint32_t from) {
  node_t step = {.kind = MP_RESHARD_SLICE, .layout = search->nodes[from].layout};
  bool moved = false;
  for (uint32_t i = 0; i < search->num_dims; ++i) {
    const uint8_t dim = search->dims[i];
    const mp_atoms_t wanted = reshard_plan_list_of(search, &search->target, dim);
    uint32_t count = reshard_plan_list_of(search, &step.layout, dim).count;
    if (reshard_plan_num_settled(search, &step.layout, dim) != count) continue;
    for (; count < wanted.count; ++count) {
      const mp_atoms_t atom = {.count = 1, .atoms = {wanted.atoms[count]}};
      if (step.layout.dim[atom.atoms[0]] != MP_LAYOUT_COPIES) break;
      mp_layout_move(search->space, &step.layout, &atom, dim);
      moved = true;
    }
  }
  if (moved) reshard_plan_reach(search, from, step, 0);
  return moved;
}

// Tries slices along other dimensions, which an all_to_all or a permutation may follow.
static void reshard_plan_reach_by_slices(search_t *search, uint32_t from) {
  const mp_layout_t *layout = &search->nodes[from].layout;
  for (uint32_t a = 0; a < search->space->count; ++a) {
    if (layout->dim[a] != MP_LAYOUT_COPIES || !reshard_plan_is_dim(search->target.dim[a])) continue;
    const mp_atoms_t atom = {.count = 1, .atoms = {(uint8_t)a}};
    for (uint32_t i = 0; i < search->num_dims; ++i) {
      if (!reshard_plan_has_room(search, layout, search->dims[i], &atom)) continue;
      node_t step = {.kind = MP_RESHARD_SLICE, .layout = *layout};
      mp_layout_move(search->space, &step.layout, &atom, search->dims[i]);
      reshard_plan_reach(search, from, step, 0);
    }
  }
}

// Whether an all_to_all of these atoms to `dim` makes sense: one of them belongs there, and none
// belongs to another dimension.
static bool reshard_plan_belong_to(const search_t *search, const mp_atoms_t *atoms, uint8_t dim) {
  bool any = false;
  for (uint32_t i = 0; i < atoms->count; ++i) {
    const uint8_t wanted = search->target.dim[atoms->atoms[i]];
    if (wanted == dim) any = true;
    if (wanted != dim && reshard_plan_is_dim(wanted)) return false;
  }
  return any;
}

static void reshard_plan_reach_by_suffix(search_t *search, uint32_t from, uint8_t dim,
                                         const mp_atoms_t *atoms) {
  const mp_layout_t layout = search->nodes[from].layout;
  const double bytes = reshard_plan_part_bytes(search, &layout);
  const double size = (double)mp_atoms_product(search->space, atoms);
  node_t gather = {
      .kind = MP_RESHARD_ALL_GATHER, .layout = layout, .from_dim = dim, .atoms = *atoms};
  mp_layout_move(search->space, &gather.layout, atoms, MP_LAYOUT_COPIES);
  reshard_plan_reach(search, from, gather, bytes * (size - 1));
  for (uint32_t i = 0; i < search->num_dims; ++i) {
    const uint8_t to = search->dims[i];
    if (to == dim || !reshard_plan_belong_to(search, atoms, to) ||
        !reshard_plan_has_room(search, &layout, to, atoms)) {
      continue;
    }
    node_t step = {.kind = MP_RESHARD_ALL_TO_ALL,
                   .layout = layout,
                   .from_dim = dim,
                   .to_dim = to,
                   .atoms = *atoms};
    mp_layout_move(search->space, &step.layout, atoms, to);
    reshard_plan_reach(search, from, step, bytes * (size - 1) / size);
  }
}

// Tries all_gathers, except of atoms that are in their final place.
static void reshard_plan_reach_by_gathers(search_t *search, uint32_t from) {
  for (uint32_t i = 0; i < search->num_dims; ++i) {
    const uint8_t dim = search->dims[i];
    const mp_layout_t *layout = &search->nodes[from].layout;
    const mp_atoms_t list = reshard_plan_list_of(search, layout, dim);
    const uint32_t settled = reshard_plan_num_settled(search, layout, dim);
    for (uint32_t count = 1; count + settled <= list.count; ++count) {
      const mp_atoms_t suffix = reshard_plan_suffix_of(&list, count);
      reshard_plan_reach_by_suffix(search, from, dim, &suffix);
    }
  }
}

// ---- permutations ----

// Adds those atoms of `from` that divide the remaining number of parts of a dimension.
static void reshard_plan_fill_dim(const search_t *search, const mp_atoms_t *from, uint8_t dim,
                                  bool in_order, int64_t *left, mp_layout_t *layout) {
  for (uint32_t i = 0; i < from->count; ++i) {
    const mp_atoms_t atom = {.count = 1, .atoms = {from->atoms[i]}};
    const bool fits = layout->dim[from->atoms[i]] == MP_LAYOUT_COPIES &&
                      *left % search->space->prime[from->atoms[i]] == 0;
    if (!fits && in_order) return;
    if (!fits) continue;
    *left /= search->space->prime[from->atoms[i]];
    mp_layout_move(search->space, layout, &atom, dim);
  }
}

static mp_atoms_t reshard_plan_free_copies(const search_t *search, const mp_layout_t *layout) {
  const mp_atoms_t copies = reshard_plan_list_of(search, layout, MP_LAYOUT_COPIES);
  mp_atoms_t list = {0};
  for (uint32_t i = 0; i < copies.count; ++i) {
    if ((search->manual >> copies.atoms[i] & 1) == 0) {
      list.atoms[list.count++] = copies.atoms[i];
    }
  }
  return list;
}

// The layout with the same number of parts in each dimension that is nearest to the target: it has
// as many of the target's major atoms as fit, then atoms that are in the dimension now, then any
// others. False when there is none.
static bool reshard_plan_nearest_permutation(const search_t *search, const mp_layout_t *layout,
                                             mp_layout_t *out_layout) {
  mp_layout_t result = *layout;
  int64_t left[MP_MAX_RANK];
  for (uint32_t i = 0; i < search->num_dims; ++i) {
    const mp_atoms_t list = reshard_plan_list_of(search, layout, search->dims[i]);
    left[i] = mp_atoms_product(search->space, &list);
    mp_layout_move(search->space, &result, &list, MP_LAYOUT_COPIES);
  }
  for (uint32_t i = 0; i < search->num_dims; ++i) {
    const mp_atoms_t wanted = reshard_plan_list_of(search, &search->target, search->dims[i]);
    reshard_plan_fill_dim(search, &wanted, search->dims[i], true, &left[i], &result);
  }
  for (uint32_t i = 0; i < search->num_dims; ++i) {
    const mp_atoms_t own = reshard_plan_list_of(search, layout, search->dims[i]);
    reshard_plan_fill_dim(search, &own, search->dims[i], false, &left[i], &result);
  }
  for (uint32_t i = 0; i < search->num_dims; ++i) {
    const mp_atoms_t any = reshard_plan_free_copies(search, &result);
    reshard_plan_fill_dim(search, &any, search->dims[i], false, &left[i], &result);
    if (left[i] != 1) return false;
  }
  *out_layout = result;
  return !mp_layout_equal(&result, layout);
}

// The share of the partitions that get another part than they had. With more than 256 partitions
// all are counted, which is nearly right.
static double reshard_plan_moving_share(const search_t *search, const mp_layout_t *before,
                                        const mp_layout_t *after) {
  const uint32_t count = search->space->num_partitions;
  if (count > 256) return 1;
  uint32_t moving = 0;
  for (uint32_t p = 0; p < count; ++p) {
    bool same = true;
    for (uint32_t i = 0; i < search->num_dims && same; ++i) {
      const mp_atoms_t old = reshard_plan_list_of(search, before, search->dims[i]);
      const mp_atoms_t now = reshard_plan_list_of(search, after, search->dims[i]);
      same = mp_atoms_number(search->space, &old, p) == mp_atoms_number(search->space, &now, p);
    }
    if (!same) ++moving;
  }
  return (double)moving / count;
}

static void reshard_plan_reach_by_permutation(search_t *search, uint32_t from) {
  const mp_layout_t layout = search->nodes[from].layout;
  node_t step = {.kind = MP_RESHARD_PERMUTE};
  if (!reshard_plan_nearest_permutation(search, &layout, &step.layout)) return;
  reshard_plan_reach(search, from, step,
                     reshard_plan_part_bytes(search, &layout) *
                         reshard_plan_moving_share(search, &layout, &step.layout));
}

// ---- terms ----

// The atoms that stand for terms, belong to a dimension, and can be put there by one
// reduce_scatter.
static mp_atoms_t reshard_plan_scatter_list(const search_t *search, const mp_layout_t *layout,
                                            uint8_t dim) {
  const mp_atoms_t wanted = reshard_plan_list_of(search, &search->target, dim);
  mp_atoms_t list = {0};
  const uint32_t count = reshard_plan_list_of(search, layout, dim).count;
  const bool settled = reshard_plan_num_settled(search, layout, dim) == count;
  for (uint32_t i = settled ? count : 0; i < wanted.count; ++i) {
    if (layout->dim[wanted.atoms[i]] == MP_LAYOUT_TERMS) {
      list.atoms[list.count++] = wanted.atoms[i];
    } else if (settled) {
      break;
    }
  }
  return list;
}

// The atoms that stand for terms, but not in the target.
static mp_atoms_t reshard_plan_terms_to_combine(const search_t *search, const mp_layout_t *layout) {
  const mp_atoms_t terms = reshard_plan_list_of(search, layout, MP_LAYOUT_TERMS);
  mp_atoms_t list = {0};
  for (uint32_t i = 0; i < terms.count; ++i) {
    const uint8_t atom = terms.atoms[i];
    if (search->target.dim[atom] != MP_LAYOUT_TERMS) list.atoms[list.count++] = atom;
  }
  return list;
}

static void reshard_plan_reach_by_reducing(search_t *search, uint32_t from) {
  const mp_layout_t layout = search->nodes[from].layout;
  const mp_atoms_t terms = reshard_plan_terms_to_combine(search, &layout);
  if (terms.count == 0) return;
  const double bytes = reshard_plan_part_bytes(search, &layout);
  double size = (double)mp_atoms_product(search->space, &terms);
  node_t reduce = {.kind = MP_RESHARD_ALL_REDUCE, .layout = layout, .atoms = terms};
  mp_layout_move(search->space, &reduce.layout, &terms, MP_LAYOUT_COPIES);
  reshard_plan_reach(search, from, reduce, 2 * bytes * (size - 1) / size);
  for (uint32_t i = 0; i < search->num_dims; ++i) {
    const uint8_t dim = search->dims[i];
    const mp_atoms_t list = reshard_plan_scatter_list(search, &layout, dim);
    if (list.count == 0 || !reshard_plan_has_room(search, &layout, dim, &list)) continue;
    if (list.count != terms.count && !search->may_split_terms) continue;
    node_t step = {
        .kind = MP_RESHARD_REDUCE_SCATTER, .layout = layout, .to_dim = dim, .atoms = list};
    mp_layout_move(search->space, &step.layout, &list, dim);
    size = (double)mp_atoms_product(search->space, &list);
    reshard_plan_reach(search, from, step, bytes * (size - 1) / size);
  }
}

// ---- the search ----

static uint32_t reshard_plan_cheapest_open(const search_t *search) {
  uint32_t best = UINT32_MAX;
  for (uint32_t i = 0; i < search->num_nodes; ++i) {
    if (search->nodes[i].is_done) continue;
    if (best == UINT32_MAX || search->nodes[i].cost < search->nodes[best].cost) best = i;
  }
  return best;
}

// The node of the target; UINT32_MAX if the search has not reached it.
static uint32_t reshard_plan_find_target(search_t *search) {
  for (uint32_t expansions = 0; expansions < MP_MAX_EXPANSIONS; ++expansions) {
    const uint32_t at = reshard_plan_cheapest_open(search);
    if (at == UINT32_MAX) return at;
    search->nodes[at].is_done = true;
    if (mp_layout_equal(&search->nodes[at].layout, &search->target)) return at;
    if (reshard_plan_reach_by_settling(search, at)) continue;
    reshard_plan_reach_by_slices(search, at);
    reshard_plan_reach_by_gathers(search, at);
    reshard_plan_reach_by_permutation(search, at);
    reshard_plan_reach_by_reducing(search, at);
  }
  return UINT32_MAX;
}

// Reads the steps to a node; false when there are too many. Consecutive slices become one.
static bool reshard_plan_read_steps(const search_t *search, uint32_t at, mp_reshard_plan_t *plan) {
  uint32_t way[MP_RESHARD_MAX_STEPS * 2];
  uint32_t length = 0;
  plan->bytes = search->nodes[at].cost;
  for (; at != 0; at = search->nodes[at].parent) {
    if (length == sizeof(way) / sizeof(*way)) return false;
    way[length++] = at;
  }
  while (length-- > 0) {
    const node_t *node = &search->nodes[way[length]];
    plan->bytes -= reshard_plan_step_cost(node->kind);
    mp_reshard_step_t *last = plan->num_steps == 0 ? NULL : &plan->steps[plan->num_steps - 1];
    if (node->kind == MP_RESHARD_SLICE && last != NULL && last->kind == MP_RESHARD_SLICE) {
      last->after = node->layout;
      continue;
    }
    if (plan->num_steps == MP_RESHARD_MAX_STEPS) return false;
    if (node->kind != MP_RESHARD_SLICE) ++plan->num_collectives;
    plan->steps[plan->num_steps++] = (mp_reshard_step_t){
        node->kind,  node->from_dim, node->to_dim, node->atoms, search->nodes[node->parent].layout,
        node->layout};
  }
  return true;
}

static bool reshard_plan_find_layouts(uint32_t num_partitions, const mp_boxes_t *from,
                                      const mp_boxes_t *to, mp_atom_space_t *out_space,
                                      mp_layout_t *out_from, mp_layout_t *out_to) {
  mp_atom_space_t spaces[MP_MAX_SPACES];
  const uint32_t count = mp_layout_spaces(num_partitions, spaces);
  for (uint32_t i = 0; i < count; ++i) {
    if (!mp_layout_from_boxes(&spaces[i], from, out_from)) continue;
    if (!mp_layout_from_boxes(&spaces[i], to, out_to)) continue;
    *out_space = spaces[i];
    return true;
  }
  return false;
}

// Whether atoms `a` and `a` + 1 are adjacent in a dimension, or both are copies or terms.
static bool reshard_plan_are_neighbours(const mp_layout_t *layout, uint32_t a) {
  if (layout->dim[a] != layout->dim[a + 1]) return false;
  return !reshard_plan_is_dim(layout->dim[a]) || layout->place[a] + 1 == layout->place[a + 1];
}

// With more atoms than this, atoms that stay together from start to end are treated as one.
enum { MP_MANY_ATOMS = 6 };

// A layout in the space where each atom of a set is merged into the one before it.
static mp_layout_t reshard_plan_merge_layout(const mp_atom_space_t *space,
                                             const mp_layout_t *layout, uint32_t merged) {
  mp_layout_t result;
  memset(result.dim, MP_LAYOUT_COPIES, sizeof(result.dim));
  memset(result.place, 0, sizeof(result.place));
  uint32_t number[MP_MAX_ATOMS] = {0};
  uint32_t count = 0;
  for (uint32_t a = 0; a < space->count; ++a) {
    if (merged >> a & 1) continue;
    number[a] = count;
    result.dim[count++] = layout->dim[a];
  }
  for (uint32_t a = 0; a < space->count; ++a) {
    if ((merged >> a & 1) != 0 || !reshard_plan_is_dim(layout->dim[a])) continue;
    for (uint32_t other = 0; other < space->count; ++other) {
      const bool is_before = layout->dim[other] == layout->dim[a] &&
                             layout->place[other] < layout->place[a] && (merged >> other & 1) == 0;
      if (is_before) ++result.place[number[a]];
    }
  }
  return result;
}

// The set of the atoms that distinguish groups: partitions that differ in one of these are in
// different groups of a manual region, and so have different values.
static uint32_t reshard_plan_manual_atoms(const mp_atom_space_t *space, const mp_boxes_t *boxes) {
  uint32_t set = 0;
  for (uint32_t a = 0; a < space->count; ++a) {
    if (boxes->groups[space->stride[a]] != boxes->groups[0]) set |= 1u << a;
  }
  return set;
}

// Merges atoms that stay together, so that large meshes are searched like small ones.
static void reshard_plan_merge_runs(mp_atom_space_t *space, uint32_t manual, mp_layout_t *from,
                                    mp_layout_t *to) {
  if (space->count <= MP_MANY_ATOMS) return;
  uint32_t merged = 0;
  for (uint32_t a = 0; a + 1 < space->count; ++a) {
    const bool is_border = (manual >> a & 1) != (manual >> (a + 1) & 1);
    if (!is_border && reshard_plan_are_neighbours(from, a) && reshard_plan_are_neighbours(to, a))
      merged |= 1u << (a + 1);
  }
  const mp_atom_space_t old = *space;
  *from = reshard_plan_merge_layout(&old, from, merged);
  *to = reshard_plan_merge_layout(&old, to, merged);
  space->count = 0;
  for (uint32_t a = 0; a < old.count; ++a) {
    if ((merged >> a & 1) == 0) {
      space->prime[space->count] = 1;
      ++space->count;
    }
    space->prime[space->count - 1] *= old.prime[a];
    space->stride[space->count - 1] = old.stride[a];
  }
}

static void reshard_plan_note_dims(search_t *search, const mp_layout_t *from) {
  for (uint32_t d = 0; d < search->type->rank; ++d) {
    if (mp_layout_parts(search->space, from, (uint8_t)d) > 1 ||
        mp_layout_parts(search->space, &search->target, (uint8_t)d) > 1) {
      search->dims[search->num_dims++] = (uint8_t)d;
    }
  }
}

mp_status_t mp_reshard_plan(const mp_type_t *type, const mp_boxes_t *from, const mp_boxes_t *to,
                            mp_reshard_plan_t *out_plan, bool *out_found) {
  *out_found = false;
  *out_plan = (mp_reshard_plan_t){0};
  int64_t elements = 0;
  if (from == to || !mp_type_is_tensor(type) || !mp_type_num_elements(type, &elements) ||
      elements == 0) {
    return NULL;
  }
  // The indices of slices are computed in 32 bits.
  for (uint32_t d = 0; d < type->rank; ++d) {
    if (type->dims[d] > INT32_MAX) return NULL;
  }
  const uint32_t num_partitions = from != NULL ? from->num_partitions : to->num_partitions;
  mp_layout_t start;
  search_t search = {.space = &out_plan->space, .type = type};
  if (!reshard_plan_find_layouts(num_partitions, from, to, &out_plan->space, &start,
                                 &search.target))
    return NULL;
  reshard_plan_merge_runs(&out_plan->space,
                          reshard_plan_manual_atoms(&out_plan->space, from != NULL ? from : to),
                          &start, &search.target);
  search.manual = reshard_plan_manual_atoms(&out_plan->space, from != NULL ? from : to);
  search.bytes = (double)elements * (double)mp_dtype_size(type->dtype);
  // A sum of a narrow type in two steps would be rounded twice.
  search.may_split_terms = !mp_dtype_is_float(type->dtype) || mp_dtype_bits(type->dtype) > 16;
  if (from != NULL && from->partials != NULL) out_plan->unreduced_kind = from->unreduced_kind;
  reshard_plan_note_dims(&search, &start);
  MP_RETURN_IF_ERROR(mp_arena_create(&search.scratch));
  search.nodes = MP_ARENA_ARRAY(search.scratch, node_t, MP_MAX_NODES);
  mp_status_t status = MP_HASH_MAP_RESERVE(search.scratch, &search.by_layout, MP_MAX_NODES);
  if (status != NULL || search.nodes == NULL) {
    mp_arena_release(search.scratch);
    return status != NULL ? status : mp_status_out_of_memory();
  }
  search.nodes[search.num_nodes++].layout = start;
  const uint32_t at = reshard_plan_find_target(&search);
  *out_found = at != UINT32_MAX && reshard_plan_read_steps(&search, at, out_plan);
  mp_arena_release(search.scratch);
  return NULL;
}

// ---- terms from parts ----

bool mp_reshard_find_terms(const mp_boxes_t *from, const mp_boxes_t *to,
                           mp_reshard_terms_t *out_terms) {
  if (from == NULL || from->partials != NULL || to->partials == NULL) return false;
  mp_reshard_terms_t terms;
  if (!reshard_plan_find_layouts(from->num_partitions, from, to, &terms.space, &terms.from,
                                 &terms.to)) {
    return false;
  }
  for (uint32_t a = 0; a < terms.space.count; ++a) {
    const bool is_same = terms.from.dim[a] == terms.to.dim[a];
    if (!is_same && terms.to.dim[a] != MP_LAYOUT_TERMS) return false;
    // Atoms by which both are cut must be in the same place in both lists.
    if (is_same && terms.from.place[a] != terms.to.place[a]) return false;
    if (!is_same && !reshard_plan_is_dim(terms.from.dim[a])) return false;
  }
  *out_terms = terms;
  return true;
}

// ---- the cost of an exchange ----

// The number of elements of `wanted` that `held` does not have. NULL boxes are whole.
static double reshard_plan_missing(const mp_type_t *type, const mp_boxes_t *held,
                                   const mp_boxes_t *wanted, uint32_t partition) {
  double size = 1;
  double overlap = 1;
  for (uint32_t d = 0; d < type->rank; ++d) {
    const size_t at = (size_t)partition * type->rank + d;
    const int64_t from = held == NULL ? 0 : held->starts[at];
    const int64_t end = from + (held == NULL ? type->dims[d] : held->sizes[at]);
    const int64_t start = wanted == NULL ? 0 : wanted->starts[at];
    const int64_t stop = start + (wanted == NULL ? type->dims[d] : wanted->sizes[at]);
    const int64_t low = from > start ? from : start;
    const int64_t high = end < stop ? end : stop;
    size *= (double)(stop - start);
    overlap *= high > low ? (double)(high - low) : 0;
  }
  return size - overlap;
}

double mp_reshard_exchange_bytes(const mp_type_t *type, const mp_boxes_t *from,
                                 const mp_boxes_t *to) {
  if (from == NULL || !mp_type_is_tensor(type)) return 0;
  double elements = 0;
  for (uint32_t p = 0; p < from->num_partitions; ++p)
    elements += reshard_plan_missing(type, from, to, p);
  return elements / from->num_partitions * (double)mp_dtype_size(type->dtype);
}
