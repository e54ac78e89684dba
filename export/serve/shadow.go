package serve

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// maxShadowJobs bounds the copies that wait to be run in the shadow; those beyond are dropped and
// counted.
const maxShadowJobs = 64

// shadower runs copies of a model's requests on other versions, one at a time, in a goroutine that
// exists while there are shadows.
type shadower struct {
	mu   sync.Mutex
	jobs chan shadowJob
}

// shadowJob is an answered request. It holds a reference to the version that is to answer it as
// well.
type shadowJob struct {
	on    *version
	in    []Tensor
	out   []Tensor
	infer time.Duration
	into  *comparison
}

// comparison is [Comparison] while it grows.
type comparison struct {
	mu sync.Mutex
	c  Comparison
}

func (c *comparison) load() Comparison {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.c
}

func (c *comparison) count(n *uint64) {
	c.mu.Lock()
	*n++
	c.mu.Unlock()
}

// against returns the comparison with a version, made at first use.
func (s *counters) against(version string) *comparison {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.shadows {
		if c.c.Shadow == version {
			return c
		}
	}
	c := &comparison{c: Comparison{Shadow: version}}
	s.shadows = append(s.shadows, c)
	return c
}

// follow starts or stops the goroutine as the table has shadows or not. What has been copied is
// still run; it holds its version.
func (s *shadower) follow(t *table) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch want := len(t.shadows) > 0; {
	case want && s.jobs == nil:
		s.jobs = make(chan shadowJob, maxShadowJobs)
		go runAll(s.jobs)
	case !want && s.jobs != nil:
		close(s.jobs)
		s.jobs = nil
	}
}

func runAll(jobs <-chan shadowJob) {
	for j := range jobs {
		j.run()
	}
}

// copyTo sends an answered request to the shadows of its version. Requests in a sequence with state
// are not shadowed: the shadow would need a state of its own from the first step on.
func (m *model) copyTo(t *table, v *version, c *call, req *Request) {
	if c.seq != nil {
		return
	}
	place := 0.0
	if req.ID == "" {
		place = spread(m.copied.Add(1))
	} else {
		place = placeOf(req.ID, "shadow")
	}
	for _, target := range t.shadows {
		if target.v == v || place >= target.share {
			continue
		}
		m.shadow.offer(v, target.v, c, req)
	}
}

func (s *shadower) offer(by, on *version, c *call, req *Request) {
	into := by.stats.against(on.name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs == nil {
		return // the shadows have just been taken away
	}
	if len(s.jobs) == cap(s.jobs) || !on.acquire() {
		into.count(&into.c.Dropped)
		return
	}
	j := shadowJob{on: on, into: into, infer: c.timing.Infer}
	for _, t := range req.Inputs {
		j.in = append(j.in, Tensor{t.Name, t.Value.Clone()})
	}
	for _, t := range c.resp.Outputs {
		j.out = append(j.out, Tensor{t.Name, t.Value.Clone()})
	}
	s.jobs <- j // only this function sends, and it holds mu
}

func (j *shadowJob) run() {
	defer j.on.release()
	c := calls.Get().(*call)
	c.ctx = context.Background()
	c.begin = j.on.model.server.clock.Now()
	req := &Request{Inputs: j.in}
	for _, t := range j.out {
		req.Outputs = append(req.Outputs, t.Name)
	}
	resp := &Response{}
	c.resp = resp
	err := j.on.plan.take(c, req, false)
	if err == nil {
		err = j.on.do(c)
	}
	infer := c.timing.Infer
	batch := j.on.plan.batch
	c.recycle()
	if err != nil {
		j.into.count(&j.into.c.Failed)
		return
	}
	j.into.compare(j.out, resp.Outputs, batch, j.infer, infer)
}

// compare adds two answers to the same request.
func (c *comparison) compare(primary, shadow []Tensor, batch bool, primaryInfer, shadowInfer time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rows := 1
	if batch && len(primary) > 0 {
		rows = primary[0].Value.Shape()[0]
	}
	differ := make([]bool, rows)
	for k, a := range primary {
		b := shadow[k].Value
		if a.Value.DType() != b.DType() || !slices.Equal(a.Value.Shape(), b.Shape()) {
			for r := range differ {
				differ[r] = true
			}
			continue
		}
		c.c.MaxDelta = max(c.c.MaxDelta, delta(a.Value, b))
		if a.Name == "action" || !a.Value.DType().IsFloat() {
			for r := range differ {
				x, y := a.Value, b
				if batch {
					x, y = x.Rows(r, r+1), y.Rows(r, r+1)
				}
				differ[r] = differ[r] || agree(y, x, 1e-6) != nil
			}
		}
	}
	c.c.Compared++
	c.c.Rows += uint64(rows)
	for _, d := range differ {
		c.c.DifferentActions += uint64(btoi(d))
	}
	c.c.PrimaryInfer += primaryInfer
	c.c.ShadowInfer += shadowInfer
}

func delta(a, b *tensor.Tensor) float64 {
	switch a.DType() {
	case tensor.Float32:
		return maxDelta(a.Float32s(), b.Float32s())
	case tensor.Float64:
		return maxDelta(a.Float64s(), b.Float64s())
	case tensor.Float16:
		return maxDelta(halfs(a, tensor.Float16ToFloat32), halfs(b, tensor.Float16ToFloat32))
	case tensor.BFloat16:
		return maxDelta(halfs(a, tensor.BFloat16ToFloat32), halfs(b, tensor.BFloat16ToFloat32))
	}
	return 0
}
