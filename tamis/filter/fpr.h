// The formulas of the filters as pure functions: false-positive rates, sizes, counter overflow.
//
// Each names the paper it comes from; the tests hold every filter against them. Counts are keys,
// sizes are bits unless the name says otherwise.
#pragma once

#include <array>
#include <cstdint>

namespace tamis::fpr {

// Any approximate set of n keys needs at least this many bits: n log2(1/fpr) (Carter et al. 1978).
double InformationBound(double keys, double fpr);

// Bloom 1970, with the usual approximation: (1 - e^(-kn/m))^k.
double Bloom(double bits, double keys, double hashes);
// Bits for `keys` at `fpr` with the best number of hashes: -n ln p / (ln 2)^2.
double BloomBits(double keys, double fpr);
// The best number of hashes, (m/n) ln 2, rounded to the better neighbour; at least 1.
uint32_t BloomHashes(double bits, double keys);

// Split-block Bloom filter (Putze, Sanders, Singler 2007, with one bit in each 32-bit lane of a
// block; other widths likewise): the mean of (1 - (31/32)^i)^lanes over the Poisson number i of
// keys in a block.
double SplitBlock(double bits_per_key, uint32_t lanes, uint32_t lane_bits = 32);
// The least bits per key at which SplitBlock is at most `fpr`.
double SplitBlockBits(double fpr, uint32_t lanes, uint32_t lane_bits = 32);

// Cuckoo filter (Fan et al. 2014, section 5): two buckets of 4 slots at this load, tags uniform
// over 2^tag_bits - 1 values: 1 - (1 - 1/(2^f - 1))^(8 load).
double Cuckoo(uint32_t tag_bits, double load);

// Bits per key of a cuckoo filter with 4 slots whose tags may have any width, (log2(1/fpr) + 3) /
// load, one bit of the width less when semi-sorted (the same, section 5.2).
double CuckooBits(double fpr, double load, bool semi_sorted);

// Lines that hold fingerprints of their own keys: any of `keys` others in as many lines has the
// same line and the same fingerprint of so many bits, 1 - (1 - 1 / (lines 2^bits))^keys.
double Fingerprints(double keys, double lines, uint32_t bits);
// How many of the keys of a line find no room in it: the mean of max(0, i - slots) over the Poisson
// number i of keys, and the share of lines that have such keys.
double Excess(double keys_per_line, uint32_t slots);
double Exceeds(double keys_per_line, uint32_t slots);

// Split counting Bloom filter: the share of a slice's m positions that n keys fill,
// 1 - (1 - 1/m)^n, and the false-positive rate of k slices, fill^k. It is exact up to the spread
// of the fill.
double SplitFill(double slice_positions, double keys);
double Split(double slice_positions, double keys, double slices);
// d layers of rate p each: 1 - (1 - p)^d.
double Layers(double fpr, double layers);

// The probability that a counter reaches j or more when each of n keys raises one of m counters:
// the exact binomial tail in its Poisson limit of mean n/m, summed from its small end (1 minus the
// head cancels to 2^-52).
double CounterTail(double mean, uint32_t j);
// The split counting paper's bound of the same: (e mean / j)^j / sqrt(2 pi j).
double CounterTailBound(double mean, uint32_t j);
// The mean of the largest of so many counters, each of that mean.
double LargestCounter(double mean, double counters);

// How many of the keys each of 4 subtables holds when every key goes to the least loaded of its 4
// buckets, one in each subtable, and to the leftmost of several: shares of 1. The limit of many
// buckets (Mitzenmacher and Voecking 1999): x(i, h), the share of the buckets of subtable i that
// hold h keys or more, grows by the probability that a key finds h keys there, more in all buckets
// to the left and no less in all to the right. Buckets are taken to have room for 32 keys.
std::array<double, 4> DLeftShares(double keys, double buckets_per_subtable);

}  // namespace tamis::fpr
