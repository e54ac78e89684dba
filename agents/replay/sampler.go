package replay

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// SamplerConfig says what a [Sampler] draws.
type SamplerConfig struct {
	// Mix gives each policy its share of the samples, in any unit; policies that it does not name
	// are not drawn, and those that have recorded nothing give their share to the others. Without a
	// mix all transitions count alike.
	Mix map[int32]float64
	// HalfLife is the number of later transitions that make one half as likely; 0 is no preference.
	// All of a chunk count as its middle one.
	HalfLife float64
	// Beta is the exponent of importance weights, which correct the samples towards all transitions
	// alike.
	Beta float64
	// Ranked draws in proportion to priorities ([Shared.Prioritise]), and without a mix or a
	// half-life. Batch.Index has a [Key] for each sample then.
	Ranked bool
	// Fresh renews the list of what there is for every sample, so that what is drawn depends on the
	// store alone, and not on when the sampler was made.
	Fresh bool
	// NSteps is the number of rewards in a sample; 0 means 1. Gamma multiplies the environment's
	// discounts.
	NSteps int
	Gamma  float64
}

// Sampler draws transitions of a [Shared] for one goroutine. It keeps a list of what there is,
// which it renews when a chunk has been taken away, or as many transitions as there are chunks have
// been added; newer ones are not drawn until then.
type Sampler struct {
	s   *Shared
	own *Section // nil where the store is whole
	c   SamplerConfig

	// version and clock are the store's as of the list.
	version, clock int64
	// policy, filled and count, of transitions, describe every chunk.
	policy        []int32
	filled, count []int
	// total is the number of transitions; used is one more than the last chunk that has some, most
	// the rows of the fullest and longest its transitions.
	total, used, most, longest int
	// With a mix or a half-life, drawn are the chunks that can be drawn, by the alias method
	// (Walker 1977): chunk drawn[i] with probability keep[i], else drawn[other[i]]. weight is the
	// importance weight of a chunk's transitions.
	drawn  []int
	keep   []float64
	other  []int
	weight []float64
	chance []float64
	stack  []int
	// youngest is the time of each policy's youngest chunk.
	youngest map[int32]int64

	at, next []int
	// points and weights are of a sample by priorities.
	points  []float64
	weights []float32
	touched byte
}

// NewSampler returns a sampler.
func (s *Shared) NewSampler(c SamplerConfig) (*Sampler, error) {
	if c.NSteps == 0 {
		c.NSteps = 1
	}
	sum := 0.0
	for policy, w := range c.Mix {
		if !(w >= 0) || math.IsInf(w, 0) {
			return nil, fmt.Errorf("new sampler: the share of policy %d is %g", policy, w)
		}
		sum += w
	}
	if c.Mix != nil && !(sum > 0) || !(c.HalfLife >= 0) || math.IsInf(c.HalfLife, 0) || !(c.Beta >= 0) || c.NSteps < 1 || !(c.Gamma >= 0 && c.Gamma <= 1) {
		return nil, fmt.Errorf("new sampler: a mix of %v, half-life %g, beta %g, %d steps and gamma %g; expected shares above 0, no negative numbers, and gamma between 0 and 1", c.Mix, c.HalfLife, c.Beta, c.NSteps, c.Gamma)
	}
	if c.Ranked && (s.ranked == nil || c.Mix != nil || c.HalfLife > 0) {
		return nil, fmt.Errorf("new sampler: by priorities, with a mix of %v and half-life %g; expected a store with priorities, and neither", c.Mix, c.HalfLife)
	}
	c.Mix = maps.Clone(c.Mix)
	n := len(s.chunks)
	return &Sampler{
		s: s, c: c, policy: make([]int32, n), filled: make([]int, n), count: make([]int, n),
		drawn: make([]int, 0, n), keep: make([]float64, 0, n), other: make([]int, 0, n), weight: make([]float64, n), chance: make([]float64, n), stack: make([]int, n), youngest: map[int32]int64{},
	}, nil
}

// SetReturns sets SamplerConfig.NSteps and Gamma of what is sampled from now on.
func (p *Sampler) SetReturns(nSteps int, gamma float64) error {
	if err := checkReturns(nSteps, gamma); err != nil {
		return err
	}
	p.c.NSteps, p.c.Gamma = nSteps, gamma
	return nil
}

