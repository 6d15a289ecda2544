#pragma once

#include <string>
#include <string_view>

#include "report/page.h"

namespace blktape {

// Anybody's text in GitHub's Markdown, also in a cell of a table: no markup, no end of the line.
std::string MarkdownText(std::string_view text);

// A table with its headings, cells as the page writes them.
std::string MarkdownTable(const DataTable& table);

}  // namespace blktape
