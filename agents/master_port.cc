#include "agents/master_port.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

constexpr uint16_t kDiscardPort = 9;  // served nowhere: a host that is there refuses the connection

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

absl::StatusOr<Addresses> Resolve(const std::string& address) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(address.c_str(), nullptr, &hints, &found);
  if (error != 0) return absl::UnavailableError(absl::StrCat("MASTER_ADDR '", address, "' does not resolve: ", gai_strerror(error)));
  return Addresses(found, freeaddrinfo);
}

void SetPort(sockaddr* address, uint16_t port) {
  if (address->sa_family == AF_INET) reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(port);
  if (address->sa_family == AF_INET6) reinterpret_cast<sockaddr_in6*>(address)->sin6_port = htons(port);
}

// 0: it is there. Else errno.
int Probe(const addrinfo& target, absl::Duration patience) {
  const OwnedFd fd(socket(target.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.ok()) return errno;
  if (connect(fd.get(), target.ai_addr, target.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno == ECONNREFUSED ? 0 : errno;
  pollfd waiting = {fd.get(), POLLOUT, 0};
  if (poll(&waiting, 1, static_cast<int>(absl::ToInt64Milliseconds(patience))) <= 0) return 0;
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == ECONNREFUSED ? 0 : error;
}

}  // namespace

absl::StatusOr<HeldPort> HoldPort() {
  HeldPort held;
  held.holder = OwnedFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!held.holder.ok()) return SystemError("socket for MASTER_PORT");
  sockaddr_in any = {};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_ANY);
  // Without SO_REUSEADDR the kernel picks a port that nobody has; with it, set afterwards, a server that sets it too may listen there.
  if (bind(held.holder.get(), reinterpret_cast<sockaddr*>(&any), sizeof(any)) != 0) return SystemError("bind MASTER_PORT");
  const int on = 1;
  if (setsockopt(held.holder.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0) return SystemError("SO_REUSEADDR of MASTER_PORT");
  socklen_t size = sizeof(any);
  if (getsockname(held.holder.get(), reinterpret_cast<sockaddr*>(&any), &size) != 0) return SystemError("getsockname of MASTER_PORT");
  held.port = ntohs(any.sin_port);
  return held;
}

absl::Status CheckMasterIsHere(const std::string& address, uint32_t hosts) {
  const std::string name = absl::AsciiStrToLower(address);
  if (hosts > 1 && (name == "localhost" || name == "127.0.0.1" || name == "::1")) {
    return absl::FailedPreconditionError(
        absl::StrCat("MASTER_ADDR '", address, "' means another host on each of ", hosts, " hosts; start the agent with --address"));
  }
  ASSIGN_OR_RETURN(const Addresses found, Resolve(address));
  int error = EADDRNOTAVAIL;
  for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
    const OwnedFd fd(socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (fd.ok() && bind(fd.get(), at->ai_addr, at->ai_addrlen) == 0) return absl::OkStatus();
    error = errno;
  }
  return absl::ErrnoToStatus(error, absl::StrCat("MASTER_ADDR '", address, "' is no address of this host; start the agent with --address"));
}

absl::Status CheckMasterReachable(const std::string& address, absl::Duration patience) {
  ASSIGN_OR_RETURN(const Addresses found, Resolve(address));
  int error = EHOSTUNREACH;
  for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
    SetPort(at->ai_addr, kDiscardPort);
    error = Probe(*at, patience);
    if (error == 0) return absl::OkStatus();
  }
  return absl::ErrnoToStatus(error, absl::StrCat("MASTER_ADDR '", address, "' cannot be reached from here"));
}

}  // namespace closeknit
