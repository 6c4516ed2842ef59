// The files of the cost model's parameters: what is read, what is refused, and that jobs go by them.
#include "runtime/link_models.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "temporary_folder.hpp"

namespace farsum {
namespace {

using cost::LinkClass;
using testing::HasSubstr;

class ModelFile : public testing::Test {
 protected:
  void write(const std::string& text, LinkClass link = LinkClass::node) const {
    std::ofstream(model_file(folder_, link)) << text;
  }
  std::string written(LinkClass link = LinkClass::node) const {
    std::ifstream file(model_file(folder_, link));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void expect_built_in(const std::string& why, LinkClass link = LinkClass::node) const {
    const LinkParameters read = read_link_parameters(folder_, link);
    EXPECT_FALSE(read.measured);
    EXPECT_EQ(read.source, "built in");
    EXPECT_EQ(read.model.copy_us, cost::defaults(link).copy_us);
    EXPECT_THAT(read.complaint, HasSubstr(why));
  }

  const TemporaryFolder own_;
  const std::string folder_ = own_.path();
};

cost::LinkModel every_parameter_different() {
  cost::LinkModel model;
  double value = 0.5;
  for (const cost::Parameter& parameter : cost::parameters()) model.*parameter.value = value += 1;
  return model;
}

TEST_F(ModelFile, gives_back_what_was_written_with_its_time_and_leaves_no_other_file) {
  const cost::LinkModel model = every_parameter_different();
  ASSERT_TRUE(write_link_parameters(folder_ + "/deeper", LinkClass::node, model, "today").is_ok());
  const LinkParameters read = read_link_parameters(folder_ + "/deeper", LinkClass::node);
  EXPECT_TRUE(read.measured);
  EXPECT_EQ(read.when, "today");
  EXPECT_EQ(read.complaint, "");
  for (const cost::Parameter& parameter : cost::parameters()) {
    EXPECT_EQ(read.model.*parameter.value, model.*parameter.value) << parameter.name;
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ + "/deeper"), {}), 1);
}

TEST_F(ModelFile, that_is_missing_is_no_reason_to_complain) {
  const LinkParameters read = read_link_parameters(folder_, LinkClass::tcp);
  EXPECT_FALSE(read.measured);
  EXPECT_EQ(read.complaint, "");
}

TEST_F(ModelFile, that_is_damaged_is_named_and_not_used) {
  for (const char* text : {"", "{", "[]", "null", "7", "\xff\xfe", "{\"version\": \"1\"}"}) {
    write(text);
    expect_built_in(folder_);
  }
  ASSERT_TRUE(write_link_parameters(folder_, LinkClass::node, every_parameter_different(), "today").is_ok());
  const std::string whole = written();
  write(whole.substr(0, whole.size() / 2));
  expect_built_in("not JSON");
}

TEST_F(ModelFile, with_a_value_that_no_link_has_is_not_used) {
  ASSERT_TRUE(write_link_parameters(folder_, LinkClass::node, every_parameter_different(), "today").is_ok());
  const std::string whole = written();
  const std::string key = "\"copy_us\": ";
  const std::size_t at = whole.find(key) + key.size();
  for (const char* value : {"-1", "1e300", "\"1\"", "null", "[]"}) {
    write(whole.substr(0, at) + value + whole.substr(whole.find_first_of(",\n", at)));
    expect_built_in("copy_us");
  }
}

TEST_F(ModelFile, of_another_machine_version_or_class_is_not_used) {
  ASSERT_TRUE(write_link_parameters(folder_, LinkClass::node, every_parameter_different(), "today").is_ok());
  const std::string whole = written();
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    text.replace(text.find(from), from.size(), to);
    write(text);
  };
  with("\"machine\": \"", "\"machine\": \"not ");
  expect_built_in("another kind of machine");
  with("\"version\": 1", "\"version\": 2");
  expect_built_in("version");
  with("\"class\": \"node\"", "\"class\": \"tcp\"");
  expect_built_in("another class");
}

// As a copy of another pair's file would be.
TEST_F(ModelFile, that_leads_to_another_kind_of_machine_is_not_used) {
  ASSERT_TRUE(write_link_parameters(folder_, LinkClass::tcp, every_parameter_different(), "today").is_ok());
  ASSERT_TRUE(read_link_parameters(folder_, LinkClass::tcp).measured);
  std::string text = written(LinkClass::tcp);
  const std::string partner = "\"partner\": \"";
  text.insert(text.find(partner) + partner.size(), "not ");
  write(text, LinkClass::tcp);
  expect_built_in("leads to another kind", LinkClass::tcp);
}

