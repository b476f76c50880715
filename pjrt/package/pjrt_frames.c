#include "pjrt/package/pjrt_frames.h"

#include "sim/base/containers/hash_map.h"
#include "sim/base/hash.h"

// How many frames a search looks at for the line, and as many more for the module; as places.py.
enum { FRAMES_MOST = 64, FRAMES_LABELS = 1 << 16 };

// A place in a code. The code is NULL where there is none.
typedef struct {
  const void *code;
  int instruction;
} frames_place_t;

typedef struct {
  uint64_t module;  // its number; 0: none
  frames_place_t user, library;
} frames_key_t;

typedef struct {
  uint64_t hash;
  frames_key_t key;
  const char *label;
} frames_label_t;

// Of a code its kind. Of a module its number, which no other module has had; 0: it has no name.
typedef struct {
  uint64_t hash;
  uint64_t value;
} frames_known_t;

typedef MP_HASH_MAP(frames_known_t) frames_known_map_t;

// Under Python's lock.
static minipod_frames_python_t g_python;
static frames_known_map_t g_kinds, g_modules;
static MP_HASH_MAP(frames_label_t) g_labels;
static uint64_t g_last_module;

static _Thread_local frames_key_t t_found;  // by the last search; without a line it has failed

static uint64_t pjrt_frames_hash(const frames_key_t *key) {
  uint64_t hash = mp_hash_u64(MP_HASH_START, key->module);
  hash = mp_hash_u64(hash, (uint64_t)(uintptr_t)key->user.code);
  hash = mp_hash_u64(hash, (uint64_t)(uintptr_t)key->library.code);
  return mp_hash_u64(hash,
                     (uint64_t)key->user.instruction << 32 | (uint32_t)key->library.instruction);
}

static bool pjrt_frames_is_place(const frames_place_t *a, const frames_place_t *b) {
  return a->code == b->code && a->instruction == b->instruction;
}

static bool pjrt_frames_is_key(const frames_key_t *a, const frames_key_t *b) {
  return a->module == b->module && pjrt_frames_is_place(&a->user, &b->user) &&
         pjrt_frames_is_place(&a->library, &b->library);
}

static uint64_t pjrt_frames_look_up(const frames_known_map_t *map, const void *object) {
  const frames_known_t *known;
  MP_HASH_MAP_GET(map, mp_hash_pointer(object), known);
  return known == NULL ? 0 : known->value;
}

// What does not fit into memory is not known, and the package finds it each time.
static void pjrt_frames_set(frames_known_map_t *map, const void *object, uint64_t value) {
  mp_status_ignore(MP_HASH_MAP_SET(NULL, map, &(frames_known_t){mp_hash_pointer(object), value}));
}

void minipod_frames_begin(const minipod_frames_python_t *python) {
  g_python = *python;
  MP_HASH_MAP_FREE(&g_labels);
}

void minipod_frames_know(const void *code, int kind) {
  pjrt_frames_set(&g_kinds, code, (uint64_t)kind);
}

void minipod_frames_name(const void *module, bool is_named) {
  pjrt_frames_set(&g_modules, module, is_named ? ++g_last_module : 0);
}

// ---- A search ----

// False: the module is not known.
static bool pjrt_frames_read_module(void *frame, frames_key_t *key) {
  void *module = g_python.variable(frame, "self");
  if (module == NULL) {
    g_python.clear();
    return false;
  }
  key->module = pjrt_frames_look_up(&g_modules, module);
  g_python.drop(module);
  return key->module != 0;
}

typedef enum { FRAMES_GO_ON, FRAMES_DONE, FRAMES_FAILED } frames_step_t;

static frames_step_t pjrt_frames_look_at(void *frame, frames_key_t *key) {
  void *code = g_python.code(frame);
  const mp_frames_kind_t kind = (mp_frames_kind_t)pjrt_frames_look_up(&g_kinds, code);
  g_python.drop(code);  // the frame has it
  switch (kind) {
    case MP_FRAMES_PASSED:
      return FRAMES_GO_ON;
    case MP_FRAMES_LIBRARY:
    case MP_FRAMES_USER: {
      frames_place_t *place = kind == MP_FRAMES_USER ? &key->user : &key->library;
      if (key->user.code == NULL && place->code == NULL) {
        *place = (frames_place_t){code, g_python.instruction(frame)};
      }
      break;
    }
    case MP_FRAMES_MODULE:
      if (key->module == 0 && !pjrt_frames_read_module(frame, key)) return FRAMES_FAILED;
      break;
    case MP_FRAMES_UNKNOWN:
    case MP_FRAMES_OTHER:
      return FRAMES_FAILED;
  }
  return key->user.code != NULL && key->module != 0 ? FRAMES_DONE : FRAMES_GO_ON;
}

// False: the package must find the label.
static bool pjrt_frames_search(frames_key_t *key) {
  void *frame = g_python.back(g_python.current());
  frames_step_t step = FRAMES_GO_ON;
  bool has_line = false;
  for (int left = FRAMES_MOST; frame != NULL && left > 0 && step == FRAMES_GO_ON; --left) {
    step = pjrt_frames_look_at(frame, key);
    if (!has_line && key->user.code != NULL) {
      has_line = true;
      left = FRAMES_MOST + 1;
    }
    void *next = step == FRAMES_GO_ON ? g_python.back(frame) : NULL;
    g_python.drop(frame);
    frame = next;
  }
  if (frame != NULL) g_python.drop(frame);
  return step != FRAMES_FAILED && has_line;
}

const char *minipod_frames_find(void) {
  t_found = (frames_key_t){0};
  if (g_python.current == NULL) return NULL;
  frames_key_t key = {0};
  if (!pjrt_frames_search(&key)) return NULL;
  t_found = key;
  const frames_label_t *found;
  MP_HASH_MAP_EACH(&g_labels, pjrt_frames_hash(&key), found) {
    if (pjrt_frames_is_key(&found->key, &key)) return found->label;
  }
  return NULL;
}

void minipod_frames_keep(const char *label) {
  if (t_found.user.code == NULL || label == NULL) return;
  if (g_labels.map.count >= FRAMES_LABELS) MP_HASH_MAP_FREE(&g_labels);
  const frames_label_t entry = {pjrt_frames_hash(&t_found), t_found, label};
  mp_status_ignore(MP_HASH_MAP_ADD(NULL, &g_labels, &entry));
  t_found = (frames_key_t){0};
}
