// SPDX-License-Identifier: Apache-2.0
#pragma once
/// MPI's header, without the C++ bindings of old versions of it. Errors of MPI end the job, which
/// is MPI's default: no call here looks at what it returns.

#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>
