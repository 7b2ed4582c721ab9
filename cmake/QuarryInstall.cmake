# SPDX-License-Identifier: Apache-2.0
# The package: find_package(quarry) defines quarry::quarry, quarry::region where threads are found,
# and quarry::cpu where Boost.Context is installed.
include(CMakePackageConfigHelpers)

if(QUARRY_INSTALL)
  set(quarry_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/quarry")

  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/quarry"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    COMPONENT development
    FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
  install(TARGETS quarry EXPORT quarry_targets COMPONENT development)
  install(EXPORT quarry_targets
    FILE quarryTargets.cmake NAMESPACE quarry::
    DESTINATION "${quarry_package_dir}" COMPONENT development)

  # quarry::region, quarry::cpu and the cluster have export files of their own: users of
  # quarry::quarry need no threads, no Boost and no MPI. quarry::cluster_core, the simulation,
  # and quarry::check are exported with quarry::cpu.
  set(quarry_compatibility ARCH_INDEPENDENT)
  if(TARGET quarry_region)
    set(quarry_compatibility)
    install(TARGETS quarry_region EXPORT quarry_region_targets COMPONENT development)
    install(EXPORT quarry_region_targets
      FILE quarryRegionTargets.cmake NAMESPACE quarry::
      DESTINATION "${quarry_package_dir}" COMPONENT development)
  endif()
  if(QUARRY_HAS_EXECUTOR)
    set(quarry_compatibility)
    install(TARGETS quarry_cpu quarry_check quarry_cluster_core EXPORT quarry_cpu_targets
      COMPONENT development)
    install(EXPORT quarry_cpu_targets
      FILE quarryCpuTargets.cmake NAMESPACE quarry::
      DESTINATION "${quarry_package_dir}" COMPONENT development)
  endif()
  if(QUARRY_HAS_MPI)
    install(TARGETS quarry_cluster quarry_cluster_c EXPORT quarry_cluster_targets
      COMPONENT development)
    install(EXPORT quarry_cluster_targets
      FILE quarryClusterTargets.cmake NAMESPACE quarry::
      DESTINATION "${quarry_package_dir}" COMPONENT development)
  endif()

  configure_package_config_file(
    "${PROJECT_SOURCE_DIR}/cmake/quarryConfig.cmake.in" "${PROJECT_BINARY_DIR}/quarryConfig.cmake"
    INSTALL_DESTINATION "${quarry_package_dir}")
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/quarryConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion ${quarry_compatibility})
  install(FILES
    "${PROJECT_BINARY_DIR}/quarryConfig.cmake" "${PROJECT_BINARY_DIR}/quarryConfigVersion.cmake"
    DESTINATION "${quarry_package_dir}" COMPONENT development)

  if(TARGET quarry_tool)
    # region_peer is what `quarry region peers` starts; it looks beside itself.
    install(TARGETS quarry_tool region_peer quarry_malloc COMPONENT runtime)
  endif()
endif()
