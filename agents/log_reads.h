// Answers ReadLog from the logs on disk, in a thread of its own: a slow disk keeps nobody's heartbeat back.
#ifndef CLOSEKNIT_AGENTS_LOG_READS_H_
#define CLOSEKNIT_AGENTS_LOG_READS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "agents/event_loop.h"
#include "agents/slot_directory.h"
#include "closeknit/v1/agent.pb.h"

namespace closeknit {

// Thread-safe.
class LogReads {
 public:
  static constexpr uint32_t kMaxReadBytes = 1 << 20;  // of one answer
  static constexpr size_t kMaxWaiting = 4'096;        // reads that wait for more bytes; one more is answered at once

  // `answer` is called by the reading thread, once a Read.
  LogReads(Spool spool, std::function<void(v1::LogData)> answer);
  // Waits for the thread. Reads that wait are not answered any more.
  ~LogReads();

  void Read(v1::ReadLog read);
  // Forgets the reads that wait: whoever asked has gone.
  void Forget();
  // Whether the slot's processes may write more. A slot that nobody has named is over.
  void SetLive(const v1::SlotId& id, bool live);

 private:
  using Key = std::pair<uint64_t, uint32_t>;
  struct Waiting {
    v1::ReadLog read;
    EventLoop::TimerId timer = 0;
  };
  void Begin(v1::ReadLog read);
  // The answer, or none if it is to wait.
  bool TryAnswer(v1::ReadLog* read, bool may_wait);
  void Retry(const std::string& directory);
  void OnInotify();
  void Watch(const std::string& directory);
  void UnwatchIdle();

  const Spool spool_;
  const std::function<void(v1::LogData)> answer_;
  EventLoop loop_;
  OwnedFd inotify_;
  // Of the reading thread:
  std::set<Key> live_;
  std::map<uint64_t, Waiting> waiting_;
  uint64_t last_ = 0;
  std::map<int, std::string> watches_;  // inotify descriptor -> directory
  std::thread thread_;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_AGENTS_LOG_READS_H_
