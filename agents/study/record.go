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
	// Way is equal for cells of which one alone shows what refuses them all.
	Way int
	// Whole is what the experiment is a part of, such as the document of a population; zero where
	// it stands alone.
	Whole configs.Section
}

// record is the content of run.StudyFile: a study's document, and what it came to.
type record struct {
	Study configs.Section `yaml:"study"`
	Cells []cellRecord    `yaml:"cells"`
}

type cellRecord struct {
	Name  string          `yaml:"name"`
	Dir   string          `yaml:"dir"`
	Run   configs.Section `yaml:"run"`
	Whole configs.Section `yaml:"whole,omitempty"`
}

// Write records the document of a study, and its cells, in its folder.
func Write(dir string, document any, cells []Cell) (err error) {
	var rec record
	if rec.Study, err = configs.NewSection(document); err != nil {
		return err
	}
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

// Compare refuses cells that have other experiments than the same cells of the study that the folder
// records, and says in what they differ. Nothing is recorded in a new folder.
func Compare(dir string, cells []Cell) error {
	doc, err := configs.Open(filepath.Join(dir, run.StudyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var old record
	if err := doc.Decode(&old); err != nil {
		return err
	}
	var errs []error
	for _, c := range cells {
		for _, o := range old.Cells {
			if o.Name != c.Name {
				continue
			}
			changes, err := configs.Diff(o.Run, c.Config)
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
