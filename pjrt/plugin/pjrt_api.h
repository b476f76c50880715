// The plugin from outside.
#ifndef MINIPOD_PJRT_PLUGIN_PJRT_API_H_
#define MINIPOD_PJRT_PLUGIN_PJRT_API_H_

#include "pjrt/c_api/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

// Returns the table of functions, which is static. The one symbol that the interface asks for.
const PJRT_Api *GetPjrtApi(void);

#ifdef __cplusplus
}
#endif

#endif  // MINIPOD_PJRT_PLUGIN_PJRT_API_H_
