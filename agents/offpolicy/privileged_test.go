package offpolicy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/a2c"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/dqn"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/ppo"
	"github.com/onnxrl/onnxrl/agents/sac"
	"github.com/onnxrl/onnxrl/agents/td3"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// asymmetric are actor-critics whose critics alone read some fields.
func asymmetric(t testing.TB, fields ...string) map[string]agenttest.Variant {
	s, d, g, p := sac.Defaults(), td3.Defaults(), td3.DDPGDefaults(), ppo.Defaults()
	small(&s.Settings)
	small(&d.Settings)
	small(&g.Settings)
	p.NSteps, p.BatchSize, p.NEpochs = 8, 8, 2
	a := a2c.Defaults()
	a.Hidden, a.Privileged = []int{8}, fields
	for _, c := range []*network.Config{&s.Config, &d.Config, &g.Config, &p.Config} {
		c.Hidden, c.Privileged = []int{8}, fields
	}
	return map[string]agenttest.Variant{
		"sac": {Maker: made(t, s, sac.NewMaker), Spec: agenttest.Box()}, "sac, discrete": {Maker: made(t, s, sac.NewMaker), Spec: agenttest.Choice()},
		"td3": {Maker: made(t, d, td3.NewMaker), Spec: agenttest.Box()}, "ddpg": {Maker: made(t, g, td3.NewMaker), Spec: agenttest.Box()},
		"a2c": {Maker: made(t, a, a2c.NewMaker), Spec: agenttest.Box()}, "a2c, discrete": {Maker: made(t, a, a2c.NewMaker), Spec: agenttest.Choice()},
		"ppo": {Maker: made(t, p, ppo.NewMaker), Spec: agenttest.Box()}, "ppo, discrete": {Maker: made(t, p, ppo.NewMaker), Spec: agenttest.Choice()},
	}
}

