// The overlay beside the real file system, and a store that is opened through it.
#include "tamis/rocks/overlay_file_system.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "tamis/rocks/store.h"

namespace tamis {
namespace {

class OverlayFileSystemTest : public testing::Test {
 protected:
  OverlayFileSystemTest()
      : directory_(std::filesystem::path(testing::TempDir()) /
                   ("overlay_file_system_test." + std::to_string(::getpid()))) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directory(directory_);
    env_ = rocksdb::NewCompositeEnv(std::make_shared<OverlayFileSystem>(rocksdb::Env::Default()));
  }
  ~OverlayFileSystemTest() override { std::filesystem::remove_all(directory_); }

  std::string Path(const std::string& name) const { return directory_ / name; }
  std::string Read(const std::string& name) const {
    std::string text;
    const rocksdb::Status status = rocksdb::ReadFileToString(env_.get(), Path(name), &text);
    return status.ok() ? text : status.ToString();
  }
  void Write(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(rocksdb::WriteStringToFile(env_.get(), text, Path(name)).ok());
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    EXPECT_TRUE(env_->GetChildren(directory_, &names).ok());
    return names;
  }
  // The bytes and times of the files, as the directory itself has them.
  std::map<std::string, std::pair<std::string, std::filesystem::file_time_type>> OnDisk() const {
    std::map<std::string, std::pair<std::string, std::filesystem::file_time_type>> files;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      std::ifstream in(entry.path(), std::ios::binary);
      files[entry.path().filename()] = {std::string(std::istreambuf_iterator<char>(in), {}),
                                        entry.last_write_time()};
    }
    return files;
  }

  const std::filesystem::path directory_;
  std::unique_ptr<rocksdb::Env> env_;
};

TEST_F(OverlayFileSystemTest, ChangesAreVisibleAndTheDirectoryIsUnchanged) {
  std::ofstream(Path("kept")) << "kept";
  std::ofstream(Path("replaced")) << "old";
  std::ofstream(Path("deleted")) << "gone";
  const auto before = OnDisk();
  Write("made", "new");
  Write("temporary", "new");
  EXPECT_TRUE(env_->RenameFile(Path("temporary"), Path("replaced")).ok());
  EXPECT_TRUE(env_->DeleteFile(Path("deleted")).ok());
  EXPECT_TRUE(env_->DeleteFile(Path("deleted")).IsPathNotFound());
  EXPECT_EQ(Read("kept") + Read("made") + Read("replaced"), "keptnewnew");
  EXPECT_TRUE(env_->FileExists(Path("deleted")).IsNotFound() ||
              env_->FileExists(Path("deleted")).IsPathNotFound());
  EXPECT_EQ(Names(), (std::vector<std::string>{"kept", "made", "replaced"}));
  uint64_t bytes = 0;
  EXPECT_TRUE(env_->GetFileSize(Path("made"), &bytes).ok());
  EXPECT_EQ(bytes, 3u);
  EXPECT_TRUE(env_->RenameFile(Path("kept"), Path("moved")).IsNotSupported());
  EXPECT_EQ(OnDisk(), before);
}

TEST_F(OverlayFileSystemTest, AFileThatIsDeletedCanBeMadeAgain) {
  std::ofstream(Path("file")) << "old";
  EXPECT_TRUE(env_->DeleteFile(Path("file")).ok());
  Write("file", "new");
  EXPECT_EQ(Read("file"), "new");
  EXPECT_TRUE(env_->DeleteFile(Path("file")).ok());
  EXPECT_FALSE(env_->FileExists(Path("file")).ok());
  EXPECT_TRUE(Names().empty());
}

class ReadOnlyStoreTest : public OverlayFileSystemTest {
 protected:
  Result<std::unique_ptr<Store>> Open(bool read_only) {
    Store::Options options;
    options.directory = directory_;
    options.read_only = read_only;
    return Store::Open(options);
  }
  static void Put(Store* store, const std::string& key, const std::string& value) {
    rocksdb::WriteBatch batch;
    batch.Put(store->rows(), key, value);
    EXPECT_TRUE(store->Write(&batch).ok());
  }
  static std::string Get(const Store& store, const std::string& key) {
    std::string value;
    const auto status = store.db()->Get(rocksdb::ReadOptions(), store.rows(), key, &value);
    return status.ok() ? value : status.ToString();
  }
};

// The last rows are in the log alone, as a process that was killed leaves them.
TEST_F(ReadOnlyStoreTest, ReadsFilesAndLogAndChangesNeither) {
  {
    auto store = *Open(false);
    Put(store.get(), "in a file", "1");
    EXPECT_TRUE(store->Compact().ok());
    EXPECT_TRUE(store->db()->Flush(rocksdb::FlushOptions(), store->rows()).ok());
    Put(store.get(), "in the log", "2");
  }
  const auto before = OnDisk();
  ASSERT_EQ(::chmod(directory_.c_str(), 0555), 0);
  {
    const auto store = Open(true);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ(Get(**store, "in a file") + Get(**store, "in the log"), "12");
    EXPECT_EQ((*store)->RefuseChange().code(), StatusCode::kInvalidArgument);
    Put(store->get(), "the cluster's own", "3");
    EXPECT_EQ(Get(**store, "the cluster's own"), "3");
    EXPECT_TRUE((*store)->db()->Flush(rocksdb::FlushOptions(), (*store)->rows()).ok());
    EXPECT_EQ(Get(**store, "the cluster's own"), "3");
  }
  ASSERT_EQ(::chmod(directory_.c_str(), 0755), 0);
  EXPECT_EQ(OnDisk(), before);
  const auto store = Open(false);
  EXPECT_EQ(Get(**store, "in the log"), "2");
  EXPECT_NE(Get(**store, "the cluster's own"), "3");
}

TEST_F(ReadOnlyStoreTest, OneProcessHasAStoreOpenInOneWay) {
  {
    const auto writer = Open(false);
    ASSERT_TRUE(writer.ok()) << writer.status();
    EXPECT_EQ(Open(true).status().code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(Open(false).status().code(), StatusCode::kFailedPrecondition);
  }
  const auto reader = Open(true);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE(Open(true).ok());
  EXPECT_EQ(Open(false).status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(ReadOnlyStoreTest, MakesNoStore) {
  EXPECT_EQ(Open(true).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(Names().empty());
}

}  // namespace
}  // namespace tamis
