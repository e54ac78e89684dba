package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Schema is the version of the manifest's layout that is written.
const Schema = 2

const (
	arraysFile   = "arrays.safetensors"
	manifestFile = "manifest.json"
	sumFile      = "manifest.sha256"
	maxManifest  = 256 << 20
)

// ErrCorrupt marks checkpoints whose files are damaged, incomplete or not what their manifest says.
var ErrCorrupt = errors.New("checkpoint is damaged")

// Manifest describes a checkpoint.
type Manifest struct {
	Schema int `json:"schema"`
	// Kind says what was saved, such as "fit" or "ppo". Loading another kind than expected is the
	// caller's decision.
	Kind string `json:"kind"`
	// Step is what the checkpoint is named by: the learner's or the environment's step, as the kind
	// decides.
	Step int64 `json:"step"`
	// Score is what the checkpoint was worth, higher is better; nil where it was not evaluated.
	Score *float64 `json:"score"`
	// Info is free text about the creation: time, version of the program, host.
	Info map[string]string `json:"info"`
	// Files are the files the manifest vouches for.
	Files map[string]FileSum `json:"files"`

	Sections map[string]json.RawMessage `json:"sections"`
}

// FileSum is the size in bytes and the SHA-256, in hexadecimal, of a file.
type FileSum struct {
	Size   int64  `json:"size"` // -1 where an older manifest did not record it
	SHA256 string `json:"sha256"`
}

// readManifest reads, verifies and migrates the manifest of the checkpoint in dir, and returns the
// SHA-256 of what it has read.
func readManifest(dir string) (_ *Manifest, sum string, err error) {
	text, err := readLimited(filepath.Join(dir, manifestFile))
	if err != nil {
		return nil, "", err
	}
	hash := sha256.Sum256(text)
	sum = hex.EncodeToString(hash[:])
	var head struct{ Schema *int }
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, "", fmt.Errorf("%w: %s: %w", ErrCorrupt, manifestFile, err)
	}
	if head.Schema == nil {
		return nil, "", fmt.Errorf("%w: %s has no schema", ErrCorrupt, manifestFile)
	}
	if *head.Schema >= 2 {
		if err := verifyManifest(dir, sum); err != nil {
			return nil, "", err
		}
	}
	if text, err = migrate(text, *head.Schema); err != nil {
		return nil, "", err
	}
	var m Manifest
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return nil, "", fmt.Errorf("%w: %s: %w", ErrCorrupt, manifestFile, err)
	}
	if _, ok := m.Files[arraysFile]; !ok {
		return nil, "", fmt.Errorf("%w: %s does not list %s", ErrCorrupt, manifestFile, arraysFile)
	}
	for name := range m.Files {
		if name != filepath.Base(name) || name == "." || name == ".." {
			return nil, "", fmt.Errorf("%w: %s lists %q, which is not a file name", ErrCorrupt, manifestFile, name)
		}
	}
	return &m, sum, nil
}

func readLimited(path string) ([]byte, error) {
	stat, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is missing: %w", ErrCorrupt, filepath.Base(path), err)
	}
	if err != nil {
		return nil, err
	}
	if stat.Size() > maxManifest {
		return nil, fmt.Errorf("%w: %s has %d bytes, more than %d", ErrCorrupt, filepath.Base(path), stat.Size(), maxManifest)
	}
	return os.ReadFile(path)
}

func verifyManifest(dir, got string) error {
	sums, err := readLimited(filepath.Join(dir, sumFile))
	if err != nil {
		return err
	}
	if want, _, _ := strings.Cut(string(sums), " "); got != want {
		return fmt.Errorf("%w: %s has SHA-256 %s, expected %s", ErrCorrupt, manifestFile, got, want)
	}
	return nil
}

// verifyFile compares a file with what the manifest says.
func verifyFile(path string, want FileSum) error {
	name := filepath.Base(path)
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %s is missing: %w", ErrCorrupt, name, err)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	size, err := io.CopyBuffer(h, f, make([]byte, 256<<10))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if want.Size >= 0 && size != want.Size {
		return fmt.Errorf("%w: %s has %d bytes, expected %d", ErrCorrupt, name, size, want.Size)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want.SHA256 {
		return fmt.Errorf("%w: %s has SHA-256 %s, expected %s", ErrCorrupt, name, got, want.SHA256)
	}
	return nil
}
