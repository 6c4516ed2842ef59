// A job started from a terminal: rank 0 reads what is typed, and the interrupt key ends the job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <string_view>

namespace farsum::cli::test {
namespace {

using testing::HasSubstr;

class Terminal : public testing::Test {
 protected:
  ~Terminal() override {
    if (child_ > 0) kill(child_, SIGKILL);
    close(terminal_);
  }

  void start(const char* option, const char* program, const char* argument) {
    child_ = forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (child_ != 0) return;
    execl(FARSUM_BIN_DIR "/farsum", "farsum", "run", "-n", "2", option, program, argument, nullptr);
    _exit(99);
  }

  void type(std::string_view keys) const {
    ASSERT_EQ(write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }

  // Reads until the terminal has shown `text`, or has closed.
  bool shows(std::string_view text) {
    std::array<char, 4096> bytes{};
    while (shown_.find(text) == std::string::npos) {
      const ssize_t got = read(terminal_, bytes.data(), bytes.size());
      if (got <= 0) return false;
      shown_.append(bytes.data(), static_cast<std::size_t>(got));
    }
    return true;
  }

  int exit_code() {
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  int terminal_ = -1;
  pid_t child_ = -1;
  std::string shown_;
};

TEST_F(Terminal, gives_what_is_typed_to_rank_zero_until_the_end_key) {
  start("--tag", "cat", "-");
  type("hello\n");
  EXPECT_TRUE(shows("[0] hello"));
  type("more\n\x04");
  EXPECT_TRUE(shows("[0] more"));
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(Terminal, ends_the_job_by_its_interrupt_key) {
  start("--tag", "yes", "here");
  EXPECT_TRUE(shows("[1] here"));
  type("\x03");
  EXPECT_TRUE(shows("(SIGINT)"));
  // Whatever is still written goes nowhere, so that the launcher need not wait for a reader.
  while (shows("no such text")) {
  }
  EXPECT_EQ(exit_code(), 128 + SIGINT);
}

}  // namespace
}  // namespace farsum::cli::test
