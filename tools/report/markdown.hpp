// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The report as SVG pictures in a folder, and as Markdown that shows them.

#include "report/report.hpp"

#include <string>

namespace quarry::tool::report {

/// Returns the file name of the picture of a view, and of a heap map.
std::string picture_name(const figure& f, const view& v);
std::string picture_name(const heap_picture& m, std::size_t number);

/// Draws every view and heap map into `folder`, which is created if it does not exist. Returns the
/// number of pictures.
std::size_t write_pictures(const document& d, const std::string& folder);

/// Returns the report. `pictures` is the path from the text to the folder of the pictures; with an
/// empty path the report shows none.
std::string markdown_of(const document& d, const std::string& title, const std::string& pictures);

/// Returns the first part of the report: runs, rankings and the claims of the papers.
std::string summary_of(const document& d, const std::string& title);

}  // namespace quarry::tool::report
