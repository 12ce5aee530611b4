#include "tamis/filter.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <string>

#include "tamis/base/hash.h"
#include "tamis/base/random.h"
#include "tamis/filter/any_filter.h"
#include "tamis/filter/filter_file.h"

using tamis::AnyFilter;
using tamis::Bitmap;
using tamis::FailedPrecondition;
using tamis::FilterType;
using tamis::Hash;
using tamis::InvalidArgument;
using tamis::MappedFile;
using tamis::NotFound;
using tamis::OpenMode;
using tamis::ResourceExhausted;
using tamis::Result;
using tamis::Status;
using tamis::StatusCode;
using tamis::TestBit;

struct tamis_filter {
  std::optional<MappedFile> file;  // which the filter reads, so that it ends later
  AnyFilter filter;
};

namespace {

static_assert(TAMIS_OK == static_cast<int>(StatusCode::kOk));
static_assert(TAMIS_INVALID_ARGUMENT == static_cast<int>(StatusCode::kInvalidArgument));
static_assert(TAMIS_NOT_FOUND == static_cast<int>(StatusCode::kNotFound));
static_assert(TAMIS_FAILED_PRECONDITION == static_cast<int>(StatusCode::kFailedPrecondition));
static_assert(TAMIS_DATA_LOSS == static_cast<int>(StatusCode::kDataLoss));
static_assert(TAMIS_RESOURCE_EXHAUSTED == static_cast<int>(StatusCode::kResourceExhausted));
static_assert(TAMIS_INTERNAL == static_cast<int>(StatusCode::kInternal));

struct LastError {
  std::string message;
  const char* text = "";  // the message, or a literal where there was no memory for one
};
thread_local LastError last_error;

tamis_code CodeOf(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kDataLoss:
    case StatusCode::kResourceExhausted:
      return static_cast<tamis_code>(code);
    default:
      return TAMIS_INTERNAL;
  }
}

// A pointer that must not be NULL, if it is needed.
struct Pointer {
  const char* name;
  const void* value;
  bool needed = true;
};

// Checks the pointers, then runs the body, which returns a Status. Nothing is thrown beyond here.
template <class Body>
tamis_code Call(const char* function, std::initializer_list<Pointer> pointers,
                Body&& body) noexcept {
  try {
    Status status;
    for (const Pointer& pointer : pointers) {
      if (pointer.value != nullptr || !pointer.needed) continue;
      status = InvalidArgument(std::string("cannot call ") + function + ": " + pointer.name +
                               " is NULL");
      break;
    }
    if (status.ok()) status = body();
    if (status.ok()) return TAMIS_OK;
    last_error.message = status.message();
    last_error.text = last_error.message.c_str();
    return CodeOf(status.code());
  } catch (const std::bad_alloc&) {
    last_error.text = "cannot do this: there is not enough memory";
    return TAMIS_RESOURCE_EXHAUSTED;
  } catch (...) {
    last_error.text = "cannot do this: the library threw an exception that it does not know";
    return TAMIS_INTERNAL;
  }
}

uint64_t HashOf(uint64_t seed, const void* data, size_t size) {
  return Hash({static_cast<const char*>(data), size}, seed);
}

// Calls visit(hashes, index of the first) -> Status for pieces of the keys, after all were checked.
template <class Visit>
Status ForEachPiece(uint64_t seed, const tamis_key* keys, size_t count, Visit&& visit) {
  for (size_t i = 0; i < count; ++i) {
    if (keys[i].data != nullptr || keys[i].size == 0) continue;
    return InvalidArgument("cannot use keys[" + std::to_string(i) +
                           "]: its data is NULL, its size " + std::to_string(keys[i].size));
  }
  std::array<uint64_t, 1024> hashes;
  for (size_t first = 0; first < count; first += hashes.size()) {
    const size_t n = std::min(hashes.size(), count - first);
    for (size_t i = 0; i < n; ++i) {
      hashes[i] = HashOf(seed, keys[first + i].data, keys[first + i].size);
    }
    TAMIS_RETURN_IF_ERROR(visit(std::span<const uint64_t>(hashes.data(), n), first));
  }
  return Status::Ok();
}

