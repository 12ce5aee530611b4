// The filters as lists of types for typed suites, and the keys their tests use.
#pragma once

#include <gtest/gtest.h>

#include <type_traits>
#include <variant>

#include "tamis/base/hash.h"
#include "tamis/filter/any_filter.h"

namespace tamis {

// Distinct as long as i < 2^40, since Mix is a bijection: no set is needed to see it.
inline uint64_t Key(uint64_t stream, uint64_t i) { return Mix((stream << 40) + i); }

// Filters that take keys one by one; a fixed one has tests of its own.
template <class F>
concept InsertableFilter = requires(F filter) {
  filter.Insert(uint64_t{});
};

template <class F>
concept ErasableFilter = requires(F filter) {
  filter.Erase(uint64_t{});
};

namespace internal {

template <class... Lists>
struct Joined;
template <class... Fs>
struct Joined<std::tuple<Fs...>> {
  using Types = testing::Types<Fs...>;
};
template <class... Fs, class... Gs, class... Lists>
struct Joined<std::tuple<Fs...>, std::tuple<Gs...>, Lists...>
    : Joined<std::tuple<Fs..., Gs...>, Lists...> {};

template <class Variant>
struct ListsOf;
template <class... Fs>
struct ListsOf<std::variant<Fs...>> {
  using All = typename Joined<
      std::conditional_t<InsertableFilter<Fs>, std::tuple<Fs>, std::tuple<>>...>::Types;
  using Erasable = typename Joined<
      std::conditional_t<ErasableFilter<Fs>, std::tuple<Fs>, std::tuple<>>...>::Types;
};

}  // namespace internal

using AllFilters = internal::ListsOf<FilterVariant>::All;
using ErasableFilters = internal::ListsOf<FilterVariant>::Erasable;

}  // namespace tamis
