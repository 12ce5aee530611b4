#include "tamis/routing/projection_parts.h"

#include "tamis/base/coding.h"

namespace tamis {
namespace {

uint64_t LayerWords(const SplitGeometry& geometry) { return (geometry.positions() + 63) / 64; }

}  // namespace

void ProjectionParts::Describe(pb::ColumnId* wanted) const {
  wanted->set_generation(generation_);
  if (layers_.empty()) return;
  const bool full = layers_.back().size() == LayerWords(geometry_);
  wanted->set_first_layer(static_cast<uint32_t>(layers_.size() - (full ? 0 : 1)));
  wanted->set_first_word(full ? 0 : layers_.back().size());
}

bool ProjectionParts::Add(const pb::Projection& part) {
  const uint64_t layer_words = LayerWords(geometry_);
  pb::ColumnId next;
  Describe(&next);
  if (complete_ || part.generation() != generation_ ||
      part.geometry().slices() != geometry_.slices ||
      part.geometry().slice_positions() != geometry_.slice_positions ||
      part.first_layer() != next.first_layer() || part.first_word() != next.first_word()) {
    return false;
  }
  const uint64_t end_layer =
      uint64_t{part.first_layer()} + static_cast<uint64_t>(part.layers_size());
  const uint64_t layer_count = part.layer_count() == 0 ? end_layer : part.layer_count();
  if (part.layers_size() < 1 || end_layer > layer_count || layer_count > max_layers_) return false;
  uint64_t begin = part.first_word();
  for (int i = 0; i < part.layers_size(); ++i) {
    const uint64_t words = part.layers(i).size() / 8;
    const bool may_end_inside = i + 1 == part.layers_size() && part.layer_count() != 0;
    if (part.layers(i).size() % 8 != 0 || words == 0 || words > layer_words - begin) return false;
    if (!may_end_inside && words != layer_words - begin) return false;
    begin = 0;
  }
  for (int i = 0; i < part.layers_size(); ++i) {
    if (i > 0 || part.first_word() == 0) layers_.emplace_back();
    std::vector<uint64_t>& layer = layers_.back();
    Reader reader(part.layers(i));
    for (size_t word = 0; word < part.layers(i).size() / 8; ++word) {
      layer.push_back(reader.Fixed64());
    }
  }
  complete_ = layers_.size() == layer_count && layers_.back().size() == layer_words;
  return true;
}

void ProjectionParts::Flip(uint64_t layer, uint64_t position, bool bit) {
  const uint64_t word = position / 64;
  if (layer >= layers_.size() || word >= layers_[layer].size()) return;  // still to come
  const uint64_t mask = uint64_t{1} << (position % 64);
  layers_[layer][word] = bit ? layers_[layer][word] | mask : layers_[layer][word] & ~mask;
}

}  // namespace tamis
