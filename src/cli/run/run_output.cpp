// Lines, sinks and streams of run_output.hpp.
#include "cli/run/run_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace farsum::cli {

namespace {

// A pipe that poll calls writable takes this much without blocking (one page, PIPE_BUF).
constexpr std::size_t safe_write_bytes = 4096;

bool can_wait(int fd) {
  struct stat about {};
  return fstat(fd, &about) == 0 && !S_ISREG(about.st_mode);
}

bool takes_bytes_now(int fd) {
  pollfd asked{fd, POLLOUT, 0};
  return poll(&asked, 1, 0) > 0;
}

bool same_file(int one, int other) {
  struct stat first {};
  struct stat second {};
  if (fstat(one, &first) != 0 || fstat(other, &second) != 0) return false;
  return first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

}  // namespace

void LineBuffer::feed(std::string_view bytes, std::string& lines) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    if (end == std::string_view::npos) break;
    put(bytes.substr(0, end + 1), lines);
    in_the_middle_ = false;
    bytes.remove_prefix(end + 1);
  }
  held_.append(bytes);
  if (held_.size() < longest_held_bytes) return;
  put({}, lines);
  in_the_middle_ = true;
}

void LineBuffer::finish(std::string& lines) {
  if (held_.empty()) return;
  put({}, lines);
}

// Passes on what is held and `part` after it.
void LineBuffer::put(std::string_view part, std::string& lines) {
  if (!in_the_middle_) lines.append(prefix_);
  lines.append(held_);
  lines.append(part);
  held_.clear();
}

void Sink::put(std::string_view bytes) {
  if (broken_) return;
  waiting_.append(bytes);
  if (!loop_.watches(fd_)) write_what_fits();
}

void Sink::write_what_fits() {
  const bool was_full = full();
  const bool waits = can_wait(fd_);
  while (!empty() && (!waits || takes_bytes_now(fd_))) {
    const std::size_t most = waits ? safe_write_bytes : waiting_.size();
    const ssize_t wrote = ::write(fd_, waiting_.data() + written_, std::min(most, waiting_.size() - written_));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) break;
    if (wrote < 0) {
      broken_ = true;
      written_ = waiting_.size();
      break;
    }
    written_ += static_cast<std::size_t>(wrote);
  }
  forget_written();
  if (empty()) {
    loop_.unwatch(fd_);
  } else if (!loop_.watches(fd_) && !loop_.watch(fd_, EPOLLOUT, [this] { write_what_fits(); })) {
    broken_ = true;
    written_ = waiting_.size();
  }
  if (on_room_ && was_full && !full()) on_room_();
}

void Sink::forget_written() {
  // Moving the rest only after half was written keeps the cost per byte constant.
  if (written_ * 2 < waiting_.size()) return;
  waiting_.erase(0, written_);
  written_ = 0;
}

OutputForwarder::OutputForwarder(EventLoop& loop, Options options)
    : loop_(loop), tag_(options.tag), out_(loop, options.out_fd) {
  if (!same_file(options.out_fd, options.err_fd)) err_ = std::make_unique<Sink>(loop, options.err_fd);
  out_.on_room([this] { resume(out_); });
  if (err_) err_->on_room([this] { resume(*err_); });
}

void OutputForwarder::add_rank(int rank, UniqueFd out, UniqueFd err) {
  const std::string prefix = tag_ ? "[" + std::to_string(rank) + "] " : std::string{};
  add(std::move(out), out_, prefix);
  add(std::move(err), sink_for_errors(), prefix);
}

void OutputForwarder::add(UniqueFd fd, Sink& sink, const std::string& prefix) {
  if (!fd.valid()) return;
  fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  streams_.push_back(std::make_unique<Stream>(Stream{std::move(fd), &sink, LineBuffer(prefix)}));
  listen(*streams_.back());
}

void OutputForwarder::listen(Stream& stream) {
  if (!loop_.watch(stream.fd.get(), EPOLLIN, [this, &stream] { read_some(stream); })) close(stream);
}

void OutputForwarder::read_some(Stream& stream) {
  // Unwatched while it waits, since epoll reports the end of a stream whether asked or not.
  if (stream.sink->full()) return loop_.unwatch(stream.fd.get());
  std::array<char, 65536> bytes;
  const ssize_t got = ::read(stream.fd.get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return close(stream);
  std::string lines;
  stream.lines.feed({bytes.data(), static_cast<std::size_t>(got)}, lines);
  stream.sink->put(lines);
  // Nobody reads any more: let the rank see that, as if it wrote there itself.
  if (stream.sink->broken()) close(stream);
}

void OutputForwarder::close(Stream& stream) {
  if (!stream.fd.valid()) return;
  std::string last;
  stream.lines.finish(last);
  stream.sink->put(last);
  loop_.unwatch(stream.fd.get());
  stream.fd.reset();
}

void OutputForwarder::resume(const Sink& sink) {
  for (const auto& stream : streams_) {
    if (stream->sink == &sink && stream->fd.valid() && !loop_.watches(stream->fd.get())) listen(*stream);
  }
}

void OutputForwarder::say(std::string_view sentence) {
  sink_for_errors().put("farsum: " + std::string(sentence) + "\n");
}

void OutputForwarder::finish() {
  for (const auto& stream : streams_) {
    std::array<char, 65536> bytes;
    std::string lines;
    for (ssize_t got = 0; stream->fd.valid() && (got = ::read(stream->fd.get(), bytes.data(), bytes.size())) > 0;) {
      stream->lines.feed({bytes.data(), static_cast<std::size_t>(got)}, lines);
    }
    stream->sink->put(lines);
    close(*stream);
  }
}

bool OutputForwarder::all_written() const { return out_.empty() && (!err_ || err_->empty()); }

}  // namespace farsum::cli