// SetBeta sets the exponent of importance weights of samples by priorities.
func (p *Sampler) SetBeta(beta float64) { p.c.Beta = beta }

// plain reports whether all transitions are alike.
func (p *Sampler) plain() bool { return p.c.Mix == nil && p.c.HalfLife == 0 }

// errNotDrawn is returned when a mix names no policy that has recorded anything.
var errNotDrawn = errors.New("no policy of the mix has recorded a transition")

// renew brings the list up to date where that is due. The caller holds the store's mu for reading.
func (p *Sampler) renew() error {
	s := p.s
	now, version := s.clock.Load(), s.version
	if p.own != nil {
		now, version = p.own.clock.Load(), version+p.own.version
	}
	if !p.c.Fresh && p.version == version && now-p.clock < int64(max(1, p.used)) && p.total > 0 {
		return nil
	}
	p.version, p.clock = version, now
	p.total, p.used, p.most, p.longest = 0, 0, 0, 0
	for k := range s.chunks {
		if p.own != nil && !p.own.reads(k) {
			p.filled[k], p.count[k], p.chance[k] = 0, 0, 0
			continue
		}
		filled, n := s.chunks[k].rows()
		p.policy[k], p.filled[k], p.count[k], p.chance[k] = s.chunks[k].policy, filled, n, float64(n)
		if n == 0 {
			p.filled[k] = 0
			continue
		}
		p.total += n
		p.used = k + 1
		p.most, p.longest = max(p.most, filled), max(p.longest, n)
	}
	if p.total == 0 {
		return ErrEmpty
	}
	if p.plain() {
		return nil
	}
	return p.prefer()
}

// prefer computes what chunks are likely to be drawn.
func (p *Sampler) prefer() error {
	if p.c.HalfLife > 0 {
		p.fade()
	}
	if p.c.Mix != nil {
		for policy, share := range p.c.Mix {
			own := 0.0
			for k := range p.used {
				if p.filled[k] > 0 && p.policy[k] == policy {
					own += p.chance[k]
				}
			}
			for k := range p.used {
				if p.filled[k] > 0 && p.policy[k] == policy && own > 0 {
					p.chance[k] *= share / own
				}
			}
		}
		for k := range p.used {
			if _, named := p.c.Mix[p.policy[k]]; !named {
				p.chance[k] = 0
			}
		}
	}
	sum := 0.0
	p.drawn, p.longest = p.drawn[:0], 0
	for k := range p.used {
		if p.filled[k] > 0 && p.chance[k] > 0 {
			p.drawn = append(p.drawn, k)
			sum += p.chance[k]
			p.longest = max(p.longest, p.count[k])
		}
	}
	if len(p.drawn) == 0 {
		p.total = 0
		return errNotDrawn
	}
	p.alias(sum)
	return nil
}

// fade makes old chunks less likely. Only ratios matter, to the youngest chunk of all, or with a
// mix of the same policy; so that one always counts, however long ago it was recorded.
func (p *Sampler) fade() {
	s := p.s
	group := func(k int) int32 {
		if p.c.Mix == nil {
			return 0
		}
		return p.policy[k]
	}
	clear(p.youngest)
	for k := range p.used {
		if p.filled[k] == 0 {
			continue
		}
		middle := k<<s.shift + p.filled[k]/2
		for s.isFinal(middle) && middle > k<<s.shift {
			middle--
		}
		t := s.timeOf(middle)
		if y, ok := p.youngest[group(k)]; !ok || t > y {
			p.youngest[group(k)] = t
		}
		// Its place until alias puts the importance weight there.
		p.weight[k] = float64(t)
	}
	for k := range p.used {
		if p.filled[k] > 0 {
			p.chance[k] *= math.Exp2((p.weight[k] - float64(p.youngest[group(k)])) / p.c.HalfLife)
		}
	}
}

