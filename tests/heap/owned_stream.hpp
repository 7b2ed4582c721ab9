// SPDX-License-Identifier: Apache-2.0
#pragma once
/// owned_stream: a stream for tests. On a GPU it does not synchronise with the default stream.

#include <quarry/simt/stream.hpp>

namespace quarry::testing {

template <class Backend>
class owned_stream {
 public:
  stream_ref<Backend> ref() const { return {}; }
};

#if QUARRY_CUDA
template <>
class owned_stream<cuda> {
 public:
  owned_stream() {
    simt::check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  }
  owned_stream(const owned_stream&) = delete;
  owned_stream& operator=(const owned_stream&) = delete;
  ~owned_stream() { (void)cudaStreamDestroy(stream_); }

  cudaStream_t get() const { return stream_; }
  stream_ref<cuda> ref() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};
#endif

}  // namespace quarry::testing
