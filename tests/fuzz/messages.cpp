// SPDX-License-Identifier: Apache-2.0
/// Fuzz target: messages of the cluster. Words that are accepted as a message, or as its body, are
/// those that encode it. A scheduler receives all messages of the input.
///
///   input   | number of body words | envelope, 3 words | body | number of body words | ...
#include "cluster/protocol/bodies.hpp"
#include "cluster/protocol/wire.hpp"
#include "cluster/scheduler/state.hpp"
#include "fuzz/fuzz.hpp"

#include <cstring>

namespace quarry::fuzz::messages {
namespace {

using namespace cluster;
using namespace cluster::detail;
using words = std::vector<std::uint64_t>;

template <class Body>
void check_body(const message& m) {
  const std::optional<Body> body = body_of<Body>(m);
  if (!body) return;
  words again;
  encode(*body, again);
  require(again == m.body, std::string("two encodings of one ") + Body::name);
}
template <class... Bodies>
void check_bodies(const message& m, std::tuple<Bodies...>*) {
  (check_body<Bodies>(m), ...);
}

/// Removes the words of a message from the front of the input.
words next_words(input& bytes) {
  const std::size_t count = envelope_words + bytes[0] % 32;
  bytes = bytes.subspan(1);
  words next(std::min(count, bytes.size() / 8));
  std::memcpy(next.data(), bytes.data(), next.size() * 8);
  bytes = bytes.subspan(next.size() * 8);
  return next;
}

void run(input bytes) {
  const shape tree = shape::for_workers(2);
  scheduler_options options;
  options.capacity = 64u << 20;
  scheduler top(tree, 0, options);
  while (bytes.size() > 8 && !top.has_finished()) {
    const words wire = next_words(bytes);
    message m;
    if (!decode_message(wire, m)) continue;
    words again;
    encode_message(m, again);
    require(again == wire, "two encodings of one message");
    check_bodies(m, static_cast<all_bodies*>(nullptr));
    m.from %= tree.nodes();
    m.to = 0;
    std::vector<message> out;
    top.receive(std::move(m), out);
  }
}

template <class Body>
void add(std::string& text, const Body& body) {
  message m = make_message(0, body, 5);
  m.from = 1;
  words wire;
  encode_message(m, wire);
  text += static_cast<char>(m.body.size());
  text.append(reinterpret_cast<const char*>(wire.data()), wire.size() * 8);
}

std::vector<std::string> seeds() {
  const rid first = make_rid(0, region_id(0, 1));
  std::string objects, regions, leases, pages, ends;
  add(objects, allocate_request{root, 100, 64});
  add(objects, size_request{default_base});
  add(objects, resize_request{default_base, 200, root});
  add(objects, free_request{{default_base, default_base + 64}});
  add(objects, allocate_bulk_request{root, 64, 10});
  add(regions, create_region_request{root, 0});
  add(regions, allocate_request{first, 5000, 64});
  add(regions, create_region_request{first, -1});
  add(regions, pack_request{first});
  add(regions, destroy_region_request{first, false});
  add(leases, create_region_request{root, 0});
  add(leases, lease_request{first, 64, 64});
  add(leases, lease_release{first, {{default_base, 1}}});
  add(leases, lease_return{first, {{default_base, 2}}});
  add(leases, free_request{{default_base}});
  add(leases, acknowledgement{});
  add(pages, page_request{1, 4, 0});
  add(pages, page_return{{{0, 4}}});
  add(pages, create_remote_request{root, 0, 1});
  add(pages, remote_child_destroyed{});
  add(pages, load_report{3});
  add(ends, barrier_request{});
  add(ends, progress_report{1, 2, 3});
  add(ends, finish_request{1, 2, 3});
  return {objects, regions, leases, pages, ends};
}

}  // namespace
}  // namespace quarry::fuzz::messages

QUARRY_FUZZ_TARGET(messages, quarry::fuzz::messages::run, quarry::fuzz::messages::seeds, 2000);