// alias fills keep and other, and the importance weights.
func (p *Sampler) alias(sum float64) {
	n := len(p.drawn)
	p.keep, p.other = p.keep[:n], p.other[:n]
	// Places with less than their share are on the stack from below, those with more from above.
	low, high := 0, n
	for i, k := range p.drawn {
		x := p.chance[k] / sum * float64(n)
		// (N·P)^−β, where each of the chunk's transitions has P = chance/sum/count.
		p.weight[k] = math.Pow(float64(p.total)*p.chance[k]/sum/float64(p.count[k]), -p.c.Beta)
		if p.keep[i], p.other[i] = x, i; x < 1 {
			p.stack[low] = i
			low++
		} else {
			high--
			p.stack[high] = i
		}
	}
	for low > 0 && high < n {
		low--
		small, big := p.stack[low], p.stack[high]
		p.other[small] = big
		if p.keep[big] -= 1 - p.keep[small]; p.keep[big] < 1 {
			high++
			p.stack[low] = big
			low++
		}
	}
	// Places that rounding leaves over are full.
	for _, i := range p.stack[:low] {
		p.keep[i] = 1
	}
	for _, i := range p.stack[high:n] {
		p.keep[i] = 1
	}
}

// drawPlain draws transitions, all alike, where at least one chunk is full, so that few rows are
// drawn in vain.
func (p *Sampler) drawPlain(r *rng.Stream) {
	s := p.s
	shift, mask := s.shift, s.c.ChunkRows-1
	n, low := uint64(p.used<<shift), biased(p.used<<shift)
	for i := 0; i < len(p.at); {
		for x, half := r.Uint64(), 0; half < 2 && i < len(p.at); x, half = x>>32, half+1 {
			q := uint64(uint32(x)) * n
			row := int(q >> 32)
			if uint32(q) >= low && row&mask < p.filled[row>>shift] && !s.isFinal(row) {
				p.at[i] = row
				i++
			}
		}
	}
}

// draw returns a row that is a transition.
func (p *Sampler) draw(r *rng.Stream) int {
	s := p.s
	if p.plain() {
		for {
			k, in := r.IntN(p.used), r.IntN(p.most)
			if row := k<<s.shift + in; in < p.filled[k] && !s.isFinal(row) {
				return row
			}
		}
	}
	x := r.Float64() * float64(len(p.drawn))
	i := int(x)
	if x-float64(i) >= p.keep[i] {
		i = p.other[i]
	}
	k := p.drawn[i]
	for {
		if row := k<<s.shift + r.IntN(p.filled[k]); !s.isFinal(row) {
			return row
		}
	}
}

// prepare checks a batch and makes room for its rows.
func (p *Sampler) prepare(b *Batch) (int, error) {
	s := p.s
	n, err := s.accepts(b)
	if err != nil {
		return 0, err
	}
	if n > s.c.Capacity {
		return 0, fmt.Errorf("a batch of %d transitions out of a replay of %d", n, s.c.Capacity)
	}
	if cap(p.at) < n {
		p.at, p.next = make([]int, n), make([]int, n)
	}
	p.at, p.next = p.at[:n], p.next[:n]
	return n, nil
}

// Sample draws as many transitions as the batch has rows, with replacement, and writes what it
// wants of them. It allocates nothing once it has been called with a batch of that size.
func (p *Sampler) Sample(r *rng.Stream, b *Batch) error {
	n, err := p.prepare(b)
	if err != nil {
		return fmt.Errorf("replay: sample: %w", err)
	}
	p.s.mu.RLock()
	defer p.s.mu.RUnlock()
	if p.c.Ranked {
		// Whatever is published has a priority and may be drawn.
		p.total = 0
		if len(p.points) < n {
			p.points, p.weights = make([]float64, n), make([]float32, n)
		}
	}
	if err := p.renew(); err != nil {
		return fmt.Errorf("replay: sample: %w", err)
	}
	if p.c.Ranked {
		if err := p.s.ranked.draw(r, p.points[:n], p.at, p.weights[:n], p.c.Beta); err != nil {
			return fmt.Errorf("replay: sample: %w", err)
		}
	} else if p.plain() && p.most > p.s.c.ChunkRows-2 {
		p.drawPlain(r)
	} else {
		for i := range p.at {
			p.at[i] = p.draw(r)
		}
	}
	p.fill(b)
	return nil
}