const std::vector<tamis_filter_type>& Types() {
  static const std::vector<tamis_filter_type> types = [] {
    std::vector<tamis_filter_type> result;
    // The views are of literals, which end with a zero.
    for (const FilterType& type : AnyFilter::Types()) {
      result.push_back(
          {type.name.data(), type.erases, type.copies, type.summary.data(), type.fixed});
    }
    return result;
  }();
  return types;
}

const tamis_filter_type* TypeOf(const AnyFilter& filter) {
  return &Types()[static_cast<size_t>(&filter.type() - AnyFilter::Types().data())];
}

std::string Quoted(const char* path) { return '"' + std::string(path) + '"'; }

Status Give(Result<AnyFilter> filter, tamis_filter** out) {
  if (!filter.ok()) return filter.status();
  *out = new tamis_filter{std::nullopt, *std::move(filter)};
  return Status::Ok();
}

Status Load(const char* path, tamis_filter** out) {
  TAMIS_ASSIGN_OR_RETURN(const std::string bytes, tamis::ReadFile(path));
  auto filter = AnyFilter::Deserialize(bytes);
  if (!filter.ok()) return filter.status().WithContext(Quoted(path));
  return Give(std::move(filter), out);
}

Status Map(const char* path, tamis_filter** out) {
  TAMIS_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  auto filter = AnyFilter::Deserialize(file.bytes(), OpenMode::kBorrow);
  if (!filter.ok()) return filter.status().WithContext(Quoted(path));
  *out = new tamis_filter{std::move(file), *std::move(filter)};
  return Status::Ok();
}

Status Refused(const AnyFilter& filter) {
  return ResourceExhausted("cannot insert the key: the filter is full; it holds " +
                           std::to_string(filter.Count()) + " keys; make a larger one");
}

Status CheckChanges(const AnyFilter& filter) {
  if (!filter.type().fixed) return Status::Ok();
  return FailedPrecondition("cannot change a filter of type \"" + std::string(filter.type().name) +
                            "\": it is built of all its keys at once, by tamis_filter_build()");
}

Status CheckErases(const AnyFilter& filter) {
  if (filter.type().erases) return Status::Ok();
  return FailedPrecondition("cannot erase from a filter of type \"" +
                            std::string(filter.type().name) +
                            "\"; tamis_filter_type_at() tells which types can");
}

// Why not all keys were erased; `stuck` is what StuckErases() was before.
Status NotErased(const AnyFilter& filter, uint64_t stuck) {
  if (filter.StuckErases() == stuck) {
    return NotFound("cannot erase the key: it is not in the filter");
  }
  return FailedPrecondition(
      "cannot erase the key: the filter cannot tell it from those of another layer; build it again "
      "from its keys");
}

}  // namespace

const char* tamis_last_error(void) { return last_error.text; }

const tamis_filter_type* tamis_filter_type_at(size_t index) {
  const tamis_filter_type* type = nullptr;
  Call(__func__, {}, [&] {
    if (index < Types().size()) type = &Types()[index];
    return Status::Ok();
  });
  return type;
}

uint64_t tamis_random_seed(void) {
  uint64_t seed = 0;
  Call(__func__, {}, [&] {
    seed = tamis::SeedFromSystem();
    return Status::Ok();
  });
  return seed;
}

tamis_code tamis_filter_create(const tamis_filter_options* options, tamis_filter** filter) {
  if (filter != nullptr) *filter = nullptr;
  return Call(__func__,
              {{"options", options},
               {"options->type", options == nullptr ? nullptr : options->type},
               {"filter", filter}},
              [&] {
                return Give(AnyFilter::Create(options->type, {.capacity = options->capacity,
                                                              .fpr = options->fpr,
                                                              .seed = options->seed}),
                            filter);
              });
}

