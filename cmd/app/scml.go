package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/envs/scml/record"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

func (a *app) scmlCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scml",
		Short: "Play, rank and check worlds of SCML, a supply-chain league",
		Long: `The Standard league of SCML 2025 as a native world: factories in levels whose agents negotiate every day what the levels between them need. It follows scml 0.7.6 with its known defects,
each of which a rule repairs: see --rule.`,
	}
	cmd.AddCommand(a.scmlRunCommand(), a.scmlTournamentCommand(), a.scmlReplayCommand(), a.scmlInspectCommand(), a.scmlSamplesCommand())
	return cmd
}

const ruleUsage = "change a rule, for instance pass_limit=0 or stock_shrinks=true (the keys are those of rules in --json)"

const limitUsage = "how long a call of an agent may take at least, and twice as long at most: its answer is none then, and it is not called until it comes back (0: for ever)"

// faultText tells how often an agent has done what wrong.
func faultText(f *world.Faults) string {
	var parts []string
	for _, k := range []struct {
		n                int
		singular, plural string
	}{{f.Panics, "panic", "panics"}, {f.Stalls, "call without an answer in time", "calls without an answer in time"}, {f.Nonsense, "invalid answer", "invalid answers"}} {
		switch {
		case k.n == 1:
			parts = append(parts, "1 "+k.singular)
		case k.n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", k.n, k.plural))
		}
	}
	return strings.Join(parts, ", ") + "; first on " + f.First
}

// setRules edits rules by key=value, the values in JSON.
func setRules(r *world.Rules, sets []string) error {
	for _, set := range sets {
		key, value, ok := strings.Cut(set, "=")
		if !ok {
			return fmt.Errorf("--rule %s: expected key=value", set)
		}
		if key == "perishable" && value == "true" {
			return fmt.Errorf("--rule perishable %w", record.ErrPerishable)
		}
		text, err := json.Marshal(map[string]json.RawMessage{key: json.RawMessage(value)})
		if err != nil {
			return fmt.Errorf("--rule %s: %q is no number, true or false", set, value)
		}
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.DisallowUnknownFields()
		if err := dec.Decode(r); err != nil {
			return fmt.Errorf("--rule %s: %w", set, ruleError(key, err))
		}
	}
	return nil
}

// ruleError says what was expected of a rule that could not be read.
func ruleError(key string, err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		kinds := map[reflect.Kind]string{reflect.Int: "a whole number", reflect.Float64: "a number", reflect.Bool: "true or false"}
		return fmt.Errorf("is a %s, expected %s", wrong.Value, kinds[wrong.Type.Kind()])
	}
	var names []string
	for i := range reflect.TypeFor[world.Rules]().NumField() {
		names = append(names, reflect.TypeFor[world.Rules]().Field(i).Tag.Get("json"))
	}
	return fmt.Errorf("there is no rule %s; there are %s", key, strings.Join(names, ", "))
}
