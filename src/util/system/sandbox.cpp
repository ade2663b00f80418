#include "util/system/sandbox.hpp"

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <initializer_list>
#include <vector>

namespace cudabpf::sandbox {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t ARCHITECTURE = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t ARCHITECTURE = AUDIT_ARCH_AARCH64;
#endif

// A seccomp program, rule by rule. A call that no rule allows kills the process.
class Rules {
 public:
  Rules() {
    load(offsetof(seccomp_data, arch));
    jump(BPF_JEQ, ARCHITECTURE, 1, 0);
    answer(SECCOMP_RET_KILL_PROCESS);
  }

  void allow(std::initializer_list<long> calls) {
    for (long call : calls) {
      begin(call, 1);
      answer(SECCOMP_RET_ALLOW);
    }
  }

  void allow_with(long call, int argument, int value) {
    begin(call, 4);
    load(low_half(argument));
    jump(BPF_JEQ, static_cast<std::uint32_t>(value), 0, 1);
    answer(SECCOMP_RET_ALLOW);
    answer(SECCOMP_RET_KILL_PROCESS);
  }

  // Memory that maps no file and is not executable.
  void allow_anonymous_memory(long call) {
    constexpr int PROTECTION = 2, FLAGS = 3;
    begin(call, 6);
    load(low_half(PROTECTION));
    jump(BPF_JSET, PROT_EXEC, 3, 0);
    load(low_half(FLAGS));
    jump(BPF_JSET, MAP_ANONYMOUS, 0, 1);
    answer(SECCOMP_RET_ALLOW);
    answer(SECCOMP_RET_KILL_PROCESS);
  }

  bool install() {
    answer(SECCOMP_RET_KILL_PROCESS);
    sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
  }

 private:
  static std::uint32_t low_half(int argument) {  // of a little-endian word
    return static_cast<std::uint32_t>(offsetof(seccomp_data, args) +
                                      static_cast<std::size_t>(argument) * sizeof(std::uint64_t));
  }
  void load(std::size_t offset) {
    code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)));
  }
  void jump(unsigned test, std::uint32_t value, std::uint8_t if_true, std::uint8_t if_false) {
    code_.push_back(
        BPF_JUMP(static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), value, if_true, if_false));
  }
  void answer(std::uint32_t action) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, action)); }
  // The next `size` instructions are for this call.
  void begin(long call, std::uint8_t size) {
    load(offsetof(seccomp_data, nr));
    jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, size);
  }

  std::vector<sock_filter> code_;
};

bool limit(int resource, std::uint64_t value) {
  rlimit both{value, value};
  return setrlimit(static_cast<__rlimit_resource>(resource), &both) == 0;
}

itimerval once_after(std::chrono::microseconds time) {
  itimerval timer{};
  timer.it_value.tv_sec = time.count() / 1'000'000;
  timer.it_value.tv_usec = time.count() % 1'000'000;
  return timer;
}

}  // namespace

bool drop_rights() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3]{};
  return syscall(SYS_capset, &header, none) == 0;
}

bool bound_time(const Limits& limits) {
  // So that the timers' signals end the process, whatever was set or blocked before.
  for (int signal : {SIGALRM, SIGPROF}) std::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  itimerval wall = once_after(limits.wall), cpu = once_after(limits.cpu);
  return sigprocmask(SIG_SETMASK, &none, nullptr) == 0 &&
         setitimer(ITIMER_REAL, &wall, nullptr) == 0 && setitimer(ITIMER_PROF, &cpu, nullptr) == 0;
}

bool enter(int input, int output, const Limits& limits) {
  bool limited = limit(RLIMIT_CORE, 0) && limit(RLIMIT_FSIZE, 0) && limit(RLIMIT_NOFILE, 0);
  if (!limited || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  if (!CONFINES) return true;
  if (!limit(RLIMIT_DATA, limits.memory)) return false;
  Rules rules;
  rules.allow({SYS_exit_group, SYS_exit, SYS_brk, SYS_munmap, SYS_mremap, SYS_madvise, SYS_futex});
  rules.allow_with(SYS_pread64, 0, input);
  rules.allow_with(SYS_write, 0, output);
  rules.allow_anonymous_memory(SYS_mmap);
  return rules.install();
}

}  // namespace cudabpf::sandbox
