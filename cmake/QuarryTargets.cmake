# SPDX-License-Identifier: Apache-2.0
# Functions for the programs of this repository. They do not affect users of quarry::quarry.

# Turns warnings on and makes them errors. nvcc: -Wpedantic and -Wconversion would also check the
# code that nvcc generates.
function(quarry_warnings target)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Werror>"
    "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-Xcompiler=-Wall,-Wextra,-Wshadow>"
    "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:SHELL:-Werror all-warnings>")
endfunction()

# Links the headers, and the CPU backend, the explorer and regions where they are built; turns
# warnings on. The explorer counts bits all the time: it is 10 % faster with the instruction that
# every x86-64 processor since 2008 has.
function(quarry_own target)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-mpopcnt>")
  endif()
  target_link_libraries(${target} PRIVATE quarry::quarry)
  if(QUARRY_HAS_EXECUTOR)
    target_link_libraries(${target} PRIVATE quarry_check)
  endif()
  if(TARGET quarry_region)
    target_link_libraries(${target} PRIVATE quarry_region)
  endif()
  if(TARGET Threads::Threads)
    target_link_libraries(${target} PRIVATE Threads::Threads)
  endif()
  quarry_warnings(${target})
endfunction()

# Sets `out` to a list with one .cu file per source: a .cu file itself, and for a .cpp file a file
# in the build tree that includes it. One source is compiled for both backends in this way.
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
# each only if the build has its backend; callers test with if(TARGET ...).
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
    if(NOT QUARRY_BUILD_GPU_PROGRAMS)
      set_target_properties(${name}_gpu PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
    quarry_own(${name}_gpu)
    target_include_directories(${name}_gpu PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
    target_link_libraries(${name}_gpu PRIVATE ${arg_LIBRARIES})
    set_target_properties(${name}_gpu PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin/gpu_${arg_DIRECTORY}")
  endif()
endfunction()

# quarry_unity(<target> <group> <source>... FOLDERS <folder>...)
# Of the given sources, those that lie in one of the folders are compiled as one translation unit.
# Their anonymous namespaces are one scope: a name there hides a function of the same name that a
# header declares.
function(quarry_unity target group)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "FOLDERS")
  foreach(source IN LISTS arg_UNPARSED_ARGUMENTS)
    foreach(folder IN LISTS arg_FOLDERS)
      if(source MATCHES "^${folder}/")
        set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${group}")
      endif()
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD "${QUARRY_UNITY}" UNITY_BUILD_MODE GROUP)
endfunction()
