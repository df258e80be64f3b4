#include "cluster_model/store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "closeknit/v1/store.pb.h"
#include "cluster_model/store/rocks_store.h"

namespace closeknit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Records = std::vector<std::pair<std::string, std::string>>;

RecordWrite Put(Table table, std::string key, std::string value) { return {table, std::move(key), std::move(value)}; }
RecordWrite Delete(Table table, std::string key) { return {table, std::move(key), std::nullopt}; }

Records All(const Store& store, Table table) {
  Records records;
  const absl::Status scanned = store.Scan(table, [&](absl::string_view key, absl::string_view value) {
    records.emplace_back(std::string(key), std::string(value));
    return true;
  });
  EXPECT_TRUE(scanned.ok()) << scanned;
  return records;
}

// A directory of its own for each test, removed after it. A child process of a death test finds its parent's through the environment.
class RocksStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";  // RocksDB's threads do not survive a plain fork
    if (const char* inherited = getenv("CLOSEKNIT_STORE_TEST_DIRECTORY"); inherited != nullptr) {
      directory_ = inherited;
      return;
    }
    std::string pattern = (std::filesystem::temp_directory_path() / "closeknit-store-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    parent_ = pattern;
    directory_ = parent_ + "/store";
    setenv("CLOSEKNIT_STORE_TEST_DIRECTORY", directory_.c_str(), 1);
  }
  void TearDown() override {
    if (parent_.empty()) return;
    unsetenv("CLOSEKNIT_STORE_TEST_DIRECTORY");
    std::filesystem::remove_all(parent_);
  }

  std::unique_ptr<Store> Open() {
    absl::StatusOr<std::unique_ptr<Store>> store = OpenRocksStore(directory_);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }

  // `count` jobs, each by a commit of its own, with values of 300 bytes.
  void CommitJobs(Store* store, int first, int count) {
    for (int job = first; job < first + count; ++job) {
      const absl::Status committed = store->Commit({Put(Table::kJobs, JobKey(job), std::string(300, 'a' + job % 26))});
      ASSERT_TRUE(committed.ok()) << committed;
    }
  }

  std::filesystem::path NewestFile(absl::string_view extension) const {
    std::filesystem::path newest;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      if (entry.path().extension() == std::string(extension) && entry.file_size() > 0) newest = std::max(newest, entry.path());
    }
    EXPECT_FALSE(newest.empty()) << "no " << extension;
    return newest;
  }

  static void FlipByte(const std::filesystem::path& file, size_t offset) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(offset));
    const char byte = static_cast<char>(stream.get() ^ 0x40);
    stream.seekp(static_cast<std::streamoff>(offset));
    stream.put(byte);
    ASSERT_TRUE(stream.good());
  }

  std::string parent_, directory_;
};

class AnyStore : public RocksStoreTest, public ::testing::WithParamInterface<const char*> {
 protected:
  std::unique_ptr<Store> Make() { return GetParam() == absl::string_view("Memory") ? NewMemoryStore() : Open(); }
};

TEST_P(AnyStore, ShowsWhatWasCommittedInKeyOrder) {
  const std::unique_ptr<Store> store = Make();
  ASSERT_TRUE(store->Commit({Put(Table::kJobs, JobKey(300), "c"), Put(Table::kJobs, JobKey(2), "a"), Put(Table::kNodes, "h1", "n")}).ok());
  ASSERT_TRUE(store->Commit({Put(Table::kJobs, JobKey(4), "b"), Put(Table::kJobs, JobKey(300), "d")}).ok());
  EXPECT_THAT(All(*store, Table::kJobs), ElementsAre(Pair(JobKey(2), "a"), Pair(JobKey(4), "b"), Pair(JobKey(300), "d")));
  EXPECT_THAT(All(*store, Table::kNodes), ElementsAre(Pair("h1", "n")));
  EXPECT_THAT(All(*store, Table::kMeta), ElementsAre());
}

