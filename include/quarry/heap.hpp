// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Heaps for kernels: the one header that a program needs.
///
///   #include <quarry/heap.hpp>
///   using namespace quarry::literals;
///
///   quarry::heap<> heap(1_GiB);
///   const auto ref = heap.ref();
///   quarry::launch({blocks, threads}, [=] QUARRY_DEVICE { ref.free(ref.malloc(64)); });
///   heap.check_empty();
///
/// Includes all allocators, heap, heap_ref, vector, and simt/ (lanes, atomics, launch, streams).
/// Layers that no named allocator uses (checked, counted) have headers of their own in layer/.

#include <quarry/core/config.hpp>  // first: it reports compilers without C++20

#include <quarry/core/allocator.hpp>
#include <quarry/core/bytes.hpp>
#include <quarry/core/error.hpp>
#include <quarry/core/statistics.hpp>
#include <quarry/heap/default.hpp>
#include <quarry/heap/failures.hpp>
#include <quarry/heap/growth.hpp>
#include <quarry/heap/heap.hpp>
#include <quarry/heap/memory_source.hpp>
#include <quarry/heap/named.hpp>
#include <quarry/heap/ref.hpp>
#include <quarry/heap/vector.hpp>
#include <quarry/simt/simt.hpp>
