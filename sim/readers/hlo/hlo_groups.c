#include "sim/readers/hlo/hlo_groups.h"

#include <stdio.h>

#include "sim/numeric/iota_list.h"

// No pod has more processes, and a list in a few bytes could encode any number.
enum { MAX_IDS = 1 << 20 };

static mp_status_t hlo_groups_error(const mp_hlo_inst_t *inst, const char *what) {
  return mp_hlo_error(inst, MP_INVALID_ARGUMENT, "%s", what);
}

// ---- lists ----

typedef struct {
  mp_hlo_ints_t ids;
} group_t;

MP_HLO_MESSAGE(g_group, "ReplicaGroup", MP_HLO_FIELD(1, INTS, group_t, ids));

// Smaller groups are padded with -1.
static mp_status_t hlo_groups_read_list(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                        const mp_hlo_texts_t *list, const mp_attr_t **out_groups) {
  mp_arena_t *arena = b->h->source.arena;
  uint32_t width = 0;
  mp_hlo_ints_t *rows = MP_ARENA_ARRAY(arena, mp_hlo_ints_t, list->count);
  MP_RETURN_IF_NULL(rows);
  for (uint32_t i = 0; i < list->count; ++i) {
    group_t group = {0};
    MP_RETURN_IF_ERROR(mp_hlo_error_at(
        inst, mp_status_annotate(mp_hlo_decode(&b->h->source, &g_group, list->items[i], &group),
                                 "replica_groups[%u]", i)));
    if (group.ids.count == 0) {
      return mp_hlo_error(inst, MP_INVALID_ARGUMENT, "replica_groups[%u] is empty", i);
    }
    rows[i] = group.ids;
    if (group.ids.count > width) width = group.ids.count;
  }
  if ((uint64_t)list->count * width > MAX_IDS) {
    return hlo_groups_error(inst, "replica_groups: too many processes");
  }
  int64_t *table = MP_ARENA_ARRAY(arena, int64_t, (size_t)list->count * width);
  MP_RETURN_IF_NULL(table);
  for (uint32_t i = 0; i < list->count; ++i) {
    for (uint32_t k = 0; k < width; ++k) {
      table[(size_t)i * width + k] = k < rows[i].count ? rows[i].items[k] : -1;
    }
  }
  return mp_attr_make_table(b->h->module->arena, table, list->count, width, out_groups);
}

// ---- iota ----

// A list of `total` processes; without dimensions they are in order.
static mp_status_t hlo_groups_iota(mp_arena_t *arena, const mp_hlo_inst_t *inst, int64_t total,
                                   const mp_hlo_ints_t *dims, const mp_hlo_ints_t *permutation,
                                   int64_t **out_ids) {
  const int64_t *sizes = dims->count == 0 ? &total : dims->items;
  const uint32_t rank = dims->count == 0 ? 1 : dims->count;
  const int64_t *order = permutation->count == 0 ? NULL : permutation->items;
  if (order != NULL && permutation->count != rank) {
    return hlo_groups_error(inst, "iota: its dimensions and permutation do not fit");
  }
  if (total < 1 || total > MAX_IDS || !mp_iota_fits(sizes, NULL, rank, total)) {
    return hlo_groups_error(inst, "iota: its dimensions do not hold the processes");
  }
  if (!mp_iota_fits(sizes, order, rank, total)) {
    return hlo_groups_error(inst, "iota: its permutation is none");
  }
  int64_t *ids = MP_ARENA_ARRAY(arena, int64_t, (size_t)total);
  MP_RETURN_IF_NULL(ids);
  mp_iota_transposed(sizes, order, rank, ids);
  *out_ids = ids;
  return NULL;
}

typedef struct {
  int64_t num_groups, group_size;
  mp_hlo_ints_t dims, permutation;
} iota_t;

MP_HLO_MESSAGE(g_iota, "IotaReplicaGroupListProto", MP_HLO_FIELD(1, INT, iota_t, num_groups),
               MP_HLO_FIELD(2, INT, iota_t, group_size), MP_HLO_FIELD(3, INTS, iota_t, dims),
               MP_HLO_FIELD(4, INTS, iota_t, permutation));

