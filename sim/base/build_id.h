// Which build this code is: the version and the linker's hash of the binary that contains it.
#ifndef MINIPOD_SIM_BASE_BUILD_ID_H_
#define MINIPOD_SIM_BASE_BUILD_ID_H_

enum { MP_BUILD_ID_SIZE = 64 };

// "0.1.0+1f0c…" (the first eight bytes of the build id), or the version alone where the linker left
// no id. Equal for copies of one file, whatever machine or path they are loaded on.
void mp_build_id(char out_text[MP_BUILD_ID_SIZE]);

#endif  // MINIPOD_SIM_BASE_BUILD_ID_H_
