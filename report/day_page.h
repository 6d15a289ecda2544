#pragma once

#include <string_view>

#include "analysis/profile.h"
#include "report/page.h"

namespace blktape {

// What `blktape analyze --html` and `--csv` show of a trace called `name`. The profile has its
// details (ProfileOptions.details).
Page DayPage(const Profile& profile, std::string_view name);

}  // namespace blktape
