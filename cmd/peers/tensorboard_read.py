"""Prints as JSON what TensorBoard itself reads from a directory of event files.

    python cmd/peers/tensorboard_read.py DIR

Needs the tensorboard package. It shows that the event files of runtime/metrics are understood by the program they are meant for.
"""
import json
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def main(directory):
    events = EventAccumulator(directory, size_guidance={"scalars": 0, "histograms": 0, "tensors": 0})
    events.Reload()
    tags = events.Tags()
    out = {"scalars": {}, "histograms": {}, "texts": {}}
    for tag in tags["scalars"]:
        out["scalars"][tag] = [[e.step, e.wall_time, str(e.value)] for e in events.Scalars(tag)]
    for tag in tags["histograms"]:
        for e in events.Histograms(tag):
            h = e.histogram_value
            out["histograms"].setdefault(tag, []).append(
                {"step": e.step, "min": h.min, "max": h.max, "num": h.num, "sum": h.sum, "buckets": len(h.bucket), "in_buckets": sum(h.bucket)}
            )
    for tag in tags["tensors"]:
        for e in events.Tensors(tag):
            out["texts"].setdefault(tag, []).append([e.step, [s.decode() for s in e.tensor_proto.string_val]])
    json.dump(out, sys.stdout, indent=1, sort_keys=True)
    print()


if __name__ == "__main__":
    main(sys.argv[1])
