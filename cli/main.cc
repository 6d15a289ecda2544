#include "cli/command.h"

int main(int argc, char** argv) {
  // As a user meets them.
  return blktape::RunMain(
      argc, argv,
      {
          blktape::RecordCommand(),  blktape::MarkCommand(),      blktape::ImportCommand(),
          blktape::ExportCommand(),  blktape::InfoCommand(),      blktape::DumpCommand(),
          blktape::RecoverCommand(), blktape::CutCommand(),       blktape::MergeCommand(),
          blktape::DiffCommand(),    blktape::AnonymizeCommand(), blktape::PackCommand(),
          blktape::AnalyzeCommand(), blktape::CheckCommand(),     blktape::PrepareCommand(),
          blktape::CornersCommand(), blktape::ReplayCommand(),    blktape::ScoreCommand(),
          blktape::BenchCommand(),   blktape::CompareCommand(),   blktape::ResultsCommand(),
      });
}
