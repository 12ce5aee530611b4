#include "tamis/import/text_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <istream>
#include <iterator>
#include <sstream>
#include <string>

namespace tamis {
namespace {

using namespace std::string_literals;
using testing::HasSubstr;

std::string Gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string Zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);  // the program zstd does so, too
  packed.resize(ZSTD_compress2(context, packed.data(), packed.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return packed;
}

// The text; or the error in its place.
std::string Read(const std::string& bytes) {
  std::istringstream source(bytes);
  TextInput input(source.rdbuf());
  std::istream stream(&input);
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  return input.status().ok() ? text : "! " + input.status().message();
}

std::string Utf16(const std::string& ascii, bool little) {
  std::string out;
  for (const char c : ascii) out += little ? std::string{c, '\0'} : std::string{'\0', c};
  return out;
}

std::string Long() {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += "row " + std::to_string(i) + "\n";
  return text;
}

TEST(TextInputTest, PlainTextIsAsItIs) {
  for (const std::string& text : {""s, "a"s, "a,b\n1,2\n"s, "\xff"s, Long()}) {
    EXPECT_EQ(Read(text), text);
  }
}

TEST(TextInputTest, PackedTextIsUnpacked) {
  for (const std::string& text : {""s, "a,b\n"s, Long()}) {
    EXPECT_EQ(Read(Gzip(text)), text);
    EXPECT_EQ(Read(Gzip(text) + Gzip(text)), text + text) << "two members";
    EXPECT_EQ(Read(Zstd(text)), text);
    EXPECT_EQ(Read(Zstd(text) + Zstd(text)), text + text) << "two frames";
  }
}

TEST(TextInputTest, PackedTextThatIsCutOffOrDamagedIsAnError) {
  const std::string gzip = Gzip(Long());
  const std::string zstd = Zstd(Long());
  EXPECT_THAT(Read(gzip.substr(0, gzip.size() / 2)), HasSubstr("! the gzip data is cut off"));
  EXPECT_THAT(Read(zstd.substr(0, zstd.size() / 2)), HasSubstr("! the zstd data is cut off"));
  std::string damaged = gzip;
  damaged[damaged.size() / 2] ^= 0x55;
  EXPECT_THAT(Read(damaged), HasSubstr("! the gzip data"));
  damaged = zstd;
  damaged[damaged.size() / 2] ^= 0x55;
  EXPECT_THAT(Read(damaged), HasSubstr("! the zstd data"));
}

TEST(TextInputTest, PackedTextMayBePackedAgain) {
  EXPECT_EQ(Read(Gzip(Gzip("a,b\n"))), "a,b\n");
  EXPECT_EQ(Read(Zstd(Gzip(Zstd(Long())))), Long());
  std::string packed = "a";
  for (int i = 0; i < 5; ++i) packed = Gzip(packed);
  EXPECT_THAT(Read(packed), HasSubstr("! the input is packed more than 4 times"));
  EXPECT_THAT(Read(Gzip("BZh91AY")), HasSubstr("bzip2 -dc"));
}

TEST(TextInputTest, FramesThatReadersSkipMayComeFirst) {
  EXPECT_EQ(Read("\x50\x2a\x4d\x18\x04\0\0\0...."s + Zstd("a,b\n")), "a,b\n");
  EXPECT_EQ(Read("\x5f\x2a\x4d\x18\0\0\0\0"s + Zstd("a,b\n")), "a,b\n");
}

TEST(TextInputTest, BytesBehindPackedTextAreAnErrorThatSaysSo) {
  const std::string zeros(512, '\0');
  for (const std::string& more : {"x"s, "garbage"s, zeros + "x", zeros + Gzip("3,4\n")}) {
    EXPECT_THAT(Read(Gzip("a,b\n") + more), HasSubstr("! the gzip data is followed by"));
  }
  for (const std::string& more : {"garbage"s, std::string(512, '\0')}) {
    EXPECT_THAT(Read(Zstd("a,b\n") + more), HasSubstr("! the zstd data is followed by"));
  }
}

TEST(TextInputTest, ZeroBytesBehindGzipDataArePadding) {
  for (const size_t zeros : {1, 512, 200'000}) {
    const std::string padding(zeros, '\0');
    EXPECT_EQ(Read(Gzip("a,b\n") + padding), "a,b\n");
    EXPECT_EQ(Read(Gzip("a,b\n") + Gzip("1,2\n") + padding), "a,b\n1,2\n");
    const std::string cut_off = Gzip(Long()).substr(0, 1000);
    EXPECT_THAT(Read(cut_off + padding), HasSubstr("! the gzip data"));
  }
}

TEST(TextInputTest, OtherEncodingsAreConverted) {
  EXPECT_EQ(Read("\xef\xbb\xbf"
                 "a,b"),
            "a,b");
  for (const bool little : {true, false}) {
    const std::string mark = little ? "\xff\xfe" : "\xfe\xff";
    EXPECT_EQ(Read(mark + Utf16("a,b\n", little)), "a,b\n");
    EXPECT_EQ(Read(Utf16("a,b\n", little)), "a,b\n") << "without a mark";
    EXPECT_EQ(Read(mark + Utf16(Long(), little)), Long());
    EXPECT_EQ(Read(Gzip(mark + Utf16(Long(), little))), Long());
    EXPECT_THAT(Read(mark + Utf16("ab", little).substr(0, 3)), HasSubstr("is cut off"));
  }
  EXPECT_EQ(Read("\xff\xfe\0\0a\0\0\0"s), "a");
  EXPECT_EQ(Read("\0\0\xfe\xff\0\0\0a"s), "a");
  EXPECT_EQ(Read("a\0\0\0\xe9\0\0\0"s), "a\xc3\xa9") << "without a mark";
  EXPECT_EQ(Read("\0\0\0a\0\0\0\xe9"s), "a\xc3\xa9") << "without a mark";
  EXPECT_EQ(Read("\xff\xfe\xe9\0"s), "\xc3\xa9");
  EXPECT_THAT(Read("\xff\xfe\x00\xd8\x61\x00"s), HasSubstr("the text is not UTF-16LE"));
}

TEST(TextInputTest, OtherPackingsAreRefusedByName) {
  EXPECT_THAT(Read("BZh91AY"), HasSubstr("bzip2 -dc"));
  EXPECT_THAT(Read("\xfd"
                   "7zXZ\0\0"s),
              HasSubstr("xz -dc"));
  EXPECT_THAT(Read("PK\x03\x04...."), HasSubstr("zip archive"));
  EXPECT_THAT(Read("PAR1...."), HasSubstr("Parquet"));
}

}  // namespace
}  // namespace tamis
