#include "report/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text_layout.h"
#include "base/utf8.h"

namespace blktape {
namespace {

constexpr size_t kIndent = 2;
constexpr size_t kGap = 2;

std::string Styled(std::string_view text, std::string_view code, const TextLook& look) {
  return look.colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

// As long as `share` of `columns`; a bar that is not empty shows at least one mark.
std::string Bar(double share, size_t columns, const TextLook& look) {
  if (share <= 0) return "";
  if (!look.unicode) {
    return std::string(
        std::max<size_t>(1, static_cast<size_t>(share * static_cast<double>(columns))), '#');
  }
  static constexpr std::array kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = std::max<size_t>(
      1, static_cast<size_t>(std::lround(share * static_cast<double>(columns) * 8)));
  std::string bar;
  for (size_t i = 0; i < eighths / 8; ++i) bar += "█";
  return bar + kEighths[eighths % 8];
}

std::string Shortened(std::string_view text, size_t columns) {
  return std::string(FitColumns(text, columns - 2)) + "..";
}

}  // namespace

std::string Plain(std::string_view text, size_t columns) {
  const std::string plain = ToPrintable(text);
  return ColumnsOf(plain) <= columns ? plain : Shortened(plain, columns);
}

std::string Strong(std::string_view text, const TextLook& look) { return Styled(text, "1", look); }
std::string Bad(std::string_view text, const TextLook& look) { return Styled(text, "1;31", look); }

std::string Sparkline(const std::vector<double>& values, const TextLook& look) {
  if (!look.unicode || values.empty()) return "";
  static constexpr std::array kBlocks = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const double most = *std::max_element(values.begin(), values.end());
  std::string line;
  for (const double value : values) {
    const double height = most > 0 ? value / most * 8 : 0;
    line +=
        kBlocks[value > 0 ? std::clamp<size_t>(static_cast<size_t>(std::lround(height)), 1, 8) : 0];
  }
  return Styled(line, "34", look);
}

std::string TextTable::Text(const TextLook& look) const {
  if (rows_.empty()) return "";
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = columns_[i].heading.size();
    for (const auto& row : rows_) width = std::max(width, ColumnsOf(row[i]));
    widths.push_back(width);
  }
  std::vector<bool> shown(columns_.size(), true);
  const auto total = [&] {
    size_t sum = kIndent;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (shown[i]) sum += widths[i] + (sum > kIndent ? kGap : 0);
    }
    return sum;
  };
  while (total() > look.columns) {
    size_t least = columns_.size();
    for (size_t i = 0; i < columns_.size(); ++i) {
      // Of two of one worth the later goes first.
      if (shown[i] && columns_[i].worth < 9 &&
          (least == columns_.size() || columns_[i].worth <= columns_[least].worth))
        least = i;
    }
    if (least == columns_.size()) break;
    shown[least] = false;
  }
  if (total() > look.columns)
    widths[0] -= std::min(widths[0] - std::min<size_t>(widths[0], 8), total() - look.columns);

  const auto line = [&](const auto& cell_of) {
    std::string text(kIndent, ' ');
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (!shown[i]) continue;
      std::string cell = cell_of(i);
      if (ColumnsOf(cell) > widths[i]) cell = Shortened(cell, widths[i]);
      if (text.size() > kIndent) text += std::string(kGap, ' ');
      const std::string room(widths[i] - std::min(widths[i], ColumnsOf(cell)), ' ');
      text += columns_[i].left ? cell + room : room + cell;
    }
    return text;
  };
  const auto trimmed = [](std::string text) {
    while (!text.empty() && text.back() == ' ') text.pop_back();
    return text;
  };
  std::string text =
      Strong(trimmed(line([this](size_t i) { return columns_[i].heading; })), look) + "\n";
  const double most = bars_.empty() ? 0 : *std::max_element(bars_.begin(), bars_.end());
  const size_t used = total() + kGap;
  const size_t room = look.columns > used + 4 ? std::min<size_t>(40, look.columns - used) : 0;
  for (size_t row = 0; row < rows_.size(); ++row) {
    std::string one = line([this, row](size_t i) { return rows_[row][i]; });
    if (row < bars_.size() && bars_[row] > 0 && room > 0) {
      one += std::string(kGap, ' ') + Styled(Bar(bars_[row] / most, room, look), "34", look);
    }
    text += trimmed(one) + "\n";
  }
  return text;
}

}  // namespace blktape
