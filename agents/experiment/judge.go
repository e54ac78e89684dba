package experiment

import (
	"context"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
)

// Judge evaluates policies in environments of one kind in another way than by whole episodes, such
// as by back-tests in a market, and knows what else is special to evaluations there. Environments
// without a judge are evaluated by package evaluate.
type Judge interface {
	// Kind is the name of the kind in documents.
	Kind() string
	// Of reports whether a factory's environments are the judge's. The other methods that take a
	// factory, LookAhead apart, are called with such ones only.
	Of(f envs.Factory) bool
	// Metrics lists the names of the metrics that Validator's function returns, and Metric is the one
	// of them that policies are chosen by where a document names none.
	Metrics() []string
	Metric() string
	// Validator returns what evaluates the present policy of an agent on the validation split. All of
	// its calls face the same data, and the same luck where actions are drawn.
	Validator(f envs.Factory, c evaluate.Config) (train.Evaluator, error)
	// Compare evaluates the present policy of an agent on the validation split, beside what is to be
	// beaten there.
	Compare(ctx context.Context, f envs.Factory, a agents.Agent, c evaluate.Config) (*Comparison, error)
	// LookAhead says what in an environment, which may be another's with one of the judge's within,
	// knows the future, one sentence each.
	LookAhead(f envs.Factory) []string
	// Periods returns the times that a run of a document learns from and chooses by, as far as the
	// document names them. Documents may be of other kinds of environment.
	Periods(c Config) (trained, chosen evaluate.Period)
	// Sources returns the SHA-256 of the environments' data, in hexadecimal, by names such as
	// data_sha256.
	Sources(f envs.Factory) map[string]string
	// Wrap puts the wrappers of a document around a factory's environments.
	Wrap(f envs.Factory, c wrap.Config) (envs.Factory, error)
}

// Comparison is how a policy did on the validation split.
type Comparison struct {
	// Period and Bars are the times of the data and their number; zero where they have none.
	Period evaluate.Period
	Bars   int
	// Metrics are the policy's; Reference those of what is to be beaten in the same environment,
	// nil where that is nothing, and ReferenceName what it is.
	Metrics, Reference map[string]float64
	ReferenceName      string
	// LookAhead says what in the environment knows the future, one sentence each.
	LookAhead []string
}

// judge returns the judge of a factory's environments, nil where they have none.
func (k Kinds) judge(f envs.Factory) Judge {
	for _, j := range k.Judges {
		if j.Of(f) {
			return j
		}
	}
	return nil
}

// Metrics lists the names of the metrics that validations of the factory's environments have.
func (k Kinds) Metrics(f envs.Factory) []string {
	if j := k.judge(f); j != nil {
		return j.Metrics()
	}
	return evaluate.Metrics()
}

// Validator returns what evaluates the present policy of an agent on the validation split of a
// factory: the judge's, or [evaluate.Validator].
func (k Kinds) Validator(f envs.Factory, c evaluate.Config) (train.Evaluator, error) {
	if j := k.judge(f); j != nil {
		return j.Validator(f, c)
	}
	return evaluate.Validator(f, c), nil
}

// Compare evaluates the present policy of an agent, of an env step, on the validation split of a
// factory: as its judge does, or by [evaluate.Validator], with nothing to beat.
func (k Kinds) Compare(ctx context.Context, f envs.Factory, a agents.Agent, step int64, c evaluate.Config) (*Comparison, error) {
	if j := k.judge(f); j != nil {
		return j.Compare(ctx, f, a, c)
	}
	m, err := evaluate.Validator(f, c)(ctx, a, step)
	return &Comparison{Metrics: m}, err
}

// LookAhead says what in an environment knows the future, as far as its judge can know, one sentence
// each.
func (k Kinds) LookAhead(f envs.Factory) (out []string) {
	for _, j := range k.Judges {
		out = append(out, j.LookAhead(f)...)
	}
	return out
}

// Periods returns the times that a run of a document learns from and chooses by, as far as the judge
// of its environments can tell; none elsewhere.
func (k Kinds) Periods(c Config) (trained, chosen evaluate.Period) {
	for _, j := range k.Judges {
		if c.Env.Kind == j.Kind() {
			return j.Periods(c)
		}
	}
	return trained, chosen
}

// Sources returns the SHA-256 of the data of a factory's environments, as its judge names them.
func (k Kinds) Sources(f envs.Factory) map[string]string {
	if j := k.judge(f); j != nil {
		return j.Sources(f)
	}
	return nil
}
