// SPDX-License-Identifier: Apache-2.0
#pragma once
/// room: a worker's memory over the cluster's addresses, and how it changes hands without a copy.
///
/// Every worker of a host has a file in memory (memfd) as long as the address space, mapped so that
/// an address lies at the same offset in all of them; pages come when they are touched. Handing a
/// range from A to B exchanges what the two map there:
///
///             before                 after
///   A         | A  A  A  A |         | A  B  B  A |        B reads what A wrote;
///   B         | B  B  B  B |         | B  A  A  B |        A has B's pages, emptied
///
/// Invariant: at every address the workers of a host map their files as a permutation: no page is
/// seen by two, none is lost, and whatever a worker has can be handed on.
/// A plain send between workers of a host reads from the sender's file (copy).
/// A hand-over takes three steps, so that the receiver may refuse: the giver names its pieces (lend), the receiver
/// maps them and names its own in return (adopt), the giver maps those (part).
///
/// fence: what was handed over can not be touched by the giver until it is given there again
/// (ready): an access after the hand-over ends the program where it happens. Pieces cost the kernel
/// a mapping each, joined where neighbours belong together; beyond most_pieces a hand-over is
/// refused and copies instead. Files are opened through /proc, which any process may do to those of
/// its own user on its host. Where that fails, or for a worker alone on its host, memory is
/// anonymous and hand-overs copy.

#include <quarry/cluster/address_space.hpp>
#include <quarry/cluster/piece_map.hpp>
#include <quarry/cluster/shape.hpp>
#include <quarry/region/packing.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace quarry::cluster {

class room {
 public:
  static constexpr std::size_t system_page = 4096;
  static constexpr std::size_t most_pieces = 20'000;  // Linux allows 65,530 mappings by default

  /// How others find a room's file.
  struct door {
    std::uint64_t owner = no_node;
    std::uint64_t process = 0;
    std::uint64_t descriptor = 0;
    std::uint64_t device = 0;  // and inode: which file it must be
    std::uint64_t inode = 0;
  };

  /// Makes the addresses usable. shared: in a file, where the system has such files; fence: see
  /// above. Throws out_of_memory.
  room(const address_space& space, node self, bool shared, bool fence = false)
      : space_(&space), self_(self), fence_(fence), pieces_({self, false}) {
    // Where the system counts memory that it promised (vm.overcommit_memory = 2), only a file will do.
    if (shared ? use_file() || use_anonymous() : use_anonymous() || use_file()) return;
    refuse("memory for");
  }
  room(const room&) = delete;
  room& operator=(const room&) = delete;
  ~room() {
    for (const auto& [owner, fd] : files_) ::close(fd);
  }

  bool is_shared() const { return !files_.empty(); }
  door own_door() const {
    door d;
    d.owner = self_;
    if (!is_shared()) return d;
    struct stat about = {};
    const int fd = files_.at(self_);
    ::fstat(fd, &about);
    d.process = static_cast<std::uint64_t>(::getpid());
    d.descriptor = static_cast<std::uint64_t>(fd);
    d.device = about.st_dev;
    d.inode = about.st_ino;
    return d;
  }

  /// Opens the rooms of others, all or none. Whether all could be.
  bool open(std::span<const door> doors) {
    bool all = is_shared();
    for (const door& d : doors)
      if (d.owner != self_) all = all && open(d);
    if (!all) close_others();
    return all;
  }
  void close_others() {
    for (auto it = files_.begin(); it != files_.end();)
      if (it->first == self_) {
        ++it;
      } else {
        ::close(it->second);
        it = files_.erase(it);
      }
  }
  bool knows(node other) const { return other != self_ && files_.contains(other); }

  // ---- handing over; ranges of whole pages ----
  /// The giver's pieces of the ranges, in words. Empty: they can not be shared.
  std::vector<std::uint64_t> lend(std::span<const packed_range> ranges) const {
    if (!is_shared() || !whole(ranges)) return {};
    std::vector<std::uint64_t> words = name(ranges);
    if (pieces() + 2 * words[0] > most_pieces) return {};
    return words;
  }

  /// The receiver: maps what the words name and empties what it had there, which it answers.
  /// Empty: it can not, and nothing has changed.
  std::vector<std::uint64_t> adopt(std::span<const std::uint64_t> words,
                                   std::span<const packed_range> ranges) {
    if (!fits(words, ranges)) return {};
    for (const packed_range& r : ranges) discard(r);
    std::vector<std::uint64_t> mine = name(ranges);
    map_all(words, false);
    return mine;
  }

