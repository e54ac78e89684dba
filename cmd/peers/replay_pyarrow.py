#!/usr/bin/env python3
"""Writes, samples and takes with pyarrow.flight what `onnxrl replay serve` keeps, and checks every number.

The program is built first; pyarrow is that of PyPI (26.0.1 was tried):

    go build ./cmd/onnxrl
    pip install pyarrow numpy
    python3 cmd/peers/replay_pyarrow.py --onnxrl ./onnxrl

It starts a server with a folder, kills it by SIGKILL in the middle, and ends with a line of JSON.
"""
import argparse
import json
import os
import signal
import subprocess
import tempfile

import numpy as np
import pyarrow as pa
from pyarrow import flight

FEATURES = 3
SCHEMA = pa.schema([
    ("obs.x", pa.list_(pa.field("item", pa.float32(), nullable=False), FEATURES)), ("action", pa.int64()),
    ("reward", pa.float32()), ("discount", pa.float32()), ("env", pa.int32()), ("kind", pa.uint8()),
])
TRANSITION, FINAL, NEXT = 0, 1, 2


def command(**fields):
    return flight.FlightDescriptor.for_command(json.dumps(fields).encode())


def metadata(**fields):
    return pa.py_buffer(json.dumps(fields).encode())


def fields(buffer):
    return json.loads(buffer.to_pybytes())


def observation(n):
    return np.full(FEATURES, n, np.float32)


def rows(first, n, envs, last):
    """n transitions of each environment, whose reward is their number; the episodes end behind them, or go on."""
    col = {f.name: [] for f in SCHEMA}
    for e in range(envs):
        for i in range(n + 1):
            at = 1000 * e + first + i
            col["obs.x"].append(observation(at))
            col["action"].append(at % 4)
            col["reward"].append(at)
            col["discount"].append(0.0 if last and i == n - 1 else 1.0)
            col["env"].append(e)
            col["kind"].append(TRANSITION if i < n else FINAL if last else NEXT)
    x = pa.FixedSizeListArray.from_arrays(pa.array(np.concatenate(col.pop("obs.x"))), type=SCHEMA.field(0).type)
    return pa.record_batch([x] + [pa.array(col[f.name], f.type) for f in list(SCHEMA)[1:]], schema=SCHEMA)


class Server:
    def __init__(self, program, config):
        self.args, self.address = [program, "replay", "serve", "--json", config], None

    def start(self):
        listen = self.address or "127.0.0.1:0"
        self.process = subprocess.Popen(self.args + ["--listen", listen], stdout=subprocess.PIPE)
        self.address = json.loads(self.process.stdout.readline())["listen"]
        return flight.connect("grpc://" + self.address)

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


def put(client, table, writer, batches, envs=1, schema=SCHEMA):
    """Writes batches with their numbers, those from 1 on, and returns the server's last acknowledgement."""
    w, answers = client.do_put(command(table=table, writer=writer, envs=envs), schema)
    hello = answers.read()
    if hello is None:
        w.close()  # This raises what the server says.
    has = fields(hello)["seq"]
    sent = 0
    for seq, batch in enumerate(batches, 1):
        if seq > has:
            w.write_with_metadata(batch, metadata(seq=seq))
            sent += 1
    ack = {"seq": has}
    for _ in range(sent):
        ack = fields(answers.read())
    w.done_writing()
    w.close()
    return ack


def stats(client, table):
    (answer,) = client.do_action(flight.Action("tables", json.dumps({"table": table}).encode()))
    return fields(answer.body)


def sample(client, n, requests, **what):
    """Yields the samples of n requests that are all under way at once."""
    w, r = client.do_exchange(command(**what))
    with w:
        for i in range(n):
            w.write_metadata(metadata(**requests(i)))
        w.done_writing()
        for _ in range(n):
            chunk = r.read_chunk()
            yield chunk.data, fields(chunk.app_metadata)


