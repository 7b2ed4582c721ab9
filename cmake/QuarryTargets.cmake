# SPDX-License-Identifier: Apache-2.0
# How our own programs are made. None of this reaches a user of quarry::quarry.

# Links the library, turns warnings on and makes them errors.
# nvcc: -Wpedantic and -Wconversion would judge the code nvcc generates.
function(quarry_own target)
  target_link_libraries(${target} PRIVATE quarry::quarry)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Werror>"
    "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-Xcompiler=-Wall,-Wextra,-Wshadow>"
    "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:SHELL:-Werror all-warnings>")
endfunction()

# `out` gets a .cu file for every source: a .cu as it is, for a .cpp a file in the
# build tree that includes it. So one source is compiled for both machines.
function(quarry_as_cuda out)
  set(result)
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
    if(source MATCHES "\\.cu$")
      list(APPEND result "${source}")
    else()
      cmake_path(GET source STEM stem)
      set(copy "${CMAKE_CURRENT_BINARY_DIR}/cuda/${stem}.cu")
      file(CONFIGURE OUTPUT "${copy}" CONTENT "#include \"${source}\"\n" @ONLY)
      list(APPEND result "${copy}")
    endif()
  endforeach()
  set(${out} "${result}" PARENT_SCOPE)
endfunction()

# quarry_programs(<name> DIRECTORY <dir> [SOURCES ...] [CUDA_SOURCES ...] [BOTH_BACKENDS]
#                 [LIBRARIES ...])
# Makes <name> from SOURCES in bin/<dir> and <name>_gpu from CUDA_SOURCES in bin/gpu_<dir>,
# each only where the build has its machine; the caller asks with if(TARGET ...).
# BOTH_BACKENDS: SOURCES are CUDA_SOURCES too.
function(quarry_programs name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "BOTH_BACKENDS" "DIRECTORY"
    "SOURCES;CUDA_SOURCES;LIBRARIES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${name}: unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(arg_BOTH_BACKENDS)
    list(APPEND arg_CUDA_SOURCES ${arg_SOURCES})
  endif()

  if(arg_SOURCES AND QUARRY_HAS_EXECUTOR)
    add_executable(${name} ${arg_SOURCES})
    quarry_own(${name})
    target_link_libraries(${name} PRIVATE ${arg_LIBRARIES})
    set_target_properties(${name} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin/${arg_DIRECTORY}")
  endif()
  if(arg_CUDA_SOURCES AND QUARRY_HAS_CUDA)
    quarry_as_cuda(cuda_sources ${arg_CUDA_SOURCES})
    add_executable(${name}_gpu ${cuda_sources})
    quarry_own(${name}_gpu)
    target_include_directories(${name}_gpu PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
    target_link_libraries(${name}_gpu PRIVATE ${arg_LIBRARIES})
    set_target_properties(${name}_gpu PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin/gpu_${arg_DIRECTORY}")
  endif()
endfunction()
