// Ranks of several threads that call at once, each towards the next rank: through one window, or each through its own.
#pragma once

#include <algorithm>
#include <barrier>
#include <mutex>
#include <thread>
#include <vector>

#include "ranks/cases/case.hpp"

namespace ranks {

template <class Job>
class ThreadCase : public Case<Job> {
 public:
  enum class Call { fetch_op, lock, flush };

  ThreadCase(const Job& job, const std::string& variant, int threads, Call call)
      : job_(job), call_(call), next_((job.rank() + 1) % job.size()), is_one_window_(variant == one_window) {
    const std::size_t windows = is_one_window_ ? 1 : static_cast<std::size_t>(threads);
    const std::size_t bytes = line_bytes * static_cast<std::size_t>(threads);
    for (std::size_t i = 0; i < windows; ++i) tables_.push_back(std::make_unique<Table<Job>>(job, allocated, bytes));
    seconds_.resize(static_cast<std::size_t>(threads));
    begin_epochs();
  }
  ~ThreadCase() override { end_epochs(); }

  bool is_right(long operations) override {
    if (call_ == Call::lock)
      on_threads(operations, [&](std::size_t thread, long) { count_under_lock(thread); });
    else if (call_ == Call::flush)
      on_threads(operations, [&](std::size_t thread, long i) { put_and_flush(thread, done_ + i + 1); });
    else
      run(operations);
    if (call_ != Call::fetch_op) done_ += operations;
    return words_are_right();
  }

  double run(long operations) override {
    if (call_ == Call::lock)
      on_threads(operations, [&](std::size_t thread, long i) { put_under_lock(thread, i); });
    else if (call_ == Call::flush)
      on_threads(operations, [&](std::size_t thread, long i) { put_and_flush(thread, i); });
    else
      on_threads(operations, [&](std::size_t thread, long) {
        static_cast<void>(window_of(thread).fetch_add(next_, offset_of(thread), 1));
      });
    if (call_ == Call::fetch_op) done_ += operations;
    return *std::max_element(seconds_.begin(), seconds_.end());
  }
  bool is_still_right() override { return call_ != Call::fetch_op || words_are_right(); }

 private:
  using Window = typename Job::Window;

  // Each of this rank's words has one update for each operation of the thread that it belongs to. Under locks of one
  // window all threads count in one word.
  bool words_are_right() {
    job_.barrier();
    end_epochs();
    const bool is_one_word = call_ == Call::lock && is_one_window_;
    const auto threads = static_cast<std::int64_t>(seconds_.size());
    bool is_right = true;
    for (std::size_t thread = 0; thread < (is_one_word ? 1 : seconds_.size()); ++thread) {
      const std::int64_t found = table_of(thread).own_word(offset_of(thread));
      is_right = is_right && found == done_ * (is_one_word ? threads : 1);
    }
    job_.barrier();
    begin_epochs();
    return job_.all_agree(is_right);
  }

  template <class Body>
  void on_threads(long operations, Body&& body) {
    std::barrier<> start(static_cast<std::ptrdiff_t>(seconds_.size()));
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < seconds_.size(); ++thread) {
      threads.emplace_back([&, thread] {
        start.arrive_and_wait();
        seconds_[thread] = timed(operations, [&](long i) { body(thread, i); });
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  // A rank may hold one lock of a target at a time, so in one window its threads take turns, as a program's must.
  template <class Body>
  void under_lock(std::size_t thread, Body&& body) {
    std::unique_lock turn(turn_, std::defer_lock);
    if (is_one_window_) turn.lock();
    Window& window = window_of(thread);
    window.lock_exclusive(next_);
    body(window);
    window.unlock(next_);
  }
  void count_under_lock(std::size_t thread) {
    std::int64_t count = 0;
    const std::size_t offset = is_one_window_ ? 0 : offset_of(thread);
    under_lock(thread, [&](Window& window) {
      window.get(next_, offset, &count, sizeof count);
      window.flush(next_);
      ++count;
      window.put(next_, offset, &count, sizeof count);
    });
  }
  void put_under_lock(std::size_t thread, std::int64_t value) {
    under_lock(thread, [&](Window& window) { window.put(next_, offset_of(thread), &value, sizeof value); });
  }
  void put_and_flush(std::size_t thread, std::int64_t value) {
    window_of(thread).put(next_, offset_of(thread), &value, sizeof value);
    window_of(thread).flush(next_);
  }

  void begin_epochs() {
    if (call_ == Call::lock) return;
    for (const auto& table : tables_) table->window().lock_all();
  }
  void end_epochs() {
    if (call_ == Call::lock) return;
    for (const auto& table : tables_) table->window().unlock_all();
  }
  [[nodiscard]] Table<Job>& table_of(std::size_t thread) { return *tables_[is_one_window_ ? 0 : thread]; }
  [[nodiscard]] Window& window_of(std::size_t thread) { return table_of(thread).window(); }
  static std::size_t offset_of(std::size_t thread) { return line_bytes * thread; }

  const Job& job_;
  Call call_;
  int next_;
  bool is_one_window_;
  std::vector<std::unique_ptr<Table<Job>>> tables_;
  std::vector<double> seconds_;  // of each thread in the last run
  std::mutex turn_;
  std::int64_t done_ = 0;  // operations of a thread that are checked
};

}  // namespace ranks
