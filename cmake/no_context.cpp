// SPDX-License-Identifier: Apache-2.0
// Stands in for the Boost.Context library where only its headers are installed
// (QUARRY_EXECUTOR=OFF). CUDA programs link and run; a program that starts the CPU
// executor ends with a message.
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include <boost/context/detail/fcontext.hpp>

namespace {

[[noreturn]] void no_executor() {
  std::fputs("quarry: built without Boost.Context, so there is no CPU executor\n", stderr);
  std::abort();
}

}  // namespace

namespace boost::context::detail {

extern "C" {

transfer_t BOOST_CONTEXT_CALLDECL jump_fcontext(fcontext_t const, void*) { no_executor(); }

fcontext_t BOOST_CONTEXT_CALLDECL make_fcontext(void*, std::size_t, void (*)(transfer_t)) {
  no_executor();
}

transfer_t BOOST_CONTEXT_CALLDECL ontop_fcontext(fcontext_t const, void*,
                                                 transfer_t (*)(transfer_t)) {
  no_executor();
}

}  // extern "C"

}  // namespace boost::context::detail
