#include "sim/foreign/foreign_registry.h"

#include <stdlib.h>

#include "sim/base/alloc.h"
#include "sim/base/os/lock.h"
#include "sim/foreign/foreign_api.h"

typedef struct type_s type_t;
struct type_s {
  mp_str_t name;
  int64_t id;
  void (*deleter)(void *);
  type_t *next;
};

static mp_lock_t g_lock = MP_LOCK_INITIALIZER(MP_LOCK_FOREIGN);
// Under the lock. Items of the lists are never removed.
static mp_foreign_handler_t *g_handlers;
static type_t *g_types;
// Far from the ids that jaxlib's own XLA assigns, because a type may be registered with both.
static int64_t g_last_type_id = INT64_C(1) << 40;

// ---- Handlers ----

static const char *const g_platforms[] = {"minipod", "Host"};

// JAX calls the platform "cpu" to its users and "Host" to XLA.
static mp_str_t foreign_registry_platform(mp_str_t platform) {
  return mp_str_is(platform, "cpu") ? mp_str("Host") : platform;
}

static const mp_foreign_handler_t *foreign_registry_find(mp_str_t name, mp_str_t platform,
                                                         bool is_typed) {
  mp_lock_assert_held(&g_lock);
  const mp_foreign_handler_t *handler = g_handlers;
  while (handler != NULL && (handler->is_typed != is_typed || !mp_str_equal(handler->name, name) ||
                             !mp_str_equal(handler->platform, platform))) {
    handler = handler->next;
  }
  return handler;
}

static bool foreign_registry_same(const mp_foreign_handler_t *a, const mp_foreign_handler_t *b) {
  return a->untyped == b->untyped && a->bundle.instantiate == b->bundle.instantiate &&
         a->bundle.prepare == b->bundle.prepare && a->bundle.initialize == b->bundle.initialize &&
         a->bundle.execute == b->bundle.execute;
}

// Adds a copy of the handler, followed by copies of its texts.
static mp_status_t foreign_registry_add(const mp_foreign_handler_t *model) {
  char *memory = mp_malloc(sizeof(*model) + model->name.size + model->platform.size);
  MP_RETURN_IF_NULL(memory);
  mp_foreign_handler_t *handler = (mp_foreign_handler_t *)memory;
  char *texts = memory + sizeof(*model);
  *handler = *model;
  memcpy(texts, model->name.data, model->name.size);
  memcpy(texts + model->name.size, model->platform.data, model->platform.size);
  handler->name.data = texts;
  handler->platform.data = texts + model->name.size;
  mp_lock(&g_lock);
  const mp_foreign_handler_t *old =
      foreign_registry_find(model->name, model->platform, model->is_typed);
  const bool is_same = old != NULL && foreign_registry_same(old, model);
  if (old == NULL) {
    handler->next = g_handlers;
    g_handlers = handler;
  }
  mp_unlock(&g_lock);
  if (old == NULL) return NULL;
  mp_free(memory);
  if (is_same) return NULL;
  return mp_status_make(MP_ALREADY_EXISTS,
                        "foreign function '%.*s' has other handlers on platform '%.*s' already",
                        MP_STR_ARG(model->name), MP_STR_ARG(model->platform));
}

static mp_status_t foreign_registry_check(mp_str_t name, mp_str_t platform) {
  if (name.size != 0 && platform.size != 0) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT,
                        "a foreign function needs a name and a platform; it has '%.*s' and '%.*s'",
                        MP_STR_ARG(name), MP_STR_ARG(platform));
}

mp_status_t mp_foreign_register_typed(mp_str_t name, mp_str_t platform,
                                      const XLA_FFI_Handler_Bundle *bundle,
                                      mp_foreign_traits_t traits) {
  MP_RETURN_IF_ERROR(foreign_registry_check(name, platform));
  if (bundle->execute == NULL) {
    return mp_status_make(MP_INVALID_ARGUMENT, "foreign function '%.*s' has no 'execute' handler",
                          MP_STR_ARG(name));
  }
  XLA_FFI_Metadata metadata;
  MP_RETURN_IF_ERROR(mp_status_annotate(mp_foreign_ask_metadata(bundle->execute, &metadata),
                                        "foreign function '%.*s'", MP_STR_ARG(name)));
  mp_foreign_handler_t handler = {
      .name = name,
      .platform = foreign_registry_platform(platform),
      .is_typed = true,
      .may_block = traits.may_block,
      .before_use = traits.before_use,
      .explains_itself = traits.explains_itself,
      .bundle = *bundle,
      .traits = metadata.traits | traits.traits,
      .major_version = metadata.api_version.major_version,
      .minor_version = metadata.api_version.minor_version,
  };
  if (bundle->instantiate != NULL) {
    MP_RETURN_IF_ERROR(mp_status_annotate(mp_foreign_ask_metadata(bundle->instantiate, &metadata),
                                          "foreign function '%.*s', stage instantiate",
                                          MP_STR_ARG(name)));
    handler.state_type_id = metadata.state_type_id;
  }
  return foreign_registry_add(&handler);
}

