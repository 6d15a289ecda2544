#pragma once

#include <string_view>

namespace blktape::assets {

// Files that are built into the program: report/embed.bzl. They live as long as it.
std::string_view Echarts();     // third_party/echarts: defines `echarts`
std::string_view PageScript();  // assets/page.js
std::string_view PageStyle();   // assets/page.css

}  // namespace blktape::assets
