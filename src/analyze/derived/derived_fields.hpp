// What a line does not say because it follows from earlier lines: which process it belongs to,
// which context is current on its thread, whether its stream is being captured, what the graph that
// it launches holds, in which of the program's ranges and where in its Python it is, which call
// issued what it reports of a GPU, and whether that is communication; and what a sample of a GPU
// has, which several analyses ask for. Every line goes through here before analyses see it.
#pragma once

#include <vector>

#include "analyze/derived/communication.hpp"
#include "analyze/derived/contexts.hpp"
#include "analyze/derived/graph_contents.hpp"
#include "analyze/derived/issuing_calls.hpp"
#include "analyze/derived/processes.hpp"
#include "analyze/derived/python_places.hpp"
#include "analyze/derived/range_places.hpp"
#include "cudabpf/event.hpp"

namespace cudabpf::analyze {

class DerivedFields {
 public:
  explicit DerivedFields(Names& names)
      : names_(names),
        processes_(names),
        contexts_(names),
        graphs_(names),
        places_(names),
        python_(names),
        communication_(names) {}

  void fill_in(Line& line);
  const Processes& processes() const { return processes_; }
  RangePlaces& ranges() { return places_; }
  // The places of lines are from now on those of their Python.
  void place_by_line() { places_are_lines_ = true; }

 private:
  bool is_for_threads(Name symbol);

  Names& names_;
  Processes processes_;
  Contexts contexts_;
  GraphContents graphs_;
  RangePlaces places_;
  PythonPlaces python_;
  bool places_are_lines_ = false;
  IssuingCalls issuers_;
  Communication communication_;
  GpuSample sample_;
  enum class Symbol : char { not_looked_at, plain, for_threads };
  std::vector<Symbol> symbols_;  // by the name's number
};

}  // namespace cudabpf::analyze
