package capacity

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// TestStation: those who come at random to one server that takes a constant time (M/D/1), or a
// random one (M/M/1), wait as the formulas of Pollaczek and Khinchine say; of several servers
// (M/M/c) by Erlang's.
func TestStation(t *testing.T) {
	const mean, n = 0.01, 400_000
	for _, c := range []struct {
		name    string
		servers int
		load    float64
		random  bool
		queue   float64
	}{
		{"M/D/1", 1, 0.5, false, 0.25},
		{"M/D/1", 1, 0.8, false, 1.6},
		{"M/M/1", 1, 0.5, true, 0.5},
		{"M/M/1", 1, 0.8, true, 3.2},
		// Erlang C for 2 servers at a load of 0.8 each: P(wait) = 0.7111.
		{"M/M/2", 2, 0.8, true, 2.844},
	}[:longtest.Cases(t, 5, 2)] {
		var k clock
		s := &station{clock: &k, servers: c.servers}
		if c.random {
			s.draws = rng.New(1).Split("served").Stream()
		}
		come := rng.New(1).Split("come").Stream()
		left, gone := n, 0
		var next func()
		next = func() {
			s.use(mean, func() { gone++ })
			if left--; left > 0 {
				k.after(come.Exp()*mean/c.load/float64(c.servers), next)
			}
		}
		next()
		k.run(func() bool { return false })
		u := s.usage()
		if gone != n || math.Abs(u.Utilisation/c.load-1) > 0.02 || math.Abs(u.Queue/c.queue-1) > 0.06 {
			t.Errorf("%s, load %g: %d served, %+v, expected a queue of %g", c.name, c.load, gone, u, c.queue)
		}
	}
}

func play(t *testing.T, c Costs, s Scenario) Result {
	t.Helper()
	r, err := Simulate(c, s)
	if err != nil {
		t.Fatal(err)
	}
	if r.Done != s.Tasks {
		t.Fatalf("%d tasks done, expected %d", r.Done, s.Tasks)
	}
	return r
}

func costs(t *testing.T) Costs {
	t.Helper()
	c, err := Measured()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTrips: a task alone waits for the network as often as its messages say, on each way.
func TestTrips(t *testing.T) {
	s := Defaults(1, 1)
	s.Tasks, s.Run.Files, s.Checkpoint.Files, s.Transfers, s.Network = 1, 6, 3, 4, Network{}
	base := play(t, costs(t), s).Makespan
	const d = 0.25
	for _, c := range []struct {
		name string
		at   *float64
		want float64
	}{
		// It is handed over, and its result comes back.
		{"program to server", &s.Network.Program, 2},
		// Two workflow tasks and the activity come, and are answered.
		{"worker to server", &s.Network.Worker, 6},
		// Three files at once are asked for and written, then the list; later the list is read, and
		// six files, four at once.
		{"program to storage", &s.Network.ProgramStorage, 2*2 + 2*2 + 2 + 2*2},
		// The list, three files; six files are asked for and written, four at once, then the list.
		{"worker to storage", &s.Network.WorkerStorage, 2 + 2 + 2*2*2 + 2*2},
	} {
		*c.at = d
		if got := (play(t, costs(t), s).Makespan - base) / d; math.Abs(got-c.want) > 0.1 {
			t.Errorf("%s: %.2f ways, expected %g", c.name, got, c.want)
		}
		*c.at = 0
	}
}

// TestSimulate: the same again is the same; more latency never takes less time, nor do fewer
// workers; and a run is never faster than its training and its most used station.
func TestSimulate(t *testing.T) {
	s := Defaults(8, 5)
	s.Random, s.Seed, s.Generations = true, 3, 3
	a, b := play(t, costs(t), s), play(t, costs(t), s)
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%+v, then %+v", a, b)
	}
	s.Seed = 4
	if b := play(t, costs(t), s); b.Makespan == a.Makespan {
		t.Error("another seed is the same")
	}
	s.Random = false
	last := 0.0
	for _, d := range []float64{0, 0.001, 0.005, 0.02, 0.05, 0.1} {
		s.Network = Network{d, d, d, d}
		r := play(t, costs(t), s)
		if r.Makespan < last || r.Makespan < 3*5 || r.First.Utilisation > 1+1e-9 {
			t.Errorf("latency %g: %+v after %g s", d, r, last)
		}
		last = r.Makespan
	}
	s = Defaults(1, 5)
	s.Tasks = 16
	last = math.Inf(1)
	for _, n := range []int{1, 2, 4, 8, 16} {
		s.Workers = n
		r := play(t, costs(t), s)
		if r.Makespan > last {
			t.Errorf("%d workers: %g s, with fewer %g", n, r.Makespan, last)
		}
		last = r.Makespan
	}
	if last > 2*5 {
		t.Errorf("16 workers take %g s", last)
	}
}

