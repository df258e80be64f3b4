#include "cluster_model/store/rocks_store.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/table.h>
#include <rocksdb/write_buffer_manager.h>

#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "closeknit/v1/store.pb.h"
#include "cluster_model/store/directory_lock.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

constexpr size_t kBlockCacheBytes = 32 << 20;   // memtables are charged to it
constexpr size_t kWriteBufferBytes = 16 << 20;  // of all tables together
constexpr size_t kMaxLogBytes = 64 << 20;       // bounds what a restart replays, to about a third of a second
constexpr int kMaxOpenFiles = 256;

absl::string_view View(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

absl::Status ToStatus(const rocksdb::Status& status, absl::string_view directory) {
  if (status.ok()) return absl::OkStatus();
  const std::string message = absl::StrCat("store in ", directory, ": ", status.ToString());
  // A file that the manifest names and that is not there is lost, not busy.
  return status.IsCorruption() || status.IsPathNotFound() ? absl::DataLossError(message) : absl::UnavailableError(message);
}

// The engine's warnings go to the daemon's log. Its own log file would be one more thing that fails on a full disk: Debian builds RocksDB
// with assertions, and there a write after a failed one ends the process.
class EngineLog : public rocksdb::Logger {
 public:
  EngineLog() : Logger(rocksdb::InfoLogLevel::WARN_LEVEL) {}
  using Logger::Logv;
  void Logv(const rocksdb::InfoLogLevel level, const char* format, va_list arguments) override {
    if (level < GetInfoLogLevel()) return;
    Write(level > rocksdb::InfoLogLevel::WARN_LEVEL ? LogLevel::kError : LogLevel::kWarning, format, arguments);
  }
  void Logv(const char* format, va_list arguments) override { Write(LogLevel::kInfo, format, arguments); }

 private:
  static void Write(LogLevel level, const char* format, va_list arguments) {
    char text[1024];
    vsnprintf(text, sizeof(text), format, arguments);
    Log(level, "rocksdb", {{"message", std::string(absl::StripAsciiWhitespace(text))}});
  }
};

rocksdb::DBOptions DatabaseOptions(rocksdb::Env* env, const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::DBOptions options;
  options.env = env;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  // A torn tail was never acknowledged and is dropped; a damaged record before it was, and is an error. (The default mode would open with
  // the records before the damage only, and say nothing.) Logs before the last one are whole: their synced sizes are in the manifest.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.track_and_verify_wals_in_manifest = true;
  options.paranoid_checks = true;
  options.max_total_wal_size = kMaxLogBytes;
  options.write_buffer_manager = std::make_shared<rocksdb::WriteBufferManager>(kWriteBufferBytes, cache);
  options.max_open_files = kMaxOpenFiles;
  options.max_background_jobs = 2;
  options.info_log = std::make_shared<EngineLog>();
  options.stats_dump_period_sec = 0;
  return options;
}

rocksdb::ColumnFamilyOptions TableOptions(const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::BlockBasedTableOptions blocks;
  blocks.block_cache = cache;
  blocks.cache_index_and_filter_blocks = true;
  rocksdb::ColumnFamilyOptions options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(blocks));
  options.compression = rocksdb::kLZ4Compression;
  options.write_buffer_size = kWriteBufferBytes;
  return options;
}

class RocksStore : public Store {
 public:
  RocksStore(rocksdb::Env* env, std::string directory, std::unique_ptr<DirectoryLock> lock)
      : env_(env), directory_(std::move(directory)), lock_(std::move(lock)) {}
  ~RocksStore() override { Close(); }

  absl::Status Open() const;
  absl::Status Commit(absl::Span<const RecordWrite> writes) override;
  absl::Status Scan(Table table, const std::function<bool(absl::string_view, absl::string_view)>& visit) const override;

 private:
  rocksdb::ColumnFamilyHandle* handle(Table table) const { return handles_[static_cast<size_t>(table)]; }

  absl::StatusOr<std::vector<std::string>> ExistingTables() const;
  absl::Status CheckSchema() const;
  void Close() const;

  rocksdb::Env* const env_;
  const std::string directory_;
  const std::unique_ptr<DirectoryLock> lock_;
  // Scan opens the database anew after a failed commit; to its callers that is part of reading.
  mutable std::unique_ptr<rocksdb::DB> db_;                    // null: to be opened
  mutable std::vector<rocksdb::ColumnFamilyHandle*> handles_;  // by Table; then that of "default", which is not used
  mutable absl::Status failure_;                               // of the commit that made db_ null
};

