// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The report as pictures in a folder, and as a text that shows them.

#include "report/report.hpp"

#include <string>

namespace quarry::tool::report {

/// The file name of a view's picture, and of a heap's.
std::string picture_name(const figure& f, const view& v);
std::string picture_name(const heap_picture& m, std::size_t number);

/// Draws every view and heap into `folder`, which is made if need be. Returns how many.
std::size_t write_pictures(const document& d, const std::string& folder);

/// `pictures`: the folder as the text's reader has to write it; empty: no pictures.
std::string markdown_of(const document& d, const std::string& title, const std::string& pictures);

}  // namespace quarry::tool::report
