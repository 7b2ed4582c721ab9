# SPDX-License-Identifier: Apache-2.0
# quarry::quarry, the headers. They need a C++20 compiler, and CUDA for kernels on a GPU.
#
# Sets QUARRY_HAS_EXECUTOR: whether src/executor builds quarry::cpu, the CPU backend, which needs
# Boost.Context. Without it only CUDA programs are built.
include(GNUInstallDirs)

set(QUARRY_EXECUTOR AUTO CACHE STRING
  "Build quarry::cpu, the CPU backend (AUTO: if Boost.Context is found; ON; OFF)")
set_property(CACHE QUARRY_EXECUTOR PROPERTY STRINGS AUTO ON OFF)

add_library(quarry INTERFACE)
add_library(quarry::quarry ALIAS quarry)
target_compile_features(quarry INTERFACE cxx_std_20)
# nvcc: the headers need C++20, and kernels passed to quarry::launch may be lambdas. cxx_std_20 has
# no effect on nvcc; cuda_std_20 is an error in a project without CUDA, and unknown to CMake 3.25.
set(nvcc "$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>")
set(no_standard "$<STREQUAL:$<TARGET_PROPERTY:CUDA_STANDARD>,>")
target_compile_options(quarry INTERFACE
  "$<${nvcc}:--extended-lambda>"
  "$<$<AND:${nvcc},${no_standard}>:-std=c++20>")
target_include_directories(quarry INTERFACE
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
  "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads QUIET)
# Programs of this repository link the static library of Boost, so that they run on machines without
# Boost.
if(NOT QUARRY_EXECUTOR STREQUAL "OFF" AND NOT TARGET Boost::context)
  if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED Boost_USE_STATIC_LIBS)
    set(Boost_USE_STATIC_LIBS ON)
    find_package(Boost 1.74 QUIET CONFIG COMPONENTS context)
    unset(Boost_USE_STATIC_LIBS)
  endif()
  if(NOT TARGET Boost::context)
    find_package(Boost 1.74 QUIET CONFIG COMPONENTS context)
  endif()
endif()

set(QUARRY_HAS_EXECUTOR OFF)
if(QUARRY_EXECUTOR STREQUAL "OFF")
  message(STATUS "quarry: QUARRY_EXECUTOR=OFF: quarry::cpu is not built")
elseif(TARGET Boost::context AND TARGET Threads::Threads)
  set(QUARRY_HAS_EXECUTOR ON)
elseif(QUARRY_EXECUTOR STREQUAL "AUTO")
  message(STATUS "quarry: Boost.Context 1.74 or later was not found: quarry::cpu is not built, "
    "only CUDA programs are (Debian, Ubuntu: libboost-context-dev)")
else()
  message(FATAL_ERROR "quarry: QUARRY_EXECUTOR=${QUARRY_EXECUTOR}, but Boost.Context 1.74 or later "
    "was not found. Install it (Debian, Ubuntu: libboost-context-dev), add its directory to "
    "CMAKE_PREFIX_PATH, or configure with QUARRY_EXECUTOR=OFF.")
endif()
