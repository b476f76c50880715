// The observer of pjrt/ (pjrt/pjrt_observer.h): tells the profiler and the Python package's
// functions what happens below them.
#ifndef MINIPOD_PJRT_PLUGIN_PLUGIN_OBSERVER_H_
#define MINIPOD_PJRT_PLUGIN_PLUGIN_OBSERVER_H_

// Sets it, for the process.
void mp_plugin_observe(void);

#endif  // MINIPOD_PJRT_PLUGIN_PLUGIN_OBSERVER_H_
