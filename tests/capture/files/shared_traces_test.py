"""Imports every trace beside the repository and finds each figure that another program computed of it.

The figures, and how each is computed, stand in traces/STATS.md there: sections "### NAME" of lines "- KEY: JSON". Here they
are computed once more, of what `blktape dump --csv` tells of the imported trace.
"""

import collections
import csv
import json
import os
import re
import subprocess
import tempfile
import unittest

from tests.harness import blktape, cases


def sections(text):
    """{name: {key: value}}"""
    found = {}
    for part in re.split(r"(?m)^### ", text)[1:]:
        name, _, body = part.partition("\n")
        found[name] = values = {}
        for line in body.splitlines():
            match = re.match(r"- (.*?): (.*)$", line)
            key = line[2:].rpartition(": ")[0] if match else ""
            if key:
                try:
                    values[key] = json.loads(line.rpartition(": ")[2])
                except ValueError:
                    match = re.match(r"- (.+?): ([\[{\d].*)$", line)
                    if match:
                        try:
                            values[match[1]] = json.loads(match[2])
                        except ValueError:
                            pass
    return found


LETTERS = {"read": "R", "write": "W", "discard": "D", "flush": "F"}


def percentile(ordered, percent):
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def statistics(rows):
    """The figures of STATS.md, of (arrival, complete or None, device, op letter, start, bytes, cpu) in the order of the trace."""
    figures = {"requests parsed": len(rows)}
    figures["by op"] = dict(collections.Counter(row[3] for row in rows))
    data = sorted((row for row in rows if row[3] in "RW" and row[5] > 0), key=lambda row: row[0])
    n = len(data)
    reads = [row for row in data if row[3] == "R"]
    writes = [row for row in data if row[3] == "W"]
    sizes = collections.Counter(row[5] for row in data)
    figures.update({
        "data requests (R+W, size>0) = n": n, "reads": len(reads), "writes": len(writes),
        "read %": round(100 * len(reads) / n, 4),
        "bytes read": sum(row[5] for row in reads), "bytes written": sum(row[5] for row in writes),
        "4096-byte requests": sizes[4096], "4096-byte %": round(100 * sizes[4096] / n, 4),
        "distinct sizes": len(sizes),
        "min/max size bytes": [min(sizes), max(sizes)],
        "mean size bytes": round(sum(row[5] for row in data) / n, 4),
        "first/last arrival ns (as recorded)": [data[0][0], data[-1][0]],
        "duration ns (last-first arrival)": data[-1][0] - data[0][0],
        "mean inter-arrival ns": round((data[-1][0] - data[0][0]) / (n - 1), 3),
        "min offset": min(row[4] for row in data), "max offset (start)": max(row[4] for row in data),
        "max end offset": max(row[4] + row[5] for row in data),
        "offsets not multiple of 4096": sum(row[4] % 4096 != 0 for row in data),
        "devices": len({row[2] for row in data}),
    })
    figures["bytes discarded"] = sum(row[5] for row in rows if row[3] == "D")
    a = b = c = 0
    last = None
    by_device, by_direction = {}, {}
    for _, _, device, op, start, size, _ in data:
        a += last == (device, start)
        b += by_device.get(device) == start
        c += by_direction.get((device, op)) == start
        last = (device, start + size)
        by_device[device] = by_direction[device, op] = start + size
    figures["sequential A: start==end of previous data request in trace (same device): count"] = a
    figures["sequential A % of n"] = round(100 * a / n, 4)
    figures["sequential B: previous request of the same device: count"] = b
    figures["sequential C: previous request of the same device and same direction: count"] = c
    for name, chosen in (("latency", data), ("latency reads", reads), ("latency writes", writes)):
        took = sorted(row[1] - row[0] for row in chosen if row[1] is not None)
        if not took:
            continue
        figures[name + ": samples"] = len(took)
        figures[name + ": mean ns"] = round(sum(took) / len(took), 3)
        figures[name + ": p50 / p99 / max ns"] = [percentile(took, 50), percentile(took, 99), took[-1]]
        figures[name + ": min ns"] = took[0]
    moments = sorted([(row[0], 1) for row in data if row[1] is not None] +
                     [(row[1], 0) for row in data if row[1] is not None], key=lambda moment: moment)
    depth = deepest = 0
    for _, begins in moments:
        depth += 1 if begins else -1
        deepest = max(deepest, depth)
    if moments:
        figures["max in flight (completions counted before arrivals at equal time)"] = deepest
    figures["top 10 sizes"] = sizes
    return figures


class SharedTracesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="blktape-test.", dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.trace = os.path.join(folder.name, "imported.tape")

    def agrees(self, section, names, accept=(0,), arrival="issue_ns", order=None):
        stats, *paths = cases.shared("traces/STATS.md", *names)
        with open(stats, encoding="utf-8") as file:
            expected = sections(file.read())[section]
        said = json.loads(blktape.ok("import", *paths, "-o", self.trace, "--json", accept=accept).stdout)
        rows = []
        dump = subprocess.Popen([blktape.PROGRAM, "dump", "--csv", self.trace], stdout=subprocess.PIPE, text=True,
                                stderr=subprocess.DEVNULL)
        for row in csv.DictReader(dump.stdout):
            complete = row["complete_ns"]
            rows.append((int(row[arrival]), int(complete) if complete else None, row["device"], LETTERS[row["op"]],
                         int(row["lba"] or 0) * 512, int(row["bytes"]), int(row["cpu"] or 0)))
        dump.wait()
        if order:
            rows.sort(key=order)
        found = statistics(rows)
        tied = sum(a[0] == b[0] and a[6] == b[6] for a, b in zip(rows, rows[1:]))
        compared = 0
        for key, value in expected.items():
            with self.subTest(section, figure=key):
                if key.startswith("by op"):
                    self.assertEqual(found["by op"], value)
                elif key.startswith("top 10 sizes"):
                    sizes = found["top 10 sizes"]
                    self.assertEqual(sorted(sizes.values(), reverse=True)[:len(value)], [count for _, count in value])
                    for size, count in value:
                        self.assertEqual(sizes[size], count)
                elif key in found and order and key.startswith("sequential"):
                    # Requests that one CPU issued in one microsecond: the recording has their order, the trace that of
                    # their arrival. Only they may differ.
                    slack = 200 * tied / len(rows) if key.endswith("% of n") else 2 * tied
                    self.assertLessEqual(abs(found[key] - value), slack)
                elif key in found:
                    self.assertEqual(found[key], value)
                else:
                    continue
                compared += 1
        # None is missed as its name has changed.
        self.assertGreater(compared, 20)
        self.analyze_agrees(section, expected, 2 * tied if order else 0, arrival)
        return expected, said, rows

    def same_sizes(self, expected, told, n):
        """`told`: the analysis's whole trace, or what it says of sizes as queued."""
        sizes = {row["bytes"]: row["count"] for row in told["size_histogram"]}
        self.assertEqual((sum(sizes.values()), told["size_histogram_other"]), (n, 0))
        self.assertEqual([told["reads"], told["writes"]], [expected["reads"], expected["writes"]])
        self.assertEqual(sizes.get(4096, 0), expected["4096-byte requests"])
        self.assertEqual(round(100 * told["share_4k"], 4), expected["4096-byte %"])
        self.assertEqual(len(sizes), expected["distinct sizes"])
        self.assertEqual([min(sizes), max(sizes)], expected["min/max size bytes"])
        for size, count in next(value for key, value in expected.items() if key.startswith("top 10 sizes")):
            self.assertEqual(sizes[size], count)

    def analyze_agrees(self, section, expected, slack, arrival):
        """What `analyze` says itself. Percentiles within the bound of its histograms, 1/256 (analysis/latency_histogram.h)."""
        told = json.loads(blktape.ok("analyze", "--json", self.trace, accept=(0, 3)).stdout)
        n = next(value for key, value in expected.items() if key.endswith("= n"))
        with self.subTest(section, figure="analyze: sizes"):
            # Its rows of an operation have those of 0 bytes among them.
            self.same_sizes(expected, told | {op: sum(row[op] for row in told["size_histogram"])
                                              for op in ("reads", "writes")}, n)
            self.assertEqual(told["data_requests"], n)
            self.assertEqual([told["read_bytes"], told["write_bytes"]],
                             [expected["bytes read"], expected["bytes written"]])
            self.assertEqual(told["max_end_bytes"], expected["max end offset"])
        for key, name in (("any_device", "sequential A: start==end of previous data request in trace (same device)"),
                          ("same_device", "sequential B: previous request of the same device"),
                          ("same_device_and_op", "sequential C: previous request of the same device and same direction")):
            # The order of the analysis is that of issue; of a trace that has both, not always that of arrival.
            if arrival == "issue_ns":
                with self.subTest(section, figure="analyze: " + key):
                    self.assertLessEqual(abs(told["sequential"][key] - expected[name + ": count"]), slack)
        if "latency: samples" not in expected:
            return
        for whose, d2c in (("", told["d2c_ns"]), (" reads", told["by_op"].get("read", {}).get("d2c_ns")),
                           (" writes", told["by_op"].get("write", {}).get("d2c_ns"))):
            if "latency%s: samples" % whose not in expected or arrival != "issue_ns":
                continue
            with self.subTest(section, figure="analyze: latency" + whose):
                p50, p99, largest = expected["latency%s: p50 / p99 / max ns" % whose]
                self.assertEqual([d2c["count"], round(d2c["mean"], 3), d2c["min"], d2c["max"]],
                                 [expected["latency%s: samples" % whose], expected["latency%s: mean ns" % whose],
                                  expected["latency%s: min ns" % whose], largest])
                for found, value in ((d2c["p50"], p50), (d2c["p99"], p99)):
                    self.assertLessEqual(abs(found - value), 0 if d2c["exact"] else value / 256)
                if not whose:
                    self.assertEqual(told["queue_depth"]["max"],
                                     expected["max in flight (completions counted before arrivals at equal time)"])

    def test_blktrace_of_one_cpu_under_the_name_of_another(self):
        self.agrees("blktrace-takeoverjp/sample.blktrace.0", ["traces/blktrace-takeoverjp/sample.blktrace.0"])

    def test_blkreplay_mysql(self):
        _, said, rows = self.agrees("blkreplay-1and1/linux-mysql.load.gz", ["traces/blkreplay-1and1/linux-mysql.load.gz"])
        self.assertEqual(said["rows"]["dropped"], [])
        self.assertTrue(all(row[1] is None for row in rows))

    def test_blkreplay_windows(self):
        self.agrees("blkreplay-1and1/windows-shared-server.load.gz",
                    ["traces/blkreplay-1and1/windows-shared-server.load.gz"])

    def test_wpa_with_decimal_commas(self):
        expected, said, _ = self.agrees("windows-etw-bgeneto/Disk_Usage_Counts_by_IO_Type_Priority.csv.bz2",
                                        ["traces/windows-etw-bgeneto/Disk_Usage_Counts_by_IO_Type_Priority.csv.bz2"])
        self.assertEqual(said["rows"]["dropped"], [])
        processes = collections.Counter(row["process"] for row in blktape.dump(self.trace))
        for name, count in expected["[info] top processes (rows)"].items():
            self.assertEqual(processes[name], count)

    def test_octf_in_a_compressed_archive(self):
        _, said, _ = self.agrees("opencas-iotrace/sample_trace", ["traces/opencas-iotrace/sample_trace.tar.xz"],
                                 arrival="queue_ns")
        self.assertEqual(said["devices"], ["nvme0n1"])
        info = json.loads(blktape.ok("info", "--json", self.trace).stdout)
        self.assertEqual(int(info["header"]["devices"][0]["size_bytes"]), 732585168 * 512)

    def test_mqsim(self):
        self.agrees("mqsim/wsrch-small.trace", ["traces/mqsim/wsrch-small.trace"])

    def test_spc(self):
        self.agrees("mqsim/wsrch-small.derived.spc", ["traces/mqsim/wsrch-small.derived.spc"])

    def test_own_session(self):
        self.agrees("own/desktop-session/loop0.blktrace.0-1.zst",
                    ["traces/own/desktop-session/loop0.blktrace.%d.zst" % cpu for cpu in (0, 1)],
                    order=lambda row: (row[0], row[6]))
        # What software asked for, before the block layer merged and split it.
        stats, = cases.shared("traces/STATS.md")
        with open(stats, encoding="utf-8") as file:
            asked = sections(file.read())["own/desktop-session/loop0.blktrace.0-1.zst (arrival = Q, bios before merging)"]
        told = json.loads(blktape.ok("analyze", "--json", self.trace).stdout)
        n = asked["data requests (R+W, size>0) = n"]
        self.assertEqual(told["queued"]["data_bios"], n)
        self.same_sizes(asked, told["queued"], n)
        by_op = next(value for key, value in asked.items() if key.startswith("by op"))
        self.assertEqual(told["queued"]["flushes_asked"], by_op["F"])
        self.assertEqual(told["first_arrival_ns"], asked["first/last arrival ns (as recorded)"][0])

    def test_text_of_blkparse_gives_what_the_binary_gives(self):
        """Of the same recording, but that blkparse's times begin with the first event, and say no wall clock."""
        folder, = cases.shared("traces/own/loop-desktop")
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as work:
            text = os.path.join(work, "loop2.txt")
            with open(text, "wb") as out:
                subprocess.run(["blkparse", "-q", "-D", folder, "-i", "loop2"], stdout=out, check=True)
            binary = os.path.join(work, "binary.tape")
            from_text = os.path.join(work, "text.tape")
            blktape.ok("import", os.path.join(folder, "loop2"), "-o", binary)
            blktape.ok("import", text, "-o", from_text)
            expected, found = blktape.dump(binary), blktape.dump(from_text)
        shift = int(expected[0]["issue_ns"]) - int(found[0]["issue_ns"])
        for row in found:
            for column in ("queue_ns", "issue_ns", "complete_ns"):
                row[column] = row[column] and str(int(row[column]) + shift)
            row["device"] = "loop2"
        self.assertEqual(found, expected)


if __name__ == "__main__":
    cases.main()
