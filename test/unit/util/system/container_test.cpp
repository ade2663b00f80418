#include "util/system/container.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

using namespace cudabpf;

namespace {

const std::string ID = "4f797c539e6c745de61a93ca3ff892358ecbcaccd8414d5db545c38428142970";
const std::string OTHER = "9ec39b91f3d70e1beff50a308f77067065ea6be0d91a3378375056cd4422cf3d";
const std::string POD = "3a1b2c4d-5e6f-7081-92a3-b4c5d6e7f809";
const std::string POD_SLICE =
    "/kubepods.slice/kubepods-burstable.slice/"
    "kubepods-burstable-pod3a1b2c4d_5e6f_7081_92a3_b4c5d6e7f809.slice";
const std::string USER_MANAGER = "/user.slice/user-1000.slice/user@1000.service";

}  // namespace

TEST_CASE("A cgroup's path names the container") {
  struct Case {
    std::string cgroup;
    ContainerIdentity identity;
  };
  const Case cases[] = {
      // Docker.
      {"0::/docker/" + ID, {"docker", ID}},
      {"0::/system.slice/docker-" + ID + ".scope", {"docker", ID}},
      {"0::/system.slice/docker-" + ID + ".scope/init.scope", {"docker", ID}},
      {"0::" + USER_MANAGER + "/app.slice/docker-" + ID + ".scope", {"docker", ID}},
      {"/docker/" + ID, {"docker", ID}},
      // Docker in Docker: the inner one is where the process is.
      {"0::/docker/" + ID + "/docker/" + OTHER, {"docker", OTHER}},
      {"0::/docker/" + ID + "/system.slice/cron.service", {"docker", ID}},

      // Kubernetes, with whatever runs it.
      {"0::" + POD_SLICE + "/cri-containerd-" + ID + ".scope", {"containerd", ID, POD}},
      {"0::" + POD_SLICE + "/crio-" + ID + ".scope", {"cri-o", ID, POD}},
      {"0::" + POD_SLICE + "/crio-" + ID + ".scope/container", {"cri-o", ID, POD}},
      {"0::" + POD_SLICE + "/docker-" + ID + ".scope", {"docker", ID, POD}},
      {"0::/kubepods.slice/kubepods-pod3a1b2c4d_5e6f_7081_92a3_b4c5d6e7f809.slice/cri-containerd-" +
           ID + ".scope",
       {"containerd", ID, POD}},
      {"0::/../../kubelet-kubepods-besteffort-pod3a1b2c4d_5e6f_7081_92a3_b4c5d6e7f809.slice/"
       "cri-containerd-" +
           ID + ".scope",
       {"containerd", ID, POD}},
      {"0::/system.slice/containerd.service/"
       "kubepods-burstable-pod3a1b2c4d_5e6f_7081_92a3_b4c5d6e7f809.slice:cri-containerd:" +
           ID,
       {"containerd", ID, POD}},
      {"0::/kubepods/burstable/pod" + POD + "/crio-" + ID, {"cri-o", ID, POD}},
      // With the cgroupfs driver, containerd and Docker leave the same path.
      {"0::/kubepods/burstable/pod" + POD + "/" + ID, {"kubernetes", ID, POD}},
      {"0::/kubepods/pod" + POD + "/" + ID, {"kubernetes", ID, POD}},
      // A static pod's uid is a hash.
      {"0::/kubepods/besteffort/pod0123456789abcdef0123456789abcdef/" + ID,
       {"kubernetes", ID, "0123456789abcdef0123456789abcdef"}},
      {"0::" + POD_SLICE, {"kubernetes", "", POD}},

      // containerd by itself.
      {"0::/system.slice/nerdctl-" + ID + ".scope", {"containerd", ID}},
      {"0::/default/" + ID, {"containerd", ID}},
      {"0::/k8s.io/" + ID, {"containerd", ID}},

      // Podman.
      {"0::/machine.slice/libpod-" + ID + ".scope", {"podman", ID}},
      {"0::/machine.slice/libpod-" + ID + ".scope/container", {"podman", ID}},
      {"0::" + USER_MANAGER + "/user.slice/libpod-" + ID + ".scope/container", {"podman", ID}},
      {"0::/libpod_parent/libpod-" + ID, {"podman", ID}},
      {"0::/system.slice/nginx.service/libpod-payload-" + ID, {"podman", ID}},
      {"0::/machine.slice/machine-libpod_pod_" + OTHER + ".slice/libpod-" + ID + ".scope",
       {"podman", ID}},

      // LXC and LXD.
      {"0::/lxc/web-1", {"lxc", "web-1"}},
      {"0::/lxc/101/ns/system.slice/ssh.service", {"lxc", "101"}},
      {"0::/lxc.payload.web-1", {"lxc", "web-1"}},
      {"0::/lxc.payload.web-1/init.scope", {"lxc", "web-1"}},
      {"0::/lxc.payload/web-1", {"lxc", "web-1"}},
      {"0::/lxc.payload.web-1/system.slice/docker-" + ID + ".scope", {"docker", ID}},

      // systemd-nspawn.
      {"0::/machine.slice/machine-deb\\x2dian.scope/payload", {"systemd-nspawn", "deb-ian"}},
      {"0::/machine.slice/systemd-nspawn@debian.service/payload/init.scope",
       {"systemd-nspawn", "debian"}},

      // An unknown runtime's container, for nothing else has such a name.
      {"0::/ecs/0123456789abcdef0123456789abcdef/" + ID, {"unknown", ID}},
      {"0::/" + ID, {"unknown", ID}},

      // The runtimes' own processes.
      {"0::/machine.slice/libpod-conmon-" + ID + ".scope",
       {.unit = "libpod-conmon-" + ID + ".scope"}},
      {"0::" + POD_SLICE + "/crio-conmon-" + ID + ".scope",
       {.unit = "crio-conmon-" + ID + ".scope"}},
      {"0::/kubepods/burstable/pod" + POD + "/crio-conmon-" + ID, {}},
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
      {"0::" + USER_MANAGER, {}},
      {"0::" + USER_MANAGER + "/init.scope", {}},
      {"0::" + USER_MANAGER + "/app.slice/app-code.scope", {.unit = "app-code.scope"}},
      {"0::/init.scope", {}},
      {"0::/", {}},
      {"/", {}},
      {"", {}},

      // Nearly, but not.
      {"0::/docker/" + ID.substr(1), {}},
      {"0::/docker/" + ID + "0", {}},
      {"0::/docker/G" + ID.substr(1), {}},
      {"0::/docker", {}},
      {"0::/lxc", {}},
      {"0::/system.slice/docker-.scope", {.unit = "docker-.scope"}},
      {"0::/kubepods/burstable/pod" + POD.substr(1), {}},
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
    std::string text = "12:devices:/docker/" + ID + "\n11:cpu,cpuacct:/docker/" + ID +
                       "\n1:name=systemd:/docker/" + ID + "\n";
    CHECK(identify_container(text) == ContainerIdentity{"docker", ID});
    CHECK(cgroup_path(text) == "/docker/" + ID);
  }
  SECTION("hybrid: the unified line may name only the service") {
    std::string text = "11:memory:/docker/" + ID + "\n10:rdma:/\n1:name=systemd:/docker/" + ID +
                       "\n0::/system.slice/containerd.service\n";
    CHECK(identify_container(text) == ContainerIdentity{"docker", ID});
    CHECK(cgroup_path(text) == "/system.slice/containerd.service");
  }
  SECTION("hybrid, with an empty unified hierarchy") {
    std::string text =
        "9:name=systemd:/\n4:memory:/kubepods/burstable/pod" + POD + "/" + ID + "\n0::/\n";
    CHECK(identify_container(text) == ContainerIdentity{"kubernetes", ID, POD});
    CHECK(cgroup_path(text) == "/kubepods/burstable/pod" + POD + "/" + ID);
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

TEST_CASE("What a reader in a cgroup namespace of its own is shown") {
  const std::string path =
      "/../../kubepods-burstable.slice/kubepods-burstable-pod0f1e2d3c_4b5a_6978_"
      "8796_a5b4c3d2e1f0.slice/cri-containerd-" +
      ID + ".scope";
  CHECK(identify_container("0::" + path + "\n") ==
        ContainerIdentity{"containerd", ID, "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"});
  CHECK(identify_container("0::/../../../system.slice/app.service\n").unit == "app.service");
  CHECK(without_parents("/../../user.slice") == "/user.slice");
  CHECK(without_parents("/..").empty());
  CHECK(without_parents("/..a/..") == "/..a/..");
  CHECK(without_parents("/") == "/");
}
