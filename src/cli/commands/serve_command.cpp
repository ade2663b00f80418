// cudabpf serve: the traces of a folder in a browser.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/help.hpp"
#include "cli/request/invoker.hpp"
#include "cli/signals.hpp"
#include "serve/server.hpp"
#include "serve/token.hpp"
#include "util/console/log.hpp"
#include "util/exit_codes.hpp"
#include "util/system/privileges.hpp"

namespace cudabpf::cli {

namespace {

struct ServeFlags {
  std::string folder, listen = "127.0.0.1:8077";
};

// Others may ask the server for files, so it can read what its user can, and nothing more.
Result<> become_user() {
  if (geteuid() == 0 && !caller().user)
    log::warning(
        "serve runs as root: whoever reaches its address sees every trace in the folder, whoever "
        "it belongs to");
  return privileges::drop(caller().user, {});
}

Result<> tell_address(const serve::Address& address, const std::string& token) {
  fmt::print("{}{}\n", address.url(), token.empty() ? "" : "?token=" + token);
  if (std::fflush(stdout) != 0)
    return errno_error("cannot write to standard output", "the address goes there",
                       exit_code::OUTPUT_FAILED);
  if (address.is_any())
    log::hint("from another machine, put this one's address in numbers into the link");
  return ok();
}

Result<int> serve_folder(const ServeFlags& flags) {
  auto address = TRY(serve::Address::parse(flags.listen));
  TRY(become_user());
  auto folder = TRY(serve::Folder::open(flags.folder));
  Signals signals;  // threads inherit the signals that it blocks
  Fd listening = TRY(address.listen());
  std::string token = address.is_loopback() ? "" : TRY(serve::new_token());
  serve::Site site(folder, address, token);
  auto server = TRY(serve::Server::start(std::move(listening), site));
  TRY(tell_address(address, token));
  server->run(signals.fd());
  signals.read();  // one that nobody took would end the process when it is no longer blocked
  return 0;
}

}  // namespace

void add_serve(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* sub = app.add_subcommand(
      "serve", "The traces of a folder in a browser: a list, and a report of each");
  sub->group("Subcommands that read traces");
  sub->add_option("folder", flags->folder, "The folder; traces in its subfolders are shown, too")
      ->type_name("DIR")
      ->required();
  sub->add_option("--listen", flags->listen,
                  "Where it can be reached; an address that others reach gets a token")
      ->type_name("ADDRESS")
      ->capture_default_str();
  using namespace exit_code;
  add_footer(*sub,
             {"cudabpf serve traces   http://127.0.0.1:8077/, for who is on this machine",
              "cudabpf serve --listen 0.0.0.0:8077 traces   for others, with a token"},
             fmt::format("{} ended by Ctrl-C; {} wrong usage; {} the address could not be written; "
                         "{} the folder could not be read, or the address is taken.",
                         OK, USAGE, OUTPUT_FAILED, FAILED));
  sub->callback([flags, &action] { action = [flags] { return serve_folder(*flags); }; });
}

}  // namespace cudabpf::cli
