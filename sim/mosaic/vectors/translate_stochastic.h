// Stochastic rounding; private to this folder.
#ifndef MINIPOD_SIM_MOSAIC_VECTORS_TRANSLATE_STOCHASTIC_H_
#define MINIPOD_SIM_MOSAIC_VECTORS_TRANSLATE_STOCHASTIC_H_

#include "sim/mosaic/vectors/translate.h"

// Of f32 to bf16 or a type of 8 bits; NULL: another type, or the program's status says why.
mp_value_t *mp_translate_stochastic(const mp_translate_t *t);

#endif  // MINIPOD_SIM_MOSAIC_VECTORS_TRANSLATE_STOCHASTIC_H_