// The column families there are; none in a new directory.
absl::StatusOr<std::vector<std::string>> RocksStore::ExistingTables() const {
  std::error_code error;
  if (!std::filesystem::exists(directory_ + "/CURRENT", error)) {
    // A crash while the very first open made its files leaves neither logs nor tables; with those, a database lost its head.
    const std::filesystem::directory_iterator end;
    for (std::filesystem::directory_iterator entry(directory_, error); !error && entry != end; entry.increment(error)) {
      const std::string extension = entry->path().extension();
      if (extension != ".sst" && extension != ".log") continue;
      return absl::DataLossError(absl::StrCat("the store in ", directory_, " has ", entry->path().filename().string(),
                                              " but no file CURRENT; restore it from a backup, or give an empty directory"));
    }
    if (error) return absl::UnavailableError(absl::StrCat("cannot read directory ", directory_, ": ", error.message()));
    return std::vector<std::string>();
  }
  std::vector<std::string> names;
  RETURN_IF_ERROR(ToStatus(rocksdb::DB::ListColumnFamilies(rocksdb::DBOptions(), directory_, &names), directory_));
  return names;
}

absl::Status RocksStore::Open() const {
  ASSIGN_OR_RETURN(const std::vector<std::string> existing, ExistingTables());
  std::vector<std::string> names;
  names.reserve(std::size(kAllTables) + 1);
  for (const Table table : kAllTables) names.emplace_back(TableName(table));
  names.push_back(rocksdb::kDefaultColumnFamilyName);
  for (const std::string& name : existing) {
    if (absl::c_linear_search(names, name)) continue;
    return absl::FailedPreconditionError(absl::StrCat("the store in ", directory_, " has a table '", name,
                                                      "' that this program does not know; a newer version has written it"));
  }

  const std::shared_ptr<rocksdb::Cache> cache = rocksdb::NewLRUCache(kBlockCacheBytes);
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  descriptors.reserve(names.size());
  for (const std::string& name : names) descriptors.emplace_back(name, TableOptions(cache));
  rocksdb::DB* db = nullptr;
  RETURN_IF_ERROR(ToStatus(rocksdb::DB::Open(DatabaseOptions(env_, cache), directory_, descriptors, &handles_, &db), directory_));
  db_.reset(db);
  absl::Status schema = CheckSchema();
  if (!schema.ok()) Close();
  return schema;
}

absl::Status RocksStore::CheckSchema() const {
  std::string value;
  const rocksdb::Status read = db_->Get(rocksdb::ReadOptions(), handle(Table::kMeta), "meta", &value);
  if (read.IsNotFound()) return absl::OkStatus();  // new: the scheduler writes it with its first commit
  RETURN_IF_ERROR(ToStatus(read, directory_));
  v1::MetaRecord meta;
  if (!meta.ParseFromString(value)) return absl::DataLossError(absl::StrCat("store in ", directory_, ": the meta record is damaged"));
  if (meta.schema_version() > kStoreSchemaVersion) {
    return absl::FailedPreconditionError(absl::StrCat("the store in ", directory_, " has schema ", meta.schema_version(),
                                                      "; this program knows schemas up to ", kStoreSchemaVersion,
                                                      ": run the version that wrote it, or a newer one"));
  }
  if (meta.schema_version() == 0) return absl::DataLossError(absl::StrCat("store in ", directory_, ": the meta record has no schema"));
  return absl::OkStatus();
}

void RocksStore::Close() const {
  if (db_ == nullptr) return;
  for (rocksdb::ColumnFamilyHandle* handle : handles_) db_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  handles_.clear();
  db_->Close().PermitUncheckedError();  // what was acknowledged is in the log
  db_.reset();
}

absl::Status RocksStore::Commit(absl::Span<const RecordWrite> writes) {
  if (db_ == nullptr) return absl::UnavailableError(absl::StrCat("not scanned since a commit failed: ", failure_.message()));
  if (writes.empty()) return absl::OkStatus();
  rocksdb::WriteBatch batch;
  for (const RecordWrite& write : writes) {
    const rocksdb::Status added =
        write.value.has_value() ? batch.Put(handle(write.table), write.key, *write.value) : batch.Delete(handle(write.table), write.key);
    RETURN_IF_ERROR(ToStatus(added, directory_));
  }
  rocksdb::WriteOptions options;
  options.sync = true;
  failure_ = ToStatus(db_->Write(options, &batch), directory_);
  if (!failure_.ok()) Close();
  return failure_;
}

absl::Status RocksStore::Scan(Table table, const std::function<bool(absl::string_view, absl::string_view)>& visit) const {
  if (db_ == nullptr) RETURN_IF_ERROR(Open());
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options, handle(table)));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    if (!visit(View(it->key()), View(it->value()))) break;
  }
  return ToStatus(it->status(), directory_);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> OpenRocksStoreIn(rocksdb::Env* env, const std::string& directory) {
  ASSIGN_OR_RETURN(std::unique_ptr<DirectoryLock> lock, DirectoryLock::Take(directory));
  auto store = std::make_unique<RocksStore>(env, directory, std::move(lock));
  RETURN_IF_ERROR(store->Open());
  return store;
}

absl::StatusOr<std::unique_ptr<Store>> OpenRocksStore(const std::string& directory) {
  return OpenRocksStoreIn(rocksdb::Env::Default(), directory);
}

}  // namespace closeknit
