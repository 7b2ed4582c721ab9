// SPDX-License-Identifier: Apache-2.0
#include "bench/record_file.hpp"

namespace quarry::tool {

record_file::record_file(const std::string& name) {
  if (!name.empty()) file_.emplace(name, output_file::mode::append);
}

void record_file::add(const nlohmann::ordered_json& line) {
  if (file_) file_->write(line.dump() + '\n');
}

nlohmann::ordered_json environment_fields(const bench_environment& where) {
  return {{"backend", where.backend}, {"device", where.device},     {"driver", where.driver},
          {"cuda", where.cuda},       {"compiler", where.compiler}, {"commit", where.commit},
          {"date", where.date}};
}

}  // namespace quarry::tool
