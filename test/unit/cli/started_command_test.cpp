#include "cli/started_command.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include "support/temporary_folder.hpp"
#include "support/trace_reading.hpp"
#include "support/waiting.hpp"
#include "util/exit_codes.hpp"

using namespace cudabpf;
using cudabpf::cli::StartedCommand;
namespace fs = std::filesystem;

namespace {

constexpr int PATIENCE_MS = 10'000;

StartedCommand::Options shell(const std::string& script) {
  return {.arguments = {"/bin/sh", "-c", script}, .environment = {}, .user = {}};
}

// Its status, once it has ended.
std::optional<int> end_of(StartedCommand& command) {
  REQUIRE(is_readable(command.pidfd(), PATIENCE_MS));
  return command.status();
}

}  // namespace

TEST_CASE("A command runs once it is released, and not before") {
  TemporaryFolder folder;
  fs::path mark = folder.path() / "mark";
  auto command = StartedCommand::prepare(shell("echo ran > " + mark.string()));
  REQUIRE(command);
  CHECK(command->pid() > 0);
  CHECK_FALSE(is_readable(command->pidfd(), 50));
  CHECK_FALSE(command->status());
  CHECK_FALSE(fs::exists(mark));
  REQUIRE(command->release());
  CHECK(end_of(*command) == 0);
  CHECK(command->status() == 0);  // a second time
  CHECK(file_text(mark) == "ran\n");
}

TEST_CASE("A command that is never released ends without having run") {
  TemporaryFolder folder;
  fs::path mark = folder.path() / "mark";
  pid_t pid = 0;
  {
    auto command = StartedCommand::prepare(shell("echo ran > " + mark.string()));
    REQUIRE(command);
    pid = command->pid();
    CHECK(kill(pid, 0) == 0);
  }
  CHECK(kill(pid, 0) == -1);  // nor is there a zombie of it
  CHECK(errno == ESRCH);
  CHECK_FALSE(fs::exists(mark));
}

TEST_CASE("A command's status is what a shell would say of it") {
  auto status_of = [](const std::string& script) {
    auto command = StartedCommand::prepare(shell(script));
    REQUIRE(command);
    REQUIRE(command->release());
    return end_of(*command);
  };
  CHECK(status_of("exit 0") == 0);
  CHECK(status_of("exit 7") == 7);
  CHECK(status_of("kill -TERM $$") == exit_code::SIGNAL_BASE + SIGTERM);
}

TEST_CASE("A command gets the arguments and the environment that were given, and no others") {
  TemporaryFolder folder;
  fs::path out = folder.path() / "out";
  StartedCommand::Options options{
      .arguments = {"sh", "-c", "/usr/bin/env > \"$0\"; echo \"$# $1 $2\" >> \"$0\"", out.string(),
                    "one two", ""},
      .environment = {"PATH=/bin:/usr/bin", "NAME=a value"},
      .user = {}};
  auto command = StartedCommand::prepare(options);
  REQUIRE(command);
  REQUIRE(command->release());
  CHECK(end_of(*command) == 0);
  std::string text = file_text(out);
  CHECK(text.find("NAME=a value\n") != text.npos);
  CHECK(text.find("HOME=") == text.npos);
  CHECK(text.ends_with("2 one two \n"));
}

TEST_CASE("A command that is not there is refused before anything starts") {
  auto command = StartedCommand::prepare(
      {.arguments = {"no-such-program", "x"}, .environment = {"PATH=/bin"}, .user = {}});
  REQUIRE_FALSE(command);
  CHECK(command.error().message == "no-such-program: command not found");
  CHECK(command.error().exit_code == exit_code::NOT_FOUND);
}

TEST_CASE("Why a command cannot be executed is reported, and by its status as shells do") {
  TemporaryFolder folder;
  std::string plain = folder.write("plain", "text").string();
  std::string script = folder.write("script", "#!/no/such/interpreter\n").string();
  std::string missing = (folder.path() / "missing").string();
  fs::permissions(plain, fs::perms(0644));
  fs::permissions(script, fs::perms(0755));
  struct Case {
    std::string program;
    const char* why;
    const char* hint;
    int status;
  };
  for (const Case& c :
       {Case{plain, "Permission denied", "check its permissions, and those of its folders",
             exit_code::CANNOT_EXECUTE},
        Case{script, "No such file or directory",
             "the interpreter that its first line names is missing", exit_code::NOT_FOUND},
        Case{missing, "No such file or directory", "give its path, or put its folder on PATH",
             exit_code::NOT_FOUND}}) {
    CAPTURE(c.program);
    auto command =
        StartedCommand::prepare({.arguments = {c.program}, .environment = {}, .user = {}});
    REQUIRE(command);
    auto released = command->release();
    REQUIRE_FALSE(released);
    CHECK(released.error().message == "cannot execute " + c.program + ": " + c.why);
    CHECK(released.error().hint == c.hint);
    CHECK(released.error().exit_code == c.status);
    CHECK(end_of(*command) == c.status);
  }
}

TEST_CASE("A command that was killed while it waited has that status") {
  auto before = std::signal(SIGPIPE, SIG_IGN);  // as cudabpf does
  auto command = StartedCommand::prepare(shell("exit 0"));
  REQUIRE(command);
  kill(command->pid(), SIGKILL);
  CHECK(is_readable(command->pidfd(), PATIENCE_MS));
  CHECK(command->release());
  CHECK(end_of(*command) == exit_code::SIGNAL_BASE + SIGKILL);
  std::signal(SIGPIPE, before);
}
