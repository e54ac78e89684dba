"""Makes a world of PettingZoo look like one environment of Gymnasium: a part of the module of worker.py of envs/gymnasium, which runs after it and calls adapted.

An action has those of all agents one after the other; an observation is a dictionary of those of all agents, who has one (":present") and, where asked for, the state of the world (":state"). Rewards and what has become of each agent are in info.
"""
import importlib
from collections import OrderedDict

ABSENT, BEGINS, GOES_ON, TERMINATED, TRUNCATED = range(5)
MASK = "action_mask"


def adapted(args):
    try:
        module = importlib.import_module(args["id"])
    except ImportError as e:
        raise Refused(lacking(e, args["id"]), "%s cannot be imported (%s): the id of a world is the module that makes it, such as mpe2.simple_spread_v3" % (args["id"], e)) from None
    name = {"parallel": "parallel_env", "aec": "env"}[args["api"]]
    if not callable(getattr(module, name, None)):
        other = {"parallel": ("aec", "env"), "aec": ("parallel", "parallel_env")}[args["api"]]
        hint = "; it has %s, which api: %s takes" % (other[1], other[0]) if callable(getattr(module, other[1], None)) else ""
        raise Refused("id", "the module %s has no function %s%s" % (args["id"], name, hint))
    try:
        world = getattr(module, name)(**args["kwargs"])
    except (TypeError, AssertionError, ValueError) as e:
        raise Refused("open", "%s.%s: %s: %s" % (args["id"], name, type(e).__name__, e)) from None
    return (Turns if args["api"] == "aec" else Worlds)(world, args)


def nothing(space):
    """An element of a space for an agent that observes nothing."""
    if isinstance(space, gymnasium.spaces.Dict):
        return {key: nothing(space.spaces[key]) for key in space.spaces}
    shape = getattr(space, "shape", None) or ()
    start = flat(getattr(space, "start", 0))
    if shape == ():
        return int(start[0])
    if hasattr(space, "nvec") and any(start):
        return space.start

    def zeros(shape):
        return [zeros(shape[1:]) for _ in range(shape[0])] if shape else 0

    return zeros(tuple(shape))


def same(a, b):
    return fields_of(a) == fields_of(b)


def said(space):
    """A space in few words."""
    parts = ["%s%s%s" % ("/".join(d["path"]) + " " if d["path"] else "", d["type"], d.get("n") or d["shape"]) for _, d in fields_of(space)]
    return ", ".join(parts)


