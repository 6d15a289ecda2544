#include "report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>
#include <type_traits>

#include "base/byte_stream.h"
#include "base/check.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/sha256.h"
#include "base/status.h"
#include "base/utf8.h"
#include "report/assets.h"

namespace blktape {
namespace {

// Text for HTML, in an attribute too. Control characters become U+FFFD: they are no text.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : ToUtf8(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        if ((static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f) {
          escaped += "\xef\xbf\xbd";
        } else {
          escaped += c;
        }
    }
  }
  return escaped;
}

// Foreign words: at most so many characters, and isolated from the direction of what is around.
std::string Foreign(std::string_view text) {
  constexpr size_t kMostCharacters = 60;
  const std::string utf8 = ToUtf8(text);
  size_t characters = 0;
  size_t end = 0;
  while (end < utf8.size()) {
    if ((static_cast<unsigned char>(utf8[end]) & 0xc0) != 0x80 && ++characters > kMostCharacters)
      break;
    ++end;
  }
  return "<bdi>" + Escaped(std::string_view(utf8).substr(0, end)) + (end < utf8.size() ? "…" : "") +
         "</bdi>";
}

std::string_view UnitName(Unit unit) {
  switch (unit) {
    case Unit::kText:
      return "text";
    case Unit::kCount:
      return "count";
    case Unit::kBytes:
      return "bytes";
    case Unit::kDurationNs:
      return "duration";
    case Unit::kTimeNs:
      return "time";
    case Unit::kShare:
      return "share";
    case Unit::kPerSecond:
      return "per_second";
    case Unit::kBytesPerSecond:
      return "bytes_per_second";
    case Unit::kNumber:
      return "number";
    case Unit::kCelsius:
      return "celsius";
    case Unit::kOneIn:
      return "one_in";
  }
  return "number";
}

double NumberOf(const Cell& cell) {
  if (const auto* i = std::get_if<int64_t>(&cell)) return static_cast<double>(*i);
  if (const auto* u = std::get_if<uint64_t>(&cell)) return static_cast<double>(*u);
  if (const auto* d = std::get_if<double>(&cell)) return *d;
  return 0;
}

Json CellJson(const Cell& cell) {
  return std::visit(
      [](const auto& value) -> Json {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return nullptr;
        } else if constexpr (std::is_same_v<T, std::string>) {
          return ToUtf8(value);
        } else {
          return value;
        }
      },
      cell);
}

Json AxisJson(const Chart::Axis& axis) {
  return {{"label", axis.label},
          {"unit", UnitName(axis.unit)},
          {"log", axis.log},
          {"close", axis.close}};
}

Json ChartJson(const Chart& chart) {
  static constexpr std::array kKinds = {"bars", "lines", "map"};
  static constexpr std::array kStyles = {"line", "dashed", "dotted", "area",
                                         "step", "points", "dashdot"};
  Json json = {{"kind", kKinds[static_cast<size_t>(chart.kind)]},
               {"x", chart.x},
               {"x_axis", AxisJson(chart.x_axis)}};
  for (const Chart::Axis& panel : chart.panels) json["panels"].push_back(AxisJson(panel));
  for (const Chart::Series& series : chart.series) {
    Json one = {{"column", series.column},
                {"style", kStyles[static_cast<size_t>(series.style)]},
                {"colour", series.colour},
                {"panel", series.panel}};
    if (!series.low.empty()) {
      one["low"] = series.low;
      one["high"] = series.high;
    }
    if (series.end_row > 0) {
      one["first_row"] = series.first_row;
      one["end_row"] = series.end_row;
    }
    if (!series.label.empty()) one["label"] = ToUtf8(series.label);
    if (series.symbol >= 0) one["symbol"] = series.symbol;
    one["step"] = series.step;
    json["series"].push_back(one);
  }
  json["stacked"] = chart.stacked;
  json["horizontal"] = chart.horizontal;
  json["colour_by_row"] = chart.colour_by_row;
  if (!chart.row_colours.empty()) json["row_colours"] = chart.row_colours;
  if (!chart.valid.empty()) json["valid"] = chart.valid;
  json["values"] = chart.values;
  if (!chart.note.empty()) json["note"] = chart.note;
  json["x_end"] = chart.x_end;
  json["zoom"] = chart.zoom;
  json["height"] = chart.height;
  json["rows"] = chart.rows;
  for (const Chart::Mark& mark : chart.marks) {
    json["marks"].push_back({{"from", mark.from}, {"to", mark.to}, {"what", ToUtf8(mark.what)}});
  }
  if (chart.kind == Chart::Kind::kMap) {
    json["y"] = chart.y;
    json["y_to"] = chart.y_to;
    json["value"] = chart.value;
    json["x_step"] = chart.x_step;
  }
  return json;
}

