# SPDX-License-Identifier: Apache-2.0
# quarry_test: one test program, on the backends of this build.
find_package(GTest REQUIRED)
include(GoogleTest)

set(QUARRY_TEST_TIMEOUT 120 CACHE STRING "Seconds one test may take")

# All programs with tests that run on a GPU.
add_custom_target(gpu_tests)

# The race detector of older compilers maps its shadow memory at fixed addresses
# and fails to start, now and then, where the kernel randomises many address bits.
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=[a-z,]*thread")
  find_program(QUARRY_SETARCH setarch)
  mark_as_advanced(QUARRY_SETARCH)
  set(fixed_addresses "${QUARRY_SETARCH}" "${CMAKE_HOST_SYSTEM_PROCESSOR}" -R)
  execute_process(COMMAND ${fixed_addresses} true RESULT_VARIABLE setarch_failed
    OUTPUT_QUIET ERROR_QUIET)
  if(setarch_failed)
    message(STATUS "quarry: setarch -R does not work here, tests run with random addresses")
  elseif(CMAKE_VERSION VERSION_LESS 3.29)
    set(CMAKE_CROSSCOMPILING_EMULATOR ${fixed_addresses})
  else()
    set(CMAKE_TEST_LAUNCHER ${fixed_addresses})
  endif()
endif()

# The compile options of all tests. assert() is active in every build type.
function(quarry_test_options program)
  target_compile_options(${program} PRIVATE -UNDEBUG
    "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:RelWithDebInfo,Debug>>:-Og>")
endfunction()

# GoogleTest and the headers of the standard library that most tests include, precompiled once.
# Headers of this repository are not among them: a change to one would compile every test again.
if(QUARRY_HAS_EXECUTOR)
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/test_headers.cpp" CONTENT "\n" @ONLY)
  add_library(quarry_test_headers OBJECT "${CMAKE_CURRENT_BINARY_DIR}/test_headers.cpp")
  quarry_own(quarry_test_headers)
  target_link_libraries(quarry_test_headers PRIVATE GTest::gtest_main)
  quarry_test_options(quarry_test_headers)
  target_precompile_headers(quarry_test_headers PRIVATE
    <gtest/gtest.h> <algorithm> <array> <atomic> <chrono> <concepts> <cstdint> <cstring>
    <functional> <memory> <numeric> <optional> <random> <set> <span> <string> <string_view>
    <thread> <vector>)
endif()

# quarry_gpu_test(<test name> <program> [labels...])
# Runs <program> where there is a GPU, is skipped elsewhere. One process for the whole
# program: starting CUDA costs more than most tests.
function(quarry_gpu_test test program)
  add_test(NAME ${test} COMMAND "${PROJECT_SOURCE_DIR}/cmake/run-on-gpu" $<TARGET_FILE:${program}>)
  set_tests_properties(${test} PROPERTIES
    LABELS "gpu;${ARGN}" RESOURCE_LOCK gpu SKIP_RETURN_CODE 77 TIMEOUT 600)
  add_dependencies(gpu_tests ${program})
endfunction()

# quarry_test(<name> SOURCES ... [BOTH_BACKENDS] [CUDA_SOURCES ...] [LIBRARIES ...]
#             [LABELS ...] [TIMEOUT seconds] [SERIAL])
# GoogleTest programs: <name> for the CPU (each TEST is a ctest test `<name>.Suite.Test`)
# and <name>_gpu for the GPU (one ctest test with the label gpu). The folder's name is
# a label too. SERIAL: the test runs alone, because it measures or fills the host. Tests are
# compiled with -Og: most spend more time in the compiler than running, and those that run long
# spend their time in the executor, which has -O2.
#
# The CPU sources of a program are compiled as one unit, except *_unit.cpp: a unit instantiates
# a template once for all tests. Each test source therefore has a namespace of its own. The tests
# of a folder are one program if they link the same libraries. GPU programs are smaller, because a
# CUDA error ends all tests of a process.
function(quarry_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SERIAL;BOTH_BACKENDS" "TIMEOUT"
    "SOURCES;CUDA_SOURCES;LIBRARIES;LABELS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${name}: unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_TIMEOUT OR arg_TIMEOUT LESS QUARRY_TEST_TIMEOUT)
    set(arg_TIMEOUT ${QUARRY_TEST_TIMEOUT})
  endif()
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  set(labels ${folder} ${arg_LABELS})

  if(arg_BOTH_BACKENDS)
    list(APPEND arg_CUDA_SOURCES ${arg_SOURCES})
  endif()
  quarry_programs(${name} DIRECTORY tests
    SOURCES ${arg_SOURCES}
    CUDA_SOURCES ${arg_CUDA_SOURCES}
    LIBRARIES GTest::gtest_main ${arg_LIBRARIES})
  foreach(program IN ITEMS ${name} ${name}_gpu)
    if(TARGET ${program})
      quarry_test_options(${program})
      target_include_directories(${program} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
    endif()
  endforeach()

  if(TARGET ${name})
    target_precompile_headers(${name} REUSE_FROM quarry_test_headers)
    set_target_properties(${name} PROPERTIES
      UNITY_BUILD "${QUARRY_UNITY}" UNITY_BUILD_BATCH_SIZE 0)
    set(separate ${arg_SOURCES})
    list(FILTER separate INCLUDE REGEX "_unit\\.cpp$")
    set_source_files_properties(${separate} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    gtest_discover_tests(${name}
      DISCOVERY_MODE PRE_TEST
      DISCOVERY_TIMEOUT 60
      TEST_PREFIX "${name}."
      TEST_LIST ${name}_tests
      PROPERTIES TIMEOUT ${arg_TIMEOUT} RUN_SERIAL ${arg_SERIAL})
    # gtest_discover_tests would flatten a list of labels.
    set(label_file "${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake")
    file(CONFIGURE OUTPUT "${label_file}" CONTENT [[
if(@name@_tests)
  set_tests_properties(${@name@_tests} PROPERTIES LABELS "@labels@")
endif()
]] @ONLY)
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${label_file}")
  endif()
  if(TARGET ${name}_gpu)
    quarry_gpu_test(${name}_gpu ${name}_gpu ${labels})
  endif()
endfunction()
