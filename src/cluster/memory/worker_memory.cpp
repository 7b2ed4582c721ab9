// SPDX-License-Identifier: Apache-2.0
#include "cluster/memory/worker_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace quarry::cluster::detail {

namespace {

/// Allocates the pages of a range at once, if the kernel can: one page fault for each costs more.
void populate([[maybe_unused]] packed_range range) {
#if defined(MADV_POPULATE_WRITE)
  if (range.size >= 8 * worker_memory::system_page)
    ::madvise(range.address, range.size, MADV_POPULATE_WRITE);
#endif
}

}  // namespace

worker_memory::worker_memory(const address_space& space, node_id self, bool shared, bool protect)
    : space_(&space), self_(self), protect_(protect), mappings_({self, false}) {
  // A system that accounts for all memory it promises (vm.overcommit_memory = 2) permits files
  // only.
  if (shared ? use_file() || use_anonymous() : use_anonymous() || use_file()) return;
  fail("provide memory for");
}

worker_memory::~worker_memory() {
  for (const auto& [owner, fd] : files_) ::close(fd);
}

// ---- files --------------------------------------------------------------------------------------

bool worker_memory::use_anonymous() const {
  exclude_from_core_dumps(0, space_->size());
  ::madvise(space_->base(), space_->size(), MADV_HUGEPAGE);
  return ::mprotect(space_->base(), space_->size(), PROT_READ | PROT_WRITE) == 0;
}

bool worker_memory::use_file() {
  rlimit limit = {};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  if (limit.rlim_cur < space_->size()) return false;  // ftruncate would end the program.
  const int fd = ::memfd_create("quarry", MFD_CLOEXEC);
  if (fd < 0) return false;
  files_[self_] = fd;
  if (::ftruncate(fd, static_cast<off_t>(space_->size())) == 0 &&
      try_map(0, space_->size(), {self_, false})) {
    ::madvise(space_->base(), space_->size(), MADV_HUGEPAGE);  // Few systems support this here.
    return true;
  }
  files_.clear();
  ::close(fd);
  return false;
}

worker_memory::file_id worker_memory::own_file() const {
  file_id f;
  f.owner = self_;
  if (!is_shared()) return f;
  struct stat about = {};
  const int fd = files_.at(self_);
  ::fstat(fd, &about);
  f.process = static_cast<std::uint64_t>(::getpid());
  f.descriptor = static_cast<std::uint64_t>(fd);
  f.device = about.st_dev;
  f.inode = about.st_ino;
  return f;
}

bool worker_memory::open_files(std::span<const file_id> files) {
  bool all = is_shared();
  for (const file_id& f : files)
    if (f.owner != self_) all = all && open_file(f);
  if (!all) close_other_files();
  return all;
}

bool worker_memory::open_file(const file_id& f) {
  const std::string path =
      "/proc/" + std::to_string(f.process) + "/fd/" + std::to_string(f.descriptor);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat about = {};
  if (fd < 0 || ::fstat(fd, &about) != 0 || about.st_dev != f.device || about.st_ino != f.inode) {
    if (fd >= 0) ::close(fd);
    return false;
  }
  files_[static_cast<node_id>(f.owner)] = fd;
  return true;
}

void worker_memory::close_other_files() {
  for (auto it = files_.begin(); it != files_.end();)
    if (it->first == self_) {
      ++it;
    } else {
      ::close(it->second);
      it = files_.erase(it);
    }
}

// ---- exchange -----------------------------------------------------------------------------------

std::optional<std::vector<file_range>> worker_memory::export_ranges(
    std::span<const packed_range> ranges) const {
  if (!is_shared() || !are_whole_pages(ranges)) return {};
  std::vector<file_range> files = files_of(ranges);
  if (mappings() + 2 * files.size() > max_mappings) return {};
  return files;
}

std::optional<std::vector<file_range>> worker_memory::map_shared(
    std::span<const file_range> files, std::span<const packed_range> ranges) {
  if (!match(files, ranges)) return {};
  for (const packed_range& r : ranges) discard(r);
  std::vector<file_range> own = files_of(ranges);
  map_all(files, false);
  return own;
}

void worker_memory::map_exchanged(std::span<const file_range> files,
                                  std::span<const packed_range> ranges) {
  map_all(files, protect_);
  if (protect_) set_protected(ranges, true);
}

void worker_memory::give_up(std::span<const packed_range> ranges) {
  for (const packed_range& r : ranges) discard(r);
  if (!protect_) return;
  for_each(ranges, [&](std::uint64_t begin, std::uint64_t end, mapping) {
    set_rights(begin, end, PROT_NONE);
  });
  set_protected(ranges, true);
}

bool worker_memory::copy_shared(std::span<const file_range> files,
                                std::span<const packed_range> ranges) {
  if (!match(files, ranges)) return false;
  for (const packed_range& r : ranges) enable_access(r);
  for (const file_range& f : files) {
    std::byte* to = space_->base() + f.offset;
    populate({to, f.size});
    for (std::uint64_t done = 0; done < f.size;) {
      const ssize_t got =
          ::pread(files_.at(f.file), to + done, f.size - done, static_cast<off_t>(f.offset + done));
      if (got <= 0) return false;
      done += static_cast<std::uint64_t>(got);
    }
  }
  return true;
}

