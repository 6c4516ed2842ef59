// A file of measurements that a test writes whole, in part or with other values in it.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "temporary_folder.hpp"

namespace farsum {

class MeasuredFile : public testing::Test {
 protected:
  using PathIn = std::string (*)(const std::string& folder);
  explicit MeasuredFile(PathIn path_in) : path_(path_in(folder_)) {}

  virtual void write_good() const = 0;
  // What is there is not used, and it is said why.
  virtual void expect_refused(const std::string& why) const = 0;

  void write(const std::string& text) const { std::ofstream(path_) << text; }
  std::string written() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // In what was written whole, once.
  void replace(const std::string& from, const std::string& to) const {
    write_good();
    std::string text = written();
    ASSERT_NE(text.find(from), std::string::npos) << from;
    write(text.replace(text.find(from), from.size(), to));
  }
  void expect_damage_is_named() const {
    for (const char* text : {"", "{", "[]", "null", "7", "\xff\xfe", "{\"version\": \"1\"}"}) {
      write(text);
      expect_refused(path_ + " is not used");
    }
    write_good();
    const std::string whole = written();
    write(whole.substr(0, whole.size() / 2));
    expect_refused("not JSON");
  }
  void expect_strangers_are_refused(const std::string& own_class, const std::string& other_class) const {
    replace("\"machine\":\"", "\"machine\":\"not ");
    expect_refused("another kind of machine");
    replace("\"version\":1", "\"version\":2");
    expect_refused("version");
    replace("\"class\":\"" + own_class + "\"", "\"class\":\"" + other_class + "\"");
    expect_refused("something else");
  }

  const TemporaryFolder own_;
  const std::string folder_ = own_.path();
  const std::string path_;
};

}  // namespace farsum
