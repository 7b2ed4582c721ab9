// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Quarry's front door: heaps for kernels.
///
///   #include <quarry/heap.hpp>
///
///   quarry::heap<> heap(1_GiB);
///   const auto ref = heap.ref();
///   quarry::launch({blocks, threads}, [=] QUARRY_DEVICE { ref.free(ref.malloc(64)); });

#include <quarry/core/allocator.hpp>
#include <quarry/core/bytes.hpp>
#include <quarry/heap/heap.hpp>
#include <quarry/heap/named.hpp>
#include <quarry/heap/ref.hpp>
#include <quarry/heap/vector.hpp>
#include <quarry/simt/simt.hpp>
