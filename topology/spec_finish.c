// Checks and derived values that need the whole description.

#include "topology/spec.h"
#include "topology/spec_value.h"

enum { MP_FABRIC_LEAF_HOSTS = 32 };  // of a fat tree without a given number

// An error that only the whole description shows; it names the key and its place.
#define SPEC_FINISH_REFUSE(spec, origin, key, ...) \
  mp_spec_error(spec_finish_place(spec, origin, key), mp_str(key), __VA_ARGS__)

static mp_spec_place_t spec_finish_place(const mp_pod_spec_t *spec, const char *origin,
                                         const char *key) {
  int id = mp_spec_key_id(mp_str(key));
  return (mp_spec_place_t){origin, spec->given[id].line, spec->given[id].layer};
}

// The layer that gave a key.
static int spec_finish_layer_of(const mp_pod_spec_t *spec, const char *key) {
  return (int)spec->given[mp_spec_key_id(mp_str(key))].layer;
}

static mp_status_t spec_finish_shape(mp_pod_spec_t *spec, const char *origin) {
  if (spec->shape.num_dims == 0 && spec->chips == 0) {
    return SPEC_FINISH_REFUSE(spec, origin, "shape",
                              "missing, expected the grid of chips of one slice such as 4x4");
  }
  if (spec->shape.num_dims == 0) spec->shape = (mp_shape_t){1, {spec->chips}};
  int64_t chips = mp_shape_num_chips(&spec->shape);
  if (spec->chips != 0 && spec->chips != chips) {
    mp_strbuf_t text;
    mp_strbuf_init(&text);
    mp_shape_write(&spec->shape, &text);
    mp_status_t status =
        SPEC_FINISH_REFUSE(spec, origin, "chips", "expected the %lld chips of the shape %s, got %d",
                           (long long)chips, mp_strbuf_text(&text), spec->chips);
    mp_strbuf_deinit(&text);
    return status;
  }
  while (spec->shape.num_dims < spec->dims) spec->shape.dims[spec->shape.num_dims++] = 1;
  int64_t devices = chips * spec->slices * spec->cores_per_chip;
  if (devices > MP_POD_MAX_DEVICES) {
    return SPEC_FINISH_REFUSE(spec, origin, spec->chips != 0 ? "chips" : "shape",
                              "expected at most %d devices in all", MP_POD_MAX_DEVICES);
  }
  spec->chips = (int32_t)chips;
  return NULL;
}

// ---- Published shapes ----

// The sides of a grid that are longer than one, ascending. Returns how many.
static int32_t spec_finish_sort_sides(const mp_shape_t *shape, int32_t sides[MP_POD_MAX_DIMS]) {
  int32_t count = 0;
  for (int32_t i = 0; i < shape->num_dims; ++i) {
    if (shape->dims[i] == 1) continue;
    int32_t at = count++;
    for (; at > 0 && sides[at - 1] > shape->dims[i]; --at) sides[at] = sides[at - 1];
    sides[at] = shape->dims[i];
  }
  return count;
}

// Whether the grids are equal except for the order of their sides.
static bool spec_finish_are_alike(const mp_shape_t *a, const mp_shape_t *b) {
  int32_t left[MP_POD_MAX_DIMS], right[MP_POD_MAX_DIMS];
  const int32_t count = spec_finish_sort_sides(a, left);
  if (spec_finish_sort_sides(b, right) != count) return false;
  return memcmp(left, right, (size_t)count * sizeof(*left)) == 0;
}

static bool spec_finish_is_of_blocks(const mp_shape_t *shape, const mp_shape_t *block) {
  if (block->num_dims == 0 || shape->num_dims != block->num_dims) return false;
  for (int32_t i = 0; i < shape->num_dims; ++i) {
    if (shape->dims[i] % block->dims[i] != 0) return false;
  }
  return true;
}

static mp_status_t spec_finish_refuse_shape(const mp_pod_spec_t *spec, const char *origin,
                                            const char *key) {
  const bool is_preset = spec_finish_layer_of(spec, "shapes") == MP_LAYER_PRESET;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_puts(&text, "no slice ");
  if (is_preset) mp_strbuf_printf(&text, "of %s ", spec->preset);
  mp_strbuf_puts(&text, "has the grid ");
  mp_shape_write(&spec->shape, &text);
  mp_strbuf_puts(&text, ", expected ");
  for (const char *c = spec->shapes; *c != '\0'; ++c) {
    mp_strbuf_puts(&text, *c == ',' ? ", " : (char[2]){*c, '\0'});
  }
  if (spec->wrap_block.num_dims != 0) {
    mp_strbuf_puts(&text, ", blocks of ");
    mp_shape_write(&spec->wrap_block, &text);
  }
  mp_strbuf_puts(&text, ", with the sides in any order (shapes:any allows all)");
  const mp_status_t status =
      text.failed ? mp_status_out_of_memory()
                  : SPEC_FINISH_REFUSE(spec, origin, key, "%s", mp_strbuf_text(&text));
  mp_strbuf_deinit(&text);
  return status;
}

