// Runs a fuzz target as an ordinary test: over the files named, then over a few thousand inputs
// made of them by chance, the same every time. What coverage would teach, tools/fuzz finds.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr int kMutations = 2000;
constexpr int kExtremes[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
constexpr size_t kLargest = 64 << 10;  // larger seeds are not mutated: each run would take long

void Run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

// One to four changes: a flipped bit, an extreme byte, a cut, a doubled piece, a piece of another.
std::string Mutated(std::string input, const std::vector<std::string>& seeds,
                    std::mt19937_64* random) {
  const auto below = [random](size_t n) { return n == 0 ? 0 : (*random)() % n; };
  for (size_t changes = 1 + below(4); changes > 0; --changes) {
    if (input.empty()) input = std::string(1, '\0');
    const size_t at = below(input.size());
    const size_t length = 1 + below(std::min<size_t>(input.size() - at, 64));
    switch (below(5)) {
      case 0:
        input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
        break;
      case 1:
        input[at] = static_cast<char>(kExtremes[below(std::size(kExtremes))]);
        break;
      case 2:
        input.erase(at, below(2) == 0 ? length : input.size());
        break;
      case 3:
        input.insert(at, input.substr(at, length));
        break;
      default: {
        const std::string& other = seeds[below(seeds.size())];
        input.insert(at, other.substr(below(other.size()), length));
      }
    }
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> seeds;
  for (int i = 1; i < argc; ++i) {
    std::ifstream in(argv[i], std::ios::binary);
    if (!in) {
      std::fprintf(stderr, "cannot open %s\n", argv[i]);
      return 1;
    }
    const std::string input((std::istreambuf_iterator<char>(in)), {});
    Run(input);
    if (!input.empty() && input.size() <= kLargest) seeds.push_back(input);
  }
  std::printf("%d inputs\n", argc - 1);
  if (argc < 2) return 1;
  if (!seeds.empty()) {
    const char* folder = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
    const std::string last = folder != nullptr ? std::string(folder) + "/last-input" : "";
    std::mt19937_64 random(1);
    for (int i = 0; i < kMutations; ++i) {
      const std::string input = Mutated(seeds[random() % seeds.size()], seeds, &random);
      // Should the target crash, this is what it was given.
      if (!last.empty()) std::ofstream(last, std::ios::binary) << input;
      Run(input);
    }
    if (!last.empty()) std::remove(last.c_str());
    std::printf("%d mutated inputs\n", kMutations);
  }
  // As tools/count.py reads it.
  if (const char* path = std::getenv("XML_OUTPUT_FILE"); path != nullptr) {
    std::ofstream(path)
        << "<testsuites><testsuite name=\"fuzz\"><testcase classname=\"fuzz\" "
           "name=\"EveryInputOfTheCorpusAndThoseMadeOfThemPass\"/></testsuite></testsuites>\n";
  }
  return 0;
}
