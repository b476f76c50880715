// The HostMemoryAllocator extension (type 23): host memory that transfers use, such as
// pin_memory() of PyTorch. Here all host memory is equally fast, so it is ordinary memory, at page
// boundaries as callers expect of pinned memory.

#include "pjrt/extensions/extensions.h"
#include "sim/base/alloc.h"

static void ext_host_memory_allocator_free(void *memory, void *unused) {
  (void)unused;
  mp_free(memory);
}

// `numa_node` is a wish: the system places each page where it is first written.
static PJRT_Error *ext_host_memory_allocator_allocate(
    PJRT_HostMemoryAllocator_Allocate_Args *args) {
  enum { PAGE = 4096 };
  MP_EXTENSION_REQUIRE(args, client);
  // The size is rounded up to pages, and no object of C is larger than PTRDIFF_MAX.
  const bool is_possible = args->size <= PTRDIFF_MAX - PAGE;
  void *memory = is_possible ? mp_aligned_malloc(PAGE, args->size) : NULL;
  if (memory == NULL) {
    return mp_pjrt_error(mp_status_make(MP_RESOURCE_EXHAUSTED,
                                        "the host has no %zu bytes for PJRT_HostMemoryAllocator",
                                        args->size));
  }
  args->ptr = memory;
  args->deleter = ext_host_memory_allocator_free;
  args->deleter_arg = NULL;
  return NULL;
}

MP_PJRT_EXTENSION(HostMemoryAllocator, host_memory_allocator) = {
    MP_PJRT_EXTENSION_BASE(HostMemoryAllocator),
    .allocate = ext_host_memory_allocator_allocate,
};
