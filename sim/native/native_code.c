// Opens the module, and keeps the compiled functions.
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/alloc.h"
#include "sim/base/containers/hash_map.h"
#include "sim/base/hash.h"
#include "sim/base/log.h"
#include "sim/base/os/lock.h"
#include "sim/base/str.h"
#include "sim/native/native.h"
#include "sim/native/native_module.h"

// ---- the module ----

// A missing module is normal (the library was built without LLVM) and only logged at level info. A
// module that exists but cannot be used is an error of the installation: it is logged as a warning.
static const mp_native_module_t *native_code_open_at(const char *path) {
  if (access(path, F_OK) != 0) {
    mp_log(MP_LOG_INFO, "cannot make machine code: there is no %s", path);
    return NULL;
  }
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);  // never closed: its code runs
  if (handle == NULL) {
    mp_log(MP_LOG_WARNING, "cannot make machine code, so loops are slower: %s", dlerror());
    return NULL;
  }
  void *symbol = dlsym(handle, MP_NATIVE_MODULE_SYMBOL);
  mp_native_module_fn_t *get = NULL;
  memcpy(&get, &symbol, sizeof(get));
  const mp_native_module_t *module = get == NULL ? NULL : get();
  if (module != NULL && module->contract == MP_NATIVE_CONTRACT) return module;
  mp_log(MP_LOG_WARNING, "cannot make machine code, so loops are slower: %s is of another build",
         path);
  return NULL;
}

static const char *g_path;

void mp_native_set_module(const char *path) {
  g_path = path;
}

// The module next to this library; NULL if there is none.
static const mp_native_module_t *native_code_open(void) {
  if (g_path != NULL) return native_code_open_at(g_path);
  Dl_info info;
  static const char here = 0;
  if (dladdr(&here, &info) == 0 || info.dli_fname == NULL) return NULL;
  const char *slash = strrchr(info.dli_fname, '/');
  mp_strbuf_t path;
  mp_strbuf_init(&path);
  if (slash != NULL) mp_strbuf_append(&path, info.dli_fname, (size_t)(slash + 1 - info.dli_fname));
  mp_strbuf_puts(&path, "minipod_native.so");
  const mp_native_module_t *module = native_code_open_at(mp_strbuf_text(&path));
  mp_strbuf_deinit(&path);
  return module;
}

// ---- the compiled functions ----

// No more than this many, because they are never freed.
enum { MAX_FUNCTIONS = 4096 };

typedef union {
  mp_native_map_fn_t map;
  mp_native_loop_fn_t loop;
} function_t;

typedef struct {
  uint64_t hash;
  mp_str_t key;  // the code, as bytes
  function_t function;
} known_t;

// All under the lock, which is held during a compilation: there is one compiler, and a thread that
// needs the same code at the same time waits instead of compiling it again.
static struct {
  mp_lock_t lock;
  bool has_tried;
  const mp_native_module_t *module;
  MP_HASH_MAP(known_t) map;  // on the heap
} g_known = {.lock = MP_LOCK_INITIALIZER(MP_LOCK_NATIVE)};

static void native_code_put(mp_strbuf_t *key, uint64_t number) {
  mp_strbuf_append(key, (const char *)&number, sizeof(number));
}

static void native_code_put_op(mp_strbuf_t *key, const mp_native_op_t *op) {
  native_code_put(
      key, (uint64_t)op->code << 32 | (uint64_t)op->direction << 1 | (op->is_rotation ? 1u : 0));
  native_code_put(key, (uint64_t)op->from << 32 | (uint64_t)op->to);
}

static void native_code_put_map(mp_strbuf_t *key, const mp_native_map_t *map) {
  native_code_put(key, map->num_values);
  for (uint32_t i = 0; i < map->num_values; ++i) {
    const mp_native_value_t *value = &map->values[i];
    native_code_put(key, (uint64_t)value->dtype << 32 | value->argument);
    native_code_put(key, (value->is_read ? 1u : 0) | (value->is_one ? 2u : 0) |
                             (value->is_stored ? 4u : 0) | (value->is_known ? 8u : 0));
    native_code_put(key, value->known);
  }
  for (uint32_t s = 0; s < map->num_steps; ++s) {
    const mp_native_step_t *step = &map->steps[s];
    native_code_put_op(key, &step->op);
    native_code_put(key, (uint64_t)step->in[0] << 32 | step->in[1]);
    native_code_put(key, (uint64_t)step->in[2] << 32 | step->out);
  }
}

