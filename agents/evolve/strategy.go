package evolve

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Member is one of a population after a generation.
type Member struct {
	// Score is what it is ranked by, more is better. NaN is worse than any number, and nobody takes
	// anything of such a member.
	Score float64
	// Values are the hyper-parameters that it was trained with.
	Values tune.Values
	// Parent is the member of the generation before whose weights it began with, -1 for none.
	Parent int
}

// Take is what a member begins the next generation with.
type Take struct {
	// Weights is the member whose checkpoint it goes on from, and Hyper the one whose
	// hyper-parameters became Values.
	Weights, Hyper int
	Values         tune.Values
	// Action is one of the constants.
	Action string
}

// The names of a Take: a member keeps what it has, is a clone of a better one of its own
// sub-population, or takes the weights of one of another. The first generation begins, and
// a member restarts where there is too little diversity.
const (
	Begin   = "begin"
	Keep    = "keep"
	Clone   = "clone"
	Migrate = "migrate"
	Restart = "restart"
)

// Strategy decides between two generations what each member takes. It has no state: what it returns
// depends on nothing but its arguments.
type Strategy interface {
	// Check is the error of a number of members.
	Check(members int) error
	// Next returns a Take for each member. history has all generations so far, the newest last,
	// each with as many members, and is not changed. All randomness comes from s.
	Next(history [][]Member, space tune.Space, s *rng.Stream) []Take
}

// strategies are what a document can name.
var strategies = map[string]func(configs.Section) (Strategy, error){
	"mf_pbt":        parseMFPBT,
	"pbt":           parse(PBT{Quantile: 0.25, Resample: 0.25, Factors: []float64{1.2, 0.8}, Inherit: true}),
	"pb2":           parse(PB2{Quantile: 0.25, Window: 200, Candidates: 500}),
	"random_search": parse(RandomSearch{}),
}

// Strategies lists the names of all strategies, sorted.
func Strategies() []string { return slices.Sorted(maps.Keys(strategies)) }

// ParseStrategy returns the strategy that a section names, with its parameters.
func ParseStrategy(c configs.Kinded) (Strategy, error) {
	p, ok := strategies[c.Kind]
	if !ok {
		return nil, c.Unknown(Strategies())
	}
	return p(c.Section)
}

// parse decodes a strategy over its defaults.
func parse[S Strategy](defaults S) func(configs.Section) (Strategy, error) {
	return func(params configs.Section) (Strategy, error) {
		s := defaults
		err := params.Decode(&s)
		return s, err
	}
}

// RandomSearch lets every member train to the end with the hyper-parameters that it drew.
type RandomSearch struct{}

// Check accepts any number.
func (RandomSearch) Check(int) error { return nil }

// Next keeps everything.
func (RandomSearch) Next(history [][]Member, _ tune.Space, _ *rng.Stream) []Take {
	return keep(history[len(history)-1])
}

// keep lets every member go on as it is.
func keep(list []Member) []Take {
	takes := make([]Take, len(list))
	for i, m := range list {
		takes[i] = Take{Weights: i, Hyper: i, Values: maps.Clone(m.Values), Action: Keep}
	}
	return takes
}

// ranked lists the positions of members, the best first, and of equals the first.
func ranked(list []Member) []int {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := list[a].Score, list[b].Score
		if math.IsNaN(x) || math.IsNaN(y) {
			// A number comes before what is none.
			return cmp.Compare(b2i(math.IsNaN(x)), b2i(math.IsNaN(y)))
		}
		return cmp.Compare(y, x)
	})
	return order
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// set stores a value as the parameter can have it: whole where it is counted, and within its bounds
// where clip says so.
func set(v tune.Values, path string, p tune.Parameter, x float64, clip bool) {
	if clip {
		x = min(max(x, p.Low), p.High)
	}
	if p.Kind == tune.Int {
		x = math.Round(x)
	}
	v[path] = x
}
