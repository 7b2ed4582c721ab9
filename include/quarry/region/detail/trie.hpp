// SPDX-License-Identifier: Apache-2.0
#pragma once
/// trie: an ordered map from some bits of a 64-bit key to a 64-bit value other than zero.
///
///   key      | must be 0 | d0 | d1 | ... | dL-1 | must be 0 |
///                         \___ Bits bits, three per digit __/ \_ LowBit _/
///   node     8 words, one cache line: the child of each digit or, on the last level, the value of
///            each digit; 0: none
///
/// An octal radix trie, as in Lyberis et al. (2012). A search takes one load per digit, independent
/// of the number of entries. Unlike a hash table, a trie finds the nearest entry above or below a
/// key and iterates in order. Each node takes 64 bytes from the node source.
///
/// Invariants: every node has at least one child or value, so an empty trie has no node; the number
/// of values equals size().
/// Complexity: find, insert, erase, at_or_above and at_or_below visit at most 2 * levels nodes.
/// insert allocates at most `levels` nodes, all of them before it changes the trie: if one is
/// missing, the trie is unchanged. erase allocates none.
/// insert and erase invalidate iterators. Thread safety: none.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

namespace quarry {

/// A node: child pointers, or values on the last level.
struct alignas(64) trie_node {
  std::uint64_t slot[8];
};
static_assert(sizeof(trie_node) == 64);

/// The source of nodes. take_node returns 64 bytes, 64-byte aligned, or nullptr. insert calls
/// take_node and erase calls give_node; neither function may access the trie.
template <class Source>
concept trie_node_source = requires(Source& source, void* node) {
  { source.take_node() } -> std::same_as<void*>;
  { source.give_node(node) } -> std::same_as<void>;
};

enum class trie_insert : std::uint8_t { done, duplicate, bad_key, no_node };

template <unsigned LowBit, unsigned Bits, trie_node_source Source>
class trie {
  static_assert(Bits >= 1 && LowBit + Bits <= 64, "a key has 64 bits");

 public:
  static constexpr unsigned levels = (Bits + 2) / 3;

  struct entry {
    std::uint64_t key;
    std::uint64_t value;
    friend bool operator==(const entry&, const entry&) = default;
  };
  class iterator;

  explicit trie(Source& source) : source_(&source) {}
  trie(const trie&) = delete;
  trie& operator=(const trie&) = delete;
  ~trie() { clear(); }

  /// Requires value != 0.
  trie_insert insert(std::uint64_t key, std::uint64_t value);
  bool erase(std::uint64_t key);
  /// Returns every node to the source.
  void clear();
  /// Drops all nodes without returning them; the source is discarded as a whole.
  void forget() { root_ = nullptr, size_ = 0; }

  /// Returns a pointer to the value, or nullptr. The caller may change the value, but not to 0.
  std::uint64_t* find(std::uint64_t key) const;

  iterator at_or_above(std::uint64_t key) const;
  iterator at_or_below(std::uint64_t key) const;
  iterator begin() const { return edge<up>(); }
  iterator end() const { return iterator(); }
  iterator last() const { return edge<down>(); }

  std::uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  static constexpr bool is_key(std::uint64_t key) { return (key & ~key_mask) == 0; }

  /// Returns a description of the first violated invariant, or an empty string. Visits all nodes.
  std::string check_invariants() const;

 private:
  static constexpr int up = 1;
  static constexpr int down = -1;
  static constexpr std::uint64_t key_mask =
      (Bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << Bits) - 1) << LowBit;

  static constexpr unsigned shift(unsigned level) { return LowBit + 3 * (levels - 1 - level); }
  static constexpr unsigned digit(std::uint64_t key, unsigned level) {
    return static_cast<unsigned>(key >> shift(level)) & 7u;
  }
  /// The key's digits above `level`, then `d`, then zeros.
  static constexpr std::uint64_t with_digit(std::uint64_t key, unsigned level, unsigned d) {
    const std::uint64_t below =
        shift(level) + 3 >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << (shift(level) + 3)) - 1;
    return (key & ~below) | (std::uint64_t{d} << shift(level));
  }
  static trie_node* child(const trie_node* node, unsigned d) {
    return reinterpret_cast<trie_node*>(node->slot[d]);
  }
  static bool is_empty(const trie_node* node);
  template <int Way>
  iterator edge() const;
  template <int Way>
  iterator nearest(std::uint64_t key) const;
  void clear_below(trie_node* node, unsigned level);
  std::string check_below(const trie_node* node, unsigned level, std::uint64_t& values) const;

  Source* source_;
  trie_node* root_ = nullptr;
  std::uint64_t size_ = 0;
};

