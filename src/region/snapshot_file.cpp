// SPDX-License-Identifier: Apache-2.0
#include <quarry/region/detail/snapshot_file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace quarry {
namespace {

[[noreturn]] void fail_to_write(const std::string& path, int reason) {
  throw snapshot_error(path + ": cannot be written: " + std::strerror(reason));
}

/// The file that a path names, through symbolic links. Throws if it exists and is no regular file.
std::string replaceable(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path file = std::filesystem::weakly_canonical(path, failed);
  if (failed) fail_to_write(path, failed.value());
  const std::filesystem::file_status status = std::filesystem::status(file, failed);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw snapshot_error(path + ": cannot be written: it exists and is not a regular file");
  return file.string();
}

/// Writes the entries of a folder to the disk, so that a renamed file survives a power failure.
void sync_folder(const std::string& file) {
  const std::string folder = std::filesystem::path(file).parent_path().string();
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) return;  // the folder may be writable and not readable
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

snapshot_stream::snapshot_stream(const std::string& path)
    : path_(path), file_(std::fopen(path.c_str(), "rb")) {
  if (file_ == nullptr) throw snapshot_error(path + ": cannot be opened: " + std::strerror(errno));
}

snapshot_stream::snapshot_stream(const std::string& path, int descriptor)
    : path_(path), file_(::fdopen(descriptor, "wb")) {
  if (file_ != nullptr) return;
  const int reason = errno;
  ::close(descriptor);
  fail_to_write(path, reason);
}

snapshot_stream::~snapshot_stream() {
  if (file_ != nullptr) std::fclose(file_);
}

void snapshot_stream::write(const void* data, std::size_t size) {
  sum_.add(data, size);
  bytes_ += size;
  if (size != 0 && std::fwrite(data, size, 1, file_) != 1) fail_to_write(path_, errno);
}

void snapshot_stream::read(void* data, std::size_t size) {
  if (size != 0 && std::fread(data, size, 1, file_) != 1)
    throw snapshot_error(path_ + ": the file is shorter than its header says");
  sum_.add(data, size);
  bytes_ += size;
}

void snapshot_stream::seek(long offset) {
  if (std::fseek(file_, offset, SEEK_SET) != 0)
    throw snapshot_error(path_ + ": " + std::strerror(errno));
  sum_ = {};
  bytes_ = 0;
}

bool snapshot_stream::at_end() { return std::fgetc(file_) == EOF; }

void snapshot_stream::close() {
  std::FILE* file = file_;
  file_ = nullptr;
  const bool written = std::fflush(file) == 0 && ::fsync(::fileno(file)) == 0;
  const int reason = errno;
  if (std::fclose(file) != 0) fail_to_write(path_, errno);
  if (!written) fail_to_write(path_, reason);
}

// ---- replacing a file ---------------------------------------------------------------------------

/// O_EXCL makes the temporary file the property of one call, also on a file system that several
/// hosts share. The new version has the permissions of the old one.
snapshot_replacement::snapshot_replacement(const std::string& path) : path_(replaceable(path)) {
  const std::string prefix = path_ + "." + std::to_string(::getpid()) + ".";
  int descriptor = -1;
  for (unsigned i = 0; descriptor < 0; ++i) {
    temporary_ = prefix + std::to_string(i);
    descriptor = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno != EEXIST) fail_to_write(path, errno);
  }
  struct ::stat old = {};
  if (::stat(path_.c_str(), &old) == 0) ::fchmod(descriptor, old.st_mode & 07777);
  try {
    stream_.emplace(path, descriptor);
  } catch (...) {
    ::unlink(temporary_.c_str());
    throw;
  }
}

snapshot_replacement::~snapshot_replacement() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void snapshot_replacement::commit() {
  stream_->close();
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail_to_write(path_, errno);
  temporary_.clear();
  sync_folder(path_);
}

}  // namespace quarry
