// SPDX-License-Identifier: Apache-2.0
#pragma once
/// record_file: the file that --out names. Each record is one line of JSON, appended and flushed at
/// once, so that a crash loses no record. A record that cannot be written ends the command with an
/// error. docs/bench.md describes the records.

#include "bench/request.hpp"
#include "common/output.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace quarry::tool {

class record_file {
 public:
  /// With an empty name, records are discarded. Throws input_error if the file cannot be written.
  explicit record_file(const std::string& name);

  /// Throws error if the record cannot be written.
  void add(const nlohmann::ordered_json& line);

 private:
  std::optional<output_file> file_;
};

/// Returns the keys of a record that describe the environment.
nlohmann::ordered_json environment_fields(const bench_environment& where);

}  // namespace quarry::tool
