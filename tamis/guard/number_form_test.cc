#include "tamis/guard/number_form.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tamis {
namespace {

std::string FaultOf(const std::vector<std::string>& keys) {
  NumberForm form;
  for (const std::string& key : keys) form.Add(key);
  return std::string(form.Fault());
}

TEST(NumberFormTest, DigitsInGroups) {
  for (const std::string separator :
       {",", ".", "'", "_", " ", "\xc2\xa0", "\xe2\x80\xaf", "\xe2\x80\x99"}) {
    EXPECT_EQ(FaultOf({"7", "999", "1" + separator + "000"}), "digits in groups") << separator;
    EXPECT_EQ(FaultOf({"-1" + separator + "000" + separator + "000", "12" + separator + "345"}),
              "digits in groups")
        << separator;
  }
  EXPECT_EQ(FaultOf({"1,000", "1,001"}), "digits in groups");
  EXPECT_EQ(FaultOf({"1.000", "1.001"}), "") << "these may be fractions";
  EXPECT_EQ(FaultOf({"7", "1,000", "1000"}), "");
  EXPECT_EQ(FaultOf({"7", "1,000", "1,00"}), "");
  EXPECT_EQ(FaultOf({"7", "1,000", "1,0000"}), "");
  EXPECT_EQ(FaultOf({"7", "1234,000"}), "");
  EXPECT_EQ(FaultOf({"7", "1,000", "x"}), "");
}

TEST(NumberFormTest, AddressesAreNoGroups) {
  EXPECT_EQ(FaultOf({"192.168.100.100", "10.100.200.255"}), "");
  EXPECT_EQ(FaultOf({"1.168.100.100", "1.168.100.256"}), "digits in groups");
  EXPECT_EQ(FaultOf({"1.168.100.100", "1.168.100.100.100"}), "digits in groups");
  EXPECT_EQ(FaultOf({"7", "1.168.100.100"}), "digits in groups");
}

TEST(NumberFormTest, GroupsOfOneCountMayBeParts) {
  for (const std::string separator : {"_", " "}) {
    const auto joined = [&](const char* a, const char* b) { return a + separator + b; };
    EXPECT_EQ(FaultOf({joined("1", "100"), joined("2", "100")}), "") << separator;
    EXPECT_EQ(FaultOf({joined("600", joined("123", "456").c_str()),
                       joined("600", joined("123", "457").c_str())}),
              "")
        << separator;
    EXPECT_EQ(FaultOf({joined("1", "100"), joined("1", joined("000", "100").c_str())}),
              "digits in groups")
        << separator;
    EXPECT_EQ(FaultOf({"7", joined("1", "100")}), "digits in groups") << separator;
  }
}

TEST(NumberFormTest, FractionsOfZeros) {
  EXPECT_EQ(FaultOf({"1.0", "20.0"}), "a fraction of zeros");
  EXPECT_EQ(FaultOf({"-1.00", "2000.00"}), "a fraction of zeros");
  EXPECT_EQ(FaultOf({"1.0", "2.5"}), "");
  EXPECT_EQ(FaultOf({"1.0", "2"}), "");
  EXPECT_EQ(FaultOf({"1.", "2."}), "");
}

TEST(NumberFormTest, Exponents) {
  EXPECT_EQ(FaultOf({"1.2E+09", "3e5"}), "an exponent");
  EXPECT_EQ(FaultOf({"1e-5", "2.E7"}), "an exponent");
  EXPECT_EQ(FaultOf({"2024E0001", "2024E0002"}), "") << "codes";
  EXPECT_EQ(FaultOf({"2e5", "3e+5"}), "an exponent");
  EXPECT_EQ(FaultOf({"-2e5", "3e5"}), "");
  EXPECT_EQ(FaultOf({"1e5", "12"}), "");
  EXPECT_EQ(FaultOf({"1e5", "1e5f"}), "");
  EXPECT_EQ(FaultOf({"1e", "1e"}), "");
}

TEST(NumberFormTest, ZerosInFront) {
  EXPECT_EQ(FaultOf({"0001", "1000"}), "zeros in front, all of one width");
  EXPECT_EQ(FaultOf({"1000", "0001"}), "zeros in front, all of one width");
  EXPECT_EQ(FaultOf({"01", "02"}), "zeros in front, all of one width");
  EXPECT_EQ(FaultOf({"0", "1"}), "");
  EXPECT_EQ(FaultOf({"0001", "100"}), "");
  EXPECT_EQ(FaultOf({"0001", "100x"}), "");
  EXPECT_EQ(FaultOf({"1001", "1002"}), "");
  EXPECT_EQ(FaultOf({"01"}), "");
}

TEST(NumberFormTest, OneNumberSaysNothing) {
  EXPECT_EQ(FaultOf({"1,000"}), "");
  EXPECT_EQ(FaultOf({"1.0"}), "");
}

}  // namespace
}  // namespace tamis
