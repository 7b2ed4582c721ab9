// SPDX-License-Identifier: Apache-2.0
#include <quarry/region/detail/snapshot_file.hpp>

#include <cerrno>

namespace quarry {

snapshot_stream::snapshot_stream(const std::string& path, const char* mode)
    : path_(path), file_(std::fopen(path.c_str(), mode)) {
  if (file_ == nullptr) throw snapshot_error(path + ": cannot be opened: " + std::strerror(errno));
}

snapshot_stream::~snapshot_stream() {
  if (file_ != nullptr) std::fclose(file_);
}

void snapshot_stream::write(const void* data, std::size_t size) {
  sum_.add(data, size);
  bytes_ += size;
  if (size != 0 && std::fwrite(data, size, 1, file_) != 1)
    throw snapshot_error(path_ + ": cannot be written: " + std::strerror(errno));
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
  if (std::fclose(file) != 0)
    throw snapshot_error(path_ + ": cannot be written: " + std::strerror(errno));
}

}  // namespace quarry
