"""Copies a results folder and replaces names in its records with scripts.

usage: hostile.py RESULTS_DIR OUT_DIR
"""

import json
import pathlib
import sys

# Each one closes a context in which a page may insert it unescaped: text, attribute, script, style, template.
SCRIPTS = [
    "<img src=x onerror=\"window.hostile=1\">",
    "</script><script>window.hostile=2</script>",
    "\"><svg onload=\"window.hostile=3\">",
    "';window.hostile=4;//",
    "</style><script>window.hostile=5</script>",
    "<a href=\"javascript:window.hostile=6\">x</a>${window.hostile=7}",
]


def main():
    source, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    cells = out / "cells"
    cells.mkdir(parents=True, exist_ok=True)
    for index, path in enumerate(sorted((source / "cells").glob("*.json"))):
        record = json.loads(path.read_text(encoding="utf-8"))
        # An attacker can also change the checksum; a record without one is accepted.
        record.pop("sha256", None)
        names = sorted({record["workload"], record["encoding"]["name"]})
        evil = {name: f"{name} {SCRIPTS[sum(map(ord, name)) % len(SCRIPTS)]}" for name in names}
        record["workload"] = evil[record["workload"]]
        record["encoding"]["name"] = evil[record["encoding"]["name"]]
        record["encoding"]["label"] += SCRIPTS[index % len(SCRIPTS)]
        record["task"]["label"] += SCRIPTS[(index + 1) % len(SCRIPTS)]
        record["suite"] = f"suite {SCRIPTS[1]}"
        record["host"]["cpu"] += SCRIPTS[0]
        record["commit"] = SCRIPTS[2]
        if index % 9 == 0:
            record["status"] = {"state": "failed", "reason": f"broken {SCRIPTS[index // 9% len(SCRIPTS)]}"}
        for point in record["evals"]:
            point["split"] += SCRIPTS[3]
        (cells / path.name).write_text(json.dumps(record), encoding="utf-8")


if __name__ == "__main__":
    main()
