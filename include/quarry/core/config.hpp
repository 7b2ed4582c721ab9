// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The macros of the library, all of them.
///
/// A function marked QUARRY_DEVICE is code of a lane. nvcc compiles it twice: its GPU pass maps the
/// primitives of simt/ to instructions, its host pass (and any plain C++20 compiler) maps them to
/// the CPU executor. One source serves both machines, and both may live in one binary.
/// QUARRY_ROLLED before a loop: not worth the registers of unrolling it.

#if defined(__CUDACC__)
#define QUARRY_CUDA 1
#define QUARRY_DEVICE __host__ __device__
#define QUARRY_NOINLINE __noinline__
#else
#define QUARRY_CUDA 0
#define QUARRY_DEVICE
#define QUARRY_NOINLINE [[gnu::noinline]]
#endif

// 1 only while code for the GPU is generated.
#if defined(__CUDA_ARCH__)
#define QUARRY_DEVICE_CODE 1
#define QUARRY_ROLLED _Pragma("unroll 1")
#else
#define QUARRY_DEVICE_CODE 0
#define QUARRY_ROLLED
#endif

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define QUARRY_TSAN 1
#endif
#if __has_feature(address_sanitizer)
#define QUARRY_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) && !defined(QUARRY_TSAN)
#define QUARRY_TSAN 1
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(QUARRY_ASAN)
#define QUARRY_ASAN 1
#endif
#if !defined(QUARRY_TSAN)
#define QUARRY_TSAN 0
#endif
#if !defined(QUARRY_ASAN)
#define QUARRY_ASAN 0
#endif

// Executor code that must not appear in a race detector's history.
#if QUARRY_TSAN
#define QUARRY_UNSEEN __attribute__((no_sanitize("thread"), noinline))
#else
#define QUARRY_UNSEEN
#endif
