#include <fmt/format.h>

#include <cmath>

#include "analyze/columns.hpp"
#include "analyze/products/peaks.hpp"
#include "analyze/products/products.hpp"
#include "cudabpf/matrix_types.hpp"

namespace cudabpf::analyze {

namespace {

using ProductRow = MatrixProducts::Row;
using ProductShape = MatrixProducts::Shape;

// How near a product came to what the GPU can do: its arithmetic, or its memory.
struct ProductRoof {
  std::string_view bound;   // "compute", "memory"; empty: not known
  double share = 0;         // in percent
  bool impossible = false;  // above all that the GPU can do, so something is wrong
};

double per_ns(double amount, const ProductRow& row) {
  return row.gpu ? amount * static_cast<double>(row.timed) / static_cast<double>(row.gpu) : 0;
}
double tflops(const ProductRow& row) { return per_ns(row.shape.flop(), row) / 1e3; }
double gigabytes(const ProductRow& row) { return per_ns(row.shape.bytes(), row); }
double flop_per_byte(const ProductRow& row) {
  double bytes = row.shape.bytes();
  return bytes > 0 ? row.shape.flop() / bytes : 0;
}

ProductRoof roof_of(const ProductRow& row, const Peaks* peaks) {
  ProductRoof roof;
  if (!peaks) return roof;
  double peak = peaks->of(row.shape.elements(), row.shape.compute);
  if (peak <= 0 || peaks->bandwidth <= 0 || flop_per_byte(row) <= 0) return roof;
  bool by_memory = flop_per_byte(row) * peaks->bandwidth < peak * 1e3;
  roof.bound = by_memory ? "memory" : "compute";
  roof.share = 100 * (by_memory ? gigabytes(row) / peaks->bandwidth : tflops(row) / peak);
  // What lies in a cache need not come from memory; no product is computed faster than the peak.
  roof.impossible = roof.share > 100;
  return roof;
}

std::string shape_text(const ProductShape& shape) {
  std::string text = fmt::format("{}x{}x{}", shape.m, shape.n, shape.k);
  if (shape.batch != 1) text += fmt::format(" x{}", shape.batch);
  return fmt::format("{} {}", text, shape.trans);
}

// "bfloat16"; of several types "float8_e4m3,float8_e4m3,bfloat16".
std::string types_text(const ProductShape& shape) {
  std::string one = shape.elements();
  return shape.types == fmt::format("{0},{0},{0}", one) ? one : shape.types;
}

// The same product in PyTorch, whose matrices lie row by row: C' = B' A'. Empty: it has no such.
std::string torch_text(const ProductShape& shape) {
  std::string_view type = matrix_type(shape.elements()).name;
  if (shape.types != fmt::format("{0},{0},{0}", type) || shape.trans.size() != 2) return {};
  if (!type.starts_with("float") && type != "bfloat16" && !type.starts_with("complex")) return {};
  if (type.starts_with("float8") || matrix_type(type).bits < 16) return {};
  auto matrix = [&](std::uint64_t rows, std::uint64_t columns, char transposed) {
    bool turned = transposed != 'n';
    if (turned) std::swap(rows, columns);
    std::string batch = shape.batch == 1 ? "" : fmt::format("{}, ", shape.batch);
    return fmt::format("torch.randn({}{}, {}, device='cuda', dtype=torch.{}){}", batch, rows,
                       columns, type, turned ? ".mT" : "");
  };
  return fmt::format("torch.{}({}, {})", shape.batch == 1 ? "mm" : "bmm",
                     matrix(shape.n, shape.k, shape.trans[1]),
                     matrix(shape.k, shape.m, shape.trans[0]));
}

constexpr auto row_shape = &ProductRow::shape;
std::string rounded_text(double number) {
  return number < 10 ? fmt::format("{:.2f}", number) : fmt::format("{:.1f}", number);
}
double in_json_as(double number) { return std::round(number * 1000) / 1000; }

// The context: what the GPU can do; null: not known.
using KnownPeaks = const Peaks*;
constexpr Column<ProductRow, KnownPeaks> PRODUCT_COLUMNS[] = {
    {{"m"}, As::number, its<row_shape, &ProductShape::m>},
    {{"n"}, As::number, its<row_shape, &ProductShape::n>},
    {{"k"}, As::number, its<row_shape, &ProductShape::k>},
    {{"batch"}, As::number, its<row_shape, &ProductShape::batch>},
    {{"trans"}, As::text, its<row_shape, &ProductShape::trans>},
    {{"types"}, As::text, its<row_shape, &ProductShape::types>},
    {{nullptr, "types"}, As::text, [](const ProductRow& row) { return types_text(row.shape); }},
    {{"compute", "sums", 4}, As::text, its<row_shape, &ProductShape::compute, if_any>},
    {{"epilogue", "then", 3}, As::text, its<row_shape, &ProductShape::epilogue, if_any>},
    {{"count", "count"}, As::count, its<&ProductRow::count>},
    {{"in_graphs", "in graphs", 5}, As::figure, its<&ProductRow::in_graphs>},
    {{"timed"}, As::count, its<&ProductRow::timed>},
    {{"gpu_us", "GPU time"}, As::time, its<&ProductRow::gpu, shown_if_any>},
    {{"mean_us", "mean", 1},
     As::time,
     [](const ProductRow& row) {
       return known_if(row.timed, row.timed ? row.gpu / row.timed : 0);
     }},
    {{"tflops"},
     As::object,
     [](const ProductRow& row) { return known_if(row.gpu, in_json_as(tflops(row))); }},
    {{nullptr, "TFLOP/s"},
     As::word,
     [](const ProductRow& row) { return known_if(row.gpu, rounded_text(tflops(row))); }},
    {{"gb_per_s"},
     As::object,
     [](const ProductRow& row) {
       return known_if(row.gpu && row.shape.bytes() > 0, in_json_as(gigabytes(row)));
     }},
    {{nullptr, "GB/s", 2},
     As::word,
     [](const ProductRow& row) {
       return known_if(row.gpu && row.shape.bytes() > 0, fmt::format("{:.0f}", gigabytes(row)));
     }},
    {{"flop_per_byte"},
     As::object,
     [](const ProductRow& row) {
       return known_if(flop_per_byte(row) > 0, in_json_as(flop_per_byte(row)));
     }},
    {{"bound"},
     As::text,
     [](const ProductRow& row, KnownPeaks peaks) {
       auto bound = roof_of(row, peaks).bound;
       return known_if(!bound.empty(), bound);
     }},
    {{"roof_percent"},
     As::object,
     [](const ProductRow& row, KnownPeaks peaks) {
       ProductRoof roof = roof_of(row, peaks);
       return known_if(row.gpu && !roof.bound.empty() && !roof.impossible, in_json_as(roof.share));
     }},
    {{nullptr, "of peak"},
     As::word,
     [](const ProductRow& row, KnownPeaks peaks) {
       ProductRoof roof = roof_of(row, peaks);
       std::string share = roof.impossible ? "?" : fmt::format("{:.0f} %", roof.share);
       return known_if(row.gpu && !roof.bound.empty(), fmt::format("{} {}", share, roof.bound));
     }},
    {{"kernels"}, As::object, its<&ProductRow::kernels>},
    {{"torch"},
     As::object,
     [](const ProductRow& row) {
       std::string text = torch_text(row.shape);
       return known_if(!text.empty(), text);
     }},
};

std::string why_none(const MatrixProducts& products) {
  return products.were_recorded()
             ? "No product of cuBLAS or cuBLASLt with a known shape is in this part of the trace."
             : "Matrix products were not recorded. `cudabpf run --inside` and `run --shapes` "
               "record them.";
}

std::string_view reason_text(std::string_view reason) {
  if (reason == "descriptors")
    return "cuBLASLt's descriptors are understood only where it was recorded from inside";
  if (reason == "grouped") return "they are groups, whose shapes lie in arrays or on the device";
  if (reason == "not_read") return "what they were given could not be read";
  return "what was read of them does not fit together";
}

void add_notes(Page& page, const MatrixProducts& products, KnownPeaks peaks) {
  const MatrixProducts::Books& books = products.books();
  auto note = [&](std::uint64_t count, std::string_view one, std::string_view several,
                  std::string_view text) {
    if (count) page.paragraph(fmt::format("{} {}", count_of(count, one, several), text), 2);
  };
  for (const auto& [reason, count] : books.unknown)
    note(count, "product has", "products have", fmt::format("no shape: {}.", reason_text(reason)));
  note(books.failed, "product", "products", "failed, and in no row.");
  note(books.without_kernel, "run has", "runs have", "no GPU time: no kernel of them is known.");
  note(books.unclaimed, "kernel", "kernels",
       fmt::format("that multiply matrices, by their names, belong to no recorded product ({}).",
                   human_time(books.unclaimed_ns)));
  note(books.ambiguous, "kernel of a graph", "kernels of graphs",
       fmt::format("may belong to products of several shapes, and are in no row ({}).",
                   human_time(books.ambiguous_ns)));
  note(books.tiles_differ, "kernel has", "kernels have",
       fmt::format("a grid that does not fit its product's shape by the tiles in its name; {} fit.",
                   with_commas(books.tiles_agree)));
  note(books.left_out, "more", "more", "had no room.");
  std::uint64_t impossible = 0;
  for (const ProductRow& row : products.rows()) impossible += roof_of(row, peaks).impossible;
  note(impossible, "row", "rows",
       "with ? came to more than the GPU can do: by memory, since matrices were in its cache, or "
       "because something of it was not recorded.");
  if (!peaks && products.measured())
    page.paragraph(
        products.gpu().empty()
            ? "No share of a peak is shown: which GPU it was is not known, or there were "
              "several kinds."
            : fmt::format("No share of a peak is shown: those of {} are not known.",
                          products.gpu()),
        2);
}

// What was counted, and what products needed of it, in ns.
struct Checked {
  double counted = 0, needed = 0, doubt = 0;
  bool tells() const { return counted > 10 * doubt; }  // it is more than rounding
  // Data sheets round what a GPU can do.
  bool contradicted() const { return tells() && needed > 1.05 * (counted + doubt); }
  double percent() const { return counted > 0 ? 100 * needed / counted : 0; }
};

struct CheckedByCounters {
  Checked tensor, memory;
};

std::optional<CheckedByCounters> checked(const MatrixProducts& products, KnownPeaks peaks) {
  auto totals = products.counted().totals();
  if (!peaks || !totals) return std::nullopt;
  // A TFLOP/s is 1,000 a ns; a GB/s is a byte a ns.
  return CheckedByCounters{
      {totals->tensor_ns, totals->half_flop / (peaks->half * 1e3), totals->doubt_ns},
      {totals->dram_ns, totals->bytes / peaks->bandwidth, totals->doubt_ns}};
}

Json checked_json(const Checked& check) {
  return {{"counted_us", std::round(check.counted) / 1e3},
          {"needed_us", std::round(check.needed) / 1e3},
          {"doubt_us", std::round(check.doubt) / 1e3},
          {"contradicted", check.contradicted()}};
}

std::string time_of(double ns) {
  constexpr double MAX = 1e18;
  return human_time(static_cast<std::uint64_t>(std::llround(std::min(ns, MAX))));
}

void add_check(Page& page, std::string_view what, const Checked& check, std::string_view why_more) {
  if (!check.tells()) return;
  page.paragraph(fmt::format("By the GPU's counters, {} active for {}; at its peak, these products "
                             "need at least {} ({:.0f} %).{}",
                             what, time_of(check.counted), time_of(check.needed), check.percent(),
                             check.contradicted() ? why_more : ""),
                 2);
}

void add_checks(Page& page, const MatrixProducts& products, KnownPeaks peaks) {
  auto by_counters = checked(products, peaks);
  if (!by_counters) return;
  add_check(page, "tensor cores were", by_counters->tensor,
            " That is more than there was: a shape, a type or a count is wrong.");
  add_check(page, "memory was", by_counters->memory,
            " That is more than there was: matrices were in the GPU's cache, or a shape, a type or "
            "a count is wrong.");
}

}  // namespace

Json products_json(const MatrixProducts& products) {
  KnownPeaks peaks = peaks_of(products.gpu());
  const MatrixProducts::Books& books = products.books();
  Json json = {{"products", list_of(products.rows(), PRODUCT_COLUMNS, peaks)},
               {"without_shape", books.unknown},
               {"failed", books.failed},
               {"without_kernel", books.without_kernel},
               {"kernels_without_product", books.unclaimed},
               {"kernels_without_product_us", microseconds(books.unclaimed_ns)},
               {"ambiguous_kernels", books.ambiguous},
               {"ambiguous_kernels_us", microseconds(books.ambiguous_ns)},
               {"tiles_agree", books.tiles_agree},
               {"tiles_differ", books.tiles_differ},
               {"left_out", books.left_out}};
  if (auto by_counters = checked(products, peaks))
    json["counters"] = {{"tensor", checked_json(by_counters->tensor)},
                        {"memory", checked_json(by_counters->memory)}};
  if (peaks)
    json["peaks"] = {{"gpu", peaks->name},  {"fp64", peaks->fp64},         {"fp32", peaks->fp32},
                     {"tf32", peaks->tf32}, {"half", peaks->half},         {"fp8", peaks->fp8},
                     {"int8", peaks->int8}, {"gb_per_s", peaks->bandwidth}};
  return json;
}

void add_products(Page& page, const MatrixProducts& products, std::size_t at_most) {
  const auto& rows = products.rows();
  KnownPeaks peaks = peaks_of(products.gpu());
  if (rows.empty()) {
    page.paragraph(why_none(products), 0);
  } else {
    Table table = table_of("products, m x n x k", PRODUCT_COLUMNS, 30);
    auto cells = cells_in(PRODUCT_COLUMNS, page, peaks);
    std::size_t shown = rows.size() <= at_most + 1 ? rows.size() : at_most;
    for (std::size_t i = 0; i < shown; i++) table.row(shape_text(rows[i].shape), cells(rows[i]));
    table.add_to(page);
    if (shown < rows.size())
      page.paragraph(fmt::format("{} more are not shown (--top).", rows.size() - shown), 2);
  }
  add_notes(page, products, peaks);
  if (!rows.empty()) add_checks(page, products, peaks);
}

}  // namespace cudabpf::analyze
