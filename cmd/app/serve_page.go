package app

import (
	"math"
	"time"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/oip"
	"github.com/onnxrl/onnxrl/export/serve/page"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// pageSource shows a server on its page.
type pageSource struct {
	service serve.Service
	version string
	engine  string
	began   time.Time
	now     func() time.Time
}

// pageBounds are the upper ends of the page's latency buckets in microseconds: eight for each
// factor of ten, from 1 µs to 10 s.
var pageBounds = func() []float64 {
	var list []float64
	for i := range 57 {
		list = append(list, math.Pow(10, float64(i)/8))
	}
	return list
}()

// Snapshot implements page.Source.
func (p *pageSource) Snapshot() page.Snapshot {
	s := page.Snapshot{
		Server: "onnxrl", Version: p.version, Engine: p.engine, UptimeSeconds: p.now().Sub(p.began).Seconds(), BoundsUS: pageBounds, Models: []page.Model{},
	}
	stats := map[[2]string]serve.Statistics{}
	// Statistics of everything fail for nothing that the page could say more about than its lines
	// do.
	list, _ := p.service.Statistics("", "")
	for _, st := range list {
		stats[[2]string{st.Model, st.Version}] = st
	}
	for _, m := range p.service.Index(false) {
		if n := len(s.Models); n == 0 || s.Models[n-1].Name != m.Name {
			s.Models = append(s.Models, page.Model{Name: m.Name})
		}
		at := &s.Models[len(s.Models)-1]
		at.Versions = append(at.Versions, page.Version{
			Version: m.Version, Aliases: append([]string{}, m.Aliases...), State: string(m.State), Reason: m.Reason, Default: m.Default, Stats: pageStats(stats[[2]string{m.Name, m.Version}]),
		})
	}
	return s
}

func pageStats(st serve.Statistics) page.Stats {
	s := page.Stats{
		Requests: st.Success.Count + st.Failed.Count, Failures: st.Failed.Count, Rows: st.Inferences, Executions: st.Executions, Pending: st.Pending,
		Latency: make([]uint64, len(pageBounds)+1),
	}
	at := 0
	for i, bound := range st.Latency.Bounds {
		for us := float64(bound) / float64(time.Microsecond); at < len(pageBounds) && pageBounds[at] < us; at++ {
		}
		s.Latency[at] += st.Latency.Counts[i]
	}
	return s
}

// Describe implements page.Source.
func (p *pageSource) Describe(model, version string) (page.Description, error) {
	m, err := p.service.Metadata(model, version)
	if err != nil {
		return page.Description{}, err
	}
	known := map[string]artifact.Port{}
	d := page.Description{}
	if m.Manifest != nil {
		d.Description = m.Manifest.Description
		for _, q := range append(append([]artifact.Port{}, m.Manifest.Inputs...), m.Manifest.Outputs...) {
			known[q.Name] = q
		}
	}
	d.Inputs, d.Outputs = pagePorts(m.Inputs, known), pagePorts(m.Outputs, known)
	golden, err := p.service.Golden(model, version)
	if err != nil {
		return page.Description{}, err
	}
	d.Sample = pageSample(m, golden)
	return d, nil
}

func pagePorts(ports []serve.Port, known map[string]artifact.Port) []page.Port {
	list := []page.Port{}
	for _, p := range ports {
		if p.Implicit {
			// Requests without a sequence may leave it out only where the server keeps it; the form
			// sends what it must.
			continue
		}
		q := known[p.Name]
		out := page.Port{Name: p.Name, Datatype: oip.Datatype(p.DType), Shape: append([]int{}, p.Shape...), Axes: q.Axes, Description: q.Description}
		if q.Bounds != nil {
			out.Low, out.High = finiteBounds(q.Bounds.Low), finiteBounds(q.Bounds.High)
		}
		list = append(list, out)
	}
	return list
}

// finiteBounds has nil for infinities, which JSON has no numbers for.
func finiteBounds(bounds []artifact.Bound) []*float64 {
	var list []*float64
	for _, b := range bounds {
		v := float64(b)
		if math.IsInf(v, 0) || math.IsNaN(v) {
			list = append(list, nil)
		} else {
			list = append(list, &v)
		}
	}
	return list
}

// sampleSize is the most elements of a sample.
const sampleSize = 1 << 16

// pageSample is the first row of the golden inputs, nil where there is none or where it is not of
// numbers.
func pageSample(m serve.Metadata, g *artifact.Golden) map[string]page.Tensor {
	if g == nil || m.MaxBatch == 0 {
		return nil
	}
	sample := map[string]page.Tensor{}
	for _, p := range m.Inputs {
		if p.Implicit {
			continue
		}
		t := g.Inputs[p.Name]
		if t == nil || len(t.Shape()) == 0 || t.Shape()[0] == 0 || t.Len()/t.Shape()[0] > sampleSize {
			return nil
		}
		data := pageData(t.Rows(0, 1))
		if data == nil {
			return nil
		}
		sample[p.Name] = page.Tensor{Shape: append([]int{1}, t.Shape()[1:]...), Data: data}
	}
	return sample
}

// pageData is a tensor as JSON writes it, nil where it cannot. Numbers that JSON does not have,
// such as the NaN of features that are not known, are words.
func pageData(t *tensor.Tensor) any {
	switch t.DType() {
	case tensor.Float32:
		return pageFloats(t.Float32s())
	case tensor.Float64:
		return pageFloats(t.Float64s())
	case tensor.Int64:
		return t.Int64s()
	case tensor.Int32:
		return t.Int32s()
	case tensor.Bool:
		return t.Bools()
	}
	return nil
}

func pageFloats[T float32 | float64](x []T) any {
	list := make([]any, len(x))
	for i, v := range x {
		switch {
		case v != v:
			list[i] = "NaN"
		case math.IsInf(float64(v), 1):
			list[i] = "Infinity"
		case math.IsInf(float64(v), -1):
			list[i] = "-Infinity"
		default:
			list[i] = v
		}
	}
	return list
}

func newPageSource(s serve.Service, engine string) *pageSource {
	now := time.Now
	return &pageSource{service: s, version: version(), engine: engine, began: now(), now: now}
}
