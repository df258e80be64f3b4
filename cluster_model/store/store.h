// The scheduler's store: tables of records, changed by atomic, synced commits. docs/store.md has the files on disk.
#ifndef CLOSEKNIT_CLUSTER_MODEL_STORE_STORE_H_
#define CLOSEKNIT_CLUSTER_MODEL_STORE_STORE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cluster_model/record.h"

namespace closeknit {

// What this program writes into MetaRecord.schema_version, and the newest that it opens.
inline constexpr uint32_t kStoreSchemaVersion = 1;

// Used by one thread at a time.
class Store {
 public:
  virtual ~Store() = default;
  // All or nothing; when it returns OK the writes are on disk. On an error none of them may be taken as made; the caller stops
  // letting effects out (kUnavailable: may work later, e.g. disk full; kDataLoss: corrupt).
  //
  // An error leaves open whether the batch is on disk (the write may have reached it, and only the sync failed). Later commits are
  // refused (kUnavailable) until a Scan has settled that: a state that builds on "not made" must not be mixed with one that has it.
  virtual absl::Status Commit(absl::Span<const RecordWrite> writes) = 0;
  // All records of a table in key order. `visit` returns false to stop. After a failed Commit the database is opened anew first, as
  // after a crash; what is then seen is what is on disk. kUnavailable if that fails (call again later), kDataLoss on corruption.
  virtual absl::Status Scan(Table table, const std::function<bool(absl::string_view key, absl::string_view value)>& visit) const = 0;
};

// RocksDB in `directory`, made if missing (only its owner may enter it: records hold job scripts). Refuses (kFailedPrecondition) a
// directory that another process has open, and one written by a newer schema: MetaRecord.schema_version above kStoreSchemaVersion, or
// tables that this program does not know. kDataLoss on corruption (a torn tail of the log after a power cut is none: those commits were
// never acknowledged).
absl::StatusOr<std::unique_ptr<Store>> OpenRocksStore(const std::string& directory);

// In memory; for tests and the simulator.
std::unique_ptr<Store> NewMemoryStore();

}  // namespace closeknit

#endif  // CLOSEKNIT_CLUSTER_MODEL_STORE_STORE_H_
