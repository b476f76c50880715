# Libraries that run on other machines than the one that built them: what they need of hwloc,
# libyaml, zstd and zlib is inside of them, and of glibc they ask for what 2.28 has.
#
# Nothing is compiled otherwise: only the links differ, so the tests run what a wheel holds.
option(MINIPOD_PORTABLE "libraries that run on machines with glibc 2.28 and without hwloc and
  libyaml; needs their static archives, objcopy and Python" ON)

set(portable ${CMAKE_BINARY_DIR}/portable)
set(portable_sources ${CMAKE_SOURCE_DIR}/tools/portable)

# Why there is no such link here; empty: there is.
set(MINIPOD_NOT_PORTABLE "")
if(NOT MINIPOD_PORTABLE)
  set(MINIPOD_NOT_PORTABLE "MINIPOD_PORTABLE is off")
elseif(MINIPOD_SANITIZE OR MINIPOD_FUZZ)
  set(MINIPOD_NOT_PORTABLE "sanitizers want the machine's own libraries")
elseif(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$")
  set(MINIPOD_NOT_PORTABLE "only Linux on x86-64 and aarch64 has such a link")
else()
  find_package(Python3 QUIET COMPONENTS Interpreter)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libc.so.6
                  OUTPUT_VARIABLE portable_libc OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT Python3_FOUND)
    set(MINIPOD_NOT_PORTABLE "there is no Python 3")
  elseif(NOT CMAKE_OBJCOPY)
    set(MINIPOD_NOT_PORTABLE "there is no objcopy")
  elseif(NOT EXISTS "${portable_libc}")
    set(MINIPOD_NOT_PORTABLE "the compiler links no glibc")
  endif()
endif()

if(NOT MINIPOD_NOT_PORTABLE)
  # glibc as it was: libraries without code that have the names of 2.28.
  set(portable_glibc ${portable}/glibc)
  set(portable_done ${portable_glibc}/done)
  add_custom_command(OUTPUT ${portable_done}
                     COMMAND ${Python3_EXECUTABLE} ${portable_sources}/glibc_interface.py
                             --compiler ${CMAKE_C_COMPILER} --out ${portable_glibc}
                             --processor ${CMAKE_SYSTEM_PROCESSOR}
                     DEPENDS ${portable_sources}/glibc_interface.py VERBATIM)
  add_custom_target(minipod_glibc DEPENDS ${portable_done})
  # What is newer in glibc and yet asked for.
  add_library(minipod_shims OBJECT ${portable_sources}/shims.c)
endif()

# The archive of a library, made fit for shared objects: those of Debian are made for programs, and
# read glibc's variables without the table that shared objects have for it. They get ours. hwloc
# opens no plugins, which would be those of the machine's hwloc, and asks udev for nothing.
# What tools/portable/bundled.cmake builds is fit as it is.
function(minipod_archive name)
  if(TARGET minipod_archive_${name} OR TARGET minipod_bundled_${name})
    return()
  endif()
  find_library(archive_of_${name} NAMES lib${name}.a)
  set(archive ${portable}/lib${name}.a)
  set(renamed)
  foreach(symbol stdin stdout stderr program_invocation_name dlopen udev_new udev_unref
                 udev_device_new_from_subsystem_sysname udev_device_get_property_value
                 udev_device_unref)
    list(APPEND renamed --redefine-sym ${symbol}=minipod_portable_${symbol})
  endforeach()
  add_custom_command(OUTPUT ${archive}
                     COMMAND ${CMAKE_OBJCOPY} ${renamed} ${archive_of_${name}} ${archive}
                     DEPENDS ${portable_sources}/portable.cmake VERBATIM)
  add_custom_target(minipod_archive_${name} DEPENDS ${archive})
endfunction()

# minipod_carries(TARGET LIBRARY…): the target has these libraries inside, with none of their names
# to be seen from outside, and asks for an old glibc. Where that cannot be, it is linked to what the
# machine has.
function(minipod_carries target)
  set(missing ${MINIPOD_NOT_PORTABLE})
  set(inside)
  foreach(name ${ARGN})
    if(TARGET minipod_bundled_${name})
      list(APPEND inside minipod_bundled_${name})
      continue()
    endif()
    list(APPEND inside ${name})
    find_library(archive_of_${name} NAMES lib${name}.a)
    if(NOT missing AND NOT archive_of_${name})
      set(missing "there is no lib${name}.a")
    endif()
  endforeach()
  if(missing)
    message(STATUS "${target} is for this machine: ${missing}")
    target_link_libraries(${target} PRIVATE ${inside})
    return()
  endif()
  foreach(name ${ARGN})
    minipod_archive(${name})
    if(TARGET minipod_bundled_${name})
      target_link_libraries(${target} PRIVATE minipod_bundled_${name})
    else()
      add_dependencies(${target} minipod_archive_${name})
      target_link_libraries(${target} PRIVATE ${portable}/lib${name}.a)
    endif()
  endforeach()
  add_dependencies(${target} minipod_glibc)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:minipod_shims>)
  target_link_options(${target} PRIVATE -L${portable_glibc} -Wl,--exclude-libs,ALL)
  target_link_libraries(${target} PRIVATE -Wl,--no-as-needed -lpthread -ldl -Wl,--as-needed)
  get_target_property(language ${target} LINKER_LANGUAGE)
  if(language STREQUAL "CXX")
    target_link_options(${target} PRIVATE -static-libstdc++)
  endif()
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${portable_done})
endfunction()
