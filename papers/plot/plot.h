// Plot: lines and marks over two axes, as an SVG picture for a document.
//
// The same plot gives the same bytes everywhere: coordinates have one decimal, and nothing is taken
// from the machine. The picture has its own light background, so that it can be read on a dark
// page.
#pragma once

#include <string>
#include <vector>

namespace tamis {

struct Axis {
  struct Tick {
    double at;
    std::string label;  // "" = a thin line only
  };

  std::string title;  // with its unit
  double low = 0;
  double high = 1;
  bool logarithmic = false;  // low > 0
  std::vector<Tick> ticks;
};

struct Series {
  enum class Style { kLine, kDashed, kMarks, kMarkedLine };
  struct Point {
    double x;
    double y;
  };

  std::string name;  // in the legend; series of one name after another share a legend entry
  Style style = Style::kLine;
  size_t color = 0;  // of kColors, beginning anew behind the last
  size_t mark = 0;   // of kMarks, likewise
  std::vector<Point> points;

  static constexpr size_t kColors = 8;
  static constexpr size_t kMarks = 8;  // the last two are hollow and go round the others
};

struct Plot {
  std::string title;
  std::string subtitle;  // what the points are; "" = none
  Axis x;
  Axis y;
  std::vector<Series> series;
};

// Points outside the axes are left out; lines end at them.
std::string ToSvg(const Plot& plot);

}  // namespace tamis
