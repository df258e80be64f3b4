// Line plots as SVG text: labelled axes, one colour and one marker a series, readable in light and dark.
#ifndef CLOSEKNIT_SCHEDULER_SIM_SVG_PLOT_H_
#define CLOSEKNIT_SCHEDULER_SIM_SVG_PLOT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace closeknit {

struct PlotSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  // (x, y), x > 0 and growing
};

struct PlotPanel {
  std::string title, x_label, y_label;
  double y_max = 100;  // the y axis runs from 0
  std::vector<std::pair<double, std::string>> x_ticks;
  std::vector<PlotSeries> series;  // at most 6
};

// Panels side by side, with a logarithmic x axis each. Text is escaped.
std::string SvgPlot(absl::Span<const PlotPanel> panels);

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_SIM_SVG_PLOT_H_
