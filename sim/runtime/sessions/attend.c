#include "sim/runtime/sessions/attend.h"

void mp_attend_begin(mp_attend_t *attend, mp_session_t *session) {
  mp_world_t *world = session == NULL ? NULL : mp_session_world(session);
  if (world == NULL || !mp_world_attend_begin(world)) return;
  *attend = (mp_attend_t){.session = mp_session_retain(session), .world = world};
}

static bool attend_is_going_on(void *context) {
  return mp_session_is_moving(context);
}

void mp_attend_end(mp_attend_t *attend) {
  if (attend->session == NULL) return;
  mp_world_attend_end(attend->world, attend_is_going_on, attend->session);
  mp_session_release(attend->session);
}
