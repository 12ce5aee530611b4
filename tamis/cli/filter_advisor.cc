#include "tamis/cli/filter_advisor.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "tamis/filter/fpr.h"

namespace tamis {
namespace {

// Up to the small part by which a whole number of hash functions misses the formula, and which a
// filter makes good when it is created.
bool KeepsRate(const FilterType& type, double fpr) {
  return AnyFilter::FprAtCapacity(type, fpr) <= 1.03 * fpr;
}

std::string CopiesText(uint32_t copies) {
  return copies == 0 ? "-" : copies == UINT32_MAX ? "any" : std::to_string(copies);
}

}  // namespace

Result<const FilterType*> Recommended(double fpr, const FilterNeeds& needs) {
  const FilterType* best = nullptr;
  double lowest = 1;
  for (const FilterType& type : AnyFilter::Types()) {
    if (!needs.MetBy(type)) continue;
    lowest = std::min(lowest, AnyFilter::FprAtCapacity(type, fpr));
    if (!KeepsRate(type, fpr)) continue;
    if (best == nullptr ||
        AnyFilter::BitsPerKey(type, fpr) < 0.8 * AnyFilter::BitsPerKey(*best, fpr)) {
      best = &type;
    }
  }
  if (best != nullptr) return best;
  return InvalidArgument(fmt::format(
      "cannot recommend a type of filter: none that does what is needed keeps the rate {:g}; the "
      "lowest is {:.2g}",
      fpr, lowest));
}

Result<std::string> FilterAdvice(const FilterOptions& options, const FilterNeeds& needs) {
  TAMIS_RETURN_IF_ERROR(options.Validate());
  TAMIS_ASSIGN_OR_RETURN(const FilterType* best, Recommended(options.fpr, needs));
  const auto keys = static_cast<double>(options.capacity);
  const double best_bits = AnyFilter::BitsPerKey(*best, options.fpr);
  std::string table = fmt::format("{:<16} {:>8} {:>10} {:>9}  {:<6} {:<7} {}\n", "type", "bits/key",
                                  "size", "fpr", "erases", "copies", "");
  std::string others;
  for (const FilterType& type : AnyFilter::Types()) {
    const double bits = AnyFilter::BitsPerKey(type, options.fpr);
    const bool keeps_rate = KeepsRate(type, options.fpr);
    table += fmt::format("{:<16} {:>8.2f} {:>10} {:>9.2g}  {:<6} {:<7} {}\n", type.name, bits,
                         SizeText(bits * keys / 8), AnyFilter::FprAtCapacity(type, options.fpr),
                         type.erases ? "yes" : "no", CopiesText(type.copies),
                         keeps_rate ? type.summary : "(does not keep the rate)");
    if (!needs.MetBy(type) || !keeps_rate || &type == best) continue;
    const double more = 100 * (bits / best_bits - 1);
    if (&type < best) {
      others += fmt::format("  {} would rank first, but takes {:.0f} % more\n", type.name, more);
    } else if (more < -1) {
      others += fmt::format("  {} takes {:.0f} % less, but ranks lower\n", type.name, -more);
    }
  }
  return table +
         fmt::format("\nany filter needs at least {:.2f} bits a key at {:g}\ntake {}: {}\n",
                     fpr::InformationBound(1, options.fpr), options.fpr, best->name,
                     best->summary) +
         others;
}

std::string SizeText(double bytes) {
  if (bytes < 1024) return fmt::format("{:.0f} bytes", bytes);
  bytes /= 1024;
  for (const char* unit : {"KiB", "MiB", "GiB"}) {
    if (bytes < 1024) return fmt::format("{:.{}f} {}", bytes, bytes < 10 ? 2 : 0, unit);
    bytes /= 1024;
  }
  return fmt::format("{:.2f} TiB", bytes);
}

}  // namespace tamis
