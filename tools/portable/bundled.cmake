# hwloc and libyaml from the sources in tools/portable/sources/, for machines without their -dev packages. Files there are
# as their authors have them; what `configure` would find out is written here, for Linux with glibc.
set(bundled ${CMAKE_BINARY_DIR}/bundled)

# Unpacks an archive; `out` is the folder.
function(minipod_unpack name out)
  set(folder ${bundled}/${name})
  set(archive ${CMAKE_SOURCE_DIR}/tools/portable/sources/${name}.tar.xz)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${archive})
  if(${archive} IS_NEWER_THAN ${folder}/unpacked)
    file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${bundled})
    file(TOUCH ${folder}/unpacked)
  endif()
  set(${out} ${folder} PARENT_SCOPE)
endfunction()

# Makes a header of a template of autoheader's, in which each name stands as `#undef NAME`: what is listed as NAME or
# NAME=VALUE is defined.
function(minipod_make_header template header)
  file(READ ${template} text)
  foreach(definition ${ARGN})
    string(REGEX MATCH "^([^=]*)=?(.*)$" unused "${definition}")
    set(name "${CMAKE_MATCH_1}")
    set(value "${CMAKE_MATCH_2}")
    if("${value}" STREQUAL "")
      set(value 1)
    endif()
    string(REGEX REPLACE "#( *)undef ${name}([ \n])" "#\\1define ${name} ${value}\\2" text "${text}")
  endforeach()
  file(CONFIGURE OUTPUT ${header} CONTENT "${text}" @ONLY)
endfunction()

# An archive of a library's files, without our warnings and without names to be seen from outside.
function(minipod_bundle name folder)
  add_library(minipod_bundled_${name} STATIC EXCLUDE_FROM_ALL ${ARGN})
  target_compile_options(minipod_bundled_${name} PRIVATE -w)
  target_include_directories(minipod_bundled_${name} SYSTEM PUBLIC ${folder}/include)
  set_target_properties(minipod_bundled_${name} PROPERTIES C_STANDARD 11)
endfunction()