// What the scripts read. "<" is escaped, so nothing in it ends the element it stands in.
std::string DataJson(const Page& page) {
  Json tables = Json::object();
  for (const DataTable& table : page.tables) {
    Json columns = Json::array();
    for (const Column& column : table.columns) {
      Json values = Json::array();
      for (const Cell& cell : column.cells) values.push_back(CellJson(cell));
      columns.push_back({{"key", column.key},
                         {"label", column.label},
                         {"unit", UnitName(column.unit)},
                         {"values", std::move(values)}});
    }
    tables[table.id] = {{"columns", std::move(columns)}};
  }
  Json figures = Json::array();
  for (const Section& section : page.sections) {
    for (const auto& part : section.parts) {
      const auto* figure = std::get_if<Figure>(&part);
      if (figure == nullptr) continue;
      figures.push_back(
          {{"id", figure->id}, {"table", figure->table}, {"chart", ChartJson(figure->chart)}});
    }
  }
  const Json json = {{"clock_ns", page.clock_ns == 0 ? Json(nullptr) : Json(page.clock_ns)},
                     {"tables", std::move(tables)},
                     {"figures", std::move(figures)}};
  std::string text;
  for (const char c : JsonText(json, kOneLine)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

// "sha256-..." as a content security policy wants it.
std::string PolicyHash(std::string_view script) {
  MemorySource source(script);
  const Result<std::string> hex = Sha256Hex(&source);
  BLKTAPE_CHECK(hex.ok());
  std::string bytes;
  for (size_t i = 0; i + 1 < hex->size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex->substr(i, 2), nullptr, 16));
  }
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string base64;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t j = 0; j < 3; ++j) {
      three = three << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    }
    for (size_t j = 0; j < 4; ++j) {
      base64 += i + j > bytes.size() ? '=' : kDigits[three >> (18 - 6 * j) & 63];
    }
  }
  return "'sha256-" + base64 + "'";
}

class HtmlWriter {
 public:
  explicit HtmlWriter(const Page& page) : page_(page) {}

  std::string Write() {
    const std::string_view charts = assets::Echarts();
    const std::string_view script = assets::PageScript();
    html_ +=
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
        "'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'; script-src " +
        PolicyHash(charts) + " " + PolicyHash(script) +
        "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n"
        "<meta name=\"generator\" content=\"blktape\">\n<title>" +
        Escaped(page_.title) + "</title>\n<style>" + std::string(assets::PageStyle()) +
        "</style>\n</head><body>\n";
    html_ +=
        "<a class=\"skip\" href=\"#main\">To the content</a>\n<main id=\"main\">\n<header>\n<h1>" +
        Foreign(page_.title) + "</h1>\n<p class=\"sub\">" + Escaped(page_.subtitle) + "</p>\n";
    WriteVerdict();
    WriteContents();
    html_ += "</header>\n";
    for (const Section& section : page_.sections) WriteSection(section);
    html_ += "<footer><p>" + Escaped(page_.footer) + "</p></footer>\n</main>\n";
    html_ +=
        "<script type=\"application/json\" id=\"data\">" + DataJson(page_) + "</script>\n<script>";
    html_ += charts;
    html_ += "</script>\n<script>";
    html_ += script;
    html_ += "</script>\n</body></html>\n";
    return std::move(html_);
  }

 private:
  const DataTable& TableOf(const std::string& id) const {
    const auto found = std::find_if(page_.tables.begin(), page_.tables.end(),
                                    [&](const DataTable& table) { return table.id == id; });
    BLKTAPE_CHECK(found != page_.tables.end());
    return *found;
  }

  void WriteVerdict() {
    html_ += "<div class=\"verdict\">\n";
    for (const Sentence& sentence : page_.verdict) {
      html_ += sentence.bad ? "<p class=\"bad\">" : "<p>";
      for (const Sentence::Words& words : sentence.words) {
        const std::string text = words.foreign ? Foreign(words.text) : Escaped(words.text);
        html_ += words.strong ? "<b>" + text + "</b>" : text;
      }
      html_ += "</p>\n";
    }
    html_ += "</div>\n";
  }

  void WriteContents() {
    html_ += "<nav aria-label=\"Contents\"><ul>";
    for (const Section& section : page_.sections) {
      html_ +=
          "<li><a href=\"#" + Escaped(section.id) + "\">" + Escaped(section.heading) + "</a></li>";
    }
    html_ += "</ul></nav>\n";
  }

