// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The HTML page of `quarry report`: one file that loads nothing else.

#include "report/report.hpp"

#include <string>

namespace quarry::tool::report {

/// Returns the page.
std::string page_of(const document& d, const std::string& title);

/// Returns the data that the script of the page reads.
nlohmann::ordered_json page_data(const document& d, const std::string& title);

}  // namespace quarry::tool::report
