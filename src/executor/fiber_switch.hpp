// SPDX-License-Identifier: Apache-2.0
#pragma once
/// fiber_switch: the switch from one fiber to another.
///
/// The function is inline in the executor. A processor predicts a return from the calls before it,
/// and after a switch the prediction is wrong; each level of calls around the switch costs one
/// misprediction.

#include <quarry/simt/detail/fiber.hpp>
#include <quarry/simt/detail/sanitizer.hpp>

#include <boost/context/detail/fcontext.hpp>

#if QUARRY_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace quarry::simt::detail {

/// The two fibers of a switch. The object is on the stack of `from`, which is suspended until the
/// other side has read it.
struct fiber_switch {
  fiber* from;
  fiber* to;

  /// As fiber::jump().
  QUARRY_NO_TSAN static void jump(fiber& from, fiber& to, [[maybe_unused]] bool ordered) {
#if QUARRY_TSAN
    constexpr unsigned no_sync = 1;
    __tsan_switch_to_fiber(to.tsan_fiber_, ordered ? 0 : no_sync);
#endif
#if QUARRY_ASAN
    __sanitizer_start_switch_fiber(&from.asan_fake_stack_, to.bottom_, to.size_);
#endif
    fiber_switch request{&from, &to};
    const auto back = boost::context::detail::jump_fcontext(to.context_, &request);
    static_cast<const fiber_switch*>(back.data)->from->context_ = back.fctx;
#if QUARRY_ASAN
    __sanitizer_finish_switch_fiber(from.asan_fake_stack_, nullptr, nullptr);
#endif
  }

  /// The function that Boost.Context calls on a new stack.
  QUARRY_NO_TSAN static void enter(boost::context::detail::transfer_t back) {
    const auto* request = static_cast<const fiber_switch*>(back.data);
    request->from->context_ = back.fctx;
    const fiber::entry start = request->to->start_;
#if QUARRY_ASAN
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
    start();
  }
};

}  // namespace quarry::simt::detail
