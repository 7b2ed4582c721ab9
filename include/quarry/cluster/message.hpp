// SPDX-License-Identifier: Apache-2.0
#pragma once
/// message: all that nodes tell each other, but for the bytes of objects.
///
/// A fixed head and a list of words. `to` is where it ends, `from` who sent it first; on the way
/// neighbours pass it on unchanged. The answer to a request has its ticket and goes to its `from`.

#include <quarry/cluster/shape.hpp>
#include <quarry/region/status.hpp>

#include <cstdint>
#include <vector>

namespace quarry::cluster {

enum class verb : std::uint8_t {
  // Requests of workers, and of schedulers in their name. In brackets: a, b, c, then words.
  create,        // [parent, level hint] -> [id]
  free_region,   // [id, 1: asked by the owner of its parent] ->
  alloc,         // [region, size, alignment] -> [address]
  alloc_bulk,    // [region, size, count] -> [..., addresses]
  lease,         // [region, size, most objects] -> [objects; (slab address, units, mask) ...]
  free_objects,  // [addresses ...] -> [how many were freed; (address, status) of the others]
  resize,        // [address, size, region] -> [1: done, old size]
  size_of,       // [address] -> [bytes]
  pack,          // [region] -> [live bytes; (address, size) ..., (id, 0) of each region ...]
  describe,      // [region] -> [objects, live bytes, held bytes]
  barrier,       // [] -> [], when every worker asked
  goodbye,       // [] -> [regions, objects, bytes left], when every worker asked

  answer,  // to any of the above

  // Between schedulers.
  adopt,         // [parent, level hint] down: make a region for a parent elsewhere -> [id]
  disown,        // [child, parent]: the region is gone; no answer
  want_pages,    // [least in a row, wanted, window] up -> give_pages
  give_pages,    // [(first, count) ...] down, in answer to want_pages, perhaps none
  return_pages,  // [(first, count) ...] up; no answer
  recall_pages,  // [] down: return what you can -> return_pages, then answer
  load,          // [regions in my subtree] up; no answer
  report,        // [allocations, calls, messages of a worker since its last] to the top; no answer

  // Between a scheduler and a worker that holds leases.
  recall_leases,   // [regions ...]: give up what you hold in these -> answer
  freed_leased,    // [addresses ...]: others freed these objects; their slots are lost -> answer
  return_leases,   // [region; (slab address, mask) ...]: free slots that go back; no answer
  release_leases,  // the same: objects that are not on loan any more, and live on; no answer

  // Between workers.
  offer,     // a transfer: see cluster/transfer.hpp
  accept,    // [status]: send the bytes, or do not
  hand_over  // see cluster/transfer.hpp
};

namespace detail {
inline void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }  // NOLINT
inline std::uint64_t word(const void* p) { return reinterpret_cast<std::uint64_t>(p); }
}  // namespace detail

struct message {
  verb what = verb::answer;
  region_status status = region_status::ok;
  std::uint8_t hops = 0;  // of a request on the way to the owner of an address
  node from = no_node;
  node to = no_node;
  std::uint64_t ticket = 0;
  std::uint64_t a = 0, b = 0, c = 0;
  std::vector<std::uint64_t> words;

  message answered(region_status s = region_status::ok) const {
    message m;
    m.what = verb::answer;
    m.status = s;
    m.from = to;
    m.to = from;
    m.ticket = ticket;
    return m;
  }
};

}  // namespace quarry::cluster
