#include "papers/plot/plot.h"

#include <fmt/core.h>

#include <array>
#include <cmath>

namespace tamis {
namespace {

// The picture, and within it the frame between the axes; the legend is to the right of it.
constexpr double kWidth = 900;
constexpr double kHeight = 560;
constexpr double kLeft = 84;
constexpr double kRight = 640;
constexpr double kTop = 70;
constexpr double kBottom = 490;
constexpr double kLegendLine = 21;

// Okabe and Ito's colors, which the color-blind tell apart; yellow is darkened for a light ground.
constexpr std::array<const char*, Series::kColors> kColorCodes = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#6b6b6b", "#b8860b", "#56b4e9", "#000000"};

double Share(const Axis& axis, double value) {
  return axis.logarithmic ? std::log(value / axis.low) / std::log(axis.high / axis.low)
                          : (value - axis.low) / (axis.high - axis.low);
}
bool Holds(const Axis& axis, double value) { return value >= axis.low && value <= axis.high; }

double X(const Plot& plot, double value) { return kLeft + Share(plot.x, value) * (kRight - kLeft); }
double Y(const Plot& plot, double value) {
  return kBottom - Share(plot.y, value) * (kBottom - kTop);
}

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
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
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string Text(double x, double y, const std::string& text, const char* attributes) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, attributes,
                     Escaped(text));
}

std::string Line(double x1, double y1, double x2, double y2, const char* attributes) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1,
                     x2, y2, attributes);
}

// A mark about (0, 0), as the data of a path.
const char* MarkPath(size_t mark) {
  constexpr std::array<const char*, Series::kMarks> kPaths = {
      "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",                         // disk
      "M-3.6 -3.6h7.2v7.2h-7.2z",                                    // square
      "M0 -4.8L4.6 3.6H-4.6z",                                       // triangle
      "M0 -5L5 0L0 5L-5 0z",                                         // diamond
      "M0 4.8L4.6 -3.6H-4.6z",                                       // triangle on its tip
      "M-1.4 -5h2.8v3.6h3.6v2.8h-3.6v3.6h-2.8v-3.6h-3.6v-2.8h3.6z",  // cross
      "M-6.5 0a6.5 6.5 0 1 0 13 0a6.5 6.5 0 1 0 -13 0z",             // ring
      "M0 -7.5L7.5 0L0 7.5L-7.5 0z",                                 // frame
  };
  return kPaths[mark % kPaths.size()];
}

std::string Mark(const Series& series, double x, double y) {
  const char* color = kColorCodes[series.color % kColorCodes.size()];
  const bool hollow = series.mark % Series::kMarks >= Series::kMarks - 2;
  return fmt::format(
      "<path transform=\"translate({:.1f} {:.1f})\" d=\"{}\" fill=\"{}\" stroke=\"{}\" "
      "stroke-width=\"{}\"/>\n",
      x, y, MarkPath(series.mark), hollow ? "none" : color, hollow ? color : "#ffffff",
      hollow ? "1.6" : "0.8");
}

std::string Stroke(const Series& series) {
  return fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"{}",
                     kColorCodes[series.color % kColorCodes.size()],
                     series.style == Series::Style::kDashed ? " stroke-dasharray=\"6 4\"" : "");
}

bool HasLine(const Series& series) { return series.style != Series::Style::kMarks; }
bool HasMarks(const Series& series) {
  return series.style == Series::Style::kMarks || series.style == Series::Style::kMarkedLine;
}

std::string Grid(const Plot& plot) {
  std::string svg;
  for (const Axis::Tick& tick : plot.x.ticks) {
    const double x = X(plot, tick.at);
    svg += Line(x, kTop, x, kBottom, "stroke=\"#e2e2e2\"");
    svg += Text(x, kBottom + 19, tick.label, "text-anchor=\"middle\"");
  }
  for (const Axis::Tick& tick : plot.y.ticks) {
    const double y = Y(plot, tick.at);
    svg += Line(kLeft, y, kRight, y, "stroke=\"#e2e2e2\"");
    svg += Text(kLeft - 8, y + 4.5, tick.label, "text-anchor=\"end\"");
  }
  svg += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"none\" "
      "stroke=\"#8a8a8a\"/>\n",
      kLeft, kTop, kRight - kLeft, kBottom - kTop);
  svg += Text((kLeft + kRight) / 2, kBottom + 46, plot.x.title, "text-anchor=\"middle\"");
  svg += fmt::format(
      "<text transform=\"translate(22 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      (kTop + kBottom) / 2, Escaped(plot.y.title));
  return svg;
}

std::string Curve(const Plot& plot, const Series& series) {
  std::string path;
  std::string marks;
  bool down = false;  // the pen
  for (const Series::Point& point : series.points) {
    if (!Holds(plot.x, point.x) || !Holds(plot.y, point.y)) {
      down = false;
      continue;
    }
    const double x = X(plot, point.x);
    const double y = Y(plot, point.y);
    path += fmt::format("{}{:.1f} {:.1f}", down ? "L" : "M", x, y);
    down = true;
    if (HasMarks(series)) marks += Mark(series, x, y);
  }
  if (!HasLine(series) || path.empty()) return marks;
  return fmt::format("<path d=\"{}\" {}/>\n", path, Stroke(series)) + marks;
}

std::string Legend(const Plot& plot) {
  std::string svg;
  double y = kTop + 8;
  const std::string* last = nullptr;
  for (const Series& series : plot.series) {
    if (last != nullptr && *last == series.name) continue;
    last = &series.name;
    if (HasLine(series)) {
      svg += Line(kRight + 16, y, kRight + 44, y, Stroke(series).c_str());
    }
    if (HasMarks(series)) svg += Mark(series, kRight + 30, y);
    svg += Text(kRight + 52, y + 4.5, series.name, "");
    y += kLegendLine;
  }
  return svg;
}

}  // namespace

std::string ToSvg(const Plot& plot) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" "
      "fill=\"#222222\">\n"
      "<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#fbfbf9\"/>\n",
      kWidth, kHeight);
  svg += Text(kLeft, 32, plot.title, "font-size=\"18\" font-weight=\"bold\"");
  svg += Text(kLeft, 53, plot.subtitle, "fill=\"#555555\"");
  svg += Grid(plot);
  for (const Series& series : plot.series) svg += Curve(plot, series);
  svg += Legend(plot);
  svg += "</svg>\n";
  return svg;
}

}  // namespace tamis
