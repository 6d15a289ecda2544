"""What recording costs the machine that is recorded:

    sudo bazel run -c opt //tests/benchmarks/capture:overhead

1. At the maximum. fio reads 4 KiB at random addresses of a loop device on tmpfs (libaio, QD 32); its rate is taken
   in windows without, with and without the recorder. Machine time added to an I/O is

       cores * (1 / IOPS with  -  mean of 1 / IOPS without)

   everything included: probes, reading, decoding, pairing, compressing, writing. The median over the rounds. perf
   record and the kernel's blk tracer (read from its pipe) are measured in the same rounds, where they work.
   Beside it the same by the scheduler's account of fio, the recorder and all kernel threads: that still tells
   something where others use the machine, but not what interrupts cost while others run.
   CPUs that are idle do not halt meanwhile: under a hypervisor what a recorder adds would be outweighed by the
   halts that it prevents. --halts lets them.
2. Loss: a longer window at the maximum. Events lost, and I/Os of fio against those in the trace.
3. A desktop's load: 300 I/Os a second. CPU time of the recorder in per cent of one core, and its largest RSS.

It needs root, fio and a machine that does nothing else.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from tests.benchmarks import common
from tests.harness import blktape, devices
from tests.live import recording

TRACEFS = "/sys/kernel/tracing"


class Fio:
    def __init__(self, device):
        self._device = device

    def run(self, seconds, *options):
        words = ["fio", "--name=load", "--filename=" + self._device, "--bs=4k", "--ioengine=libaio", "--direct=1",
                 "--time_based", "--runtime=%g" % seconds, "--norandommap", "--randrepeat=0", "--output-format=json",
                 *options]
        job = json.loads(subprocess.check_output(words, text=True))["jobs"][0]
        return {"iops": job["read"]["iops"] + job["write"]["iops"],
                "ios": job["read"]["total_ios"] + job["write"]["total_ios"]}

    FLAT_OUT = ("--rw=randread", "--iodepth=32", "--gtod_reduce=1")

    @contextlib.contextmanager
    def flat_out(self):
        """Runs until left."""
        process = subprocess.Popen(["fio", "--name=load", "--filename=" + self._device, "--bs=4k", "--ioengine=libaio",
                                    "--direct=1", "--time_based", "--runtime=1d", "--norandommap", *self.FLAT_OUT],
                                   stdout=subprocess.DEVNULL)
        try:
            time.sleep(2)
            yield
        finally:
            process.terminate()
            process.wait()

    def window(self, seconds):
        """Seconds of machine time, all cores together, and of CPU time that went into an I/O; by the kernel's count
        of the device's reads."""
        begin_s, begin_cpu, begin = time.monotonic(), involved_cpu_seconds(), self._reads()
        time.sleep(seconds)
        reads = self._reads() - begin
        cpu = involved_cpu_seconds()
        elapsed_s = time.monotonic() - begin_s
        used = sum(spent - begin_cpu.get(pid, spent) for pid, spent in cpu.items())
        return os.cpu_count() * elapsed_s / reads, used / reads

    def _reads(self):
        with open("/sys/block/%s/stat" % os.path.basename(self._device), encoding="ascii") as file:
            return int(file.read().split()[0])

    def desktop(self, seconds):
        return self.run(seconds, "--rw=randrw", "--rwmixread=60", "--iodepth=4", "--rate_iops=180,120")


