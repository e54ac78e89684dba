package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/ablate"
	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/league"
	"github.com/onnxrl/onnxrl/agents/population"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/scml/curriculum"
	"github.com/onnxrl/onnxrl/agents/walkforward"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// configReport is what config check prints; the JSON keys are stable.
type configReport struct {
	File string `json:"file"`
	// Document is the name of one of the documents that onnxrl config new writes.
	Document string          `json:"document"`
	OK       bool            `json:"ok"`
	Problems []configProblem `json:"problems"`
	// Unchecked says what could not be found out without data, or on this machine.
	Unchecked []string `json:"unchecked,omitempty"`
}

type configProblem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`

	text string
}

func (a *app) configCheckCommand() *cobra.Command {
	var sets []string
	var as string
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Report all problems of a document, without training or serving",
		Long:  `Reports all problems of a document (- reads it from standard input), or of a shipped experiment, without training or serving anything, and ends with status 1 if there are any. Environments that need no data are opened, and the agent is made for them, to find out whether they fit. Those of Python are asked for their spaces where the interpreter and their packages are installed.`,
		Example: `  onnxrl config check experiment.yaml --set agent.gamma=0.98
  onnxrl config check qtmrl --json
  onnxrl config new serve | onnxrl config check -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.configCheck(cmd.Context(), args[0], as, sets)
			if err != nil {
				return err
			}
			return a.printCheck(r)
		},
	}
	cmd.Flags().StringArrayVar(&sets, "set", nil, "edit the configuration, for instance --set agent.gamma=0.98")
	cmd.Flags().StringVar(&as, "as", "", strings.Join(documentNames(), ", ")+" (default: the document that has its keys)")
	return cmd
}

func (a *app) configCheck(ctx context.Context, path, as string, sets []string) (configReport, error) {
	r := configReport{File: path, Document: as, Problems: []configProblem{}}
	doc, err := a.document(path)
	if err == nil && as == "" {
		r.Document = documentOf(doc)
	}
	if err == nil {
		switch r.Document {
		case "ablate", "walkforward", "evolve": // a study's are those of its cells
		case "population":
			err = population.Edit(doc, sets...)
		default:
			err = doc.Set(sets...)
		}
	}
	if err != nil {
		var list configs.Errors
		if !errors.As(err, &list) {
			return r, fmt.Errorf("config check: %w", err)
		}
		r.add(list)
		return r, nil
	}
	defaults, _, err := documentDefaults(r.Document)
	if err != nil {
		return r, fmt.Errorf("config check: --as %w", err)
	}
	r.add(a.book().Check(doc.Section(), defaults))
	if len(r.Problems) == 0 {
		switch r.Document {
		case "train", "tune":
			err = a.fits(ctx, doc, &r)
		case "ablate":
			err = a.checkStudy(ctx, doc, path, sets)
		case "walkforward":
			err = a.checkWalk(doc, path, sets)
		case "evolve":
			err = a.checkEvolve(doc, path, sets)
		case "league":
			err = a.checkLeague(doc, path)
		case "population":
			err = a.checkPopulation(doc, path)
		case "scml":
			err = a.checkSCML(ctx, path, sets)
		}
		r.add(err)
	}
	r.OK = len(r.Problems) == 0
	return r, nil
}

// add adds the problems of an error, if it is one.
func (r *configReport) add(err error) {
	var list configs.Errors
	switch {
	case errors.As(err, &list):
		for _, e := range list {
			r.Problems = append(r.Problems, configProblem{File: e.File, Line: e.Line, Column: e.Column, Path: e.Path, Message: e.Message, text: e.Error()})
		}
	case err != nil:
		r.Problems = append(r.Problems, configProblem{File: r.File, Message: err.Error(), text: r.File + ": " + err.Error()})
	}
}

// documentOf returns the document that has most of the keys, train where none has.
func documentOf(doc *configs.Document) string {
	best, most := "train", 0
	for _, d := range documents {
		if d.name == "tune" {
			continue // an experiment, as train's
		}
		n := 0
		for _, k := range configs.Keys(d.defaults()) {
			if _, ok := doc.Lookup(k.Name); ok {
				n++
			}
		}
		if n > most {
			best, most = d.name, n
		}
	}
	return best
}

// fits finds out whether the agent can be made for the environment, where that needs no data.
func (a *app) fits(ctx context.Context, doc *configs.Document, r *configReport) (err error) {
	c := experiment.Defaults()
	if err := doc.Decode(&c); err != nil {
		return err
	}
	unchecked := func(why string) {
		r.Unchecked = append(r.Unchecked, fmt.Sprintf("whether %s and %s fit: %s", c.Env.Kind, c.Agent.Kind, why))
	}
	needs := ""
	for _, k := range a.kinds.Envs {
		if k.Name == c.Env.Kind && k.Needs != "" {
			if needs = "the environment needs " + k.Needs; !k.OfMachine {
				unchecked(needs)
				return nil
			}
		}
	}
	c, factory, maker, err := a.kinds.Open(ctx, c)
	if lacks := (*envs.LackingError)(nil); errors.As(err, &lacks) {
		unchecked(needs + ": " + lacks.What.Error())
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, factory.Close()) }()
	e, err := factory.New(envs.Train, 0)
	if open := (*envs.NotGivenError)(nil); errors.As(err, &open) {
		unchecked("env." + open.Key + " is not given: " + open.Expected)
		return nil
	}
	if err != nil {
		return err
	}
	spec := e.Spec()
	if err := e.Close(); err != nil {
		return err
	}
	// The engine of pure Go is part of every program and looks at the graph only.
	setup := agents.Setup{Spec: spec, Envs: c.Train.NumEnvs, TotalEnvSteps: c.Train.TotalEnvSteps, Engine: portable.New(), Threads: 1, Encoders: a.kinds.Encoders, Key: rng.New(c.Seed)}
	if c.Dataset != nil {
		setup.Replay = unread{c.Dataset.Share == 1}
	} else if c.Replay != nil {
		setup.Replay = unasked{}
	}
	agent, err := maker.New(ctx, setup)
	if err != nil {
		return fmt.Errorf("%s does not fit %s: %w", c.Agent.Kind, c.Env.Kind, err)
	}
	return agent.Close()
}

