#include "tamis/feed/index_counters.h"

#include <algorithm>
#include <cmath>

namespace tamis {

std::optional<uint32_t> BitLayers::FindLayer(uint64_t hash) const {
  for (uint32_t layer = 0; layer < layers(); ++layer) {
    bool all = true;
    for (uint32_t s = 0; s < geometry_.slices && all; ++s) {
      const uint64_t position = geometry_.Position(hash, s);
      all = (layers_[layer].words[position / 64] >> (position % 64) & 1) != 0;
    }
    if (all) return layer;
  }
  return std::nullopt;
}

uint32_t BitLayers::LayerFor(uint64_t hash) {
  if (const auto found = FindLayer(hash)) return *found;
  for (uint32_t layer = 0; layer < layers(); ++layer) {
    if (layers_[layer].ones * 2 < geometry_.positions()) return layer;
  }
  AddLayer();
  return layers() - 1;
}

std::optional<uint64_t> IndexCounters::CountBound(uint64_t hash) const {
  const auto* filter = counters();
  return filter == nullptr ? std::nullopt : filter->CountBound(hash);
}

double IndexCounters::Fill(uint32_t layer) const {
  const auto* filter = counters();
  return filter == nullptr ? std::get<BitLayers>(form_).Fill(layer) : filter->layer(layer).Fill();
}

// A slice of m positions of which a share f is in use holds ln(1 - f) / ln(1 - 1/m) hashes. Hashes
// that came while a layer filled and that earlier layers took for their own are missing from its
// slices.
uint64_t IndexCounters::Distinct() const {
  const double positions = geometry().slice_positions;
  if (positions < 2) return layers();
  double distinct = 0;
  double came = 1;  // for each hash that went to this layer
  for (uint32_t i = 0; i < layers(); ++i) {
    const double fill = std::min(Fill(i), 1 - 1 / (2 * positions));
    distinct += came * std::log1p(-fill) / std::log1p(-1 / positions);
    came /= 1 - std::min(std::pow(Fill(i), geometry().slices), 0.9);
    came = std::min(came, 1000.0);
  }
  return static_cast<uint64_t>(std::llround(distinct));
}

uint64_t IndexCounters::Count() const {
  const auto* filter = counters();
  if (filter == nullptr) return std::get<BitLayers>(form_).Count();
  return filter->Count() - std::min(filter->Count(), filter->stuck_count());
}

uint64_t IndexCounters::Ignored() const {
  const auto* filter = counters();
  if (filter == nullptr) return std::get<BitLayers>(form_).ignored();
  return filter->ignored_decrements() / filter->geometry().slices + filter->stuck_count();
}

}  // namespace tamis
