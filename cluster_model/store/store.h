// The scheduler's store: tables of records, changed by atomic, synced commits.
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

class Store {
 public:
  virtual ~Store() = default;
  // All or nothing; when it returns OK the writes are on disk. On an error none of them may be taken as made; the caller stops
  // letting effects out (kUnavailable: may work later, e.g. disk full; kDataLoss: corrupt).
  virtual absl::Status Commit(absl::Span<const RecordWrite> writes) = 0;
  // All records of a table in key order. `visit` returns false to stop.
  virtual absl::Status Scan(Table table, const std::function<bool(absl::string_view key, absl::string_view value)>& visit) const = 0;
};

// RocksDB in `directory`, made if missing. Refuses (kFailedPrecondition) a directory that another process has open and a schema newer than
// this program's; kDataLoss on corruption (a torn tail of the log after a power cut is none: those commits were never acknowledged).
absl::StatusOr<std::unique_ptr<Store>> OpenRocksStore(const std::string& directory);

// In memory; for tests and the simulator.
std::unique_ptr<Store> NewMemoryStore();

}  // namespace closeknit

#endif  // CLOSEKNIT_CLUSTER_MODEL_STORE_STORE_H_
