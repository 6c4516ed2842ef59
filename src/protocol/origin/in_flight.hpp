// What OriginEngine keeps of each peer. For its own files alone.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "protocol/origin/engine.hpp"

namespace farsum {

struct OriginEngine::InFlight {
  std::uint64_t ticket = 0;
  Job* job = nullptr;
  std::uint64_t start = 0;  // payload bytes before this piece
};

struct OriginEngine::Peer : ReplyHandler {
  mutable std::mutex mutex;
  std::deque<Job*> backlog;        // the front may be posted in part
  std::deque<InFlight> in_flight;  // by ticket
  std::size_t left_for_end = 0;    // of these, what leaves with the end of an epoch and has not left
  std::vector<std::unique_ptr<Job>> jobs;
  std::vector<Job*> idle_jobs;
  MessageDraft draft;  // of the message under construction
  std::uint64_t next_sequence = 1;
  // Updates of single elements that leave as one message; null where there are none. Nothing is in the backlog then.
  Job* bundle = nullptr;
  Hearing* hearing = nullptr;
  bool never_coalesces = false;        // the transport has no use for it
  bool coalesces = false;              // the bundle, or what the transport was told may be kept
  bool was_coalescing_before = false;  // and send_coalesced() has seen it so
  bool has_progressed = false;         // others are to be told when the mutex is free
  std::atomic<bool> failed{false};
  // The agent came while a thread held the mutex: that thread asks for it again should it leave work behind.
  std::atomic<bool> was_missed{false};

  Job* take_job() {
    if (idle_jobs.empty()) {
      idle_jobs.reserve(jobs.size() + 1);  // a job comes back without asking for memory
      jobs.push_back(std::make_unique<Job>());
      return jobs.back().get();
    }
    Job* job = idle_jobs.back();
    idle_jobs.pop_back();
    job->forget();
    return job;
  }

  bool is_idle() const { return backlog.empty() && in_flight.empty(); }
  // Something that has left is unanswered: what waits here for company need not wait long for the next frame.
  bool has_company() const { return in_flight.size() > left_for_end; }

  void on_reply(Rank, std::uint64_t ticket, Code code, std::span<const std::byte> reply) override {
    // Replies come in order but for late ones: such a one is among the first, and what stands before it is little to
    // move.
    const auto found =
        std::lower_bound(in_flight.begin(), in_flight.end(), ticket,
                         [](const InFlight& piece, std::uint64_t sought) { return piece.ticket < sought; });
    if (found == in_flight.end() || found->ticket != ticket) return;  // of an operation that was failed meanwhile
    const InFlight piece = *found;
    in_flight.erase(found);
    finish_piece(*this, piece, code, reply);
  }
};

// A job that is being filled. It goes back where it is not said to be under way.
class OriginEngine::NewJob {
 public:
  explicit NewJob(Peer& peer) : peer_(peer), job_(peer.take_job()) {}
  ~NewJob() {
    if (job_ != nullptr) peer_.idle_jobs.push_back(job_);
  }
  NewJob(const NewJob&) = delete;
  NewJob& operator=(const NewJob&) = delete;

  Job* operator->() const { return job_; }
  Job& operator*() const { return *job_; }
  // It is under way.
  void release() { job_ = nullptr; }

 private:
  Peer& peer_;
  Job* job_;
};

// A peer while its mutex is held. Whoever leaves operations behind that found no room says so: a thread that computes
// does not come back to send them. Nobody is woken who would wait for the mutex.
class OriginEngine::Visit {
 public:
  Visit(OriginEngine& engine, Peer& peer)
      : engine_(engine), peer_(peer), lock_(peer.mutex), had_backlog_(!peer.backlog.empty()) {}
  ~Visit() {
    const bool has_progressed = std::exchange(peer_.has_progressed, false);
    const bool has_backlog = !peer_.backlog.empty();
    lock_.unlock();
    if (has_progressed) engine_.tell_of_progress();
    if (!has_backlog) return;
    // Acquire and release on both sides: either this sees that the agent came, or the agent's exchange in
    // progress_unattended comes after this one, hence after the unlock, and its try_lock finds the mutex free.
    const bool was_missed = peer_.was_missed.exchange(false, std::memory_order_acq_rel);
    if (!had_backlog_ || was_missed) engine_.transport_.hand_over();
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  OriginEngine& engine_;
  Peer& peer_;
  std::unique_lock<std::mutex> lock_;
  bool had_backlog_;
};

}  // namespace farsum
