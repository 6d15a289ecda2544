#pragma once

#include <cstddef>
#include <string>

#include "analysis/details.h"
#include "analysis/profile.h"
#include "report/page.h"
#include "report/table_maker.h"

namespace blktape {

// What the sections of the day's page are made of, and where they go. Inside report/day_*.cc.
struct DayPageMaker {
  const Profile& profile;
  const Details& details;  // of the profile
  std::string name;        // of the trace
  Page page = {};

  void Add(TableMaker maker) { page.tables.push_back(maker.Take()); }
  // Stays where it is until the next one is made.
  Section& NewSection(std::string id, std::string heading) {
    page.sections.push_back({std::move(id), std::move(heading), {}});
    return page.sections.back();
  }
  // Whether any I/O tells how long the drive took.
  bool KnowsService() const { return profile.without_completion < profile.ios; }
};

// A section each, in the order of the page; left out where the trace does not tell.
void AddOverTime(DayPageMaker& day);    // day_over_time.cc
void AddSizes(DayPageMaker& day);       // day_sizes.cc
void AddAddresses(DayPageMaker& day);   // day_addresses.cc
void AddLatency(DayPageMaker& day);     // day_latency.cc
void AddDepth(DayPageMaker& day);       // day_depth.cc
void AddProcesses(DayPageMaker& day);   // day_processes.cc
void AddFigures(DayPageMaker& day);     // day_figures.cc
void AddConditions(DayPageMaker& day);  // day_conditions.cc

// How a class of powers of two is called: "1", "2", "3 to 4", "5 to 8" ...
std::string ClassName(size_t k);

}  // namespace blktape
