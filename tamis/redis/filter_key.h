// FilterKey: a key opened for a command that wants a filter of one type under it.
#pragma once

#include <utility>

#include "tamis/redis/data_type.h"
#include "tamis/redis/server.h"

namespace tamis::redis {

template <class Filter>
class FilterKey {
 public:
  FilterKey(Ctx* ctx, String* name, int mode)
      : key_(static_cast<Key*>(server.OpenKey(ctx, name, mode))) {
    if (key_ == nullptr || server.KeyType(key_) == kKeyEmpty) {
      missing_ = true;
    } else if (server.KeyType(key_) == kKeyModule &&
               server.ModuleTypeGetType(key_) == data_type<Filter>) {
      filter_ = static_cast<Filter*>(server.ModuleTypeGetValue(key_));
    }
  }
  FilterKey(const FilterKey&) = delete;
  FilterKey& operator=(const FilterKey&) = delete;
  ~FilterKey() {
    if (key_ != nullptr) server.CloseKey(key_);
  }

  bool missing() const { return missing_; }
  bool other_type() const { return !missing_ && filter_ == nullptr; }
  Filter* get() const { return filter_; }  // nullptr when missing or of another type
  Filter* operator->() const { return filter_; }
  Filter& operator*() const { return *filter_; }

  // REQUIRES: missing() and opened for writing.
  void Set(Filter filter) {
    filter_ = new Filter(std::move(filter));
    server.ModuleTypeSetValue(key_, data_type<Filter>, filter_);
    missing_ = false;
  }

  // REQUIRES: there is one, opened for writing.
  void Delete() {
    filter_ = nullptr;
    server.DeleteKey(key_);
    missing_ = true;
  }

 private:
  Key* key_;
  Filter* filter_ = nullptr;
  bool missing_ = false;
};

}  // namespace tamis::redis
