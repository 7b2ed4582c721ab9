# SPDX-License-Identifier: Apache-2.0
# Sets QUARRY_HAS_CUDA: whether CUDA sources of this build are compiled.
include(CheckLanguage)

set(QUARRY_CUDA AUTO CACHE STRING "Compile CUDA sources (AUTO: when nvcc works; ON; OFF)")
set_property(CACHE QUARRY_CUDA PROPERTY STRINGS AUTO ON OFF)
set(QUARRY_HAS_CUDA OFF)

if(QUARRY_CUDA STREQUAL "AUTO" OR QUARRY_CUDA)
  # The toolkit is often not on PATH, the only place where CMake searches for nvcc.
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    unset(CMAKE_CUDA_COMPILER CACHE)  # a previous run may have cached NOTFOUND
    find_program(QUARRY_NVCC nvcc
      HINTS ENV CUDA_HOME ENV CUDA_PATH
      PATHS /usr/local/cuda /opt/cuda
      PATH_SUFFIXES bin)
    mark_as_advanced(QUARRY_NVCC)
    if(QUARRY_NVCC)
      set(ENV{CUDACXX} "${QUARRY_NVCC}")
    endif()
  endif()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
    set(CMAKE_CUDA_ARCHITECTURES 90 CACHE STRING "GPU architectures to compile for")
  endif()

  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    set(QUARRY_HAS_CUDA ON)
    set(CMAKE_CUDA_EXTENSIONS OFF)
  elseif(QUARRY_CUDA STREQUAL "AUTO")
    message(STATUS "quarry: no working nvcc found, CUDA sources are skipped")
  else()
    message(FATAL_ERROR "quarry: QUARRY_CUDA=${QUARRY_CUDA}, but no working nvcc was found. "
      "Put it on PATH, set CUDACXX, or configure with QUARRY_CUDA=OFF.")
  endif()
endif()

# Programs that only a GPU can run (tests, benchmarks, examples) take long to compile and to link.
# They are not part of the default target where no GPU answers; tests/static/headers still compiles
# every public header and every allocator with nvcc. The target gpu_tests builds the test programs
# everywhere.
set(QUARRY_GPU_PROGRAMS AUTO CACHE STRING
  "Build programs that need a GPU by default (AUTO: when a GPU answers; ON; OFF)")
set_property(CACHE QUARRY_GPU_PROGRAMS PROPERTY STRINGS AUTO ON OFF)
set(QUARRY_BUILD_GPU_PROGRAMS OFF)
if(QUARRY_HAS_CUDA)
  if(QUARRY_GPU_PROGRAMS STREQUAL "AUTO")
    execute_process(COMMAND "${CMAKE_CURRENT_LIST_DIR}/run-on-gpu"
      RESULT_VARIABLE no_gpu OUTPUT_QUIET ERROR_QUIET)
    if(NOT no_gpu)
      set(QUARRY_BUILD_GPU_PROGRAMS ON)
    endif()
  elseif(QUARRY_GPU_PROGRAMS)
    set(QUARRY_BUILD_GPU_PROGRAMS ON)
  endif()
endif()

if(NOT QUARRY_HAS_CUDA AND NOT QUARRY_HAS_EXECUTOR)
  message(FATAL_ERROR "quarry: nothing to build: neither Boost.Context (libboost-context-dev) "
    "nor nvcc is available.")
endif()
