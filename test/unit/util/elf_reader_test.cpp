// Library files are read in a process without privileges: whatever happens there, this one goes on.
#include "util/elf/elf_reader.hpp"
#include "util/system/sandbox.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "sample_library.hpp"
#include "support/temporary_folder.hpp"

using namespace cudabpf;
using namespace sample_library;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

constexpr elf::Wanted CU{.prefix = "cu"};
constexpr const char* BROKEN = "reading it took too long, or broke the process that reads it";
constexpr const char* NONSENSE = "the process that reads it gave an invalid answer";

Fd file_of(const Bytes& bytes) {
  Fd fd(memfd_create("library", MFD_CLOEXEC));
  REQUIRE(write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  return fd;
}
Fd sound_file() { return file_of(Fixture(TWO).bytes); }

elf::Reader reader_with(elf::Reader::Work work, std::chrono::milliseconds cpu = 100ms) {
  auto reader = elf::Reader::start({.cpu = cpu, .wall = 30s}, work);
  REQUIRE(reader);
  return std::move(*reader);
}
std::string error_with(elf::Reader::Work work, std::chrono::milliseconds cpu = 100ms) {
  auto contents = reader_with(work, cpu).read(sound_file(), CU);
  return contents ? "read" : contents.error().message;
}

std::string status_of(pid_t pid, const std::string& field) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":\t")) return line.substr(field.size() + 2);
  return {};
}

}  // namespace

static void sandbox_must_hold_it() {
  if (!sandbox::CONFINES) SKIP("a sanitizer's runtime does not live in the sandbox");
}

TEST_CASE("A reader returns what is wanted of a library") {
  sandbox_must_hold_it();
  auto reader = elf::Reader::start();
  REQUIRE(reader);
  Fixture fixture({{"cuInit", Fixture::CODE_ADDRESS, 9},
                   {"cuMemAlloc_v2", Fixture::CODE_ADDRESS + 32, 7, STT_FUNC, STB_WEAK},
                   {"cuno\x1bname", Fixture::CODE_ADDRESS},
                   {"other", Fixture::CODE_ADDRESS}});
  auto contents = reader->read(file_of(fixture.bytes), {.prefix = "cu", .prologues = true});
  REQUIRE(contents);
  CHECK(contents->machine == elf::Machine::x86_64);
  CHECK(contents->build_id == "001fabcdef");
  CHECK(contents->soname == "libfixture.so.1");
  CHECK(names(contents->functions) == Names{"cuInit", "cuMemAlloc_v2"});
  CHECK(contents->functions[1].offset == fixture.code + 32);
  CHECK(contents->functions[1].size == 7);
  CHECK(contents->other_prologues == 2);
  CHECK(contents->left_out == 1);

  auto refused = [&](const Fd& fd) {
    auto result = reader->read(fd, CU);
    return result ? "read" : result.error().message;
  };
  Bytes text;
  append_text(text, "INPUT(x)");
  CHECK(refused(file_of(text)) == "a linker script, not a library");
  CHECK(refused(file_of({})) == "an empty file, not a library");
  CHECK(refused(Fd(open("/dev/zero", O_RDONLY))) == "not a regular file");
  CHECK(refused(Fd()) == "reading it: Bad file descriptor");
}

