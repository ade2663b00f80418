#include "util/system/container.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace cudabpf {

namespace {

// How runtimes name the cgroup of one container: PREFIX, 64 hex digits, maybe ".scope". The
// cgroupfs driver of old versions wrote "SLICE:RUNTIME:ID" instead, which is read as "RUNTIME-ID".
struct Prefix {
  std::string_view prefix;
  std::string_view runtime;
};
constexpr std::array PREFIXES = {
    Prefix{"docker-", "docker"},
    Prefix{"cri-containerd-", "containerd"},
    Prefix{"containerd-", "containerd"},
    Prefix{"nerdctl-", "containerd"},
    Prefix{"crio-", "cri-o"},
    Prefix{"libpod-", "podman"},
    Prefix{"libpod-payload-", "podman"},  // podman run --cgroups=split, as quadlets do
};

// If a folder's name is just the 64 hex digits, its parent's name is the runtime's.
struct Parent {
  std::string_view parent;
  std::string_view runtime;
};
constexpr std::array PARENTS = {
    Parent{"docker", "docker"},
    Parent{"default", "containerd"},  // nerdctl: the parent is containerd's namespace
    Parent{"k8s.io", "containerd"},
    Parent{"libpod_parent", "podman"},
};

// The runtimes' own processes: next to the container or in its pod, but on the host.
constexpr std::array<std::string_view, 3> MONITORS = {"libpod-conmon-", "crio-conmon-",
                                                      "lxc.monitor"};

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_id(std::string_view text) { return text.size() == 64 && is_hex(text); }

bool strip_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

bool strip_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// systemd escapes characters that a unit's name may not contain, such as '-' as \x2d.
std::string unescape_unit(std::string_view name) {
  auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string plain;
  for (std::size_t i = 0; i < name.size(); i++) {
    if (name.substr(i).starts_with("\\x") && i + 3 < name.size() && is_hex(name.substr(i + 2, 2))) {
      plain += static_cast<char>(digit(name[i + 2]) * 16 + digit(name[i + 3]));
      i += 3;
    } else {
      plain += name[i];
    }
  }
  return plain;
}

// "pod<uid>", "kubepods-burstable-pod<uid>.slice": a uuid, with '_' for '-' where '-' would nest
// slices, or the 32 hex digits of a static pod.
std::string pod_uid(std::string_view part) {
  part = part.substr(0, part.find(':'));
  strip_suffix(part, ".slice");
  std::size_t pod = part.rfind("pod");
  if (pod == part.npos || (pod > 0 && part[pod - 1] != '-')) return {};
  std::string uid(part.substr(pod + 3));
  std::replace(uid.begin(), uid.end(), '_', '-');
  if (uid.size() == 32 && is_hex(uid)) return uid;
  if (uid.size() != 36) return {};
  for (std::size_t i = 0; i < uid.size(); i++) {
    bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? uid[i] != '-' : !is_hex(uid.substr(i, 1))) return {};
  }
  return uid;
}

using Parts = std::vector<std::string_view>;

