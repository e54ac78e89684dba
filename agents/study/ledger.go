package study

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// Files of every ledger's directory.
const (
	// nameFile says what runs and artefacts are called by, wherever the directory lies and however
	// often it is resumed.
	nameFile = "name.json"
	lockFile = ".lock"
)

// Ledger is the directory of jobs that belong together, such as those of a search: a document that
// says what they are, a lock, and a [Log] of what came of them.
type Ledger struct {
	// Kind is what the directory holds, such as search, and File the name of its document, whose
	// presence makes the directory one to go on in.
	Kind, File string
	// Dir is a new directory; without one it is the first of runs/NAME-1, runs/NAME-2 … that does
	// not exist. Resume is the directory to go on in, instead.
	Dir, Resume string
	// Name is what runs and artefacts are called by.
	Name string

	release func() error
}

// Holds reports whether a directory holds the document of a ledger.
func Holds(dir, file string) bool {
	_, err := os.Stat(filepath.Join(dir, file))
	return err == nil
}

// Free is the error of a new directory that holds a ledger already.
func (l *Ledger) Free() error {
	if l.Resume == "" && l.Dir != "" && Holds(l.Dir, l.File) {
		return fmt.Errorf("%s holds a %s already; go on with it by --resume, or choose another directory", l.Dir, l.Kind)
	}
	return nil
}

// Read reads the document, and returns where it was found. A new ledger's document is that of a file, or
// the shipped one of that name. It is read by read, such as [experiment.Kinds.Read]. A ledger that is
// resumed has its document in its directory. It takes neither a path nor edits, which is their number.
func (l *Ledger) Read(path string, read func(path string) (*configs.Document, error), edits int) (doc *configs.Document, at string, err error) {
	if l.Resume == "" {
		if err := l.Free(); err != nil {
			return nil, "", err
		}
		l.Name = experiment.Name(path)
		doc, err = read(path)
		return doc, path, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("resume %s: %w", l.Resume, err)
		}
	}()
	if path != "" || l.Dir != "" || edits > 0 {
		return nil, "", fmt.Errorf("it goes on as it was begun, and takes neither another document nor edits")
	}
	if l.Dir, err = filepath.Abs(l.Resume); err != nil {
		return nil, "", err
	}
	at = filepath.Join(l.Dir, l.File)
	if doc, err = configs.Open(at); err != nil {
		return nil, "", fmt.Errorf("it holds no %s: %w", l.Kind, err)
	}
	l.Name, err = NameIn(l.Dir)
	return doc, at, err
}

// called is what is in a nameFile.
type called struct {
	Name string `json:"name"`
}

// NameIn returns the name of the ledger in a directory.
func NameIn(dir string) (string, error) {
	var c called
	err := run.ReadJSON(filepath.Join(dir, nameFile), &c)
	return c.Name, err
}

// Begin makes the directory of a new ledger, whose path is absolute then, and takes the lock of any.
func (l *Ledger) Begin() (err error) {
	if l.Resume == "" {
		if l.Dir, _, err = run.Claim(l.Dir, l.Name); err != nil {
			return err
		}
		if l.Dir, err = filepath.Abs(l.Dir); err != nil {
			return err
		}
	}
	return l.Lock()
}

// Lock takes the lock of the directory, which exists. A second process that wants it has an error of
// atomicfile.ErrLocked.
func (l *Ledger) Lock() (err error) {
	if l.release, err = atomicfile.Lock(filepath.Join(l.Dir, lockFile)); err != nil {
		return fmt.Errorf("%s: %w", l.Dir, err)
	}
	return nil
}

// Describe writes the name of a new ledger, and then its document, as whose presence makes the
// directory one to resume. Of one that is resumed nothing is written.
func (l *Ledger) Describe(document any) error {
	if l.Resume != "" {
		return nil
	}
	text, err := configs.Marshal(document)
	if err != nil {
		return err
	}
	if err := run.WriteJSON(filepath.Join(l.Dir, nameFile), called{l.Name}); err != nil {
		return err
	}
	return atomicfile.WriteBytes(filepath.Join(l.Dir, l.File), text)
}

// Close releases the directory. It may be called more than once.
func (l *Ledger) Close() error {
	if l.release == nil {
		return nil
	}
	release := l.release
	l.release = nil
	return release()
}
