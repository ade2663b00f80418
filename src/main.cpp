// Picks a subcommand. Each has a file of its own in src/cli/commands.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/help.hpp"
#include "cli/shown.hpp"
#include "util/console/log.hpp"
#include "util/exit_codes.hpp"

namespace cudabpf {

// A trace that is opened where standard error was closed would get its number, and every message.
// What is opened here instead cannot be written to, and no command inherits it.
static void occupy_standard_descriptors() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int run(int argc, char** argv) {
  CLI::App app{
      "cudabpf records CUDA driver calls on this machine, from the kernel: nothing is linked, "
      "preloaded or restarted. With options alone, such as --duration 30s or -o FILE, it "
      "traces the whole machine until Ctrl-C."};
  app.name("cudabpf");
  app.failure_message([](const CLI::App* given, const CLI::Error& error) {
    return cli::usage_error(*given, error);
  });
  app.set_version_flag("-V,--version", "cudabpf " CUDABPF_VERSION);
  app.formatter(cli::help_formatter());  // before subcommands, which inherit it
  app.fallthrough(false);
  app.require_subcommand(0, 1);

  cli::Action action;
  cli::add_machine(app, action);
#define COMMAND(name) cli::add_##name(app, action);
#include "cli/commands.def"

  cli::take_kept_brackets(app);

  try {
    if (cli::is_inside_reader(argc, argv))
      action = [argv] { return cli::read_inside(argv[2]); };
    else if (cli::is_replay_worker(argc, argv))
      action = cli::work_on_replay;
    else if (cli::is_completion(argc, argv))
      action = [&app, argc, argv] {
        cli::complete(app, argc, argv);
        return exit_code::OK;
      };
    else
      app.parse(cli::arguments_of(argc, argv));
  } catch (const CLI::CallForHelp&) {
    action = [&app] {
      cli::show(app.help(), stdout);
      return 0;
    };
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? exit_code::OK : exit_code::USAGE;
  }
  Result<int> status = action();
  if (status && std::fflush(stdout) != 0) {
    log::error(errno_error("cannot write to standard output", {}, exit_code::OUTPUT_FAILED));
    return exit_code::OUTPUT_FAILED;
  }
  if (status) return *status;
  log::error(status.error());
  return status.error().exit_code;
}

}  // namespace cudabpf

int main(int argc, char** argv) {
  cudabpf::occupy_standard_descriptors();
  try {
    return cudabpf::run(argc, argv);
  } catch (const std::exception& error) {  // out of memory, or standard output is full or gone
    bool not_written = std::ferror(stdout) != 0;
    cudabpf::log::error("{}{}", not_written ? "standard output could not be written: " : "",
                        error.what());
    return not_written ? cudabpf::exit_code::OUTPUT_FAILED : cudabpf::exit_code::FAILED;
  }
}
