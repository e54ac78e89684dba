package offpolicy_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/sac"
	"github.com/onnxrl/onnxrl/agents/td3"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/models/prefix"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func kinded(t testing.TB, kind string, c any) configs.Kinded {
	t.Helper()
	k, err := configs.NewKinded(kind, c)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// keeps are learners whose encoders, or their first layers, never change.
func keeps(t testing.TB) map[string]agenttest.Variant {
	cnn := encoder.TimeCNNDefaults()
	cnn.DModel, cnn.NLayers, cnn.Dropout = 8, 2, 0
	times := encoder.TimesNetDefaults()
	times.DModel, times.DFF, times.NKernels, times.TopK = 4, 4, 2, 2
	list := map[string]agenttest.Variant{}
	for what, spec := range sorted.All(map[string]envs.Spec{"series": agenttest.Series(t), "assets": agenttest.Assets(t)}) {
		for how, change := range sorted.All(map[string]func(c *network.Config, o *models.Options){
			"last layer": func(c *network.Config, _ *models.Options) {
				c.Encoder, c.LoRA = kinded(t, "timecnn", cnn), &lora.Config{Rank: 2, Target: []string{"*conv1*"}}
			},
			"last block": func(c *network.Config, _ *models.Options) {
				c.Encoder, c.LoRA = kinded(t, "timesnet", times), &lora.Config{Rank: 2, Target: []string{"*block1*"}}
			},
			"whole": func(c *network.Config, o *models.Options) {
				c.Encoder, o.Freeze = kinded(t, "timecnn", cnn), []string{"*encoder*"}
			},
		}) {
			for algorithm, maker := range sorted.All(map[string]func() agents.Maker{
				"sac": func() agents.Maker {
					c := sac.Defaults()
					small(&c.Settings)
					c.TrainFreq, c.GradientSteps = 4, 3
					c.Hidden, c.CrossAsset.NHeads = []int{8}, 2
					change(&c.Config, &c.Options)
					return made(t, c, sac.NewMaker)
				},
				"sac, v-trace": func() agents.Maker {
					c := sac.Defaults()
					small(&c.Settings)
					c.TrainFreq, c.GradientSteps = 4, 3
					c.Hidden, c.CrossAsset.NHeads, c.VTrace.Length = []int{8}, 2, 4
					change(&c.Config, &c.Options)
					return made(t, c, sac.NewMaker)
				},
				"td3": func() agents.Maker {
					c := td3.Defaults()
					small(&c.Settings)
					c.TrainFreq, c.GradientSteps = 4, 3
					c.Hidden, c.CrossAsset.NHeads = []int{8}, 2
					change(&c.Config, &c.Options)
					return made(t, c, td3.NewMaker)
				},
			}) {
				if algorithm == "sac, v-trace" && (what == "series" || how != "last layer") || what == "series" && how == "last block" {
					continue
				}
				list[algorithm+", "+what+", "+how] = agenttest.Variant{Maker: maker(), Spec: spec}
			}
		}
	}
	return list
}

// runs counts the runs of sessions of graphs called frozen, the two of their proof included.
type runs struct {
	engine.Compiler
	sessions, n int
}

type counted struct {
	engine.Session
	of *runs
}

type countedBinding struct {
	engine.Binding
	of *runs
}

func (r *runs) Compile(m *onnx.Model, o engine.Options) (engine.Session, error) {
	s, err := r.Compiler.Compile(m, o)
	if err != nil || m.Graph.Name != "frozen" {
		return s, err
	}
	r.sessions++
	return &counted{s, r}, nil
}

func (s *counted) Bind(out, in []*tensor.Tensor) (engine.Binding, error) {
	b, err := s.Session.Bind(out, in)
	return &countedBinding{b, s.of}, err
}

func (b *countedBinding) Run() error {
	b.of.n++
	return b.Binding.Run()
}

// TestPrefixIsComputedOnce trains five experts over one base: each block of windows is computed
// once, for all of them, whether they act or learn, and the base is there once.
func TestPrefixIsComputedOnce(t *testing.T) {
	longtest.Slow(t)
	n := 0
	for _, e := range testengines.All(t) {
		for what, x := range sorted.All(keeps(t)) {
			if !strings.Contains(what, "layer") && (!strings.Contains(what, "block") || e.Name() == "portable") {
				continue
			}
			count, bases, prefixes := &runs{Compiler: e}, &models.Bases{}, agenttest.Prefixes(t)
			agenttest.Closing(t, bases)
			var held *models.Segment
			seen := map[int64]bool{}
			for expert := range 5 {
				v := agenttest.Toys(t, 2, x.Spec)
				base := rng.New(5)
				a := agenttest.Agent(t, x.Maker, v, count, 1, func(s *agents.Setup) {
					s.Bases, s.Prefixes, s.Key = bases, prefixes, base.Split("expert", expert)
					s.Init = func(values map[string]*tensor.Tensor) error {
						for name, v := range sorted.All(values) {
							if strings.HasPrefix(name, "encoder.") {
								base.Split(name).Stream().FillNormal32(v.Float32s(), 0, 0.3)
							}
						}
						return nil
					}
				})
				r := agenttest.NewTraining(t, a, v)
				for range 40 {
					for _, row := range v.Batch().Rows[0] {
						seen[row] = true
					}
					r.Run(t, 1)
				}
				_, params := a.Learner().Policy()
				if s := params.Segment(models.Base); held != nil && s != held {
					t.Errorf("%s, %s: expert %d has a base of its own", e.Name(), what, expert)
				} else {
					held = s
				}
			}
			w := x.Spec.Observation[0].Window
			windows := w.Table().Shape()[0] - w.Len() + 1
			blocks := (windows + prefix.Block - 1) / prefix.Block
			if len(seen) < windows/2 {
				t.Fatalf("%d of %d windows were seen", len(seen), windows)
			}
			if prefixes.Len() != 1 || count.sessions != 1 || prefixes.Runs() != int64(blocks) || count.n != blocks+2 {
				t.Errorf("%s, %s: %d caches, %d sessions that ran %d times for %d blocks of windows, and %d to try; expected 1, 1, %d and 2", e.Name(), what, prefixes.Len(), count.sessions, prefixes.Runs(), blocks, count.n-int(prefixes.Runs()), blocks)
			}
			n++
		}
	}
	if n < 5 {
		t.Errorf("%d variants", n)
	}
}

