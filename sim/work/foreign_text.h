// Reading what a custom_call says of itself: JSON in its texts, of which only a few keys count.
#ifndef MINIPOD_SIM_WORK_FOREIGN_TEXT_H_
#define MINIPOD_SIM_WORK_FOREIGN_TEXT_H_

#include "sim/ir/module.h"

// Whether the word is in the text; then what is behind its first occurrence.
bool mp_foreign_find_word(mp_str_t text, const char *word, mp_str_t *out_behind);

// The number behind a key, which may be in quotes, and may be in a text of its own (with quotes
// behind backslashes); 0 if there is none above 0. `key` has no quotes.
double mp_foreign_number(mp_str_t text, const char *key);

// What a kernel of the user's says that it costs (the `cost_estimate` in its backend_config), or
// what was counted for it (`kernel`); "" if it says nothing, or is no custom_call.
mp_str_t mp_foreign_estimate(const mp_op_t *op);
mp_str_t mp_foreign_counted(const mp_op_t *op);
// The bytes that the kernel moves by either of them; 0: neither says it.
double mp_foreign_bytes(const mp_op_t *op);

#endif  // MINIPOD_SIM_WORK_FOREIGN_TEXT_H_
