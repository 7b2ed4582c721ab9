// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The file that --out names: lines of JSON, appended, each complete once it is there. docs/bench.md tells what
/// they hold.

#include "bench/bench.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <string>

namespace quarry::tool {

class record_file {
 public:
  /// An empty name: nothing is kept. Throws input_error where the file can not be written.
  explicit record_file(const std::string& name);

  void add(const nlohmann::ordered_json& line);

 private:
  std::ofstream file_;
};

/// The keys by which a line says where it was measured.
nlohmann::ordered_json environment_fields(const bench_environment& where);

}  // namespace quarry::tool
