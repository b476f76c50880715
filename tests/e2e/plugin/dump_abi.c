// Prints how this compiler lays out our declarations of the PJRT C API, for test_pjrt_abi.py, one
// fact per line in the form of tests/fixtures/pjrt_abi.txt (whose names it goes through).

#include <stdio.h>

#include "pjrt/c_api/c_api.h"
#include "pjrt/c_api/c_api_ext.h"
#include "pjrt/c_api/c_api_profiler.h"
#include "pjrt/c_api/c_api_tpu_topology.h"

#define SLOT(name, slot, offset)                                                               \
  printf("SLOT(%s, %zu, %zu)\n", #name,                                                        \
         (offsetof(PJRT_Api, name) - offsetof(PJRT_Api, PJRT_Error_Destroy)) / sizeof(void *), \
         offsetof(PJRT_Api, name));
#define STRUCT(name, size, struct_size) \
  printf("STRUCT(%s, %zu, %d)\n", #name, sizeof(name), struct_size);
#define FIELD(name, field, offset, size)                                    \
  printf("FIELD(%s, %s, %zu, %zu)\n", #name, #field, offsetof(name, field), \
         sizeof(((name *)0)->field));
#define ENUM(name, value) printf("ENUM(%s, %d)\n", #name, (int)(name));

int main(void) {
  printf("VERSION(%d, %d)\n", PJRT_API_MAJOR, PJRT_API_MINOR);
#include "tests/fixtures/pjrt_abi.txt"
  return 0;
}
