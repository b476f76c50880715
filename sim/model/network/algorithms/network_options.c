#include "sim/model/network/algorithms/network_options.h"

#include "sim/base/table.h"
#include "sim/model/network/algorithms/algorithms.h"

// The error for a word that is none of `names`.
static mp_status_t network_options_unknown(const char *what, mp_str_t word,
                                           const char *const *names, uint32_t count) {
  mp_strbuf_t known;
  mp_strbuf_init(&known);
  for (uint32_t i = 0; i < count; ++i) {
    mp_strbuf_printf(&known, "%s%s", i == 0 ? "" : ", ", names[i]);
  }
  const char *nearest = mp_str_nearest(word, names, count);
  mp_status_t status = mp_status_make(
      MP_INVALID_ARGUMENT, "%s '%.*s' is unknown%s%s%s; expected one of %s", what, MP_STR_ARG(word),
      nearest == NULL ? "" : " (did you mean '", nearest == NULL ? "" : nearest,
      nearest == NULL ? "" : "'?)", mp_strbuf_text(&known));
  mp_strbuf_deinit(&known);
  return status;
}

static mp_status_t network_options_unknown_kind(mp_str_t word) {
  static const char *const names[] = {
#define ROW(name, text, ...) text,
      MP_COLLECTIVES(ROW)
#undef ROW
  };
  return network_options_unknown("collective", word, names, MP_COUNT_OF(names));
}

// The algorithm of this name, if it can be the kind's.
static mp_status_t network_options_find_algorithm(mp_str_t word, mp_collective_kind_t kind,
                                                  mp_algorithm_t *out_algorithm) {
  const mp_algorithm_t *candidates = mp_algorithms_of(kind);
  const char *names[MP_ALGORITHM_COUNT] = {mp_algorithm_name(MP_ALGORITHM_AUTO)};
  uint32_t count = 1;
  if (mp_str_is(word, names[0])) {
    *out_algorithm = MP_ALGORITHM_AUTO;
    return NULL;
  }
  for (; candidates[count - 1] != MP_ALGORITHM_AUTO; ++count) {
    names[count] = mp_algorithm_name(candidates[count - 1]);
    if (!mp_str_is(word, names[count])) continue;
    *out_algorithm = candidates[count - 1];
    return NULL;
  }
  mp_status_t status = network_options_unknown("algorithm", word, names, count);
  return mp_status_annotate(status, "%s", mp_collective_kind_name(kind));
}

mp_status_t mp_network_options_read(mp_str_t text, mp_network_options_t *options) {
  mp_network_options_t read = *options;
  while (text.size != 0) {
    mp_str_t algorithm = mp_str_cut(&text, ',');
    const mp_str_t word = mp_str_cut(&algorithm, ':');
    mp_collective_kind_t kind;
    if (!mp_collective_kind_from_name(word, &kind)) return network_options_unknown_kind(word);
    MP_RETURN_IF_ERROR(network_options_find_algorithm(algorithm, kind, &read.algorithms[kind]));
  }
  *options = read;
  return NULL;
}