/// A position in the order, or the end. The iterator stores the path from the root: a step costs
/// one load per digit that changes.
template <unsigned LowBit, unsigned Bits, trie_node_source Source>
class trie<LowBit, Bits, Source>::iterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = entry;
  using difference_type = std::ptrdiff_t;
  using pointer = const entry*;
  using reference = entry;

  iterator() = default;

  entry operator*() const { return {key_, value()}; }
  std::uint64_t key() const { return key_; }
  std::uint64_t value() const { return path_[levels - 1]->slot[digit(key_, levels - 1)]; }
  explicit operator bool() const { return path_[0] != nullptr; }

  /// Moves to the next entry above or below, or to the end. Requires an entry.
  iterator& operator++() { return sideways<up>(levels - 1), *this; }
  iterator& operator--() { return sideways<down>(levels - 1), *this; }
  iterator operator++(int) {
    iterator before = *this;
    ++*this;
    return before;
  }

  friend bool operator==(const iterator& a, const iterator& b) {
    return a.path_[0] == b.path_[0] && (a.path_[0] == nullptr || a.key_ == b.key_);
  }

 private:
  friend class trie;

  /// From the node at `level` on the path: the nearest entry beside key_'s digit there or, failing
  /// that, beside a digit further up.
  template <int Way>
  void sideways(unsigned level) {
    for (unsigned left = level + 1; left > 0; --left) {
      const unsigned here = left - 1;
      for (unsigned d = digit(key_, here) + static_cast<unsigned>(Way); d < 8;
           d += static_cast<unsigned>(Way)) {
        if (path_[here]->slot[d] == 0) continue;
        key_ = with_digit(key_, here, d);
        return descend<Way>(here);
      }
    }
    path_[0] = nullptr;
  }

  /// key_'s digit at `level` has a child: follows the least (or greatest) digits below it.
  template <int Way>
  void descend(unsigned level) {
    for (; level + 1 < levels; ++level) {
      const trie_node* node = child(path_[level], digit(key_, level));
      unsigned d = Way == up ? 0 : 7;
      while (node->slot[d] == 0) d += static_cast<unsigned>(Way);
      path_[level + 1] = node;
      key_ = with_digit(key_, level + 1, d);
    }
  }

  const trie_node* path_[levels] = {};
  std::uint64_t key_ = 0;
};

template <unsigned LowBit, unsigned Bits, trie_node_source Source>
bool trie<LowBit, Bits, Source>::is_empty(const trie_node* node) {
  std::uint64_t any = 0;
  for (const std::uint64_t s : node->slot) any |= s;
  return any == 0;
}

template <unsigned LowBit, unsigned Bits, trie_node_source Source>
std::uint64_t* trie<LowBit, Bits, Source>::find(std::uint64_t key) const {
  if (!is_key(key)) return nullptr;
  trie_node* node = root_;
  for (unsigned level = 0; node != nullptr && level + 1 < levels; ++level)
    node = child(node, digit(key, level));
  if (node == nullptr) return nullptr;
  std::uint64_t* place = &node->slot[digit(key, levels - 1)];
  return *place == 0 ? nullptr : place;
}

template <unsigned LowBit, unsigned Bits, trie_node_source Source>
trie_insert trie<LowBit, Bits, Source>::insert(std::uint64_t key, std::uint64_t value) {
  if (!is_key(key) || value == 0) return trie_insert::bad_key;
  unsigned level = 0;  // of the node that stays missing
  trie_node* node = nullptr;
  for (trie_node* next = root_; next != nullptr;) {
    node = next;
    if (++level == levels) break;
    next = child(node, digit(key, level - 1));
  }
  std::uint64_t* link = nullptr;  // where the first new node hangs, unless it is the root
  if (level == levels) {
    link = &node->slot[digit(key, levels - 1)];
    if (*link != 0) return trie_insert::duplicate;
    *link = value;
    ++size_;
    return trie_insert::done;
  }
  if (level > 0) link = &node->slot[digit(key, level - 1)];

  trie_node* fresh[levels];
  const unsigned wanted = levels - level;
  for (unsigned i = 0; i < wanted; ++i) {
    fresh[i] = static_cast<trie_node*>(source_->take_node());
    if (fresh[i] != nullptr) {
      *fresh[i] = trie_node{};
      continue;
    }
    while (i > 0) source_->give_node(fresh[--i]);
    return trie_insert::no_node;
  }
  for (unsigned i = 0; i + 1 < wanted; ++i)
    fresh[i]->slot[digit(key, level + i)] = reinterpret_cast<std::uint64_t>(fresh[i + 1]);
  fresh[wanted - 1]->slot[digit(key, levels - 1)] = value;
  if (link == nullptr)
    root_ = fresh[0];
  else
    *link = reinterpret_cast<std::uint64_t>(fresh[0]);
  ++size_;
  return trie_insert::done;
}

