# SPDX-License-Identifier: Apache-2.0
# Sets QUARRY_HAS_MPI: whether src/cluster builds quarry::cluster, the cluster over MPI. The
# simulation, quarry::cluster_core, needs no MPI.
set(QUARRY_MPI AUTO CACHE STRING "Build what runs over MPI (AUTO: if MPI is found; ON; OFF)")
set_property(CACHE QUARRY_MPI PROPERTY STRINGS AUTO ON OFF)
set(QUARRY_HAS_MPI OFF)

if(QUARRY_HAS_EXECUTOR AND (QUARRY_MPI STREQUAL "AUTO" OR QUARRY_MPI))
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    set(QUARRY_HAS_MPI ON)
    # The C interface (quarry/cluster.h) has a test and an example in C.
    enable_language(C)
  elseif(QUARRY_MPI STREQUAL "AUTO")
    message(STATUS "quarry: MPI was not found, the cluster is built as a simulation only "
      "(scripts/install-deps cluster installs Open MPI)")
  else()
    message(FATAL_ERROR "quarry: QUARRY_MPI=${QUARRY_MPI}, but MPI was not found. Install it "
      "(Debian, Ubuntu: libopenmpi-dev openmpi-bin) or configure with QUARRY_MPI=OFF.")
  endif()
endif()
