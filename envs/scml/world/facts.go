package world

import "github.com/onnxrl/onnxrl/envs/scml/market"

// Cost returns the money that making a unit takes.
func (v *View) Cost() int { return v.factory().Cost }

// Rules returns those of the world. They are not to be changed.
func (v *View) Rules() *market.Rules { return &v.w.c.Rules }
