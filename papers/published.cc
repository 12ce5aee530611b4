#include "papers/published.h"

#include <fmt/core.h>

#include "papers/overflow.h"
#include "papers/plots.h"
#include "papers/sections.h"

namespace tamis {
namespace {

Section Introduction(uint64_t seed) {
  return {
      "",
      {fmt::format("Written by `bench/run published_figures tables --seed {} -o docs`; a test "
                   "compares it with what that command writes.",
                   seed),
       "Published figures about the kinds of filter of this library, beside the results of the "
       "formulas (`tamis/filter/fpr.h`) and measurements of our own classes. Where a source has a "
       "formula, the last formula column is the one that holds. *print is* says whether the "
       "printed figure is that of the last formula, to 1 %; of another formula that the table "
       "names; or of none. Measured rates come with the interval that holds the true rate in 95 "
       "of 100 cases, and with the number of keys asked for. With as many rows as here, a formula "
       "outside of its interval now and then is what chance does; a test allows five standard "
       "deviations. All keys are distinct; another seed gives other keys. Times are not "
       "reproducible and are not here: the command prints them."}};
}

Document Assemble(uint64_t seed, const CounterRuns& runs) {
  return {"Published figures",
          {Introduction(seed), SplitCountingSizes(seed), Overflow(seed, runs), DLeft(seed),
           CacheSystems(seed), Penetration(seed), Cuckoo(seed), LevelIds(seed)}};
}

}  // namespace

Document PublishedFigures(uint64_t seed) { return Assemble(seed, CountCounters(seed)); }

std::vector<PageFile> PublishedPages(uint64_t seed) {
  const CounterRuns runs = CountCounters(seed);
  const std::vector<RatePoint> rates = MeasureRates(seed);
  return {{"PAPERS.md", Markdown(Assemble(seed, runs))},
          {"plots/overflow.svg", ToSvg(OverflowPlot(runs))},
          {"plots/fpr.svg", ToSvg(RatePlot(rates))},
          {"plots/fpr-counting.svg", ToSvg(CountingRatePlot(rates))}};
}

}  // namespace tamis