// Real machines exist only as certain slices, or as whole blocks. `key` is the key that gave the
// grid.
static mp_status_t spec_finish_shapes(mp_pod_spec_t *spec, const char *origin, const char *key) {
  bool is_there = spec->shapes[0] == '\0' || strcmp(spec->shapes, "any") == 0 ||
                  spec_finish_is_of_blocks(&spec->shape, &spec->wrap_block);
  for (mp_str_t rest = mp_str(spec->shapes); rest.size != 0 && !is_there;) {
    size_t size = 0;
    while (size < rest.size && rest.data[size] != ',') ++size;
    mp_shape_t shape;
    if (!mp_spec_value_parse(MP_SPEC_SHAPE, (mp_str_t){rest.data, size}, &shape)) {
      return SPEC_FINISH_REFUSE(spec, origin, "shapes", "expected grids such as 2x2,2x4, or any");
    }
    is_there = spec_finish_are_alike(&shape, &spec->shape);
    size += size < rest.size;
    rest = (mp_str_t){rest.data + size, rest.size - size};
  }
  if (!is_there) return spec_finish_refuse_shape(spec, origin, key);
  memset(spec->shapes, 0, sizeof(spec->shapes));
  return NULL;
}

// ---- Wirings ----

// Whether a torus closes to rings along a dimension.
static bool spec_finish_wraps(const mp_pod_spec_t *spec, int32_t dim) {
  if (spec->wrap_side != 0 && spec->shape.dims[dim] % spec->wrap_side != 0) return false;
  for (int32_t i = 0; i < spec->wrap_block.num_dims; ++i) {
    int32_t side = i < spec->shape.num_dims ? spec->shape.dims[i] : 1;
    if (side % spec->wrap_block.dims[i] != 0) return false;
  }
  return true;
}

// Expands a torus into the wirings of its dimensions.
static void spec_finish_unfold_torus(mp_pod_spec_t *spec) {
  // If a layer sets `topology: torus`, all dimensions are a torus, whatever the layers below set.
  int torus = spec_finish_layer_of(spec, "topology");
  if (torus > spec_finish_layer_of(spec, "wrap.side")) spec->wrap_side = 0;
  if (torus > spec_finish_layer_of(spec, "wrap.block")) spec->wrap_block.num_dims = 0;
  spec->wirings.count = spec->shape.num_dims;
  for (int32_t i = 0; i < spec->shape.num_dims; ++i) {
    spec->wirings.each[i] = spec_finish_wraps(spec, i) ? MP_WIRING_RING : MP_WIRING_MESH;
  }
}

// Whether `count` values are those of the dimensions: dimensions beyond them must have size 1.
static bool spec_finish_fits(const mp_pod_spec_t *spec, int32_t count) {
  if (count > spec->shape.num_dims) return false;
  for (int32_t i = count; i < spec->shape.num_dims; ++i) {
    if (spec->shape.dims[i] > 1) return false;
  }
  return true;
}

// Replaces a list of wirings by one if all dimensions that have neighbours are alike. So equal pods
// have equal descriptions.
static void spec_finish_join_wirings(mp_pod_spec_t *spec) {
  static const mp_wiring_t whole[MP_WIRING_COUNT] = {
      [MP_WIRING_RING] = MP_WIRING_TORUS,
      [MP_WIRING_MESH] = MP_WIRING_MESH,
      [MP_WIRING_SWITCH] = MP_WIRING_SWITCH,
      [MP_WIRING_FULLY_CONNECTED] = MP_WIRING_FULLY_CONNECTED};
  mp_wirings_t *wirings = &spec->wirings;
  int long_sides = 0;
  bool alike = true;
  mp_wiring_t first = MP_WIRING_RING;
  for (int32_t i = 0; i < spec->shape.num_dims; ++i) {
    if (spec->shape.dims[i] == 1) continue;
    if (long_sides++ == 0) first = wirings->each[i];
    alike = alike && wirings->each[i] == first;
  }
  bool is_grid = first == MP_WIRING_RING || first == MP_WIRING_MESH;
  if (alike && (is_grid || long_sides == 1)) {
    *wirings = (mp_wirings_t){1, {whole[first]}};
    return;
  }
  for (int32_t i = 0; i < spec->shape.num_dims; ++i) {
    if (spec->shape.dims[i] == 1) wirings->each[i] = MP_WIRING_MESH;
  }
  wirings->count = spec->shape.num_dims;
}

