// SPDX-License-Identifier: Apache-2.0
#include "bench/record_file.hpp"

#include "common/parse.hpp"

#include <fmt/format.h>

namespace quarry::tool {

record_file::record_file(const std::string& name) {
  if (name.empty()) return;
  file_.open(name, std::ios::app);
  if (!file_) throw input_error(fmt::format("--out: {} cannot be written", name));
}

void record_file::add(const nlohmann::ordered_json& line) {
  if (file_.is_open()) file_ << line << '\n' << std::flush;  // a crash loses no record
}

nlohmann::ordered_json environment_fields(const bench_environment& where) {
  return {{"backend", where.backend}, {"device", where.device},     {"driver", where.driver},
          {"cuda", where.cuda},       {"compiler", where.compiler}, {"commit", where.commit},
          {"date", where.date}};
}

}  // namespace quarry::tool
