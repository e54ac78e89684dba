package app

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/ablate"
	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/convert"
	"github.com/onnxrl/onnxrl/agents/league"
	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/agents/population"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/scml/curriculum"
	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/agents/walkforward"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/fit"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// keyComments is what the source says of the keys; TestKeyComments keeps it so.
//
//go:generate go test -run TestKeyComments -update .
//go:embed key_comments.json
var keyComments []byte

// documents are the forms of documents, with the command that reads them.
var documents = []struct {
	name, use string
	defaults  func() any
}{
	{"train", "onnxrl train", func() any { return experiment.Defaults() }},
	{"tune", "onnxrl tune", func() any { return experiment.Defaults() }},
	{"ablate", "onnxrl ablate", func() any { return ablate.Defaults() }},
	{"walkforward", "onnxrl walkforward", func() any { return walkforward.Defaults() }},
	{"evolve", "onnxrl evolve", func() any { return evolve.Defaults() }},
	{"population", "onnxrl train population", func() any { return population.Defaults() }},
	{"league", "onnxrl league", func() any { return league.Defaults() }},
	{"fit", "onnxrl fit", func() any { return fit.Defaults() }},
	{"live", "onnxrl live", func() any { return livetrade.Defaults() }},
	{"scml", "onnxrl train scml", func() any { return curriculum.Defaults() }},
	{"serve", "onnxrl serve", func() any { return serveDefaults() }},
}

// addHelp gives keys that nothing is said of the help of their flags, by key path.
func addHelp(b *configs.Book, keys []configs.Key, help map[string]string) {
	for _, k := range keys {
		name := configs.TypeName(k.Owner) + "." + k.Field.Name
		if text := help[k.Path]; text != "" && b.Comments[name] == "" {
			b.Comments[name] = text
		}
		addHelp(b, k.Keys, help)
	}
}

// documentNames lists the documents.
func documentNames() (names []string) {
	for _, d := range documents {
		names = append(names, d.name)
	}
	return names
}

// documentDefaults returns the defaults of a document, and the command that reads it.
func documentDefaults(name string) (defaults any, use string, err error) {
	for _, d := range documents {
		if d.name == name {
			return d.defaults(), d.use, nil
		}
	}
	return nil, "", fmt.Errorf("%q is no document; %s", name, configs.Nearest(name, documentNames()))
}

// book has the kinds of this program and what the source says of the keys.
func (a *app) book() *configs.Book {
	b := a.kinds.Book()
	b.Lists["tune"] = []configs.Kind{{Defaults: func() any { return tune.Defaults() }}}
	b.Lists["model"] = servedModels
	b.Lists["source"], b.Lists["sink"], b.Lists["broker"] = liveSources.kinds(), liveSinks.kinds(), liveBrokers.kinds()
	// The file is made by a test, which reads it, too.
	_ = json.Unmarshal(keyComments, &b.Comments)
	help := map[string]string{}
	for _, s := range new(serveConfig).settings() {
		help[s.key] = s.help
	}
	addHelp(b, configs.Keys(serveDefaults()), help)
	return b
}

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Write, check, convert and explain configurations", Args: cobra.NoArgs}
	cmd.AddCommand(a.configNewCommand(), a.configCheckCommand(), a.configConvertCommand(), a.configReferenceCommand(), a.configSchemaCommand())
	return cmd
}

// write writes to a file, or to standard output where out is empty.
func (a *app) write(out string, text []byte) error {
	if out == "" {
		_, err := a.out.Write(text)
		return err
	}
	return atomicfile.WriteBytes(out, text)
}

func (a *app) configSchemaCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "schema [DOCUMENT]",
		Short: "Write the JSON Schema of a document",
		Long: `Writes the JSON Schema (draft 2020-12) of a document (train, ` + strings.Join(documentNames()[1:], ", ") + `), from which editors complete keys and show what they mean. With the YAML extensions of
most editors, this line at the top of a document names it:

  # yaml-language-server: $schema=onnxrl.schema.json`,
		Example:   "  onnxrl config schema train -o onnxrl.schema.json",
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: documentNames(),
		RunE: func(_ *cobra.Command, args []string) error {
			name := append(args, "train")[0]
			defaults, use, err := documentDefaults(name)
			if err != nil {
				return err
			}
			text, err := json.MarshalIndent(a.book().Schema("Document of "+use, defaults), "", "  ")
			if err != nil {
				return err
			}
			return a.write(out, append(text, '\n'))
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "write to this file (default: standard output)")
	return cmd
}