  void WriteSection(const Section& section) {
    html_ += "<section id=\"" + Escaped(section.id) + "\"><h2>" + Escaped(section.heading) +
             "</h2>\n<div class=\"grid\">\n";
    for (const auto& part : section.parts) {
      if (const auto* figure = std::get_if<Figure>(&part)) WriteFigure(*figure);
      if (const auto* view = std::get_if<TableView>(&part)) {
        html_ += "<div class=\"wide\">";
        WriteTable(TableOf(view->table), /*with_caption=*/true);
        html_ += "</div>\n";
      }
      if (const auto* list = std::get_if<Checklist>(&part)) WriteChecklist(*list);
      if (const auto* paragraph = std::get_if<Paragraph>(&part)) {
        html_ += "<p class=\"wide text\">" + Escaped(paragraph->text) + "</p>\n";
      }
    }
    html_ += "</div></section>\n";
  }

  void WriteFigure(const Figure& figure) {
    const size_t panels = std::max<size_t>(1, figure.chart.panels.size());
    const int height =
        figure.chart.height * static_cast<int>(panels) + (figure.chart.zoom ? 34 : 0);
    html_ += fmt::format(
        "<figure id=\"{0}\"{1}><figcaption>{2}<small>{3}</small></figcaption>\n"
        "<div class=\"chart\" id=\"chart-{0}\" style=\"height:{4}px\" role=\"img\" "
        "aria-label=\"{5}\"{6}></div>\n"
        "<div class=\"legend\" id=\"legend-{0}\" hidden></div>\n",
        Escaped(figure.id), figure.wide ? " class=\"wide\"" : "", Escaped(figure.title),
        Escaped(figure.subtitle), height, Escaped(figure.alt),
        figure.chart.zoom ? " tabindex=\"0\"" : "");
    const DataTable& table = TableOf(figure.table);
    if (shown_.insert(table.id).second) {
      html_ += "<details id=\"table-" + Escaped(table.id) + "\"><summary>Figures of this chart (" +
               FormatCount(table.rows()) + (table.rows() == 1 ? " row" : " rows") + ")</summary>\n";
      WriteTable(table, /*with_caption=*/false);
      html_ += "</details>\n";
    } else {
      html_ += "<p class=\"more\"><a href=\"#table-" + Escaped(table.id) +
               "\">Figures of this chart</a></p>\n";
    }
    html_ += "</figure>\n";
  }

  void WriteTable(const DataTable& table, bool with_caption) {
    html_ += "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" +
             Escaped(table.caption) + "\"><table>";
    if (with_caption) html_ += "<caption>" + Escaped(table.caption) + "</caption>";
    html_ += "<thead><tr>";
    for (const Column& column : table.columns) {
      html_ += column.unit == Unit::kText ? "<th scope=\"col\" class=\"l\">" : "<th scope=\"col\">";
      html_ += Escaped(column.label);
    }
    html_ += "</thead><tbody>\n";
    const size_t shown =
        table.most_shown == 0 ? table.rows() : std::min(table.most_shown, table.rows());
    for (size_t row = 0; row < shown; ++row) {
      html_ += "<tr>";
      for (size_t i = 0; i < table.columns.size(); ++i) {
        const Column& column = table.columns[i];
        const Cell& cell = column.cells[row];
        html_ += i == 0                       ? "<th scope=\"row\">"
                 : column.unit == Unit::kText ? "<td class=\"l\">"
                                              : "<td>";
        if (const auto* text = std::get_if<std::string>(&cell)) {
          html_ += Foreign(*text);
        } else if (column.unit == Unit::kTimeNs && page_.clock_ns != 0) {
          html_ += ClockText(NumberOf(cell));
        } else {
          html_ += CellText(cell, column.unit);
        }
      }
      html_ += "\n";
    }
    html_ += "</tbody></table></div>\n";
    if (shown < table.rows()) {
      html_ += "<p class=\"more\">and " + FormatCount(table.rows() - shown) +
               " more: --csv and --json have all</p>\n";
    }
  }

  std::string ClockText(double since_ns) const {
    constexpr int64_t kMilli = 1'000'000;
    constexpr int64_t kDayMs = 86'400'000;
    const int64_t at_ms = page_.clock_ns / kMilli + static_cast<int64_t>(since_ns) / kMilli;
    const int64_t ms = ((at_ms % kDayMs) + kDayMs) % kDayMs;
    return fmt::format("{:02}:{:02}:{:02}.{:03}", ms / 3'600'000, ms / 60'000 % 60, ms / 1000 % 60,
                       ms % 1000);
  }

