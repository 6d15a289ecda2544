"""On a plain kernel, a disk driven as hard as it goes for half a minute: each source tells every I/O to its end."""

import json
import unittest

from tests.guest import guest
from tests.harness import cases


class FloodTest(unittest.TestCase):
    def setUp(self):
        cases.need(not guest.missing(), guest.missing())

    def test_no_event_is_lost(self):
        result = guest.Guest(programs=["fio", "losetup"], modules=["loop"]).run(r"""
            head -c 67108864 /dev/urandom > /tmp/image
            losetup /dev/loop0 /tmp/image
            for source in bpf tracefs; do
              attempt $source blktape record --device loop0 --settle 0s --source $source -o /tmp/$source.tape -- \
                fio --name=flood --filename=/dev/loop0 --bs=4k --rw=randread --ioengine=libaio --iodepth=32 --direct=1 \
                  --norandommap --time_based --runtime=30 --output-format=json --output=/out/$source.fio
              blktape analyze --json /tmp/$source.tape > /out/$source.json
            done
            losetup -d /dev/loop0
        """).check()
        for source in ("bpf", "tracefs"):
            with self.subTest(source=source):
                # 3 would say that something is missing.
                self.assertEqual(result.rc(source), 0, result.text(source + ".err"))
                text = result.text(source + ".fio")
                job = json.loads(text[text.index("{"):])["jobs"][0]
                self.assertGreaterEqual(job["read"]["runtime"], 29_900)  # fio's own clock may end a little early
                figures = json.loads(result.text(source + ".json"))
                self.assertEqual(figures["lost_events"], 0)
                flood = next(row["reads"] for row in figures["processes"] if row["name"] == "fio")
                self.assertEqual(flood, job["read"]["total_ios"])
                self.assertEqual(figures["d2c_ns"]["count"], figures["ios"])
                self.assertGreater(figures["queue_depth"]["max"], 16)


if __name__ == "__main__":
    cases.main()