// unread is a data set that is not read, as a replay.
type unread struct{ offline bool }

// Identity implements agents.Replay.
func (unread) Identity() string { return "a data set" }

// Offline implements agents.Offline.
func (u unread) Offline() bool { return u.offline }

// Open implements replay.Store.
func (unread) Open(l replay.Layout, c replay.Config) (replay.Buffer, error) {
	return replay.NewUniform(l, c)
}

// unasked stands for a table whose server is not asked.
type unasked struct{}

// Identity implements agents.Replay.
func (unasked) Identity() string { return "a table" }

// Open implements replay.Store.
func (unasked) Open(l replay.Layout, c replay.Config) (replay.Buffer, error) {
	return replay.NewPrioritised(l, c, replay.Priorities{Eps: 1})
}

// fitsKinds is fits for the text of a document; what it leaves to be given is no problem.
func (a *app) fitsKinds(ctx context.Context, text string) error {
	doc, err := configs.Parse("the new document", []byte(text))
	if err != nil {
		return err
	}
	if _, ok := doc.Lookup("dataset"); ok {
		if err := doc.Set("dataset.path=not given yet"); err != nil {
			return err
		}
	}
	c := experiment.Defaults()
	if err := doc.Decode(&c); err != nil {
		return err
	}
	if slices.ContainsFunc(a.kinds.Envs, func(k envs.Kind) bool { return k.Name == c.Env.Kind && k.OfMachine }) {
		return nil // Its id may be to be given, and the machine another one.
	}
	return a.fits(ctx, doc, &configReport{})
}

// checkStudy decodes the experiments of all levels.
func (a *app) checkStudy(ctx context.Context, doc *configs.Document, path string, sets []string) error {
	c, base, err := ablate.Decode(doc, path)
	if err != nil {
		return err
	}
	_, err = ablate.NewPlan(ctx, c, base, ablate.Options{Sets: sets, Read: a.kinds.Read, Decode: a.kinds.Decode, Effective: func(_ context.Context, c experiment.Config) (experiment.Config, string, error) {
		return c, "", nil
	}})
	return err
}

// checkWalk decodes the experiments of all variants.
func (a *app) checkWalk(doc *configs.Document, path string, sets []string) error {
	c, base, err := walkforward.Decode(doc, path)
	if err == nil {
		_, err = walkforward.Experiments(a.kinds, c, base, sets)
	}
	return err
}

// checkEvolve decodes the experiment of the members.
func (a *app) checkEvolve(doc *configs.Document, path string, sets []string) error {
	c, base, err := evolve.Decode(doc, path)
	if err == nil {
		_, err = evolve.Experiment(a.kinds, c, base, sets)
	}
	if err == nil {
		_, err = c.Strategist()
	}
	return err
}

func (a *app) checkLeague(doc *configs.Document, path string) error {
	c, err := league.Decode(doc, path)
	if err == nil {
		err = c.Check(a.kinds)
	}
	return err
}

// checkPopulation decodes the experiments of experts and router, and those of all variants.
func (a *app) checkPopulation(doc *configs.Document, path string) error {
	c, err := population.Decode(doc, path)
	if err == nil {
		err = c.Check(a.kinds)
	}
	if err != nil || c.WalkForward.IsZero() {
		return err
	}
	w, err := walkforward.Of(doc, path)
	if err == nil {
		_, err = walkforward.Experiments(a.kinds, w, path, nil)
	}
	return err
}

// checkSCML opens the environments of all layers, which need nothing else.
func (a *app) checkSCML(ctx context.Context, path string, sets []string) error {
	c, err := curriculum.Open(ctx, path, curriculum.Options{Kinds: a.kinds, Run: run.Options{Engine: portable.New()}, Sets: sets})
	if err != nil {
		return err
	}
	return c.Close()
}

func (a *app) printCheck(r configReport) error {
	if a.json {
		if err := a.printJSON(r); err != nil {
			return err
		}
	} else {
		for _, p := range r.Problems {
			fmt.Fprintln(a.out, p.text)
		}
		for _, u := range r.Unchecked {
			fmt.Fprintln(a.out, "not checked: "+u)
		}
		if r.OK {
			fmt.Fprintf(a.out, "%s: nothing is wrong with it\n", r.File)
		}
	}
	if !r.OK {
		return quietError{fmt.Errorf("%d problems", len(r.Problems))}
	}
	return nil
}