// TestPrivileged: the policy has no input for what critics alone read, takes the same actions
// whatever that says, and has none of the critics' parameters; it is the actor's all the same.
func TestPrivileged(t *testing.T) {
	n := 0
	for what, x := range sorted.All(asymmetric(t, "kind")) {
		v := agenttest.Toys(t, 2, x.Spec)
		r := agenttest.NewTraining(t, agenttest.Agent(t, x.Maker, v, engineOf(t), 1), v)
		r.Run(t, 40)
		net, params := r.Agent.Learner().Policy()
		for _, in := range net.Model.Graph.Input {
			if in.Name == "kind" {
				t.Errorf("%s: the policy has an input %q", what, in.Name)
			}
		}
		for _, s := range net.Specs {
			if strings.HasPrefix(s.Name, "critic") {
				t.Errorf("%s: the policy has the parameter %s", what, s.Name)
			}
		}
		// A vector of 3 and one of 3 kinds; critics of actions in a box read these too.
		reads := func(extent int) bool {
			for _, seg := range params.Segments() {
				for _, s := range seg.Specs() {
					if strings.HasPrefix(s.Name, "critic") && slices.Contains(s.Shape, extent) {
						return true
					}
				}
			}
			return false
		}
		if !reads(6) && !reads(8) {
			t.Errorf("%s: no critic reads all fields", what)
		}
		b, greedy := v.Batch(), agenttest.Actor(t, r.Agent, agents.Greedy, 2)
		var actions []string
		values := map[float32]bool{}
		for kind := range int64(3) {
			b.Obs[1].Int64s()[0] = kind
			d, err := greedy.Act(t.Context(), rng.New(1), b)
			if err != nil {
				t.Fatal(err)
			}
			actions = append(actions, string(d.Actions.Bytes()))
			if d.Value != nil {
				values[d.Value[0]] = true
			}
			out := agenttest.Exported(t, r, engineOf(t))
			if out[agents.ValueOutput] != nil {
				t.Errorf("%s: the policy has an output %q", what, agents.ValueOutput)
			}
			if a := out[agents.ActionOutput]; a.Len() != d.Actions.Len() {
				t.Errorf("%s: the policy gives %v, the actor %v", what, a, d.Actions)
			}
			n++
		}
		if actions[0] != actions[1] || actions[0] != actions[2] {
			t.Errorf("%s: the actions depend on what critics alone read", what)
		}
		if (strings.HasPrefix(what, "a2c") || strings.HasPrefix(what, "ppo")) && len(values) != 3 {
			t.Errorf("%s: %d values of 3 kinds", what, len(values))
		}
		fresh := agenttest.Agent(t, x.Maker, v, engineOf(t), 1)
		if err := agenttest.Load(t, agenttest.Save(t, r.Agent), fresh); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n != 8*3 {
		t.Errorf("%d actions", n)
	}
}

// TestPrivilegedRefuses: what cannot be left out is named.
func TestPrivilegedRefuses(t *testing.T) {
	n := 0
	refuses := func(m agents.Maker, spec envs.Spec, want string) {
		t.Helper()
		_, err := m.New(t.Context(), agents.Setup{Spec: spec, Envs: 2, Engine: engineOf(t), Key: rng.New(1)})
		agenttest.Has(t, err, "privileged", want)
		n++
	}
	for want, fields := range sorted.All(map[string][]string{"no field": {"height"}, "given twice": {"kind", "kind"}, "nothing is left": {"x", "kind"}}) {
		for _, x := range sorted.All(asymmetric(t, fields...)) {
			refuses(x.Maker, x.Spec, want)
		}
	}
	for _, x := range sorted.All(asymmetric(t, "window")) {
		if _, box := x.Spec.Action.(envs.Box); box {
			refuses(x.Maker, agenttest.Assets(t), "the window of assets")
		}
	}
	refuses(asymmetric(t, "window")["a2c"].Maker, agenttest.Series(t), "actor and critic both read")
	a := a2c.Defaults()
	a.Encoders, a.Privileged = a2c.Shared, []string{"kind"}
	_, err := a2c.NewMaker(a)
	agenttest.Has(t, err, "privileged", "encoders: separate")
	p := ppo.Defaults()
	p.Encoders, p.Privileged = ppo.Shared, []string{"kind"}
	_, err = ppo.NewMaker(p)
	agenttest.Has(t, err, "privileged", "encoders: separate")
	q := dqn.Defaults()
	q.Privileged = []string{"kind"}
	_, err = dqn.NewMaker(q)
	agenttest.Has(t, err, "privileged", "values are the policy")
	if n != 3*8+5+1 {
		t.Errorf("%d cases", n)
	}
}

// TestCentral: a field that is central is read by nobody, DQN's values among them, unless critics
// are configured to; no policy has an input for it in any case.
func TestCentral(t *testing.T) {
	q := dqn.Defaults()
	small(&q.Settings.Settings)
	q.Hidden = []int{8}
	all := map[string]agenttest.Variant{"dqn": {Maker: made(t, q, dqn.NewMaker), Spec: agenttest.Choice()}}
	for what, x := range sorted.All(asymmetric(t)) {
		all[what] = x
	}
	for what, x := range sorted.All(asymmetric(t, "kind")) {
		all[what+", told to"] = x
	}
	n := 0
	for what, x := range sorted.All(all) {
		x.Spec.Observation = slices.Clone(x.Spec.Observation)
		x.Spec.Observation[x.Spec.Observation.Index("kind")].Central = true
		v := agenttest.Toys(t, 2, x.Spec)
		r := agenttest.NewTraining(t, agenttest.Agent(t, x.Maker, v, engineOf(t), 1), v)
		r.Run(t, 40)
		net, params := r.Agent.Learner().Policy()
		if slices.Contains(net.Inputs, "kind") {
			t.Errorf("%s: the policy has the inputs %q", what, net.Inputs)
		}
		told, reads := strings.HasSuffix(what, "told to"), false
		for _, seg := range params.Segments() {
			for _, s := range seg.Specs() {
				// A vector of 3, one of 3 kinds, and for some an action of 2.
				reads = reads || strings.HasPrefix(s.Name, "critic") && (slices.Contains(s.Shape, 6) || s.Shape[len(s.Shape)-1] == 8 && strings.HasSuffix(s.Name, "fc0.weight"))
			}
		}
		if reads != told {
			t.Errorf("%s: critics read it: %t", what, reads)
		}
		b, explore := v.Batch(), agenttest.Actor(t, r.Agent, agents.Explore, 2)
		var seen []string
		for kind := range int64(3) {
			b.Obs[1].Int64s()[0] = kind
			d, err := explore.Act(t.Context(), rng.New(1), b)
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, string(d.Actions.Bytes()))
			n++
		}
		if seen[0] != seen[1] || seen[0] != seen[2] {
			t.Errorf("%s: the actions depend on what is central", what)
		}
	}
	if n != (1+8+8)*3 {
		t.Errorf("%d actions", n)
	}
	s := agenttest.Choice()
	s.Observation = slices.Clone(s.Observation)
	for i := range s.Observation {
		s.Observation[i].Central = true
	}
	_, err := all["dqn"].Maker.New(t.Context(), agents.Setup{Spec: s, Envs: 2, Engine: engineOf(t), Key: rng.New(1)})
	agenttest.Has(t, err, "all of its observation is central")
}
