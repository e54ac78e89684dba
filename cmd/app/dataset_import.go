package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/run/recorded"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/models/decisionlog"
)

// importFlags are the command line of dataset import.
type importFlags struct {
	out, python, config     string
	model, rewards, missing string
	store                   storeFlag
}

func (a *app) datasetImportCommand() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import SOURCE",
		Short: "Make a data set of one of Minari's, of a replay, or of a log",
		Long: `Writes what a source has as a data set. A source is

  a folder in Minari's layout (needs Python with h5py)
  a run directory: the learner's replay in its newest checkpoint
  the directory of a search, or an artefact of kind replay: what members share
  the folder that onnxrl serve --decisions writes
  a log of decisions, a file whose name ends in .jsonl`,
		Example: `  onnxrl dataset import ~/.minari/datasets/mujoco/halfcheetah/medium-v0 -o data/halfcheetah-medium
  onnxrl dataset import runs/pendulum_sac-1 -o data/replay
  onnxrl dataset import decisions --rewards rewards.csv --config cartpole_ppo -o data/served`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.importDataset(cmd.Context(), args[0], &f)
			if err != nil {
				return fmt.Errorf("dataset import %s: %w", args[0], err)
			}
			return a.printTable(r, nil)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.out, "out", "o", "", "folder of the data set, which must not exist")
	fl.StringVarP(&f.config, "config", "c", "", "document whose environment a log is of, or an artefact outside of the store of its run: a file, or the name of a shipped experiment")
	fl.StringVar(&f.model, "model", "", "of a server's decisions: those of this model (default: the only one)")
	fl.StringVar(&f.rewards, "rewards", "", "of a server's decisions: table with the columns request, reward and perhaps row")
	fl.StringVar(&f.missing, "missing-reward", "", "of a server's decisions: the reward of those without one (default: they are left out)")
	fl.StringVar(&f.python, "python", "", pythonUsage)
	f.store.add(cmd)
	// The name was given just above.
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

// importDataset finds out what a source is and imports it.
func (a *app) importDataset(ctx context.Context, from string, f *importFlags) (r *datasetReport, err error) {
	told, done := a.converting("import")
	defer done()
	info, err := os.Stat(from)
	isDir, has := err == nil && info.IsDir(), func(name string) bool {
		_, err := os.Stat(filepath.Join(from, name))
		return err == nil
	}
	if isDir && (has("metadata.json") || has(filepath.Join("data", "metadata.json"))) {
		m, err := offline.Minari{Python: f.python}.Import(ctx, from, f.out, told)
		if err != nil {
			return nil, err
		}
		return reportOf(f.out, m), nil
	}
	served, err := servedModelsOf(from, isDir)
	if err != nil {
		return nil, err
	}
	if len(served) == 0 && (f.model != "" || f.rewards != "" || f.missing != "") {
		return nil, errors.New("--model, --rewards and --missing-reward are for the folder of a server's decisions, which this is not")
	}
	o := recorded.Origin{Kinds: a.kinds, Config: f.config, Program: a.program(), From: from}
	var m *offline.Manifest
	switch {
	case isDir && (run.Holds(from) || has(evolve.ReplayDir)):
		if f.config != "" {
			return nil, errors.New("--config: a run, or a search, has a document of its own")
		}
		var path string
		if path, o.Config, err = replayOf(from); err == nil {
			m, err = o.ImportReplay(ctx, path, f.out, told)
		}
	case len(served) > 0 && f.config != "":
		j, err := f.join(from, served)
		if err != nil {
			return nil, err
		}
		m, left, err := o.ImportDecisions(ctx, j, f.out, told)
		if err != nil {
			return nil, err
		}
		r = reportOf(f.out, m)
		r.Notes = left.Notes()
		return r, nil
	case isDir && len(served) == 0:
		return nil, errors.New("the directory is no server's log of decisions, none of Minari's (there is no metadata.json, and none in data), no run and no search with a shared replay")
	case f.config == "" && info != nil:
		return nil, errors.New("--config: required, the document whose environment it is of")
	case info != nil && strings.HasSuffix(from, ".jsonl"):
		var left offline.LogReport
		if m, left, err = o.ImportLog(ctx, from, f.out, told); err == nil {
			r = reportOf(f.out, m)
			r.Notes = notesOf(left)
			return r, nil
		}
	case info != nil:
		return nil, errors.New("a file is a log of decisions, JSON lines, whose name ends in .jsonl")
	default:
		m, err = a.importArtifact(ctx, o, from, f, told)
	}
	var elsewhere *replay.ElsewhereError
	if errors.As(err, &elsewhere) {
		return nil, fmt.Errorf("%w: the transitions are there, and not in the checkpoint", err)
	}
	if err != nil {
		return nil, err
	}
	return reportOf(f.out, m), nil
}