tamis_code tamis_filter_build(const tamis_filter_options* options, const tamis_key* keys,
                              size_t count, tamis_filter** filter) {
  if (filter != nullptr) *filter = nullptr;
  return Call(
      __func__,
      {{"options", options},
       {"options->type", options == nullptr ? nullptr : options->type},
       {"keys", keys, count != 0},
       {"filter", filter}},
      [&] {
        // Refused before the keys are read. A capacity of 0 asks for room for the keys alone.
        const tamis::FilterOptions wanted{std::max<uint64_t>(1, options->capacity), options->fpr};
        TAMIS_RETURN_IF_ERROR(wanted.Validate());
        std::vector<uint64_t> hashes;
        hashes.reserve(count);
        TAMIS_RETURN_IF_ERROR(
            ForEachPiece(options->seed, keys, count, [&](std::span<const uint64_t> piece, size_t) {
              hashes.insert(hashes.end(), piece.begin(), piece.end());
              return Status::Ok();
            }));
        std::sort(hashes.begin(), hashes.end());
        hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
        return Give(AnyFilter::Build(
                        options->type,
                        {.capacity = options->capacity, .fpr = options->fpr, .seed = options->seed},
                        hashes),
                    filter);
      });
}

tamis_code tamis_filter_load(const char* path, tamis_filter** filter) {
  if (filter != nullptr) *filter = nullptr;
  return Call(__func__, {{"path", path}, {"filter", filter}}, [&] { return Load(path, filter); });
}

tamis_code tamis_filter_map(const char* path, tamis_filter** filter) {
  if (filter != nullptr) *filter = nullptr;
  return Call(__func__, {{"path", path}, {"filter", filter}}, [&] { return Map(path, filter); });
}

tamis_code tamis_filter_deserialize(const void* bytes, size_t size, tamis_filter** filter) {
  if (filter != nullptr) *filter = nullptr;
  return Call(__func__, {{"bytes", bytes, size != 0}, {"filter", filter}}, [&] {
    return Give(AnyFilter::Deserialize({static_cast<const char*>(bytes), size}), filter);
  });
}

void tamis_filter_free(tamis_filter* filter) { delete filter; }

tamis_code tamis_filter_save(const tamis_filter* filter, const char* path) {
  return Call(__func__, {{"filter", filter}, {"path", path}},
              [&] { return tamis::ReplaceFile(path, filter->filter.Serialize()); });
}

tamis_code tamis_filter_serialize(const tamis_filter* filter, void** bytes, size_t* size) {
  if (bytes != nullptr) *bytes = nullptr;
  if (size != nullptr) *size = 0;
  return Call(__func__, {{"filter", filter}, {"bytes", bytes}, {"size", size}}, [&] {
    const std::string serialized = filter->filter.Serialize();
    *bytes = std::malloc(serialized.size());
    if (*bytes == nullptr) throw std::bad_alloc();
    std::memcpy(*bytes, serialized.data(), serialized.size());
    *size = serialized.size();
    return Status::Ok();
  });
}

void tamis_bytes_free(void* bytes) { std::free(bytes); }

tamis_code tamis_filter_insert(tamis_filter* filter, const void* key, size_t size) {
  return Call(__func__, {{"filter", filter}, {"key", key, size != 0}}, [&] {
    TAMIS_RETURN_IF_ERROR(CheckChanges(filter->filter));
    const uint64_t hash = HashOf(filter->filter.seed(), key, size);
    return filter->filter.Insert({&hash, 1}) == 1 ? Status::Ok() : Refused(filter->filter);
  });
}

tamis_code tamis_filter_erase(tamis_filter* filter, const void* key, size_t size) {
  return Call(__func__, {{"filter", filter}, {"key", key, size != 0}}, [&] {
    TAMIS_RETURN_IF_ERROR(CheckErases(filter->filter));
    const uint64_t hash = HashOf(filter->filter.seed(), key, size);
    const uint64_t stuck = filter->filter.StuckErases();
    const bool erased = TestBit(filter->filter.Erase({&hash, 1}), 0);
    return erased ? Status::Ok() : NotErased(filter->filter, stuck);
  });
}

