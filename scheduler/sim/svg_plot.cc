#include "scheduler/sim/svg_plot.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace closeknit {
namespace {

constexpr double kWidth = 520, kHeight = 330, kLeft = 56, kRight = 16, kTop = 40, kBottom = 84;

// Okabe and Ito's colours: told apart by colour-blind readers.
constexpr const char* kColours[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"};

std::string Escape(const std::string& text) { return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}}); }

class Panel {
 public:
  Panel(const PlotPanel& panel, double x_offset) : panel_(panel), x_offset_(x_offset) {
    low_ = panel.x_ticks.front().first;
    high_ = panel.x_ticks.back().first;
  }

  std::string Render() const {
    std::string svg = Text(x_offset_ + kWidth / 2, 20, "middle", panel_.title, "font-weight=\"600\"");
    AppendAxes(&svg);
    for (size_t i = 0; i < panel_.series.size(); ++i) AppendSeries(i, &svg);
    return svg;
  }

 private:
  double X(double value) const {
    const double share = std::log(value / low_) / std::log(high_ / low_);
    return x_offset_ + kLeft + share * (kWidth - kLeft - kRight);
  }
  double Y(double value) const { return kTop + (1 - value / panel_.y_max) * (kHeight - kTop - kBottom); }

  static std::string Text(double x, double y, const char* anchor, const std::string& text, const char* more = "") {
    return absl::StrFormat("<text class=\"t\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" %s>%s</text>\n", x, y, anchor, more, Escape(text));
  }

  void AppendAxes(std::string* svg) const {
    for (int step = 0; step <= 4; ++step) {
      const double value = panel_.y_max * step / 4;
      absl::StrAppendFormat(svg, "<path class=\"g\" d=\"M%.1f %.1fH%.1f\"/>\n", x_offset_ + kLeft, Y(value), x_offset_ + kWidth - kRight);
      *svg += Text(x_offset_ + kLeft - 6, Y(value) + 4, "end", absl::StrFormat("%g", value));
    }
    for (const auto& [value, label] : panel_.x_ticks) *svg += Text(X(value), kHeight - kBottom + 18, "middle", label);
    *svg += Text(x_offset_ + (kLeft + kWidth - kRight) / 2, kHeight - kBottom + 36, "middle", panel_.x_label);
    *svg += Text(x_offset_ + kLeft, kTop - 8, "start", panel_.y_label);
  }

  void AppendSeries(size_t index, std::string* svg) const {
    const PlotSeries& series = panel_.series[index];
    const char* colour = kColours[index % std::size(kColours)];
    std::string path;
    for (const auto& [x, y] : series.points) absl::StrAppendFormat(&path, "%s%.1f %.1f", path.empty() ? "M" : "L", X(x), Y(y));
    absl::StrAppendFormat(svg, "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2.5\"/>\n", path, colour);
    for (const auto& [x, y] : series.points)
      absl::StrAppendFormat(svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", X(x), Y(y), colour);
    const double legend_y = kHeight - 28 + 14 * static_cast<double>(index / 2);
    const double legend_x = x_offset_ + kLeft + (index % 2 == 0 ? 0 : (kWidth - kLeft) / 2);
    absl::StrAppendFormat(svg, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"4\" fill=\"%s\"/>\n", legend_x, legend_y - 6, colour);
    *svg += Text(legend_x + 18, legend_y, "start", series.name);
  }

  const PlotPanel& panel_;
  const double x_offset_;
  double low_ = 1, high_ = 10;
};

}  // namespace

std::string SvgPlot(absl::Span<const PlotPanel> panels) {
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n"
      "<style>.t{fill:#333b48}.g{stroke:#b6bdc9;stroke-width:.7}"
      "@media(prefers-color-scheme:dark){.t{fill:#d5dae3}.g{stroke:#4a5261}}</style>\n",
      kWidth * static_cast<double>(panels.size()), kHeight);
  for (size_t i = 0; i < panels.size(); ++i) svg += Panel(panels[i], kWidth * static_cast<double>(i)).Render();
  svg += "</svg>\n";
  return svg;
}

}  // namespace closeknit
