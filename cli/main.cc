#include "cli/command.h"

int main(int argc, char** argv) {
  return blktape::RunMain(argc, argv,
                          {blktape::AnalyzeCommand(), blktape::ImportCommand(),
                           blktape::ReplayCommand(), blktape::ScoreCommand()});
}
