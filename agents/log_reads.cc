#include "agents/log_reads.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agents/rank_log.h"
#include "proto/base/check.h"
#include "proto/base/proto_time.h"

namespace closeknit {
namespace {

constexpr uint32_t kDefaultReadBytes = 64 << 10;

absl::StatusOr<LogPart> ReadPart(const std::string& directory, v1::ReadLog* read) {
  if (read->tail_lines() > 0) {
    const absl::StatusOr<uint64_t> offset = TailOffset(directory, read->rank(), read->tail_lines());
    if (!offset.ok()) return offset.status();
    read->set_offset(*offset);
    read->set_tail_lines(0);  // if it waits, it waits from here on
  }
  const uint32_t wanted = read->max_bytes() == 0 ? kDefaultReadBytes : std::min(read->max_bytes(), LogReads::kMaxReadBytes);
  return ReadRankLog(directory, read->rank(), read->offset(), wanted);
}

}  // namespace

LogReads::LogReads(Spool spool, std::function<void(v1::LogData)> answer)
    : spool_(std::move(spool)), answer_(std::move(answer)), inotify_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  CHECK(inotify_.ok()) << "inotify_init1: " << strerror(errno);
  loop_.WatchReadable(inotify_.get(), [this] { OnInotify(); });
  thread_ = std::thread([this] { loop_.Run(); });
}

LogReads::~LogReads() {
  loop_.Post([this] { loop_.Stop(); });
  thread_.join();
}

void LogReads::Read(v1::ReadLog read) {
  loop_.Post([this, read = std::move(read)] { Begin(read); });
}

void LogReads::Forget() {
  loop_.Post([this] {
    for (const auto& [number, waiting] : waiting_) loop_.Cancel(waiting.timer);
    waiting_.clear();
    UnwatchIdle();
  });
}

void LogReads::SetLive(const v1::SlotId& id, bool live) {
  loop_.Post([this, id, live] {
    const Key key = {id.job_id(), id.attempt()};
    if (live) {
      live_.insert(key);
    } else {
      live_.erase(key);
      Retry(spool_.logs_of(id));  // those that follow hear the end
    }
  });
}

void LogReads::Begin(v1::ReadLog read) {
  const absl::Duration wait = FromProtoDuration(read.wait());
  const bool may_wait = wait > absl::ZeroDuration() && waiting_.size() < kMaxWaiting;
  const std::string directory = spool_.logs_of(read.id());
  if (may_wait) Watch(directory);  // first: what is written after the look must wake us
  if (TryAnswer(&read, may_wait)) return UnwatchIdle();
  const uint64_t number = ++last_;
  Waiting& waiting = waiting_[number];
  waiting.read = std::move(read);
  waiting.timer = loop_.After(wait, [this, number] {
    TryAnswer(&waiting_[number].read, false);
    waiting_.erase(number);
    UnwatchIdle();
  });
}

bool LogReads::TryAnswer(v1::ReadLog* read, bool may_wait) {
  // Looked up before the log is read: what ended slots wrote is all there.
  const bool live = live_.contains({read->id().job_id(), read->id().attempt()});
  const absl::StatusOr<LogPart> part = ReadPart(spool_.logs_of(read->id()), read);
  if (part.ok() && part->data.empty() && live && may_wait) return false;
  v1::LogData answer;
  answer.set_request_id(read->request_id());
  if (part.ok()) {
    answer.set_offset(part->offset);
    answer.set_data(part->data);
    answer.set_rank_ended(!live && part->at_end);
  } else {
    answer.set_error(absl::StrCat(SlotName(read->id()), ": ", part.status().message()));
  }
  answer_(std::move(answer));
  return true;
}

// O(waiting reads), at most one a change of the directory.
void LogReads::Retry(const std::string& directory) {
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    const bool here = spool_.logs_of(waiting->second.read.id()) == directory;
    if (here && TryAnswer(&waiting->second.read, true)) {
      loop_.Cancel(waiting->second.timer);
      waiting = waiting_.erase(waiting);
    } else {
      ++waiting;
    }
  }
  UnwatchIdle();
}

void LogReads::OnInotify() {
  alignas(inotify_event) char buffer[16 << 10];
  std::set<std::string> changed;
  ssize_t got;
  while ((got = read(inotify_.get(), buffer, sizeof(buffer))) > 0) {
    for (ssize_t at = 0; at < got;) {
      inotify_event event;
      memcpy(&event, buffer + at, sizeof(event));
      at += static_cast<ssize_t>(sizeof(event) + event.len);
      const auto found = watches_.find(event.wd);
      if (found != watches_.end()) changed.insert(found->second);
      if ((event.mask & IN_Q_OVERFLOW) == 0) continue;
      for (const auto& [descriptor, directory] : watches_) changed.insert(directory);
    }
  }
  for (const std::string& directory : changed) Retry(directory);
}

void LogReads::Watch(const std::string& directory) {
  // Again for one that is watched: the same descriptor. Without a watch the read is answered when its time is over.
  const int descriptor = inotify_add_watch(inotify_.get(), directory.c_str(), IN_MODIFY | IN_CREATE);
  if (descriptor >= 0) watches_[descriptor] = directory;
}

void LogReads::UnwatchIdle() {
  std::set<std::string> needed;
  for (const auto& [number, waiting] : waiting_) needed.insert(spool_.logs_of(waiting.read.id()));
  for (auto watch = watches_.begin(); watch != watches_.end();) {
    if (needed.contains(watch->second)) {
      ++watch;
    } else {
      inotify_rm_watch(inotify_.get(), watch->first);
      watch = watches_.erase(watch);
    }
  }
}

}  // namespace closeknit