// SampleSequences draws sequences of length transitions that follow each other in one environment,
// in the order of [Uniform.SampleSequences]: row t·w + i is transition t of sequence i. They run on
// from one episode into the next, but not beyond a chunk.
func (p *Sampler) SampleSequences(r *rng.Stream, b *Batch, length int) error {
	n, err := p.prepare(b)
	switch {
	case err != nil:
	case length < 1 || n%length != 0:
		err = fmt.Errorf("sequences of %d transitions in a batch of %d", length, n)
	case p.c.Ranked:
		err = errors.New("sequences by priorities")
	case p.c.NSteps != 1:
		err = fmt.Errorf("sequences of a sampler of %d steps", p.c.NSteps)
	}
	if err != nil {
		return fmt.Errorf("replay: sample sequences: %w", err)
	}
	p.s.mu.RLock()
	defer p.s.mu.RUnlock()
	if err := p.renew(); err != nil {
		return fmt.Errorf("replay: sample sequences: %w", err)
	}
	if p.longest < length {
		// The list may be as old as there are chunks.
		p.total = 0
		if err := p.renew(); err != nil {
			return fmt.Errorf("replay: sample sequences: %w", err)
		}
	}
	if p.longest < length {
		return fmt.Errorf("replay: sample sequences: %w: the longest run of transitions in a chunk is %d, expected %d", ErrEmpty, p.longest, length)
	}
	width := n / length
	for i := 0; i < width; {
		if p.walk(p.draw(r), length, width, i) {
			i++
		}
	}
	p.fill(b)
	return nil
}

// walk puts the rows of a sequence into the sample and reports whether there are enough.
func (p *Sampler) walk(row, length, width, i int) bool {
	k := row >> p.s.shift
	end := k<<p.s.shift + p.filled[k]
	for t := range length {
		for row < end && p.s.isFinal(row) {
			row++
		}
		if row >= end {
			return false
		}
		p.at[t*width+i] = row
		row++
	}
	return true
}

// fill writes the transitions at the rows of p.at into a batch.
func (p *Sampler) fill(b *Batch) {
	s := p.s
	if b.Index != nil {
		for i, row := range p.at {
			if b.Index[i] = int64(row); p.c.Ranked {
				b.Index[i] = Key(int64(row), s.timeOf(row))
			}
		}
	}
	if b.Policy != nil {
		for i, row := range p.at {
			b.Policy[i] = p.policy[row>>s.shift]
		}
	}
	if b.Weight != nil {
		p.weigh(b.Weight)
	}
	gamma := float32(p.c.Gamma)
	if p.c.NSteps == 1 {
		for i, row := range p.at {
			p.at[i] = row * s.stride
			p.next[i] = p.at[i] + s.stride
		}
	} else {
		if b.Cost != nil {
			clear(b.Cost.Float32s())
		}
		for i, row := range p.at {
			var end int
			end, b.Reward[i], b.Discount[i] = p.returns(row, b.Cost, i)
			p.at[i], p.next[i] = row*s.stride, end*s.stride
		}
		gamma = -1
	}
	p.touched += s.gather(b, p.at, p.next, gamma)
	for i := range b.Ended {
		b.Ended[i] = s.isFinal(p.next[i] / s.stride)
	}
}

// weigh writes importance weights, divided by the largest of the batch.
func (p *Sampler) weigh(dst []float32) {
	if p.c.Ranked {
		copy(dst, p.weights)
		return
	}
	if p.plain() || p.c.Beta == 0 {
		for i := range dst {
			dst[i] = 1
		}
		return
	}
	most := 0.0
	for _, row := range p.at {
		most = max(most, p.weight[row>>p.s.shift])
	}
	for i, row := range p.at {
		dst[i] = float32(p.weight[row>>p.s.shift] / most)
	}
}

// returns adds up the rewards of up to NSteps transitions from a row on, and their costs into row
// at of a batch's. It returns the row of the observation after them and the product of their
// discounts.
func (p *Sampler) returns(row int, cost *tensor.Tensor, at int) (end int, reward, discount float32) {
	s := p.s
	k := row >> s.shift
	last := k<<s.shift + p.filled[k]
	sum, product := 0.0, 1.0
	for range p.c.NSteps {
		sum += float64(product * float64(s.float(row, s.reward)))
		s.addCosts(cost, at, row, product)
		product *= p.c.Gamma * float64(s.float(row, s.discount))
		if row++; row == last || s.isFinal(row) {
			break
		}
	}
	return row, float32(sum), float32(product)
}

// Policies returns the policies that have recorded something, sorted.
func (s *Shared) Policies() []int32 { return slices.Sorted(maps.Keys(s.Stats().Policies)) }
