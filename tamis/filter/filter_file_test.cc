#include "tamis/filter/filter_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "tamis/filter/any_filter.h"

namespace tamis {
namespace {

using testing::HasSubstr;

class FilterFileTest : public testing::Test {
 protected:
  FilterFileTest() {
    std::string name = testing::TempDir() + "filter_file_test.XXXXXX";
    directory_ = mkdtemp(name.data());
  }
  ~FilterFileTest() override { std::filesystem::remove_all(directory_); }

  std::string Path(const std::string& name) const { return directory_ / name; }
  // How many files there are.
  ptrdiff_t Files() const {
    return std::distance(std::filesystem::directory_iterator(directory_), {});
  }

  std::filesystem::path directory_;
};

TEST_F(FilterFileTest, WrittenFileIsReadAndMapped) {
  for (const std::string& bytes : {std::string(100'000, 'x'), std::string()}) {
    ASSERT_TRUE(ReplaceFile(Path("f"), bytes).ok());
    EXPECT_EQ(*ReadFile(Path("f")), bytes);
    EXPECT_EQ(MappedFile::Open(Path("f"))->bytes(), bytes);
  }
  EXPECT_EQ(Files(), 1);
}

TEST_F(FilterFileTest, AReplacedFileKeepsItsMode) {
  ASSERT_TRUE(ReplaceFile(Path("f"), "old").ok());
  ASSERT_EQ(chmod(Path("f").c_str(), 0640), 0);
  ASSERT_TRUE(ReplaceFile(Path("f"), "new").ok());
  struct stat info {};
  ASSERT_EQ(stat(Path("f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST_F(FilterFileTest, ALinkStaysAndTheFileThatItLeadsToIsReplaced) {
  std::filesystem::create_directory(Path("data"));
  ASSERT_TRUE(ReplaceFile(Path("data/1"), "old").ok());
  std::filesystem::create_symlink("1", Path("data/latest"));
  std::filesystem::create_symlink("data/latest", Path("current"));
  std::filesystem::create_symlink(Path("current"), Path("absolute"));
  for (const char* name : {"current", "absolute"}) {
    ASSERT_TRUE(ReplaceFile(Path(name), name).ok());
    EXPECT_EQ(*ReadFile(Path("data/1")), name);
    EXPECT_TRUE(std::filesystem::is_symlink(Path(name)));
    EXPECT_TRUE(std::filesystem::is_symlink(Path("data/latest")));
  }
}

TEST_F(FilterFileTest, ALinkToNothingLeadsToANewFile) {
  std::filesystem::create_directory(Path("data"));
  std::filesystem::create_symlink("data/1", Path("current"));
  ASSERT_TRUE(ReplaceFile(Path("current"), "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(Path("current")));
  EXPECT_EQ(*ReadFile(Path("data/1")), "new");
}

TEST_F(FilterFileTest, LinksInACircleAreAnError) {
  std::filesystem::create_symlink("b", Path("a"));
  std::filesystem::create_symlink("a", Path("b"));
  EXPECT_EQ(ReplaceFile(Path("a"), "new").code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Files(), 2);
}

TEST_F(FilterFileTest, IrregularFileIsNeitherReplacedNorRead) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  std::filesystem::create_directory(Path("directory"));
  std::filesystem::create_symlink("/dev/null", Path("device"));
  for (const char* name : {"pipe", "directory", "device"}) {
    const Status replaced = ReplaceFile(Path(name), "new");
    EXPECT_EQ(replaced.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(replaced.message(), HasSubstr(Path(name) + "\": it is a " + name));
    for (const Status& status :
         {ReadFile(Path(name)).status(), MappedFile::Open(Path(name)).status()}) {
      EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
      EXPECT_THAT(status.message(), HasSubstr(Path(name) + "\": it is a " + name));
    }
  }
  EXPECT_EQ(Files(), 3);
  struct stat info {};
  ASSERT_EQ(stat("/dev/null", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
}

TEST_F(FilterFileTest, MissingFileIsNotFound) {
  EXPECT_EQ(ReadFile(Path("absent")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(MappedFile::Open(Path("absent")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(ReplaceFile(Path("absent/f"), "new").code(), StatusCode::kNotFound);
}

// A mapped one would end the process here.
TEST_F(FilterFileTest, AFileThatIsCutWhileItIsReadGivesFewerBytes) {
  const std::string whole =
      AnyFilter::Create("blocked", {.capacity = 2'000'000, .fpr = 0.01})->Serialize();
  ASSERT_TRUE(ReplaceFile(Path("f"), whole).ok());
  std::atomic<bool> done = false;
  std::thread writer([&] {
    const int file = open(Path("f").c_str(), O_WRONLY | O_CLOEXEC);
    while (!done) {
      EXPECT_EQ(ftruncate(file, 0), 0);
      EXPECT_EQ(pwrite(file, whole.data(), whole.size(), 0), static_cast<ssize_t>(whole.size()));
    }
    close(file);
  });
  for (int i = 0; i < 200; ++i) {
    const auto bytes = ReadFile(Path("f"));
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    ASSERT_LE(bytes->size(), whole.size());
    (void)AnyFilter::Deserialize(*bytes);  // either
  }
  done = true;
  writer.join();
}

}  // namespace
}  // namespace tamis