  void WriteChecklist(const Checklist& list) {
    html_ += "<div class=\"wide scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" +
             Escaped(list.caption) + "\"><table class=\"checks\"><caption>" +
             Escaped(list.caption) + "</caption>";
    if (list.subjects.size() > 1) {
      html_ += "<thead><tr><th scope=\"col\" class=\"l\">check";
      for (const std::string& subject : list.subjects)
        html_ += "<th scope=\"col\" class=\"l\">" + Foreign(subject);
      html_ += "</thead>";
    }
    html_ += "<tbody>\n";
    for (const Checklist::Row& row : list.rows) {
      html_ += "<tr><th scope=\"row\">" + Escaped(row.check);
      for (const Checklist::Mark& mark : row.marks) {
        switch (mark.state) {
          case Checklist::State::kNone:
            html_ += "<td class=\"l\">";
            break;
          case Checklist::State::kGood:
            html_ +=
                "<td class=\"l\"><span class=\"ok\" role=\"img\" aria-label=\"good\">✓</span> ";
            break;
          case Checklist::State::kBad:
            html_ +=
                "<td class=\"l\"><span class=\"no\" role=\"img\" aria-label=\"not good\">✗</span> ";
            break;
        }
        html_ += Foreign(mark.text);
      }
      html_ += "\n";
    }
    html_ += "</tbody></table></div>\n";
  }

  const Page& page_;
  std::string html_;
  std::set<std::string> shown_;
};

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string CsvCell(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return CsvField(ToUtf8(*text));
  if (const auto* i = std::get_if<int64_t>(&cell)) return std::to_string(*i);
  if (const auto* u = std::get_if<uint64_t>(&cell)) return std::to_string(*u);
  if (const auto* d = std::get_if<double>(&cell)) return fmt::format("{}", *d);
  return "";
}

// Three significant digits, thousands set apart.
std::string Digits(double value) {
  if (std::abs(value) >= 100) {
    const std::string text = FormatCount(static_cast<uint64_t>(std::llround(std::abs(value))));
    return value < 0 ? "-" + text : text;
  }
  return fmt::format("{:.3g}", value);
}

}  // namespace

std::string CellText(const Cell& cell, Unit unit) {
  if (std::holds_alternative<std::monostate>(cell)) return "";
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  const double value = NumberOf(cell);
  switch (unit) {
    case Unit::kBytes:
      return FormatBytes(static_cast<uint64_t>(std::max(0.0, value)));
    case Unit::kDurationNs:
    case Unit::kTimeNs:
      return FormatDurationNs(std::llround(value));
    case Unit::kShare:
      return fmt::format("{:.1f} %", 100 * value);
    case Unit::kPerSecond:
      return Digits(value) + " /s";
    case Unit::kBytesPerSecond:
      return FormatBytes(static_cast<uint64_t>(std::max(0.0, value))) + "/s";
    case Unit::kCount:
      if (const auto* u = std::get_if<uint64_t>(&cell)) return FormatCount(*u);
      return Digits(value);
    case Unit::kCelsius:
      return fmt::format("{:.3g} °C", value);
    case Unit::kOneIn:
      return fmt::format("p{:.6g}", 100 - 100 / std::max(1.0, value));
    case Unit::kText:
    case Unit::kNumber:
      break;
  }
  return Digits(value);
}

Chart::Series SeriesOf(size_t subject, std::string column) {
  using enum Chart::Style;
  static constexpr std::array kStyles = {kLine, kDashed, kDotted, kDashDot};
  constexpr size_t kSymbols = 8;
  Chart::Series series;
  series.column = std::move(column);
  series.style = kStyles[subject % kStyles.size()];
  series.colour = static_cast<int>(subject);
  series.symbol = static_cast<int>(subject % kSymbols);
  return series;
}

std::string PageHtml(const Page& page) { return HtmlWriter(page).Write(); }

std::vector<std::pair<std::string, std::string>> PageCsv(const Page& page) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const DataTable& table : page.tables) {
    std::string text;
    for (size_t i = 0; i < table.columns.size(); ++i)
      text += (i == 0 ? "" : ",") + CsvField(table.columns[i].key);
    text += "\n";
    for (size_t row = 0; row < table.rows(); ++row) {
      for (size_t i = 0; i < table.columns.size(); ++i)
        text += (i == 0 ? "" : ",") + CsvCell(table.columns[i].cells[row]);
      text += "\n";
    }
    files.emplace_back(table.id + ".csv", std::move(text));
  }
  return files;
}

}  // namespace blktape