// TestPrefixAgrees compares learners with what is kept to learners without: actions, and losses of
// the first updates.
func TestPrefixAgrees(t *testing.T) {
	longtest.Slow(t)
	n := 0
	for _, e := range testengines.All(t) {
		for what, x := range sorted.All(keeps(t)) {
			if strings.Contains(what, "block") && e.Name() == "portable" {
				// It takes its time, and is the same graph.
				continue
			}
			var all [2]*agenttest.Training
			prefixes := agenttest.Prefixes(t)
			for i := range all {
				v := agenttest.Toys(t, 2, x.Spec)
				all[i] = agenttest.NewTraining(t, agenttest.Agent(t, x.Maker, v, e, 1, func(s *agents.Setup) {
					if i == 0 {
						s.Prefixes = prefixes
					}
				}), v)
			}
			if prefixes.Len() == 0 {
				t.Errorf("%s, %s: nothing is kept", e.Name(), what)
			}
			kept, plain := all[0], all[1]
			const tolerance = 1e-6
			close := func(what string, a, b float64) {
				if math.Abs(a-b) > tolerance*(1+math.Abs(b)) {
					t.Errorf("%s, %s: %s is %g, and %g without", e.Name(), what, what, a, b)
				}
			}
			for range 12 {
				kept.Run(t, 1)
				plain.Run(t, 1)
				if plain.Last["train/n_updates"] > 0 {
					break
				}
			}
			if plain.Last["train/n_updates"] == 0 {
				t.Fatalf("%s: no update", what)
			}
			for tag, want := range sorted.All(plain.Last) {
				close(tag, kept.Last[tag], want)
			}
			// As many as before, another number, and windows that are no rows of the learner's
			// table.
			for _, k := range []int{2, 5} {
				for _, other := range []bool{false, true} {
					spec := x.Spec
					if other {
						spec = elsewhere(t, spec)
					}
					v := agenttest.Toys(t, k, spec)
					var got [2]*vector.Decision
					fresh := agentsOf(t, x, e, prefixes)
					for i := range got {
						d, err := agenttest.Actor(t, fresh[i], agents.Greedy, k).Act(t.Context(), rng.New(1), v.Batch())
						if err != nil {
							t.Fatal(err)
						}
						got[i] = d
					}
					for i, want := range got[1].Drawn.Float32s() {
						close(fmt.Sprint("action ", i), float64(got[0].Drawn.Float32s()[i]), float64(want))
					}
				}
			}
			n++
		}
	}
	if n < 9 {
		t.Errorf("%d comparisons", n)
	}
}

// agentsOf are an agent with what is kept, and one without.
func agentsOf(t testing.TB, x agenttest.Variant, e engine.Compiler, prefixes *prefix.Caches) (all [2]agents.Agent) {
	for i := range all {
		all[i] = agenttest.Agent(t, x.Maker, agenttest.Toys(t, 2, x.Spec), e, 1, func(s *agents.Setup) {
			if i == 0 {
				s.Prefixes = prefixes
			}
		})
	}
	return all
}

// elsewhere returns a spec with windows over another table.
func elsewhere(t testing.TB, s envs.Spec) envs.Spec {
	t.Helper()
	old := s.Observation[0].Window
	table := tensor.New(tensor.Float32, append([]int{40}, old.Table().Shape()[1:]...)...)
	rng.New(9).Stream().FillNormal32(table.Float32s(), 0, 1)
	w, err := envs.NewWindow(table, old.Len())
	if err != nil {
		t.Fatal(err)
	}
	s.Observation = slices.Clone(s.Observation)
	s.Observation[0].Window = w
	return s
}

func TestPrefixResumes(t *testing.T) {
	longtest.Slow(t)
	agenttest.SplitSmall(t)
	list := keeps(t)
	maps.DeleteFunc(list, func(what string, _ agenttest.Variant) bool {
		// The cache is that of the network, whose other algorithm would save the same.
		return strings.Contains(what, "block") || strings.Contains(what, "series") || strings.Contains(what, "td3")
	})
	agenttest.Resume(t, list, 18, 32, 10)
}

func TestPrefixAllocatesNothing(t *testing.T) { agenttest.NoAllocations(t, keeps(t), 60) }
