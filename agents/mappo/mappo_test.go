package mappo

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/ppo"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/cover"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// covers steps so many worlds of three agents that break down, which have been reset.
func covers(t testing.TB, worlds int) *vector.Multi {
	t.Helper()
	list := make([]envs.Multi, worlds)
	for i := range list {
		w, err := cover.New(cover.Config{Agents: 3, Size: 4, Steps: 7, Failure: 0.1})
		if err != nil {
			t.Fatal(err)
		}
		list[i] = w
	}
	v, err := vector.NewMulti(list, vector.Options{Workers: 1, Check: true})
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, v)
	if err := v.Reset(rng.New(11)); err != nil {
		t.Fatal(err)
	}
	return v
}

// small is a configuration of small networks and few rounds.
func small(c ppo.Config) ppo.Config {
	c.NSteps, c.NEpochs, c.Hidden, c.LearningRate = 10, 3, []int{6}, 5e-3
	return c
}

// variants are the ways to learn.
func variants() map[string]ppo.Config {
	list := map[string]ppo.Config{}
	for what, change := range sorted.All(map[string]func(c *ppo.Config){
		"plain":       func(*ppo.Config) {},
		"popart":      func(c *ppo.Config) { c.NormalizeValue = ppo.PopArt },
		"lstm":        func(c *ppo.Config) { c.Recurrent.Kind, c.Recurrent.Hidden, c.Recurrent.Length = ppo.LSTM, 5, 4 },
		"minibatches": func(c *ppo.Config) { c.BatchSize = 16 },
		"apart":       func(c *ppo.Config) { c.PoliciesBy = "agent" },
	}) {
		m, i := small(Defaults()), small(IPPODefaults())
		change(&m)
		change(&i)
		list["mappo, "+what], list["ippo, "+what] = m, i
	}
	return list
}

