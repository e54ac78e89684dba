package dashboard

import (
	"context"
	"errors"
	"fmt"
)

// Question asks about a decision that was recorded with a published version.
type Question struct {
	// Store is the directory of the artefact store, Version the digest.
	Store, Version string
	// Row is which of the recorded decisions, Head which of the actions that it consists of.
	Row, Head int
}

// Explainer explains decisions. It is called by several requests at once.
type Explainer func(ctx context.Context, q Question) (*Explanation, error)

// Explanation is how a policy came to a decision.
type Explanation struct {
	Version string `json:"version"`
	Rows    int    `json:"rows"`
	Row     int    `json:"row"`
	Head    int    `json:"head"`
	// Inputs are what it saw, masks apart.
	Inputs []ExplainedInput `json:"inputs"`
	// Heads are the actions that the decision consists of, one for each asset for instance.
	Heads []ExplainedHead `json:"heads"`
	// Value is the critic's estimate, nil where the model has none.
	Value *float64 `json:"value"`
	// Objective is what the gradients are of, in words.
	Objective string `json:"objective"`
	// Influences are the elements of the inputs that would change the objective most, by the
	// magnitude of gradient times value, the first the most.
	Influences []Influence `json:"influences"`
	Notes      []string    `json:"notes"`
}

// ExplainedInput is an input: of Values, which are its first where there are many, and how they are
// distributed.
type ExplainedInput struct {
	Name        string  `json:"name"`
	Shape       []int   `json:"shape"`
	Description string  `json:"description,omitempty"`
	Mean        float64 `json:"mean"`
	Min         float64 `json:"min"`
	Max         float64 `json:"max"`
	// Missing counts values that are no numbers.
	Missing int       `json:"missing"`
	Values  []float64 `json:"values"`
	Labels  []string  `json:"labels,omitempty"`
	// Gradient is the sum of the magnitudes of gradient times value over the input.
	Gradient float64 `json:"gradient"`
}

// ExplainedHead is one action: which options there were, which of them were allowed, how probable
// each was, and which was taken. A continuous action has a Value instead.
type ExplainedHead struct {
	Name          string    `json:"name"`
	Options       []string  `json:"options"`
	Allowed       []bool    `json:"allowed"`
	Probabilities []float64 `json:"probabilities"`
	Chosen        int       `json:"chosen"`
	// Scores are the estimated returns of the options, of a policy that takes the greatest.
	Scores []float64 `json:"scores,omitempty"`
	Value  *float64  `json:"value"`
}

// Influence is one element of an input.
type Influence struct {
	Input string `json:"input"`
	// Element is its place in the input's row, counted in the order of the axes, the last fastest.
	Element  int     `json:"element"`
	Label    string  `json:"label"`
	Value    float64 `json:"value"`
	Gradient float64 `json:"gradient"`
	Product  float64 `json:"product"`
}

// unexplained is why a decision cannot be explained, whoever asks.
type unexplained struct{ error }

// unexplainable is the error for a decision without anything to say of it.
func unexplainable(format string, args ...any) error {
	return unexplained{fmt.Errorf(format, args...)}
}

// errNoExplainer says that the program explains nothing.
var errNoExplainer = errors.New("explain: this program explains no decisions")

// Explain answers a question about a version of the store with the given id.
func (b *Board) Explain(ctx context.Context, store string, q Question) (*Explanation, error) {
	if b.o.Explain == nil {
		return nil, errNoExplainer
	}
	it, err := b.item(Store, store)
	if err != nil {
		return nil, err
	}
	q.Store = it.path
	return b.o.Explain(ctx, q)
}
