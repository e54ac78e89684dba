package flight

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"

	files "github.com/onnxrl/onnxrl/runtime/journal"
)

// Repaired says what has become of a table whose folder was repaired; the JSON keys are stable.
type Repaired struct {
	Table string `json:"table"`
	// Lost are the parts of the journal that cannot be read.
	Lost []files.Damage `json:"lost"`
	// LeftOut is the number of records behind them that are whole and mean nothing without what is
	// lost: rows of a writer whose beginning is lost, priorities, items without a schema.
	LeftOut int `json:"left_out"`
	// Checkpoints are those that were damaged, where they are now. By themselves they lose nothing.
	Checkpoints []string `json:"checkpoints"`
	// Size is the number of transitions, or items, that the table has now.
	Size int `json:"size"`
}

// lost reports whether records were lost before those that are read now.
func (r *Repaired) lost() bool { return r != nil && len(r.Lost) > 0 }

// damagedSuffix is that of the files of a journal that a repair has set aside.
const damagedSuffix = ".damaged"

// opening says what becomes of what cannot be read of a journal.
func (t *base) opening() opening {
	o := opening{note: func(text string) { t.log.Warn(text) }}
	if t.repaired == nil {
		return o
	}
	o.lost = func(d *files.Damage) error {
		t.repaired.Lost = append(t.repaired.Lost, *d)
		// Of a file that is missing there is nothing to keep.
		if d.Bytes == 0 {
			return nil
		}
		// A repair that did not end has set the same file aside.
		if err := os.Link(d.Path, d.Path+damagedSuffix); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	}
	return o
}

// Repair makes the tables of a folder such that a server can open them, where their journals are
// damaged before the end: what is whole is kept, before and behind the damage, and saved. Files that
// are damaged are kept beside the others, under names that end in .damaged. No server may have the
// folder.
func Repair(dir string, tables map[string]TableConfig, log *slog.Logger) (list []Repaired, err error) {
	s, err := open(dir, tables, log, true)
	if err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(s.tables) {
		r := s.tables[name].repair()
		r.Size = s.tables[name].about().Size
		list = append(list, *r)
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	for _, r := range list {
		for _, d := range r.Lost {
			if err := os.Remove(d.Path); d.Bytes > 0 && err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
	}
	return list, nil
}

// repair implements kept.
func (t *base) repair() *Repaired { return t.repaired }
