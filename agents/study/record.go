package study

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// Cell is one of the experiments of a study; its runs lie in Dir, relative to the study's folder.
type Cell struct {
	Name, Dir string
	Config    experiment.Config
	// Whole is what the experiment is a part of, such as the document of a population; zero where
	// it stands alone.
	Whole configs.Section
}

// record is the content of run.StudyFile: a study's document, and what it came to.
type record[C any] struct {
	Study C            `yaml:"study"`
	Cells []cellRecord `yaml:"cells"`
}

type cellRecord struct {
	Name string          `yaml:"name"`
	Dir  string          `yaml:"dir"`
	Run  configs.Section `yaml:"run"`
	// Whole came later than studies.
	Whole configs.Section `yaml:"whole,omitempty"`
}

// Settle returns what an experiment means: the document with its defaults.
type Settle func(c experiment.Config) (experiment.Config, error)

// Write records a study in its folder.
func Write[C any](dir string, study C, cells []Cell) error {
	rec := record[C]{Study: study}
	for _, c := range cells {
		section, err := configs.NewSection(c.Config)
		if err != nil {
			return err
		}
		rec.Cells = append(rec.Cells, cellRecord{c.Name, c.Dir, section, c.Whole})
	}
	text, err := configs.Marshal(rec)
	if err != nil {
		return err
	}
	// A study whose record cannot be read could not go on.
	if _, err := configs.Parse(run.StudyFile, text); err != nil {
		return fmt.Errorf("%s: %d cells are more than a study can have: %w", dir, len(cells), err)
	}
	return atomicfile.WriteBytes(filepath.Join(dir, run.StudyFile), text)
}

// Compare refuses cells that have other experiments than the same cells of the study of documents C
// that the folder records, and says in what they differ. Nothing is recorded in a new folder.
func Compare[C any](dir string, cells []Cell, settle Settle) error {
	doc, err := configs.Open(filepath.Join(dir, run.StudyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var old record[C]
	if err := doc.Decode(&old); err != nil {
		return err
	}
	var errs []error
	for _, c := range cells {
		for _, o := range old.Cells {
			if o.Name != c.Name {
				continue
			}
			changes, err := Changes(o.Run, c.Config, settle)
			if err != nil {
				return fmt.Errorf("%s: %w", dir, err)
			}
			if !c.Whole.IsZero() || !o.Whole.IsZero() {
				more, err := configs.Diff(o.Whole, c.Whole)
				if err != nil {
					return fmt.Errorf("%s: %w", dir, err)
				}
				changes = append(changes, more...)
			}
			if len(changes) > 0 {
				list := make([]string, len(changes))
				for k, d := range changes {
					list[k] = d.String()
				}
				errs = append(errs, fmt.Errorf("the experiment of %s has changed: %s", c.Name, strings.Join(list, "; ")))
			}
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("%s: %w", dir, errors.Join(append(errs, errors.New("choose another folder, or take back the change"))...))
	}
	return nil
}

// Changes lists what differs between an experiment that is stored and that of now. One that was
// written when keys had other names means what this program reads in it.
func Changes(stored configs.Section, now experiment.Config, settle Settle) ([]configs.Change, error) {
	changes, err := configs.Diff(stored, now)
	if err != nil || len(changes) == 0 {
		return nil, err
	}
	// One that comes from no file is read without notes: nobody edits what is stored.
	if stored, err = configs.NewSection(stored); err != nil {
		return nil, err
	}
	old := experiment.Defaults()
	if err := stored.Decode(&old); err != nil {
		return changes, nil
	}
	if old, err = settle(old); err != nil {
		return changes, nil
	}
	return configs.Diff(old, now)
}
