#include "papers/plot/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tamis {
namespace {

using testing::HasSubstr;
using testing::Not;

Plot Diagonal() {
  return {.title = "Rates < 1 & costs",
          .subtitle = "",
          .x = {.title = "bits", .low = 0, .high = 10, .ticks = {{0, "0"}, {10, "10"}}},
          .y = {.title = "rate", .low = 0.001, .high = 1, .logarithmic = true, .ticks = {}},
          .series = {{.name = "all", .points = {{0, 0.001}, {5, 0.0316227766}, {10, 1}}}}};
}

TEST(PlotTest, ALogarithmicAxisPutsTheGeometricMeanInTheMiddle) {
  EXPECT_THAT(ToSvg(Diagonal()), HasSubstr("d=\"M84.0 490.0L362.0 280.0L640.0 70.0\""));
}

TEST(PlotTest, ALineEndsAtAPointOutsideTheAxesAndBeginsAnew) {
  Plot plot = Diagonal();
  plot.series[0].points = {{0, 1}, {11, 1}, {5, 2}, {10, 1}};
  EXPECT_THAT(ToSvg(plot), HasSubstr("d=\"M84.0 70.0M640.0 70.0\""));
}

TEST(PlotTest, TextIsEscaped) {
  EXPECT_THAT(ToSvg(Diagonal()), HasSubstr("Rates &lt; 1 &amp; costs"));
  EXPECT_THAT(ToSvg(Diagonal()), Not(HasSubstr("Rates < 1")));
}

TEST(PlotTest, SeriesOfOneNameShareALegendEntry) {
  Plot plot = Diagonal();
  plot.series.push_back(plot.series[0]);
  const std::string svg = ToSvg(plot);
  EXPECT_EQ(svg.find(">all<"), svg.rfind(">all<"));
}

}  // namespace
}  // namespace tamis
