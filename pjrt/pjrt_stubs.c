// Functions that minipod does not have yet, each with its reason.

#include "pjrt/pjrt_objects.h"

#define STUB(name, reason)                   \
  mp_status_t mp_##name(name##_Args *args) { \
    (void)args;                              \
    return MP_UNIMPLEMENTED(reason);         \
  }

// Streams are handed out by receive callbacks only, which no program can have yet.
#define NO_STREAM "there are no streams to copy to, as programs with host receives are refused"
STUB(PJRT_CopyToDeviceStream_Destroy, NO_STREAM)
STUB(PJRT_CopyToDeviceStream_AddChunk, NO_STREAM)
STUB(PJRT_CopyToDeviceStream_TotalBytes, NO_STREAM)
STUB(PJRT_CopyToDeviceStream_GranuleSize, NO_STREAM)
STUB(PJRT_CopyToDeviceStream_CurrentBytes, NO_STREAM)

STUB(PJRT_Client_CreateAliasBuffer, "a buffer cannot stand for one that comes later")
STUB(PJRT_Client_FulfillAliasBuffer, "a buffer cannot stand for one that comes later")
STUB(PJRT_Buffer_DonateWithControlDependency,
     "buffers are donated by the programs that take them, without further conditions")
STUB(PJRT_Buffer_Bitcast, "a buffer's contents cannot be seen as another type; copy them")
