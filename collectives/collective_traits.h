// Traits: what all participants of a collective must agree on before any of them touches data,
// within a process and between processes alike.
//
// They are the whole description but for names, places and groups: groups are what meetings are
// found by. Those of kinds that have no pairs, boxes or reduction say so alike.
#ifndef MINIPOD_COLLECTIVES_COLLECTIVE_TRAITS_H_
#define MINIPOD_COLLECTIVES_COLLECTIVE_TRAITS_H_

#include "collectives/collective.h"
#include "sim/base/str.h"

// In a form that can be sent. The 64-bit members but for the last two are fingerprints.
typedef struct {
  uint32_t kind, num_operands;
  uint64_t types;       // of the operands
  uint64_t dimensions;  // that the collective works along
  uint64_t results;     // their shapes
  uint64_t reduction;   // what it computes, and in which types
  uint64_t pairs;       // who sends to whom
  uint64_t boxes;       // which parts of an array everybody has and wants
  // In programs of equal digests the numbers of the collectives must be equal too.
  uint64_t program, ordinal;
} mp_traits_t;

// `program` is the digest of the program that the collective is in.
mp_traits_t mp_traits_of(const mp_collective_t *collective, uint64_t program);
// What differs, in words for the user, or NULL when the two go together.
const char *mp_traits_difference(const mp_traits_t *a, const mp_traits_t *b);

// "device 3 is at stablehlo.all_reduce (psum at ...) of tensor<4xf32>", with " -> " and the types
// of the results where they are others. `name` is what messages call the participant.
void mp_collective_print_side(mp_strbuf_t *out, uint32_t name, const mp_collective_t *collective);

#endif  // MINIPOD_COLLECTIVES_COLLECTIVE_TRAITS_H_
