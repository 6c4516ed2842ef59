#include "own_report.hpp"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bench {
namespace {

using OwnJson = nlohmann::ordered_json;

// A row of numbers behind what it is of.
template <class Points, class Number>
std::string row_text(const std::string& name, const Points& points, const Number& number) {
  std::string text = fmt::format("  {:<34}", name);
  for (const auto& point : points) text += fmt::format("{:>9.2f}", number(point));
  return text + "\n";
}

template <class Points, class Number>
std::string heading_text(const Points& points, const Number& number) {
  std::string text = fmt::format("  {:<34}", "");
  for (const auto& point : points) text += fmt::format("{:>9}", number(point));
  return text + "\n";
}

std::string own_parameters_text(const OwnMachine& own) {
  const cost::ReductionModel& model = own.parameters.model;
  std::string text = fmt::format(
      "\nThis machine, measured {}: {}\n\nTable 2 of this machine, us\n  L {:.2f}   r {:.2f} for each {} B\n"
      "  {:<16}{:>9}{:>9}{:>9}{:>9}{:>9}\n",
      own.parameters.when, own.parameters.source, model.latency_us, model.receive_us, model.packet_bytes,
      "c by elements", 1, 2, 4, 8, "C");
  for (const cost::CombineParameters& row : model.combines) {
    text += fmt::format("  {:<16}", operation_of({row.op, row.type, 1}));
    for (const double us : row.combine_us) text += fmt::format("{:>9.2f}", us);
    text += fmt::format("{:>9.2f}\n", row.overhead_us);
  }
  return text;
}

std::string own_serial_text(const OwnMachine& own) {
  std::string text = fmt::format("\nFigure 2 of this machine: serial reductions by nodes on {} processors, us\n",
                                 own.parameters.measured.conditions.processors);
  for (const OwnSerialRow& row : own.serial) {
    if (&row == &own.serial.front()) text += heading_text(row.points, [](const SerialPoint& at) { return at.nodes; });
    const std::string name = name_of(row.vector);
    text += row_text(name + ", measured", row.points, [](const SerialPoint& at) { return at.measured_us; });
    text += row_text(name + ", fitted", row.points, [](const SerialPoint& at) { return at.fitted_us; });
  }
  return text;
}

std::string own_degrees_text(const OwnMachine& own) {
  std::string text =
      fmt::format("\nFigure 10 of this machine, measured {}: {} nodes on {} processors by the degree of the tree, us\n",
                  own.trees.when, own.trees.nodes, own.trees.processors);
  for (const OwnDegreeRow& row : own.degrees) {
    if (&row == &own.degrees.front()) text += heading_text(row.points, [](const DegreePoint& at) { return at.degree; });
    const std::string name = name_of(row.vector);
    text += row_text(name + ", measured", row.points, [](const DegreePoint& at) { return at.measured_us; });
    text += row_text(name + ", predicted", row.points, [](const DegreePoint& at) { return at.predicted_us; });
    text += fmt::format("    {} is best, {} is predicted to be, and takes {:.2f} times as long\n",
                        row.points[row.measured_best].degree, row.points[row.predicted_best].degree, row.regret());
  }
  return text;
}

double to_the_ns(double us) { return std::round(us * 1000) / 1000; }

OwnJson own_line(const std::string& figure, const std::string& name, const OwnJson& ours, const char* unit) {
  return {{"bench", "reduce"},
          {"case", fmt::format("{}: {}", figure, name)},
          {"ours", ours},
          {"unit", unit},
          {"figure", figure}};
}

void add_own_vector(OwnJson& object, const cost::ReducedVector& vector) {
  object["operator"] = farsum::ops::name_of(vector.op);
  object["type"] = type_text(vector.type);
  object["elements"] = vector.elements;
}

// These are fitted, each to many times.
void add_own_parameters(std::string& text, const cost::ReductionModel& model) {
  constexpr const char* figure = "table 2, this machine";
  text += own_line(figure, "L", to_the_ns(model.latency_us), "us").dump() + "\n";
  text += own_line(figure, "r", to_the_ns(model.receive_us), "us").dump() + "\n";
  for (const cost::CombineParameters& row : model.combines) {
    const std::string operation = operation_of({row.op, row.type, 1});
    text += own_line(figure, "C, " + operation, to_the_ns(row.overhead_us), "us").dump() + "\n";
    for (std::size_t i = 0; i < cost::listed_elements.size(); ++i) {
      const cost::ReducedVector vector = {row.op, row.type, cost::listed_elements[i]};
      OwnJson object = own_line(figure, "c, " + name_of(vector), to_the_ns(row.combine_us[i]), "us");
      add_own_vector(object, vector);
      text += object.dump() + "\n";
    }
  }
}

void add_own_serial(std::string& text, const OwnMachine& own) {
  for (const OwnSerialRow& row : own.serial) {
    for (const SerialPoint& point : row.points) {
      const std::string name = fmt::format("{}, {} nodes", name_of(row.vector), point.nodes);
      OwnJson object = own_line("figure 2, this machine", name, to_the_ns(point.fitted_us), "us");
      object["measured"] = to_the_ns(point.measured_us);
      add_own_vector(object, row.vector);
      object["ranks"] = point.nodes;
      object["processors"] = own.parameters.measured.conditions.processors;
      text += object.dump() + "\n";
    }
  }
}

void add_own_degrees(std::string& text, const OwnMachine& own) {
  constexpr const char* figure = "figure 10, this machine";
  for (const OwnDegreeRow& row : own.degrees) {
    const auto add = [&](OwnJson object) {
      add_own_vector(object, row.vector);
      object["nodes"] = own.trees.nodes;
      object["processors"] = own.trees.processors;
      text += object.dump() + "\n";
    };
    for (const DegreePoint& point : row.points) {
      const std::string name = fmt::format("{}, degree {}", name_of(row.vector), point.degree);
      OwnJson object = own_line(figure, name, to_the_ns(point.predicted_us), "us");
      object["measured"] = to_the_ns(point.measured_us);
      object["degree"] = point.degree;
      add(std::move(object));
    }
    OwnJson best =
        own_line(figure, name_of(row.vector) + ", best degree", row.points[row.predicted_best].degree, "degree");
    best["measured"] = row.points[row.measured_best].degree;
    best["regret"] = to_the_ns(row.regret());
    add(std::move(best));
  }
}

std::string missing(const char* what, const std::string& complaint, const char* option) {
  return fmt::format("Of this machine {} measured{}: farsum info --model --measure {} does it\n", what,
                     complaint.empty() ? "" : fmt::format(" ({})", complaint), option);
}

}  // namespace

std::string missing_of(const OwnMachine& own) {
  std::string text;
  if (!own.parameters.is_measured()) text += missing("no parameters are", own.parameters.complaint, "--reductions");
  if (!own.trees.are_there()) text += missing("no trees are", own.trees.complaint, "--trees");
  return text;
}

std::string tables_of(const OwnMachine& own) {
  std::string text;
  if (own.parameters.is_measured()) text += own_parameters_text(own) + own_serial_text(own);
  if (!own.degrees.empty()) text += own_degrees_text(own);
  const std::string without = missing_of(own);
  return without.empty() ? text : text + "\n" + without;
}

std::string lines_of(const OwnMachine& own) {
  std::string text;
  if (own.parameters.is_measured()) add_own_parameters(text, own.parameters.model);
  add_own_serial(text, own);
  add_own_degrees(text, own);
  return text;
}

}  // namespace bench
