# SPDX-License-Identifier: Apache-2.0
# quarry::quarry, the library: headers, and what the CPU executor links.
#
# QUARRY_EXECUTOR=OFF (or AUTO, where the Boost.Context library is missing) serves
# a machine with a GPU and only Boost's headers: the GPU programs are built against
# stand-ins that end the program, and nothing that runs on the CPU machine is built.
include(GNUInstallDirs)

set(QUARRY_EXECUTOR AUTO CACHE STRING "Build what runs on the CPU executor (AUTO, ON, OFF)")
set_property(CACHE QUARRY_EXECUTOR PROPERTY STRINGS AUTO ON OFF)

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

# Our own programs take the static library, so that they also run where Boost is
# not installed.
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

add_library(quarry INTERFACE)
add_library(quarry::quarry ALIAS quarry)
target_compile_features(quarry INTERFACE cxx_std_20)
# Kernels given to quarry::launch may be lambdas.
# cxx_std_20 says nothing to nvcc; cuda_std_20 is an error in a project without CUDA, and
# unknown to CMake 3.25.
set(nvcc "$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>")
set(no_standard "$<STREQUAL:$<TARGET_PROPERTY:CUDA_STANDARD>,>")
target_compile_options(quarry INTERFACE
  "$<${nvcc}:--extended-lambda>"
  "$<$<AND:${nvcc},${no_standard}>:-std=c++20>")
target_include_directories(quarry INTERFACE
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
  "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
target_link_libraries(quarry INTERFACE Threads::Threads)

if(TARGET Boost::context)
  set(QUARRY_HAS_EXECUTOR ON)
  target_link_libraries(quarry INTERFACE Boost::context)
elseif(QUARRY_EXECUTOR STREQUAL "ON" OR NOT PROJECT_IS_TOP_LEVEL)
  message(FATAL_ERROR "quarry: Boost.Context 1.74 or later was not found. "
    "Install it (Debian, Ubuntu: libboost-context-dev) or name its place in CMAKE_PREFIX_PATH.")
else()
  set(QUARRY_HAS_EXECUTOR OFF)
  message(STATUS "quarry: no CPU executor (Boost.Context not found or QUARRY_EXECUTOR=OFF): "
    "only CUDA programs are built; libboost-context-dev brings the rest")
  add_library(quarry_no_context STATIC "${PROJECT_SOURCE_DIR}/cmake/no_context.cpp")
  target_link_libraries(quarry INTERFACE "$<BUILD_INTERFACE:quarry_no_context>")
endif()
