package scml

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"github.com/onnxrl/onnxrl/agents/scml/shield"
	"github.com/onnxrl/onnxrl/envs/scml/league"
	"github.com/onnxrl/onnxrl/envs/scml/league/leaguetest"
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// sit makes a world in which agents of a kind have the places of competitors, and others, half of
// them hostile if so, all else. It returns the places.
func sit(t testing.TB, seed, levels int, rules world.Rules, days float64, angry bool, seat func(key rng.Key) world.Agent) (*world.Table, []int) {
	t.Helper()
	key := rng.New(11).Split("world", levels, seed)
	s := key.Split("hostile").Stream()
	return leaguetest.Sit(t, key, levels, rules, world.Range{Low: days, High: days}, func(name string, own rng.Key) world.Agent {
		switch {
		case name == "":
			return seat(own)
		case angry && s.Bernoulli(0.5):
			return leaguetest.Hostile(own)
		}
		return leaguetest.Agent(t, name, own)
	})
}

// noise draws numbers as no network should give them, and such as it does.
func noise(s *rng.Stream) float32 {
	switch s.IntN(8) {
	case 0:
		return float32(math.NaN())
	case 1:
		return float32(math.Inf(1))
	case 2:
		return float32(math.Inf(-1))
	case 3:
		return 1e30
	case 4:
		return -1e30
	}
	return float32(4*s.Float64() - 2)
}

// TestNoUnsafeActions lets managers, executors and coordinators say anything, among partners that
// are hostile or not, by the official rules and by repaired ones.
func TestNoUnsafeActions(t *testing.T) {
	repaired := world.DefaultRules()
	repaired.StockShrinks, repaired.MiddleEdge = true, true
	all, worlds, directs := 0, 0, 0
	for i := range 72 {
		rules, direct := world.DefaultRules(), i%2 == 1
		if i%3 == 2 {
			rules = repaired
		}
		if direct {
			directs++
		}
		var watched []league.Watched
		table, places := sit(t, i, 2+i%3, rules, 30, i%4 > 0, func(key rng.Key) world.Agent {
			s := key.Split("layers").Stream()
			a := NewAgent(Layers{
				Manager: func(d *Day) (Goal, error) {
					vector := make([]float32, []int{WholeGoal, FullGoal}[s.IntN(2)])
					for k := range vector {
						vector[k] = noise(s)
					}
					return DecodeGoal(vector, d), nil
				},
				Executor: func(threads []Thread) error {
					for k := range threads {
						for j := range threads[k].Residual {
							threads[k].Residual[j] = noise(s)
						}
					}
					return nil
				},
				Coordinator: func(threads []Thread) error {
					for k := range threads {
						threads[k].Weight = Weight(noise(s))
					}
					return nil
				},
				Direct: direct,
			})
			w := shield.Watch(a)
			watched = append(watched, w)
			return w
		})
		for table.PlayDay() {
		}
		for k, w := range watched {
			n, unsafe := w.Actions()
			if all += n; unsafe > 0 {
				t.Errorf("world %d: %d of %d actions of agent %d were unsafe", i, unsafe, n, places[k])
			}
			if faults := table.Faults(places[k]); faults.Count() > 0 {
				t.Errorf("world %d: %+v", i, faults)
			}
		}
		worlds++
	}
	if worlds != 72 || directs != 36 || all < 20_000 {
		t.Errorf("%d worlds, %d of direct mode, %d actions", worlds, directs, all)
	}
}

// TestZeroResidualIsTheBaseline: an executor that says nothing changes nothing, whatever the
// coordinator says, and neither does a weight of 0 whatever the executor says.
func TestZeroResidualIsTheBaseline(t *testing.T) {
	silent := func(threads []Thread) error {
		for k := range threads {
			threads[k].Residual = [Direct]float32{}
		}
		return nil
	}
	contracts := func(i int, layers func(s *rng.Stream) Layers) []world.Contract {
		table, _ := sit(t, i, 2+i%3, world.DefaultRules(), 15, false, func(key rng.Key) world.Agent {
			s := key.Split("layers").Stream()
			return NewAgent(layers(s))
		})
		for table.PlayDay() {
		}
		return table.Contracts()
	}
	n, signed := 0, 0
	for i := range 6 {
		want := contracts(i, func(*rng.Stream) Layers { return Layers{} })
		for name, layers := range sorted.All(map[string]func(s *rng.Stream) Layers{
			"no residuals": func(s *rng.Stream) Layers {
				return Layers{Executor: silent, Coordinator: func(threads []Thread) error {
					for k := range threads {
						threads[k].Weight = Weight(noise(s))
					}
					return nil
				}}
			},
			"no weights": func(s *rng.Stream) Layers {
				return Layers{Executor: func(threads []Thread) error {
					for k := range threads {
						for j := range threads[k].Residual {
							threads[k].Residual[j] = noise(s)
						}
					}
					return nil
				}, Coordinator: func(threads []Thread) error {
					for k := range threads {
						threads[k].Weight = 0
					}
					return nil
				}}
			},
		}) {
			if got := contracts(i, layers); !reflect.DeepEqual(got, want) {
				t.Errorf("world %d, %s: %d contracts, expected the %d of the baseline", i, name, len(got), len(want))
			}
			n++
		}
		signed += len(want)
	}
	if n != 12 || signed < 1000 {
		t.Errorf("%d comparisons, %d contracts", n, signed)
	}
}