TEST_CASE("The process that reads has no rights, nothing open, and ends with this one") {
  sandbox_must_hold_it();
  pid_t pid = 0;
  {
    auto reader = elf::Reader::start();
    REQUIRE(reader);
    REQUIRE(reader->read(sound_file(), CU));
    pid = reader->pid();
    CHECK(status_of(pid, "CapEff") == "0000000000000000");
    CHECK(status_of(pid, "CapPrm") == "0000000000000000");
    CHECK(status_of(pid, "NoNewPrivs") == "1");
    std::set<std::string> open_files;
    // It may just be seeing that a child has taken its request.
    for (int i = 0; i < 200 && open_files != std::set<std::string>{"socket"}; i++) {
      open_files.clear();
      for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
        std::error_code gone;
        open_files.insert(fs::read_symlink(entry.path(), gone).string().substr(0, 6));
      }
      usleep(10'000);
    }
    CHECK(open_files == std::set<std::string>{"socket"});
  }
  CHECK(kill(pid, 0) != 0);

  // Even if it is killed.
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  pid_t owner = fork();
  if (owner == 0) {
    auto reader = elf::Reader::start();
    pid_t server = reader ? reader->pid() : 0;
    if (write(ends[1], &server, sizeof server) < 0) _exit(1);
    pause();
  }
  REQUIRE(read(ends[0], &pid, sizeof pid) == sizeof pid);
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  for (int i = 0; i < 200 && !status_of(pid, "State").starts_with("Z") && kill(pid, 0) == 0; i++)
    usleep(10'000);
  CHECK((kill(pid, 0) != 0 || status_of(pid, "State").starts_with("Z")));
}

TEST_CASE("A parser that crashes, hangs or swells is an error of that file alone") {
  sandbox_must_hold_it();
  CHECK(error_with([](int, std::uint64_t, const elf::Wanted&) -> std::string {
          raise(SIGSEGV);
          return {};
        }) == BROKEN);
  auto begin = std::chrono::steady_clock::now();
  CHECK(error_with([](int, std::uint64_t, const elf::Wanted&) -> std::string {
          for (volatile bool endless = true; endless;) {
          }
          return {};
        }) == BROKEN);
  CHECK(std::chrono::steady_clock::now() - begin < 25s);  // by the CPU's time
  CHECK(error_with([](int, std::uint64_t,
                      const elf::Wanted&) { return std::string(elf::MAX_ANSWER + 1, 'x'); },
                   10s) == NONSENSE);  // a busy machine takes long to write so much
  CHECK(error_with([](int, std::uint64_t, const elf::Wanted&) {
          return std::string("nonsense");
        }) == NONSENSE);

  // If reading one file ends the process, the next one is read all the same.
  auto reader = reader_with([](int file, std::uint64_t size, const elf::Wanted& wanted) {
    if (size < 100) raise(SIGKILL);
    return elf::encode(
        elf::contents_of(*elf::Image::parse(elf::bytes_of_file(file, size)), wanted));
  });
  Bytes text;
  append_text(text, "x");
  CHECK_FALSE(reader.read(file_of(text), CU));
  CHECK(reader.read(sound_file(), CU));
  kill(reader.pid(), SIGKILL);
  waitpid(reader.pid(), nullptr, WNOWAIT | WEXITED);
  usleep(50'000);
  auto gone = reader.read(sound_file(), CU);
  REQUIRE_FALSE(gone);
  CHECK(gone.error().message == "the process that reads libraries has ended");
}

TEST_CASE("What took over the parser can open, start and reach nothing") {
  sandbox_must_hold_it();
  auto ended_by = [](elf::Reader::Work work) { return error_with(work) == BROKEN; };
  CHECK(ended_by([](int, std::uint64_t, const elf::Wanted&) {
    return std::to_string(open("/dev/null", O_RDONLY));
  }));
  CHECK(ended_by([](int, std::uint64_t, const elf::Wanted&) { return std::to_string(fork()); }));
  CHECK(ended_by([](int, std::uint64_t, const elf::Wanted&) {
    return std::to_string(socket(AF_UNIX, SOCK_STREAM, 0));
  }));
  CHECK(ended_by([](int, std::uint64_t, const elf::Wanted&) {
    return std::to_string(kill(getppid(), SIGKILL));
  }));
  CHECK(ended_by([](int file, std::uint64_t, const elf::Wanted&) {
    return std::to_string(write(file, "x", 1));
  }));
  CHECK(ended_by([](int file, std::uint64_t, const elf::Wanted&) {
    return mmap(nullptr, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED
               ? std::to_string(file)
               : std::string("x");
  }));
  CHECK(ended_by([](int file, std::uint64_t, const elf::Wanted&) {
    mmap(nullptr, 1, PROT_READ, MAP_PRIVATE, file, 0);
    return std::string("x");
  }));
}

TEST_CASE("A file that comes with a message is read without being received here") {
  sandbox_must_hold_it();
  auto reader = elf::Reader::start();
  REQUIRE(reader);
  auto send = [](const Fd& to, const std::vector<int>& files) {
    char control[CMSG_SPACE(4 * sizeof(int))] = {};
    char text[] = "hello";
    iovec part{text, sizeof text};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(files.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), files.data(), files.size() * sizeof(int));
    REQUIRE(sendmsg(to.get(), &message, 0) == sizeof text);
  };
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  Fd ours(ends[0]), theirs(ends[1]);
  auto wait = [](elf::Reading& reading, auto there) {
    for (int i = 0; i < 1000 && !there(); i++) {
      pollfd ready{reading.fd(), POLLIN, 0};
      poll(&ready, 1, 10);
      reading.look();
    }
  };
  constexpr elf::Wanted WITH_CODE{.prefix = "cu", .code = 4};

  send(theirs, {sound_file().get()});
  auto reading = reader->take(ours.get(), WITH_CODE);
  REQUIRE(reading);
  wait(*reading, [&] { return reading->taken().has_value(); });
  REQUIRE(reading->taken());
  CHECK(reading->taken()->path == "/memfd:library (deleted)");
  CHECK(reading->taken()->id.size == Fixture(TWO).bytes.size());
  CHECK_FALSE(reading->result());
  reading->go_on();
  reading->go_on();
  wait(*reading, [&] { return reading->result().has_value(); });
  auto contents = reading->result();
  REQUIRE(contents);
  REQUIRE(*contents);
  CHECK(names((*contents)->functions) == Names{"cuInit", "cuMemAlloc_v2"});
  CHECK((*contents)->functions[0].code.size() == 4);
  CHECK(recv(ours.get(), ends, 1, MSG_DONTWAIT) == -1);  // the message has been taken

  auto refused = [&](const std::vector<int>& files) {
    send(theirs, files);
    auto taken = reader->take(ours.get(), WITH_CODE);
    REQUIRE(taken);
    wait(*taken, [&] { return taken->result().has_value(); });
    REQUIRE(taken->result());
    return *taken->result() ? "read" : taken->result()->error().message;
  };
  Fd file = sound_file(), device(open("/dev/zero", O_RDONLY));
  CHECK(refused({device.get()}) == "not a regular file");
  CHECK(refused({theirs.get()}) == "not a regular file");
  CHECK(refused({file.get(), file.get()}) == "not a regular file");
  CHECK(refused({file.get(), file.get(), file.get()}) == "not a regular file");
}

TEST_CASE("A file that claims to be huge takes neither time nor memory") {
  sandbox_must_hold_it();
  TemporaryFolder folder;
  Fixture fixture(TWO);
  constexpr std::uint64_t TERABYTES = 4ULL << 40;
  SECTION("by its symbols") {
    fixture.section(2).sh_offset = 1 << 20;
    fixture.section(2).sh_size = TERABYTES / 2 / sizeof(Elf64_Sym) * sizeof(Elf64_Sym);
    at<Elf64_Phdr>(fixture.bytes, fixture.dynamic_segment).p_type = PT_NULL;
  }
  SECTION("by its names") { fixture.section(3).sh_size = TERABYTES / 2; }
  SECTION("by its notes") {
    at<Elf64_Phdr>(fixture.bytes, fixture.note_segment).p_filesz = TERABYTES / 2;
  }
  SECTION("by its hash table") {
    fixture.remove_section_headers();
    at<std::uint32_t>(fixture.bytes, fixture.gnu_hash) = 0xffffffff;
  }
  auto path = folder.write(
      "lib.so", {reinterpret_cast<const char*>(fixture.bytes.data()), fixture.bytes.size()});
  std::error_code error;
  fs::resize_file(path, TERABYTES, error);
  if (error) fs::resize_file(path, 1ULL << 40);  // of what the filesystem can have
  auto reader = elf::Reader::start();
  REQUIRE(reader);
  auto begin = std::chrono::steady_clock::now();
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  auto contents = reader->read(fd, CU);
  CHECK(std::chrono::steady_clock::now() - begin < 10s);  // terabytes would take an hour
  if (contents) CHECK(names(contents->functions) == Names{"cuInit", "cuMemAlloc_v2"});
}

TEST_CASE("An answer is believed only where it makes sense") {
  auto sound = elf::contents_of(parse(Fixture(TWO).bytes), CU);
  REQUIRE(sound);
  constexpr std::uint64_t SIZE = 1 << 20;
  std::string bytes = elf::encode(sound);
  CHECK(names(elf::decode(bytes, SIZE)->functions) == Names{"cuInit", "cuMemAlloc_v2"});
  auto believed = [](const std::string& answer, std::uint64_t size) {
    return static_cast<bool>(elf::decode(answer, size));
  };
  for (std::size_t size = 0; size < bytes.size(); size++)
    CHECK_FALSE(believed(bytes.substr(0, size), SIZE));
  CHECK_FALSE(believed(bytes + "x", SIZE));
  CHECK_FALSE(believed(bytes, sound->functions[0].offset));  // a function beyond the file
  auto changed = [&](auto change) {
    elf::Contents contents = *sound;
    change(contents);
    return believed(elf::encode(contents), SIZE);
  };
  CHECK_FALSE(changed([](elf::Contents& c) { c.functions[0].name = "cu\nInit"; }));
  CHECK_FALSE(changed([](elf::Contents& c) { c.functions[0].name = ""; }));
  CHECK_FALSE(changed([](elf::Contents& c) { c.soname = "lib\x1b[31m"; }));
  CHECK_FALSE(changed([](elf::Contents& c) { c.build_id = "\""; }));
  CHECK_FALSE(changed([](elf::Contents& c) { c.machine = static_cast<elf::Machine>(9); }));
  CHECK(elf::decode(elf::encode(Error{"a\x1b[31m"}), SIZE).error().message == NONSENSE);
  CHECK(elf::decode(elf::encode(Error{"truncated"}), SIZE).error().message == "truncated");
}
