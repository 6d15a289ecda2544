#pragma once

#include <vector>

#include "analysis/profile.h"
#include "report/page.h"

namespace blktape {

// What a trace says in sentences to quote, the worst first: what is missing, how small its I/Os
// are, how busy the disk was, who wrote, how long the drive took.
std::vector<Sentence> DayVerdict(const Profile& profile);

}  // namespace blktape
