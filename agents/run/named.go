package run

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/agents/experiment"
)

// NameFile says what the runs and artefacts of what lies in a directory, such as a search, are called
// by, wherever it lies and however often it is resumed.
const NameFile = "name.json"

// called is what is in a [NameFile].
type called struct {
	Name string `json:"name"`
}

// KeepName keeps the name of what begins in a directory.
func KeepName(dir, name string) error { return WriteJSON(filepath.Join(dir, NameFile), called{name}) }

// KeptName returns the name of what lies in a directory: that of the directory where none was kept,
// as by versions before names were.
func KeptName(dir string) (string, error) {
	var c called
	if err := ReadJSON(filepath.Join(dir, NameFile), &c); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	return cmp.Or(c.Name, experiment.Name(dir)), nil
}
