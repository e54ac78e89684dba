package exporter

import (
	"math"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/onnxrl/onnxrl/runtime/metrics"
)

// searches are the metrics of all searches of a process.
type searches struct {
	generation, planned, ended, mapd, best *prometheus.GaugeVec
	score, distance, hyper                 *prometheus.GaugeVec
	intervals, takes                       *prometheus.CounterVec
	seconds                                *prometheus.HistogramVec
}

// Search is what a population whose members evolve tells.
type Search struct {
	of   *searches
	now  func() time.Time
	name string
}

// Search implements metrics.Watcher: it begins a search under a name, of which so many generations are finished and planned.
func (e *Exporter) Search(name string, finished, planned int) metrics.SearchWatcher {
	e.addSearches.Do(func() {
		e.searches = &searches{
			generation: e.Gauges(metrics.Generation), planned: e.Gauges(metrics.GenerationsPlanned), ended: e.Gauges(metrics.GenerationTime), mapd: e.Gauges(metrics.MAPD), best: e.Gauges(metrics.BestScore),
			score: e.Gauges(metrics.MemberScore), distance: e.Gauges(metrics.MemberDistance), hyper: e.Gauges(metrics.MemberHyper),
			intervals: e.Counters(metrics.Intervals), takes: e.Counters(metrics.Takes), seconds: e.Histograms(metrics.IntervalSeconds),
		}
	})
	s := &Search{e.searches, e.now, name}
	for _, result := range metrics.IntervalResults() {
		s.of.intervals.WithLabelValues(name, result)
	}
	s.of.planned.WithLabelValues(name).Set(float64(planned))
	s.finished(finished)
	return s
}

func (s *Search) finished(generations int) {
	s.of.generation.WithLabelValues(s.name).Set(float64(generations))
	s.of.ended.WithLabelValues(s.name).Set(float64(s.now().UnixMilli()) / 1e3)
}

// Generation tells that so many generations are finished, and of the newest its best score, its
// mean action pairwise distance and its members. What is NaN is not shown.
func (s *Search) Generation(finished int, best, mapd float64, members []metrics.Member) {
	s.finished(finished)
	show(s.of.best, best, s.name)
	show(s.of.mapd, mapd, s.name)
	for i, m := range members {
		member := strconv.Itoa(i)
		show(s.of.score, m.Score, s.name, member)
		show(s.of.distance, m.Distance, s.name, member)
		for path, v := range m.Hyper {
			show(s.of.hyper, v, s.name, member, path)
		}
	}
}

// show sets a gauge, or removes what is not known.
func show(g *prometheus.GaugeVec, v float64, labels ...string) {
	if math.IsNaN(v) {
		g.DeleteLabelValues(labels...)
		return
	}
	g.WithLabelValues(labels...).Set(v)
}

// Begins tells what a member begins a generation with.
func (s *Search) Begins(action string) {
	s.of.takes.WithLabelValues(s.name, action).Inc()
}

// Interval tells how the interval of a member ended, one of metrics.IntervalResults, and how long it
// took.
func (s *Search) Interval(result string, took time.Duration) {
	s.of.intervals.WithLabelValues(s.name, result).Inc()
	s.of.seconds.WithLabelValues(s.name).Observe(took.Seconds())
}