static mp_status_t hlo_groups_read_iota(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                        mp_str_t bytes, const mp_attr_t **out_groups) {
  iota_t iota = {0};
  int64_t *ids = NULL;
  MP_RETURN_IF_ERROR(
      mp_hlo_error_at(inst, mp_status_annotate(mp_hlo_decode(&b->h->source, &g_iota, bytes, &iota),
                                               "iota_collective_device_list")));
  if (iota.num_groups < 1 || iota.group_size < 1 || iota.num_groups > MAX_IDS ||
      iota.group_size > MAX_IDS) {
    return hlo_groups_error(inst, "iota_collective_device_list: its sizes are out of range");
  }
  MP_RETURN_IF_ERROR(hlo_groups_iota(b->h->source.arena, inst, iota.num_groups * iota.group_size,
                                     &iota.dims, &iota.permutation, &ids));
  return mp_attr_make_table(b->h->module->arena, ids, iota.num_groups, iota.group_size, out_groups);
}

// ---- axes of a mesh ----

typedef struct {
  mp_str_t mesh;
  mp_hlo_texts_t axes;
} mesh_list_t;

MP_HLO_MESSAGE(g_mesh_list, "MeshAxesReplicaGroupListProto",
               MP_HLO_FIELD(1, TEXT, mesh_list_t, mesh), MP_HLO_FIELD(2, TEXTS, mesh_list_t, axes));

typedef struct {
  mp_hlo_texts_t axes;
  mp_hlo_ints_t device_ids;
  mp_str_t iota;
} mesh_t;

MP_HLO_MESSAGE(g_mesh, "MeshProto", MP_HLO_FIELD(1, TEXTS, mesh_t, axes),
               MP_HLO_FIELD(2, INTS, mesh_t, device_ids), MP_HLO_FIELD(3, TEXT, mesh_t, iota));

typedef struct {
  mp_str_t name;
  int64_t size;
} mesh_axis_t;

MP_HLO_MESSAGE(g_mesh_axis, "MeshProto.MeshAxis", MP_HLO_FIELD(1, TEXT, mesh_axis_t, name),
               MP_HLO_FIELD(2, INT, mesh_axis_t, size));

typedef struct {
  mp_hlo_ints_t dims, permutation;
} transform_t;

MP_HLO_MESSAGE(g_transform, "MeshProto.IotaTransform", MP_HLO_FIELD(1, INTS, transform_t, dims),
               MP_HLO_FIELD(2, INTS, transform_t, permutation));

typedef struct {
  int64_t index;
  mp_str_t sub_axis;
} axis_ref_t;

MP_HLO_MESSAGE(g_axis_ref, "AxisRefProto", MP_HLO_FIELD(1, INT, axis_ref_t, index),
               MP_HLO_FIELD(2, TEXT, axis_ref_t, sub_axis));

typedef struct {
  int64_t pre_size, size;
} sub_axis_t;

MP_HLO_MESSAGE(g_sub_axis, "AxisRefProto.SubAxis", MP_HLO_FIELD(1, INT, sub_axis_t, pre_size),
               MP_HLO_FIELD(2, INT, sub_axis_t, size));

static mp_status_t hlo_groups_copy(mp_arena_t *arena, mp_str_t text, mp_str_t *out_text) {
  const char *copy = mp_arena_strndup(arena, text.data, text.size);
  MP_RETURN_IF_NULL(copy);
  *out_text = (mp_str_t){copy, text.size};
  return NULL;
}

