#!/usr/bin/env bash
# Runs scripts/apt-source on every way in which a Debian mirror may be configured. Run by ctest.
set -euo pipefail

tool=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/scripts/apt-source
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# expect NAME EXPECTED: what the tool prints for the folder $work/NAME
expect() {
  local actual status=0
  actual=$("$tool" bookworm bookworm-backports "$work/$1" 2>/dev/null) || status=$?
  if [[ $actual != "$2" ]]; then
    printf 'FAILED %s (status %s)\n--- expected\n%s\n--- printed\n%s\n' "$1" "$status" "$2" "$actual"
    failed=1
  fi
}

configure() { # NAME FILE: standard input becomes that file
  mkdir -p "$work/$1/sources.list.d"
  cat >"$work/$1/$2"
}

configure stanzas sources.list.d/debian.sources <<'SOURCES'
# http://archive.invalid/debian as it once was
Types: deb-src
URIs: http://source.invalid/debian
Suites: bookworm
Components: main

Types: deb
URIs: http://off.invalid/debian
Suites: bookworm
Components: main
Enabled: no

Types: deb
URIs: http://security.invalid/debian-security
Suites: bookworm-security
Components: main

Types: deb deb-src
# a comment between the fields
URIs: http://mirror.invalid/debian
Suites: bookworm-updates
 bookworm
Components: main contrib
Architectures: amd64
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
 -----END PGP PUBLIC KEY BLOCK-----
SOURCES
expect stanzas 'Types: deb
Suites: bookworm-backports
Components: main
URIs: http://mirror.invalid/debian
Architectures: amd64
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
 -----END PGP PUBLIC KEY BLOCK-----'

configure lines sources.list <<'SOURCES'
# deb http://comment.invalid/debian bookworm main
deb cdrom:[Debian 12]/ bookworm main
deb-src http://source.invalid/debian bookworm main
deb http://security.invalid/debian-security bookworm-security main
deb	[ arch=amd64,i386 signed-by=/usr/share/keyrings/a.gpg check-valid-until=no ]  http://mirror.invalid/debian  bookworm main # ours
deb http://second.invalid/debian bookworm main
SOURCES
expect lines 'Types: deb
URIs: http://mirror.invalid/debian
Suites: bookworm-backports
Components: main
Architectures: amd64 i386
signed-by: /usr/share/keyrings/a.gpg
check-valid-until: no'

configure plain sources.list.d/debian.list <<<'deb http://mirror.invalid/debian bookworm main'
expect plain 'Types: deb
URIs: http://mirror.invalid/debian
Suites: bookworm-backports
Components: main'

configure other sources.list.d/other.sources <<<'Types: deb
URIs: http://mirror.invalid/other
Suites: nodistro
Components: main'
expect other ''
if "$tool" bookworm bookworm-backports "$work/other" 2>/dev/null; then
  echo 'FAILED: no source for bookworm, yet exit status 0'
  failed=1
fi

exit $failed