  /// The giver, when the receiver has the ranges: maps what it answered. Without words the bytes
  /// were copied, and the giver's are not needed any more.
  void part(std::span<const std::uint64_t> words, std::span<const packed_range> ranges) {
    if (words.empty()) {
      for (const packed_range& r : ranges) discard(r);
      if (fence_)
        for_each(ranges, [&](std::uint64_t begin, std::uint64_t end, piece) {
          protect(begin, end, PROT_NONE);
        });
    } else {
      map_all(words, fence_);
    }
    if (fence_) mark(ranges, true);
  }

  /// Reads what the words name from the giver's files into the ranges: one copy, where a transfer
  /// through MPI has two. False: it can not; the ranges hold anything.
  bool copy(std::span<const std::uint64_t> words, std::span<const packed_range> ranges) {
    if (!fits(words, ranges)) return false;
    for (const packed_range& r : ranges) ready(r);
    for (std::size_t at = 1; at < words.size(); at += 3) {
      std::byte* to = space_->base() + words[at + 1];
      populate({to, words[at + 2]});
      for (std::uint64_t done = 0; done < words[at + 2];) {
        const ssize_t got = ::pread(files_.at(static_cast<node>(words[at])), to + done,
                                    words[at + 2] - done, static_cast<off_t>(words[at + 1] + done));
        if (got <= 0) return false;
        done += static_cast<std::uint64_t>(got);
      }
    }
    return true;
  }

  /// The range is this worker's again: it may be touched.
  void ready(packed_range range) {
    if (fences_ == 0) return;
    const packed_range r = around(range);
    const std::span one(&r, 1);
    for_each(one, [&](std::uint64_t begin, std::uint64_t end, piece p) {
      if (p.fenced) protect(begin, end, PROT_READ | PROT_WRITE);
    });
    mark(one, false);
  }
  bool is_fenced(packed_range range) const {
    bool fenced = false;
    if (fences_ == 0) return false;
    const packed_range r = around(range);
    for_each(std::span(&r, 1), [&](std::uint64_t, std::uint64_t, piece p) { fenced |= p.fenced; });
    return fenced;
  }

  /// Memory for whole pages, all at once where the kernel can: a fault for each costs more.
  static void populate([[maybe_unused]] packed_range range) {
#if defined(MADV_POPULATE_WRITE)
    if (range.size >= 8 * system_page) ::madvise(range.address, range.size, MADV_POPULATE_WRITE);
#endif
  }

  /// Gives the memory of the whole pages of the range back; they read as zeros. By madvise, which
  /// MPI watches: what it has pinned for a network card must not stay behind.
  void discard(packed_range range) {
    const packed_range r = inside(range);
    if (r.size == 0) return;
    if (!is_shared()) {
      ::madvise(r.address, r.size, MADV_DONTNEED);
      return;
    }
    for_each(std::span(&r, 1), [&](std::uint64_t begin, std::uint64_t end, piece p) {
      if (!p.fenced) ::madvise(space_->base() + begin, end - begin, MADV_REMOVE);  // else: empty
    });
  }

  std::size_t pieces() const { return pieces_.pieces(); }

 private:
  struct piece {
    node file;
    bool fenced;
    friend bool operator==(piece, piece) = default;
  };

  bool use_anonymous() const {
    leave_out_of_dumps(0, space_->size());
    ::madvise(space_->base(), space_->size(), MADV_HUGEPAGE);
    return ::mprotect(space_->base(), space_->size(), PROT_READ | PROT_WRITE) == 0;
  }
  bool use_file() {
    rlimit most = {};
    ::getrlimit(RLIMIT_FSIZE, &most);
    if (most.rlim_cur < space_->size()) return false;  // ftruncate would end the program
    const int fd = ::memfd_create("quarry", MFD_CLOEXEC);
    if (fd < 0) return false;
    files_[self_] = fd;
    if (::ftruncate(fd, static_cast<off_t>(space_->size())) == 0 &&
        try_map(0, space_->size(), {self_, false})) {
      ::madvise(space_->base(), space_->size(), MADV_HUGEPAGE);  // few systems allow it here
      return true;
    }
    files_.clear();
    ::close(fd);
    return false;
  }

  bool open(const door& d) {
    const std::string path =
        "/proc/" + std::to_string(d.process) + "/fd/" + std::to_string(d.descriptor);
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    struct stat about = {};
    if (fd < 0 || ::fstat(fd, &about) != 0 || about.st_dev != d.device || about.st_ino != d.inode) {
      if (fd >= 0) ::close(fd);
      return false;
    }
    files_[static_cast<node>(d.owner)] = fd;
    return true;
  }

