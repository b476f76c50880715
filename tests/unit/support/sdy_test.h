// Shardy annotations from short texts, for tests: a mesh "x=2 y=4", a sharding "x,y;;z?"
// (dimensions separated by ';', axes by ',', a sub-axis as "y:1:2" = "y":(1)2, '?' for an open
// dimension).
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_SDY_TEST_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_SDY_TEST_H_

#include <stdlib.h>
#include <string.h>

#include "sim/ir/attr.h"
#include "tests/unit/support/unit.h"

static inline const mp_mesh_t *sdy_mesh(mp_arena_t *arena, const char *text,
                                        const int64_t *device_ids, uint32_t num_device_ids) {
  mp_mesh_t *mesh = MP_ARENA_NEW(arena, mp_mesh_t);
  mp_mesh_axis_t *axes = MP_ARENA_ARRAY(arena, mp_mesh_axis_t, 16);
  *mesh = (mp_mesh_t){.name = MP_STR("mesh"),
                      .axes = axes,
                      .num_device_ids = num_device_ids,
                      .device_ids = device_ids};
  while (*text != '\0') {
    mp_mesh_axis_t *axis = &axes[mesh->num_axes++];
    const size_t size = strcspn(text, "=");
    char *end = NULL;
    axis->name = (mp_str_t){text, size};
    axis->size = strtoll(text + size + 1, &end, 10);
    text = *end == ' ' ? end + 1 : end;
  }
  return mesh;
}

// Axes up to `stop` or ';'.
static inline mp_axis_list_t sdy_axes(mp_arena_t *arena, const char **at) {
  mp_axis_ref_t *axes = MP_ARENA_ARRAY(arena, mp_axis_ref_t, 70);
  uint32_t count = 0;
  while (**at != '\0' && **at != ';' && **at != '?') {
    const size_t size = strcspn(*at, ",:;?");
    axes[count] = (mp_axis_ref_t){{*at, size}, 1, 0};
    *at += size;
    if (**at == ':') {
      char *end = NULL;
      axes[count].pre_size = strtoll(*at + 1, &end, 10);
      axes[count].size = strtoll(end + 1, &end, 10);
      *at = end;
    }
    if (**at == ',') ++*at;
    ++count;
  }
  return (mp_axis_list_t){count, axes};
}

static inline mp_axis_list_t sdy_axis_list(mp_arena_t *arena, const char *text) {
  return sdy_axes(arena, &text);
}

static inline mp_sdy_sharding_t sdy_sharding(mp_arena_t *arena, const mp_mesh_t *mesh,
                                             uint32_t rank, const char *text) {
  mp_dim_sharding_t *dims = MP_ARENA_ARRAY(arena, mp_dim_sharding_t, rank + 1);
  for (uint32_t d = 0; d < rank; ++d) {
    dims[d] = (mp_dim_sharding_t){sdy_axes(arena, &text), *text == '?', -1};
    if (*text == '?') ++text;
    if (*text == ';') ++text;
  }
  return (mp_sdy_sharding_t){.mesh = mesh, .rank = rank, .dims = dims};
}

static inline const mp_attr_t *sdy_sharding_attr(mp_arena_t *arena, const mp_mesh_t *mesh,
                                                 uint32_t rank, const char *text) {
  mp_attr_t *attr = MP_ARENA_NEW(arena, mp_attr_t);
  mp_sdy_sharding_t sharding = sdy_sharding(arena, mesh, rank, text);
  attr->kind = MP_KIND_SHARDING;
  attr->u.sharding = mp_arena_copy(arena, &sharding, sizeof(sharding));
  return attr;
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_SDY_TEST_H_
