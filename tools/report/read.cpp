// SPDX-License-Identifier: Apache-2.0
/// Reads records from files: one JSON object per line, plain or compressed with gzip. Every error
/// names the file and the line.

#include "common/parse.hpp"
#include "common/parse_json.hpp"
#include "report/report.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <filesystem>
#include <memory>
#include <sstream>

namespace quarry::tool::report {
namespace {

[[noreturn]] void reject(const record& r, std::string_view reason) {
  throw input_error(fmt::format("{}: {}", r.origin, reason));
}

/// The fields that later stages read as strings must be strings, null or absent.
void check_string_fields(const record& r) {
  for (const char* key :
       {"id", "experiment", "title", "source", "form", "note", "allocator", "series", "backend",
        "device", "driver", "cuda", "compiler", "commit", "date", "outcome", "command", "svg"}) {
    const auto at = r.line.find(key);
    if (at != r.line.end() && !at->is_string() && !at->is_null())
      reject(r, fmt::format("\"{}\" is not a string", key));
  }
}

void require_field(const record& r, const char* kind, const char* key) {
  const auto at = r.line.find(key);
  if (at == r.line.end() || !at->is_string() || at->get_ref<const std::string&>().empty())
    reject(r, fmt::format("a record of kind \"{}\" needs \"{}\"", kind, key));
}

/// Appends the record to the list of its kind. Kinds that this program does not know are ignored,
/// so that it can read files of later versions.
void add_record(record&& r, records& all) {
  check_string_fields(r);
  if (!r.line.contains("kind")) reject(r, "the record has no \"kind\"");
  if (!r.line["kind"].is_string()) reject(r, "\"kind\" is not a string");
  const auto kind = r.line["kind"].get<std::string>();
  if (kind == "experiment") {
    require_field(r, "experiment", "id");
    if (const auto y = r.line.find("y"); y != r.line.end()) {
      if (!y->is_array()) reject(r, "\"y\" is not a list of measures");
      for (const json& measure : *y)
        if (!measure.is_object() || !measure.contains("field") || !measure["field"].is_string())
          reject(r, "a measure in \"y\" has no \"field\"");
    }
    all.experiments.push_back(std::move(r));
  } else if (kind == "point") {
    require_field(r, "point", "experiment");
    all.points.push_back(std::move(r));
  } else if (kind == "map") {
    require_field(r, "map", "svg");
    all.maps.push_back(std::move(r));
  } else if (kind == "claim") {
    require_field(r, "claim", "claim");
    all.claims.push_back(std::move(r));
  }
}

/// Returns the content of a file. zlib passes files that are not compressed through unchanged.
std::string content_of(const std::string& name) {
  if (std::filesystem::is_directory(name)) throw input_error("cannot read " + name);
  const std::unique_ptr<gzFile_s, decltype(&gzclose)> file(gzopen(name.c_str(), "rb"), &gzclose);
  if (!file) throw input_error("cannot read " + name);
  std::string content, buffer(std::size_t{1} << 16, '\0');
  for (;;) {
    const int count = gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    if (count > 0) content.append(buffer, 0, static_cast<std::size_t>(count));
    if (count == static_cast<int>(buffer.size())) continue;
    int status = Z_OK;
    const char* reason = gzerror(file.get(), &status);
    if (count < 0 || (status != Z_OK && status != Z_STREAM_END))
      throw input_error(fmt::format("cannot read {}: {}", name, reason));
    return content;
  }
}

}  // namespace

records read(const std::vector<std::string>& files) {
  records all;
  for (const std::string& name : files) {
    std::istringstream in(content_of(name));
    std::string text;
    for (std::size_t number = 1; std::getline(in, text); ++number) {
      if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
      record r{parse_json(text), fmt::format("{}:{}", name, number)};
      if (!r.line.is_object()) reject(r, "the line is not a JSON object, or is nested too deeply");
      add_record(std::move(r), all);
    }
  }
  if (all.points.empty() && all.maps.empty() && all.claims.empty())
    throw input_error(fmt::format("{}: no data points", fmt::join(files, ", ")));
  return all;
}

}  // namespace quarry::tool::report
