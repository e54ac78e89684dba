package experiment

import "github.com/onnxrl/onnxrl/configs"

// When a run publishes its policy.
const (
	// AtEnd publishes the best policy once, when the run has ended.
	AtEnd = "end"
	// AtImprovements publishes every policy that is better than all before it, as soon as it is.
	AtImprovements = "improvements"
	// Never publishes nothing.
	Never = "never"
)

// Publish says when a run's policy becomes a version of the run's artefact store, and what is
// checked before. It changes nothing that a run computes.
type Publish struct {
	// When is end, improvements or never.
	When string `yaml:"when"`
	// Observations is the number of recorded observations, at least, that the exported model is
	// compared with the trained network on.
	Observations int `yaml:"observations"`
	// AllowTies publishes a policy that is nearly undecided in more of its choices than exports
	// accept.
	AllowTies bool `yaml:"allow_ties"`
}

// Validate reports all problems of the section.
func (p Publish) Validate() error {
	var list configs.Problems
	list.OneOf("when", p.When, AtEnd, AtImprovements, Never)
	list.AtLeast("observations", p.Observations, 1)
	return list.Err()
}
