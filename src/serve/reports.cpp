#include "serve/reports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "analyze/report/report.hpp"
#include "util/hash.hpp"
#include "util/system/threads.hpp"
#include "util/text/printable.hpp"

namespace cudabpf::serve {

namespace {

struct MadePage {
  std::string text;
  bool says_running = false;
};

Result<MadePage> page_of(const Folder& folder, const FoundTrace& trace, IsWanted is_wanted) {
  auto reader = TRY(open_trace(folder, trace, std::move(is_wanted)));
  bool just_written = trace.was_just_written();
  auto may_run = [&](const analyze::TraceFacts& facts) {
    return just_written && was_written_live(trace, facts);
  };
  reader->expect_more(may_run);
  analyze::Report report(reader->names(), {}, reader->facts().part, moments_of(reader->facts()));
  TRY(analyze::analyze(*reader, {&report}));
  MadePage page;
  analyze::ByteStream out([&](std::string_view bytes) {
    page.text += bytes;
    return true;
  });
  const analyze::TraceFacts& facts = reader->facts();
  report.write(out, facts, trace.name, analyze::Report::Served{may_run(facts)});
  out.flush();
  page.says_running = !facts.end && may_run(facts);
  return page;
}

}  // namespace

std::string tag_of(const FoundTrace& trace, bool says_running) {
  // The page is another one if another version makes it, or if it says that recording goes on.
  Hasher halves[2];
  auto add = [&](std::uint64_t number) {
    for (Hasher& half : halves) half.add(number);
  };
  halves[1].add(0);
  add(says_running);
  add(hash_of(CUDABPF_VERSION));
  for (const Stamp& stamp : trace.stamps)
    for (std::uint64_t number : {stamp.device, stamp.inode, stamp.size, stamp.modified})
      add(number);
  return fmt::format("\"{:016x}{:016x}\"", halves[0].result(), halves[1].result());
}

Reports::Reports(const Folder& folder) : folder_(folder) {
  for (std::thread& worker : workers_) worker = thread_without_signals([this] { work(); });
}

Reports::~Reports() {
  end();
  for (std::thread& worker : workers_) worker.join();
}

void Reports::end() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
}

Reports::JobPointer Reports::job_of(const FoundTrace& trace) {
  std::string tag = tag_of(trace, false);
  bool may_run = trace.was_just_written();
  for (const auto* jobs : {&queue_, &under_way_, &kept_})
    for (const JobPointer& job : *jobs)
      if (job->tag == tag && job->trace.name == trace.name &&
          (may_run || !job->done || !job->answer.says_running))
        return job;
  std::erase_if(made_, [](const auto& page) { return page.expired(); });
  if (made_.size() + under_way_.size() + queue_.size() >= MAX_PAGES) return nullptr;
  auto job = std::make_shared<Job>(Job{trace, tag, 0, false, {}});
  queue_.push_back(job);
  changed_.notify_all();
  return job;
}

Reports::Answer Reports::get(const FoundTrace& trace, const IsWanted& is_wanted) {
  std::unique_lock lock(mutex_);
  Answer answer;
  // It may have been given up just when this client came.
  while (answer.outcome == Outcome::given_up && !ending_ && is_wanted()) {
    JobPointer job = job_of(trace);
    if (!job || (!job->done && clients_ >= MAX_WAITING_CLIENTS))
      return {Outcome::busy, nullptr, {}};
    job->waiting++;
    clients_++;
    while (!job->done && !ending_ && is_wanted()) changed_.wait_for(lock, ASK_AGAIN);
    clients_--;
    // The last one to go away takes it out of the line; a worker that makes it sees that it is
    // alone.
    if (!--job->waiting && !job->done) std::erase(queue_, job);
    if (job->done) answer = job->answer;
  }
  return answer;
}

void Reports::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !queue_.empty(); });
    if (ending_) return;
    JobPointer job = queue_.front();
    queue_.pop_front();
    under_way_.push_back(job);
    lock.unlock();
    Answer answer = make(*job);
    lock.lock();
    std::erase(under_way_, job);
    job->answer = std::move(answer);
    job->done = true;
    if (job->answer.outcome == Outcome::made) {
      made_.push_back(job->answer.page);
      keep(job);
    }
    changed_.notify_all();
  }
}

Reports::Answer Reports::make(const Job& job) {
  auto began = Clock::now();
  bool is_too_long = false;
  auto is_wanted = [&] {
    std::lock_guard lock(mutex_);
    is_too_long = Clock::now() - began > LONGEST;
    return !ending_ && job.waiting && !is_too_long;
  };
  try {
    auto page = page_of(folder_, job.trace, is_wanted);
    if (page)
      return {Outcome::made,
              std::make_shared<const std::string>(std::move(page->text)),
              {},
              page->says_running};
    if (!is_wanted() && !is_too_long) return {};
    if (is_too_long)
      return {Outcome::failed, nullptr, "this trace takes longer than ten minutes to read"};
    return {Outcome::failed, nullptr, printable(page.error().message)};
  } catch (const std::exception&) {  // no memory, or no thread
    return {Outcome::failed, nullptr, "there is not enough room to make this report now"};
  }
}

void Reports::keep(const JobPointer& job) {
  kept_.push_back(job);
  if (kept_.size() > KEPT) kept_.pop_front();
}

}  // namespace cudabpf::serve
