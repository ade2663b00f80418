// The statements of fake_calls about devices, contexts, streams and events, and the raw call.
#include "calls.hpp"

namespace workload {
namespace {

// What a program does before anything else; the context is then named ctx.
Status set_up(D d, A a) {
  Handle context = nullptr;
  if (const Status bad = d.cuInit(0)) return bad;
  if (const Status bad = d.cuDevicePrimaryCtxRetain(&context, 0)) return bad;
  *a.named("ctx") = reinterpret_cast<Word>(context);
  return d.cuCtxSetCurrent(context);
}

Status query_device(D d, A) {
  int32_t count = 0, device = 0, value = 0;
  char name[64];
  if (const Status bad = d.cuDeviceGetCount(&count)) return bad;
  if (const Status bad = d.cuDeviceGet(&device, 0)) return bad;
  if (const Status bad = d.cuDeviceGetName(name, sizeof name, device)) return bad;
  return d.cuDeviceGetAttribute(&value, 75, device);
}

// Any exported function with up to 11 words: numbers, names, "texts", and @name for an output.
Status raw(D d, A a) {
  using Function = Status(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);
  auto* function = reinterpret_cast<Function*>(d.exported(a.text(1)));
  if (!function) refuse(a.statement(), "the driver exports no such function");
  Word w[11] = {};
  if (a.count() > 12) refuse(a.statement(), "at most 11 arguments");
  for (size_t i = 2; i <= a.count(); ++i) w[i - 2] = a.any(i);
  return function(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10]);
}

Status elapsed(D d, A a) {
  float milliseconds = 0;
  return d.cuEventElapsedTime(&milliseconds, a.handle(1), a.handle(2));
}

}  // namespace

const std::map<std::string, Make>& context_calls() {
  static const std::map<std::string, Make> calls = {
      {"setup", set_up},
      {"init", [](D d, A a) { return d.cuInit(static_cast<uint32_t>(a.word_or(1, 0))); }},
      {"query-device", query_device},
      {"retain", [](D d, A a) { return d.cuDevicePrimaryCtxRetain(a.out_handle(1), 0); }},
      {"release", [](D d, A) { return d.cuDevicePrimaryCtxRelease(0); }},
      {"reset", [](D d, A) { return d.cuDevicePrimaryCtxReset(0); }},
      {"context", [](D d, A a) { return d.cuCtxCreate(a.out_handle(1), nullptr, 0, 0); }},
      {"destroy-context", [](D d, A a) { return d.cuCtxDestroy(a.handle(1)); }},
      {"current", [](D d, A a) { return d.cuCtxSetCurrent(a.handle(1)); }},
      {"push", [](D d, A a) { return d.cuCtxPushCurrent(a.handle(1)); }},
      {"pop", [](D d, A a) { return d.cuCtxPopCurrent(a.out_handle(1)); }},
      {"sync-context", [](D d, A a) { return d.cuCtxSynchronize(a.stream(1)); }},
      {"stream", [](D d, A a) { return d.cuStreamCreate(a.out_handle(1), 1); }},
      {"destroy-stream", [](D d, A a) { return d.cuStreamDestroy(a.handle(1)); }},
      {"sync", [](D d, A a) { return d.cuStreamSynchronize(a.stream(1)); }},
      {"query", [](D d, A a) { return d.cuStreamQuery(a.stream(1)); }},
      {"wait-event",
       [](D d, A a) {
         return d.cuStreamWaitEvent(a.stream(2), a.handle(1),
                                    static_cast<uint32_t>(a.word_or(3, 0)));
       }},
      {"event", [](D d, A a) { return d.cuEventCreate(a.out_handle(1), 0); }},
      {"destroy-event", [](D d, A a) { return d.cuEventDestroy(a.handle(1)); }},
      {"record", [](D d, A a) { return d.cuEventRecord(a.handle(1), a.stream(2)); }},
      {"sync-event", [](D d, A a) { return d.cuEventSynchronize(a.handle(1)); }},
      {"query-event", [](D d, A a) { return d.cuEventQuery(a.handle(1)); }},
      {"elapsed", elapsed},
      {"raw", raw},
  };
  return calls;
}

bool make_call(const Driver& driver, const Arguments& arguments, Status* status) {
  for (const auto* calls :
       {&context_calls(), &memory_calls(), &copy_calls(), &launch_calls(), &graph_calls()}) {
    const auto found = calls->find(arguments.text(0));
    if (found == calls->end()) continue;
    *status = found->second(driver, arguments);
    return true;
  }
  return false;
}

}  // namespace workload
