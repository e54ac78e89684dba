"""Worlds for tests, in the forms of PettingZoo's APIs. All of their randomness comes from the seed given to reset."""
import random
from array import array

from gymnasium import spaces

import seating


class Shift:
    """Agents that add up what they do. An agent that does 2 dies; all others are cut off after `steps`. `late` agents come after two steps. How it misbehaves, after three steps unless that is at the beginning, is said by `how`."""

    def __init__(self, agents=3, steps=6, late=0, how="", masked="", act="discrete", roles=False, state=False):
        self.possible_agents = ["agent_%d" % i for i in range(agents + late)]
        if roles:
            self.possible_agents = ["chaser_%d" % i for i in range(agents - 1)] + ["runner_0"]
        if how == "no team":
            self.possible_agents = []
        self.first, self.steps, self.how, self.masked, self.act, self.roles = agents, steps, how, masked, act, roles
        if state:
            self.state_space = spaces.Box(-1000.0, 1000.0, (2,))

    def observation_space(self, agent):
        n = 4 if agent.startswith("runner") or self.how == "other observations" and agent == "agent_1" else 3
        box = spaces.Box(-1000.0, 1000.0, (n,))
        return spaces.Dict({"observation": box, "action_mask": spaces.Box(0, 1, (3,), "int8")}) if self.masked == "obs" else box

    def action_space(self, agent):
        n = 2 if agent.startswith("runner") or self.how == "other actions" and agent == "agent_1" else 3
        return {"discrete": spaces.Discrete(n), "heads": spaces.MultiDiscrete([2, 3]), "bits": spaces.MultiBinary((2,)), "box": spaces.Box(-1.0, 2.0, (2,))}[self.act]

    def state(self):
        return array("f", [float(self.t), float(len(self.agents))])

    def reset(self, seed=None, options=None):
        self.random = random.Random(seed)
        self.t, self.sums = 0, {a: self.random.randrange(5) for a in self.possible_agents}
        self.agents = [] if self.how == "nobody" else self.possible_agents[: self.first]
        if self.how == "stranger":
            self.agents = self.agents + ["nobody_knows"]
        return self.seen(self.agents), {a: self.info(a) for a in self.agents}

    def info(self, a):
        return {"sum": float(self.sums[a]), "mask": self.mask(a)} if a in self.sums else {}

    def mask(self, a):
        return [0, 0, 0] if self.how == "no action" and self.t == 3 else [1, int(self.t + self.sums[a]) % 2, 1]

    def seen(self, agents):
        out = {}
        for a in agents:
            x = array("f", [float(self.t), float(self.sums.get(a, 0)), float(len(self.agents))])
            if a.startswith("runner"):
                x.append(7.0)
            out[a] = {"observation": x, "action_mask": array("b", self.mask(a))} if self.masked == "obs" else x
        return out

    def step(self, actions):
        assert set(actions) == set(self.agents), (actions, self.agents)
        self.t += 1
        acted = list(self.agents)
        value = {a: sum(float(v) for v in ([x] if isinstance(x, int) else x)) for a, x in actions.items()}
        for a in acted:
            self.sums[a] += value[a]
        rewards = {a: value[a] + 0.25 * self.possible_agents.index(a) for a in acted}
        dead = {a: self.act == "discrete" and value[a] == 2 for a in acted}
        over = self.t >= self.steps
        cut = {a: over and not dead[a] for a in acted}
        self.agents = [a for a in acted if not dead[a] and not over]
        if self.t == 2 and not over:
            self.agents = self.agents + self.possible_agents[self.first :]
        obs = self.seen(acted + [a for a in self.agents if a not in acted])
        if self.t == 3:
            if self.how == "vanishes":
                self.agents = self.agents[1:]
            if self.how == "unseen":
                del obs[self.agents[0]]
            if self.how == "unrewarded":
                del rewards[acted[0]]
            if self.how == "arrays":
                rewards = {a: array("d", [r]) for a, r in rewards.items()}
            if self.how == "no number":
                rewards[acted[0]] = "much"
            if self.how == "infinite":
                rewards[acted[0]] = float("inf")
            if self.how == "raises":
                raise RuntimeError("the world has ended")
            if self.how == "four values":
                return obs, rewards, dead, cut
        return obs, rewards, dead, cut, {a: self.info(a) for a in obs}

    def close(self):
        pass


class Turns:
    """Players count up by 1 or 2, one after the other; who reaches `end` wins, and the others lose. The right to add 2 is masked after one has. A player that adds nothing gives up, and has lost. `seats` has another package say who is next."""

    def __init__(self, players=2, end=7, box=False, seats=False):
        self.seats = seats
        self.possible_agents = ["player_%d" % i for i in range(players)]
        self.end, self.box = end, box

    def observation_space(self, agent):
        return spaces.Dict({"observation": spaces.Box(-100.0, 100.0, (1,)), "action_mask": spaces.Box(0, 1, (3,), "int8")})

    def action_space(self, agent):
        return spaces.Box(-1.0, 1.0, (1,)) if self.box else spaces.Discrete(3)

    def reset(self, seed=None, options=None):
        self.agents, self.count, self.last = list(self.possible_agents), random.Random(seed).randrange(2), {}
        self.rewards, self.terminations, self.truncations, self.infos = ({a: v for a in self.agents} for v in (0.0, False, False, {}))
        self.agent_selection = self.agents[0]
        if self.seats:
            self.round = seating.Round()

    def observe(self, agent):
        return {"observation": [float(self.count)], "action_mask": [1, 1, int(self.last.get(agent) != 2)]}

    def step(self, action):
        who = self.agent_selection
        at = self.agents.index(who)
        if self.terminations[who]:
            assert action is None
            self.agents.remove(who)
            for d in (self.rewards, self.terminations, self.truncations, self.infos):
                del d[who]
            self.rewards = {a: 0.0 for a in self.agents}
            if self.agents:
                self.agent_selection = next((a for a in self.agents if self.terminations[a]), self.agents[at % len(self.agents)])
            return
        self.count += action
        self.last[who] = action
        self.rewards = {a: 0.0 for a in self.agents}
        if self.count >= self.end:
            self.rewards = {a: 1.0 if a == who else -1.0 for a in self.agents}
            self.terminations = {a: True for a in self.agents}
        elif action == 0:
            self.rewards[who], self.terminations[who] = -1.0, True
            left = [a for a in self.agents if a != who]
            if len(left) == 1:
                self.rewards[left[0]], self.terminations[left[0]] = 1.0, True
        if not self.terminations[who]:
            self.agent_selection = self.agents[(at + 1) % len(self.agents)]
        if self.seats and self.round.turns():
            self.rewards[who] += 0.5

    def close(self):
        pass


def parallel_env(**kwargs):
    return Shift(**kwargs)


def env(**kwargs):
    return Turns(**kwargs)
