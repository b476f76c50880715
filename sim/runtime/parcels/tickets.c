#include "sim/runtime/parcels/tickets.h"

#include <inttypes.h>
#include <string.h>

#include "sim/base/alloc.h"

enum { BITS = 64 };

bool mp_tickets_have(const mp_tickets_t *tickets, uint64_t number) {
  const uint64_t word = number / BITS;
  return word < tickets->num_words && (tickets->bits[word] >> number % BITS & 1) != 0;
}

static mp_status_t tickets_grow(mp_tickets_t *tickets, size_t num_words) {
  uint64_t *bits = mp_realloc(tickets->bits, num_words * sizeof(*bits));
  MP_RETURN_IF_NULL(bits);
  memset(&bits[tickets->num_words], 0, (num_words - tickets->num_words) * sizeof(*bits));
  tickets->bits = bits;
  tickets->num_words = num_words;
  return NULL;
}

mp_status_t mp_tickets_add(mp_tickets_t *tickets, uint64_t number) {
  if (number >= MP_TICKETS_MOST) {
    return mp_status_make(MP_INVALID_ARGUMENT, "no receive has the number %" PRIu64, number);
  }
  const size_t word = (size_t)(number / BITS);
  if (word >= tickets->num_words) MP_RETURN_IF_ERROR(tickets_grow(tickets, 2 * word + 1));
  tickets->bits[word] |= UINT64_C(1) << number % BITS;
  return NULL;
}

void mp_tickets_clear(mp_tickets_t *tickets) {
  mp_free(tickets->bits);
  *tickets = (mp_tickets_t){0};
}