  /// How many pieces; then of each the file, the first byte, the size.
  std::vector<std::uint64_t> name(std::span<const packed_range> ranges) const {
    std::vector<std::uint64_t> words{0};
    for_each(ranges, [&](std::uint64_t begin, std::uint64_t end, piece p) {
      ++words[0];
      words.insert(words.end(), {p.file, begin, end - begin});
    });
    return words;
  }
  bool whole(std::span<const packed_range> ranges) const {
    for (const packed_range& r : ranges)
      if (!space_->contains(r.address, r.size) || offset(r.address) % system_page != 0 ||
          r.size % system_page != 0)
        return false;
    return true;
  }
  /// Whether the words name pieces of files that are open, which cover the ranges one by one.
  bool fits(std::span<const std::uint64_t> words, std::span<const packed_range> ranges) const {
    if (!is_shared() || words.empty() || !whole(ranges) || words.size() != 1 + 3 * words[0] ||
        pieces() + 2 * words[0] > most_pieces)
      return false;
    std::size_t at = 1;
    for (const packed_range& r : ranges)
      for (std::uint64_t next = offset(r.address), end = next + r.size; next != end; at += 3) {
        if (at == words.size() || !files_.contains(static_cast<node>(words[at])) ||
            words[at + 1] != next || words[at + 2] == 0 || words[at + 2] > end - next)
          return false;
        next += words[at + 2];
      }
    return at == words.size();
  }

  void map_all(std::span<const std::uint64_t> words, bool fenced) {
    for (std::size_t at = 1; at < words.size(); at += 3)
      map(words[at + 1], words[at + 1] + words[at + 2], {static_cast<node>(words[at]), fenced});
  }
  void map(std::uint64_t begin, std::uint64_t end, piece p) {
    if (!try_map(begin, end, p)) refuse("to map");
  }
  bool try_map(std::uint64_t begin, std::uint64_t end, piece p) {
    void* got =
        ::mmap(space_->base() + begin, end - begin, p.fenced ? PROT_NONE : PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_FIXED, files_.at(p.file), static_cast<off_t>(begin));
    if (got == MAP_FAILED) return false;
    leave_out_of_dumps(begin, end);
    set(begin, end, p);
    return true;
  }
  /// A crash would be followed by hours in which the kernel looks at every page of the addresses.
  void leave_out_of_dumps(std::uint64_t begin, std::uint64_t end) const {
    ::madvise(space_->base() + begin, end - begin, MADV_DONTDUMP);
  }
  void protect(std::uint64_t begin, std::uint64_t end, int rights) const {
    if (::mprotect(space_->base() + begin, end - begin, rights) != 0) refuse("to protect");
  }
  [[noreturn]] void refuse(const char* what) const {
    throw out_of_memory(std::string("the system refuses ") + what + " the cluster's " +
                        to_text(bytes(space_->size())) + " of addresses: " + std::strerror(errno));
  }

  void mark(std::span<const packed_range> ranges, bool fenced) {
    std::vector<std::pair<packed_range, node>> found;
    for_each(ranges, [&](std::uint64_t begin, std::uint64_t end, piece p) {
      found.push_back({{space_->base() + begin, end - begin}, p.file});
    });
    for (const auto& [r, file] : found)
      set(offset(r.address), offset(r.address) + r.size, {file, fenced});
  }
  void set(std::uint64_t begin, std::uint64_t end, piece p) {
    pieces_.for_each(begin, end, [&](std::uint64_t b, std::uint64_t e, piece old) {
      if (old.fenced) fences_ -= e - b;
    });
    if (p.fenced) fences_ += end - begin;
    pieces_.assign(begin, end, p);
  }
  template <class F>
  void for_each(std::span<const packed_range> ranges, F f) const {
    for (const packed_range& r : ranges)
      pieces_.for_each(offset(r.address), offset(r.address) + r.size, f);
  }

  std::uint64_t offset(const std::byte* p) const {
    return static_cast<std::uint64_t>(p - space_->base());
  }
  packed_range around(packed_range r) const {
    const std::uint64_t begin = offset(r.address) / system_page * system_page;
    const std::uint64_t end =
        (offset(r.address) + r.size + system_page - 1) / system_page * system_page;
    return {space_->base() + begin, end - begin};
  }
  packed_range inside(packed_range r) const {
    const std::uint64_t begin = (offset(r.address) + system_page - 1) / system_page * system_page;
    const std::uint64_t end = (offset(r.address) + r.size) / system_page * system_page;
    return {space_->base() + begin, end > begin ? end - begin : 0};
  }

  const address_space* space_;
  node self_;
  bool fence_;
  std::unordered_map<node, int> files_;  // of the host's workers, this one's included
  piece_map<piece> pieces_;              // by offset
  std::uint64_t fences_ = 0;             // bytes that may not be touched
};

}  // namespace quarry::cluster
