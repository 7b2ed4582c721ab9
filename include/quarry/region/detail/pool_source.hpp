// SPDX-License-Identifier: Apache-2.0
#pragma once
/// pool_source: the interface from which a slab pool requests slabs and memory for metadata. Only
/// slow paths call it, so its functions are virtual.
/// node_pool: allocates trie nodes from chunks of metadata, and releases all of them at once.

#include <quarry/region/detail/slab_table.hpp>
#include <quarry/region/detail/trie.hpp>

#include <cstddef>

namespace quarry {

class pool_source {
 public:
  /// Returns a run of at least `least` slabs, preferably `wanted`; empty: there is none.
  virtual slab_run more_slabs(slab_number least, slab_number wanted) = 0;
  /// Returns memory that is 64-byte aligned, or nullptr.
  virtual void* take_metadata(std::size_t size) = 0;
  virtual void give_metadata(void* p, std::size_t size) = 0;
  /// The pool calls this after `count` slabs joined its free runs. The source may remove free runs
  /// from the pool and may call no other function of the pool.
  virtual void slabs_freed(slab_number /*count*/) {}

 protected:
  ~pool_source() = default;
};

/// chunk  | next chunk, rest of the line | node | node | ...     1 KiB, 15 nodes
/// Complexity of discard: one call per chunk.
class node_pool {
 public:
  explicit node_pool(pool_source& source) : source_(&source) {}
  node_pool(const node_pool&) = delete;
  node_pool& operator=(const node_pool&) = delete;
  ~node_pool() { discard(); }

  void* take_node() {
    if (free_ == nullptr && !add_chunk()) return nullptr;
    link* node = free_;
    free_ = node->next;
    return node;
  }
  void give_node(void* p) { free_ = new (p) link{free_}; }

  /// Returns the memory of all nodes. Tries that use the nodes must call forget().
  void discard() {
    free_ = nullptr;
    while (chunks_ != nullptr) {
      link* next = chunks_->next;
      source_->give_metadata(chunks_, chunk_size);
      chunks_ = next;
    }
  }

 private:
  struct link {
    link* next;
  };
  static constexpr std::size_t chunk_size = 1024;

  bool add_chunk() {
    auto* chunk = static_cast<std::byte*>(source_->take_metadata(chunk_size));
    if (chunk == nullptr) return false;
    chunks_ = new (chunk) link{chunks_};
    for (std::size_t at = chunk_size - 64; at > 0; at -= 64) give_node(chunk + at);
    return true;
  }

  pool_source* source_;
  link* free_ = nullptr;
  link* chunks_ = nullptr;
};
static_assert(trie_node_source<node_pool>);

}  // namespace quarry