func maker(t testing.TB, c ppo.Config) agents.Maker {
	t.Helper()
	m, err := ppo.NewMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestNothingCentralActs: the policy that is exported has no input for what is central and no
// parameter of a critic, and is the one that acts. Whatever the central field says, shuffled among
// rows or overwritten, every action and its probability stay as they are, greedy and drawn, with
// and without a memory; of the values only MAPPO's change.
func TestNothingCentralActs(t *testing.T) {
	n, values := 0, 0
	for what, c := range sorted.All(variants()) {
		v := covers(t, 2)
		r := agenttest.NewTraining(t, agenttest.Agent(t, maker(t, c), v, testengines.Fastest(t), 1), v)
		r.Run(t, 2*c.NSteps+3)
		net, params := r.Agent.Learner().Policy()
		central := v.Spec().Observation.Central()
		if !slices.Equal(central, []string{"state"}) {
			t.Fatalf("central are %q", central)
		}
		var inputs []string
		for _, in := range net.Inputs {
			if !strings.HasPrefix(in, models.StatePrefix) {
				inputs = append(inputs, in)
			} else if strings.Contains(in, "critic") {
				t.Errorf("%s: the policy remembers %s", what, in)
			}
		}
		slices.Sort(inputs)
		if want := []string{"agent", "landmarks", "mask", "others"}; !slices.Equal(inputs, want) {
			t.Errorf("%s: the policy reads %q, expected %q", what, inputs, want)
		}
		for _, s := range net.Specs {
			if strings.HasPrefix(s.Name, "critic") || params.View(s.Name) == nil {
				t.Errorf("%s: the policy has the parameter %s", what, s.Name)
			}
		}
		if slices.Contains(net.Outputs, agents.ValueOutput) || net.Outputs[0] != agents.ActionOutput {
			t.Errorf("%s: the policy has the outputs %q", what, net.Outputs)
		}
		b := v.Batch()
		state := b.Obs[v.Spec().Observation.Index("state")]
		kept := bytes.Clone(state.Bytes())
		size := len(kept) / v.Len()
		for _, mode := range []agents.Mode{agents.Greedy, agents.Explore} {
			var want, critic string
			for k, change := range []func(){
				func() {},
				func() { // Each row has another one's.
					for i := range v.Len() {
						copy(state.Bytes()[i*size:(i+1)*size], kept[(i+1)%v.Len()*size:])
					}
				},
				func() { clear(state.Bytes()) },
				func() { rng.New(8).Stream().FillNormal32(state.Float32s(), 0, 1e3) },
			} {
				copy(state.Bytes(), kept)
				change()
				// A fresh actor, of a policy with a memory too.
				a, err := r.Agent.NewActor(mode, v.Len())
				if err != nil {
					t.Fatal(err)
				}
				d, err := a.Act(t.Context(), rng.New(1), b)
				if err != nil {
					t.Fatal(err)
				}
				got := string(d.Actions.Bytes()) + string(d.Logits.Bytes())
				value := fmt.Sprint(d.Value)
				if k == 0 {
					want, critic = got, value
				} else if got != want {
					t.Errorf("%s, %v: another action where the central field is changed (%d)", what, mode, k)
				} else if (value != critic) != c.Central {
					t.Errorf("%s, %v: central %t, and the values change: %t", what, mode, c.Central, value != critic)
				}
				if value != critic {
					values++
				}
				n++
				if err := a.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		copy(state.Bytes(), kept)
		greedy := agenttest.Actor(t, r.Agent, agents.Greedy, v.Len())
		if c.Recurrent.Kind == ppo.None {
			d, err := greedy.Act(t.Context(), rng.New(1), b)
			if err != nil {
				t.Fatal(err)
			}
			if got := agenttest.Exported(t, r, testengines.Fastest(t))[agents.ActionOutput]; !slices.Equal(got.Int64s(), d.Actions.Int64s()) {
				t.Errorf("%s: the exported policy takes %v, the actor %v", what, got.Int64s(), d.Actions.Int64s())
			}
		}
	}
	if n != 10*2*4 || values != 5*2*3 {
		t.Errorf("%d decisions, %d with other values", n, values)
	}
}

// TestStops stops runs wherever that can be, while agents are absent too, and goes on with the same
// bits.
func TestStops(t *testing.T) {
	longtest.Slow(t)
	n := 0
	for what, c := range sorted.All(variants()) {
		within := agenttest.Stops(t, what, func() *agenttest.Training {
			v := covers(t, 2)
			return agenttest.NewTraining(t, agenttest.Agent(t, maker(t, c), v, testengines.Fastest(t), 1), v)
		}, 3*c.NSteps+2)
		if n++; within == 0 {
			t.Errorf("%s: never stopped within an update", what)
		}
	}
	if n != 10 {
		t.Errorf("%d variants", n)
	}
}

// TestAbsentRows: where agents come and go, what their rows have in the meantime changes nothing,
// and a row that is never there is in no loss, mean or deviation, the averages of returns among
// them.
func TestAbsentRows(t *testing.T) {
	makers := map[string]agents.Maker{}
	for what, c := range sorted.All(variants()) {
		if c.PoliciesBy != "" {
			c.PoliciesBy = "worker"
		}
		if !c.Central {
			makers[what] = maker(t, c)
		}
	}
	agenttest.Absent(t, makers, false, 60)
	agenttest.Absent(t, map[string]agents.Maker{"apart, in a box": makers["ippo, apart"]}, true, 60)
	agenttest.Haunted(t, makers, 4)
	if len(makers) != 5 {
		t.Errorf("%d makers", len(makers))
	}
}

// TestPoliciesApart: with policies_by an agent's actions and values come from its own layers, and
// those of others change nothing of them; each learns.
func TestPoliciesApart(t *testing.T) {
	c := small(Defaults())
	c.PoliciesBy = "agent"
	v := covers(t, 2)
	r := agenttest.NewTraining(t, agenttest.Agent(t, maker(t, c), v, testengines.Fastest(t), 1), v)
	_, params := r.Agent.Learner().Policy()
	begun := map[string][]float32{}
	for _, s := range params.Segments() {
		for i, spec := range s.Specs() {
			begun[spec.Name] = slices.Clone(s.View(i).Float32s())
		}
	}
	r.Run(t, 2*c.NSteps)
	a := agenttest.Actor(t, r.Agent, agents.Greedy, v.Len())
	rows := func() (list []string) {
		d, err := a.Act(t.Context(), rng.New(1), v.Batch())
		if err != nil {
			t.Fatal(err)
		}
		k := d.Logits.Shape()[1]
		for i := range v.Len() {
			list = append(list, fmt.Sprint(d.Logits.Float32s()[i*k:(i+1)*k], d.Value[i]))
		}
		return list
	}
	before, n, learnt := rows(), 0, 0
	for name, was := range sorted.All(begun) {
		own := -1
		for k := range 3 {
			if strings.Contains(name, fmt.Sprintf(".agent%d.", k)) {
				own = k
			}
		}
		now := params.View(name).Float32s()
		if own < 0 {
			t.Errorf("%s is no agent's", name)
		}
		if !slices.Equal(now, was) {
			learnt++
		}
		kept := slices.Clone(now)
		for i := range now {
			now[i] += 0.3
		}
		changed := 0
		for i, row := range rows() {
			// An absent agent's row is zeros, and nobody's.
			if row != before[i] && v.Batch().Present[i] {
				if changed++; i%3 != own {
					t.Errorf("%s changes what agent %d does", name, i%3)
				}
			}
		}
		// A constant that is added before a softmax, or to what is normalised afterwards, may
		// change nothing.
		if changed > 0 {
			n++
		}
		copy(now, kept)
	}
	if len(begun) != 3*2*8 || n < 3*2*6 || learnt < 3*2*7 {
		t.Errorf("%d parameters, %d change something, %d have learnt", len(begun), n, learnt)
	}
}

// TestPoliciesApartLearn: each learns, though it learns alone.
func TestPoliciesApartLearn(t *testing.T) {
	longtest.Slow(t)
	l := IPPODefaults()
	l.NSteps, l.BatchSize, l.LearningRate, l.Gamma, l.PoliciesBy = 64, 64, 3e-3, 0.9, "worker"
	agenttest.LearnsShifts(t, maker(t, l), false, 64*8)
}

// TestKinds reads the kinds with their defaults, and says what does not fit.
func TestKinds(t *testing.T) {
	n := 0
	for text, words := range sorted.All(map[string][]string{
		"{kind: mappo, encoders: shared}":                                      {"central", "needs encoders: separate"},
		"{kind: mappo, recurrent: {kind: lstm, critic: shared}}":               {"central", "recurrent.critic: separate"},
		"{kind: ippo, normalize_value: always}":                                {"normalize_value", "must be one of none, running, popart"},
		"{kind: ippo, vf_loss: absolute, vf_clip: smaller, huber_delta: 0}":    {"vf_loss", "vf_clip", "huber_delta"},
		"{kind: mappo, correction: vtrace}":                                    {"normalize_value", "needs correction: gae"},
		"{kind: mappo, batch_size: 0}":                                         {"batch_size", "-1 for all samples"},
		"{kind: ippo, normalize_value: popart, freeze: ['critic.value.bias']}": nil,
		"{kind: mappo}": nil,
		"{kind: ippo, policies_by: agent, recurrent: {kind: lstm}}": {"policies_by", "neither recurrent.kind"},
	}) {
		doc, err := configs.Parse("x.yaml", []byte("agent: "+text))
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Agent configs.Kinded `yaml:"agent"`
		}
		if err := doc.Decode(&c); err != nil {
			t.Fatal(err)
		}
		m, err := agents.Parse(Kinds(), c.Agent)
		if words != nil {
			agenttest.Has(t, err, words...)
			n++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		spec := covers(t, 1).Spec()
		want := []string{"ippo", "popart changes critic.value.bias"}
		if strings.Contains(text, "mappo") {
			// Nothing is central.
			spec.Observation, want = spec.Observation[:3], []string{"mappo: central: none of the observations of cover is marked as central"}
		}
		agenttest.Refuse(t, m, nil, spec, want...)
		n++
	}
	for by, words := range sorted.All(map[string][]string{"state": {`"state" is no field that the policy reads`}, "landmarks": {`"landmarks" of cover is box`, "expected a discrete one"}, "team": {`"team" is no field`}}) {
		c := Defaults()
		c.PoliciesBy = by
		agenttest.Refuse(t, maker(t, c), nil, covers(t, 1).Spec(), words...)
		n++
	}
	if n != 12 {
		t.Errorf("%d documents", n)
	}
}
