// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A trie and a std::map that must agree: state, operations, invariants. The operations come from a
/// stream of bytes, so that a random generator and libFuzzer drive the same code.

#include <quarry/region/detail/trie.hpp>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <new>
#include <span>
#include <string>
#include <vector>

namespace quarry::testing {

/// Nodes from the C++ heap, no more than `limit` at a time.
class counted_nodes {
 public:
  explicit counted_nodes(std::uint64_t limit = ~std::uint64_t{0}) : limit_(limit) {}
  void* take_node() {
    if (taken_ >= limit_) return nullptr;
    ++taken_;
    return ::operator new (64, std::align_val_t{64});
  }
  void give_node(void* node) {
    --taken_;
    ::operator delete (node, std::align_val_t{64});
  }
  std::uint64_t taken() const { return taken_; }
  void set_limit(std::uint64_t limit) { limit_ = limit; }

 private:
  std::uint64_t limit_;
  std::uint64_t taken_ = 0;
};

/// The bytes of a script; zeros after the end.
class byte_stream {
 public:
  explicit byte_stream(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool done() const { return at_ >= bytes_.size(); }
  std::uint8_t next() { return done() ? std::uint8_t{0} : bytes_[at_++]; }
  std::uint64_t next(unsigned count) {
    std::uint64_t n = 0;
    while (count-- > 0) n = n << 8 | next();
    return n;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

template <unsigned LowBit, unsigned Bits>
class trie_model {
 public:
  using trie_type = trie<LowBit, Bits, counted_nodes>;

  /// Carries out the whole script. Empty: the trie agreed with the map all the way.
  std::string run(std::span<const std::uint8_t> script) {
    byte_stream in(script);
    std::string fault;
    while (!in.done() && fault.empty()) fault = step(in);
    if (fault.empty()) fault = compare_all();
    subject_.clear();
    model_.clear();
    if (fault.empty() && nodes_.taken() != 0) fault = "clear() left nodes behind";
    return fault;
  }
  std::uint64_t operations() const { return operations_; }

 private:
  std::string step(byte_stream& in) {
    ++operations_;
    const unsigned op = in.next() % 16;
    const std::uint64_t key = draw_key(in);
    if (op < 5) return insert(key, in.next() + 1u);
    if (op < 9) return erase(key);
    if (op < 11) return find(key);
    if (op == 11) return above(key);
    if (op == 12) return below(key);
    if (op == 13) return walk(key, in.next() % 16);
    if (op == 14) return insert_without_nodes(key);
    return in.next() == 0 ? compare_all() : std::string();
  }

  /// Few keys close together, so that they meet; now and then one from the whole range or outside.
  std::uint64_t draw_key(byte_stream& in) {
    const std::uint8_t kind = in.next();
    if (kind >= 250) return in.next(8);
    const std::uint64_t dense = kind < 128 ? in.next() : in.next(2);
    return (kind % 5 == 4 ? ~dense : dense) << LowBit & mask;
  }

  std::string insert(std::uint64_t key, std::uint64_t value) {
    const trie_insert got = subject_.insert(key, value);
    trie_insert expected = trie_insert::done;
    if (!trie_type::is_key(key))
      expected = trie_insert::bad_key;
    else if (!model_.emplace(key, value).second)
      expected = trie_insert::duplicate;
    return got == expected ? "" : wrong("insert", key);
  }
  std::string insert_without_nodes(std::uint64_t key) {
    nodes_.set_limit(nodes_.taken());
    const trie_insert got = subject_.insert(key, 7);
    nodes_.set_limit(~std::uint64_t{0});
    if (got == trie_insert::done) model_.emplace(key, 7);
    if (got == trie_insert::no_node && model_.contains(key)) return wrong("insert", key);
    return subject_.check_invariants();
  }
  std::string erase(std::uint64_t key) {
    return subject_.erase(key) == (model_.erase(key) == 1) ? "" : wrong("erase", key);
  }
  std::string find(std::uint64_t key) {
    const std::uint64_t* got = subject_.find(key);
    const auto expected = model_.find(key);
    if (expected == model_.end()) return got == nullptr ? "" : wrong("find", key);
    return got != nullptr && *got == expected->second ? "" : wrong("find", key);
  }
  std::string above(std::uint64_t key) {
    return same(subject_.at_or_above(key), model_.lower_bound(key)) ? "" : wrong("above", key);
  }
  std::string below(std::uint64_t key) {
    auto expected = model_.upper_bound(key);
    expected = expected == model_.begin() ? model_.end() : std::prev(expected);
    return same(subject_.at_or_below(key), expected) ? "" : wrong("below", key);
  }
  std::string walk(std::uint64_t key, unsigned steps) {
    auto got = subject_.at_or_above(key);
    auto expected = model_.lower_bound(key);
    for (; steps > 0 && expected != model_.end(); --steps, ++got, ++expected)
      if (!same(got, expected)) return wrong("walk", key);
    if (!same(got, expected)) return wrong("walk", key);
    for (; got && expected != model_.begin(); --got, --expected)
      if (!same(got, expected)) return wrong("walk back", key);
    return "";
  }
  std::string compare_all() {
    if (std::string fault = subject_.check_invariants(); !fault.empty()) return fault;
    if (subject_.size() != model_.size()) return "sizes differ";
    auto expected = model_.begin();
    for (const auto [key, value] : subject_) {
      if (key != expected->first || value != expected->second) return wrong("order", key);
      ++expected;
    }
    if (model_.empty()) return subject_.last() ? "an empty trie has a last entry" : "";
    return subject_.last().key() == model_.rbegin()->first ? "" : "the last entries differ";
  }

  template <class Expected>
  bool same(const typename trie_type::iterator& got, const Expected& expected) const {
    if (expected == model_.end()) return !got;
    return got && got.key() == expected->first && got.value() == expected->second;
  }
  static std::string wrong(const char* what, std::uint64_t key) {
    return std::string(what) + " of " + std::to_string(key) + " disagrees with the map";
  }

  static constexpr std::uint64_t mask = (Bits == 64 ? ~0ull : (1ull << Bits) - 1) << LowBit;
  counted_nodes nodes_;
  trie_type subject_{nodes_};
  std::map<std::uint64_t, std::uint64_t> model_;
  std::uint64_t operations_ = 0;
};

}  // namespace quarry::testing
