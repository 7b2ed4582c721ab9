// SPDX-License-Identifier: Apache-2.0
#pragma once
/// out_of_line: a call of a member function that does not raise the register count of its caller.
///
/// nvcc allocates the registers of a noinline function together with those of its callers. A kernel
/// then needs the sum of the registers along the longest chain of calls, and all lanes pay for it.
/// A function whose address is taken follows the calling convention instead: it saves the registers
/// that it overwrites on the stack, and the kernel needs the registers of its largest function
/// only. The call is direct, so the compiler still computes the stack size. (With -rdc=true and
/// with -G, all functions follow the calling convention without that.) Slow paths use it:
///
///   return simt::out_of_line<&slab::malloc_large>(self, n);
///
/// `self` must point to memory that all lanes can read. An object of up to 16 bytes can be passed
/// by value, in registers:
///
///   return simt::out_of_line<&index_set::set_hint>(set, word);
///
/// out_of_line_leaf is a noinline call without the calling convention, which alone costs a small
/// kernel eight or more registers. It suits functions that call no other function and are called
/// last.
///
/// Functions that many warps call at once should take their operands by value: members that are
/// loaded through `self` share one or two cache lines, and these loads contend. On the CPU, each of
/// the three is a plain call.
///
/// With -G the compiler does not fold `Member`, so that the calls are indirect and their stack is
/// unknown. Kernels then have the stack that the device is set to: reserve_stack() sets it.

#include <quarry/core/config.hpp>
#include <quarry/simt/cuda_error.hpp>

#include <cstddef>
#include <type_traits>

namespace quarry::simt {

namespace detail {
template <auto Member>
struct outlined;

template <class T, class Result, class... Arguments, Result (T::*Member)(Arguments...) const>
struct outlined<Member> {
  QUARRY_DEVICE_NOINLINE static Result call(const T* object, Arguments... arguments) {
    return (object->*Member)(arguments...);
  }
  QUARRY_DEVICE_NOINLINE static Result call_on(T object, Arguments... arguments) {
    return (object.*Member)(arguments...);
  }
};

/// Takes the address of a function, where only that makes it follow the calling convention.
template <auto Function>
QUARRY_DEVICE void use_calling_convention() {
#if QUARRY_DEVICE_CODE && !defined(__CUDACC_RDC__) && !defined(__CUDACC_DEBUG__)
  asm volatile("" ::"l"(Function));
#endif
}
}  // namespace detail

template <auto Member, class T, class... Arguments>
QUARRY_DEVICE auto out_of_line(const T* object, Arguments... arguments) {
  detail::use_calling_convention<&detail::outlined<Member>::call>();
  return detail::outlined<Member>::call(object, arguments...);
}

template <auto Member, class T, class... Arguments>
QUARRY_DEVICE auto out_of_line_leaf(const T* object, Arguments... arguments) {
  return detail::outlined<Member>::call(object, arguments...);
}

template <auto Member, class T, class... Arguments>
  requires(std::is_class_v<T> && sizeof(T) <= 16)
QUARRY_DEVICE auto out_of_line(T object, Arguments... arguments) {
  detail::use_calling_convention<&detail::outlined<Member>::call_on>();
  return detail::outlined<Member>::call_on(object, arguments...);
}

/// Sets the stack of the current device to 8 KiB or more if this file is compiled with -G. A call
/// of the default heap then takes up to 4 KiB; the default is 1 KiB.
inline void reserve_stack() {
#if QUARRY_CUDA && defined(__CUDACC_DEBUG__)
  constexpr std::size_t needed = 8192;
  std::size_t size = 0;
  check_cuda(cudaDeviceGetLimit(&size, cudaLimitStackSize), "querying the stack size");
  if (size < needed)
    check_cuda(cudaDeviceSetLimit(cudaLimitStackSize, needed), "setting the stack size");
#endif
}

}  // namespace quarry::simt
