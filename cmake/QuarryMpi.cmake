# SPDX-License-Identifier: Apache-2.0
# Sets QUARRY_HAS_MPI, and makes quarry::cluster: the library and MPI, for programs that run under
# mpirun. The cluster's simulation needs quarry::quarry alone.
set(QUARRY_MPI AUTO CACHE STRING "Build what runs over MPI (AUTO: when MPI is found; ON; OFF)")
set_property(CACHE QUARRY_MPI PROPERTY STRINGS AUTO ON OFF)
set(QUARRY_HAS_MPI OFF)

if(QUARRY_HAS_EXECUTOR AND (QUARRY_MPI STREQUAL "AUTO" OR QUARRY_MPI))
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    set(QUARRY_HAS_MPI ON)
    add_library(quarry_cluster INTERFACE)
    add_library(quarry::cluster ALIAS quarry_cluster)
    set_target_properties(quarry_cluster PROPERTIES EXPORT_NAME cluster)
    target_link_libraries(quarry_cluster INTERFACE quarry quarry_region MPI::MPI_CXX)
    # The C face (quarry/cluster.h) has a test and an example in C.
    enable_language(C)
  elseif(QUARRY_MPI STREQUAL "AUTO")
    message(STATUS "quarry: MPI was not found, the cluster is built as a simulation only "
      "(scripts/install-deps cluster brings Open MPI)")
  else()
    message(FATAL_ERROR "quarry: QUARRY_MPI=${QUARRY_MPI}, but MPI was not found. Install it "
      "(Debian, Ubuntu: libopenmpi-dev openmpi-bin) or configure with QUARRY_MPI=OFF.")
  endif()
endif()