std::vector<file_range> worker_memory::files_of(std::span<const packed_range> ranges) const {
  std::vector<file_range> files;
  for_each(ranges, [&](std::uint64_t begin, std::uint64_t end, mapping m) {
    files.push_back({m.file, begin, end - begin});
  });
  return files;
}

bool worker_memory::are_whole_pages(std::span<const packed_range> ranges) const {
  return std::ranges::all_of(ranges, [this](const packed_range& r) {
    return space_->contains(r.address, r.size) && offset(r.address) % system_page == 0 &&
           r.size % system_page == 0;
  });
}

/// Whether the file ranges are of open files and cover the address ranges in order.
bool worker_memory::match(std::span<const file_range> files,
                          std::span<const packed_range> ranges) const {
  if (!is_shared() || !are_whole_pages(ranges) || mappings() + 2 * files.size() > max_mappings)
    return false;
  std::size_t i = 0;
  for (const packed_range& r : ranges)
    for (std::uint64_t next = offset(r.address), end = next + r.size; next != end; ++i) {
      if (i == files.size() || !files_.contains(files[i].file) || files[i].offset != next ||
          files[i].size == 0 || files[i].size > end - next)
        return false;
      next += files[i].size;
    }
  return i == files.size();
}

// ---- mappings -----------------------------------------------------------------------------------

void worker_memory::map_all(std::span<const file_range> files, bool protect) {
  for (const file_range& f : files)
    if (!try_map(f.offset, f.offset + f.size, {f.file, protect})) fail("map");
}

bool worker_memory::try_map(std::uint64_t begin, std::uint64_t end, mapping m) {
  void* got = ::mmap(space_->base() + begin, end - begin,
                     m.is_protected ? PROT_NONE : PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                     files_.at(m.file), static_cast<off_t>(begin));
  if (got == MAP_FAILED) return false;
  exclude_from_core_dumps(begin, end);
  record(begin, end, m);
  return true;
}

/// Otherwise the kernel would inspect every page of the address space after a crash, for hours.
void worker_memory::exclude_from_core_dumps(std::uint64_t begin, std::uint64_t end) const {
  ::madvise(space_->base() + begin, end - begin, MADV_DONTDUMP);
}

void worker_memory::record(std::uint64_t begin, std::uint64_t end, mapping m) {
  mappings_.for_each(begin, end, [&](std::uint64_t b, std::uint64_t e, mapping old) {
    if (old.is_protected) protected_bytes_ -= e - b;
  });
  if (m.is_protected) protected_bytes_ += end - begin;
  mappings_.assign(begin, end, m);
}

void worker_memory::fail(const char* what) const {
  throw out_of_memory(std::string("the system cannot ") + what + " the cluster's " +
                      to_text(bytes(space_->size())) + " of addresses: " + std::strerror(errno));
}

// ---- access -------------------------------------------------------------------------------------

void worker_memory::set_rights(std::uint64_t begin, std::uint64_t end, int rights) const {
  if (::mprotect(space_->base() + begin, end - begin, rights) != 0) fail("protect");
}

void worker_memory::set_protected(std::span<const packed_range> ranges, bool is_protected) {
  std::vector<file_range> found = files_of(ranges);
  for (const file_range& f : found) record(f.offset, f.offset + f.size, {f.file, is_protected});
}

void worker_memory::enable_access(packed_range range) {
  if (protected_bytes_ == 0) return;
  const packed_range r = pages_around(range);
  const std::span one(&r, 1);
  for_each(one, [&](std::uint64_t begin, std::uint64_t end, mapping m) {
    if (m.is_protected) set_rights(begin, end, PROT_READ | PROT_WRITE);
  });
  set_protected(one, false);
}

bool worker_memory::is_protected(packed_range range) const {
  if (protected_bytes_ == 0) return false;
  bool found = false;
  const packed_range r = pages_around(range);
  for_each(std::span(&r, 1),
           [&](std::uint64_t, std::uint64_t, mapping m) { found |= m.is_protected; });
  return found;
}

/// Uses madvise, which MPI intercepts: MPI must release pages that it pinned for a network adapter.
void worker_memory::discard(packed_range range) {
  const packed_range r = pages_inside(range);
  if (r.size == 0) return;
  if (!is_shared()) {
    ::madvise(r.address, r.size, MADV_DONTNEED);
    return;
  }
  for_each(std::span(&r, 1), [&](std::uint64_t begin, std::uint64_t end, mapping m) {
    // Protected pages are empty.
    if (!m.is_protected) ::madvise(space_->base() + begin, end - begin, MADV_REMOVE);
  });
}

packed_range worker_memory::pages_around(packed_range r) const {
  const std::uint64_t begin = offset(r.address) / system_page * system_page;
  const std::uint64_t end =
      (offset(r.address) + r.size + system_page - 1) / system_page * system_page;
  return {space_->base() + begin, end - begin};
}

packed_range worker_memory::pages_inside(packed_range r) const {
  const std::uint64_t begin = (offset(r.address) + system_page - 1) / system_page * system_page;
  const std::uint64_t end = (offset(r.address) + r.size) / system_page * system_page;
  return {space_->base() + begin, end > begin ? end - begin : 0};
}

}  // namespace quarry::cluster::detail
