#include <map>

#include "cluster_model/store/store.h"

namespace closeknit {
namespace {

class MemoryStore : public Store {
 public:
  absl::Status Commit(absl::Span<const RecordWrite> writes) override {
    for (const RecordWrite& write : writes) {
      if (write.value.has_value()) {
        tables_[write.table][write.key] = *write.value;
      } else {
        tables_[write.table].erase(write.key);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Scan(Table table, const std::function<bool(absl::string_view, absl::string_view)>& visit) const override {
    const auto records = tables_.find(table);
    if (records == tables_.end()) return absl::OkStatus();
    for (const auto& [key, value] : records->second) {
      if (!visit(key, value)) break;
    }
    return absl::OkStatus();
  }

 private:
  std::map<Table, std::map<std::string, std::string>> tables_;  // bytes compare unsigned, as in RocksDB
};

}  // namespace

std::unique_ptr<Store> NewMemoryStore() { return std::make_unique<MemoryStore>(); }

}  // namespace closeknit
