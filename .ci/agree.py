"""Holds what the reference's reader says of a store against what rolltap says of it.

    agree.py GYM.json STATS.json      of gymread.py --tokens and of rolltap stats --json

They have to agree on the sums of each rollout, on how many lines are damaged, and on whether a record is missing. What the reference
rejects is a disagreement, unless it is the damage that rolltap names as well: its strict reader stops at a damaged line.
"""

import json
import sys


def main(gym_file: str, stats_file: str) -> int:
    with open(gym_file) as f:
        gym = json.load(f)
    with open(stats_file) as f:
        ours = {r["rollout_id"]: r for r in json.load(f)["rollouts"]}
    wrong = []
    for theirs in gym["rollouts"]:
        rollout = theirs["rollout_id"]
        r = ours.pop(rollout, None)
        if r is None:
            wrong.append(f"{rollout}: rolltap does not know it")
            continue
        damaged = theirs.get("damaged_lines", 0) + theirs.get("unusable_records", 0)
        for what, a, b in (
            ("metrics", theirs.get("metrics"), r["metrics"]),
            ("damaged lines", damaged, r["damaged_lines"]),
            ("incomplete", theirs.get("incomplete", False), r["incomplete"]),
        ):
            if a != b:
                wrong.append(f"{rollout}: {what}: the reference has {a}, rolltap {b}")
        for error in theirs.get("errors", []):
            if not (damaged and ("strict reader" in error or "damaged line" in error)):
                wrong.append(f"{rollout}: the reference says {error}")
    wrong += [f"{rollout}: the reference does not know it" for rollout in ours]
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
