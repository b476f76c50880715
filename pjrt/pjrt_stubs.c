// Functions that minipod does not have yet, each with its reason.

#include "pjrt/pjrt_objects.h"

#define STUB(name, reason)                   \
  mp_status_t mp_##name(name##_Args *args) { \
    (void)args;                              \
    return MP_UNIMPLEMENTED(reason);         \
  }

// Streams are handed out by receive callbacks only. Those are for programs that exchange data with
// the host by sends and receives, which JAX makes for TPUs alone; here they are refused.
#define NO_STREAM "there are no streams to copy to, as programs with host receives are refused"
STUB(PJRT_CopyToDeviceStream_Destroy, NO_STREAM)
STUB(PJRT_CopyToDeviceStream_AddChunk, NO_STREAM)
STUB(PJRT_CopyToDeviceStream_TotalBytes, NO_STREAM)
STUB(PJRT_CopyToDeviceStream_GranuleSize, NO_STREAM)
STUB(PJRT_CopyToDeviceStream_CurrentBytes, NO_STREAM)
