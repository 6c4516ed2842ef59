// Carries the output of ranks to the launcher's own stdout and stderr: whole lines only, with the rank before them if
// asked, never blocking the launcher, and holding ranks back when the reader is slow.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/event_loop.hpp"
#include "cli/unique_fd.hpp"

namespace farsum::cli {

// Cuts one stream into lines, each with `prefix` before it.
class LineBuffer {
 public:
  // A line longer than this is passed on in parts, so that memory stays bounded; lines of others may then come between
  // the parts.
  static constexpr std::size_t longest_held_bytes = std::size_t{1} << 20;

  explicit LineBuffer(std::string prefix) : prefix_(std::move(prefix)) {}

  // Appends to `lines` what `bytes` completes.
  void feed(std::string_view bytes, std::string& lines);
  // The stream has ended: appends the last line, which had no end, as it is.
  void finish(std::string& lines);

 private:
  void put(std::string_view part, std::string& lines);

  std::string prefix_;
  std::string held_;
  bool in_the_middle_ = false;  // the part of a long line was passed on
};

// One of the launcher's own outputs.
class Sink {
 public:
  // Above this streams wait.
  static constexpr std::size_t full_bytes = std::size_t{1} << 20;

  // `fd` stays the caller's, and shared with other processes: its flags are not touched.
  Sink(EventLoop& loop, int fd) : loop_(loop), fd_(fd) {}

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] bool full() const { return waiting_.size() - written_ >= full_bytes; }
  [[nodiscard]] bool empty() const { return waiting_.size() == written_; }
  // Its reader is gone: what is put in is dropped.
  [[nodiscard]] bool broken() const { return broken_; }
  void put(std::string_view bytes);
  // `handler` is called when a full sink has room again.
  void on_room(EventLoop::Handler handler) { on_room_ = std::move(handler); }

 private:
  void write_what_fits();
  void forget_written();

  EventLoop& loop_;
  int fd_;
  std::string waiting_;
  std::size_t written_ = 0;
  bool broken_ = false;
  EventLoop::Handler on_room_;
};

// Reads the outputs of all ranks.
class OutputForwarder {
 public:
  struct Options {
    int out_fd = 1;
    int err_fd = 2;
    bool tag = false;
  };

  OutputForwarder(EventLoop& loop, Options options);

  void add_rank(int rank, UniqueFd out, UniqueFd err);
  // One line of the launcher itself, on stderr.
  void say(std::string_view sentence);
  // All writers are gone: reads what they left and closes every stream. What a slow reader leaves no room for is held
  // in memory.
  void finish();
  [[nodiscard]] bool all_written() const;

 private:
  struct Stream {
    UniqueFd fd;
    Sink* sink;
    LineBuffer lines;
  };

  [[nodiscard]] Sink& sink_for_errors() { return err_ ? *err_ : out_; }
  void add(UniqueFd fd, Sink& sink, const std::string& prefix);
  void listen(Stream& stream);
  void read_some(Stream& stream);
  void close(Stream& stream);
  void resume(const Sink& sink);

  EventLoop& loop_;
  bool tag_;
  Sink out_;
  std::unique_ptr<Sink> err_;  // null when stdout and stderr are the same file: then lines of both must not mix
  std::vector<std::unique_ptr<Stream>> streams_;
};

}  // namespace farsum::cli
