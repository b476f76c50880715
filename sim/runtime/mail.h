// Mail: packets that wait, in order. Not thread-safe; the lists' owners lock.
#ifndef MINIPOD_SIM_RUNTIME_MAIL_H_
#define MINIPOD_SIM_RUNTIME_MAIL_H_

#include <stdbool.h>
#include <stdint.h>

#include "collectives/transport/world.h"

typedef struct mp_mail_s mp_mail_t;
struct mp_mail_s {
  mp_mail_t *next;
  mp_packet_t *packet;
};
typedef struct {
  mp_mail_t *first, *last;
} mp_mail_list_t;

// Takes the packet; false (and it is released) when memory is short.
bool mp_mail_push(mp_mail_list_t *list, mp_packet_t *packet);
// The first; NULL: there is none.
mp_packet_t *mp_mail_pop(mp_mail_list_t *list);
// The first packet that is wanted, off the list; NULL: there is none.
mp_packet_t *mp_mail_take(mp_mail_list_t *list,
                          bool (*is_wanted)(const mp_packet_t *packet, uint64_t number),
                          uint64_t number);
// Releases all.
void mp_mail_clear(mp_mail_list_t *list);

#endif  // MINIPOD_SIM_RUNTIME_MAIL_H_
