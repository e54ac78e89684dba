package sac

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// auto is the word of values that are found automatically.
const auto = "auto"

// EntCoef is the temperature α, the weight of the entropy: a number, or auto, which is adjusted
// from an initial value of 1, or auto_0.1 from 0.1, as Stable-Baselines3 writes them.
type EntCoef struct {
	Auto bool
	// Value is the initial value where it is automatic, and else the value.
	Value float64
}

// UnmarshalText reads auto, auto_NUMBER or NUMBER.
func (c *EntCoef) UnmarshalText(text []byte) error {
	s := string(text)
	if s == auto {
		*c = EntCoef{Auto: true, Value: 1}
		return nil
	}
	number, automatic := strings.CutPrefix(s, auto+"_")
	v, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil || math.IsInf(v, 0):
		return fmt.Errorf("expected auto, auto_0.1 or a number, found %q", s)
	case automatic && !(v > 0):
		return fmt.Errorf("expected an initial value above 0, found %q", s)
	case !(v >= 0):
		return fmt.Errorf("expected a number that is not negative, found %q", s)
	}
	*c = EntCoef{Auto: automatic, Value: v}
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (c EntCoef) MarshalText() ([]byte, error) {
	number := strconv.FormatFloat(c.Value, 'g', -1, 64)
	switch {
	case c.Auto && c.Value == 1:
		return []byte(auto), nil
	case c.Auto:
		return []byte(auto + "_" + number), nil
	}
	return []byte(number), nil
}

// TargetEntropy is the entropy H̄ that an automatic temperature keeps the policy at: a number, or
// auto, which is −dim for actions in a Box and 0.89·log of the number of valid actions for Discrete
// ones.
type TargetEntropy struct {
	Auto  bool
	Value float64
}

// UnmarshalText reads auto or NUMBER.
func (e *TargetEntropy) UnmarshalText(text []byte) error {
	if s := string(text); s != auto {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("expected auto or a number, found %q", s)
		}
		*e = TargetEntropy{Value: v}
		return nil
	}
	*e = TargetEntropy{Auto: true}
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (e TargetEntropy) MarshalText() ([]byte, error) {
	if e.Auto {
		return []byte(auto), nil
	}
	return []byte(strconv.FormatFloat(e.Value, 'g', -1, 64)), nil
}
