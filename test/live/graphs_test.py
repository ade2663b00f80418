"""What launches of graphs run, and what is captured instead of run: as the simulated driver has it."""
import glob
import os
import signal
import subprocess

import harness
from expected import check_calls
from graph_truth import LAUNCHES, check_graphs
from harness import LIBRARY, Trace, calls, wait_for

ONE = "1 1 1 32 1 1 0"
BEGIN = "setup; stream s; stream t; event e; event f; module m; function k m _Z4gemmPfi; function l m _Z4reluPf; malloc a 1M"
TWO = f"graph g; graph-kernel g k 8 2 1 128 1 1 64 n; graph-kernel g l {ONE} o"
END_UNKNOWN = "instantiate x g; launch-graph x"


class Live(harness.LiveTest):
    def graphs(self, script, launches, *flags, **options):
        """Traces the script: the content of each launch is known, and right; so many are launched."""
        trace = self.script(f"{BEGIN}; {script}", *flags, **options)
        self.check_whole(trace)
        check_calls(self, trace)
        self.assertEqual(self.unknown(trace), [None] * launches)
        return trace

    def text(self):
        with open(self.path, encoding="utf-8") as file:
            return file.read()

    @staticmethod
    def launches(trace):
        return [call for call in trace.calls if harness.symbol_of(call) in LAUNCHES and "captured" not in call]

    def unknown(self, trace):
        """Why the content of each launch is not known."""
        return [call.get("graph_unknown") for call in self.launches(trace)]

    @staticmethod
    def captured(trace):
        """The names of calls that were captured."""
        return [call["name"] for call in trace.calls if "captured" in call and call["ret"] == 0]

    # --- nodes

    def test_nodes(self):
        """Nodes of every kind, by its own function and by that for all."""
        trace = self.graphs(f"""
            graph c; graph-kernel c l {ONE}
            {TWO}; graph-kernel-v1 g k 3 1 1 32 2 1 16; graph-copy g 4096; graph-set g 4 100 1; graph-set g 1 33 7
            graph-alloc g 64K; graph-free g; graph-host g; graph-empty g; graph-record g e; graph-wait g e; graph-child g c
            instantiate x g; launch-graph x; launch-graph x s
            graph h; graph-node n1 h kernel k 5 6 7 8 4 2 1; graph-node n2 h copy 12345; graph-node n3 h set 2 10 3
            graph-node n4 h host; graph-node n5 h empty; graph-node n6 h alloc 1M; graph-node n7 h free
            graph-node n8 h child g; graph-node-v1 n9 h kernel l {ONE}; graph-node-v1 na h copy 12345
            instantiate y h; launch-graph y; destroy-graph g; destroy-graph h; launch-graph x; launch-graph y""", 5)
        launches = self.launches(trace)
        self.assertEqual([launch["graph"] for launch in launches], [1, 1, 2, 1, 2])
        self.assertEqual([(launch["nodes"], launch["kernels"]) for launch in launches[1:3]], [(13, 4), (22, 6)])

    def test_kernels_of_libraries(self):
        """Kernels without a context: their nodes have the handle at another place."""
        trace = self.graphs(f"library b; kernel q b _Z3sumPf; kernel-function r q; graph g; graph-kernel g q {ONE}; "
                            f"graph-kernel g r {ONE}; instantiate x g; launch-graph x", 1)
        self.assertEqual([work["kernel"] for line in trace.of("graph") for work in line["content"]], ["sum(float*)"])

    def test_the_same(self):
        """Graphs that hold the same are one content, whatever the order of their nodes."""
        trace = self.graphs(f"{TWO}; instantiate x g; graph h; graph-kernel h l {ONE}; graph-kernel h k 8 2 1 128 1 1 64; "
                            "instantiate y h; launch-graph x; launch-graph y; launch-graph x", 3)
        self.assertEqual([launch["graph"] for launch in self.launches(trace)], [1, 1, 1])
        self.assertEqual(len(trace.of("graph")), 1)

    def test_copies(self):
        """Clones and child graphs are copies, with nodes of their own."""
        self.graphs(f"""
            {TWO}; clone-graph c g; graph p; graph-child p g ch; graph-kernel p k 9 9 9 1 1 1 0
            set-kernel n k 77 1 1 1 1 1 0; clone-node cn n c; set-kernel cn l 66 1 1 1 1 1 0
            instantiate x g; instantiate y c; instantiate z p; launch-graph x; launch-graph y; launch-graph z
            child-graph in ch; graph-copy in 512 inner; launch-graph z; instantiate w p; launch-graph w
            clone-node innern n in; set-kernel innern k 55 1 1 1 1 1 0; instantiate v p; launch-graph v
            fails 1 destroy-graph in; destroy-graph g; destroy-graph c; launch-graph x; launch-graph z
            set-exec-copy w inner 1024; launch-graph w
            graph q; graph-child q p; clone-graph r q; instantiate u r; launch-graph u""", 10)

    def test_changed_nodes(self):
        """A change of a graph's node is for what is instantiated later; one of an executable's, for that alone."""
        self.graphs(f"""
            {TWO}; graph-copy g 100 c; graph-set g 1 10 1 z; graph-node w g kernel l {ONE}; graph b; graph-child g b ch; graph h; graph-kernel h l 33 1 1 1 1 1 0
            instantiate x g
            set-kernel n k 1 2 3 4 5 6 7; set-kernel-v1 o k 2 1 1 1 1 1 0; set-copy c 200; set-set z 4 10 2
            set-node w kernel k 11 1 1 1 1 1 0; launch-graph x; instantiate y g; launch-graph y
            set-node c copy 300; set-node z set 2 5 1; set-node ch child h; fails 1 set-node ch child g; instantiate v g; launch-graph v
            set-exec-kernel y n l 21 1 1 1 1 1 0; set-exec-kernel-v1 y o l 22 1 1 1 1 1 0; set-exec-copy y c 400
            set-exec-set y z 1 7 1; set-exec-node y w kernel l 23 1 1 1 1 1 0; launch-graph y; launch-graph x
            set-exec-node y c copy 500; set-exec-node y z set 1 8 1; launch-graph y
            fails 1 set-exec-copy y n 600; fails 1 set-exec-kernel y k k {ONE}; launch-graph y; instantiate u g; launch-graph u""",
                    8)

    def test_child_of_an_executable(self):
        self.graphs(f"""
            {TWO}; graph p; graph-child p g ch; instantiate x p; launch-graph x
            graph h; graph-kernel h l 4 1 1 1 1 1 0; graph-kernel h l 5 1 1 1 1 1 0; set-exec-child x ch h; launch-graph x
            set-exec-node x ch child g; launch-graph x; graph small; fails 910 set-exec-child x ch small; launch-graph x
            child-graph in ch; graph-kernel in k 6 1 1 1 1 1 0; fails 910 set-exec-child x ch in; launch-graph x""", 5)

    def test_disabled_and_destroyed_nodes(self):
        self.graphs(f"""
            {TWO}; graph-copy g 64 c; graph-empty g em; instantiate x g; enable x n 0; launch-graph x; enable x c 0; launch-graph x
            set-exec-kernel x n k 9 1 1 1 1 1 0; launch-graph x; enable x n 1; launch-graph x; enable x c 1; launch-graph x
            fails 1 enable x em 0; instantiate y g; launch-graph y
            destroy-node o; launch-graph x; instantiate z g; launch-graph z; fails 1 set-kernel o k {ONE}
            destroy-node n; destroy-node c; destroy-node em; instantiate w g; launch-graph w""", 9)

    def test_updates(self):
        """What is instantiated becomes what another graph holds."""
        self.graphs(f"""
            {TWO}; instantiate x g; graph h; graph-kernel h l 3 1 1 1 1 1 0 n2; graph-kernel h l 4 1 1 1 1 1 0
            update x h; launch-graph x; graph small; graph-kernel small k {ONE}; fails 910 update x small; launch-graph x
            set-kernel n2 k 10 1 1 1 1 1 0; launch-graph x; update x h; launch-graph x; update x g; launch-graph x
            capture s; launch k 5 1 1 1 1 1 0 s; launch l 6 1 1 1 1 1 0 s; end-capture c s; update x c; destroy-graph c
            launch-graph x""", 6)

    def test_updates_of_disabled_nodes(self):
        """They stay disabled; where it is not known which they are, that is said."""
        trace = self.script(f"{BEGIN}; {TWO}; instantiate x g; enable x n 0; set-kernel o l 9 1 1 1 1 1 0; update x g; "
                            "launch-graph x; clone-graph h g; update x h; launch-graph x; update x g; launch-graph x; instantiate x h; "
                            "update x g; launch-graph x")
        self.check_whole(trace)
        self.assertEqual(self.unknown(trace), [None, "changed", "changed", None])

    def test_conditional(self):
        """Bodies belong to the graph, and what is in them may run any number of times."""
        trace = self.graphs(f"""
            {TWO}; graph-node c g conditional b; graph-kernel b k 7 1 1 1 1 1 0 bn; graph-copy b 640; instantiate x g
            launch-graph x; graph-kernel b l 8 1 1 1 1 1 0; launch-graph x; instantiate y g; launch-graph y
            set-exec-kernel y bn k 70 1 1 1 1 1 0; launch-graph y; fails 801 clone-graph h g
            graph-node d b conditional inner; graph-set inner 4 4 4; graph-node-v1 u g conditional z; graph-host z
            instantiate w g; launch-graph w""", 5)
        self.assertEqual([launch["nodes"] for launch in self.launches(trace)], [3, 3, 3, 3, 4])

    def test_second_bodies(self):
        """Only the first body's handle is recorded: which graphs the others belong to is not known."""
        trace = self.script(f"{BEGIN}; {TWO}; graph-node c g conditional b1 b2; graph-kernel b1 k {ONE}; instantiate x g; "
                            f"launch-graph x; graph-kernel b2 l {ONE}; instantiate y g; launch-graph y; launch-graph x")
        self.check_whole(trace)
        self.assertEqual(self.unknown(trace), [None, "changed", None])

    def test_large(self):
        """So long a content is cut, and says so."""
        kernels = "; ".join(f"graph-kernel g k {grid} 1 1 1 1 1 0" for grid in range(1, 1011))
        trace = self.graphs(f"graph g; {kernels}; instantiate x g; launch-graph x", 1)
        self.assertEqual((self.launches(trace)[0]["nodes"], trace.of("graph")[0]["more"]), (1010, 10))

    # --- captures

    def test_captures(self):
        """Everything that a stream can be given; nothing of it runs."""
        trace = self.graphs(f"""
            launch k {ONE} s; capture s; launch k {ONE} s; launch-ex k 2 1 1 1 1 1 0 s; launch-cooperative l {ONE} s
            htod-async a host 4096 s; dtoh-async host a 64 s; dtod-async a a 32 s; copy-async a a 16 s
            peer-async a ctx a ctx 8 s; copy2d-async htod a host 10 20 s; copy3d-async dtod a a 2 3 4 s
            copy3d-peer-async dtod a a 3 3 3 ctx ctx s; set8-async a 1 100 s; set16-async a 1 100 s; set32-async a 1 100 s
            set2d8-async a 64 1 5 6 s; set2d16-async a 64 1 5 6 s; set2d32-async a 64 1 5 6 s
            malloc-async b 8K s; free-async b s; pool q; malloc-pool c 4K q s; free-async c s; host-func s; write-value a 1 s
            raw cuStreamWaitValue64_v2 s a 1 0; raw cuStreamBatchMemOp_v2 s 0 0 0
            htod-async a host 0 s; set32-async a 1 0 s; set2d8-async a 64 1 5 0 s
            launch k {ONE} t; htod a host 64; htod-async a host 128 t; malloc d 4K; malloc-async u 4K t; free-async u t
            end-capture g s; launch k {ONE} s; host-func s; instantiate x g; launch-graph x s; launch-graph x; memory-info
            capture-to s g; launch l 5 1 1 1 1 1 0 s; end-capture h s; instantiate y h; launch-graph y; launch-graph x""", 4)
        self.assertEqual(len(self.captured(trace)), 29)
        self.assertEqual([launch["nodes"] for launch in self.launches(trace)], [25, 25, 26, 25])

    def test_joined_streams(self):
        """Streams join a capture by its events, and leave it when it ends."""
        trace = self.graphs(f"""
            stream u; capture s; launch k {ONE} s; record e s; launch k {ONE} t; wait-event e t; launch l {ONE} t; wait-event e u
            htod-async a host 64 u; record f t; wait-event f s; record f u; wait-event f s; launch k 3 1 1 1 1 1 0 s
            end-capture g s; launch l {ONE} t; fails 1 wait-event f t; launch l {ONE} u; instantiate x g; launch-graph x
            record e s; wait-event e t; launch l {ONE} t
            capture s; record e t; fails 905 wait-event e s; fails 901 end-capture h s; launch k {ONE} s
            capture s; record e s; record e t; wait-event e u; launch k {ONE} u; launch k {ONE} s; end-capture h s
            capture s; record-flags f 1 s; wait-event e s 1; launch l {ONE} s; end-capture h s; instantiate y h; launch-graph y""",
                            2)
        self.assertEqual(self.captured(trace).count("cuLaunchKernel"), 5)
        self.assertEqual([launch["nodes"] for launch in self.launches(trace)], [4, 3])

    def test_captured_launches(self):
        """A graph that is launched into a capture becomes part of the graph, as it is then."""
        trace = self.graphs(f"""
            {TWO}; instantiate x g; capture s; launch-graph x s; set-exec-kernel x n k 50 1 1 1 1 1 0; launch-graph x s
            launch k {ONE} s; launch-graph x t; end-capture c s; instantiate y c; launch-graph y; destroy-exec x
            launch-graph y; capture s; launch-graph y s; end-capture d s; instantiate z d; launch-graph z""", 4)
        self.assertEqual([launch["nodes"] for launch in self.launches(trace)], [2, 5, 5, 5])
        self.assertEqual(self.captured(trace).count("cuGraphLaunch"), 3)

    def test_failed_captures(self):
        """However a capture fails, from then on its streams run what they are given."""
        join = f"launch k {ONE} s; record e s; wait-event e t; launch l {ONE} t"
        after = f"launch k 9 1 1 1 1 1 0 s; launch k 9 1 1 1 1 1 0 t; htod-async a host 64 s"
        trace = self.graphs("; ".join([
            f"capture s; {join}; fails 904 end-capture g s; {after}",
            f"capture s; {join}; fails 900 sync s; fails 901 launch k {ONE} t; fails 901 end-capture g s; {after}",
            f"capture s; {join}; fails 1 launch k 0 1 1 1 1 1 0 s; fails 901 end-capture g s; {after}",
            f"capture s; {join}; fails 903 end-capture g t; fails 901 launch k {ONE} s; fails 901 end-capture g s; {after}",
            f"capture s; {join}; thread {{ fails 908 end-capture g s }}; wait; {after}; fails 401 end-capture g s",
            f"capture s; {join}; destroy-stream t; fails 904 end-capture g s; stream t; {after}",
            f"capture s; {join}; destroy-stream s; launch k 9 1 1 1 1 1 0 t; stream s; {after}; fails 401 end-capture g t",
            f"{TWO}; capture-to s g; {join}; fails 900 query s; fails 901 end-capture h s; {after}; fails 1 destroy-graph g",
            f"capture s; {join}; record f t; wait-event f s; end-capture g s; instantiate x g; launch-graph x"]), 1)
        self.assertEqual(len(self.captured(trace)), 9 * 2)

    def test_added_to_a_capture(self):
        """By a handle that no followed call has returned: it is no longer known what is captured."""
        trace = self.script(f"{BEGIN}; capture s; launch k {ONE} s; captured-graph h s; graph-kernel h l {ONE}; end-capture g s; "
                            f"instantiate x g; launch-graph x; capture s; launch k {ONE} s; end-capture g s; instantiate y g; "
                            "launch-graph y")
        self.check_whole(trace)
        self.assertEqual(self.unknown(trace), ["changed", None])

    def test_threads(self):
        """Two threads at once, each of which captures its own stream."""
        one = (f"thread {{ stream u; loop 40 {{ capture u; loop 5 {{ launch k 3 1 1 32 1 1 0 u }} htod-async a host 64 u; launch l {ONE} s; "
               "end-capture g u; instantiate x g; launch-graph x u; destroy-exec x; destroy-graph g } }")
        trace = self.graphs(f"{one}; {one.replace('k 3', 'l 4')}; wait", 80)
        self.assertEqual({launch["nodes"] for launch in self.launches(trace)}, {6})

    def test_per_thread_streams(self):
        """Each thread's default stream is another."""
        one = (f"loop 20 {{ capture 0; launch k 3 1 1 32 1 1 0; launch k 3 1 1 32 1 1 0 2; launch l {ONE} s; end-capture g 0; "
               f"launch k {ONE}; instantiate x g; launch-graph x }}")
        trace = self.graphs(f"thread {{ {one} }}; {one.replace('k 3', 'l 4')}; wait", 40, workload=["--per-thread-stream"])
        self.assertEqual({launch["nodes"] for launch in self.launches(trace)}, {2})

    # --- what cannot be known

    def test_not_recorded(self):
        """If functions are left out, none of the launches says anything but that, but what is captured is known without them."""
        script = f"{BEGIN}; {TWO}; instantiate x g; launch-graph x; capture s; launch k {ONE} s; end-capture h s; launch-graph x"
        for flags, captured in ((["--profile", "light"], False), (["--only", "cuGraphLaunch,cuLaunchKernel"], False),
                                (["--exclude", "cuStreamEndCapture"], False), (["--exclude", "cuGraphAddKernelNode"], True),
                                (["--exclude", "cuEventRecord*", "--profile", "default"], True),
                                (["--exclude", "cuMemcpyHtoDAsync"], True)):
            with self.subTest(flags):
                self.setUp()
                trace = self.script(script, *flags)
                self.check_law(trace)
                self.assertEqual((self.unknown(trace), self.captured(trace)),
                                 (["not_recorded"] * 2, ["cuLaunchKernel"] * captured))
        self.setUp()
        trace = self.script(script, "--profile", "default", "--exclude", "cuDevice*,cuModuleLoad*")
        self.check_law(trace)
        self.assertEqual((self.unknown(trace), self.captured(trace)), ([None] * 2, ["cuLaunchKernel"]))

    def test_before(self):
        """What was made before the trace began is not known; nor is what is made of it; all else is."""
        program = self.start(calls(f"{BEGIN}; {TWO}; instantiate x g; graph p; capture s; launch k {ONE} s; print ready; read; "
                                   f"launch k {ONE} s; end-capture c s; launch-graph x; instantiate y g; launch-graph y; "
                                   "instantiate z c; launch-graph z; graph-child p g; instantiate w p; launch-graph w; "
                                   f"graph h; graph-copy h 64; instantiate v h; launch-graph v; graph-child h g; instantiate u h; "
                                   f"launch-graph u; graph q; graph-kernel q k {ONE}; graph-kernel q k {ONE}; instantiate r q; update r g; "
                                   "launch-graph r; update x q; launch-graph x"),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        program.process.stdout.readline()
        tracer = self.start_cudabpf("attach", "--pid", program.pid, "-o", self.path, "--profile", "full")
        program.send_line()
        self.assertEqual((program.wait(), tracer.wait()), (0, 0), tracer.stderr())
        trace = self.read()
        self.check_law(trace)
        self.assertEqual(self.unknown(trace), ["before"] * 4 + [None] + ["before"] * 2 + [None])

    def test_lost(self):
        """Calls that did not fit into the ring may have changed any graph."""
        lose = f"print lose; read; loop 3000 {{ set-exec-kernel x n l {ONE} }} print go; read"
        program = self.start([harness.CUDABPF, "run", "-o", self.path, "--profile", "full", "--library", LIBRARY, "--ring-size", "64K",
                              "--", *calls(f"{BEGIN}; {TWO}; instantiate x g; capture t; launch k {ONE} t; {lose}; launch-graph x; "
                                           f"instantiate y g; launch-graph y; launch k {ONE} t; end-capture c t; instantiate z c; "
                                           f"launch-graph z; launch k {ONE} t; graph h; graph-copy h 64; instantiate w h; launch-graph w")],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        program.process.stdout.readline()
        wait_for(lambda: self.record().counts.get("cuStreamBeginCapture_v2"), "capturing")
        program.signal(signal.SIGSTOP)
        program.send_line()
        program.process.stdout.readline()
        program.signal(signal.SIGCONT)
        wait_for(lambda: '"type":"lost"' in self.text(), "losses reported: there is space again")
        program.send_line()
        self.assertEqual(program.wait(), 0, program.stderr())
        trace = self.read()
        self.check_accounts(trace)
        self.assertGreater(trace.end["accounts"]["dropped"], 0)
        self.assertEqual(self.unknown(trace)[-1:], [None])
        self.assertEqual(set(self.unknown(trace)[:-1]), {"lost"})

    def test_losses(self):
        """Whatever is lost, no launch says what it did not run."""
        body = (f"{TWO}; instantiate x g; launch-graph x; set-exec-kernel x n l {ONE}; launch-graph x; enable x o 0; launch-graph x; "
                f"capture s; launch k {ONE} s; launch l {ONE} s; end-capture c s; instantiate y c; launch-graph y; launch k {ONE} s; "
                "destroy-exec x; destroy-exec y; destroy-graph c; destroy-graph g")
        trace = self.script(f"{BEGIN}; loop 400 {{ {body} }}", "--ring-size", "8K")
        self.check_accounts(trace)
        if not trace.end["accounts"]["dropped"]:
            self.skipTest("nothing was lost: this machine is too fast for the test")
        self.assertIn("lost", self.unknown(trace))
        self.assertLessEqual(set(self.unknown(trace)), {None, "lost"})

    # --- processes and files

    def test_processes(self):
        """A child made by fork, or a program that replaces another, knows nothing of the graphs before."""
        trace = self.script(f"{BEGIN}; {TWO}; instantiate x g; launch-graph x; fork {{ fails 1 launch-graph 77; {TWO}; instantiate y g; "
                            f"launch-graph y }}; wait; launch-graph x; exec {{ {BEGIN}; {TWO}; instantiate x g; launch-graph x }}")
        self.check_whole(trace)
        check_calls(self, trace)
        self.assertEqual([launch.get("nodes") for launch in self.launches(trace)].count(2), 4)
        self.assertEqual(len({(line["pid"], line["graph"]) for line in trace.of("graph")}), 3)

    def test_inherited(self):
        """An executable that a forked child has only from its parent: it is not known, and not taken for another."""
        trace = self.script(f"{BEGIN}; {TWO}; instantiate x g; launch-graph x; fork {{ launch-graph x }}; wait")
        self.check_whole(trace)
        self.assertEqual(self.unknown(trace), [None, "not_recorded"])

    def test_rotated(self):
        """Each file says what the graphs hold that are launched in it."""
        script = (f"{BEGIN}; {TWO}; instantiate x g; graph h; graph-copy h 640; instantiate y h; "
                  "loop 300 { launch-graph x; launch-graph y; launch-graph x }")
        done = self.run_cudabpf("run", "-o", self.path, "--rotate-size", "16K", "--profile", "full", "--library", LIBRARY, "--",
                                *calls(script))
        self.assertEqual(done.returncode, 0, done.stderr)
        paths = sorted(glob.glob(f"{self.folder}/trace.[0-9]*"))
        self.assertGreater(len(paths), 3)
        launches = []
        for path in paths:
            self.assertLessEqual(os.path.getsize(path), 16384)
            with open(path, encoding="utf-8") as file:
                trace = Trace(file.read())
            check_graphs(self, trace)
            launches += self.launches(trace)
        self.assertEqual([launch["graph"] for launch in launches], [1, 2, 1] * 300)


if __name__ == "__main__":
    harness.main()
