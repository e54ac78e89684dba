package exporter

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/onnxrl/onnxrl/runtime/metrics"
)

// keptRuns is how many runs that have ended are shown.
const keptRuns = 64

// runs collects what all runs of a process tell.
type runs struct {
	mu   sync.Mutex
	list map[string]*Run
}

// Run implements metrics.Watcher. It returns the run of a name, which Begin begins: the one that has begun
// under that name before, whose counters go on, or a new one. Two that go on at once need names of
// their own.
func (e *Exporter) Run(name string) metrics.RunWatcher {
	e.addRuns.Do(func() {
		e.runs = &runs{list: map[string]*Run{}}
		e.Register(e.runs)
	})
	e.runs.mu.Lock()
	defer e.runs.mu.Unlock()
	if r := e.runs.list[name]; r != nil {
		return r
	}
	return &Run{name: name, of: e.runs, now: e.now, failures: map[string]uint64{}, scalars: map[string]float64{}, phases: map[string]time.Duration{}}
}

// begin shows a run.
func (l *runs) begin(r *Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list[r.name] = r
	l.forget()
}

// forget drops the oldest runs that have ended, beyond those that are kept.
func (l *runs) forget() {
	type old struct {
		name string
		at   int64
	}
	var ended []old
	for name, r := range l.list {
		if at, over := r.over(); over {
			ended = append(ended, old{name, at.UnixNano()})
		}
	}
	if len(ended) <= keptRuns {
		return
	}
	slices.SortFunc(ended, func(a, b old) int { return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.name, b.name)) })
	for _, o := range ended[:len(ended)-keptRuns] {
		delete(l.list, o.name)
	}
}

// tagged are the gauges that have the value of a tag.
var tagged = func() (list []metrics.Metric) {
	for _, m := range metrics.All() {
		if m.Tag != "" {
			list = append(list, m)
		}
	}
	return list
}()

// named returns the gauge that has the value of a tag, and what the star of its tag stands for.
func named(tag string) (m metrics.Metric, star string, ok bool) {
	for _, m := range tagged {
		before, after, wild := strings.Cut(m.Tag, "*")
		switch {
		case !wild && tag == m.Tag:
			return m, "", true
		case wild && len(tag) > len(before)+len(after) && strings.HasPrefix(tag, before) && strings.HasSuffix(tag, after):
			return m, tag[len(before) : len(tag)-len(after)], true
		}
	}
	return metrics.Metric{}, "", false
}

// descriptions of what runs tell.
var (
	runMetrics = append(slices.Clone(tagged), metrics.EnvSteps, metrics.TrainSteps, metrics.Episodes, metrics.RunEnvSteps, metrics.RunEnvStepsPlanned, metrics.RunActive, metrics.RunProgress, metrics.RunFailures, metrics.NonFinite, metrics.EpisodeReward, metrics.Scalar, metrics.PhaseSeconds, metrics.Inference)
	runDescs   = func() map[string]*prometheus.Desc {
		m := map[string]*prometheus.Desc{}
		for _, x := range runMetrics {
			m[x.Name] = Desc(x)
		}
		return m
	}()
)

// Describe implements prometheus.Collector.
func (l *runs) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range runDescs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (l *runs) Collect(ch chan<- prometheus.Metric) {
	l.mu.Lock()
	list := make([]*Run, 0, len(l.list))
	for _, r := range l.list {
		list = append(list, r.snapshot())
	}
	l.mu.Unlock()
	for _, r := range list {
		r.collect(ch)
	}
}

// collect tells all series of a run that does not change.
func (r *Run) collect(ch chan<- prometheus.Metric) {
	send := func(m metrics.Metric, v float64, labels ...string) {
		kind := prometheus.GaugeValue
		if m.Type == metrics.Counter {
			kind = prometheus.CounterValue
		}
		ch <- prometheus.MustNewConstMetric(runDescs[m.Name], kind, v, append([]string{r.name}, labels...)...)
	}
	send(metrics.EnvSteps, float64(r.taken.EnvSteps))
	send(metrics.TrainSteps, float64(r.taken.TrainSteps))
	send(metrics.Episodes, float64(r.taken.Episodes))
	if r.position.Planned > 0 {
		send(metrics.RunEnvSteps, float64(r.position.EnvSteps))
		send(metrics.RunEnvStepsPlanned, float64(r.position.Planned))
	}
	active := 1.0
	if r.ended {
		active = 0
	}
	send(metrics.RunActive, active)
	send(metrics.RunProgress, float64(r.at.UnixMilli())/1e3)
	send(metrics.NonFinite, float64(r.nonFinite))
	if !math.IsNaN(r.position.Reward) {
		send(metrics.EpisodeReward, r.position.Reward)
	}
	for _, reason := range metrics.FailureReasons() {
		send(metrics.RunFailures, float64(r.failures[reason]), reason)
	}
	for tag, v := range r.scalars {
		m, star, ok := named(tag)
		switch {
		case !ok:
			send(metrics.Scalar, v, strings.ToValidUTF8(tag, "\uFFFD"))
		case star != "":
			send(m, v, strings.ToValidUTF8(star, "\uFFFD"))
		default:
			send(m, v)
		}
	}
	for _, m := range tagged {
		if _, told := r.scalars[m.Tag]; told || m.Negated == "" {
			continue
		}
		if v, ok := r.scalars[m.Negated]; ok {
			send(m, -v)
		}
	}
	for phase, d := range r.phases {
		send(metrics.PhaseSeconds, d.Seconds(), phase)
	}
	if r.inference.Counts != nil {
		ch <- histogram(&r.inference, runDescs[metrics.Inference.Name], r.name, "")
	}
}

// histogram returns the metric of durations.
func histogram(t *metrics.Times, d *prometheus.Desc, labels ...string) prometheus.Metric {
	cumulative, n := map[float64]uint64{}, uint64(0)
	for i, le := range metrics.Inference.Buckets {
		n += t.Counts[i]
		cumulative[le] = n
	}
	return prometheus.MustNewConstHistogram(d, n+t.Counts[len(t.Counts)-1], t.Sum.Seconds(), cumulative, labels...)
}
