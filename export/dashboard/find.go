package dashboard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// Kind is what an item is.
type Kind string

const (
	Training   Kind = "run"
	Population Kind = "population"
	Report     Kind = "report"
	World      Kind = "world"
	Trading    Kind = "trading"
	Store      Kind = "store"
)

// Item is something that a board shows.
type Item struct {
	// ID is its path, with slashes, as it was reached from what the board was given.
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`

	path string
}

const (
	metricsFile = "metrics.jsonl"
	membersFile = "members.jsonl"
	// deepest is how far below what was given a board looks, mostEntries how much it looks at.
	deepest     = 10
	mostEntries = 1 << 20
)

// closed are folders in which nothing is that a board would show by itself.
var closed = map[string]bool{"checkpoints": true, "tensorboard": true, "plots": true, "blobs": true, "replay": true, ".git": true, "node_modules": true}

var generation = regexp.MustCompile(`^generation-\d+$`)

// finder finds items. It remembers which files are none until they change.
type finder struct {
	sniffed map[string]sniff
	items   []Item
	found   map[string]bool
	entries int
	// member says that the folder is of a member of a population.
	member bool
}

// sniff is what a file was, "" for nothing that is shown.
type sniff struct {
	size, changed int64
	kind          Kind
}

var errMany = errors.New("too many files")

// find lists the items in and below the paths, in the order of a walk.
func (f *finder) find(paths []string) ([]Item, error) {
	f.items, f.found, f.entries, f.member = nil, map[string]bool{}, 0, false
	before := f.sniffed
	f.sniffed = map[string]sniff{}
	var errs []error
	for _, p := range paths {
		info, err := os.Stat(p)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("look for runs: %w", err))
		case info.IsDir():
			if err := f.folder(p, 0, before); err != nil {
				errs = append(errs, fmt.Errorf("look for runs in %s: %w", p, err))
			}
		case filepath.Base(p) == metricsFile:
			f.add(Training, filepath.Dir(p))
		default:
			f.file(p, info, before)
		}
	}
	return f.items, errors.Join(errs...)
}

// add adds an item, unless another of the paths has led to it too.
func (f *finder) add(k Kind, path string) {
	it := Item{ID: filepath.ToSlash(filepath.Clean(path)), Kind: k, path: path}
	if !f.found[it.key()] {
		f.found[it.key()] = true
		f.items = append(f.items, it)
	}
}

// key is of no other item.
func (i Item) key() string { return string(i.Kind) + " " + i.ID }

// folder looks at a folder and those below it. Links are not followed.
func (f *finder) folder(dir string, depth int, before map[string]sniff) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed meanwhile
	}
	if err != nil {
		return err
	}
	if f.entries += len(entries); f.entries > mostEntries {
		return fmt.Errorf("%w: more than %d; give folders further down", errMany, mostEntries)
	}
	has, newest := map[string]bool{}, ""
	for _, e := range entries {
		has[e.Name()] = true
		if generation.MatchString(e.Name()) {
			newest = e.Name() // They are sorted.
		}
	}
	if has[metricsFile] && !f.member {
		f.add(Training, dir)
	}
	population := has[membersFile] && has["evolution.yaml"]
	if population {
		f.add(Population, dir)
	}
	if has["summary.json"] && has["equity.csv"] {
		f.add(Report, dir)
	}
	if has["oci-layout"] && has["index.json"] {
		f.add(Store, dir)
		return nil
	}
	for _, e := range entries {
		name, path := e.Name(), filepath.Join(dir, e.Name())
		if e.IsDir() {
			// Members of a population are shown with it, and not as so many runs; what the newest
			// of them have published and how they were judged are items.
			inside := f.member
			if population && generation.MatchString(name) {
				if name != newest {
					continue
				}
				f.member = true
			}
			if depth < deepest && !closed[name] {
				if err := f.folder(path, depth+1, before); err != nil {
					return err
				}
			}
			f.member = inside
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			f.file(path, info, before)
		}
	}
	return nil
}

// known are files of runs that are no items by their names.
var known = map[string]bool{metricsFile: true, membersFile: true, "trials.jsonl": true, "outcomes.jsonl": true, "finished.json": true, "lineage.json": true, "sources.json": true, "summary.json": true, "interval.json": true, "probe.json": true, "metrics.json": true, "index.json": true}

// file adds a file that its first bytes tell to be a world or a log of trading.
func (f *finder) file(path string, info fs.FileInfo, before map[string]sniff) {
	ext := filepath.Ext(path)
	if known[filepath.Base(path)] || ext != ".json" && ext != ".jsonl" {
		return
	}
	s := sniff{size: info.Size(), changed: info.ModTime().UnixNano()}
	if old, ok := before[path]; ok && (old.kind != "" || old.size == s.size && old.changed == s.changed) {
		s.kind = old.kind
	} else if head, err := readHead(path); err == nil {
		s.kind = kindOf(ext, head)
	}
	f.sniffed[path] = s
	if s.kind != "" {
		f.add(s.kind, path)
	}
}

// readHead returns the first 8 KiB of a file.
func readHead(path string) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 8<<10))
}

func kindOf(ext string, head []byte) Kind {
	if ext == ".json" {
		for _, key := range []string{`"n_processes"`, `"n_steps"`, `"catalog_prices"`} {
			if !bytes.Contains(head, []byte(key)) {
				return ""
			}
		}
		return World
	}
	line, _, _ := bytes.Cut(head, []byte("\n"))
	var l struct {
		Time      *string            `json:"time"`
		Value     *float64           `json:"value"`
		Positions map[string]float64 `json:"positions"`
	}
	if json.Unmarshal(line, &l) != nil || l.Time == nil || l.Value == nil || l.Positions == nil {
		return ""
	}
	return Trading
}
