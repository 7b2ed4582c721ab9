// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The header of MPI, without the C++ bindings of old versions. Errors of MPI end the job, which is
/// MPI's default; callers do not check return values.

#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>