// The order of the devices, if it is not that of their numbers.
static mp_status_t hlo_groups_read_order(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                         const mesh_t *proto, int64_t total, mp_mesh_t *mesh) {
  const int64_t *ids = proto->device_ids.items;
  uint32_t count = proto->device_ids.count;
  if (count == 0 && proto->iota.data != NULL) {
    transform_t transform = {0};
    int64_t *made = NULL;
    MP_RETURN_IF_ERROR(
        mp_hlo_error_at(inst, mp_hlo_decode(&b->h->source, &g_transform, proto->iota, &transform)));
    MP_RETURN_IF_ERROR(hlo_groups_iota(b->h->source.arena, inst, total, &transform.dims,
                                       &transform.permutation, &made));
    ids = made;
    count = (uint32_t)total;
  }
  if (count == 0) return NULL;
  mesh->device_ids = mp_arena_copy(b->h->module->arena, ids, count * sizeof(*ids));
  mesh->num_device_ids = count;
  MP_RETURN_IF_NULL(mesh->device_ids);
  return NULL;
}

static mp_status_t hlo_groups_read_mesh(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                        mp_str_t bytes, const mp_mesh_t **out_mesh) {
  mp_arena_t *arena = b->h->module->arena;
  mesh_t proto = {0};
  char name[32];
  int64_t total = 1;
  MP_RETURN_IF_ERROR(mp_hlo_error_at(inst, mp_hlo_decode(&b->h->source, &g_mesh, bytes, &proto)));
  mp_mesh_t *mesh = MP_ARENA_NEW(arena, mp_mesh_t);
  mp_mesh_axis_t *axes = MP_ARENA_ARRAY(arena, mp_mesh_axis_t, proto.axes.count);
  if (mesh == NULL || axes == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < proto.axes.count; ++i) {
    mesh_axis_t axis = {0};
    MP_RETURN_IF_ERROR(mp_hlo_error_at(
        inst, mp_hlo_decode(&b->h->source, &g_mesh_axis, proto.axes.items[i], &axis)));
    if (axis.size < 1 || axis.size > MAX_IDS / total) {
      return hlo_groups_error(inst, "mesh_axes_replica_group_list.mesh: its size is out of range");
    }
    total *= axis.size;
    axes[i].size = axis.size;
    MP_RETURN_IF_ERROR(hlo_groups_copy(arena, axis.name, &axes[i].name));
  }
  mesh->num_axes = proto.axes.count;
  mesh->axes = axes;
  const int size = snprintf(name, sizeof(name), "hlo_mesh_%u", b->h->num_meshes++);
  MP_RETURN_IF_ERROR(hlo_groups_copy(arena, (mp_str_t){name, (size_t)size}, &mesh->name));
  MP_RETURN_IF_ERROR(hlo_groups_read_order(b, inst, &proto, total, mesh));
  *out_mesh = mesh;
  return mp_module_add_mesh(b->h->module, mesh);
}

static mp_status_t hlo_groups_read_axis(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                        mp_str_t bytes, const mp_mesh_t *mesh,
                                        mp_axis_ref_t *out_axis) {
  axis_ref_t ref = {0};
  sub_axis_t sub = {.pre_size = 1};
  MP_RETURN_IF_ERROR(mp_hlo_error_at(inst, mp_hlo_decode(&b->h->source, &g_axis_ref, bytes, &ref)));
  MP_RETURN_IF_ERROR(
      mp_hlo_error_at(inst, mp_hlo_decode(&b->h->source, &g_sub_axis, ref.sub_axis, &sub)));
  if (ref.index < 0 || ref.index >= mesh->num_axes) {
    return mp_hlo_error(inst, MP_INVALID_ARGUMENT,
                        "mesh_axes_replica_group_list.axes: the mesh has no axis %lld",
                        (long long)ref.index);
  }
  *out_axis = (mp_axis_ref_t){mesh->axes[ref.index].name, sub.pre_size, sub.size};
  return NULL;
}