class Bench:
    def __init__(self, stack, arguments):
        self.stack = stack
        self.arguments = arguments
        self.addCleanup = stack.callback  # what the helpers of tests want of a test
        self.folder = tempfile.mkdtemp(prefix="blktape-overhead.")
        stack.callback(shutil.rmtree, self.folder)
        self.device = stack.enter_context(common.Bench()).loop(arguments.size_mib << 20)
        self.fio = Fio(self.device)
        self.number = 0

    # What may run beside fio: context managers.

    def recorder(self, source):
        self.number += 1
        return recording.Recording(self, self.device, source=source, options=["--json"], statuses=(0, 3),
                                   trace=os.path.join(self.folder, "%d.tape" % self.number))

    @contextlib.contextmanager
    def bpf(self):
        with self.recorder("bpf"):
            yield

    @contextlib.contextmanager
    def tracefs(self):
        with self.recorder("tracefs"):
            yield

    @contextlib.contextmanager
    def perf(self):
        data = os.path.join(self.folder, "perf.data")
        process = subprocess.Popen(["perf", "record", "-q", "-a", "-e", "block:*", "-o", data],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(1)
        if process.poll() is not None:
            raise OSError("perf record ended: " + process.stderr.read().decode(errors="replace").strip()[:200])
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate()
            os.unlink(data)

    @contextlib.contextmanager
    def blk_tracer(self):
        def write(path, text):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)

        tracer = TRACEFS + "/current_tracer"
        enable = "/sys/block/%s/trace/enable" % os.path.basename(self.device)
        with open(tracer, encoding="ascii") as file:
            if file.read().strip() != "nop":
                raise OSError("somebody uses the kernel's tracer")
        with contextlib.ExitStack() as undo:
            write(enable, "1")
            undo.callback(write, enable, "0")
            write(tracer, "blk")
            undo.callback(write, tracer, "nop")
            with open(os.path.join(self.folder, "blk"), "wb") as out:
                reader = subprocess.Popen(["cat", TRACEFS + "/trace_pipe"], stdout=out)
                undo.callback(reader.wait)
                undo.callback(reader.kill)
                yield

    # Measurements.

    def added_us(self, beside):
        """Of one round: microseconds of machine time and of CPU time added to an I/O, IOPS without, IOPS with."""
        seconds = self.arguments.window
        before = self.fio.window(seconds)
        with beside():
            during = self.fio.window(seconds)
        after = self.fio.window(seconds)
        without = [(a + b) / 2 for a, b in zip(before, after)]
        return ((during[0] - without[0]) * 1e6, (during[1] - without[1]) * 1e6, os.cpu_count() / without[0],
                os.cpu_count() / during[0])

    def at_the_maximum(self):
        tools = {"bpf": self.bpf, "tracefs": self.tracefs, "perf record": self.perf, "blk tracer": self.blk_tracer}
        found = {name: [] for name in tools}
        refused = {}
        halts = contextlib.nullcontext() if self.arguments.halts else common.no_halts()
        with halts, self.fio.flat_out():
            for _ in range(self.arguments.rounds):
                for name, tool in tools.items():
                    if name in refused:
                        continue
                    try:
                        found[name].append(self.added_us(tool))
                    except (OSError, AssertionError) as error:
                        refused[name] = str(error).strip()
        for name, values in found.items():
            if name in refused:
                yield {"tool": name, "refused": refused[name]}
                continue
            added, added_cpu, without, during = (statistics.median(column) for column in zip(*values))
            yield {"tool": name, "added_us": added, "added_cpu_us": added_cpu, "iops_without": without, "iops_with": during,
                   "rounds_us": [value[0] for value in values]}

    def loss(self, source):
        with self.recorder(source) as recorder:
            ios = self.fio.run(self.arguments.loss_window, *self.fio.FLAT_OUT)["ios"]
        said = json.loads(recorder.said[recorder.said.index("{"):])
        info = blktape.as_json("info", recorder.trace, accept=(0, 3))
        size = os.path.getsize(recorder.trace)
        os.unlink(recorder.trace)
        return {"source": source, "fio_ios": ios, "recorded_ios": said["ios"], "lost": said["lost_events"],
                "losses": info["losses"], "recorder_cpu_us_an_io": said["cpu_ns"] / said["ios"] / 1e3,
                "bytes_an_io": size / said["ios"]}

    def desktop(self, source):
        with self.recorder(source) as recorder:
            # What starting costs is over.
            time.sleep(2)
            begin_s, begin_cpu = time.monotonic(), cpu_seconds(recorder.pid)
            iops = self.fio.desktop(self.arguments.desktop_window)["iops"]
            cpu = (cpu_seconds(recorder.pid) - begin_cpu) / (time.monotonic() - begin_s)
            rss = largest_rss_bytes(recorder.pid)
        return {"source": source, "iops": iops, "cpu_percent": cpu * 100, "rss_mib": rss / (1 << 20)}


def involved_cpu_seconds():
    """CPU time by process of what this program has started, and of every kernel thread."""
    parents = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open("/proc/%s/stat" % pid, encoding="ascii", errors="replace") as file:
            parents[int(pid)] = int(file.read().rpartition(")")[2].split()[1])
    involved = {}
    for pid in parents:
        above = pid
        while above not in (0, 2, os.getpid()):
            above = parents.get(above, 0)
        if above and pid != os.getpid():
            with contextlib.suppress(OSError):
                involved[pid] = cpu_seconds(pid)
    return involved


def cpu_seconds(pid):
    # Of the scheduler, in ns: ticks of 10 ms would not do. The sum of the threads.
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, task), encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def largest_rss_bytes(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    raise OSError("no VmHWM")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="off/on/off rounds of each tool; default 15")
    parser.add_argument("--window", type=float, default=1, metavar="S", help="of each of the three; default 1")
    parser.add_argument("--loss-window", type=float, default=30, metavar="S", help="default 30")
    parser.add_argument("--desktop-window", type=float, default=30, metavar="S", help="default 30")
    parser.add_argument("--size-mib", type=int, default=256, help="of the loop device, in memory; default 256")
    parser.add_argument("--halts", action="store_true", help="let idle CPUs halt at the maximum")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    if os.geteuid() != 0 or shutil.which("fio") is None:
        sys.exit("overhead: needs root and fio")
    devices.private_mounts()
    if not os.path.exists(TRACEFS + "/events"):
        subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACEFS], check=False)
    with contextlib.ExitStack() as stack:
        bench = Bench(stack, arguments)
        result = {"cores": os.cpu_count(), "maximum": list(bench.at_the_maximum()),
                  "loss": [bench.loss(source) for source in ("bpf", "tracefs")],
                  "desktop": [bench.desktop(source) for source in ("bpf", "tracefs")]}
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    print("4 KiB random reads at the maximum, %d cores, median of %d rounds" % (result["cores"], arguments.rounds))
    print("                added to an I/O, us    I/Os per second")
    print("                machine    CPU time   without      with")
    for row in result["maximum"]:
        if "refused" in row:
            print("  %-12s  does not work here: %s" % (row["tool"], row["refused"].splitlines()[0][:100]))
        else:
            print("  %-12s %8.2f %11.2f %9.0f %9.0f" % (row["tool"], row["added_us"], row["added_cpu_us"],
                                                    row["iops_without"], row["iops_with"]))
    print("%.0f s of it" % arguments.loss_window)
    for row in result["loss"]:
        reasons = ", ".join("%s %d" % (loss["reason"], loss["count"]) for loss in row["losses"])
        print("  %-8s %d I/Os by fio, %d recorded, %d events lost%s; recorder's own CPU %.2f us, %.1f B an I/O" % (
            row["source"], row["fio_ios"], row["recorded_ios"], row["lost"], " (%s)" % reasons if reasons else "",
            row["recorder_cpu_us_an_io"], row["bytes_an_io"]))
    print("A desktop's load")
    for row in result["desktop"]:
        print("  %-8s %.0f I/Os per second: %.2f %% of one core, %.1f MiB" % (
            row["source"], row["iops"], row["cpu_percent"], row["rss_mib"]))


if __name__ == "__main__":
    main()
