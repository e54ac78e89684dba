package app

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/league"
	"github.com/onnxrl/onnxrl/agents/population"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/scml/curriculum"
	"github.com/onnxrl/onnxrl/models/artifact"
)

// documentFiles make a directory a run, or what runs are a part of.
var documentFiles = []string{run.ConfigFile, run.StudyFile, evolve.ConfigFile, population.ConfigFile, league.ConfigFile, curriculum.ConfigFile}

// runsDir is the folder in which runs are that are given no directory.
const runsDir = "runs"

// withoutStores are folders of runs that no store is in, and that may be large.
var withoutStores = map[string]bool{run.CheckpointDir: true, run.TensorBoardDir: true, evolve.ReplayDir: true}

// relatives opens the other stores of the run or the search that a store belongs to: members, the
// router above them and its whole each have one of their own. It is none where the store belongs to
// no run. The caller closes them.
func relatives(s *artifact.Store) (list []*artifact.Store, err error) {
	own, err := filepath.Abs(s.Dir())
	if err != nil {
		return nil, err
	}
	root := belongsTo(filepath.Dir(own))
	if root == "" {
		return nil, nil
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // removed meanwhile
		case err != nil || !d.IsDir():
			return err
		case path == own, path != root && (withoutStores[d.Name()] || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		}
		other, err := artifact.Open(path, artifact.Options{MustExist: true})
		if errors.Is(err, artifact.ErrNoStore) {
			return nil
		}
		if err != nil {
			return err
		}
		list = append(list, other)
		return fs.SkipDir
	})
	return list, err
}

// belongsTo is the outermost directory that a directory is a part of. It is the highest above it
// with a document, where no more than two folders without one, such as that of a generation, lie
// between each and the next. What lies in runs belongs to nothing above that. It is empty for
// none.
func belongsTo(dir string) (root string) {
	for bare := 0; bare <= 2 && filepath.Base(dir) != runsDir && filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if bare++; hasDocument(dir) {
			root, bare = dir, 0
		}
	}
	return root
}

// hasDocument reports whether a directory is a run, or what runs are a part of.
func hasDocument(dir string) bool {
	for _, name := range documentFiles {
		if isFile(filepath.Join(dir, name)) {
			return true
		}
	}
	return false
}
