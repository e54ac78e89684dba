package livetrade

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/journal"
)

// Retention is how much of a journal is kept.
type Retention struct {
	// Keep is the number of files of the journal that are kept beside the last one, at least. Older
	// ones are removed behind a snapshot, which is kept beside them and at which a replay then
	// begins. 0 keeps all.
	Keep int `yaml:"keep,omitzero"`
	// FileMB is the size in MB from which a file of the journal is followed by another; 0 is 64.
	FileMB int `yaml:"file_mb,omitzero"`
}

// A base is a snapshot base-N.json, N being the number of events before it, that a replay can begin
// with: one is written in each file of the journal.
const (
	basePrefix = "base-"
	baseSuffix = ".json"
)

// bases are the numbers of events before the bases of a directory, in order.
func bases(dir string) (list []int64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, begins := strings.CutPrefix(e.Name(), basePrefix)
		text, ends := strings.CutSuffix(text, baseSuffix)
		if !begins || !ends {
			continue
		}
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list, nil
}

func baseName(events int64) string { return fmt.Sprintf("%s%015d%s", basePrefix, events, baseSuffix) }

// retain makes a base of a snapshot where the last file of the journal, which begins with the event
// first, has none yet, and removes files that lie before a base which enough files follow. What
// remains leads on from the oldest base that is in it whenever the program ends.
func retain(dir string, keep int, first int64, snapshot *machineState) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("journal.keep: %w", err)
		}
	}()
	list, err := bases(dir)
	if err != nil {
		return err
	}
	if len(list) == 0 || list[len(list)-1] < first {
		if err := writeState(dir, baseName(snapshot.Events), snapshot); err != nil {
			return err
		}
		list = append(list, snapshot.Events)
	}
	files, err := journal.Files(dir, journalPrefix)
	if err != nil {
		return err
	}
	for b := len(list) - 1; b >= 0; b-- {
		// The file that goes on from the base.
		i := len(files) - 1
		for i > 0 && files[i].First > list[b] {
			i--
		}
		if len(files)-1-i < keep {
			continue
		}
		// Files go before the bases within them, and the oldest first.
		for _, f := range files[:i] {
			err = errors.Join(err, os.Remove(f.Path))
		}
		for _, old := range list[:b] {
			err = errors.Join(err, os.Remove(filepath.Join(dir, baseName(old))))
		}
		return err
	}
	return nil
}

// begin makes a machine ready for the events of a journal, and returns the number of the first one:
// 0, or where the beginning of the journal was removed, that which follows the oldest base. warm is
// as in [Options].
func (m *Machine) begin(dir string, warm []byte) (from int64, err error) {
	files, err := journal.Files(dir, journalPrefix)
	if err != nil {
		return 0, err
	}
	if len(files) == 0 || files[0].First == 0 {
		if warm != nil {
			err = m.WarmUp(warm)
		}
		return 0, err
	}
	list, err := bases(dir)
	if err != nil {
		return 0, err
	}
	for _, events := range list {
		if events < files[0].First {
			continue
		}
		base, err := readState(dir, baseName(events))
		if err == nil && base == nil {
			err = errors.New("it is not there any more")
		}
		if err == nil {
			err = m.load(base)
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", filepath.Join(dir, baseName(events)), err)
		}
		return events, nil
	}
	return 0, fmt.Errorf("%s begins with event %d, and there is no snapshot %s*%s to begin with", files[0].Path, files[0].First, basePrefix, baseSuffix)
}