TEST_P(AnyStore, DeletesAndTakesTheLastWriteOfABatch) {
  const std::unique_ptr<Store> store = Make();
  ASSERT_TRUE(store->Commit({Put(Table::kJobs, "a", "1"), Put(Table::kJobs, "b", "1")}).ok());
  ASSERT_TRUE(store
                  ->Commit({Delete(Table::kJobs, "a"), Delete(Table::kJobs, "never"), Put(Table::kJobs, "b", "2"),
                            Put(Table::kJobs, "b", ""), Put(Table::kJobs, "c", "1"), Delete(Table::kJobs, "c")})
                  .ok());
  EXPECT_THAT(All(*store, Table::kJobs), ElementsAre(Pair("b", "")));
  EXPECT_TRUE(store->Commit({}).ok());
}

TEST_P(AnyStore, KeysAreBytes) {
  const std::unique_ptr<Store> store = Make();
  ASSERT_TRUE(store
                  ->Commit({Put(Table::kRequests, RequestKey("b", "1"), "y"), Put(Table::kRequests, RequestKey("a", "\xff"), "x"),
                            Put(Table::kRequests, "\xff", "z")})
                  .ok());
  EXPECT_THAT(All(*store, Table::kRequests),
              ElementsAre(Pair(RequestKey("a", "\xff"), "x"), Pair(RequestKey("b", "1"), "y"), Pair("\xff", "z")));
}

TEST_P(AnyStore, AVisitorStopsTheScan) {
  const std::unique_ptr<Store> store = Make();
  CommitJobs(store.get(), 1, 5);
  int seen = 0;
  ASSERT_TRUE(store->Scan(Table::kJobs, [&](absl::string_view, absl::string_view) { return ++seen < 3; }).ok());
  EXPECT_EQ(seen, 3);
}

INSTANTIATE_TEST_SUITE_P(All, AnyStore, ::testing::Values("Memory", "Rocks"), [](const auto& info) { return std::string(info.param); });

TEST_F(RocksStoreTest, SurvivesReopen) {
  CommitJobs(Open().get(), 1, 50);
  const std::unique_ptr<Store> store = Open();
  EXPECT_EQ(All(*store, Table::kJobs).size(), 50u);
  CommitJobs(store.get(), 51, 50);
  EXPECT_EQ(All(*store, Table::kJobs).size(), 100u);
}

