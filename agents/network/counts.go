package network

import (
	"fmt"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
)

// Counts are the numbers of an agent's parameters; the JSON keys are stable. Those of target
// networks, which follow others, are not counted.
type Counts struct {
	// Base are those that adapters belong to, and BaseSHA256 is their content; they never change.
	Base       int    `json:"base"`
	BaseSHA256 string `json:"base_sha256"`
	// Adapters are those of adapters, and Other what is trained beside them.
	Adapters int `json:"adapters"`
	Other    int `json:"other"`
}

// CountsOf counts the parameters of an agent with adapters; nil without.
func CountsOf(p *models.Params) *Counts {
	base := p.Segment(models.Base)
	if base == nil {
		return nil
	}
	c := &Counts{BaseSHA256: base.Sum()}
	for _, s := range base.Specs() {
		c.Base += s.Len()
	}
	for _, s := range p.Segment(models.Trainable).Specs() {
		if layer.IsAdapter(s.Name) {
			c.Adapters += s.Len()
		} else {
			c.Other += s.Len()
		}
	}
	return c
}

// String says what is trained.
func (c *Counts) String() string {
	return fmt.Sprintf("%d parameters of adapters and %d others are trained, over a base of %d that stays as it is (SHA-256 %.12s)", c.Adapters, c.Other, c.Base, c.BaseSHA256)
}