def transitions(server, client):
    batches = [rows(0, 10, 2, False), rows(10, 10, 2, False), rows(20, 10, 2, True)]
    ack = put(client, "transitions", "python", batches[:2], envs=2)
    assert ack["seq"] == 2 and ack["clock"] == 40, ack
    server.kill()
    client = server.start()
    # All are sent again, of which the server has two.
    ack = put(client, "transitions", "python", batches, envs=2)
    assert ack["seq"] == 3 and ack["clock"] == 60, ack
    assert stats(client, "transitions")["restored_records"] > 0
    drawn, seen = 0, set()
    for batch, about in sample(client, 20, lambda i: {"seed": i}, table="transitions", batch=64, n_steps=3, gamma=0.5):
        assert about["size"] == 60 and batch.num_rows == 64
        x, after = (np.stack(batch.column(c).to_numpy(zero_copy_only=False)) for c in ("obs.x", "next.x"))
        reward, discount, ended = (batch.column(c).to_numpy() for c in ("reward", "discount", "ended"))
        for i in range(batch.num_rows):
            at = int(x[i, 0])
            steps = min(3, 30 - at % 1000)
            assert (x[i] == observation(at)).all() and batch.column("action")[i].as_py() == at % 4
            # A sample may end with its chunk: then it has fewer steps.
            steps = next(s for s in range(1, steps + 1) if after[i, 0] == at + s)
            assert reward[i] == sum((at + s) * 0.5**s for s in range(steps)), (at, reward[i])
            over = at % 1000 + steps == 30
            assert discount[i] == (0 if over else 0.5**steps), (at, discount[i])
            drawn, seen = drawn + 1, seen | {at}
    assert len(seen) == 60
    (one,) = client.do_get(flight.Ticket(json.dumps({"table": "transitions", "batch": 8, "columns": ["reward", "time"]}).encode())).read_all().to_batches()
    assert one.schema.names == ["reward", "time"] and one.num_rows == 8
    info = client.get_flight_info(flight.FlightDescriptor.for_path("transitions"))
    assert info.schema.equals(SCHEMA) and info.total_records == 60, info.schema
    return client, drawn


def priorities(client):
    put(client, "ranked", "python", [rows(0, 50, 1, True)])
    ((batch, _),) = sample(client, 1, lambda i: {"beta": 1.0}, table="ranked", batch=32)
    key = batch.column("key")[0].as_py()
    (answer,) = client.do_action(flight.Action("priorities", json.dumps({"table": "ranked", "keys": [key], "errors": [1e6]}).encode()))
    assert fields(answer.body) == {"known": 1}
    ((batch, _),) = sample(client, 1, lambda i: {"beta": 1.0}, table="ranked", batch=32)
    share = (batch.column("key").to_numpy() == key).mean()
    assert share > 0.7, share
    return float(share)


def queue(client, items):
    w, answers = client.do_put(command(table="queue", writer="python"), pa.schema([("n", pa.int64())]))
    answers.read()
    for n in range(items):
        w.write_with_metadata(pa.record_batch([pa.array([n, n * n])], ["n"]), metadata(seq=n + 1, meta={"policy": n}))
    for _ in range(items):
        answers.read()
    w.done_writing()
    w.close()
    w, r = client.do_exchange(command(table="queue"))
    w.write_metadata(metadata(take=3))
    got = [r.read_chunk() for _ in range(3)]
    assert [fields(c.app_metadata)["meta"]["policy"] for c in got] == [0, 1, 2]
    assert [c.data.column(0).to_pylist() for c in got] == [[0, 0], [1, 1], [2, 4]]
    first, second, third = (fields(c.app_metadata)["item"] for c in got)
    # The stream ends without a word: the items would come again, but for what the next one says.
    r.cancel()
    w, r = client.do_exchange(command(table="queue"))
    w.write_metadata(metadata(finished=[first], held=[second], take=2))
    assert [fields(r.read_chunk().app_metadata)["meta"]["policy"] for _ in range(2)] == [2, 3]
    w.write_metadata(metadata(done=True))
    w.done_writing()
    w.close()
    left = stats(client, "queue")
    assert left["size"] == items - 4 and left["samples"] == 4, left
    return items


def refusals(client):
    for f, says in (
        (lambda: put(client, "nothing", "python", [rows(0, 1, 1, True)]), 'no table "nothing"'),
        (lambda: list(sample(client, 1, lambda i: {}, table="transitions", batch=4, columns=["nothing"])), 'no columns ["nothing"]'),
        (lambda: put(client, "transitions", "other", [], schema=SCHEMA.remove(1)), '"action"'),
        (lambda: list(client.do_action("nothing")), "no action"),
    ):
        try:
            f()
        except (pa.ArrowException, KeyError, NotImplementedError) as e:
            assert says in str(e), e
        else:
            raise AssertionError(says)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--onnxrl", default="onnxrl", help="the program")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as dir:
        config = os.path.join(dir, "replay.yaml")
        with open(config, "w") as f:
            f.write(f"dir: {dir}/replay\ntables:\n  transitions: {{capacity: 4096}}\n  ranked: {{selector: prioritised, capacity: 4096}}\n  queue: {{selector: fifo, capacity: 32}}\n")
        server = Server(a.onnxrl, config)
        client = server.start()
        try:
            assert {x.type for x in client.list_actions()} == {"tables", "priorities", "checkpoint"}
            client, drawn = transitions(server, client)
            share = priorities(client)
            items = queue(client, 16)
            refusals(client)
            tables = sorted(i.descriptor.path[0].decode() for i in client.list_flights())
            assert tables == ["queue", "ranked", "transitions"], tables
        finally:
            server.kill()
    print(json.dumps({"pyarrow": pa.__version__, "samples_checked": drawn, "share_of_large_priority": share, "items": items}))


if __name__ == "__main__":
    main()