// In one folder, as machines that share a home have it.
TEST_F(ModelFile, of_each_kind_of_partner_is_one_of_its_own) {
  const std::string other_kind = "slow processor, 4 processors";
  const std::uint32_t other = machine_number(other_kind);
  cost::LinkModel to_own = every_parameter_different(), to_other = to_own;
  to_other.latency_us = 77;
  ASSERT_TRUE(write_link_parameters(folder_, LinkClass::tcp, to_own, "today").is_ok());
  EXPECT_FALSE(read_link_parameters(folder_, LinkClass::tcp, other).measured);
  ASSERT_TRUE(write_link_parameters(folder_, LinkClass::tcp, to_other, "today", other_kind).is_ok());
  EXPECT_EQ(read_link_parameters(folder_, LinkClass::tcp, other).model.latency_us, 77);
  EXPECT_EQ(read_link_parameters(folder_, LinkClass::tcp).model.latency_us, to_own.latency_us);
  std::ifstream file(model_file(folder_, LinkClass::tcp, other));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, HasSubstr(other_kind));
}

TEST_F(ModelFile, of_a_node_is_named_by_its_kind_and_the_same_whatever_the_partner) {
  EXPECT_EQ(model_file("f", LinkClass::node, 1), fmt::format("f/node-{:08x}.json", own_machine_number()));
  EXPECT_EQ(model_file("f", LinkClass::node, 1), model_file("f", LinkClass::node, 2));
}

TEST_F(ModelFile, without_some_parameter_leaves_that_at_its_built_in_value) {
  ASSERT_TRUE(write_link_parameters(folder_, LinkClass::node, every_parameter_different(), "today").is_ok());
  std::string text = written();
  text.replace(text.find("\"copy_us\""), 9, "\"unknown\"");
  write(text);
  const LinkParameters read = read_link_parameters(folder_, LinkClass::node);
  EXPECT_TRUE(read.measured);
  EXPECT_EQ(read.model.copy_us, cost::defaults(LinkClass::node).copy_us);
  EXPECT_NE(read.model.send_us, cost::defaults(LinkClass::node).send_us);
}

TEST(ModelFolder, is_the_setting_else_the_users_cache) {
  const auto environment = [](const char* cache, const char* home) {
    return [cache, home](const char* name) { return std::string(name) == "HOME" ? home : cache; };
  };
  Settings settings;
  EXPECT_EQ(model_folder(settings, environment("/c", "/h")), "/c/farsum/model");
  EXPECT_EQ(model_folder(settings, environment(nullptr, "/h")), "/h/.cache/farsum/model");
  EXPECT_EQ(model_folder(settings, environment("", "/h")), "/h/.cache/farsum/model");
  EXPECT_EQ(model_folder(settings, environment(nullptr, nullptr)), "");
  settings.model = "/elsewhere";
  EXPECT_EQ(model_folder(settings, environment("/c", "/h")), "/elsewhere");
  settings.model = "none";
  EXPECT_EQ(model_folder(settings, environment("/c", "/h")), "");
}

TEST_F(ModelFile, turns_the_thresholds_that_paths_are_chosen_by) {
  Settings settings;
  settings.model = folder_;
  const Environment nothing = [](const char*) { return nullptr; };
  EXPECT_EQ(read_path_model(settings, nothing).thresholds.caller_from_bytes, cost::never);
  cost::LinkModel slow_owner = cost::defaults(LinkClass::tcp);
  slow_owner.owner_reduce_per_byte_us = 1;
  ASSERT_TRUE(write_link_parameters(folder_, LinkClass::tcp, slow_owner, "today").is_ok());
  EXPECT_LT(read_path_model(settings, nothing).thresholds.caller_from_bytes, 4096u);
  EXPECT_EQ(read_path_model(settings, nothing, machine_number("another")).thresholds.caller_from_bytes, cost::never);
  write("{");
  write("[", LinkClass::tcp);
  EXPECT_EQ(read_path_model(settings, nothing).note,
            fmt::format("{} is not used: it is not JSON; {} is not used: it is not JSON",
                        model_file(folder_, LinkClass::node), model_file(folder_, LinkClass::tcp)));
}

TEST(MachineKind, is_the_first_processors_model_and_their_number) {
  EXPECT_EQ(machine_kind("processor\t: 0\nmodel name\t: Some CPU @ 2: fast\nflags\t: a b\n\nmodel name\t: Other\n", 2),
            "Some CPU @ 2: fast, 2 processors");
  EXPECT_EQ(machine_kind("model name\t: Cut of", 16), "Cut of, 16 processors");
}

TEST(MachineKind, is_unknown_where_the_first_processor_does_not_say) {
  for (const char* cpuinfo : {"", "processor\t: 0\n\nprocessor\t: 1\nmodel name\t: Other\n", "model name\t:\n",
                              "model name\t", "BogoMIPS\t: 50.00\n"})
    EXPECT_EQ(machine_kind(cpuinfo, 4), "unknown processor, 4 processors") << cpuinfo;
}

TEST(MachineKind, has_room_for_a_long_name) {
  const std::string name(300, 'x');
  EXPECT_EQ(machine_kind("model name\t: " + name + "\n", 4), name.substr(0, 192) + ", 4 processors");
}

}  // namespace
}  // namespace farsum