class Worlds:
    """A world of the parallel API."""

    metadata = {}
    spec = None

    def __init__(self, world, args):
        self.world, self.keys, self.mask_info, self.padding = world, args["agent_info"], args["agent_mask"], args["pad"]
        self.names = list(getattr(world, "possible_agents", None) or [])
        if not self.names:
            raise Refused("open", "the world has no possible_agents: a team of size zero, or one whose agents are not known before an episode, which cannot be had")
        if len(set(self.names)) != len(self.names) or any(not isinstance(a, str) or not a or "/" in a or a.startswith(":") for a in self.names):
            raise Refused("open", "possible_agents are %s, expected different names without slashes" % short(self.names))
        args["info"] = [key + "/" + a for a in self.names for key in ["end", "reward"] + self.keys]
        self.observes, self.acts = [self.viewed(world.observation_space(a)) for a in self.names], [world.action_space(a) for a in self.names]
        self.masked_obs = any(isinstance(world.observation_space(a), gymnasium.spaces.Dict) and MASK in world.observation_space(a).spaces for a in self.names)
        # Those of each agent where they are filled up.
        self.own_choices = None
        if self.padding:
            self.pad()
        for what, spaces in (("observes", self.observes), ("acts in", self.acts)):
            for a, s in zip(self.names, spaces):
                if not same(s, spaces[0]):
                    raise Refused("space", "agent %s %s %s, and %s %s %s: all agents are to have the same spaces; pad: true fills up vectors and discrete actions" % (a, what, said(s), self.names[0], what, said(spaces[0])))
        s = gymnasium.spaces
        fields = OrderedDict(zip(self.names, self.observes))
        fields[":present"] = s.MultiBinary((len(self.names),))
        self.with_state = args["state"]
        if self.with_state:
            state = getattr(world, "state_space", None)
            if state is None:
                raise Refused("open", "the world has no state_space; central: observations gives critics what all agents observe")
            fields[":state"] = state
        self.observation_space, self.action_space = s.Dict(fields), self.joined(self.acts[0])
        self.nothing = {a: nothing(o) for a, o in zip(self.names, self.observes)}
        # Who acts next, who has an observation and may have a mask, and the masks. Lists, because sets have no order, and equal worlds are to be saved alike.
        self.present, self.watched, self.valid = [], [], {}

    def inside(self):
        """The objects inside of each other that make up the world."""
        out, e = [], self.world
        while e is not None and e not in out:
            out.append(e)
            e = vars(e).get("aec_env", vars(e).get("env"))
        return out

    @staticmethod
    def viewed(space):
        """What an agent observes, without the mask."""
        s = gymnasium.spaces
        if not isinstance(space, s.Dict) or MASK not in space.spaces:
            return space
        rest = OrderedDict((k, v) for k, v in space.spaces.items() if k != MASK)
        return rest["observation"] if list(rest) == ["observation"] else s.Dict(rest)

    def pad(self):
        """Fills up vectors with zeros, and discrete actions with such as are never valid."""
        s = gymnasium.spaces
        if all(isinstance(o, s.Box) and len(o.shape) == 1 for o in self.observes):
            n = max(o.shape[0] for o in self.observes)
            self.observes = [s.Box(-math.inf, math.inf, (n,)) for _ in self.observes]
        elif not all(same(o, self.observes[0]) for o in self.observes):
            raise Refused("space", "pad: observations of %s are filled up where all are vectors" % ", ".join(said(o) for o in self.observes))
        if not all(same(a, self.acts[0]) for a in self.acts):
            if not all(isinstance(a, s.Discrete) and int(getattr(a, "start", 0)) == 0 for a in self.acts):
                raise Refused("space", "pad: actions of %s are filled up where all are discrete and begin at 0" % ", ".join(said(a) for a in self.acts))
            self.own_choices = [int(a.n) for a in self.acts]
            self.acts = [s.Discrete(max(self.own_choices)) for _ in self.acts]

    def joined(self, space):
        """The space of the actions of all agents."""
        s, k = gymnasium.spaces, len(self.names)
        if isinstance(space, s.Discrete):
            self.split = lambda a: [int(x) for x in a]
            return s.MultiDiscrete([int(space.n)] * k, start=[int(getattr(space, "start", 0))] * k)
        d = described(space, "the action of an agent")

        def split(a):
            n = len(a) // k
            return [a[i * n : (i + 1) * n].reshape(space.shape) if hasattr(a, "reshape") else a[i * n : (i + 1) * n] for i in range(k)]

        self.split = split
        if d["type"] == "multidiscrete":
            return s.MultiDiscrete(d["n"] * k, start=d["start"] * k)
        if d["type"] == "multibinary":
            return s.MultiBinary((len(d["n"]) * k,))
        if numpy is not None:
            return s.Box(numpy.tile(space.low.reshape(-1), k), numpy.tile(space.high.reshape(-1), k), dtype=space.dtype)
        return s.Box(flat(space.low) * k, flat(space.high) * k, (math.prod(space.shape) * k,), d["dtype"])

    # ---- episodes ----

    def reset(self, seed=None, options=None):
        answer = self.world.reset(seed=seed)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise wrong("reset returns %s, expected a pair of observations and infos" % short(answer))
        obs, infos = answer
        self.present = self.agents()
        if not self.present:
            raise wrong("no agent is there after reset: a team of size zero")
        return self.seen(obs, infos, self.present), {}

    def agents(self):
        there = list(self.world.agents)
        for a in there:
            if a not in self.nothing:
                raise wrong("agent %s is none of possible_agents, %s" % (short(a), short(self.names)))
        return there

    def seen(self, obs, infos, agents):
        """The observation of all agents, of whom some have one."""
        out, self.watched = {}, [a for a in self.names if a in agents]
        for a, zero in self.nothing.items():
            out[a] = zero
            if a in agents:
                try:
                    x = obs[a]
                except (KeyError, TypeError):
                    raise wrong("agent %s is there and has no observation; there are those of %s" % (a, short(sorted(obs) if isinstance(obs, dict) else obs))) from None
                out[a] = self.view(a, x, infos)
        out[":present"] = bytes(a in agents for a in self.names)
        if numpy is not None:
            out[":present"] = numpy.frombuffer(out[":present"], "b")
        if self.with_state:
            out[":state"] = self.world.state()
        return out

    def view(self, a, x, infos):
        mask = None
        if self.masked_obs:
            try:
                mask = x[MASK]
            except (KeyError, TypeError):
                raise wrong("the observation of agent %s has no %s; it is %s" % (a, MASK, short(x))) from None
            x = {k: v for k, v in x.items() if k != MASK}
            x = x["observation"] if list(x) == ["observation"] else x
        elif self.mask_info:
            try:
                mask = infos[a][self.mask_info]
            except (KeyError, TypeError):
                raise wrong("the info of agent %s has no mask under %r; it is %s" % (a, self.mask_info, short(infos.get(a) if isinstance(infos, dict) else infos))) from None
        self.valid[a] = mask
        return self.filled(x) if self.padding and isinstance(self.observes[0], gymnasium.spaces.Box) else x

    def filled(self, x):
        n, shape = self.observes[0].shape[0], shape_of(x)
        if len(shape) != 1 or shape[0] >= n:
            return x
        values = flat(x) + [0.0] * (n - shape[0])
        return numpy.asarray(values, "float32") if numpy is not None else array("f", values)

    def has_masks(self):
        return self.masked_obs or bool(self.mask_info) or self.own_choices is not None

    def choices(self, a):
        """The number of elements of the mask of an agent, and of one that is filled up."""
        space = self.acts[0]
        d = described(space, "the action of an agent")
        n = sum(d["n"])
        return (n if self.own_choices is None else self.own_choices[self.names.index(a)]), n

    @property
    def action_masks(self):
        """What the worker asks for masks; None where there are none."""
        return self.masks if self.has_masks() else None

    def masks(self):
        out = []
        for a in self.names:
            own, size = self.choices(a)
            mask = self.valid.get(a) if a in self.watched else None
            values = [1] * own if mask is None else flat(mask)
            if len(values) != own:
                raise wrong("the action mask of agent %s has %d elements, expected %d" % (a, len(values), own))
            if not any(values):
                raise wrong("the action mask of agent %s leaves no valid action" % a)
            out += values + [0] * (size - own)
        return out

    def note(self, a, end, reward, infos, info):
        info["reward/" + a] = number(reward, "the reward of agent %s" % a)
        info["end/" + a] = float(end)
        own = infos.get(a) if isinstance(infos, dict) else None
        for key in self.keys:
            info[key + "/" + a] = (own or {}).get(key, 0.0)

    def step(self, actions):
        actions = self.split(actions)
        own = {a: x for a, x in zip(self.names, actions) if a in self.present}
        answer = self.world.step(own)
        if not isinstance(answer, tuple) or len(answer) != 5:
            raise wrong("step returns %s, expected observations, rewards, terminations, truncations and infos" % ("%d values" % len(answer) if isinstance(answer, tuple) else short(answer)))
        obs, rewards, terminations, truncations, infos = answer
        return self.told(obs, rewards, terminations, truncations, infos, self.agents())

    def told(self, obs, rewards, terminations, truncations, infos, agents):
        """What a step has led to, for the agents that acted and those that begin."""
        info, going, over, cut = {}, [], [], False
        have = list(self.present)
        for a in self.names:
            if a in self.present:
                for what, of in (("reward", rewards), ("termination", terminations), ("truncation", truncations)):
                    if a not in of:
                        raise wrong("agent %s acted and step gives it no %s: an agent that leaves is told so by its last step" % (a, what))
                end = TERMINATED if terminations[a] else TRUNCATED if truncations[a] else GOES_ON
                if end == GOES_ON and a not in agents:
                    raise wrong("agent %s is gone, and its last step was neither a termination nor a truncation" % a)
                cut = cut or end == TRUNCATED
                self.note(a, end, rewards[a], infos, info)
                if end == TERMINATED:
                    over.append(a)
                if end == GOES_ON:
                    going.append(a)
            elif a in agents and not terminations.get(a) and not truncations.get(a):
                self.note(a, BEGINS, 0.0, infos, info)
                going.append(a)
                have.append(a)
        seen = self.seen(obs, infos, have)
        self.present, self.watched = going, [a for a in self.watched if a not in over]
        return seen, sum(number(rewards.get(a, 0.0), "the reward of agent %s" % a) for a in self.names), not going and not cut, not going and cut, info

    def close(self):
        self.world.close()