func (a *app) importArtifact(ctx context.Context, o recorded.Origin, from string, f *importFlags, told func(episodes, of int64)) (_ *offline.Manifest, err error) {
	s, v, err := artifact.Find(from, f.store.path())
	if err != nil {
		return nil, fmt.Errorf("it is no directory and no file, and as an artefact: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if o.Config == "" {
		// The store of a run, or a search, lies where its document is.
		if o.Config, err = memberDocument(filepath.Dir(s.Dir())); err != nil {
			return nil, fmt.Errorf("--config: required, the document whose environment it is of, where the store is not that of a run: %w", err)
		}
	}
	return o.ImportSnapshot(ctx, v, f.out, told)
}

// memberDocument is the path of the document of a run, or of a member of a search.
func memberDocument(dir string) (string, error) {
	if run.Holds(dir) {
		return filepath.Join(dir, run.ConfigFile), nil
	}
	// Members have environments alike.
	list, err := filepath.Glob(filepath.Join(dir, "generation-*", "member-*", run.ConfigFile))
	if err != nil || len(list) == 0 {
		return "", errors.Join(err, fmt.Errorf("%s is no run and no search whose members have a document", dir))
	}
	return slices.Max(list), nil
}

// replayOf finds the newest checkpoint with a replay in the directory of a run or a search, and the
// document whose environment it is of.
func replayOf(dir string) (path, config string, err error) {
	if config, err = memberDocument(dir); err != nil {
		return "", "", err
	}
	at := filepath.Join(dir, run.CheckpointDir)
	if !run.Holds(dir) {
		at = filepath.Join(dir, evolve.ReplayDir)
	}
	list, err := checkpoint.List(at)
	if err != nil {
		return "", "", err
	}
	if len(list) == 0 {
		return "", "", fmt.Errorf("there is no checkpoint in %s", at)
	}
	return list[len(list)-1].Path, config, nil
}

// notesOf says what of a log was left out.
func notesOf(l offline.LogReport) (notes []string) {
	if l.Cut > 0 {
		notes = append(notes, fmt.Sprintf("%d episodes do not say what was seen after their last step, which is left out", l.Cut))
	}
	if l.Dropped > 0 {
		notes = append(notes, fmt.Sprintf("%d episodes of one step are left out for the same reason", l.Dropped))
	}
	if l.Torn {
		notes = append(notes, "the last line was not written to its end, and is left out")
	}
	return notes
}

// servedModelsOf are the models whose decisions are in a folder, none where it is no log.
func servedModelsOf(from string, isDir bool) ([]string, error) {
	if !isDir {
		return nil, nil
	}
	return decisionlog.Models(from)
}

// join is what is asked for of a server's decisions.
func (f *importFlags) join(from string, served []string) (offline.Join, error) {
	j := offline.Join{Dir: from, Model: f.model, Rewards: f.rewards, Missing: math.NaN()}
	switch {
	case f.model != "" && !slices.Contains(served, f.model):
		return j, fmt.Errorf("--model %s: it has decisions of %s", f.model, strings.Join(served, ", "))
	case f.model == "" && len(served) > 1:
		return j, fmt.Errorf("it has decisions of %s; --model chooses one", strings.Join(served, ", "))
	case f.model == "":
		j.Model = served[0]
	}
	if f.missing != "" {
		x, err := strconv.ParseFloat(f.missing, 64)
		if err != nil || x-x != 0 {
			return j, fmt.Errorf("--missing-reward %q: expected a number", f.missing)
		}
		j.Missing = x
	}
	return j, nil
}
