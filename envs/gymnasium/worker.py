"""Steps Gymnasium environments for another process: see the package comment of envs/gymnasium for the protocol. saving.py is run before, as a part of the same module.

It needs Python 3.8 and the package gymnasium, and uses numpy where gymnasium does.
"""
import difflib
import faulthandler
import json
import math
import mmap
import os
import select
import signal
import struct
import sys
import threading
import time
import traceback
from array import array

MEMORY, REQUESTS, REPLIES = 3, 4, 5
SOURCE = "<onnxrl worker>"

gymnasium = None
numpy = None


class Refused(Exception):
    """What is wrong, in words that need no traceback."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


def wrong(text):
    return Refused("answer", text)


def ambiguous(terminated, truncated):
    return wrong("terminated is %s and truncated %s, expected a truth value each" % (short(terminated), short(truncated)))


# ---- spaces ----

WIRES = {"f": {"f"}, "d": {"d"}, "B": {"B"}, "?": {"?", "b", "B"}, "q": {"q", "l" if struct.calcsize("l") == 8 else "q"}}


def flat(x):
    """The elements of nested lists and arrays, in order."""
    x = x.tolist() if hasattr(x, "tolist") else x
    if isinstance(x, (list, tuple)):
        return [v for row in x for v in flat(row)]
    return [x]


def shape_of(x):
    x = x.tolist() if hasattr(x, "tolist") else x
    return (len(x),) + (shape_of(x[0]) if x else ()) if isinstance(x, (list, tuple)) else ()


def number(x, name):
    """A number, also one that is an array of one element, as of arithmetic with observations."""
    values = flat(x)
    try:
        if len(values) == 1:
            return float(values[0])
    except (TypeError, ValueError):
        pass
    raise wrong("%s is %s, expected a number" % (name, short(x)))


def bounds(values):
    """Bounds as text, which unlike JSON has infinity; one where all are equal."""
    values = [repr(float(v)) for v in flat(values)]
    return values[:1] if len(set(values)) == 1 else values


def described(space, what):
    """A space as the other side reads it."""
    s = gymnasium.spaces
    if isinstance(space, s.Discrete):
        return {"type": "discrete", "n": [int(space.n)], "start": [int(getattr(space, "start", 0))], "shape": [], "wire": "q"}
    if isinstance(space, s.MultiDiscrete):
        n = [int(k) for k in flat(space.nvec)]
        start = [int(k) for k in flat(getattr(space, "start", [0] * len(n)))]
        return {"type": "multidiscrete", "n": n, "start": start, "shape": [int(k) for k in space.shape], "wire": "q"}
    if isinstance(space, s.MultiBinary):
        shape = [int(k) for k in space.shape]
        return {"type": "multibinary", "n": [2] * math.prod(shape), "shape": shape, "wire": "?"}
    if isinstance(space, s.Box):
        dtype = str(space.dtype)
        wire = {"float32": "f", "float64": "d", "uint8": "B", "bool": "B"}.get(dtype, "f")
        return {"type": "box", "dtype": dtype, "shape": [int(k) for k in space.shape], "low": bounds(space.low), "high": bounds(space.high), "wire": wire}
    raise Refused("space", "%s is a space %s; Discrete, MultiDiscrete, MultiBinary, Box and, for observations, Dict of these are supported" % (what, type(space).__name__))


def fields_of(space, path=()):
    """The parts of an observation: paths and descriptions."""
    if isinstance(space, gymnasium.spaces.Dict):
        return [f for key in space.spaces for f in fields_of(space.spaces[key], path + (key,))]
    d = described(space, "the observation" + ("" if not path else " " + "/".join(map(str, path))))
    d["path"] = [str(k) for k in path]
    return [(path, d)]


def titled(path):
    """How a part of an observation is called in errors."""
    return "observation" + ("" if not path else " " + "/".join(map(str, path)))


class Field:
    """Writes values of one form into rows of bytes."""

    def __init__(self, name, wire, shape):
        self.name, self.wire, self.shape, self.formats = name, wire, tuple(shape), WIRES[wire]
        self.flat = len(self.shape) == 1
        self.nbytes = math.prod(self.shape) * struct.calcsize(wire)

    def rows(self, whole, n):
        """The rows of an array for write: of numbers where a value has one dimension, else of bytes."""
        form = self.wire if self.flat else "B"
        return [whole[i * self.nbytes : (i + 1) * self.nbytes].cast(form) for i in range(n)]

    def write(self, x, row):
        if self.flat:
            try:
                # Takes only a buffer of as many numbers of the same format.
                row[:] = x
                return
            except (TypeError, ValueError, NotImplementedError):
                row = row.cast("B")
        try:
            m = memoryview(x)
            if m.shape == self.shape and m.format in self.formats and m.c_contiguous:
                row[:] = m.cast("B")
                return
        except (TypeError, ValueError, BufferError):
            pass  # It is no buffer, or none of native numbers.
        self.convert(x, row)

    def convert(self, x, row):
        if numpy is not None:
            a = numpy.asarray(x)
            shape, kind = a.shape, type(x).__name__ if a.dtype == object else a.dtype
        else:
            shape, kind = shape_of(x), type(x).__name__
        if shape == () and self.shape != ():
            raise wrong("%s is %s, expected an array of shape %s" % (self.name, short(x), self.shape))
        if shape != self.shape:
            raise wrong("%s has shape %s, expected %s" % (self.name, shape, self.shape))
        try:
            if numpy is not None:
                to = numpy.dtype(self.wire)
                b = a.astype(to)
                if not numpy.can_cast(a.dtype, to, "same_kind") and not (a == b).all():
                    raise ValueError("it has values that are none of %s" % to)
                row[:] = memoryview(numpy.ascontiguousarray(b).reshape(-1)).cast("B")
            elif self.wire == "?":
                row[:] = bytes(flat(x))
            else:
                row[:] = memoryview(array(self.wire, flat(x))).cast("B")
        except (TypeError, ValueError, OverflowError) as e:
            raise wrong("%s is a %s that cannot be read: %s" % (self.name, kind, e)) from None


def action_reader(d, space, view, n):
    """A function that returns the n actions that lie in view, each in the form that the space has. They share no memory with view."""
    kind, shape = d["type"], tuple(d["shape"])
    if kind == "discrete":
        ints = view.cast("q")
        return ints.tolist
    size = len(view) // n
    wire = d["wire"]
    if numpy is not None:
        rows = numpy.frombuffer(view, dtype="B" if kind == "multibinary" else wire).reshape((n,) + shape)
        if wire == "d":
            # A bound that was rounded to the nearest float32 may have gone beyond itself.
            return lambda: list(numpy.clip(rows, space.low, space.high).astype(space.dtype))
        return lambda: list(rows.astype(space.dtype))
    if wire == "d":
        low, high = flat(space.low), flat(space.high)
        return lambda: [array("d", map(max, map(min, view[i * size : (i + 1) * size].cast("d"), high), low)) for i in range(n)]
    form = "b" if kind == "multibinary" else wire
    return lambda: [array(form, bytes(view[i * size : (i + 1) * size])) for i in range(n)]


# ---- environments ----


def lacking(e, module):
    """What kind of error it is that an environment cannot be made: "id" where the module that an id names is not there, "lacks" where a package is not installed that the environment itself needs."""
    if isinstance(e, ImportError):
        missing = e.name or ""
        return "id" if missing and (module + ".").startswith(missing + ".") else "lacks"
    return "lacks" if type(e).__name__ == "DependencyNotInstalled" else "open"


def opened(args):
    """A new environment."""
    if "adapted" in globals():
        return adapted(args)
    try:
        return gymnasium.make(args["id"], **args["kwargs"])
    except gymnasium.error.UnregisteredEnv as e:
        known = sorted(getattr(gymnasium.envs.registration, "registry", {}))
        bare = args["id"].split(":")[-1]
        near = difflib.get_close_matches(bare, known, 5, 0.5) or [k for k in known if bare.lower().split("-")[0] in k.lower()][:5]
        hint = "; close ids are " + ", ".join(near) if near else "; %d ids are registered, none of them close; write PACKAGE:ID for one that a package registers when it is imported" % len(known)
        raise Refused("id", "%s%s" % (str(e).strip().rstrip("."), hint)) from None
    except (gymnasium.error.Error, ImportError) as e:
        raise Refused(lacking(e, args["id"].split(":")[0] if ":" in args["id"] else ""), "%s: %s" % (type(e).__name__, e)) from None


def chain(env):
    """The environment and those inside it, from the outside."""
    out = [env]
    if hasattr(env, "inside"):
        return out + env.inside()
    while isinstance(out[-1], gymnasium.Wrapper):
        out.append(out[-1].env)
    return out


def masks_of(env, args):
    """Where masks come from: a method, or a key of info."""
    if args["mask_info"]:
        key = args["mask_info"]

        def look(info):
            try:
                return info[key]
            except (KeyError, TypeError):
                raise wrong("info has no mask under %r; it is %s" % (key, short(info))) from None

        return look
    for e in chain(env):
        if callable(getattr(e, "action_masks", None)):
            return lambda info: e.action_masks()
    return None


def describe(env, args):
    spec = getattr(env, "spec", None)
    limit = getattr(spec, "max_episode_steps", None)
    return {
        "observation": [d for _, d in fields_of(env.observation_space)],
        "action": described(env.action_space, "the action"),
        "masked": masks_of(env, args) is not None,
        "info": args["info"],
        "max_steps": max(0, int(limit or 0)),
        "version": str(getattr(gymnasium, "__version__", "")),
    }


class Group:
    """The environments of this process and the memory they share with the other one."""

    def __init__(self, args, env, n, memory, at, autoreset, limit, mask_len):
        self.args, self.n, self.autoreset, self.limit = args, n, autoreset, limit
        self.envs = [env] + [opened(args) for _ in range(n - 1)]
        self.steps = [0] * n
        self.masks = [masks_of(e, args) for e in self.envs]
        self.info = args["info"]
        d = describe(env, args)
        fields = fields_of(env.observation_space)

        def part(name, size, form="B"):
            return memory[at[name] : at[name] + n * size].cast(form)

        self.fields = []
        for k, (path, f) in enumerate(fields):
            field = Field(titled(path), f["wire"], f["shape"])
            self.fields.append((path, field, field.rows(part("obs%d" % k, field.nbytes), n), field.rows(part("final%d" % k, field.nbytes), n)))
        if len(self.fields) == 1 and self.fields[0][0] == ():
            self.single = self.fields[0][1:]
        else:
            self.single = None
        action = Field("action", d["action"]["wire"], d["action"]["shape"])
        self.actions = action_reader(d["action"], env.action_space, part("actions", action.nbytes), n)
        self.rewards, self.seeds = part("rewards", 8, "d"), part("seeds", 8, "q")
        self.ends = part("ends", 1)
        self.mask_len = mask_len
        self.mask_rows = self.final_mask_rows = None
        if mask_len:
            self.mask_rows, self.final_mask_rows = ([part(name, mask_len)[i * mask_len : (i + 1) * mask_len] for i in range(n)] for name in ("mask", "final_mask"))
        self.info_rows = part("info", 8 * len(self.info), "d") if self.info else None

    def observe(self, i, obs, final):
        if self.single is not None:
            field, rows, finals = self.single
            field.write(obs, (finals if final else rows)[i])
            return
        for path, field, rows, finals in self.fields:
            x = obs
            try:
                for key in path:
                    x = x[key]
            except (KeyError, TypeError, IndexError):
                raise wrong("%s is missing" % field.name) from None
            field.write(x, (finals if final else rows)[i])

    def mask(self, i, info, rows):
        if rows is None:
            return
        values = flat(self.masks[i](info))
        if len(values) != self.mask_len:
            raise wrong("the action mask has %d elements, expected %d" % (len(values), self.mask_len))
        if not all(v == 0 or v == 1 for v in values):
            raise wrong("the action mask is %s, expected truth values" % short(values))
        rows[i][:] = bytes(map(int, values))

    def begin(self, i):
        answer = self.envs[i].reset(seed=self.seeds[i])
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise wrong("reset returns %s, expected a pair of observation and info" % short(answer))
        obs, info = answer
        self.steps[i] = 0
        self.observe(i, obs, False)
        self.mask(i, info, self.mask_rows)
        return info

    def note(self, i, info):
        at = i * len(self.info)
        for k, key in enumerate(self.info):
            value = info.get(key, 0.0)
            try:
                self.info_rows[at + k] = value
            except TypeError:
                self.info_rows[at + k] = number(value, "%r of info" % key)

    def reset(self):
        i = 0
        try:
            for i in range(self.n):
                info = self.begin(i)
                if self.info:
                    self.note(i, info)
        except BaseException as e:
            raise Failed(i) from e

    def step(self):
        rewards, ends, limit, noted, masked = self.rewards, self.ends, self.limit, self.info, self.mask_rows is not None
        write, rows = (self.single[0].write, self.single[1]) if self.single is not None else (None, None)
        i = 0
        try:
            for i, (env, action) in enumerate(zip(self.envs, self.actions())):
                answer = env.step(action)
                if isinstance(answer, tuple) and len(answer) == 6:
                    # As Safety-Gymnasium's own environments do.
                    obs, reward, cost, terminated, truncated, info = answer
                    answer = obs, reward, terminated, truncated, {**info, "cost": cost}
                if not isinstance(answer, tuple) or len(answer) != 5:
                    what = "%d values" % len(answer) if isinstance(answer, tuple) else short(answer)
                    raise wrong("step returns %s, expected observation, reward, terminated, truncated and info" % what)
                obs, reward, terminated, truncated, info = answer
                if terminated is None or truncated is None:
                    raise ambiguous(terminated, truncated)
                try:
                    rewards[i] = reward
                except TypeError:
                    rewards[i] = number(reward, "the reward")
                if noted:
                    self.note(i, info)
                if limit:
                    self.steps[i] += 1
                    truncated = truncated or self.steps[i] >= limit
                try:
                    going = not (terminated or truncated)
                except ValueError:
                    raise ambiguous(terminated, truncated) from None
                if not going:
                    self.end(i, obs, terminated, info)
                    continue
                ends[i] = 0
                if write is not None:
                    write(obs, rows[i])
                else:
                    self.observe(i, obs, False)
                if masked:
                    self.mask(i, info, self.mask_rows)
        except BaseException as e:
            raise Failed(i) from e

    def end(self, i, obs, terminated, info):
        self.ends[i] = 1 if terminated else 2
        self.observe(i, obs, True)
        if not terminated:
            # After a termination nothing follows, and environments need not have an answer.
            self.mask(i, info, self.final_mask_rows)
        if self.autoreset:
            self.begin(i)

    def time(self, steps, seed):
        """The seconds that a plain loop over the environments takes for a number of steps with random actions."""
        for i, env in enumerate(self.envs):
            env.action_space.seed(seed + i)
            env.reset(seed=seed + i)
        wheel = [[env.action_space.sample() for env in self.envs] for _ in range(64)]
        envs = self.envs
        start = time.perf_counter()
        for k in range(steps):
            for env, action in zip(envs, wheel[k & 63]):
                _, _, terminated, truncated, _ = env.step(action)
                if terminated or truncated:
                    env.reset()
        return time.perf_counter() - start

    def close(self):
        for env in self.envs:
            env.close()


class Failed(Exception):
    """Environment i has failed; the cause says how."""

    def __init__(self, i):
        super().__init__(i)
        self.env = i


def short(x, most=200):
    text = repr(x)
    return text if len(text) <= most else text[:most] + "…"


# ---- requests ----


def shortened(e, most=12):
    """A traceback without the frames of this file."""
    frames = [f for f in traceback.extract_tb(e.__traceback__) if f.filename != SOURCE]
    lines = traceback.format_list(frames)
    if len(lines) > most:
        lines = lines[:2] + ["  … %d frames …\n" % (len(lines) - most)] + lines[2 - most :]
    return "".join(lines) + "".join(traceback.format_exception_only(type(e), e)).strip()


def send(code, body):
    data = json.dumps(body).encode()
    data = memoryview(code + struct.pack("<I", len(data)) + data)
    while data:
        data = data[os.write(REPLIES, data) :]


def fail(e):
    body = {"env": -1}
    if isinstance(e, Failed):
        body["env"], e = e.env, e.__cause__
    body["kind"] = e.kind if isinstance(e, Refused) else "exception"
    body["text"] = str(e) if isinstance(e, Refused) else shortened(e)
    send(b"E", body)


def receive(n):
    data = bytearray()
    while len(data) < n:
        more = os.read(REQUESTS, n - len(data))
        if not more:
            os._exit(0)
        data += more
    return data


class Worker:
    def __init__(self):
        self.env = self.args = self.group = None
        # How long to look for requests; what a look saves, and at most; for how many requests to rest, at least and at most.
        self.watching, self.gain, self.most_saved, self.least_rest, self.most_rest = 0.0, 0.0, 0.0, 0, 0
        self.saved, self.resting, self.rest = 0.0, 0, 0
        poll = select.poll()
        poll.register(REQUESTS, select.POLLIN)
        self.asked = poll.poll
        self.closing = False

    def open(self, args):
        global gymnasium, numpy
        try:
            import gymnasium as package
        except ImportError as e:
            raise Refused("package", "%s has no usable package gymnasium (%s); install it with: %s -m pip install gymnasium" % (sys.executable, e, sys.executable)) from None
        gymnasium = package
        numpy = sys.modules.get("numpy")
        self.args, self.env = args, opened(args)
        return describe(self.env, args)

    def attach(self, size, watch, **layout):
        self.watching, self.gain, self.most_saved, self.least_rest, self.most_rest = watch
        self.saved, self.resting, self.rest = 0.0, 0, self.least_rest
        env, self.env = self.env or opened(self.args), None
        self.group = Group(self.args, env, memory=memoryview(mmap.mmap(MEMORY, size)), **layout)

    def detach(self):
        group, self.group, self.watching = self.group, None, 0.0
        group.close()

    def save(self):
        return [{"steps": self.group.steps[i], "held": pickled(env)} for i, env in enumerate(self.group.envs)]

    def load(self, states):
        for i, s in enumerate(states):
            try:
                unpickled(self.group.envs[i], s["held"])
            except Exception as e:
                raise Refused("load", "environment %d: %s: %s" % (i, type(e).__name__, e)) from None
            self.group.steps[i] = s["steps"]

    def prove(self):
        return prove(self.args)

    def time(self, steps, seed):
        return self.group.time(steps, seed)

    def close(self):
        self.closing = True
        if self.group is not None:
            self.group.close()
        elif self.env is not None:
            self.env.close()

    def watch(self):
        """Ends the process with the one that asked for it, also in the middle of a step."""
        poll = select.poll()
        poll.register(REQUESTS, select.POLLHUP)
        poll.poll()
        if not self.closing:
            os._exit(0)

    def look(self):
        """Waits some time for a request, giving way to whoever wants the processor, so that the thread need not be woken. watch.go says when it rests."""
        if self.resting > 0:
            self.resting -= 1
            return
        asked, clock, give_way = self.asked, time.perf_counter, getattr(os, "sched_yield", lambda: None)
        start = clock()
        while not asked(0):
            took = clock() - start
            if took >= self.watching:
                self.saved -= took
                if self.saved < 0:
                    self.saved, self.resting, self.rest = 0.0, self.rest, min(4 * self.rest, self.most_rest)
                return
            give_way()
        self.saved += self.gain
        if self.saved > self.most_saved:
            self.saved, self.rest = self.most_saved, self.least_rest

    def run(self):
        read, write, hot = os.read, os.write, {}
        while True:
            if self.watching:
                self.look()
            op = read(REQUESTS, 1)
            if not op:
                os._exit(0)
            try:
                if op == b"C":
                    call = json.loads(receive(struct.unpack("<I", receive(4))[0]))
                    result = getattr(self, call.pop("call"))(**call)
                    hot = {b"S": self.group.step, b"R": self.group.reset} if self.group is not None else {}
                    send(b"J", result)
                    if self.closing:
                        return
                else:
                    hot[op]()
                    write(REPLIES, b".")
            except BaseException as e:
                fail(e)


def main():
    for fd in (MEMORY, REQUESTS, REPLIES):
        os.set_inheritable(fd, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.register(signal.SIGUSR1, all_threads=False)
    w = Worker()
    threading.Thread(target=w.watch, daemon=True).start()
    w.run()


main()