func (a *app) configReferenceCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "reference [KEY | SECTION | DOCUMENT | LIST KIND]",
		Short: "Explain a key, or every key, with type and default",
		Long: `Explains the keys of documents: those of an experiment, of one of its sections (` + strings.Join(a.sections(), ", ") + `), of another
document (` + strings.Join(documentNames(), ", ") + `), or of a kind in one of the lists env, algo, encoder and market. A key path, or its end, gives that key in all documents: its type, default and meaning, and the field of the source that has it.`,
		Example: `  onnxrl config reference agent.ent_coef
  onnxrl config reference train
  onnxrl config reference algo ppo
  onnxrl config reference env cartpole --json`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			b := a.book()
			defaults, err := a.described(b, args)
			if err != nil {
				return err
			}
			var text strings.Builder
			if defaults == nil {
				places, err := keyBook{b}.find(args[0])
				if err != nil {
					return err
				}
				if a.json {
					err = jsonOutput{&text, "  "}.Encode(places)
				} else {
					printPlaces(&text, places)
				}
				return errors.Join(err, a.write(out, []byte(text.String())))
			}
			keys := b.Keys(defaults)
			if a.json {
				if err := (jsonOutput{&text, "  "}).Encode(keys); err != nil {
					return err
				}
			} else {
				printKeys(&text, keys)
			}
			return a.write(out, []byte(text.String()))
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "write to this file (default: standard output)")
	return cmd
}

// sections lists the sections of an experiment that have keys of their own.
func (a *app) sections() (names []string) {
	for _, k := range configs.Keys(experiment.Defaults()) {
		if len(k.Keys) > 0 || k.Field.Tag.Get("section") != "" {
			names = append(names, k.Name)
		}
	}
	return names
}

// described returns the defaults of what config reference is asked for, nil where that is no
// section, no kind and no document.
func (a *app) described(b *configs.Book, args []string) (any, error) {
	if len(args) == 0 {
		return experiment.Defaults(), nil
	}
	if kinds := b.Lists[args[0]]; len(kinds) > 0 && kinds[0].Name != "" {
		var names []string
		for _, k := range kinds {
			if names = append(names, k.Name); len(args) == 2 && k.Name == args[1] {
				if k.Defaults == nil {
					return nil, fmt.Errorf("%s %s does not say which keys it has", args[0], k.Name)
				}
				return k.Defaults(), nil
			}
		}
		if len(args) == 2 {
			return nil, fmt.Errorf("unknown %s %q; %s", args[0], args[1], configs.Nearest(args[1], names))
		}
		return nil, fmt.Errorf("which %s? There are %s", args[0], strings.Join(names, ", "))
	}
	if len(args) == 2 {
		return nil, fmt.Errorf("%s has no kinds: expected env, algo, encoder or market", args[0])
	}
	for _, k := range configs.Keys(experiment.Defaults()) {
		if k.Name != args[0] {
			continue
		}
		if kinds := b.Lists[k.Field.Tag.Get("section")]; len(kinds) == 1 {
			return kinds[0].Defaults(), nil
		}
		if len(k.Keys) > 0 {
			return k.Default.Interface(), nil
		}
	}
	defaults, _, _ := documentDefaults(args[0])
	return defaults, nil
}

// printKeys writes a paragraph for each key.
func printKeys(out io.Writer, keys []configs.Row) {
	last := ""
	for _, k := range keys {
		fmt.Fprintf(out, "%s (%s", k.Path, k.Type)
		switch {
		case k.Required != "":
			fmt.Fprint(out, ", required")
		case k.Default != "":
			fmt.Fprintf(out, ", default %s", k.Default)
		}
		fmt.Fprintln(out, ")")
		if k.Comment != last && k.Comment != "" {
			for _, l := range configs.Wrap(k.Comment, 96) {
				fmt.Fprintln(out, "    "+l)
			}
		}
		last = k.Comment
		if k.Required != "" {
			fmt.Fprintln(out, "    Required: "+k.Required)
		}
		if len(k.Kinds) > 0 {
			fmt.Fprintln(out, "    Kinds: "+strings.Join(k.Kinds, ", "))
		}
	}
}

// minimalKeys are what a minimal document has beside its kinds and what has to be given.
var minimalKeys = []string{"seed", "agent.learning_rate", "agent.gamma", "train.total_env_steps", "train.validation.every_steps", "eval.episodes"}

// newFlags are the command line of config new.
type newFlags struct {
	env, algo, encoder, out string
	minimal                 bool
}

