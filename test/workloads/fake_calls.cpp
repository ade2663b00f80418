// Makes exactly the driver calls that a script lists, so that a test knows what a trace must
// have.
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "range_calls.hpp"
#include "script.hpp"

namespace workload {
namespace {

// What a signal's handler does, and the stack on which it does that. The stack is mapped before any
// thread's: it is below the main thread's stack, and above the others'.
std::function<void()> in_handler;
constexpr size_t kHandlerStackSize = 256 << 10;
void* const handler_stack =
    mmap(nullptr, kHandlerStackSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

class Run {
 public:
  Run(const Driver& driver, std::vector<std::string> own_command)
      : driver_(driver), own_command_(std::move(own_command)) {}

  void all(const std::vector<Statement>& statements) {
    for (const Statement& statement : statements) one(statement);
  }

  // For the threads and children that the script did not wait for.
  void finish() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    for (const pid_t child : children_) {
      int status = 0;
      waitpid(child, &status, 0);
      if (WIFEXITED(status) && WEXITSTATUS(status) != 0) exit(WEXITSTATUS(status));
    }
    children_.clear();
  }

 private:
  void one(const Statement& statement) {
    const std::string& name = statement.tokens[0];
    const Arguments arguments(statement, variables_);
    if (name == "fails") {
      expect(tail(statement, 2), static_cast<Status>(arguments.word(1)));
    } else if (!control(name, statement, arguments)) {
      expect(statement, kSuccess);
    }
  }

  // Makes the call, which has to return this status.
  void expect(const Statement& statement, Status wanted) {
    Status status = kSuccess;
    if (statement.tokens.empty() ||
        !make_call(driver_, Arguments(statement, variables_), &status)) {
      refuse(statement, "there is no such statement");
    }
    if (status == wanted) return;
    fprintf(stderr, "fake_calls: %s returned %u, not %u\n", statement.tokens[0].c_str(), status,
            wanted);
    exit(1);
  }

  // Runs a statement that is not a driver call; false if this is not such a statement.
  bool control(const std::string& name, const Statement& statement, const Arguments& arguments) {
    if (name == "loop") {
      for (Word left = arguments.word(1); left > 0; --left) all(statement.block);
    } else if (name == "thread") {
      threads_.emplace_back([&statement, copy = Run(driver_, own_command_, variables_)]() mutable {
        copy.all(statement.block);
        copy.finish();
      });
    } else if (name == "fork") {
      fork_child(statement);
    } else if (name == "join" || name == "wait") {
      finish();
    } else if (name == "exec") {
      exec(statement.block_text);
    } else if (name == "sleep") {
      sleep_us(arguments.word(1) * 1000);
    } else if (name == "alarm") {
      interrupt(statement, arguments.word(1));
    } else if (name == "open") {
      *arguments.out(1) = static_cast<Word>(succeeds(statement, ::open(arguments.text(2), O_RDWR)));
    } else if (name == "ioctl") {
      make_ioctl(statement, static_cast<int>(arguments.word(1)), arguments.word(2));
    } else if (name == "close") {
      succeeds(statement, ::close(static_cast<int>(arguments.word(1))));
    } else if (name == "close-from") {
      closefrom(static_cast<int>(arguments.word(1)));
    } else if (name == "read") {  // waits until the test writes a line, or closes
      for (char c = 0; read(STDIN_FILENO, &c, 1) == 1 && c != '\n';) {
      }
    } else if (name == "print") {
      std::string line;  // whole, whatever other threads print
      for (size_t i = 1; arguments.has(i); ++i)
        line += std::string(i > 1 ? " " : "") + arguments.text(i);
      fputs((line + "\n").c_str(), stdout);
      fflush(stdout);
    } else if (name == "range") {
      if (!name_range(arguments)) refuse(statement, "there is no such range statement");
    } else if (name == "comm") {
      prctl(PR_SET_NAME, arguments.text(1));
    } else if (name == "exit") {
      exit(static_cast<int>(arguments.word(1)));
    } else if (name == "quit") {
      _exit(static_cast<int>(arguments.word(1)));
    } else if (name == "kill") {
      kill(getpid(), static_cast<int>(arguments.word(1)));
    } else {
      return false;
    }
    return true;
  }

  Run(const Driver& driver, std::vector<std::string> own_command, Variables variables)
      : driver_(driver), own_command_(std::move(own_command)), variables_(std::move(variables)) {}

  static int succeeds(const Statement& statement, int result) {
    if (result >= 0) return result;
    fprintf(stderr, "fake_calls: %s: %s\n", statement.tokens[0].c_str(), strerror(errno));
    exit(1);
  }

  // Makes an ioctl with a struct of zeros, of the size that is in the request.
  static void make_ioctl(const Statement& statement, int descriptor, Word request) {
    std::vector<char> structure(_IOC_SIZE(request) + 1);
    succeeds(statement, ioctl(descriptor, request, structure.data()));
  }

  // After that many ms, this thread, wherever it is by then, handles a signal by running the block.
  void interrupt(const Statement& statement, Word ms) {
    auto copy = std::make_shared<Run>(Run(driver_, own_command_, variables_));
    in_handler = [&statement, copy] { copy->all(statement.block); };
    stack_t stack = {};
    stack.ss_sp = handler_stack;
    stack.ss_size = kHandlerStackSize;
    succeeds(statement, sigaltstack(&stack, nullptr));
    struct sigaction action = {};
    action.sa_handler = [](int) { in_handler(); };
    action.sa_flags = SA_ONSTACK;
    succeeds(statement, sigaction(SIGALRM, &action, nullptr));
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGALRM;
    event._sigev_un._tid = gettid();
    timer_t timer = nullptr;
    succeeds(statement, timer_create(CLOCK_MONOTONIC, &event, &timer));
    itimerspec when = {};
    when.it_value = {static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000 * 1000000)};
    succeeds(statement, timer_settime(timer, 0, &when, nullptr));
  }

