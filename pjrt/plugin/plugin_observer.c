#include "pjrt/plugin/plugin_observer.h"

#include "pjrt/extensions/ext_profiler.h"
#include "pjrt/package/pjrt_clients.h"
#include "pjrt/package/pjrt_inspect.h"
#include "pjrt/package/pjrt_launch.h"
#include "pjrt/package/pjrt_time.h"
#include "pjrt/package/pjrt_top.h"
#include "pjrt/pjrt_observer.h"

static mp_status_t plugin_observer_client_made(PJRT_Client *client, const mp_options_t *options) {
  MP_RETURN_IF_ERROR(mp_pjrt_time_begin(client, options));
  mp_pjrt_launch_begin(client);
  mp_pjrt_clients_add(client);
  mp_pjrt_top_begin();
  return NULL;
}

static void plugin_observer_client_ends(PJRT_Client *client) {
  mp_pjrt_time_end(client);
  mp_pjrt_clients_remove(client);
}

static const mp_pjrt_observer_t observer = {
    .client_made = plugin_observer_client_made,
    .client_ends = plugin_observer_client_ends,
    .program_made = mp_pjrt_inspect_shardings,
    .launch_begins = mp_pjrt_profiler_begin,
    .launch_made = mp_pjrt_profiler_note,
};

void mp_plugin_observe(void) {
  mp_pjrt_observe(&observer);
}
