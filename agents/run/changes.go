package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/configs"
)

// ChangesSince compares a document with the one that a directory was started with, which its
// lineage holds: edits of config.yaml count like those of --set. Where the older one lacks a key,
// because no such key existed when the run was started, it counts as this program's default.
func ChangesSince(kinds experiment.Kinds, dir string, cfg experiment.Config) (old experiment.Config, changes []configs.Change, err error) {
	old = experiment.Defaults()
	kinds.Note = nil // Nobody edits what is stored.
	var l Lineage
	path := filepath.Join(dir, LineageFile)
	if err := ReadJSON(path, &l); err != nil {
		return old, nil, err
	}
	name := path + " (config)"
	doc, err := configs.Parse(name, []byte(l.Config))
	if err != nil {
		return old, nil, err
	}
	if err := doc.Decode(&old); err != nil {
		return old, nil, valuesOf(doc, name, err)
	}
	changes, err = configs.Diff(old, cfg)
	lacking := func(c configs.Change) bool { return c.Old == "" }
	if err != nil || !slices.ContainsFunc(changes, lacking) {
		return old, changes, err
	}
	settled, err := kinds.Settle(context.Background(), old)
	switch {
	case err != nil && len(slices.DeleteFunc(slices.Clone(changes), lacking)) > 0:
		// The other changes may well be the reason, and say more.
		return old, changes, nil
	case err != nil:
		return old, nil, valuesOf(doc, name, err)
	}
	// The older of two encoders may lack keys that the newer one states.
	if cfg, err = kinds.Settle(context.Background(), cfg); err != nil {
		return old, nil, err
	}
	changes, err = configs.Diff(settled, cfg)
	return settled, changes, err
}

// explainStored adds the run's own value to an error of the configuration of a run that is resumed.
// The error is about a key that this program does not know any more, or a value that it does not
// accept.
func (p *Plan) explainStored(path string, err error) error {
	if !p.resume {
		return err
	}
	if doc, perr := configs.Open(path); perr == nil {
		err = valuesOf(doc, path, err)
	}
	return fmt.Errorf("resume %s: %w", filepath.Clean(p.dir), err)
}

// valuesOf adds to the problems of a document, which was parsed under a name, the values that it
// has there.
func valuesOf(doc *configs.Document, name string, err error) error {
	var problems configs.Errors
	if !errors.As(err, &problems) {
		return err
	}
	var list []string
	for _, e := range problems {
		section, ok := doc.Lookup(e.Path)
		if !ok || e.Path == "" || e.File != name {
			continue
		}
		now := "not accepted"
		if strings.HasPrefix(e.Message, "unknown key") {
			now = "absent"
		}
		// The value on one line: the difference to nothing.
		if d, derr := configs.Diff(section, configs.Section{}); derr == nil && len(d) == 1 {
			list = append(list, fmt.Sprintf("%s: %s -> %s", e.Path, d[0].Old, now))
		}
	}
	if len(list) == 0 {
		return err
	}
	return fmt.Errorf("the configuration of the run is not one of this program: %s\n%w", strings.Join(list, "; "), err)
}