// TestBeats: heartbeats and questions are as many as time and period say.
func TestBeats(t *testing.T) {
	s := Defaults(4, 60)
	s.Tasks, s.Beat, s.Poll, s.Save = 4, 2, 5, 1000
	r := play(t, costs(t), s)
	if r.Beats < 4*29 || r.Beats > 4*31 || r.Asked < 4*12 || r.Asked > 4*13 {
		t.Errorf("%+v", r)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		do   func(c *Costs, s *Scenario)
		says string
	}{
		{func(_ *Costs, s *Scenario) { s.Workers = 0 }, "workers is 0, expected at least 1"},
		{func(_ *Costs, s *Scenario) { s.Generations = 2 }, "3 tasks are no multiple of 2"},
		{func(_ *Costs, s *Scenario) { s.Beat = 0 }, "beat_s"},
		{func(_ *Costs, s *Scenario) { s.Train = math.NaN() }, "train_s"},
		{func(c *Costs, _ *Scenario) { c.Read.Answer = -1 }, "read: expected"},
		{func(c *Costs, _ *Scenario) { c.Rest = -1 }, "rest_s"},
	} {
		k, s := costs(t), Defaults(1, 1)
		c.do(&k, &s)
		if _, err := Simulate(k, s); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, expected %q", err, c.says)
		}
	}
	if _, err := parse("x.json", []byte(`{"strat": {}}`)); err == nil || !strings.Contains(err.Error(), "x.json") {
		t.Error(err)
	}
}

// TestPace: few tasks beat at the given interval, many no oftener than a server stands, and
// who is silent for four beats is lost, no sooner.
func TestPace(t *testing.T) {
	for _, c := range []struct {
		beat, silence time.Duration
		tasks         int
		every, lost   time.Duration
	}{
		{time.Second, 0, 1, time.Second, Silence},
		{time.Second, 0, 50, time.Second, Silence},
		{time.Second, 0, 200, 4 * time.Second, Silence},
		{time.Second, 0, 1000, 20 * time.Second, 80 * time.Second},
		{time.Second, 8 * time.Second, 1000, 2 * time.Second, 8 * time.Second},
		{time.Second, 2 * time.Second, 1000, time.Second, 2 * time.Second},
	} {
		if every, lost := Pace(c.beat, c.silence, c.tasks); every != c.every || lost != c.lost {
			t.Errorf("%+v: %v, %v", c, every, lost)
		}
	}
}

// TestScale: hundreds of workers use a slow server up, heartbeats that do not keep pace do so
// sooner, and longer intervals and a server that writes more at once help.
func TestScale(t *testing.T) {
	c := costs(t)
	for _, k := range []*Call{&c.Start, &c.Schedule, &c.Finish, &c.Complete, &c.Beat, &c.Describe} {
		k.Service, k.Background, k.Answer, k.Deliver = 3*k.Service, 3*k.Background, 3*k.Answer, 3*k.Deliver
	}
	r, err := Scale(c, []float64{15, 30}, []int{1, 600}, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := func(x Row) float64 { return x.Result.Efficiency }
	if len(r.Rows) != 4 || e(r.Rows[0]) < e(r.Rows[1]) || e(r.Rows[1]) > e(r.Rows[3]) || r.Rows[1].Result.First.Station != "server" {
		t.Errorf("%+v", r.Rows)
	}
	if len(r.Limits) != 2 || r.Limits[0].Workers >= r.Limits[1].Workers {
		t.Errorf("%+v", r.Limits)
	}
	if every, four := r.Changes[0], r.Changes[2]; e(every) > e(r.Rows[3])-0.05 || every.Result.First.Utilisation < 0.9 || e(four) < e(r.Rows[3]) {
		t.Errorf("%+v", r.Changes)
	}
	var text strings.Builder
	if err := r.Print(&text); err != nil || !strings.Contains(text.String(), "intervals of 15 s: server, by ") || !strings.Contains(text.String(), changes[0].name) {
		t.Errorf("%v\n%s", err, &text)
	}
	if _, err := Scale(costs(t), nil, []int{1}, nil); err == nil {
		t.Error("no lengths are taken")
	}
}
