# A toolchain file: what Debian's cross compiler makes for aarch64, whose tests run under qemu-user. tools/release builds
# the wheel with it. Without the packages of arm64 hwloc and libyaml are built from tools/portable/sources/.
#   dpkg --add-architecture arm64 && apt update
#   apt install gcc-aarch64-linux-gnu qemu-user libhwloc-dev:arm64 libyaml-dev:arm64 libcmocka-dev:arm64
#   cmake -G Ninja -B build-aarch64 --toolchain tools/portable/aarch64.cmake
#   ninja -C build-aarch64 && ctest --test-dir build-aarch64
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
# Also where ninja configures again: libraries of the machine that builds are not to be found.
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig)