template <unsigned LowBit, unsigned Bits, trie_node_source Source>
bool trie<LowBit, Bits, Source>::erase(std::uint64_t key) {
  if (find(key) == nullptr) return false;
  trie_node* path[levels];
  path[0] = root_;
  for (unsigned level = 0; level + 1 < levels; ++level)
    path[level + 1] = child(path[level], digit(key, level));
  unsigned level = levels;
  do {
    --level;
    path[level]->slot[digit(key, level)] = 0;
  } while (level > 0 && is_empty(path[level]));
  const bool none_left = level == 0 && is_empty(path[0]);
  if (none_left) root_ = nullptr;
  --size_;
  for (unsigned gone = none_left ? 0 : level + 1; gone < levels; ++gone)
    if (is_empty(path[gone])) source_->give_node(path[gone]);
  return true;
}

template <unsigned LowBit, unsigned Bits, trie_node_source Source>
void trie<LowBit, Bits, Source>::clear() {
  trie_node* root = root_;
  forget();
  if (root != nullptr) clear_below(root, 0);
}

template <unsigned LowBit, unsigned Bits, trie_node_source Source>
void trie<LowBit, Bits, Source>::clear_below(trie_node* node, unsigned level) {
  if (level + 1 < levels)
    for (unsigned d = 0; d < 8; ++d)
      if (child(node, d) != nullptr) clear_below(child(node, d), level + 1);
  source_->give_node(node);
}

template <unsigned LowBit, unsigned Bits, trie_node_source Source>
template <int Way>
auto trie<LowBit, Bits, Source>::edge() const -> iterator {
  iterator it;
  if (root_ == nullptr) return it;
  unsigned d = Way == up ? 0 : 7;
  while (root_->slot[d] == 0) d += static_cast<unsigned>(Way);
  it.path_[0] = root_;
  it.key_ = with_digit(0, 0, d);
  it.template descend<Way>(0);
  return it;
}

template <unsigned LowBit, unsigned Bits, trie_node_source Source>
template <int Way>
auto trie<LowBit, Bits, Source>::nearest(std::uint64_t key) const -> iterator {
  iterator it;
  if (root_ == nullptr) return it;
  it.key_ = key;
  it.path_[0] = root_;
  for (unsigned level = 0;; ++level) {
    if (it.path_[level]->slot[digit(key, level)] == 0) {
      it.template sideways<Way>(level);
      return it;
    }
    if (level + 1 == levels) return it;
    it.path_[level + 1] = child(it.path_[level], digit(key, level));
  }
}

template <unsigned LowBit, unsigned Bits, trie_node_source Source>
auto trie<LowBit, Bits, Source>::at_or_above(std::uint64_t key) const -> iterator {
  if (is_key(key)) return nearest<up>(key);
  // The least key not below this one.
  const std::uint64_t above = (key | ((std::uint64_t{1} << LowBit) - 1)) + 1;
  const std::uint64_t rounded = (key & ((std::uint64_t{1} << LowBit) - 1)) == 0 ? key : above;
  if (rounded < key || !is_key(rounded)) return end();
  return nearest<up>(rounded);
}

template <unsigned LowBit, unsigned Bits, trie_node_source Source>
auto trie<LowBit, Bits, Source>::at_or_below(std::uint64_t key) const -> iterator {
  const std::uint64_t rounded = key & ~((std::uint64_t{1} << LowBit) - 1);
  return is_key(rounded) ? nearest<down>(rounded) : last();
}

template <unsigned LowBit, unsigned Bits, trie_node_source Source>
std::string trie<LowBit, Bits, Source>::check_invariants() const {
  std::uint64_t values = 0;
  if (root_ != nullptr)
    if (std::string fault = check_below(root_, 0, values); !fault.empty()) return fault;
  if (values == size_) return {};
  return "a trie of " + std::to_string(size_) + " entries holds " + std::to_string(values);
}

template <unsigned LowBit, unsigned Bits, trie_node_source Source>
std::string trie<LowBit, Bits, Source>::check_below(const trie_node* node, unsigned level,
                                                    std::uint64_t& values) const {
  if (is_empty(node)) return "a trie holds an empty node on level " + std::to_string(level);
  for (unsigned d = 0; d < 8; ++d) {
    if (node->slot[d] == 0) continue;
    if (level + 1 == levels) {
      ++values;
    } else if (std::string fault = check_below(child(node, d), level + 1, values); !fault.empty()) {
      return fault;
    }
  }
  return {};
}

}  // namespace quarry
