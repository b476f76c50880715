// Traits: the properties that all participants of a collective must agree on before any of them
// touches data, within a process and between processes alike.
//
// They are the whole description except for names, places and groups (meetings are found by their
// groups). For kinds without pairs, boxes or a reduction these fields have a fixed value.
#ifndef MINIPOD_COLLECTIVES_COLLECTIVE_TRAITS_H_
#define MINIPOD_COLLECTIVES_COLLECTIVE_TRAITS_H_

#include "collectives/collective.h"
#include "sim/base/str.h"

// The traits, in a form that can be sent. All 64-bit members except the last two are fingerprints.
typedef struct {
  uint32_t kind, num_operands;
  uint64_t types;       // of the operands
  uint64_t dimensions;  // dimensions that the collective works along
  uint64_t results;     // their shapes
  uint64_t reduction;   // the reduction and its types
  uint64_t pairs;       // source and target of each message
  uint64_t boxes;       // the parts of an array that each device has and needs
  // In programs of equal digests the numbers of the collectives must be equal too.
  uint64_t program, ordinal;
} mp_traits_t;

// The traits of a collective in a program with the digest `program`.
mp_traits_t mp_traits_of(const mp_collective_t *collective, uint64_t program);
// The difference as a message for the user (a static string), or NULL when the two agree.
const char *mp_traits_difference(const mp_traits_t *a, const mp_traits_t *b);

// Appends "device 3 is at stablehlo.all_reduce (psum at ...) of tensor<4xf32>", followed by " -> "
// and the types of the results if these differ from the operands'. `name` is the participant's name
// in messages.
void mp_collective_print_side(mp_strbuf_t *out, uint32_t name, const mp_collective_t *collective);

#endif  // MINIPOD_COLLECTIVES_COLLECTIVE_TRAITS_H_
