#!/usr/bin/env bash
# Runs scripts/list-not-passed on what ctest writes: reasons from shell tests and from Catch2's, and the ends
# of failed tests' output. Run by ctest.
set -euo pipefail

tool=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/scripts/list-not-passed
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/ctest.xml" <<XML
<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="(empty)" tests="6">
	<testcase name="vm_6_1" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
		<system-out>looking
SKIPPED: no kernel &lt;6.1&gt;
</system-out></testcase>
	<testcase name="ran" status="run"><system-out>SKIPPED: not this one</system-out></testcase>
	<testcase name="silent_failure" status="fail"><failure message=""/><system-out></system-out></testcase>
	<testcase name="failed" status="fail"><failure message=""/><system-out>$(seq 70)
1 &lt; 2
</system-out></testcase>
	<testcase name="catch" status="notrun"><skipped message="SKIP_RETURN_CODE=4"/>
		<system-out>x.cpp:3: SKIPPED:
explicitly with message:
  needs root

test cases: 1 | 1 skipped
</system-out></testcase>
	<testcase name="silent" status="disabled"><system-out>Disabled</system-out></testcase>
</testsuite>
XML
diff <("$tool" "$work/ctest.xml") - <<EXPECTED

==== 3 SKIPPED: not run on this machine ====
  catch
      needs root
  silent
      no reason given
  vm_6_1
      no kernel <6.1>

==== FAILED: failed ====
$(seq 12 70)
1 < 2

==== FAILED: silent_failure ====
nothing was printed
EXPECTED

echo '<testsuite><testcase name="a" status="run"/></testsuite>' >"$work/ctest.xml"
diff <("$tool" "$work/ctest.xml") /dev/null

# Entries that consist of many tests: these are named and counted, by whichever program wrote them.
mkdir "$work/results"
cat >"$work/ctest.xml" <<XML
<testsuite>
	<testcase name="live_a" status="fail"><failure message=""/><system-out>all that the theme printed</system-out></testcase>
	<testcase name="unit" status="run"><system-out>all passed</system-out></testcase>
	<testcase name="live_b" status="fail"><failure message=""/><system-out>it was killed</system-out></testcase>
	<testcase name="alone" status="run"><system-out/></testcase>
</testsuite>
XML
cat >"$work/results/live_a.xml" <<XML
<testsuite name="live_a">
<testcase name="live_a: one" status="run"><system-out/></testcase>
<testcase name="live_a: two" status="fail"><failure message=""/><system-out>1 is not 2</system-out></testcase>
<testcase name="live_a: three" status="notrun"><skipped message=""/><system-out>SKIPPED: no tmux</system-out></testcase>
</testsuite>
XML
echo '<testsuite name="live_b"><testcase name="live_b: one" status="run"/></testsuite>' >"$work/results/live_b.xml"
cat >"$work/results/unit.xml" <<XML
<testsuites><testsuite name="unit_tests">
<testcase name="A trace is read" status="run"/>
<testcase name="A name is read" status="run"><skipped type="SKIP">
SKIPPED
needs root
at x.cpp:3
</skipped></testcase>
</testsuite></testsuites>
XML
diff <("$tool" "$work/ctest.xml" "$work/results") - <<'EXPECTED'

==== 2 SKIPPED: not run on this machine ====
  live_a: three
      no tmux
  unit: A name is read
      needs root

==== FAILED: live_a: two ====
1 is not 2

==== FAILED: live_b ====
it was killed

==== 8 tests: 4 passed, 2 failed, 2 skipped. As entries of ctest: ====
EXPECTED
