package exporter

import (
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/metrics"
)

// clock is a time that the test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(time.Second)
	return c.at
}

func exporter() *Exporter { return New((&clock{at: time.Unix(1000, 0)}).now) }

// scrape is what Prometheus gets.
func scrape(t *testing.T, e *Exporter) string {
	t.Helper()
	w := httptest.NewRecorder()
	e.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func want(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("missing: %s\nin\n%s", line, text)
		}
	}
}

func TestRun(t *testing.T) {
	e := exporter()
	r := e.Run("first/seed-42")
	if text := scrape(t, e); strings.Contains(text, "first") {
		t.Errorf("a run that has not begun is shown:\n%s", text)
	}
	r.Begin(metrics.Position{EnvSteps: 100, Planned: 1000, TrainSteps: 10, Episodes: 3, Reward: math.NaN()})
	text := scrape(t, e)
	want(t, text, `onnxrl_env_steps_total{run="first/seed-42"} 0`, `onnxrl_run_env_steps{run="first/seed-42"} 100`, `onnxrl_run_env_steps_planned{run="first/seed-42"} 1000`, `onnxrl_run_active{run="first/seed-42"} 1`,
		`onnxrl_run_failures_total{reason="diverged",run="first/seed-42"} 0`, `onnxrl_run_progress_timestamp_seconds{run="first/seed-42"} 1001`)
	if strings.Contains(text, "onnxrl_episode_reward{") {
		t.Error("the reward of no episode is shown")
	}
	r.Progress(metrics.Position{EnvSteps: 164, Planned: 1000, TrainSteps: 12, Episodes: 5, Reward: 21.5})
	var sink metrics.Sink = metrics.Tee(r)
	if err := sink.Scalars(164, map[string]float64{"train/approx_kl": 0.01, "train/entropy": 0.5, "constraint/drawdown/lambda": 2, "replay/size": 64, "rollout/mask_invalid_ratio": 0.25, "train/loss": math.NaN(), "eval/sharpe": math.NaN(), "eval/odd\xff": 1}); err != nil {
		t.Fatal(err)
	}
	var acted metrics.Times
	acted.Add(3 * time.Microsecond)
	acted.Add(time.Microsecond)
	acted.Add(time.Minute)
	r.Spent(map[string]time.Duration{"act": time.Second}, &acted)
	acted.Reset()
	acted.Add(3 * time.Microsecond)
	r.Spent(map[string]time.Duration{"act": time.Second}, &acted)
	text = scrape(t, e)
	want(t, text,
		`onnxrl_env_steps_total{run="first/seed-42"} 64`, `onnxrl_train_steps_total{run="first/seed-42"} 2`, `onnxrl_episodes_total{run="first/seed-42"} 2`, `onnxrl_episode_reward{run="first/seed-42"} 21.5`,
		`onnxrl_policy_kl{run="first/seed-42"} 0.01`, `onnxrl_entropy{run="first/seed-42"} 0.5`, `onnxrl_cost_lambda{constraint="drawdown",run="first/seed-42"} 2`, `onnxrl_replay_size{run="first/seed-42"} 64`,
		`onnxrl_mask_invalid_ratio{run="first/seed-42"} 0.25`, `onnxrl_scalar{run="first/seed-42",tag="train/loss"} NaN`, `onnxrl_scalar{run="first/seed-42",tag="eval/sharpe"} NaN`, "onnxrl_scalar{run=\"first/seed-42\",tag=\"eval/odd\uFFFD\"} 1",
		`onnxrl_nonfinite_values_total{run="first/seed-42"} 1`, `onnxrl_phase_seconds_total{phase="act",run="first/seed-42"} 2`,
		`onnxrl_inference_seconds_bucket{model="first/seed-42",version="",le="1e-06"} 1`, `onnxrl_inference_seconds_bucket{model="first/seed-42",version="",le="5e-06"} 3`, `onnxrl_inference_seconds_bucket{model="first/seed-42",version="",le="10"} 3`,
		`onnxrl_inference_seconds_bucket{model="first/seed-42",version="",le="+Inf"} 4`, `onnxrl_inference_seconds_count{model="first/seed-42",version=""} 4`, "# TYPE onnxrl_env_steps_total counter", "# TYPE onnxrl_policy_kl gauge",
	)
	ppo := e.Run("ppo")
	ppo.Begin(metrics.Position{})
	if err := ppo.Scalars(1, map[string]float64{"train/entropy_loss": -0.75}); err != nil {
		t.Fatal(err)
	}
	text = scrape(t, e)
	want(t, text, `onnxrl_entropy{run="ppo"} 0.75`, `onnxrl_scalar{run="ppo",tag="train/entropy_loss"} -0.75`)
	if strings.Contains(text, `onnxrl_run_env_steps_planned{run="ppo"}`) {
		t.Error("the env steps of what takes none are shown")
	}
	r.End(metrics.FailureDiverged)
	// The next interval of the same member goes on from an ancestor that has come less far.
	again := e.Run("first/seed-42")
	again.Begin(metrics.Position{EnvSteps: 50, Planned: 1000, Reward: math.NaN()})
	again.Progress(metrics.Position{EnvSteps: 60, Planned: 1000, Reward: math.NaN()})
	again.End("")
	want(t, scrape(t, e), `onnxrl_env_steps_total{run="first/seed-42"} 74`, `onnxrl_run_env_steps{run="first/seed-42"} 60`, `onnxrl_run_active{run="first/seed-42"} 0`, `onnxrl_run_failures_total{reason="diverged",run="first/seed-42"} 1`)
}

