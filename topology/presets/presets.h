// Well-known machines: their names, and their settings in a description, which are constant. And
// files of configs/ that the library contains, so that their names are enough.
#ifndef MINIPOD_TOPOLOGY_PRESETS_PRESETS_H_
#define MINIPOD_TOPOLOGY_PRESETS_PRESETS_H_

#include <stddef.h>

#include "sim/base/str.h"

typedef struct mp_preset_s mp_preset_t;

// A key of the schema (spec.h), and its value as users write it.
typedef struct {
  const char *key;
  const char *value;
} mp_preset_setting_t;

// The preset of this name; NULL: there is none.
const mp_preset_t *mp_preset_find(mp_str_t name);
// Its name in the table, even if it was found by another name.
const char *mp_preset_name(const mp_preset_t *preset);
// Setting number `index`, from 0 on; NULL after the last one.
const mp_preset_setting_t *mp_preset_setting(const mp_preset_t *preset, size_t index);
// Appends "v2, v3, …".
void mp_preset_list(mp_strbuf_t *out_text);

// A file of configs/.
typedef struct {
  const char *name;  // "v5e", of v5e.yaml; NULL ends a table
  const char *text;
} mp_carried_file_t;

// Parameters of chips (configs/chips/) and described pods (configs/); CMake generates the tables
// (tools/embed_files.cmake).
extern const mp_carried_file_t mp_chip_files[], mp_pod_files[];

// The file of this name in a table; NULL: there is none.
const mp_carried_file_t *mp_carried_file_find(const mp_carried_file_t *files, mp_str_t name);
// Appends the names of a table, with ", " between them.
void mp_carried_files_list(const mp_carried_file_t *files, mp_strbuf_t *out_text);

#endif  // MINIPOD_TOPOLOGY_PRESETS_PRESETS_H_
