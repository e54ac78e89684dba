package agents

import (
	"encoding/json"
	"math"
)

// Metrics are numbers by name, such as those of one learner step, train/loss among them, or of an
// evaluation. In JSON, those that are not finite are null.
type Metrics map[string]float64

// MarshalJSON implements json.Marshaler.
func (v Metrics) MarshalJSON() ([]byte, error) {
	m := map[string]*float64{}
	for k, x := range v {
		m[k] = Finite(x)
	}
	return json.Marshal(m)
}

// UnmarshalJSON implements json.Unmarshaler; null is NaN.
func (v *Metrics) UnmarshalJSON(text []byte) error {
	var m map[string]*float64
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	*v = Metrics{}
	for k, x := range m {
		(*v)[k] = Number(x)
	}
	return nil
}

// Finite is nil for what is no number that JSON knows.
func Finite(x float64) *float64 {
	if x-x != 0 {
		return nil
	}
	return &x
}

// Number is NaN for what JSON has no number for.
func Number(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}