// Runs that have ended are forgotten in the end, those that go on never.
func TestForgets(t *testing.T) {
	e := exporter()
	e.Run("going on").Begin(metrics.Position{})
	for i := range 3 * keptRuns {
		r := e.Run(fmt.Sprintf("trial-%d", i))
		r.Begin(metrics.Position{})
		r.End("")
	}
	text := scrape(t, e)
	want(t, text, `onnxrl_run_active{run="going on"} 1`, fmt.Sprintf(`onnxrl_run_active{run="trial-%d"} 0`, 3*keptRuns-1))
	// The last one ended after the others were counted.
	if n := strings.Count(text, "\nonnxrl_run_active{"); n != keptRuns+2 {
		t.Errorf("%d runs are shown, expected %d", n, keptRuns+2)
	}
}

func TestSearch(t *testing.T) {
	e := exporter()
	s := e.Search("pop/experts", 2, 20)
	want(t, scrape(t, e), `onnxrl_population_generation{search="pop/experts"} 2`, `onnxrl_population_generations_planned{search="pop/experts"} 20`, `onnxrl_population_generation_timestamp_seconds{search="pop/experts"} 1001`, `onnxrl_population_intervals_total{result="failed",search="pop/experts"} 0`)
	s.Begins("clone")
	s.Interval(metrics.IntervalRolledBack, 20*time.Second)
	s.Generation(3, 1.5, 0.25, []metrics.Member{{Score: 1.5, Distance: 0.25, Hyper: map[string]float64{"agent.gamma": 0.99}}, {Score: math.NaN(), Distance: math.NaN()}})
	e.Search("pop/router", 0, 5)
	text := scrape(t, e)
	want(t, text, `onnxrl_population_generation{search="pop/experts"} 3`, `onnxrl_mapd{search="pop/experts"} 0.25`, `onnxrl_population_best_score{search="pop/experts"} 1.5`, `onnxrl_member_score{member="0",search="pop/experts"} 1.5`, `onnxrl_member_distance{member="0",search="pop/experts"} 0.25`,
		`onnxrl_member_hyperparameter{member="0",path="agent.gamma",search="pop/experts"} 0.99`, `onnxrl_population_intervals_total{result="rolled_back",search="pop/experts"} 1`, `onnxrl_population_takes_total{action="clone",search="pop/experts"} 1`,
		`onnxrl_population_interval_seconds_bucket{search="pop/experts",le="30"} 1`, `onnxrl_population_interval_seconds_bucket{search="pop/experts",le="10"} 0`, `onnxrl_population_generation{search="pop/router"} 0`)
	if strings.Contains(text, `member="1"`) {
		t.Errorf("a member without score is shown:\n%s", text)
	}
	s.Generation(4, math.NaN(), math.NaN(), []metrics.Member{{Score: math.NaN(), Distance: math.NaN()}})
	if text = scrape(t, e); strings.Contains(text, "onnxrl_mapd{") || strings.Contains(text, `onnxrl_member_score{member="0"`) {
		t.Errorf("what is not known any more is shown:\n%s", text)
	}
}

