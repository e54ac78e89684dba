package offpolicy

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/constraint"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// Sharing says what the transitions of other policies count for, where several policies share a
// replay: min(clip_rho, ρ), with ρ = π(a|s)/μ(a|s) of this policy and of the one that acted. Its
// own count 1, as they do in a replay of its own.
type Sharing struct {
	// ClipRho (ρ̄) bounds the importance weights.
	ClipRho float64 `yaml:"clip_rho"`
}

// SetDefaults implements configs.Defaulter.
func (c *Sharing) SetDefaults() { *c = Sharing{ClipRho: 1} }

// Validate implements configs.Validator.
func (c Sharing) Validate() error {
	var p configs.Problems
	p.Positive("clip_rho", c.ClipRho)
	return p.Err()
}

// LayoutOf returns the layout of the transitions that actor-critics record in environments of a
// spec, for a replay that they share. With logProb they have the log-probabilities of the
// behaviour, which corrections for other policies need. With constraints on the tail of episodes
// each has, behind its costs, what its episode had cost before.
func LayoutOf(spec envs.Spec, logProb bool, list []constraint.Config) (replay.Layout, error) {
	f, err := network.NewFrame(spec)
	if err != nil {
		return replay.Layout{}, err
	}
	dtype, shape := stored(f)
	l := replay.LayoutOf(spec, replay.Column{Name: "action", DType: dtype, Shape: shape})
	l.LogProb = logProb
	l.Costs += constraint.Tails(list)
	return l, nil
}

// Sources tells whose transitions a learner draws, from a replay that several policies share. A nil
// one does nothing.
type Sources struct {
	from    replay.Sharer
	batch   *replay.Batch
	weights []float32
	// list is over the updates of the present learner step, by policy; whole is all of them.
	list  map[int32]*source
	whole source
}

// source is what was drawn of one policy. Its exported fields are sums, and are saved.
type source struct {
	Rows int     `json:"rows"`
	Age  float64 `json:"age"`
	// Rho are the means of the clipped ratios, and ESS is (Σ ρ)²/Σ ρ² as a part of the rows, of
	// Weighed updates.
	Rho     float64 `json:"rho"`
	ESS     float64 `json:"ess"`
	Weighed int     `json:"weighed"`

	share, age, rho, ess string
	// rows, sum and square are of the present update.
	rows        int
	sum, square float64
}

// newSources prepares the batch of a learner whose buffer several policies record into; of others
// there is nothing to tell.
func newSources(buffer replay.Buffer, b *replay.Batch, weights []float32) *Sources {
	from, ok := buffer.(replay.Sharer)
	if !ok {
		return nil
	}
	b.Policy, b.Time = make([]int32, len(weights)), make([]int64, len(weights))
	s := &Sources{from: from, batch: b, weights: weights, list: map[int32]*source{}}
	s.whole.ess = "replay/ess"
	return s
}

// of returns the sums of a policy.
func (s *Sources) of(policy int32) *source {
	x := s.list[policy]
	if x == nil {
		x = &source{}
		s.list[policy] = x
	}
	if x.share == "" {
		at := fmt.Sprintf("replay/policy_%d/", policy)
		x.share, x.age, x.rho, x.ess = at+"share", at+"age", at+"rho", at+"ess"
	}
	return x
}

// Weigh multiplies the weights of the batch's rows by their ratios, clipped, and writes what was
// multiplied by into rho. The learner's own rows have 1.
func (s *Sources) Weigh(rho []float32, clip float64) {
	own := s.from.Policy()
	for i, policy := range s.batch.Policy {
		if policy == own {
			rho[i] = 1
			continue
		}
		rho[i] = min(float32(clip), rho[i])
		s.weights[i] *= rho[i]
	}
}

// Count adds the batch of an update, and the clipped ratios of its rows unless these are nil, to
// what Measure tells.
func (s *Sources) Count(rho []float32) {
	if s == nil {
		return
	}
	now := s.from.Clock() - 1
	for i, policy := range s.batch.Policy {
		x := s.of(policy)
		x.rows++
		x.Age += float64(now - s.batch.Time[i])
		if rho != nil {
			w := float64(rho[i])
			x.sum, x.square = x.sum+w, x.square+w*w
			s.whole.sum, s.whole.square = s.whole.sum+w, s.whole.square+w*w
		}
	}
	s.whole.rows = len(s.batch.Policy)
	for _, x := range s.list {
		x.add(rho != nil)
	}
	s.whole.add(rho != nil)
}

// add adds the present update to the sums.
func (x *source) add(weighed bool) {
	if x.rows == 0 {
		return
	}
	x.Rows += x.rows
	if weighed {
		x.Weighed++
		x.Rho += x.sum / float64(x.rows)
		if x.square > 0 {
			x.ESS += x.sum * x.sum / x.square / float64(x.rows)
		}
	}
	x.rows, x.sum, x.square = 0, 0, 0
}

// Measure writes the metrics of the updates since it was last called; there are none of policies of
// which nothing was drawn.
func (s *Sources) Measure(m agents.Metrics) {
	if s == nil {
		return
	}
	for _, x := range s.list {
		for _, tag := range []string{x.share, x.age, x.rho, x.ess} {
			delete(m, tag)
		}
		if x.Rows > 0 {
			m[x.share], m[x.age] = float64(x.Rows)/float64(s.whole.Rows), x.Age/float64(x.Rows)
		}
		if k := float64(x.Weighed); k > 0 {
			m[x.rho], m[x.ess] = x.Rho/k, x.ESS/k
		}
		x.Rows, x.Age, x.Rho, x.ESS, x.Weighed = 0, 0, 0, 0, 0
	}
	x := &s.whole
	delete(m, x.ess)
	if x.Weighed > 0 {
		m[x.ess] = x.ESS / float64(x.Weighed)
	}
	x.Rows, x.Rho, x.ESS, x.Weighed = 0, 0, 0, 0
}

// savedSources are sums over the updates of a learner step that was stopped.
type savedSources struct {
	Policies map[int32]*source `json:"policies"`
	Whole    *source           `json:"whole"`
}

// sourcesEntry has them in checkpoints.
const sourcesEntry = "sources"

func (s *Sources) save(w *checkpoint.Writer) {
	if s != nil && s.whole.Rows > 0 {
		w.PutJSON(sourcesEntry, savedSources{s.list, &s.whole})
	}
}

func (s *Sources) load(r *checkpoint.Reader) error {
	if s == nil || !r.Has(sourcesEntry) {
		return nil
	}
	clear(s.list)
	return r.JSON(sourcesEntry, &savedSources{s.list, &s.whole})
}