TEST_F(RocksStoreTest, SurvivesKill9) {
  EXPECT_EXIT(
      {
        const std::unique_ptr<Store> store = Open();
        CommitJobs(store.get(), 1, 100);
        raise(SIGKILL);
      },
      ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_EQ(All(*Open(), Table::kJobs).size(), 100u);
}

TEST_F(RocksStoreTest, ItsDirectoryIsForItsOwnerOnly) {
  Open();
  struct stat status {};
  ASSERT_EQ(stat(directory_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(RocksStoreTest, ATornTailLosesTheTornCommitOnly) {
  CommitJobs(Open().get(), 1, 100);
  const std::filesystem::path log = NewestFile(".log");
  std::filesystem::resize_file(log, std::filesystem::file_size(log) - 7);
  const std::unique_ptr<Store> store = Open();
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(All(*store, Table::kJobs).size(), 99u);
}

TEST_F(RocksStoreTest, AFlippedByteInTheLogIsRefused) {
  CommitJobs(Open().get(), 1, 100);
  const std::filesystem::path log = NewestFile(".log");
  FlipByte(log, std::filesystem::file_size(log) / 2);
  const absl::Status refused = OpenRocksStore(directory_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss) << refused;
}

TEST_F(RocksStoreTest, AFlippedByteInATableFileIsRefused) {
  CommitJobs(Open().get(), 1, 100);
  Open();  // moves the log into table files
  FlipByte(NewestFile(".sst"), 100);
  absl::StatusOr<std::unique_ptr<Store>> store = OpenRocksStore(directory_);
  const absl::Status refused =
      store.ok() ? (*store)->Scan(Table::kJobs, [](absl::string_view, absl::string_view) { return true; }) : store.status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss) << refused;
}

TEST_F(RocksStoreTest, ATornLogBeforeTheLastIsRefused) {
  // The node record stays in memory, and so in the first log, when the jobs fill theirs and a second log is begun.
  {
    const std::unique_ptr<Store> store = Open();
    ASSERT_TRUE(store->Commit({Put(Table::kNodes, "h1", "drained")}).ok());
    for (int job = 1; job <= 20; ++job) ASSERT_TRUE(store->Commit({Put(Table::kJobs, JobKey(job), std::string(1 << 20, 'x'))}).ok());
    ASSERT_TRUE(store->Commit({Delete(Table::kNodes, "h1")}).ok());
  }
  std::vector<std::filesystem::path> logs;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    if (entry.path().extension() == ".log") logs.push_back(entry.path());
  }
  std::sort(logs.begin(), logs.end());
  ASSERT_GE(logs.size(), 2u);
  std::filesystem::resize_file(logs[0], std::filesystem::file_size(logs[0]) - 7);
  const absl::Status refused = OpenRocksStore(directory_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss) << refused;
}

TEST_F(RocksStoreTest, AMissingFileIsRefused) {
  CommitJobs(Open().get(), 1, 10);
  Open();
  for (const char* name : {"CURRENT", "sst", "MANIFEST"}) {
    const std::string copy = parent_ + "/" + name;
    std::filesystem::copy(directory_, copy);
    for (const auto& entry : std::filesystem::directory_iterator(copy)) {
      if (absl::StrContains(entry.path().filename().string(), name)) std::filesystem::remove(entry.path());
    }
    const absl::Status refused = OpenRocksStore(copy).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss) << name << ": " << refused;
  }
}

TEST_F(RocksStoreTest, ACrashInTheFirstOpenIsNoLoss) {
  std::filesystem::create_directory(directory_);
  std::ofstream(directory_ + "/MANIFEST-000001") << "half";
  EXPECT_NE(Open(), nullptr);
}

TEST_F(RocksStoreTest, OneOpenerAtATime) {
  const std::unique_ptr<Store> store = Open();
  const absl::Status refused = OpenRocksStore(directory_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr(absl::StrCat("is open in process ", getpid())));
  CommitJobs(store.get(), 1, 1);
}

TEST_F(RocksStoreTest, AnotherProcessIsRefusedToo) {
  // In the child the parent's store is open; the parent leaves it so until the child has ended.
  const bool is_parent = !parent_.empty();
  const std::unique_ptr<Store> store = is_parent ? Open() : nullptr;
  EXPECT_EXIT(
      {
        const absl::Status refused = OpenRocksStore(directory_).status();
        fprintf(stderr, "%s\n", refused.ToString().c_str());
        _exit(refused.code() == absl::StatusCode::kFailedPrecondition ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "is open in process");
}

TEST_F(RocksStoreTest, ADirectoryThatCannotBeMadeIsNamed) {
  std::ofstream(parent_ + "/file") << "x";
  const absl::Status refused = OpenRocksStore(parent_ + "/file/store").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("/file/store"));
}

TEST_F(RocksStoreTest, ANewerSchemaIsRefused) {
  v1::MetaRecord meta;
  meta.set_schema_version(kStoreSchemaVersion);
  ASSERT_TRUE(Open()->Commit({Put(Table::kMeta, "meta", meta.SerializeAsString())}).ok());
  meta.set_schema_version(kStoreSchemaVersion + 1);
  ASSERT_TRUE(Open()->Commit({Put(Table::kMeta, "meta", meta.SerializeAsString())}).ok());
  const absl::Status refused = OpenRocksStore(directory_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("has schema 2; this program knows schemas up to 1"));
}

TEST_F(RocksStoreTest, ATableOfANewerVersionIsRefused) {
  Open();
  rocksdb::DB* raw = nullptr;
  std::vector<std::string> names;
  ASSERT_TRUE(rocksdb::DB::ListColumnFamilies({}, directory_, &names).ok());
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  for (const std::string& name : names) descriptors.emplace_back(name, rocksdb::ColumnFamilyOptions());
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  ASSERT_TRUE(rocksdb::DB::Open({}, directory_, descriptors, &handles, &raw).ok());
  handles.push_back(nullptr);
  ASSERT_TRUE(raw->CreateColumnFamily({}, "quotas", &handles.back()).ok());
  for (rocksdb::ColumnFamilyHandle* handle : handles) ASSERT_TRUE(raw->DestroyColumnFamilyHandle(handle).ok());
  delete raw;
  const absl::Status refused = OpenRocksStore(directory_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("table 'quotas'"));
}

// While it lives, files of this process cannot grow beyond `bytes`: writes fail as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_F(RocksStoreTest, AFullDiskFailsTheCommitAndLosesNothing) {
  const std::unique_ptr<Store> store = Open();
  CommitJobs(store.get(), 1, 10);
  {
    const FullDisk full(16 << 10);
    const absl::Status failed = store->Commit({Put(Table::kJobs, JobKey(11), std::string(64 << 10, 'x')), Put(Table::kMeta, "k", "v")});
    EXPECT_EQ(failed.code(), absl::StatusCode::kUnavailable) << failed;
  }
  const absl::Status refused = store->Commit({Put(Table::kJobs, JobKey(12), "y")});
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable) << "the failed batch is not settled yet";
  EXPECT_EQ(All(*store, Table::kJobs).size(), 10u);
  EXPECT_THAT(All(*store, Table::kMeta), ElementsAre());
  CommitJobs(store.get(), 11, 5);
  EXPECT_EQ(All(*store, Table::kJobs).size(), 15u);
}

