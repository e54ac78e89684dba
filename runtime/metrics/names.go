package metrics

import "slices"

// Prefix begins the names of all metrics but Triton's, which begin with TritonPrefix.
const (
	Prefix       = "onnxrl_"
	TritonPrefix = "nv_inference_"
)

// Type is what a metric's values are.
type Type string

// The types of Prometheus that there are here.
const (
	// Counter only grows, until its process ends.
	Counter Type = "counter"
	// Gauge goes up and down.
	Gauge Type = "gauge"
	// Histogram counts observations in buckets.
	Histogram Type = "histogram"
)

// Part is the part of the program that a metric is of.
type Part string

// The parts, in the order of the documentation.
const (
	Training   Part = "training"
	Population Part = "population"
	Serving    Part = "serving"
	Trading    Part = "trading"
)

// Parts lists the parts.
func Parts() []Part { return []Part{Training, Population, Serving, Trading} }

// Metric is a line of the table.
type Metric struct {
	Name string
	Type Type
	Part Part
	Help string
	// Labels are the names of the labels, in the order in which code gives their values.
	Labels []string
	// Buckets are the upper bounds of a histogram's buckets, ascending; +Inf is not among them.
	Buckets []float64
	// Tag is the tag whose value a gauge has; where it has a star, the part of
	// the tag that the star stands for is the value of the last label. Empty for none.
	Tag string
	// Negated is a tag that has the negative of the value, for runs that do not record Tag.
	Negated string
}

var table []Metric

// All returns the table, part by part.
func All() []Metric {
	var list []Metric
	for _, p := range Parts() {
		for _, m := range table {
			if m.Part == p {
				list = append(list, m)
			}
		}
	}
	return list
}

func define(m Metric, labels ...string) Metric {
	m.Labels = slices.Clip(labels)
	table = append(table, m)
	return m
}

func counter(p Part, name, help string, labels ...string) Metric {
	return define(Metric{Name: name, Type: Counter, Part: p, Help: help}, labels...)
}

func gauge(p Part, name, help string, labels ...string) Metric {
	return define(Metric{Name: name, Type: Gauge, Part: p, Help: help}, labels...)
}

// tagged is a gauge that has the value of a tag of a run.
func tagged(tag, name, help string, labels ...string) Metric {
	return define(Metric{Name: name, Type: Gauge, Part: Training, Help: help, Tag: tag}, labels...)
}

// negated is the newest line of the table with a tag that has the negative of its value.
func negated(tag string, m Metric) Metric {
	m.Negated = tag
	table[len(table)-1] = m
	return m
}

func buckets(p Part, name, help string, buckets []float64, labels ...string) Metric {
	return define(Metric{Name: name, Type: Histogram, Part: p, Help: help, Buckets: buckets}, labels...)
}

// Bounds of histograms, three for each power of ten: latencies are of 1 µs to 10 s, and intervals
// of training of 1 s to a day.
var (
	latencies = []float64{1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 1e-1, 2.5e-1, 5e-1, 1, 2.5, 5, 10}
	intervals = []float64{1, 2.5, 5, 10, 30, 60, 150, 300, 600, 1800, 3600, 7200, 21600, 86400}
	rows      = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}
)
