// SPDX-License-Identifier: Apache-2.0
#pragma once
/// stream_ref<Backend>: the stream on which a call of the host is ordered. It does not own the
/// stream.
///
///   heap.reset(stream);                                   // cudaStream_t, cuda::stream_ref, ...
///   quarry::launch({blocks, threads}, kernel, stream);
///
/// The rule for every host function that takes a stream_ref as its last argument:
///
///   a stream       The function enqueues its work on this stream. It returns without waiting,
///                  unless it has a result for the host: then it waits for this stream, and for no
///                  other.
///   stream_ref{}   No stream, the default argument. The work runs on the default stream, and the
///                  function waits until the whole device is idle.
///
/// The null stream is a stream: pass cudaStream_t{} to order work on it without waiting.
///
/// The CPU backend has no streams, by design: a kernel has ended when launch returns.
/// stream_ref<cpu> is empty, so that code for both backends can pass a stream_ref on.

#include <quarry/simt/backend.hpp>
#include <quarry/simt/cuda_error.hpp>

#include <concepts>

namespace quarry {

/// Every backend without streams.
template <class Backend>
class stream_ref {
 public:
  constexpr stream_ref() = default;
  /// Returns whether this object names a stream.
  constexpr bool names_stream() const { return false; }
  void synchronize() const {}
};

#if QUARRY_CUDA
/// A type that wraps a cudaStream_t: cuda::stream_ref has get(), rmm::cuda_stream_view converts.
template <class Stream>
concept cuda_stream = std::convertible_to<const Stream&, cudaStream_t> ||
    requires(const Stream& s) {
  { s.get() } -> std::same_as<cudaStream_t>;
};

template <>
class stream_ref<cuda> {
 public:
  constexpr stream_ref() = default;

  template <cuda_stream Stream>
    requires(!std::same_as<Stream, stream_ref>)
  constexpr stream_ref(const Stream& stream) : names_stream_(true) {
    if constexpr (std::convertible_to<const Stream&, cudaStream_t>)
      stream_ = stream;
    else
      stream_ = stream.get();
  }

  constexpr bool names_stream() const { return names_stream_; }
  /// Returns the default stream if this object names none.
  constexpr cudaStream_t get() const { return stream_; }
  /// Waits for the stream, or for the whole device if this object names none. Throws error if an
  /// earlier kernel failed.
  void synchronize() const {
    if (names_stream_)
      simt::check_cuda(cudaStreamSynchronize(stream_), "waiting for a stream");
    else
      simt::check_cuda(cudaDeviceSynchronize(), "waiting for the GPU");
  }

 private:
  cudaStream_t stream_ = nullptr;
  bool names_stream_ = false;
};
#endif

}  // namespace quarry