// Scrapes read while runs go on.
func TestTogether(t *testing.T) {
	e := exporter()
	e.ShowProcess()
	var w sync.WaitGroup
	for i := range 4 {
		w.Go(func() {
			r, s := e.Run(fmt.Sprint("run-", i)), e.Search(fmt.Sprint("search-", i), 0, 9)
			r.Begin(metrics.Position{Planned: 500})
			var times metrics.Times
			for n := range 500 {
				r.Progress(metrics.Position{EnvSteps: int64(n + 1), Planned: 500})
				times.Reset()
				times.Add(time.Millisecond)
				r.Spent(map[string]time.Duration{"act": time.Millisecond}, &times)
				if err := r.Scalars(int64(n), map[string]float64{"train/loss": float64(n)}); err != nil {
					t.Error(err)
				}
				s.Generation(n, 1, 1, []metrics.Member{{Score: 1, Distance: 1}})
			}
			r.End("")
		})
	}
	for range 20 {
		scrape(t, e)
	}
	w.Wait()
	text := scrape(t, e)
	want(t, text, `onnxrl_env_steps_total{run="run-3"} 500`, `onnxrl_inference_seconds_count{model="run-0",version=""} 500`, "# TYPE go_goroutines gauge", `onnxrl_scalar{run="run-1",tag="train/loss"} 499`)
}

// The cost of each learner step to a training.
func TestProgressAllocatesNothing(t *testing.T) {
	r := exporter().Run("x")
	r.Begin(metrics.Position{})
	var times metrics.Times
	times.Add(time.Second)
	at := metrics.Position{}
	if n := testing.AllocsPerRun(100, func() {
		at.EnvSteps++
		r.Progress(at)
		times.Add(time.Microsecond)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkProgress(b *testing.B) {
	r := New(time.Now).Run("x")
	r.Begin(metrics.Position{})
	var times metrics.Times
	at := metrics.Position{}
	b.ReportAllocs()
	for b.Loop() {
		at.EnvSteps++
		r.Progress(at)
		times.Add(12 * time.Microsecond)
	}
}

// A metric is made as the table says, or not at all.
func TestMade(t *testing.T) {
	e := exporter()
	e.Gauges(metrics.Killed).WithLabelValues().Set(1)
	e.Counters(metrics.Orders).WithLabelValues("buy", "rejected", "limit").Inc()
	e.Histograms(metrics.DecisionSeconds).WithLabelValues().Observe(40e-6)
	want(t, scrape(t, e), "onnxrl_killed 1", `onnxrl_orders_total{reason="limit",side="buy",status="rejected"} 1`, `onnxrl_decision_seconds_bucket{le="5e-05"} 1`, `onnxrl_decision_seconds_bucket{le="2.5e-05"} 0`)
	path := filepath.Join(t.TempDir(), "x.prom")
	if err := e.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "onnxrl_killed 1\n") {
		t.Errorf("%s %v", text, err)
	}
	for _, make := range []func(){func() { e.Gauges(metrics.Orders) }, func() { e.Counters(metrics.Killed) }, func() { e.Histograms(metrics.Killed) }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a metric of another type was made")
				}
			}()
			make()
		}()
	}
}
