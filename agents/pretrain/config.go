package pretrain

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/fit"
)

// targets are the columns of a table of windows that an output of a name foresees.
var targets = map[string]string{"volatility": "next_volatility", "return": "next_return", "returns": "next_returns"}

// windowInput is the input of the network, and the column of its windows.
const windowInput = "window"

// Config is the document of a pretraining.
type Config struct {
	// Horizon is the number of bars after a window that its targets look at, at least 2, and Stride
	// that of bars between windows of one asset; 0 are 5 and 1.
	Horizon int `yaml:"horizon,omitzero"`
	Stride  int `yaml:"stride,omitzero"`
	// Fit has the keys of a document of onnxrl fit, without model, data and network.window: those follow from
	// the environment.
	Fit configs.Section `yaml:"fit"`
}

// Validate reports the problems of the document by itself. Without any key nothing is trained.
func (c Config) Validate() error {
	var p configs.Problems
	if c.Horizon == 0 && c.Stride == 0 && c.Fit.IsZero() {
		return nil
	}
	p.Check(c.Horizon == 0 || c.Horizon >= 2, "horizon", "is %d, expected at least 2", c.Horizon)
	p.AtLeast("stride", c.Stride, 0)
	p.NotEmpty("fit", c.Fit.Keys())
	if err := p.Err(); err != nil {
		return err
	}
	// The numbers of bars and features are the environment's.
	_, err := c.complete(1, 1, windowsFile)
	return err
}

// On reports whether there is something to train.
func (c Config) On() bool { return !c.Fit.IsZero() }

// complete decodes the keys of package fit for windows of w bars of f features in a table.
func (c Config) complete(w, f int, table string) (out fit.Config, err error) {
	out = fit.Defaults()
	text, err := configs.Marshal(c.Fit)
	if err != nil {
		return out, err
	}
	doc, err := configs.Parse("pretrain.fit", text)
	if err != nil {
		return out, err
	}
	for _, key := range []string{"model", "data", "network.window"} {
		if _, ok := doc.Lookup(key); ok {
			return out, c.Fit.Errorf(key, "follows from the environment: leave this key out")
		}
	}
	section, ok := doc.Lookup("network.outputs")
	if !ok {
		return out, errors.New("fit.network.outputs: required: what the encoder is to foresee")
	}
	var outputs map[string]int
	if err := section.Decode(&outputs); err != nil {
		return out, err
	}
	columns := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		column, ok := targets[name]
		if !ok {
			return out, fmt.Errorf("fit.network.outputs: unknown output %q, expected one of %s", name, strings.Join(slices.Sorted(maps.Keys(targets)), ", "))
		}
		if n := outputs[name]; name == "returns" && n != c.horizon() || name != "returns" && n != 1 {
			return out, fmt.Errorf("fit.network.outputs.%s: %d values, expected 1, or as many returns as the horizon of %d bars has", name, n, c.horizon())
		}
		columns[name] = []string{column}
	}
	err = errors.Join(
		doc.SetValue("network.window", []int{w, f}),
		doc.SetValue("data", map[string]any{"path": table, "inputs": map[string][]string{windowInput: {windowInput}}, "targets": columns, "validation": map[string]any{"fraction": 0.1, "tail": true}}),
		doc.Decode(&out),
	)
	return out, err
}

func (c Config) horizon() int {
	if c.Horizon == 0 {
		return 5
	}
	return c.Horizon
}