function(minipod_bundle_hwloc)
  minipod_unpack(hwloc-2.9.0 folder)
  set(version HWLOC_VERSION="2.9.0" HWLOC_VERSION_MAJOR=2 HWLOC_VERSION_MINOR=9 HWLOC_VERSION_RELEASE=0
              HWLOC_VERSION_GREEK="")
  set(names HWLOC_SYM_TRANSFORM=0 HWLOC_SYM_PREFIX=hwloc_ HWLOC_SYM_PREFIX_CAPS=HWLOC_)
  minipod_make_header(${folder}/include/hwloc/autogen/config.h.in ${folder}/include/hwloc/autogen/config.h
                      ${version} ${names} __hwloc_restrict=__restrict __hwloc_inline=__inline__ HWLOC_LINUX_SYS
                      HWLOC_HAVE_CPU_SET hwloc_pid_t=pid_t hwloc_thread_t=pthread_t HWLOC_HAVE_STDINT_H)
  set(x86)
  set(x86_component)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    set(x86 HWLOC_X86_64_ARCH HWLOC_HAVE_X86_CPUID)
    set(x86_component "  &hwloc_x86_component,\n")
    set(x86_source ${folder}/hwloc/topology-x86.c)
  endif()
  # Not program_invocation_name and other variables of glibc: portable.cmake has libraries without them.
  minipod_make_header(
    ${folder}/include/private/autogen/config.h.in ${folder}/include/private/autogen/config.h
    ${version} ${names} ${x86}
    HWLOC_LINUX_SYS HWLOC_HAVE_LINUXIO HWLOC_HAVE_SYSCALL HWLOC_HAVE_SCHED_SETAFFINITY HWLOC_HAVE_CPU_SET
    HWLOC_HAVE_CPU_SET_S HWLOC_HAVE_PTHREAD_MUTEX HWLOC_HAVE_STDINT_H HWLOC_HAVE_CORRECT_SNPRINTF
    HWLOC_HAVE_FFS HWLOC_HAVE_FFSL HWLOC_HAVE_DECL_FFS HWLOC_HAVE_DECL_FFSL HWLOC_HAVE_DECL_STRCASECMP
    HWLOC_HAVE_DECL_STRNCASECMP HAVE_FFS HAVE_FFSL HAVE_STRCASECMP HAVE_STRNCASECMP
    HWLOC_SIZEOF_UNSIGNED_INT=4 HWLOC_SIZEOF_UNSIGNED_LONG=8
    HAVE_DECL_FABSF HAVE_DECL_MODFF HAVE_DECL_PTHREAD_GETAFFINITY_NP HAVE_DECL_PTHREAD_SETAFFINITY_NP
    HAVE_DECL_SCHED_GETCPU HAVE_DECL_SNPRINTF HAVE_DECL_STRTOULL HAVE_DECL__SC_NPROCESSORS_CONF
    HAVE_DECL__SC_NPROCESSORS_ONLN HAVE_DECL__SC_PAGESIZE HAVE_DECL__SC_PAGE_SIZE HAVE_DECL__PUTENV=0
    HAVE_DECL__SC_LARGE_PAGESIZE=0 HAVE_DECL__SC_NPROC_CONF=0 HAVE_DECL__SC_NPROC_ONLN=0 HAVE_DECL__STRDUP=0
    HAVE_DECL_GETEXECNAME=0 HAVE_DECL_GETPROGNAME=0 HAVE_DECL_RUNNING_ON_VALGRIND=0
    HAVE_CLOCK_GETTIME HAVE_CTYPE_H HAVE_DIRENT_H HAVE_DLFCN_H HAVE_GETPAGESIZE HAVE_INTTYPES_H HAVE_ISATTY
    HAVE_LANGINFO_H HAVE_LOCALE_H HAVE_MALLOC_H HAVE_MEMALIGN HAVE_MKSTEMP HAVE_NL_LANGINFO HAVE_OPENAT
    HAVE_POSIX_MEMALIGN HAVE_PTHREAD_T HAVE_SETLOCALE HAVE_SSIZE_T HAVE_STDINT_H HAVE_STDIO_H HAVE_STDLIB_H
    HAVE_STRFTIME HAVE_STRINGS_H HAVE_STRING_H HAVE_SYS_MMAN_H HAVE_SYS_STAT_H HAVE_SYS_TYPES_H
    HAVE_SYS_UTSNAME_H HAVE_TIME_H HAVE_UNAME HAVE_UNISTD_H HAVE_USELOCALE)
  file(CONFIGURE OUTPUT ${folder}/hwloc/static-components.h @ONLY CONTENT
"#include <private/internal-components.h>
static const struct hwloc_component *hwloc_static_components[] = {
  &hwloc_noos_component,
  &hwloc_xml_component,
  &hwloc_synthetic_component,
  &hwloc_xml_nolibxml_component,
  &hwloc_linux_component,
@x86_component@  NULL
};
")
  file(GLOB sources ${folder}/hwloc/*.c)
  list(FILTER sources EXCLUDE REGEX "topology-x86.c$")
  minipod_bundle(hwloc ${folder} ${sources} ${x86_source})
  target_include_directories(minipod_bundled_hwloc PRIVATE ${folder}/hwloc)
  target_compile_definitions(minipod_bundled_hwloc PRIVATE HWLOC_INSIDE_LIBHWLOC RUNSTATEDIR="/var/run")
  target_link_libraries(minipod_bundled_hwloc PUBLIC m)
endfunction()

function(minipod_bundle_yaml)
  minipod_unpack(yaml-0.2.5 folder)
  file(GLOB sources ${folder}/src/*.c)
  minipod_bundle(yaml ${folder} ${sources})
  target_compile_definitions(minipod_bundled_yaml PUBLIC YAML_DECLARE_STATIC PRIVATE
                             YAML_VERSION_MAJOR=0 YAML_VERSION_MINOR=2 YAML_VERSION_PATCH=5
                             YAML_VERSION_STRING="0.2.5")
endfunction()
