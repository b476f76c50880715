# What `cmake --install` puts under a prefix, for clients that are no Python package: README.md.
#
# The prefix may be moved afterwards, and may be another one than at configuration: nothing that is
# installed holds a path of this machine.
include(CMakePackageConfigHelpers)

set(install_sources ${CMAKE_SOURCE_DIR}/tools/install)
set(install_made ${CMAKE_BINARY_DIR}/install)
set(install_package lib/cmake/minipod)

# The plugin looks for its modules beside itself.
foreach(target pjrt_c_api_minipod_plugin minipod_native minipod_mpi_ompi minipod_mpi_mpich)
  if(TARGET ${target})
    install(TARGETS ${target} LIBRARY DESTINATION lib/minipod)
  endif()
endforeach()

# They include each other as they lie in the tree.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/pjrt/c_api DESTINATION include/minipod/pjrt
        FILES_MATCHING PATTERN "*.h")
install(FILES ${CMAKE_SOURCE_DIR}/pjrt/plugin/pjrt_api.h DESTINATION include/minipod/pjrt/plugin)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/configs/ DESTINATION share/minipod
        FILES_MATCHING PATTERN "*.yaml")
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/NOTICE DESTINATION share/minipod)

# Before 1.0 a minor version may change what clients see.
write_basic_package_version_file(${install_made}/minipod-config-version.cmake
                                 VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
configure_file(${install_sources}/minipod.pc.in ${install_made}/minipod.pc @ONLY)
install(FILES ${install_sources}/minipod-config.cmake ${install_made}/minipod-config-version.cmake
        DESTINATION ${install_package})
install(FILES ${install_made}/minipod.pc DESTINATION lib/pkgconfig)
