package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/envs/scml/market"
)

func (a *app) scmlCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scml",
		Short: "Play, rank and check worlds of the Supply Chain Management League",
		Long: `The Standard league of SCML 2025 as a native world: factories in levels whose agents negotiate every day what the levels between them need. It follows scml 0.7.6 with its known defects,
each of which a rule repairs: see --rule.`,
	}
	cmd.AddCommand(a.scmlRunCommand(), a.scmlTournamentCommand(), a.scmlReplayCommand(), a.scmlInspectCommand())
	return cmd
}

const ruleUsage = "change a rule, for instance pass_limit=0 or stock_shrinks=true (the keys are those of rules in --json)"

// setRules edits rules by key=value, the values in JSON.
func setRules(r *market.Rules, sets []string) error {
	for _, set := range sets {
		key, value, ok := strings.Cut(set, "=")
		if !ok {
			return fmt.Errorf("--rule %s: expected key=value", set)
		}
		text, err := json.Marshal(map[string]json.RawMessage{key: json.RawMessage(value)})
		if err != nil {
			return fmt.Errorf("--rule %s: %q is no number, true or false", set, value)
		}
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.DisallowUnknownFields()
		if err := dec.Decode(r); err != nil {
			return fmt.Errorf("--rule %s: %w", set, err)
		}
	}
	return nil
}