static void native_code_put_ref(mp_strbuf_t *key, const mp_native_ref_t *ref) {
  native_code_put(key, (uint64_t)ref->memory << 32 | (ref->is_temporary ? 1u : 0) |
                           (ref->known != NULL ? 2u : 0));
  native_code_put(key, ref->offset);
  native_code_put(key, ref->bytes);
  if (ref->known != NULL) mp_strbuf_append(key, ref->known, ref->bytes);
}

static void native_code_put_instruction(mp_strbuf_t *key, const mp_native_instruction_t *i) {
  native_code_put(key, (uint64_t)i->kind << 32 | i->num_inputs);
  native_code_put_op(key, &i->op);
  for (uint32_t k = 0; k <= MP_NATIVE_MAX_INPUTS; ++k) native_code_put(key, i->in[k]);
  native_code_put(key, (uint64_t)i->out << 32 | i->target);
  native_code_put(key, (uint64_t)i->other << 32 | i->stop);
  native_code_put(key, (uint64_t)i->count);
  native_code_put(key, (uint64_t)i->num_indices << 32 | (uint64_t)i->index_dtype);
  for (uint32_t k = 0; k < MP_NATIVE_MAX_INDICES; ++k) {
    native_code_put(key, (uint64_t)i->most[k]);
    native_code_put(key, (uint64_t)i->stride[k]);
  }
}

static void native_code_put_use(mp_strbuf_t *key, const mp_native_use_t *use) {
  native_code_put(key,
                  (uint64_t)use->ref << 32 | (use->is_written ? 1u : 0) | (use->is_part ? 2u : 0));
  native_code_put(key, use->bytes);
}

static void native_code_put_loop(mp_strbuf_t *key, const mp_native_loop_t *loop) {
  native_code_put(key, ~(uint64_t)loop->num_refs);  // distinguishes loops from maps
  native_code_put(key, loop->edges_per_look);
  for (uint32_t r = 0; r < loop->num_refs; ++r) native_code_put_ref(key, &loop->refs[r]);
  for (uint32_t n = 0; n < loop->num_instructions; ++n) {
    native_code_put_instruction(key, &loop->instructions[n]);
  }
  for (uint32_t t = 0; t < loop->num_targets; ++t) native_code_put(key, loop->targets[t]);
  for (uint32_t i = 0; i < loop->num_places; ++i) {
    native_code_put(key, (uint64_t)loop->places[i]);
  }
  for (uint32_t u = 0; u < loop->num_uses; ++u) native_code_put_use(key, &loop->uses[u]);
}

// Compiles a map or a loop, and keeps the function, or its failure, under the key.
static function_t native_code_compile(mp_str_t key, uint64_t hash, const mp_native_map_t *map,
                                      const mp_native_loop_t *loop) {
  known_t known = {.hash = hash};
  if (!g_known.has_tried) {
    g_known.has_tried = true;
    g_known.module = native_code_open();
  }
  if (g_known.module == NULL || g_known.map.map.count == MAX_FUNCTIONS) return known.function;
  char *bytes = mp_malloc(key.size);
  if (bytes == NULL) return known.function;
  memcpy(bytes, key.data, key.size);
  known.key = (mp_str_t){bytes, key.size};
  if (map != NULL) {
    known.function.map = g_known.module->compile_map(map);
  } else {
    known.function.loop = g_known.module->compile_loop(loop);
  }
  const mp_status_t status = MP_HASH_MAP_ADD(NULL, &g_known.map, &known);
  if (status != NULL) mp_free(bytes);
  mp_status_ignore(status);
  return known.function;
}

// The function of a map or a loop, compiled if it is new.
static function_t native_code_find(const mp_native_map_t *map, const mp_native_loop_t *loop) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  if (map != NULL) {
    native_code_put_map(&text, map);
  } else {
    native_code_put_loop(&text, loop);
  }
  function_t function = {0};
  const mp_status_t status = mp_strbuf_status(&text);
  if (status == NULL) {
    const mp_str_t key = {mp_strbuf_text(&text), text.size};
    const uint64_t hash = mp_hash_bytes(0, key.data, key.size);
    mp_lock(&g_known.lock);
    const known_t *known;
    MP_HASH_MAP_EACH(&g_known.map, hash, known) {
      if (mp_str_equal(known->key, key)) break;
    }
    function = known != NULL ? known->function : native_code_compile(key, hash, map, loop);
    mp_unlock(&g_known.lock);
  }
  mp_status_ignore(status);
  mp_strbuf_deinit(&text);
  return function;
}

mp_native_map_fn_t mp_native_compile_map(const mp_native_map_t *map) {
  return native_code_find(map, NULL).map;
}

mp_native_loop_fn_t mp_native_compile_loop(const mp_native_loop_t *loop) {
  return native_code_find(NULL, loop).loop;
}
