# SPDX-License-Identifier: Apache-2.0
# The cluster in real processes. Sanitizers occupy the addresses that all processes must share
# (address_space.hpp): under them, only the tests of the simulation run.
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  return()
endif()

# The memory of workers, in processes created by fork, without MPI.
quarry_test(cluster_worker_memory_test
  SOURCES worker_memory_test.cpp LIBRARIES quarry::cluster_core)
if(TARGET cluster_worker_memory_test)
  target_include_directories(cluster_worker_memory_test PRIVATE "${PROJECT_SOURCE_DIR}/src")
endif()

if(NOT QUARRY_MPI_TESTS)
  return()
endif()

quarry_mpi_program(cluster_mpi_transport_test mpi_transport_test.cpp)
quarry_mpi_test(cluster_mpi.transport RANKS 4
  COMMAND $<TARGET_FILE:cluster_mpi_transport_test> --gtest_brief=1)

# All calls, in trees of one, two and three levels of schedulers.
quarry_mpi_program(cluster_mpi_test mpi_handle_test.cpp mpi_test.cpp mpi_transfer_test.cpp)
set(program $<TARGET_FILE:cluster_mpi_test> --gtest_brief=1)
set(two_levels_of_5 --schedulers-each=2 --workers-each=1)
set(two_levels_of_17 --schedulers-each=8 --workers-each=4)
set(three_levels --schedulers-each=2 --workers-each=2)
quarry_mpi_test(cluster_mpi.3_ranks RANKS 3 COMMAND ${program})
quarry_mpi_test(cluster_mpi.5_ranks RANKS 5 COMMAND ${program})
quarry_mpi_test(cluster_mpi.5_ranks_2_levels RANKS 5 COMMAND ${program} ${two_levels_of_5})
quarry_mpi_test(cluster_mpi.17_ranks RANKS 17 COMMAND ${program})
quarry_mpi_test(cluster_mpi.17_ranks_2_levels RANKS 17 COMMAND ${program} ${two_levels_of_17})
quarry_mpi_test(cluster_mpi.17_ranks_3_levels RANKS 17 COMMAND ${program} ${three_levels})
quarry_mpi_test(cluster_mpi.without_leases RANKS 5 COMMAND ${program} --leases=0)
quarry_mpi_test(cluster_mpi.without_leases_3_levels RANKS 17
  COMMAND ${program} --leases=0 ${three_levels})
quarry_mpi_test(cluster_mpi.without_shared_memory RANKS 5 COMMAND ${program} --share=0)
quarry_mpi_test(cluster_mpi.with_protection RANKS 5 COMMAND ${program} --protect=1)
quarry_mpi_test(cluster_mpi.bytes_in_small_parts RANKS 5 COMMAND ${program} --part=5000)

# How a cluster ends.
quarry_mpi_program(cluster_mpi_end mpi_end.cpp)
find_package(Python3 3.9 COMPONENTS Interpreter)
if(Python3_Interpreter_FOUND AND QUARRY_MPI_MOST_RANKS GREATER_EQUAL 5)
  add_test(NAME cluster_mpi.ends COMMAND Python3::Interpreter
    "${CMAKE_CURRENT_SOURCE_DIR}/mpi_end_test.py" $<TARGET_FILE:cluster_mpi_end>
    ${QUARRY_MPI_LAUNCH})
  set_tests_properties(cluster_mpi.ends PROPERTIES
    LABELS "cluster;mpi" PROCESSORS 2 RUN_SERIAL ON TIMEOUT 600
    ENVIRONMENT "${QUARRY_MPI_ENVIRONMENT}")
endif()

# The C interface and the names of the paper, in C.
foreach(name IN ITEMS c_api myrmics)
  add_executable(cluster_${name}_test ${name}_test.c)
  target_link_libraries(cluster_${name}_test PRIVATE quarry::cluster_c)
  target_compile_options(cluster_${name}_test PRIVATE -Wall -Wextra -Wpedantic -Werror)
  set_target_properties(cluster_${name}_test PROPERTIES
    C_STANDARD 99 RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin/tests")
  quarry_mpi_test(cluster_${name} RANKS 5 COMMAND $<TARGET_FILE:cluster_${name}_test> argument)
endforeach()
if(TARGET example_cluster_list)
  quarry_mpi_test(example.cluster_list RANKS 5 COMMAND $<TARGET_FILE:example_cluster_list>)
endif()
