// Reading what a custom_call says of itself: JSON in its texts, of which only a few keys count.
#ifndef MINIPOD_SIM_CHIP_COST_FOREIGN_TEXT_H_
#define MINIPOD_SIM_CHIP_COST_FOREIGN_TEXT_H_

#include "sim/base/str.h"

// Whether the word is in the text; then what is behind its first occurrence.
bool mp_foreign_find_word(mp_str_t text, const char *word, mp_str_t *out_behind);

// The number behind a key, which may be in quotes, and may be in a text of its own (with quotes
// behind backslashes); 0 if there is none above 0. `key` has no quotes.
double mp_foreign_number(mp_str_t text, const char *key);

#endif  // MINIPOD_SIM_CHIP_COST_FOREIGN_TEXT_H_
