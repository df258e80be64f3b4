// The whole scheduler in one object: store, core, services. knitd is this with flags and signals; tests run it in their own process.
#ifndef CLOSEKNIT_SCHEDULER_DAEMON_H_
#define CLOSEKNIT_SCHEDULER_DAEMON_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cluster_model/store/store.h"
#include "scheduler/core/core.h"

namespace closeknit {

struct DaemonOptions {
  std::string listen = "127.0.0.1:7411";            // HOST:PORT for clients and agents; port 0: a free one
  std::string data_directory;                       // of the store
  std::string topology_file;                        // applied at the start where it differs from the stored one; empty: none
  std::string metrics_address;                      // HOST:PORT of Prometheus' endpoint; empty: none
  std::string port_file;                            // gets the port once calls are answered; empty: none
  absl::Duration agent_timeout = absl::Seconds(5);  // silence after which an agent's stream is ended
  CoreConfig core;
};

class Daemon {
 public:
  // Opens the store, restores, listens. When it returns, calls are answered. Errors: the store's; kUnavailable: the address cannot be
  // bound; kInvalidArgument: the topology file cannot be read. A topology that is refused because hosts that would go run something is
  // logged, and the stored one stays: a restart kills nothing, and does not fail over it.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const DaemonOptions& options);
  // The same on a store of the caller's, for tests.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const DaemonOptions& options, std::unique_ptr<Store> store);

  virtual ~Daemon() = default;  // ends streams and calls, then the loop
  virtual int port() const = 0;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_SCHEDULER_DAEMON_H_