int tamis_filter_may_contain(const tamis_filter* filter, const void* key, size_t size) {
  bool answer = false;
  const tamis_code code = Call(__func__, {{"filter", filter}, {"key", key, size != 0}}, [&] {
    const uint64_t hash = HashOf(filter->filter.seed(), key, size);
    answer = filter->filter.MayContain(hash);
    return Status::Ok();
  });
  return code == TAMIS_OK ? int{answer} : -1;
}

tamis_code tamis_filter_insert_many(tamis_filter* filter, const tamis_key* keys, size_t count,
                                    size_t* inserted) {
  if (inserted != nullptr) *inserted = 0;
  return Call(__func__, {{"filter", filter}, {"keys", keys, count != 0}}, [&] {
    TAMIS_RETURN_IF_ERROR(CheckChanges(filter->filter));
    return ForEachPiece(filter->filter.seed(), keys, count,
                        [&](std::span<const uint64_t> hashes, size_t) {
                          const size_t here = filter->filter.Insert(hashes);
                          if (inserted != nullptr) *inserted += here;
                          return here == hashes.size() ? Status::Ok() : Refused(filter->filter);
                        });
  });
}

tamis_code tamis_filter_erase_many(tamis_filter* filter, const tamis_key* keys, size_t count,
                                   uint8_t* erased) {
  return Call(__func__, {{"filter", filter}, {"keys", keys, count != 0}}, [&] {
    TAMIS_RETURN_IF_ERROR(CheckErases(filter->filter));
    bool all = true;
    const uint64_t stuck = filter->filter.StuckErases();
    TAMIS_RETURN_IF_ERROR(ForEachPiece(filter->filter.seed(), keys, count,
                                       [&](std::span<const uint64_t> hashes, size_t first) {
                                         const Bitmap bits = filter->filter.Erase(hashes);
                                         for (size_t i = 0; i < hashes.size(); ++i) {
                                           all &= TestBit(bits, i);
                                           if (erased != nullptr)
                                             erased[first + i] = TestBit(bits, i);
                                         }
                                         return Status::Ok();
                                       }));
    return all ? Status::Ok() : NotErased(filter->filter, stuck);
  });
}

tamis_code tamis_filter_may_contain_many(const tamis_filter* filter, const tamis_key* keys,
                                         size_t count, uint8_t* answers) {
  return Call(__func__,
              {{"filter", filter}, {"keys", keys, count != 0}, {"answers", answers, count != 0}},
              [&] {
                return ForEachPiece(filter->filter.seed(), keys, count,
                                    [&](std::span<const uint64_t> hashes, size_t first) {
                                      const Bitmap bits = filter->filter.MayContain(hashes);
                                      for (size_t i = 0; i < hashes.size(); ++i) {
                                        answers[first + i] = TestBit(bits, i);
                                      }
                                      return Status::Ok();
                                    });
              });
}

tamis_code tamis_filter_merge(tamis_filter* filter, const tamis_filter* other) {
  return Call(__func__, {{"filter", filter}, {"other", other}}, [&] {
    if (filter == other) return InvalidArgument("cannot merge a filter with itself");
    return filter->filter.Merge(other->filter);
  });
}

tamis_code tamis_filter_clear(tamis_filter* filter) {
  return Call(__func__, {{"filter", filter}}, [&] {
    TAMIS_RETURN_IF_ERROR(CheckChanges(filter->filter));
    filter->filter.Clear();
    return Status::Ok();
  });
}

tamis_code tamis_filter_describe(const tamis_filter* filter, tamis_filter_info* info) {
  return Call(__func__, {{"filter", filter}, {"info", info}}, [&] {
    const AnyFilter& any = filter->filter;
    *info = {TypeOf(any), any.Count(), any.SizeBytes(), any.seed()};
    return Status::Ok();
  });
}

double tamis_filter_expected_fpr(const tamis_filter* filter) {
  double fpr = std::numeric_limits<double>::quiet_NaN();
  Call(__func__, {{"filter", filter}}, [&] {
    fpr = filter->filter.ExpectedFpr();
    return Status::Ok();
  });
  return fpr;
}