static mp_status_t spec_finish_check_wirings(const mp_pod_spec_t *spec, const char *origin) {
  const mp_wirings_t *wirings = &spec->wirings;
  if (wirings->count == 1) {
    int long_sides = 0;
    for (int32_t i = 0; i < spec->shape.num_dims; ++i) long_sides += spec->shape.dims[i] > 1;
    if (wirings->each[0] != MP_WIRING_RING || long_sides <= 1) return NULL;
    return SPEC_FINISH_REFUSE(spec, origin, "topology",
                              "a ring has one dimension, expected torus or mesh");
  }
  if (!spec_finish_fits(spec, wirings->count)) {
    return SPEC_FINISH_REFUSE(spec, origin, "topology",
                              "expected one wiring, or one for each dimension of 'shape'");
  }
  for (int32_t i = 0; i < wirings->count; ++i) {
    if (wirings->each[i] != MP_WIRING_TORUS) continue;
    return SPEC_FINISH_REFUSE(
        spec, origin, "topology",
        "a dimension is not a torus, expected ring, mesh, switch or fully_connected for each");
  }
  return NULL;
}

// A higher layer may have replaced the torus.
static mp_status_t spec_finish_check_wrap(const mp_pod_spec_t *spec, const char *origin) {
  const char *const keys[] = {"wrap.side", "wrap.block"};
  const bool given[] = {spec->wrap_side != 0, spec->wrap_block.num_dims != 0};
  for (int i = 0; i < 2; ++i) {
    if (!given[i]) continue;
    if (spec_finish_layer_of(spec, keys[i]) >= spec_finish_layer_of(spec, "topology")) {
      return SPEC_FINISH_REFUSE(spec, origin, keys[i], "only a torus has it: topology");
    }
  }
  return NULL;
}

static mp_status_t spec_finish_wirings(mp_pod_spec_t *spec, const char *origin) {
  mp_wirings_t *wirings = &spec->wirings;
  if (wirings->count == 0) *wirings = (mp_wirings_t){1, {MP_WIRING_TORUS}};
  MP_RETURN_IF_ERROR(spec_finish_check_wirings(spec, origin));
  if (wirings->count == 1 && wirings->each[0] == MP_WIRING_TORUS) {
    spec_finish_unfold_torus(spec);
    spec_finish_join_wirings(spec);
  } else {
    MP_RETURN_IF_ERROR(spec_finish_check_wrap(spec, origin));
    if (wirings->count > 1) spec_finish_join_wirings(spec);
  }
  spec->wrap_side = 0;
  spec->wrap_block = (mp_shape_t){0};
  return NULL;
}

// Replaces a list of values by one if all dimensions that have links are alike; dimensions without
// links get the first value.
static void spec_finish_join_values(const mp_pod_spec_t *spec, mp_quantities_t *values) {
  int32_t first = 0;
  while (first + 1 < values->count && spec->shape.dims[first] == 1) ++first;
  bool alike = true;
  for (int32_t i = 0; i < spec->shape.num_dims; ++i) {
    if (i >= values->count || spec->shape.dims[i] == 1) values->each[i] = values->each[first];
    alike &= values->each[i] == values->each[first];
  }
  values->count = alike ? 1 : spec->shape.num_dims;
  for (int32_t i = values->count; i < MP_POD_MAX_DIMS; ++i) values->each[i] = 0;
}

// Checks a quantity that may differ by dimension.
static mp_status_t spec_finish_by_dimension(const mp_pod_spec_t *spec, const char *origin,
                                            const char *key, mp_quantities_t *values) {
  if (values->count <= 1) return NULL;
  if (!spec_finish_fits(spec, values->count)) {
    return SPEC_FINISH_REFUSE(spec, origin, key,
                              "expected one value, or one for each dimension of 'shape'");
  }
  spec_finish_join_values(spec, values);
  const mp_wiring_t wiring = spec->wirings.each[0];
  const bool is_flat = spec->wirings.count == 1 &&
                       (wiring == MP_WIRING_SWITCH || wiring == MP_WIRING_FULLY_CONNECTED);
  if (values->count == 1 || !is_flat) return NULL;
  return SPEC_FINISH_REFUSE(spec, origin, key,
                            "expected one value, because the wiring is that of the whole slice");
}

// ---- The network between hosts ----