mp_status_t mp_foreign_register_untyped(mp_str_t name, mp_str_t platform, void *function) {
  MP_RETURN_IF_ERROR(foreign_registry_check(name, platform));
  if (function == NULL) {
    return mp_status_make(MP_INVALID_ARGUMENT, "foreign function '%.*s' is NULL", MP_STR_ARG(name));
  }
  const mp_foreign_handler_t handler = {
      .name = name, .platform = foreign_registry_platform(platform), .untyped = function};
  return foreign_registry_add(&handler);
}

const mp_foreign_handler_t *mp_foreign_find(mp_str_t name, bool is_typed) {
  const mp_foreign_handler_t *handler = NULL;
  mp_lock(&g_lock);
  for (size_t i = 0; i < sizeof(g_platforms) / sizeof(g_platforms[0]) && handler == NULL; ++i) {
    handler = foreign_registry_find(name, mp_str(g_platforms[i]), is_typed);
  }
  mp_unlock(&g_lock);
  return handler;
}

// ---- Lists of names, for messages ----

static int foreign_registry_compare(const void *a, const void *b) {
  return mp_str_compare(*(const mp_str_t *)a, *(const mp_str_t *)b);
}

// The length of the common prefix.
static size_t foreign_registry_common(mp_str_t a, mp_str_t b) {
  size_t count = 0;
  while (count < a.size && count < b.size && a.data[count] == b.data[count]) ++count;
  return count;
}

// Copies the names into `names`, which has room for `room`; returns how many there are.
static size_t foreign_registry_names(mp_str_t *names, size_t room) {
  size_t count = 0;
  mp_lock(&g_lock);
  for (const mp_foreign_handler_t *handler = g_handlers; handler != NULL; handler = handler->next) {
    if (count < room) names[count] = handler->name;
    ++count;
  }
  mp_unlock(&g_lock);
  return count;
}

void mp_foreign_list(mp_str_t name, size_t limit, mp_strbuf_t *out) {
  const size_t room = foreign_registry_names(NULL, 0);
  mp_str_t *names = mp_calloc(room, sizeof(*names));
  if (names == NULL) return;
  size_t count = foreign_registry_names(names, room);
  if (count > room) count = room;  // some may have been registered meanwhile
  if (count > 1) qsort(names, count, sizeof(*names), foreign_registry_compare);
  size_t written = 0;
  for (size_t longest = name.size + 1; longest-- > 0 && written <= limit;) {
    for (size_t i = 0; i < count && written <= limit; ++i) {
      const bool is_again = i != 0 && mp_str_equal(names[i], names[i - 1]);
      if (is_again || foreign_registry_common(names[i], name) != longest) continue;
      if (written == limit) {
        mp_strbuf_puts(out, ", ...");
      } else {
        mp_strbuf_printf(out, "%s%.*s", written == 0 ? "" : ", ", MP_STR_ARG(names[i]));
      }
      ++written;
    }
  }
  mp_free(names);
}

// ---- Types ----

static type_t *foreign_registry_type_by_id(int64_t id) {
  mp_lock_assert_held(&g_lock);
  type_t *type = g_types;
  while (type != NULL && type->id != id) type = type->next;
  return type;
}

static type_t *foreign_registry_type_by_name(mp_str_t name) {
  mp_lock_assert_held(&g_lock);
  type_t *type = g_types;
  while (type != NULL && !mp_str_equal(type->name, name)) type = type->next;
  return type;
}

// The id that replaces an id of 0: that of the name if it has one, otherwise a new one.
static int64_t foreign_registry_give_id(const type_t *of_name) {
  if (of_name != NULL) return of_name->id;
  do ++g_last_type_id;
  while (foreign_registry_type_by_id(g_last_type_id) != NULL);
  return g_last_type_id;
}

mp_status_t mp_foreign_register_type(mp_str_t name, void (*deleter)(void *),
                                     XLA_FFI_TypeId *inout_id) {
  char *memory = mp_malloc(sizeof(type_t) + name.size);
  MP_RETURN_IF_NULL(memory);
  type_t *type = (type_t *)memory;
  memcpy(memory + sizeof(*type), name.data, name.size);
  mp_lock(&g_lock);
  type_t *of_name = foreign_registry_type_by_name(name);
  const int64_t id = inout_id->type_id != 0 ? inout_id->type_id : foreign_registry_give_id(of_name);
  type_t *of_id = foreign_registry_type_by_id(id);
  const bool is_taken = of_id != of_name;
  const bool is_new = !is_taken && of_id == NULL;
  if (is_new) {
    *type = (type_t){{memory + sizeof(*type), name.size}, id, deleter, g_types};
    g_types = type;
  } else if (!is_taken && of_id->deleter == NULL) {
    of_id->deleter = deleter;
  }
  mp_unlock(&g_lock);
  if (!is_new) mp_free(memory);
  if (is_taken) {
    return mp_status_make(MP_INVALID_ARGUMENT,
                          "foreign type '%.*s' cannot have the id %lld: the name or the id is "
                          "registered otherwise",
                          MP_STR_ARG(name), (long long)id);
  }
  inout_id->type_id = id;
  return NULL;
}

bool mp_foreign_type_deleter(XLA_FFI_TypeId id, void (**out_deleter)(void *)) {
  mp_lock(&g_lock);
  const type_t *type = foreign_registry_type_by_id(id.type_id);
  if (type != NULL) *out_deleter = type->deleter;
  mp_unlock(&g_lock);
  return type != NULL;
}