func (a *app) configNewCommand() *cobra.Command {
	var f newFlags
	cmd := &cobra.Command{
		Use:   "new DOCUMENT",
		Short: "Write a document with every key, its default and what it means",
		Long: `Writes a document (` + strings.Join(documentNames(), ", ") + `) with every key, its default and what it means. Keys that may be left out, and are, stand behind "#"; what has to be
given is marked REQUIRED. For train and tune, --env and --algo choose an environment and an algorithm, which must fit. With --minimal a document of train has only the keys that most people change.`,
		Example: `  onnxrl config new train --minimal -o cartpole.yaml && onnxrl train cartpole.yaml
  onnxrl config new train --env cartpole --algo ppo -o cartpole.yaml && onnxrl train cartpole.yaml
  onnxrl config new train --env LunarLander-v3 --algo ppo -o lander.yaml && onnxrl train lander.yaml
  onnxrl config new serve`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: documentNames(),
		RunE:      func(cmd *cobra.Command, args []string) error { return a.configNew(cmd, args[0], &f) },
	}
	fl := cmd.Flags()
	cmd.Annotations = map[string]string{printsText: "a YAML document"}
	fl.StringVar(&f.env, "env", "", "environment of train and tune: a kind, which onnxrl env ls lists, or an id of Gymnasium's")
	fl.StringVar(&f.algo, "algo", "", "algorithm of train and tune; onnxrl algo ls lists them")
	fl.StringVar(&f.encoder, "encoder", "", "encoder of the agent; onnxrl encoder ls lists them (default: the algorithm's)")
	fl.BoolVar(&f.minimal, "minimal", false, "of train: a short document that trains (default --env cartpole --algo ppo)")
	fl.StringVarP(&f.out, "out", "o", "", "write to this file (default: standard output)")
	return cmd
}

func (a *app) configNew(cmd *cobra.Command, name string, f *newFlags) error {
	defaults, use, err := documentDefaults(name)
	if err != nil {
		return fmt.Errorf("config new: %w", err)
	}
	if f.minimal {
		if name != "train" {
			return fmt.Errorf("config new %s: --minimal belongs to train", name)
		}
		f.env, f.algo = cmp.Or(f.env, "cartpole"), cmp.Or(f.algo, "ppo")
	}
	chosen := map[string]string{}
	b := a.book()
	env, err := gymnasiumID(b, f.env)
	if err != nil {
		return fmt.Errorf("config new: %w", err)
	}
	for _, c := range []struct{ flag, list, path, value string }{{"env", "env", "env", env}, {"algo", "algo", "agent", f.algo}, {"encoder", "encoder", "agent.encoder", f.encoder}} {
		if c.value == "" {
			continue
		}
		if name != "train" && name != "tune" {
			return fmt.Errorf("config new %s: --%s belongs to train and tune", name, c.flag)
		}
		var names []string
		for _, k := range b.Lists[c.list] {
			names = append(names, k.Name)
		}
		if !slices.Contains(names, c.value) {
			hint := ""
			if c.flag == "env" {
				hint = ", or an id of Gymnasium's such as LunarLander-v3"
			}
			return fmt.Errorf("config new: --%s %s: unknown; %s%s", c.flag, c.value, configs.Nearest(c.value, names), hint)
		}
		chosen[c.path] = c.value
	}
	if name == "tune" {
		chosen["tune"] = ""
	}
	if slices.ContainsFunc(a.kinds.Agents, func(k agents.Kind) bool { return k.Name == f.algo && k.Offline }) {
		c := experiment.Defaults()
		c.Dataset = &replay.Dataset{Share: 1, Validation: 0.1}
		defaults, chosen["dataset.path"] = c, ""
	}
	text := b.Template(defaults, chosen)
	if f.minimal {
		text = b.Minimal(defaults, chosen, minimalKeys...)
	}
	if f.env != "" && f.algo != "" {
		if err := a.fitsKinds(cmd.Context(), text); err != nil {
			return fmt.Errorf("config new: %w", err)
		}
	}
	file, note := f.out, ""
	if file == "" {
		file = "FILE"
	}
	if env == "trading" {
		note = "# These are the algorithm's defaults; onnxrl data init writes an experiment with settings for market data.\n"
	}
	return a.write(f.out, []byte("# Read by: "+use+" "+file+"\n"+note+"# Written by: onnxrl "+strings.TrimPrefix(cmd.CommandPath(), "onnxrl ")+" "+name+"; onnxrl config check says what is wrong with it.\n\n"+text))
}

// gymnasiumID returns the kind of environment that has an id of Gymnasium's, whose keys then have
// the id as their default. A kind is returned as it is.
func gymnasiumID(b *configs.Book, id string) (string, error) {
	if !regexp.MustCompile(`-v\d+$`).MatchString(id) {
		return id, nil
	}
	keys := convert.Environment(id)
	kind := keys["kind"].(string)
	delete(keys, "kind")
	section, err := configs.NewSection(keys)
	if err != nil {
		return "", err
	}
	for i := range b.Lists["env"] {
		if k := &b.Lists["env"][i]; k.Name == kind {
			into := reflect.New(reflect.TypeOf(k.Defaults()))
			into.Elem().Set(reflect.ValueOf(k.Defaults()))
			err = section.Decode(into.Interface())
			k.Defaults = func() any { return into.Elem().Interface() }
		}
	}
	return kind, err
}