Parts split(std::string_view text, char separator) {
  Parts parts;
  while (!text.empty()) {
    std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool match_prefix(std::string_view part, ContainerIdentity& found) {
  std::string joined;
  if (std::size_t last = part.rfind(':'); last != part.npos && last > 0) {
    std::size_t before = part.rfind(':', last - 1);
    if (before == part.npos) return false;
    joined = part.substr(before + 1);
    joined[last - before - 1] = '-';
    part = joined;
  }
  strip_suffix(part, ".scope");
  for (const Prefix& known : PREFIXES) {
    if (part.starts_with(known.prefix) && is_id(part.substr(known.prefix.size()))) {
      found.runtime = known.runtime;
      found.id = part.substr(known.prefix.size());
      return true;
    }
  }
  return false;
}

bool match_bare_id(const Parts& parts, std::size_t i, ContainerIdentity& found) {
  if (!is_id(parts[i])) return false;
  std::string_view parent = i > 0 ? parts[i - 1] : std::string_view{};
  found.runtime = pod_uid(parent).empty() ? "unknown" : "kubernetes";
  for (const Parent& known : PARENTS) {
    if (parent == known.parent) found.runtime = known.runtime;
  }
  found.id = parts[i];
  return true;
}

bool match_lxc(const Parts& parts, std::size_t i, ContainerIdentity& found) {
  std::string_view name = parts[i];
  if (!strip_prefix(name, "lxc.payload.")) {
    if (i == 0 || (parts[i - 1] != "lxc" && parts[i - 1] != "lxc.payload")) return false;
  }
  found.runtime = "lxc";
  found.id = name;
  return !name.empty();
}

bool match_nspawn(const Parts& parts, std::size_t i, ContainerIdentity& found) {
  std::string_view name = parts[i];
  if (strip_prefix(name, "machine-") && strip_suffix(name, ".scope")) {
    // libvirt registers its virtual machines and containers in the same way.
    if (name.starts_with("qemu\\x2d") || name.starts_with("lxc\\x2d")) return false;
  } else {
    name = parts[i];
    if (!strip_prefix(name, "systemd-nspawn@") || !strip_suffix(name, ".service")) return false;
    if (i + 1 < parts.size() && parts[i + 1] == "supervisor") return false;  // nspawn itself
  }
  found.runtime = "systemd-nspawn";
  found.id = unescape_unit(name);
  return !name.empty();
}

// The unit's name, unless it is one that every login has.
std::string unit_of(const Parts& parts) {
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (!part->ends_with(".service") && !part->ends_with(".scope")) continue;
    bool session = part->starts_with("session-") && part->ends_with(".scope");
    if (session || *part == "init.scope" || part->starts_with("user@")) return {};
    return unescape_unit(*part);
  }
  return {};
}

ContainerIdentity identify_path(std::string_view path) {
  Parts parts = split(path, '/');
  ContainerIdentity found;
  for (std::string_view part : parts) {
    for (std::string_view monitor : MONITORS) {
      if (part.starts_with(monitor)) return {.unit = unit_of(parts)};
    }
    if (std::string uid = pod_uid(part); !uid.empty()) found.pod = uid;
  }
  // The process sees itself in the innermost container.
  for (std::size_t i = parts.size(); i-- > 0;) {
    ContainerIdentity candidate = {.pod = found.pod};
    if (match_prefix(parts[i], candidate) || match_bare_id(parts, i, candidate) ||
        match_lxc(parts, i, candidate) || match_nspawn(parts, i, candidate)) {
      return candidate;
    }
  }
  if (!found.pod.empty()) {
    found.runtime = "kubernetes";
  } else {
    found.unit = unit_of(parts);
  }
  return found;
}

struct Line {
  bool unified = false;  // cgroup v2
  std::string_view path;
};

// "0::/path" (v2), "4:memory:/path" (v1), or a path alone.
Line parse_line(std::string_view line) {
  std::size_t first = line.find(':');
  std::size_t second = first == line.npos ? first : line.find(':', first + 1);
  if (line.starts_with('/') || second == line.npos) return {true, line};
  return {second == first + 1, line.substr(second + 1)};
}

}  // namespace

ContainerIdentity identify_container(std::string_view cgroup) {
  ContainerIdentity best;
  auto rank = [](const ContainerIdentity& identity) {
    return !identity.id.empty() ? 3 : !identity.pod.empty() ? 2 : !identity.unit.empty() ? 1 : 0;
  };
  for (std::string_view line : split(cgroup, '\n')) {
    ContainerIdentity identity = identify_path(parse_line(line).path);
    if (rank(identity) > rank(best)) best = std::move(identity);
  }
  return best;
}

std::string_view cgroup_path(std::string_view cgroup) {
  std::string_view unified = unified_cgroup_path(cgroup), longest;
  for (std::string_view text : split(cgroup, '\n')) {
    Line line = parse_line(text);
    if (line.path.size() > longest.size()) longest = line.path;
  }
  return unified.size() > 1 ? unified : longest;
}

std::string_view unified_cgroup_path(std::string_view cgroup) {
  for (std::string_view text : split(cgroup, '\n'))
    if (Line line = parse_line(text); line.unified) return line.path;
  return {};
}

std::string_view without_parents(std::string_view path) {
  while (path == "/.." || path.starts_with("/../")) path.remove_prefix(3);
  return path;
}

bool is_inside_cgroup(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

}  // namespace cudabpf
