// Meshes by name. Shardings may refer to a mesh before the operation that defines it was read.
#include "sim/readers/bytecode/bytecode_reader.h"

enum { MAX_MESHES = 1024 };

struct mp_bc_mesh_s {
  mp_mesh_t *mesh;  // in the module's arena; the definition fills it in
  bool defined;
  mp_bc_mesh_t *next;
};

static mp_status_t sdy_mesh_find_or_add(mp_bc_reader_t *r, mp_str_t name, mp_bc_mesh_t **out_mesh) {
  // A list suffices, because programs have a handful of meshes.
  int count = 0;
  for (mp_bc_mesh_t *at = r->meshes; at != NULL; at = at->next, ++count) {
    if (mp_str_equal(at->mesh->name, name)) {
      *out_mesh = at;
      return NULL;
    }
  }
  if (count >= MAX_MESHES) {
    return mp_status_make(MP_UNIMPLEMENTED, "bytecode: more than %d meshes", MAX_MESHES);
  }
  mp_bc_mesh_t *added = MP_ARENA_NEW(r->scratch, mp_bc_mesh_t);
  MP_RETURN_IF_NULL(added);
  added->mesh = MP_ARENA_NEW(r->arena, mp_mesh_t);
  MP_RETURN_IF_NULL(added->mesh);
  added->mesh->name = name;
  added->next = r->meshes;
  r->meshes = added;
  *out_mesh = added;
  return NULL;
}

mp_status_t mp_bc_mesh_ref(mp_bc_reader_t *r, mp_str_t name, const mp_mesh_t **out_mesh) {
  mp_bc_mesh_t *mesh = NULL;
  MP_RETURN_IF_ERROR(sdy_mesh_find_or_add(r, name, &mesh));
  *out_mesh = mesh->mesh;
  return NULL;
}

mp_status_t mp_bc_mesh_define(mp_bc_reader_t *r, const mp_bc_cursor_t *c, mp_str_t name,
                              const mp_mesh_t *mesh) {
  mp_bc_mesh_t *entry = NULL;
  MP_RETURN_IF_ERROR(sdy_mesh_find_or_add(r, name, &entry));
  if (entry->defined) {
    return mp_bc_fail(c, "the mesh '%.*s' is defined twice", MP_STR_ARG(name));
  }
  *entry->mesh = *mesh;
  entry->mesh->name = name;
  entry->defined = true;
  return mp_module_add_mesh(r->module, entry->mesh);
}

mp_status_t mp_bc_mesh_check(mp_bc_reader_t *r) {
  for (mp_bc_mesh_t *at = r->meshes; at != NULL; at = at->next) {
    if (at->defined) continue;
    return mp_status_make(MP_INVALID_ARGUMENT, "bytecode: the mesh '%.*s' is not defined",
                          MP_STR_ARG(at->mesh->name));
  }
  return NULL;
}
