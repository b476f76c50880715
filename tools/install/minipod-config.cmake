# find_package(minipod): a PJRT plugin, which clients open at run time and do not link.
#
#   minipod::minipod     the declarations of the PJRT C API, and what dlopen needs
#   minipod_PLUGIN       the path of the library; also a property of the target
#   minipod_CONFIGS      the folder of described pods, for the option `topology`
get_filename_component(minipod_PREFIX ${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)
set(minipod_PLUGIN ${minipod_PREFIX}/lib/minipod/pjrt_c_api_minipod_plugin.so)
set(minipod_CONFIGS ${minipod_PREFIX}/share/minipod)

if(NOT EXISTS ${minipod_PLUGIN})
  set(minipod_FOUND FALSE)
  set(minipod_NOT_FOUND_MESSAGE "${minipod_PLUGIN} is not there")
elseif(NOT TARGET minipod::minipod)
  add_library(minipod::minipod INTERFACE IMPORTED)
  target_include_directories(minipod::minipod INTERFACE ${minipod_PREFIX}/include/minipod)
  target_link_libraries(minipod::minipod INTERFACE ${CMAKE_DL_LIBS})
  set_target_properties(minipod::minipod PROPERTIES minipod_PLUGIN ${minipod_PLUGIN})
endif()