// swayed answers by the thread's own numbers, so that it needs no memory.
func swayed(threads []Thread) error {
	for k := range threads {
		t := &threads[k]
		for j := range Direct {
			t.Residual[j] = float32(math.Sin(float64(7*t.Round + 3*j + t.Open + 5*len(t.History) + t.Offer.Quantity)))
		}
		t.Weight = 1
	}
	return nil
}

// TestResume saves worlds in the middle of days and goes on.
func TestResume(t *testing.T) {
	saved, asked := 0, 0
	for i := range 4 {
		open := func() (*world.Table, []int) {
			return sit(t, i, 2+i%3, world.DefaultRules(), 12, false, func(rng.Key) world.Agent {
				return NewAgent(Layers{Executor: swayed, Direct: i%2 == 1})
			})
		}
		whole, _ := open()
		var states [][]byte
		for step := 0; ; step++ {
			q := whole.Step()
			if q.Event == world.Over {
				break
			}
			if step%97 == 50 {
				if q.Event >= world.AskFirst && q.Event <= world.AskProposal {
					asked++
				}
				data, err := whole.SaveState()
				if err != nil {
					t.Fatal(err)
				}
				states = append(states, data)
			}
		}
		for _, k := range []int{0, len(states) / 3, len(states) / 2, len(states) - 1} {
			again, _ := open()
			if err := again.LoadState(states[k]); err != nil {
				t.Fatal(err)
			}
			for again.PlayDay() {
			}
			if !reflect.DeepEqual(again.Contracts(), whole.Contracts()) {
				t.Errorf("world %d, state %d of %d: it goes on differently", i, k, len(states))
			}
			saved++
		}
	}
	if saved != 16 || asked < 50 {
		t.Errorf("%d states were loaded; %d were saved at questions", saved, asked)
	}
}

// TestAgain prepares an agent again whose memory was saved when it was prepared: the threads are
// the same, and its histories have each offer once.
func TestAgain(t *testing.T) {
	compared := 0
	table, places := sit(t, 1, 3, world.DefaultRules(), 6, false, func(rng.Key) world.Agent { return world.Vacant{Sync: true} })
	v := map[int]*world.View{}
	agents := map[int]*Agent{}
	for _, p := range places {
		v[p], agents[p] = table.View(p), NewAgent(Layers{})
	}
	for {
		q := table.Ask()
		a := agents[q.Agent]
		switch q.Event {
		case world.Starts:
			a.Starts(v[q.Agent])
		case world.DayBegins:
			a.DayBegins()
		case world.Agreed:
			a.Agreed(q.Contract)
		case world.Failed:
			a.Failed(q.Negotiation)
		case world.AskFirst, world.AskCounters:
			first := q.Event == world.AskFirst
			threads := a.Prepare(q.Heard, first, len(q.Replies))
			data, err := json.Marshal(a.Memory())
			if err != nil {
				t.Fatal(err)
			}
			other := NewAgent(Layers{})
			other.Starts(v[q.Agent])
			if err := json.Unmarshal(data, other.Memory()); err != nil {
				t.Fatal(err)
			}
			again := other.Again(q.Heard, first, len(q.Replies))
			if len(again) != len(threads) {
				t.Fatalf("%d threads, expected %d", len(again), len(threads))
			}
			for k := range threads {
				x, y := written(&threads[k]), written(&again[k])
				if !reflect.DeepEqual(x, y) {
					t.Fatalf("day %d, thread %d: %v, expected %v", v[q.Agent].Today(), k, y, x)
				}
				compared++
			}
			a.Finish(q.Replies)
		case world.Over:
			if compared < 300 {
				t.Errorf("%d threads were compared", compared)
			}
			return
		}
	}
}

