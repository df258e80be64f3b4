// OpenRocksStore with the engine's environment as an argument, so that tests can make the disk fail. Others use store.h.
#ifndef CLOSEKNIT_CLUSTER_MODEL_STORE_ROCKS_STORE_H_
#define CLOSEKNIT_CLUSTER_MODEL_STORE_ROCKS_STORE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cluster_model/store/store.h"

namespace rocksdb {
class Env;
}

namespace closeknit {

// `env` outlives the store.
absl::StatusOr<std::unique_ptr<Store>> OpenRocksStoreIn(rocksdb::Env* env, const std::string& directory);

}  // namespace closeknit

#endif  // CLOSEKNIT_CLUSTER_MODEL_STORE_ROCKS_STORE_H_
