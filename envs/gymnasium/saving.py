"""Saves environments in the middle of an episode. It is a part of the module whose other part is worker.py, which runs after it."""
import base64
import io
import pickle
import random
import zlib


class Writer(pickle.Pickler):
    """Writes what the environments of a chain hold, which may refer to them."""

    def __init__(self, file, known):
        super().__init__(file, 4)
        self.known = {id(e): k for k, e in enumerate(known)}
        self.classes = set()

    def persistent_id(self, x):
        if isinstance(x, type):
            self.classes.add((x.__module__, x.__qualname__))
        return self.known.get(id(x))


HARMLESS = {
    "builtins": {"set", "frozenset", "bytearray", "complex", "range", "slice", "object"},
    "collections": {"deque", "OrderedDict", "defaultdict", "Counter"},
    "copyreg": {"_reconstructor"},
    "_codecs": {"encode"},
    "array": {"array", "_array_reconstructor"},
    "random": {"Random"},
    "numpy": {"ndarray", "dtype", "bool_", "bool"},
    "numpy.core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy.random._pickle": {"__generator_ctor", "__bit_generator_ctor", "__randomstate_ctor"},
    "numpy.random._pcg64": {"PCG64", "PCG64DXSM"},
    "numpy.random._mt19937": {"MT19937"},
    "numpy.random._philox": {"Philox"},
    "numpy.random._sfc64": {"SFC64"},
    "numpy.random.bit_generator": {"SeedSequence", "__pyx_unpickle_SeedSequence"},
}


class Reader(pickle.Unpickler):
    """Reads what a Writer wrote, and makes nothing but numbers, containers, arrays, objects of the environments' own packages and of the classes of what a new environment itself holds: a saved run is not to be a program."""

    def __init__(self, file, env):
        super().__init__(file)
        self.env, self.known, self.own = env, chain(env), None
        known = self.known
        self.packages = {type(e).__module__.split(".")[0] for e in known} | {"gymnasium", "mujoco"}

    def persistent_load(self, pid):
        return self.known[pid]

    def find_class(self, module, name):
        if name in HARMLESS.get(module, ()):
            return super().find_class(module, name)
        if module.split(".")[0] in self.packages:
            found = super().find_class(module, name)
            if isinstance(found, type):
                return found
        if self.own is None:
            # Some is only there once an episode has begun.
            self.env.reset(seed=0)
            self.own = written(self.env)[1]
        if (module, name) in self.own:
            return super().find_class(module, name)
        raise pickle.UnpicklingError("%s.%s has no place in a saved environment" % (module, name))


def packed(known, part):
    """A part as bytes, and the classes of what is in it."""
    file = io.BytesIO()
    w = Writer(file, known)
    w.dump(part)
    return file.getvalue(), w.classes


def written(env):
    """What an environment and those inside it hold, as packed has it. Attributes that cannot be written are left as they are in a new environment, and named; whether that does is for prove to find out."""
    known = chain(env)
    held = [dict(vars(e)) for e in known]
    kept = [[] for _ in known]
    try:
        return packed(known, (held, kept))
    except Exception:
        for own, names in zip(held, kept):
            for name in list(own):
                try:
                    packed(known, own[name])
                except Exception:
                    del own[name]
                    names.append(name)
        return packed(known, (held, kept))


def pickled(env):
    return base64.b64encode(zlib.compress(written(env)[0], 1)).decode()


def unpickled(env, text):
    known = chain(env)
    held, kept = Reader(io.BytesIO(zlib.decompress(base64.b64decode(text, validate=True))), env).load()
    if len(held) != len(known):
        raise ValueError("the state is of %d environments inside each other, expected %d" % (len(held), len(known)))
    for e, own, names in zip(known, held, kept):
        now = vars(e)
        for name in [n for n in now if n not in own and n not in names]:
            del now[name]
        now.update(own)


def prove(args):
    """Nothing, when an environment that was saved and continued in another one is the same as one that was not; else what differs."""
    choices = random.Random(1)
    a, b = opened(args), None
    try:
        b = opened(args)
        fields = [(path, Field(titled(path), f["wire"], f["shape"])) for path, f in fields_of(a.observation_space)]
        masks = [masks_of(e, args) for e in (a, b)]
        a.action_space.seed(1)

        def seen(env, mask, obs, info, *rest):
            out = [repr(x) for x in rest[:1]] + [bool(x) for x in rest[1:]]
            for path, field in fields:
                row, x = field.rows(memoryview(bytearray(field.nbytes)), 1)[0], obs
                for key in path:
                    x = x[key]
                field.write(x, row)
                out.append(bytes(row))
            out.append([bool(v) for v in flat(mask(info))] if mask else [])
            return out

        heads = described(a.action_space, "the action")

        def allowed(action, valid):
            at = 0
            for k, n, start in zip(flat(action), heads["n"], heads.get("start", [0] * len(heads["n"]))):
                if not valid[at + int(k) - start]:
                    return False
                at += n
            return True

        def act(valid):
            for _ in range(1000):
                action = a.action_space.sample()
                if not valid or allowed(action, valid):
                    return action
            raise ValueError("no valid action was found")

        def both(envs, action=None, seed=None):
            out = []
            for env, mask in zip(envs, masks):
                if action is None:
                    obs, info = env.reset(seed=seed)
                    out.append(seen(env, mask, obs, info, 0.0, False, False))
                else:
                    obs, reward, terminated, truncated, info = env.step(action)
                    out.append(seen(env, mask, obs, info, reward, terminated, truncated))
            return out

        both([a, b], seed=3)
        both([b], seed=4)
        last = both([a], seed=5)[0]
        for k in range(40):
            if k in (1, 7, 23):
                unpickled(b, pickled(a))
            action = act(last[-1])
            answers = both([a] if k == 0 else [a, b], action)
            if k > 0 and answers[0] != answers[1]:
                return "an environment that was continued from a saved one soon answers differently"
            last = answers[0]
            if last[1] or last[2]:
                last = both([a, b], seed=choices.randrange(1 << 31))[0]
    except Refused as e:
        return str(e)
    except Exception as e:
        return "%s: %s" % (type(e).__name__, e)
    finally:
        for env in (a, b):
            if env is not None:
                env.close()
    return None
