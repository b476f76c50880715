// What the files of this folder share: the keys of a chip's file, and their values by type.
#ifndef MINIPOD_TOPOLOGY_FIGURES_FIGURES_IMPL_H_
#define MINIPOD_TOPOLOGY_FIGURES_FIGURES_IMPL_H_

#include "topology/figures/figures.h"
#include "topology/yaml_events.h"

typedef enum {
  MP_FIGURE_COMPILER,
  MP_FIGURE_NUMBER,
  MP_FIGURE_TIME,
  MP_FIGURE_RATE,
  MP_FIGURE_BYTES,  // the last one that is no list
#define MP_FIGURE_LIST_TYPE(list) MP_FIGURE_##list,
  MP_FIGURE_LISTS(MP_FIGURE_LIST_TYPE)
#undef MP_FIGURE_LIST_TYPE
} mp_figure_type_t;

typedef struct {
  const char *key;
  mp_figure_type_t type;
  size_t offset;  // of the member of mp_chip_figures_t
  const char *meaning;
} mp_figure_key_t;

extern const mp_figure_key_t mp_figure_keys[MP_FIGURE_COUNT];

// The names of a list's members.
typedef struct {
  size_t count;
  const char *const *names;
} mp_figure_members_t;

static inline bool mp_figure_is_list(const mp_figure_key_t *key) {
  return key->type > MP_FIGURE_BYTES;
}
mp_figure_members_t mp_figure_members(const mp_figure_key_t *key);
static inline mp_figure_list_t *mp_figure_list(const mp_figure_key_t *key,
                                               mp_chip_figures_t *figures) {
  return (mp_figure_list_t *)(void *)((char *)figures + key->offset);
}

// Makes a parameter missing. Not for the compiler, which a file cannot take back.
void mp_figure_clear(const mp_figure_key_t *key, mp_chip_figures_t *figures);

// Reads a value that is no list into the member that `key` names; false if it is none.
bool mp_figure_parse(const mp_figure_key_t *key, mp_str_t text, mp_chip_figures_t *figures);
// Reads a member of a list: a number from 0.
bool mp_figure_parse_number(mp_str_t text, double *out);
// What a value that is no list has to be, for messages.
const char *mp_figure_expected(mp_figure_type_t type);

// figures_list.c: reads a list whose first event is the current one. In a mapping, members that are
// missing keep their values, if there are any. INVALID_ARGUMENT "<origin>:<line>: key '<key>':
// ...".
MP_NODISCARD mp_status_t mp_figure_read_list(mp_yaml_t *yaml, const mp_figure_key_t *key,
                                             mp_figure_list_t *in_out_list);

// ---- figures_sources.c ----

// "data sheet" (a constant).
const char *mp_chip_source_name(mp_chip_source_t source);

// What the key `sources` of a file says of a parameter, or of all that the file sets in its group.
typedef struct {
  uint8_t source;  // UNMARKED: nothing
  bool is_own;     // the parameter is named itself
  int line;
} mp_figure_mark_t;

// Reads the mapping whose start is the current event. INVALID_ARGUMENT for an unknown kind or key,
// and for a key that is given twice.
MP_NODISCARD mp_status_t mp_figure_read_marks(mp_yaml_t *yaml,
                                              mp_figure_mark_t out_marks[MP_FIGURE_COUNT]);

// Writes the sources of parameters: `lines` has the lines of those that the file sets, 0 for
// others. INVALID_ARGUMENT for a mark of a parameter that has no value.
MP_NODISCARD mp_status_t mp_figure_take_marks(const char *origin,
                                              const mp_figure_mark_t marks[MP_FIGURE_COUNT],
                                              const int lines[MP_FIGURE_COUNT],
                                              mp_chip_figures_t *in_out_figures);

#endif  // MINIPOD_TOPOLOGY_FIGURES_FIGURES_IMPL_H_
