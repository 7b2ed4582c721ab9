// SPDX-License-Identifier: Apache-2.0
#pragma once
/// out_of_line: a call that does not cost its caller registers.
///
/// A GPU function that is merely not inlined shares out registers with its callers: a kernel needs the sum along
/// the longest chain of calls, and every lane pays for it, also those that never call. A function whose address is
/// taken keeps to the calling convention: it saves on the stack what it overwrites, and a kernel needs the
/// registers of its largest function only. The call itself stays direct, so the compiler knows how deep the stack
/// gets. Rare paths are called like this:
///
///   return simt::out_of_line<&slab::malloc_large>(self, n);
///
/// `self` must lie in memory that all lanes can read. A small object can also be passed as it is, in registers; then
/// nothing of it has to be loaded:
///
///   return simt::out_of_line<&index_set::set_hint>(set, word);
///
/// A function that calls nothing, and is called last, is better off without the convention, which alone costs a small
/// kernel eight registers or more: out_of_line_leaf.
///
/// What many warps call at once had better get what it needs as arguments, like that: members that are loaded through
/// `self` lie in one or two lines of memory, and the warps queue for them. On the CPU it is a plain call.

#include <quarry/core/config.hpp>

#include <type_traits>

namespace quarry::simt {

namespace detail {
template <auto Member>
struct outlined;

template <class T, class Result, class... Arguments, Result (T::*Member)(Arguments...) const>
struct outlined<Member> {
  QUARRY_DEVICE QUARRY_NOINLINE static Result call(const T* object, Arguments... arguments) {
    return (object->*Member)(arguments...);
  }
  QUARRY_DEVICE QUARRY_NOINLINE static Result call_on(T object, Arguments... arguments) {
    return (object.*Member)(arguments...);
  }
};
}  // namespace detail

template <auto Member, class T, class... Arguments>
QUARRY_DEVICE auto out_of_line(const T* object, Arguments... arguments) {
#if QUARRY_DEVICE_CODE
  asm volatile("" ::"l"(&detail::outlined<Member>::call));
#endif
  return detail::outlined<Member>::call(object, arguments...);
}

template <auto Member, class T, class... Arguments>
QUARRY_DEVICE auto out_of_line_leaf(const T* object, Arguments... arguments) {
  return detail::outlined<Member>::call(object, arguments...);
}

template <auto Member, class T, class... Arguments>
  requires(std::is_class_v<T> && sizeof(T) <= 16)
QUARRY_DEVICE auto out_of_line(T object, Arguments... arguments) {
#if QUARRY_DEVICE_CODE
  asm volatile("" ::"l"(&detail::outlined<Member>::call_on));
#endif
  return detail::outlined<Member>::call_on(object, arguments...);
}

}  // namespace quarry::simt
