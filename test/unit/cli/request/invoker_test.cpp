#include "cli/request/invoker.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "sample_processes.hpp"
#include "util/exit_codes.hpp"

using namespace cudabpf;
using namespace cudabpf::cli;

namespace {

using Variables = std::vector<std::string>;

constexpr pid_t SHELL = 20, SUDO = 30, SUDOS_CHILD = 31, ROOTS_SHELL = 32, CUDABPF = 40;
constexpr uid_t USER = 4242, OTHER = 4343;

// What a sudo of that user gives the command that it starts.
Variables given_by_sudo(uid_t user, const std::string& command = "./cudabpf") {
  std::string number = std::to_string(user);
  return {"PATH=/usr/sbin:/sbin", "HOME=/root",         "SUDO_UID=" + number,
          "SUDO_GID=" + number,   "SUDO_USER=somebody", "SUDO_COMMAND=" + command};
}

// A shell of USER's, which calls `sudo cudabpf`.
struct Called : SampleProcesses {
  Called() {
    add(SHELL, 1, "bash", USER);
    add(SUDO, SHELL, "sudo", USER);
    add(CUDABPF, SUDO, "cudabpf");
    set_environment(SUDO, USERS);
  }
  Caller caller(const Variables& own = given_by_sudo(USER)) const {
    return caller_of(procfs(), CUDABPF, own);
  }
  const Variables USERS = {"PATH=/home/u/bin", "HOME=/home/u", "LD_LIBRARY_PATH=/opt/cuda",
                           "CUDA_X=1"};
};

bool is_user(const Caller& caller) { return caller.user && caller.user->uid == USER; }

}  // namespace

TEST_CASE("The user who called sudo owns the command, with that user's own variables") {
  Called processes;
  Caller caller = processes.caller();
  REQUIRE(caller.user);
  CHECK(caller.user->uid == USER);
  CHECK(caller.user->gid == USER);
  CHECK(caller.user->name == "somebody");
  CHECK(std::count(caller.user->groups.begin(), caller.user->groups.end(), USER) == 1);
  CHECK(caller.environment == processes.USERS);
}

TEST_CASE("What was given to sudo goes with the user's variables; what sudo sets does not") {
  Called processes;
  Variables own = given_by_sudo(USER);
  for (const char* added : {"CUDA_X=2", "NEW=a=b", "EMPTY=", "MAIL=/var/mail/root", "SHELL=/bin/sh",
                            "TERM=dumb", "LOGNAME=root", "USER=root", "SUDO_OTHER=1"})
    own.emplace_back(added);
  CHECK(processes.caller(own).environment == Variables{"PATH=/home/u/bin", "HOME=/home/u",
                                                       "LD_LIBRARY_PATH=/opt/cuda", "CUDA_X=2",
                                                       "NEW=a=b", "EMPTY="});
}

TEST_CASE("Without a sudo that names its caller there is none") {
  Called processes;
  for (const Variables& own :
       {Variables{}, Variables{"PATH=/bin"}, Variables{"SUDO_UID=4242"}, Variables{"SUDO_GID=4242"},
        Variables{"SUDO_UID=", "SUDO_GID=4242"}, Variables{"SUDO_UID=4242x", "SUDO_GID=4242"},
        Variables{"SUDO_UID=-1", "SUDO_GID=4242"}, Variables{"SUDO_UID= 4242", "SUDO_GID=4242"},
        Variables{"SUDO_UID=4242", "SUDO_GID=99999999999"},
        Variables{"XSUDO_UID=4242", "XSUDO_GID=4242"}}) {
    CAPTURE(own);
    Caller caller = processes.caller(own);
    CHECK_FALSE(caller.user);
    CHECK(caller.environment == own);
  }
}

TEST_CASE("Root that calls sudo stays root, and has root's variables") {
  SampleProcesses processes;
  processes.add(SHELL, 1, "bash", 0);
  processes.add(SUDO, SHELL, "sudo", 0);
  processes.add(CUDABPF, SUDO, "cudabpf");
  processes.set_environment(SUDO, {"PATH=/root/bin"});
  Caller caller = caller_of(processes.procfs(), CUDABPF, given_by_sudo(0));
  CHECK_FALSE(caller.user);
  CHECK(caller.environment == Variables{"PATH=/root/bin"});
}