static mp_status_t spec_finish_fabric(mp_pod_spec_t *spec, const char *origin) {
  if (spec->dcn_links == 0) spec->dcn_links = 1;
  if (spec->dcn_fabric == MP_FABRIC_FAT_TREE) {
    if (spec->dcn_leaf_hosts == 0) spec->dcn_leaf_hosts = MP_FABRIC_LEAF_HOSTS;
    if (spec->dcn_oversubscription == 0) spec->dcn_oversubscription = 1;
    return NULL;
  }
  const char *const keys[] = {"dcn.leaf_hosts", "dcn.oversubscription"};
  const bool given[] = {spec->dcn_leaf_hosts != 0, spec->dcn_oversubscription != 0};
  for (int i = 0; i < 2; ++i) {
    if (!given[i]) continue;
    // A higher layer may have replaced the fat tree by a switch.
    if (spec_finish_layer_of(spec, keys[i]) >= spec_finish_layer_of(spec, "dcn.topology")) {
      return SPEC_FINISH_REFUSE(spec, origin, keys[i], "only a fat tree has it: dcn.topology");
    }
  }
  spec->dcn_leaf_hosts = 0;
  spec->dcn_oversubscription = 0;
  return NULL;
}

// ---- Hosts ----

// Derives the hosts of a grid whose hosts are boxes of it. Boxes at the far edges may be smaller.
static mp_status_t spec_finish_host_shape(mp_pod_spec_t *spec, const char *origin) {
  mp_shape_t *box = &spec->host_shape;
  while (box->num_dims < spec->shape.num_dims) box->dims[box->num_dims++] = 1;
  if (box->num_dims > spec->shape.num_dims) {
    return SPEC_FINISH_REFUSE(spec, origin, "host_shape", "has more sizes than 'shape'");
  }
  int64_t hosts = spec->slices;
  for (int32_t i = 0; i < box->num_dims; ++i) {
    if (box->dims[i] > spec->shape.dims[i]) box->dims[i] = spec->shape.dims[i];
    hosts *= (spec->shape.dims[i] + box->dims[i] - 1) / box->dims[i];
  }
  if (spec->hosts != 0 && spec->hosts != hosts) {
    return SPEC_FINISH_REFUSE(spec, origin, "hosts",
                              "expected the %lld hosts that 'host_shape' makes, got %d",
                              (long long)hosts, spec->hosts);
  }
  spec->hosts = (int32_t)hosts;
  return NULL;
}

static mp_status_t spec_finish_hosts(mp_pod_spec_t *spec, const char *origin) {
  int count = spec_finish_layer_of(spec, "hosts");
  int box = spec_finish_layer_of(spec, "host_shape");
  if (box > count) spec->hosts = 0;
  if (count > box) spec->host_shape.num_dims = 0;
  if (spec->host_shape.num_dims != 0) return spec_finish_host_shape(spec, origin);
  if (spec->hosts == 0) spec->hosts = spec->slices;
  if (spec->hosts % spec->slices != 0 || spec->chips % (spec->hosts / spec->slices) != 0) {
    return SPEC_FINISH_REFUSE(
        spec, origin, "hosts",
        "expected a number that divides %d slice(s) of %d chip(s) into equal parts, got %d",
        spec->slices, spec->chips, spec->hosts);
  }
  return NULL;
}

mp_status_t mp_spec_finish(mp_pod_spec_t *spec, const char *origin) {
  if (spec->kind[0] == '\0') strcpy(spec->kind, "minipod");
  if (spec->cores_per_chip == 0) spec->cores_per_chip = 1;
  if (spec->cores_per_device == 0) spec->cores_per_device = 1;
  if (spec->slices == 0) spec->slices = 1;
  if (spec->links == 0) spec->links = 1;
  if (spec->memory[MP_MEMORY_DEVICE] == UINT64_MAX) {
    return SPEC_FINISH_REFUSE(spec, origin, "memory.device",
                              "expected a size such as 16GiB, got 'unlimited'");
  }
  if (spec->matrix_unit.num_dims != 0 && spec->matrix_unit.num_dims != 2) {
    return SPEC_FINISH_REFUSE(spec, origin, "matrix_unit", "expected two sizes such as 128x128");
  }
  const bool is_counted = spec->shape.num_dims == 0;
  MP_RETURN_IF_ERROR(spec_finish_shape(spec, origin));
  MP_RETURN_IF_ERROR(spec_finish_shapes(spec, origin, is_counted ? "chips" : "shape"));
  MP_RETURN_IF_ERROR(spec_finish_wirings(spec, origin));
  MP_RETURN_IF_ERROR(spec_finish_by_dimension(spec, origin, "links.latency", &spec->link_latency));
  MP_RETURN_IF_ERROR(
      spec_finish_by_dimension(spec, origin, "links.bandwidth", &spec->link_bandwidth));
  MP_RETURN_IF_ERROR(spec_finish_fabric(spec, origin));
  return spec_finish_hosts(spec, origin);
}
