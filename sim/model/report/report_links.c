#include "sim/model/report/report_links.h"

#include "sim/ir/mesh.h"
#include "sim/model/network/traffic/traffic.h"

mp_busiest_t mp_busiest_of(const mp_network_t *network, const double *bytes, uint32_t count) {
  mp_busiest_t busiest = {.link = -1};
  for (uint32_t i = 0; i < count; ++i) {
    const double seconds = mp_network_link_seconds(mp_network_link(network, i), bytes[i]);
    if (seconds > busiest.seconds) busiest = (mp_busiest_t){i, bytes[i], seconds};
  }
  return busiest;
}

uint32_t mp_report_collective_round(const mp_collective_t *collective) {
  return mp_network_is_of_pairs(collective) ? collective->num_pairs
                                            : collective->groups->num_groups;
}

static void report_links_add(void *bytes, const mp_transfer_t *transfer) {
  mp_transfer_add_bytes(transfer, bytes);
}

mp_status_t mp_busiest_of_collective(mp_network_t *network, const mp_collective_t *collective,
                                     const int32_t *ids, double *scratch,
                                     mp_busiest_t *out_busiest) {
  mp_status_t status = mp_network_visit_round(network, collective, ids, report_links_add, scratch);
  const uint32_t count = mp_network_num_links(network);
  if (status == NULL) *out_busiest = mp_busiest_of(network, scratch, count);
  memset(scratch, 0, count * sizeof(*scratch));
  return status;
}

// ---- Axes of meshes ----

enum { REPORT_LINKS_AXES = 32 };  // of a mesh; those with more have no names

// The axes of a mesh in which devices differ that meet or send each other something.
typedef struct {
  const mp_mesh_t *mesh;
  const int64_t *positions;  // of devices; NULL: a device's number
  mp_mesh_digit_t digits[REPORT_LINKS_AXES];
  bool differs[REPORT_LINKS_AXES];
  int64_t size;  // of a group of all devices along these axes
} axes_t;

static int64_t report_links_position(const axes_t *axes, uint32_t device) {
  return axes->positions == NULL ? (int64_t)device : axes->positions[device];
}

static void report_links_compare(axes_t *axes, uint32_t a, uint32_t b) {
  const int64_t x = report_links_position(axes, a), y = report_links_position(axes, b);
  for (uint32_t i = 0; i < axes->mesh->num_axes; ++i) {
    if (mp_mesh_digit_of(axes->digits[i], x) != mp_mesh_digit_of(axes->digits[i], y)) {
      axes->differs[i] = true;
    }
  }
}

static void report_links_compare_all(axes_t *axes, const mp_collective_t *collective) {
  const mp_groups_t *groups = collective->groups;
  for (uint32_t i = 0; i < collective->num_pairs; ++i) {
    report_links_compare(axes, collective->pairs[2 * i], collective->pairs[2 * i + 1]);
  }
  if (collective->num_pairs != 0 || groups == NULL) return;
  for (uint32_t g = 0; g < groups->num_groups; ++g) {
    for (uint32_t m = groups->offsets[g] + 1; m < groups->offsets[g + 1]; ++m) {
      report_links_compare(axes, groups->members[groups->offsets[g]], groups->members[m]);
    }
  }
}

// False: the mesh is not one of so many devices.
static mp_status_t report_links_begin(mp_arena_t *arena, const mp_mesh_t *mesh,
                                      uint32_t num_devices, axes_t *axes, bool *out_fits) {
  *axes = (axes_t){.mesh = mesh, .size = 1};
  *out_fits = mesh->num_axes > 0 && mesh->num_axes <= REPORT_LINKS_AXES &&
              mp_mesh_size(mesh) == (int64_t)num_devices;
  if (!*out_fits) return NULL;
  int64_t stride = num_devices;
  for (uint32_t i = 0; i < mesh->num_axes; ++i) {
    stride /= mesh->axes[i].size;
    axes->digits[i] = (mp_mesh_digit_t){stride, mesh->axes[i].size};
  }
  return mp_mesh_positions(arena, mesh, num_devices, &axes->positions);
}

static bool report_links_are_whole(const axes_t *axes, const mp_collective_t *collective) {
  const mp_groups_t *groups = collective->groups;
  if (collective->num_pairs != 0 || groups == NULL) return true;
  for (uint32_t g = 0; g < groups->num_groups; ++g) {
    if ((int64_t)(groups->offsets[g + 1] - groups->offsets[g]) != axes->size) return false;
  }
  return true;
}

static void report_links_put_axes(const axes_t *axes, bool is_whole, mp_strbuf_t *out) {
  const char *between = is_whole ? "" : "part of ";
  for (uint32_t i = 0; i < axes->mesh->num_axes; ++i) {
    if (!axes->differs[i]) continue;
    mp_strbuf_puts(out, between);
    mp_strbuf_put_visible(out, axes->mesh->axes[i].name);
    between = " and ";
  }
}

// Writes the axes of the first mesh of which the groups are whole; else of the first one.
static mp_status_t report_links_find_axes(mp_arena_t *arena, const mp_module_t *module,
                                          uint32_t num_devices, const mp_collective_t *collective,
                                          mp_strbuf_t *out) {
  axes_t best = {0};
  for (uint32_t m = 0; m < module->meshes.count; ++m) {
    axes_t axes;
    bool fits;
    MP_RETURN_IF_ERROR(
        report_links_begin(arena, module->meshes.items[m], num_devices, &axes, &fits));
    if (!fits) continue;
    report_links_compare_all(&axes, collective);
    for (uint32_t i = 0; i < axes.mesh->num_axes; ++i) {
      if (axes.differs[i]) axes.size *= axes.mesh->axes[i].size;
    }
    if (best.mesh == NULL || report_links_are_whole(&axes, collective)) best = axes;
    if (report_links_are_whole(&best, collective)) break;
  }
  if (best.mesh != NULL) {
    report_links_put_axes(&best, report_links_are_whole(&best, collective), out);
  }
  return NULL;
}

mp_status_t mp_report_axes(const mp_module_t *module, uint32_t num_devices,
                           const mp_collective_t *collective, mp_strbuf_t *out) {
  if (module == NULL) return NULL;
  mp_arena_t *arena = NULL;
  MP_RETURN_IF_ERROR(mp_arena_create(&arena));
  mp_status_t status = report_links_find_axes(arena, module, num_devices, collective, out);
  mp_arena_release(arena);
  return status;
}
