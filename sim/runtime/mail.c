#include "sim/runtime/mail.h"

#include "sim/base/alloc.h"

bool mp_mail_push(mp_mail_list_t *list, mp_packet_t *packet) {
  mp_mail_t *mail = mp_malloc(sizeof(*mail));
  if (mail == NULL) {
    mp_packet_release(packet);
    return false;
  }
  *mail = (mp_mail_t){NULL, packet};
  if (list->last != NULL) {
    list->last->next = mail;
  } else {
    list->first = mail;
  }
  list->last = mail;
  return true;
}

mp_packet_t *mp_mail_pop(mp_mail_list_t *list) {
  mp_mail_t *mail = list->first;
  if (mail == NULL) return NULL;
  mp_packet_t *packet = mail->packet;
  list->first = mail->next;
  if (list->first == NULL) list->last = NULL;
  mp_free(mail);
  return packet;
}

mp_packet_t *mp_mail_take(mp_mail_list_t *list,
                          bool (*is_wanted)(const mp_packet_t *packet, uint64_t number),
                          uint64_t number) {
  mp_mail_t *previous = NULL;
  for (mp_mail_t *mail = list->first; mail != NULL; previous = mail, mail = mail->next) {
    if (!is_wanted(mail->packet, number)) continue;
    mp_packet_t *packet = mail->packet;
    *(previous != NULL ? &previous->next : &list->first) = mail->next;
    if (list->last == mail) list->last = previous;
    mp_free(mail);
    return packet;
  }
  return NULL;
}

void mp_mail_clear(mp_mail_list_t *list) {
  for (mp_packet_t *packet; (packet = mp_mail_pop(list)) != NULL;) mp_packet_release(packet);
}
