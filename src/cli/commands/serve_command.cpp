// cudabpf serve: the traces of a folder in a browser.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <vector>

#include "cli/commands.hpp"
#include "cli/help.hpp"
#include "cli/request/invoker.hpp"
#include "cli/signals.hpp"
#include "serve/server.hpp"
#include "serve/token.hpp"
#include "serve/traces_site.hpp"
#include "util/console/log.hpp"
#include "util/exit_codes.hpp"
#include "util/system/privileges.hpp"

namespace cudabpf::cli {

namespace {

struct ServeFlags {
  std::string folder, listen = "127.0.0.1:8077";
  std::vector<std::string> names;
  bool no_token = false;
};

// Others may ask the server for files, so it can read what its user can, and nothing more.
Result<> become_user() { return privileges::drop(caller().user, {}); }

// Once it is sure that there is something to serve.
void warn_of_root(bool no_token) {
  if (geteuid() != 0 || caller().user) return;
  log::warning(
      "serve runs as root: anyone who {} can read every trace in the folder, whoever owns it",
      no_token ? "can reach its address" : "has the link");
}

Result<serve::Address> address_of(const ServeFlags& flags) {
  auto address = TRY(serve::Address::parse(flags.listen));
  for (const std::string& name : flags.names) TRY(address.add_name(name));
  if (flags.no_token && !address.is_loopback())
    return Error{
        "--no-token needs an address that only this machine can reach, and --listen " +
            flags.listen + " is not one",
        "leave --no-token out, or listen at 127.0.0.1 behind a proxy that authenticates its users",
        exit_code::USAGE};
  return address;
}

Result<> print_address(const serve::Address& address, const std::string& token) {
  fmt::print("{}{}\n", address.url(), token.empty() ? "" : "?token=" + token);
  if (std::fflush(stdout) != 0)
    return errno_error("cannot write to standard output", "the address goes there",
                       exit_code::OUTPUT_FAILED);
  if (address.is_any())
    log::hint(
        "that is one of this machine's addresses; for a DNS name or a proxy, give --host-name");
  return ok();
}

Result<int> serve_folder(const ServeFlags& flags) {
  auto address = TRY(address_of(flags));
  TRY(become_user());
  auto folder = TRY(serve::Folder::open(flags.folder));
  Signals signals;  // threads inherit the signals that it blocks
  Fd listening = TRY(address.listen());
  std::string token = flags.no_token ? "" : TRY(serve::new_token());
  serve::TracesSite site(folder, address, token);
  auto server = TRY(serve::Server::start(std::move(listening), site));
  warn_of_root(flags.no_token);
  TRY(print_address(address, token));
  server->run(signals.fd());
  signals.read();  // one that nobody took would end the process when it is no longer blocked
  return 0;
}

}  // namespace

void add_serve(CLI::App& app, Action& action) {
  auto [sub, flags] = add_command<ServeFlags>(
      app, action, "serve", "Show a folder's traces in a browser: a list, and a report of each",
      serve_folder);
  sub.group("Subcommands that read traces");
  sub.add_option("folder", flags.folder, "The folder; traces in its subfolders are shown, too")
      ->type_name("DIR")
      ->required();
  sub.add_option("--listen", flags.listen, "Address to listen at: IP:PORT; port 0 takes a free one")
      ->type_name("ADDRESS")
      ->capture_default_str();
  sub.add_option("--host-name", flags.names,
                 "A name under which browsers reach it (in DNS, or a proxy's); may be repeated")
      ->type_name("HOST");
  sub.add_flag("--no-token", flags.no_token,
               "Let every user of this machine read the traces, whoever owns them");
  using namespace exit_code;
  add_footer(sub,
             {"cudabpf serve traces   prints a link, with a token that opens it on this machine",
              "cudabpf serve --listen 0.0.0.0:8077 --host-name gpu-17.example.com traces   for "
              "other machines"},
             fmt::format("{} ended by Ctrl-C; {} wrong usage; {} the address could not be written; "
                         "{} the folder could not be read, or the address is taken.",
                         OK, USAGE, OUTPUT_FAILED, FAILED));
}

}  // namespace cudabpf::cli