class Turns(Worlds):
    """A world whose agents act one after the other (the API of AEC). Each of its steps is one of all agents, of which those that wait have a single valid action, which is not taken."""

    def __init__(self, world, args):
        super().__init__(world, args)
        if not isinstance(self.acts[0], (gymnasium.spaces.Discrete, gymnasium.spaces.MultiDiscrete)):
            raise Refused("space", "agents act in %s: where they take turns, those that wait have but one valid action, and only choices can be masked; api: parallel takes such worlds where they have it" % said(self.acts[0]))
        self.heads = [int(n) for n in described(self.acts[0], "the action")["n"]]

    def has_masks(self):
        return True

    def reset(self, seed=None, options=None):
        self.world.reset(seed=seed)
        self.present = self.agents()
        if not self.present:
            raise wrong("no agent is there after reset: a team of size zero")
        return self.look(self.present), {}

    def look(self, agents):
        w = self.world
        seen = self.seen({a: w.observe(a) for a in agents}, w.infos, agents)
        self.wait()
        return seen

    def wait(self):
        """Leaves those that wait their first action."""
        for a in self.watched:
            if a != self.world.agent_selection:
                self.valid[a] = [int(i == 0) for n in self.heads for i in range(n)][: self.choices(a)[0]]

    def step(self, actions):
        w = self.world
        who = w.agent_selection
        w.step(self.split(actions)[self.names.index(who)])
        rewards = {a: w.rewards.get(a, 0.0) for a in self.present}
        terminations = {a: bool(w.terminations.get(a, False)) for a in self.present}
        truncations = {a: bool(w.truncations.get(a, False)) for a in self.present}
        infos = {a: w.infos.get(a, {}) for a in self.present}
        last = {a: w.observe(a) for a in self.present}
        # Agents that have ended take a step of nothing when it is their turn, and are gone.
        while w.agents and (w.terminations.get(w.agent_selection) or w.truncations.get(w.agent_selection)):
            gone = w.agent_selection
            w.step(None)
            if gone in w.agents and gone == w.agent_selection:
                raise wrong("agent %s has ended and is not gone after its last step" % gone)
        there = self.agents()
        for a in there:
            if a not in self.present:
                last[a], infos[a] = w.observe(a), w.infos.get(a, {})
        told = self.told(last, rewards, terminations, truncations, infos, there)
        self.wait()
        return told
