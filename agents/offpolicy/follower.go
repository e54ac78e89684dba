package offpolicy

import (
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/pool"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// shareElems is the number of parameters from which cores share in moving target networks, which is
// that of package optim's steps.
const shareElems = 16384

// Follower moves target networks towards those that they follow.
type Follower struct {
	// Pairs are what moves and what it moves to. Neighbours are one: usually there is one pair.
	Pairs [][2][]float32
	// Tau is how far of the way a move goes.
	Tau float64
	// movers do that together; nil is the caller alone.
	movers *pool.Pool
	moves  func(k int)
}

// NewFollower finds the target networks among the frozen parameters: those below [TargetScope]
// follow those of the same name without it, by tau of the way. workers may be nil.
func NewFollower(params *models.Params, tau float64, workers *pool.Pool) *Follower {
	f := &Follower{Tau: tau}
	from, to := params.Segment(models.Trainable), params.Segment(models.Frozen)
	place := map[string]int{}
	if to != nil {
		for i, s := range to.Specs() {
			place[s.Name] = i
		}
	}
	endFrom, endTo, total := -1, -1, 0
	for i, s := range from.Specs() {
		j, ok := place[TargetScope+"."+s.Name]
		if !ok {
			continue
		}
		a, n := from.Range(i)
		b, _ := to.Range(j)
		// Parameters begin at the same multiples in both, so equal distances mean that only padding
		// lies in between.
		if k := len(f.Pairs) - 1; k >= 0 && aligned(endFrom) == a && aligned(endTo) == b {
			old := &f.Pairs[k]
			old[0], old[1] = old[0][:len(old[0])+b+n-endTo], old[1][:len(old[1])+a+n-endFrom]
		} else {
			f.Pairs = append(f.Pairs, [2][]float32{to.Floats()[b : b+n], from.Floats()[a : a+n]})
		}
		endFrom, endTo = a+n, b+n
	}
	for _, p := range f.Pairs {
		total += len(p[0])
	}
	if total >= shareElems {
		f.movers = workers
	}
	f.moves = func(k int) {
		for _, p := range f.Pairs {
			lo, hi := pool.Share(len(p[0]), k, f.movers.Size())
			optim.Polyak(p[0][lo:hi], p[1][lo:hi], float32(f.Tau))
		}
	}
	return f
}

// Move takes all target networks one step.
func (f *Follower) Move() { f.movers.Run(f.moves) }

// aligned is where the parameter after one that ends at an element begins.
func aligned(end int) int { return tensor.AlignUp(4*end) / 4 }
