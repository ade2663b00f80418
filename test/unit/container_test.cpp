#include "util/system/container.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

using namespace cudabpf;

namespace {

const std::string kId = "4f797c539e6c745de61a93ca3ff892358ecbcaccd8414d5db545c38428142970";
const std::string kOther = "9ec39b91f3d70e1beff50a308f77067065ea6be0d91a3378375056cd4422cf3d";
const std::string kPod = "3a1b2c4d-5e6f-7081-92a3-b4c5d6e7f809";
const std::string kPodSlice =
    "/kubepods.slice/kubepods-burstable.slice/"
    "kubepods-burstable-pod3a1b2c4d_5e6f_7081_92a3_b4c5d6e7f809.slice";
const std::string kUserManager = "/user.slice/user-1000.slice/user@1000.service";

}  // namespace

TEST_CASE("A cgroup's path tells the container") {
  struct Case {
    std::string cgroup;
    ContainerIdentity identity;
  };
  const Case cases[] = {
      // Docker.
      {"0::/docker/" + kId, {"docker", kId}},
      {"0::/system.slice/docker-" + kId + ".scope", {"docker", kId}},
      {"0::/system.slice/docker-" + kId + ".scope/init.scope", {"docker", kId}},
      {"0::" + kUserManager + "/app.slice/docker-" + kId + ".scope", {"docker", kId}},
      {"/docker/" + kId, {"docker", kId}},
      // Docker in Docker: the inner one is where the process is.
      {"0::/docker/" + kId + "/docker/" + kOther, {"docker", kOther}},
      {"0::/docker/" + kId + "/system.slice/cron.service", {"docker", kId}},

      // Kubernetes, with who runs it.
      {"0::" + kPodSlice + "/cri-containerd-" + kId + ".scope", {"containerd", kId, kPod}},
      {"0::" + kPodSlice + "/crio-" + kId + ".scope", {"cri-o", kId, kPod}},
      {"0::" + kPodSlice + "/crio-" + kId + ".scope/container", {"cri-o", kId, kPod}},
      {"0::" + kPodSlice + "/docker-" + kId + ".scope", {"docker", kId, kPod}},
      {"0::/kubepods.slice/kubepods-pod3a1b2c4d_5e6f_7081_92a3_b4c5d6e7f809.slice/cri-containerd-" +
           kId + ".scope",
       {"containerd", kId, kPod}},
      {"0::/../../kubelet-kubepods-besteffort-pod3a1b2c4d_5e6f_7081_92a3_b4c5d6e7f809.slice/"
       "cri-containerd-" +
           kId + ".scope",
       {"containerd", kId, kPod}},
      {"0::/system.slice/containerd.service/"
       "kubepods-burstable-pod3a1b2c4d_5e6f_7081_92a3_b4c5d6e7f809.slice:cri-containerd:" +
           kId,
       {"containerd", kId, kPod}},
      {"0::/kubepods/burstable/pod" + kPod + "/crio-" + kId, {"cri-o", kId, kPod}},
      // With the cgroupfs driver, containerd and Docker leave the same path.
      {"0::/kubepods/burstable/pod" + kPod + "/" + kId, {"kubernetes", kId, kPod}},
      {"0::/kubepods/pod" + kPod + "/" + kId, {"kubernetes", kId, kPod}},
      // A static pod's uid is a hash.
      {"0::/kubepods/besteffort/pod0123456789abcdef0123456789abcdef/" + kId,
       {"kubernetes", kId, "0123456789abcdef0123456789abcdef"}},
      {"0::" + kPodSlice, {"kubernetes", "", kPod}},

      // containerd by itself.
      {"0::/system.slice/nerdctl-" + kId + ".scope", {"containerd", kId}},
      {"0::/default/" + kId, {"containerd", kId}},
      {"0::/k8s.io/" + kId, {"containerd", kId}},

      // Podman.
      {"0::/machine.slice/libpod-" + kId + ".scope", {"podman", kId}},
      {"0::/machine.slice/libpod-" + kId + ".scope/container", {"podman", kId}},
      {"0::" + kUserManager + "/user.slice/libpod-" + kId + ".scope/container", {"podman", kId}},
      {"0::/libpod_parent/libpod-" + kId, {"podman", kId}},
      {"0::/system.slice/nginx.service/libpod-payload-" + kId, {"podman", kId}},
      {"0::/machine.slice/machine-libpod_pod_" + kOther + ".slice/libpod-" + kId + ".scope",
       {"podman", kId}},

      // LXC and LXD.
      {"0::/lxc/web-1", {"lxc", "web-1"}},
      {"0::/lxc/101/ns/system.slice/ssh.service", {"lxc", "101"}},
      {"0::/lxc.payload.web-1", {"lxc", "web-1"}},
      {"0::/lxc.payload.web-1/init.scope", {"lxc", "web-1"}},
      {"0::/lxc.payload/web-1", {"lxc", "web-1"}},
      {"0::/lxc.payload.web-1/system.slice/docker-" + kId + ".scope", {"docker", kId}},

      // systemd-nspawn.
      {"0::/machine.slice/machine-deb\\x2dian.scope/payload", {"systemd-nspawn", "deb-ian"}},
      {"0::/machine.slice/systemd-nspawn@debian.service/payload/init.scope",
       {"systemd-nspawn", "debian"}},

      // Somebody's container, for nothing else is named so.
      {"0::/ecs/0123456789abcdef0123456789abcdef/" + kId, {"unknown", kId}},
      {"0::/" + kId, {"unknown", kId}},

      // The runtimes' own processes.
      {"0::/machine.slice/libpod-conmon-" + kId + ".scope",
       {.unit = "libpod-conmon-" + kId + ".scope"}},
      {"0::" + kPodSlice + "/crio-conmon-" + kId + ".scope",
       {.unit = "crio-conmon-" + kId + ".scope"}},
      {"0::/kubepods/burstable/pod" + kPod + "/crio-conmon-" + kId, {}},
      {"0::/lxc.monitor.web-1", {}},
      {"0::/system.slice/nginx.service/runtime", {.unit = "nginx.service"}},
      {"0::/machine.slice/systemd-nspawn@debian.service/supervisor",
       {.unit = "systemd-nspawn@debian.service"}},
      {"0::/system.slice/containerd.service", {.unit = "containerd.service"}},

      // Services and sessions.
      {"0::/system.slice/ssh.service", {.unit = "ssh.service"}},
      {"0::/system.slice/system-getty.slice/getty@tty1.service", {.unit = "getty@tty1.service"}},
      {"0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0", {.unit = "slurmstepd.scope"}},
      {"0::/system.slice/dev-disk\\x2dby.service", {.unit = "dev-disk-by.service"}},
      {"0::/machine.slice/machine-qemu\\x2d1\\x2dvm.scope", {.unit = "machine-qemu-1-vm.scope"}},
      {"0::/user.slice/user-1000.slice/session-3.scope", {}},
      {"0::" + kUserManager, {}},
      {"0::" + kUserManager + "/init.scope", {}},
      {"0::" + kUserManager + "/app.slice/app-code.scope", {.unit = "app-code.scope"}},
      {"0::/init.scope", {}},
      {"0::/", {}},
      {"/", {}},
      {"", {}},

      // Nearly, but not.
      {"0::/docker/" + kId.substr(1), {}},
      {"0::/docker/" + kId + "0", {}},
      {"0::/docker/G" + kId.substr(1), {}},
      {"0::/docker", {}},
      {"0::/lxc", {}},
      {"0::/system.slice/docker-.scope", {.unit = "docker-.scope"}},
      {"0::/kubepods/burstable/pod" + kPod.substr(1), {}},
      {"0::/a:b:", {}},
      {"0::/:::", {}},
      {"nonsense", {}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.cgroup);
    ContainerIdentity found = identify_container(c.cgroup);
    CHECK(found.runtime == c.identity.runtime);
    CHECK(found.id == c.identity.id);
    CHECK(found.pod == c.identity.pod);
    CHECK(found.unit == c.identity.unit);
    CHECK(found.in_container() == !c.identity.runtime.empty());
    // The same with a newline at the end, as /proc has it.
    CHECK(identify_container(c.cgroup + "\n") == c.identity);
  }
}