  void fork_child(const Statement& statement) {
    fflush(stdout);
    const pid_t child = fork();
    if (child != 0) {
      children_.push_back(child);
      return;
    }
    children_.clear();
    all(statement.block);
    finish();
    exit(0);
  }

  // Replaces this program with itself, running another script.
  [[noreturn]] void exec(const std::string& script) {
    std::vector<char*> command;
    for (std::string& argument : own_command_) command.push_back(argument.data());
    command.push_back(const_cast<char*>(script.c_str()));
    command.push_back(nullptr);
    execv("/proc/self/exe", command.data());
    perror("fake_calls: exec");
    exit(1);
  }

  static Statement tail(const Statement& statement, size_t from) {
    Statement rest;
    for (size_t i = from; i < statement.tokens.size(); ++i)
      rest.tokens.push_back(statement.tokens[i]);
    return rest;
  }

  const Driver& driver_;
  std::vector<std::string> own_command_;  // without the script
  Variables variables_;
  std::vector<std::thread> threads_;
  std::vector<pid_t> children_;
};

}  // namespace
}  // namespace workload

int main(int argc, char** argv) {
  workload::DriverOptions options;
  std::vector<std::string> scripts;
  CLI::App app("Makes the driver calls of a script, given as arguments or on stdin");
  app.add_option("--library,--libcuda", options.library, "the driver to load");
  app.add_flag("--dlsym", options.use_dlsym, "find functions by dlsym");
  app.add_flag("--per-thread-stream", options.per_thread, "use the _ptsz and _ptds functions");
  app.add_option("script", scripts, "statements; each argument is a line");
  CLI11_PARSE(app, argc, argv);
  std::string text;
  for (const std::string& script : scripts) text += script + "\n";
  if (scripts.empty()) text.assign(std::istreambuf_iterator<char>(std::cin), {});
  const std::vector<workload::Statement> statements = workload::parse(text);
  std::vector<std::string> own_command = {argv[0], "--library=" + options.library};
  if (options.use_dlsym) own_command.push_back("--dlsym");
  if (options.per_thread) own_command.push_back("--per-thread-stream");
  const workload::Driver driver(options);
  workload::Run run(driver, own_command);
  run.all(statements);
  run.finish();
  return 0;
}
