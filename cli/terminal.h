#pragma once

#include "report/text_table.h"

namespace blktape {

// How text for people should look on `fd`: as wide as its terminal (40 to 100 columns, or what
// COLUMNS says), with colour unless NO_COLOR is set or TERM is "dumb", with blocks where the locale
// is of UTF-8. For a file or a pipe: 79 columns of plain ASCII.
TextLook LookOf(int fd);

}  // namespace blktape
