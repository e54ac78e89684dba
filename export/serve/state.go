package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// StateKey is the entry of a model's metadata that describes its state: a JSON list of
// [StatePort]s.
const StateKey = "onnxrl.state"

// Values are numbers, in JSON one number or a list of numbers, nested or not.
type Values []float64

// UnmarshalJSON reads a number or a list.
func (v *Values) UnmarshalJSON(text []byte) error {
	var any any
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&any); err != nil {
		return err
	}
	*v = nil
	return v.flatten(any)
}

func (v *Values) flatten(x any) error {
	switch x := x.(type) {
	case nil:
	case float64:
		*v = append(*v, x)
	case []any:
		for _, e := range x {
			if err := v.flatten(e); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("got %T, expected a number or a list of numbers", x)
	}
	return nil
}

// parseState reads the entry of the metadata.
func parseState(text string) ([]StatePort, error) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	var ports []StatePort
	if err := d.Decode(&ports); err != nil {
		return nil, fmt.Errorf("metadata %q: %w", StateKey, err)
	}
	for i, p := range ports {
		if p.Input == "" || p.Output == "" {
			return nil, fmt.Errorf("metadata %q: entry %d has input %q and output %q, expected names", StateKey, i, p.Input, p.Output)
		}
	}
	return ports, nil
}
