# SPDX-License-Identifier: Apache-2.0
# Tests under mpirun. QUARRY_MPI_TESTS is off without MPI, and under sanitizers, which occupy the
# addresses that all processes must share.
set(QUARRY_MPI_TESTS OFF)
if(NOT QUARRY_HAS_MPI OR CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  return()
endif()
set(QUARRY_MPI_TESTS ON)

# Tests start more ranks than cores. Open MPI supports this by options; MPICH polls, so its tests
# use few ranks.
execute_process(COMMAND "${MPIEXEC_EXECUTABLE}" --version
  OUTPUT_VARIABLE launcher ERROR_VARIABLE launcher)
if(launcher MATCHES "Open ?(MPI|RTE)")
  set(QUARRY_MPI_LAUNCH
    "${MPIEXEC_EXECUTABLE}" --oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
  set(QUARRY_MPI_MOST_RANKS 64)
else()
  set(QUARRY_MPI_LAUNCH "${MPIEXEC_EXECUTABLE}")
  set(QUARRY_MPI_MOST_RANKS 4)
endif()
# Containers run as root and have 64 MiB of /dev/shm for all ranks.
set(QUARRY_MPI_ENVIRONMENT
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_segment_size=1048576)

# quarry_mpi_test(<test> RANKS <n> COMMAND <program> [arguments...])
function(quarry_mpi_test test)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "RANKS" "COMMAND")
  if(arg_RANKS GREATER QUARRY_MPI_MOST_RANKS)
    return()
  endif()
  # The label is the folder below tests/, as for other tests.
  string(REGEX REPLACE ".*/tests/([^/]+).*" "\\1" folder "${CMAKE_CURRENT_SOURCE_DIR}")
  add_test(NAME ${test} COMMAND ${QUARRY_MPI_LAUNCH} -n ${arg_RANKS} ${arg_COMMAND})
  set_tests_properties(${test} PROPERTIES
    LABELS "${folder};mpi" PROCESSORS 2 RUN_SERIAL ON TIMEOUT ${QUARRY_TEST_TIMEOUT}
    ENVIRONMENT "${QUARRY_MPI_ENVIRONMENT}")
endfunction()

# quarry_mpi_program(<name> <source>...)
function(quarry_mpi_program name)
  add_executable(${name} ${ARGN})
  quarry_own(${name})
  target_link_libraries(${name} PRIVATE quarry::cluster GTest::gtest)
  quarry_test_options(${name})
  target_include_directories(${name} PRIVATE
    "${PROJECT_SOURCE_DIR}/tests" "${PROJECT_SOURCE_DIR}/src")
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin/tests"
    UNITY_BUILD "${QUARRY_UNITY}" UNITY_BUILD_BATCH_SIZE 0)
endfunction()