static mp_status_t hlo_groups_read_mesh_list(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                             const mp_attr_t **out_groups) {
  mp_arena_t *arena = b->h->module->arena;
  mesh_list_t list = {0};
  MP_RETURN_IF_ERROR(mp_hlo_error_at(
      inst,
      mp_status_annotate(mp_hlo_decode(&b->h->source, &g_mesh_list, inst->mesh_list_bytes, &list),
                         "mesh_axes_replica_group_list")));
  mp_attr_t *attr = MP_ARENA_NEW(arena, mp_attr_t);
  mp_axis_ref_t *axes = MP_ARENA_ARRAY(arena, mp_axis_ref_t, list.axes.count);
  if (attr == NULL || axes == NULL) return mp_status_out_of_memory();
  attr->kind = MP_KIND_MESH_GROUPS;
  MP_RETURN_IF_ERROR(hlo_groups_read_mesh(b, inst, list.mesh, &attr->u.mesh_groups.mesh));
  for (uint32_t i = 0; i < list.axes.count; ++i) {
    MP_RETURN_IF_ERROR(
        hlo_groups_read_axis(b, inst, list.axes.items[i], attr->u.mesh_groups.mesh, &axes[i]));
  }
  attr->u.mesh_groups.axes = (mp_axis_list_t){list.axes.count, axes};
  *out_groups = attr;
  return NULL;
}

// ---- all forms ----

typedef struct {
  mp_hlo_texts_t groups;
  mp_str_t iota;
} device_list_t;

// PyTorch/XLA 2.9 has the iota within this message; later it is a field of the instruction.
MP_HLO_MESSAGE(g_device_list, "CollectiveDeviceListProto",
               MP_HLO_FIELD(1, TEXTS, device_list_t, groups),
               MP_HLO_FIELD(2, TEXT, device_list_t, iota));

mp_status_t mp_hlo_read_groups(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                               const mp_attr_t **out_groups) {
  if (inst->mesh_list_bytes.data != NULL) return hlo_groups_read_mesh_list(b, inst, out_groups);
  if (inst->iota_list_bytes.data != NULL) {
    return hlo_groups_read_iota(b, inst, inst->iota_list_bytes, out_groups);
  }
  if (inst->device_list_bytes.data == NULL) {
    return hlo_groups_read_list(b, inst, &inst->replica_groups, out_groups);
  }
  device_list_t list = {0};
  MP_RETURN_IF_ERROR(mp_hlo_error_at(
      inst, mp_status_annotate(
                mp_hlo_decode(&b->h->source, &g_device_list, inst->device_list_bytes, &list),
                "collective_device_list")));
  if (list.iota.data != NULL) return hlo_groups_read_iota(b, inst, list.iota, out_groups);
  // Writers fill both the new field and the old one.
  return hlo_groups_read_list(
      b, inst, list.groups.count != 0 ? &list.groups : &inst->replica_groups, out_groups);
}

bool mp_hlo_groups_are_alone(const mp_hlo_inst_t *inst, const mp_attr_t *groups) {
  const bool by_process = inst->channel_id == 0 || inst->use_global_device_ids;
  return by_process && groups->kind == MP_KIND_INTS && groups->u.ints.count != 0 &&
         groups->u.ints.rank == 2 && groups->u.ints.dims[1] == 1;
}

typedef struct {
  int64_t source, target;
} pair_t;

MP_HLO_MESSAGE(g_pair, "SourceTarget", MP_HLO_FIELD(1, INT, pair_t, source),
               MP_HLO_FIELD(2, INT, pair_t, target));

mp_status_t mp_hlo_read_pairs(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                              const mp_attr_t **out_pairs) {
  const mp_hlo_texts_t *list = &inst->source_target_pairs;
  int64_t *table = MP_ARENA_ARRAY(b->h->source.arena, int64_t, (size_t)list->count * 2);
  MP_RETURN_IF_NULL(table);
  for (uint32_t i = 0; i < list->count; ++i) {
    pair_t pair = {0};
    MP_RETURN_IF_ERROR(mp_hlo_error_at(
        inst, mp_status_annotate(mp_hlo_decode(&b->h->source, &g_pair, list->items[i], &pair),
                                 "source_target_pairs[%u]", i)));
    table[2 * i] = pair.source;
    table[2 * i + 1] = pair.target;
  }
  return mp_attr_make_table(b->h->module->arena, table, list->count, 2, out_pairs);
}
