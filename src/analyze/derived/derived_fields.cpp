#include "analyze/derived/derived_fields.hpp"

#include "analyze/derived/gpu_samples.hpp"
#include "cudabpf/cuda_api.hpp"

namespace cudabpf::analyze {

void DerivedFields::fill_in(Line& line) {
  processes_.follow(line);
  if (line.kind == LineKind::call)
    line.default_is_threads = line.symbol && is_for_threads(line.symbol);
  contexts_.follow(line);
  if (line.captured && gives_work(line.work)) line.work = Work::recorded;
  graphs_.follow(line);
  places_.follow(line);
  python_.follow(line);
  if (places_are_lines_) line.place = python_.place_of(line);
  issuers_.follow(line);
  if (line.issuer) {
    line.place = line.issuer->place;
    line.wanted = line.issuer->wanted;
    line.python = line.issuer->python;
  }
  communication_.follow(line, graphs_);
  if (line.kind != LineKind::gpu_sample) return;
  sample_ = sample_in(line);
  line.sample = &sample_;
}

bool DerivedFields::is_for_threads(Name symbol) {
  if (symbol.id >= symbols_.size()) symbols_.resize(names_.size());
  Symbol& known = symbols_[symbol.id];
  if (known == Symbol::not_looked_at) {
    bool for_threads = cudabpf::is_for_threads(names_.text(symbol));
    known = for_threads ? Symbol::for_threads : Symbol::plain;
  }
  return known == Symbol::for_threads;
}

}  // namespace cudabpf::analyze
