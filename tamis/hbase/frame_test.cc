#include "tamis/hbase/frame.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tamis/base/coding.h"
#include "tamis/hbase/wire.pb.h"

namespace tamis::hbase {
namespace {

void Feed(FrameReader* reader, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto space = reader->Space();
    const size_t size = std::min(space.size(), bytes.size());
    std::memcpy(space.data(), bytes.data(), size);
    reader->Commit(size);
    bytes.remove_prefix(size);
  }
}

std::string Frame(std::string_view body) {
  std::string frame;
  PutBig32(&frame, static_cast<uint32_t>(body.size()));
  return frame + std::string(body);
}

TEST(FrameTest, EncodesACall) {
  pb::RequestHeader header;
  header.set_call_id(1);
  header.set_method_name("GetClusterId");
  header.set_request_param(true);
  std::string out;
  AppendCall(header, pb::GetClusterIdRequest(), "cells", &out);
  EXPECT_EQ(out, std::string("\0\0\0\x19\x12"
                             "\x08\x01\x1a\x0cGetClusterId\x20\x01"
                             "\0cells",
                             29));
}

TEST(FrameTest, ReadsTheAnswerOfARealServer) {
  const std::string id = "0f5c8c4e-4d43-4a5b-9d4e-3c1f6a7b8c9d";
  const std::string bytes = std::string("\0\0\0\x2a\2\x08\1\x26\x0a\x24", 10) + id;
  FrameReader reader(1000);
  Feed(&reader, bytes);
  const auto frame = reader.Next();
  ASSERT_TRUE(frame.ok() && *frame);
  pb::ResponseHeader header;
  const auto parts = ParseAnswer((*frame)->bytes, &header);
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ(header.call_id(), 1u);
  pb::GetClusterIdResponse answer;
  ASSERT_TRUE(answer.ParseFromString(std::string(parts->message)));
  EXPECT_EQ(answer.cluster_id(), id);
  EXPECT_TRUE(parts->cells.empty());
}

TEST(FrameTest, SplitsBytesIntoFramesAtAnyReadSize) {
  std::string bytes;
  for (const size_t size : {0, 1, 100, 200'000, 5}) bytes += Frame(std::string(size, 'x'));
  for (const size_t step : {1, 7, 4096, 1 << 20}) {
    FrameReader reader(1 << 20);
    std::vector<size_t> sizes;
    for (size_t at = 0; at < bytes.size(); at += step) {
      Feed(&reader, std::string_view(bytes).substr(at, step));
      while (true) {
        const auto frame = reader.Next();
        ASSERT_TRUE(frame.ok());
        if (!*frame) break;
        EXPECT_EQ((*frame)->bytes.size(), (*frame)->size);
        sizes.push_back((*frame)->size);
      }
    }
    EXPECT_EQ(sizes, (std::vector<size_t>{0, 1, 100, 200'000, 5}));
    EXPECT_EQ(reader.buffered(), 0u);
  }
}

TEST(FrameTest, MemoryIsProportionalToReceivedBytes) {
  FrameReader reader(256 << 20);
  std::string size;
  PutBig32(&size, 255 << 20);
  Feed(&reader, size + std::string(1000, 'x'));
  EXPECT_FALSE(reader.Next()->has_value());
  reader.Space();
  EXPECT_LE(reader.capacity(), 1u << 20);
}

TEST(FrameTest, ReadsTheHeaderOfATooLargeAnswerAndSkipsTheRest) {
  const std::string header("\2\x08\7", 3);
  const std::string bytes = Frame("0123456789") + Frame(header + std::string(1 << 20, 'x')) +
                            Frame(header + "12345678") + Frame("0123456789");
  for (const size_t step : {1, 7, 4096, 2 << 20}) {
    FrameReader reader(10);
    std::string seen;
    for (size_t at = 0; at < bytes.size(); at += step) {
      Feed(&reader, std::string_view(bytes).substr(at, step));
      while (true) {
        const auto frame = reader.Next();
        ASSERT_TRUE(frame.ok()) << frame.status();
        if (!*frame) break;
        seen += std::to_string((*frame)->size) + ((*frame)->is_cut() ? " cut, " : ", ");
        EXPECT_EQ((*frame)->bytes, (*frame)->is_cut() ? header : "0123456789");
      }
      if (step <= 4096) {
        EXPECT_LE(reader.capacity(), 64u << 10);
      }
    }
    EXPECT_EQ(seen, "10, 1048579 cut, 11 cut, 10, ");
    EXPECT_EQ(reader.buffered(), 0u);
  }
}

TEST(FrameTest, TooLargeFrameThatIsNoAnswerIsAnErrorAtOnce) {
  for (const std::string& body :
       {std::string("\2x"), std::string("\xff\xff\xff\xff\x0f"), std::string("\x0c\x08"),
        std::string(10, '\xff'), std::string("/1.1 400 Bad")}) {
    FrameReader reader(10);
    std::string size;
    PutBig32(&size, 11);
    Feed(&reader, size + body);
    EXPECT_EQ(reader.Next().status().code(), StatusCode::kDataLoss) << body;
  }
}

TEST(FrameTest, ReleasesALargeBuffer) {
  FrameReader reader(256 << 20);
  Feed(&reader, Frame(std::string(20 << 20, 'x')));
  ASSERT_TRUE(reader.Next()->has_value());
  reader.Space();
  EXPECT_LE(reader.capacity(), 4u << 20);
}

}  // namespace
}  // namespace tamis::hbase