TEST_CASE("cgroup v1 and hybrid have a line a hierarchy") {
  SECTION("v1") {
    std::string text = "12:devices:/docker/" + kId + "\n11:cpu,cpuacct:/docker/" + kId +
                       "\n1:name=systemd:/docker/" + kId + "\n";
    CHECK(identify_container(text) == ContainerIdentity{"docker", kId});
    CHECK(cgroup_path(text) == "/docker/" + kId);
  }
  SECTION("hybrid: the unified line may tell the service only") {
    std::string text = "11:memory:/docker/" + kId + "\n10:rdma:/\n1:name=systemd:/docker/" + kId +
                       "\n0::/system.slice/containerd.service\n";
    CHECK(identify_container(text) == ContainerIdentity{"docker", kId});
    CHECK(cgroup_path(text) == "/system.slice/containerd.service");
  }
  SECTION("hybrid, with an empty unified hierarchy") {
    std::string text =
        "9:name=systemd:/\n4:memory:/kubepods/burstable/pod" + kPod + "/" + kId + "\n0::/\n";
    CHECK(identify_container(text) == ContainerIdentity{"kubernetes", kId, kPod});
    CHECK(cgroup_path(text) == "/kubepods/burstable/pod" + kPod + "/" + kId);
  }
  SECTION("v1, not in a container") {
    std::string text = "4:memory:/system.slice/ssh.service\n3:cpuset:/\n1:name=systemd:/\n";
    CHECK(identify_container(text) == ContainerIdentity{.unit = "ssh.service"});
    CHECK(cgroup_path(text) == "/system.slice/ssh.service");
  }
  SECTION("v2") {
    CHECK(cgroup_path("0::/user.slice/user-1000.slice/session-3.scope\n") ==
          "/user.slice/user-1000.slice/session-3.scope");
    CHECK(cgroup_path("0::/\n") == "/");
    CHECK(cgroup_path("").empty());
    CHECK(cgroup_path("/a/b") == "/a/b");
  }
}

TEST_CASE("The unified hierarchy's path, and what lies inside a folder of it") {
  CHECK(unified_cgroup_path("12:pids:/a\n0::/b/c\n") == "/b/c");
  CHECK(unified_cgroup_path("12:pids:/a\n").empty());
  CHECK(unified_cgroup_path("").empty());
  CHECK(is_inside_cgroup("/b/c", "/b"));
  CHECK(is_inside_cgroup("/b", "/b"));
  CHECK_FALSE(is_inside_cgroup("/bc", "/b"));
  CHECK_FALSE(is_inside_cgroup("/", "/b"));
}
