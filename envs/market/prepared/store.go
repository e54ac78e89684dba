package prepared

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/split"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// ManifestName is the file that makes a folder a prepared set.
const ManifestName = "manifest.json"

// Save writes the set into a folder, which is made where needed, and completes the manifest with
// the files' hashes. The manifest is written last and the files of another set are removed after
// it, so that the folder always holds a whole set.
func (s *Set) Save(dir string) error { return s.SaveOn(atomicfile.OS, dir) }

// SaveOn is Save on a given disk.
func (s *Set) SaveOn(disk atomicfile.Disk, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("save prepared data: %w", err)
	}
	m := &s.Manifest
	write := func(kind string, table func(io.Writer) error, info *FileInfo) error {
		err := atomicfile.WriteNamedOn(disk, dir, func(w io.Writer) (string, error) {
			h := sha256.New()
			n := &countWriter{}
			if err := table(io.MultiWriter(w, h, n)); err != nil {
				return kind, err
			}
			sum := hex.EncodeToString(h.Sum(nil))
			*info = FileInfo{Name: kind + "-" + sum[:12] + ".parquet", Bytes: n.n, SHA256: sum}
			return info.Name, nil
		})
		if err != nil {
			return fmt.Errorf("save prepared data: %w", err)
		}
		return nil
	}
	if err := write("features", s.featureTable, &m.Files.Features); err != nil {
		return err
	}
	if err := write("prices", s.priceTable, &m.Files.Prices); err != nil {
		return err
	}
	var err error
	if m.DataSHA256, err = m.digest(); err != nil {
		return fmt.Errorf("save prepared data: %w", err)
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("save prepared data: %w", err)
	}
	err = atomicfile.WriteFileOn(disk, filepath.Join(dir, ManifestName), func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
	if err != nil {
		return fmt.Errorf("save prepared data: %w", err)
	}
	return m.removeOthers(dir)
}

// countWriter counts bytes.
type countWriter struct{ n int }

func (w *countWriter) Write(b []byte) (int, error) {
	w.n += len(b)
	return len(b), nil
}

// removeOthers deletes the tables that the manifest does not name.
func (m *Manifest) removeOthers(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("save prepared data: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		ours := (strings.HasPrefix(name, "features-") || strings.HasPrefix(name, "prices-")) && strings.HasSuffix(name, ".parquet")
		if !ours || name == m.Files.Features.Name || name == m.Files.Prices.Name {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("save prepared data: remove the former table: %w", err)
		}
	}
	return nil
}

// digest identifies the content of the set: tables, layout, statistics and split, but not where
// they came from.
func (m *Manifest) digest() (string, error) {
	text, err := json.Marshal(struct {
		Features, Prices string
		Symbols, Extra   []string
		Columns          []Feature
		Split            split.Splits
		Window           int
		Timezone         string
		Quotes           []string `json:",omitempty"`
	}{m.Files.Features.SHA256, m.Files.Prices.SHA256, m.Symbols, m.Extra, m.Features, m.Split, m.W, m.Timezone, m.Quotes})
	return hash(text), err
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// maxValues bounds the number of values of a stored set, against manifests that lie.
const maxValues = 1 << 34

// ReadManifest reads and checks the manifest of a folder without its tables.
func ReadManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, ManifestName)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("open prepared data: %w", err)
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("open prepared data: %s is damaged: %w", path, err)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("open prepared data: %s: %w", path, err)
	}
	return &m, nil
}

func (m *Manifest) check() error {
	switch {
	case m.Format != Format:
		return fmt.Errorf("it is no manifest of prepared market data: format %q", m.Format)
	case m.Version < 1 || m.Version > Version:
		return fmt.Errorf("it has version %d, and this program reads versions 1 to %d; prepare the data again", m.Version, Version)
	case m.Version == 1 && len(m.Quotes) > 0:
		return errors.New("it has version 1, which knows no quotes; prepare the data again")
	case m.Version < Version && m.Universe != nil:
		return fmt.Errorf("it has version %d, which knows no universe; prepare the data again", m.Version)
	case m.T < 1 || m.N < 1 || m.F < 1 || m.W < 1 || m.W > m.T || m.T > maxValues/m.N || m.T*m.N > maxValues/m.F:
		return fmt.Errorf("the sizes T=%d, N=%d, F=%d, W=%d are impossible", m.T, m.N, m.F, m.W)
	case len(m.Symbols) != m.N || len(m.Features) != m.F:
		return fmt.Errorf("it names %d symbols and %d features, and N=%d, F=%d", len(m.Symbols), len(m.Features), m.N, m.F)
	}
	for _, r := range []split.Span{m.Split.Train, m.Split.Valid, m.Split.Test} {
		if r.Lo < 0 || r.Hi > m.T || r.Lo > r.Hi {
			return fmt.Errorf("the range %d..%d is not within the %d times", r.Lo, r.Hi, m.T)
		}
	}
	for _, f := range []FileInfo{m.Files.Features, m.Files.Prices} {
		if f.Name == "" || filepath.Base(f.Name) != f.Name {
			return fmt.Errorf("%q is no name of a table", f.Name)
		}
	}
	for _, name := range m.Quotes {
		if _, ok := bars.QuoteNamed(name); !ok {
			return fmt.Errorf("there are no quotes %q", name)
		}
	}
	if _, err := Book(m.Rules); err != nil {
		return err
	}
	want, err := m.digest()
	if err == nil && want != m.DataSHA256 {
		err = errors.New("it was changed after it was written: data_sha256 does not fit; prepare the data again")
	}
	return err
}

// Open loads the set that Save has written into a folder, with equal bits. A table that does not
// have the hash of the manifest, or is damaged, is an error that names it.
func Open(dir string) (*Set, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	loc := time.UTC
	if m.Timezone != "" {
		if loc, err = time.LoadLocation(m.Timezone); err != nil {
			return nil, fmt.Errorf("open prepared data %s: %w", dir, err)
		}
	}
	tables := make([][]byte, 2)
	for i, f := range []FileInfo{m.Files.Features, m.Files.Prices} {
		if tables[i], err = os.ReadFile(filepath.Join(dir, f.Name)); err != nil {
			return nil, fmt.Errorf("open prepared data: %w", err)
		}
		if sum := hash(tables[i]); sum != f.SHA256 {
			return nil, fmt.Errorf("open prepared data: %s was changed or is damaged: its SHA-256 is %s, expected %s; prepare the data again",
				filepath.Join(dir, f.Name), sum[:12], abbreviate(f.SHA256))
		}
	}
	s := &Set{Manifest: *m}
	s.alloc(m.T, m.N, m.F, len(m.Extra))
	if err := s.load(tables[0], tables[1], loc); err != nil {
		return nil, fmt.Errorf("open prepared data %s: %w", dir, err)
	}
	if !slices.IsSortedFunc(s.Times, time.Time.Compare) {
		return nil, fmt.Errorf("open prepared data %s: the times are not ascending", dir)
	}
	return s, nil
}

func abbreviate(s string) string { return s[:min(len(s), 12)] }
