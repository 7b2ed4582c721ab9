// SPDX-License-Identifier: Apache-2.0
#pragma once
/// All macros of the library.
///
/// QUARRY_DEVICE   marks device code: functions that lanes call. nvcc compiles them twice. Its
///                 device pass maps the primitives of simt/ to instructions. Its host pass, and any
///                 C++20 compiler, maps them to the executor of the CPU backend. One binary may
///                 contain both.
/// QUARRY_DEVICE_NOINLINE  marks device code that is called and not inlined: functions that are
///                 static or no members. With relocatable device code (-rdc=true) the compiler does
///                 not know their callers, so it is told to use no more registers than every
///                 kernel has: 32, since a multiprocessor has 65,536 for at most 2,048 threads.
/// QUARRY_ROLLED   precedes a loop that must not be unrolled, to save registers.

#if __cplusplus <= 201703L && !(defined(_MSVC_LANG) && _MSVC_LANG > 201703L)
#error "Quarry needs C++20: compile with -std=c++20, or link quarry::quarry in CMake"
#endif

#if defined(__CUDACC__)
#define QUARRY_CUDA 1
#define QUARRY_DEVICE __host__ __device__
#define QUARRY_NOINLINE __noinline__
#else
#define QUARRY_CUDA 0
#define QUARRY_DEVICE
#define QUARRY_NOINLINE [[gnu::noinline]]
#endif
#if defined(__CUDACC_RDC__) && defined(__local_maxnreg__)  // CUDA 13.0 has it
#define QUARRY_DEVICE_NOINLINE QUARRY_DEVICE QUARRY_NOINLINE __local_maxnreg__(32)
#else
#define QUARRY_DEVICE_NOINLINE QUARRY_DEVICE QUARRY_NOINLINE
#endif

// 1 while nvcc generates code for the GPU.
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

// Marks functions of the executor that ThreadSanitizer must not instrument.
#if QUARRY_TSAN
#define QUARRY_NO_TSAN __attribute__((no_sanitize("thread"), noinline))
#else
#define QUARRY_NO_TSAN
#endif
