// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The page: one file that asks for nothing else.

#include "report/report.hpp"

#include <string>

namespace quarry::tool::report {

/// Throws input_error if the program was built without the chart library.
std::string page_of(const document& d, const std::string& title);

/// What the page's script reads.
nlohmann::ordered_json page_data(const document& d, const std::string& title);

}  // namespace quarry::tool::report