TEST_CASE("A sudo that cannot be read, or is gone, leaves the user and this process's variables") {
  Called processes;
  SECTION("its variables are empty") { processes.set_environment(SUDO, {}); }
  SECTION("it has become its command, which the user's shell started") {
    processes.add(CUDABPF, SHELL, "cudabpf");
  }
  SECTION("no process is left above") { processes.add(CUDABPF, 1, "cudabpf"); }
  Caller caller = processes.caller();
  CHECK(is_user(caller));
  CHECK(caller.environment == given_by_sudo(USER));
}

TEST_CASE("A shell between sudo and this process does not hide the call") {
  Called processes;
  processes.add(SUDOS_CHILD, SUDO, "sudo");  // sudo's monitor, as root
  processes.add(ROOTS_SHELL, SUDOS_CHILD, "sh");
  processes.add(CUDABPF, ROOTS_SHELL, "cudabpf");
  processes.set_environment(SUDOS_CHILD, given_by_sudo(USER));
  processes.set_environment(ROOTS_SHELL, given_by_sudo(USER));
  Caller caller = processes.caller();
  CHECK(is_user(caller));
  CHECK(caller.environment == processes.USERS);
}

TEST_CASE("Another call of sudo in between has other variables, which are not the first caller's") {
  Called processes;
  processes.add(ROOTS_SHELL, SUDO, "sh");
  processes.add(CUDABPF, ROOTS_SHELL, "cudabpf");
  processes.set_environment(ROOTS_SHELL, given_by_sudo(USER, "/bin/sh"));
  Caller caller = processes.caller();
  CHECK(is_user(caller));
  CHECK(caller.environment == given_by_sudo(USER));
}

TEST_CASE("Another user who became root since is not the caller of sudo") {
  Called processes;
  processes.add(SUDOS_CHILD, SUDO, "su", OTHER);
  processes.add(CUDABPF, SUDOS_CHILD, "cudabpf");
  processes.set_environment(SUDOS_CHILD, given_by_sudo(USER));
  Caller caller = processes.caller();
  CHECK_FALSE(caller.user);
  CHECK(caller.environment == given_by_sudo(USER));
}

TEST_CASE("A program of another user that is called sudo has nothing to say") {
  Called processes;
  processes.add(SUDO, SHELL, "sudo", OTHER);
  processes.set_environment(SUDO, {"LD_PRELOAD=/tmp/evil.so"});
  Caller caller = processes.caller();
  CHECK_FALSE(caller.user);
  CHECK(caller.environment == given_by_sudo(USER));
}

TEST_CASE("Processes that are each other's parents are no endless way up") {
  SampleProcesses processes;
  processes.add(SHELL, CUDABPF, "sh");
  processes.add(CUDABPF, SHELL, "cudabpf");
  processes.set_environment(SHELL, given_by_sudo(USER));
  CHECK(is_user(caller_of(processes.procfs(), CUDABPF, given_by_sudo(USER))));
}

TEST_CASE("A variable is found by its whole name, the first of that name") {
  Variables environment{"PATHS=no", "PATH=/bin", "PATH=/other", "EMPTY=", "A=b=c", "=odd", "BARE"};
  CHECK(value_in(environment, "PATH") == "/bin");
  CHECK(value_in(environment, "A") == "b=c");
  CHECK(value_in(environment, "EMPTY").empty());
  CHECK(value_in(environment, "BARE").empty());
  CHECK(value_in(environment, "PAT").empty());
  CHECK(value_in({}, "PATH").empty());
}

TEST_CASE("A user with an account is found by name or number") {
  for (const char* given : {"root", "0"}) {
    auto user = find_user(given);
    REQUIRE(user);
    CHECK(user->uid == 0);
    CHECK(user->gid == 0);
    CHECK(user->name == "root");
    CHECK(std::count(user->groups.begin(), user->groups.end(), 0U) == 1);
  }
  for (const char* given :
       {"", "no such user", "4000000000", "99999999999", "-1", "0x0", "root "}) {
    CAPTURE(given);
    auto user = find_user(given);
    REQUIRE_FALSE(user);
    CHECK(user.error().message == "--user " + std::string(given) + ": there is no such user");
    CHECK(user.error().exit_code == exit_code::USAGE);
  }
}