// A disk that writes and then says it could not sync.
class UnsyncedEnv : public rocksdb::EnvWrapper {
 public:
  UnsyncedEnv() : EnvWrapper(rocksdb::Env::Default()) {}
  const char* Name() const override { return "Unsynced"; }
  rocksdb::Status NewWritableFile(const std::string& name, std::unique_ptr<rocksdb::WritableFile>* file,
                                  const rocksdb::EnvOptions& options) override {
    const rocksdb::Status made = target()->NewWritableFile(name, file, options);
    if (made.ok()) *file = std::make_unique<File>(std::move(*file), &fail_);
    return made;
  }
  void Fail(bool fail) { fail_ = fail; }

 private:
  class File : public rocksdb::WritableFileWrapper {
   public:
    File(std::unique_ptr<rocksdb::WritableFile> file, const std::atomic<bool>* fail)
        : WritableFileWrapper(file.get()), file_(std::move(file)), fail_(fail) {}
    rocksdb::Status Sync() override { return *fail_ ? rocksdb::Status::IOError("sync failed") : WritableFileWrapper::Sync(); }
    rocksdb::Status Fsync() override { return *fail_ ? rocksdb::Status::IOError("sync failed") : WritableFileWrapper::Fsync(); }

   private:
    const std::unique_ptr<rocksdb::WritableFile> file_;
    const std::atomic<bool>* const fail_;
  };

  std::atomic<bool> fail_ = false;
};

TEST_F(RocksStoreTest, ABatchOfUnknownFateIsSettledByTheNextScan) {
  UnsyncedEnv env;
  absl::StatusOr<std::unique_ptr<Store>> opened = OpenRocksStoreIn(&env, directory_);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const std::unique_ptr<Store> store = *std::move(opened);
  CommitJobs(store.get(), 1, 10);

  env.Fail(true);
  EXPECT_EQ(store->Commit({Put(Table::kJobs, JobKey(11), "x")}).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(store->Scan(Table::kJobs, [](absl::string_view, absl::string_view) { return true; }).code(), absl::StatusCode::kUnavailable)
      << "opened anew on the same bad disk";
  env.Fail(false);

  // Whatever the scan shows is what any later open shows.
  const Records seen = All(*store, Table::kJobs);
  EXPECT_GE(seen.size(), 10u);
  CommitJobs(store.get(), 12, 1);
  Records then = All(*store, Table::kJobs);
  then.pop_back();
  EXPECT_EQ(then, seen);
}

}  // namespace
}  // namespace closeknit
