# SPDX-License-Identifier: Apache-2.0
# What a plain `cmake -S . -B build` gets; a project above us decides for itself.
if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
  endif()
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  set(CMAKE_CXX_EXTENSIONS OFF)
  # g++ collects garbage from 128 MiB on, which takes a tenth of the time of our larger units.
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=524288>")
endif()