// TestLimits: a residual within the limits, of one thread alone, is left as it is by the shield.
func TestLimits(t *testing.T) {
	table, places := sit(t, 3, 3, world.DefaultRules(), 12, true, func(rng.Key) world.Agent { return world.Vacant{Sync: true} })
	agents := map[int]*Agent{}
	for _, p := range places {
		agents[p] = NewAgent(Layers{})
	}
	within, refused := 0, 0
	for {
		q := table.Ask()
		a := agents[q.Agent]
		switch q.Event {
		case world.Starts:
			a.Starts(table.View(q.Agent))
		case world.DayBegins:
			a.DayBegins()
		case world.Agreed:
			a.Agreed(q.Contract)
		case world.Failed:
			a.Failed(q.Negotiation)
		case world.AskFirst, world.AskCounters:
			threads := a.Prepare(q.Heard, q.Event == world.AskFirst, len(q.Replies))
			for i := range threads {
				x := threads[i]
				low, high := a.Limits(&x)
				box := table.View(q.Agent).Box(x.Slot)
				x.Residual = [Direct]float32{high[0], 0, -1, -1}
				o := x.residual(&box).Offer
				most := a.Max(x.Slot, Side(table.View(q.Agent), x.Slot), o)
				if high[0] > low[0] && o.Quantity > 1 && most < o.Quantity {
					t.Errorf("day %d: %d units are within the limits, and %d are safe", table.Today(), o.Quantity, most)
				}
				if within++; !x.Heard {
					continue
				}
				x.Residual = [Direct]float32{0, 0, high[2], 0}
				if reply := x.residual(&box); reply.Response == negotiation.Accept && x.Safe < x.Offer.Quantity {
					t.Errorf("day %d: %d units are accepted within the limits, and %d are safe", table.Today(), x.Offer.Quantity, x.Safe)
				}
				if high[2] < 1 {
					refused++
				}
			}
			a.Finish(q.Replies)
		case world.Over:
			if within < 300 || refused < 20 {
				t.Errorf("%d threads, %d with unsafe offers", within, refused)
			}
			return
		}
	}
}

// written is what the layers read of a thread.
func written(t *Thread) []float32 {
	x := make([]float32, ThreadFeatures+Moves*MoveFeatures+FullGoal)
	t.Write(x[:ThreadFeatures], x[ThreadFeatures:ThreadFeatures+Moves*MoveFeatures])
	WriteGoal(t.Goal, t.Lines, x[ThreadFeatures+Moves*MoveFeatures:])
	return x
}

// TestAllocations: answering a question allocates nothing once buffers have grown.
func TestAllocations(t *testing.T) {
	table, places := sit(t, 2, 3, world.DefaultRules(), 20, false, func(rng.Key) world.Agent { return world.Vacant{Sync: true} })
	a, p := NewAgent(Layers{Executor: swayed}), places[0]
	v, n := table.View(p), 0
	for {
		q := table.Ask()
		if q.Agent != p && q.Event < world.Settled {
			continue
		}
		switch q.Event {
		case world.Starts:
			a.Starts(v)
		case world.DayBegins:
			a.DayBegins()
		case world.Agreed:
			a.Agreed(q.Contract)
		case world.Failed:
			a.Failed(q.Negotiation)
		case world.AskFirst, world.AskCounters:
			first := q.Event == world.AskFirst
			if v.Today() >= 4 && !first {
				memory, err := json.Marshal(a.Memory())
				if err != nil {
					t.Fatal(err)
				}
				grown := testing.AllocsPerRun(20, func() {
					for k := range a.Moves {
						a.Moves[k] = a.Moves[k][:min(len(a.Moves[k]), 8)]
					}
					threads := a.Prepare(q.Heard, first, len(q.Replies))
					if err := a.Ask(threads); err != nil {
						t.Fatal(err)
					}
					a.Finish(q.Replies)
				})
				if grown > 0 {
					t.Errorf("day %d: %v allocations", v.Today(), grown)
				}
				if err := json.Unmarshal(memory, a.Memory()); err != nil {
					t.Fatal(err)
				}
				clear(q.Replies)
				n++
			}
			if first {
				a.FirstProposals(q.Replies)
			} else {
				a.CounterAll(q.Heard, q.Replies)
			}
		case world.Over:
			if n < 10 {
				t.Errorf("%d questions were measured", n)
			}
			return
		}
	}
}
