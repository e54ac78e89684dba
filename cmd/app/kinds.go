package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

// kindRow is a row of what env, algo and encoder ls print; the JSON keys are stable.
type kindRow struct {
	Kind    string `json:"kind"`
	Summary string `json:"summary"`
	// Needs, Observation, Action and Masked are those of environments, with their defaults. Spaces
	// are empty where they depend on what is needed.
	Needs       string            `json:"needs,omitempty"`
	Observation map[string]string `json:"observation,omitempty"`
	Action      string            `json:"action,omitempty"`
	Masked      bool              `json:"masked,omitempty"`

	observation string
}

// kindsCommands are env, algo and encoder: what a document can name.
func (a *app) kindsCommands() []*cobra.Command {
	command := func(use, what, key string, rows func(context.Context) ([]kindRow, error)) *cobra.Command {
		cmd := &cobra.Command{Use: use, Short: "List " + what, Args: cobra.NoArgs}
		cmd.AddCommand(&cobra.Command{
			Use:   "ls",
			Short: "List the " + what + " that a document can name as " + key,
			Long:  "Lists the " + what + " that a document can name as " + key + ". What each can be told, and the defaults, says onnxrl config reference " + use + " KIND.",
			Args:  cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				list, err := rows(cmd.Context())
				if err != nil {
					return err
				}
				return a.printKinds(list)
			},
		})
		return cmd
	}
	return []*cobra.Command{
		command("env", "environments", "env.kind", a.envRows),
		command("algo", "algorithms", "agent.kind", func(context.Context) (list []kindRow, err error) {
			for _, k := range a.kinds.Agents {
				list = append(list, kindRow{Kind: k.Name, Summary: k.Summary})
			}
			return list, nil
		}),
		command("encoder", "encoders", "agent.encoder.kind", func(context.Context) (list []kindRow, err error) {
			for _, k := range a.kinds.Encoders {
				list = append(list, kindRow{Kind: k.Name, Summary: k.Summary})
			}
			return list, nil
		}),
	}
}

func (a *app) envRows(ctx context.Context) (list []kindRow, err error) {
	for _, k := range a.kinds.Envs {
		row := kindRow{Kind: k.Name, Summary: k.Summary, Needs: k.Needs}
		if k.Needs == "" {
			spec, err := defaultSpec(ctx, k)
			if err != nil {
				return nil, fmt.Errorf("environment %s: %w", k.Name, err)
			}
			row.Action, row.Masked, row.Observation = spec.Action.String(), spec.Masked, map[string]string{}
			var parts []string
			for _, f := range spec.Observation {
				row.Observation[f.Name] = f.Space.String()
				// The bounds are in the JSON.
				form, _, _ := strings.Cut(f.Space.String(), " in ")
				parts = append(parts, form)
			}
			row.observation = strings.Join(parts, ", ")
		}
		list = append(list, row)
	}
	return list, nil
}

// defaultSpec describes an environment of a kind that needs nothing, with its defaults.
func defaultSpec(ctx context.Context, k envs.Kind) (_ envs.Spec, err error) {
	f, err := k.Open(ctx, configs.Section{})
	if err != nil {
		return envs.Spec{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	e, err := f.New(envs.Train, 0)
	if err != nil {
		return envs.Spec{}, err
	}
	return e.Spec(), e.Close()
}

func (a *app) printKinds(list []kindRow) error {
	if a.json {
		return a.printJSON(list)
	}
	w := printable.NewTable(a.out)
	for _, r := range list {
		spaces := ""
		switch {
		case r.Needs != "":
			spaces = "\tneeds " + r.Needs
		case r.Action != "":
			action, _, _ := strings.Cut(r.Action, " in ")
			spaces = "\t" + r.observation + " -> " + action
			if r.Masked {
				spaces += ", masked"
			}
		}
		fmt.Fprintf(w, "%s\t%s%s\n", r.Kind, r.Summary, spaces)
	}
	return w.Flush()
}
