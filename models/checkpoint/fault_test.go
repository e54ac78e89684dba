package checkpoint

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/atomicfile/faultdisk"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

func TestDamageIsFoundAndNamed(t *testing.T) {
	cases := []struct {
		name, file string
		damage     func(b []byte) []byte
		want       string
	}{
		{"flipped bit in an array", arraysFile, func(b []byte) []byte { b[len(b)-9] ^= 4; return b }, "arrays.safetensors has SHA-256"},
		{"flipped bit in the header", arraysFile, func(b []byte) []byte { b[20] ^= 1; return b }, "arrays.safetensors has SHA-256"},
		{"truncated arrays", arraysFile, func(b []byte) []byte { return b[:len(b)-1] }, "arrays.safetensors has"},
		{"longer arrays", arraysFile, func(b []byte) []byte { return append(b, 0) }, "arrays.safetensors has"},
		{"no arrays", arraysFile, nil, "arrays.safetensors is missing"},
		{"changed section", manifestFile, func(b []byte) []byte { return bytes.Replace(b, []byte(`"step": 2`), []byte(`"step": 3`), 2) }, "manifest.json has SHA-256"},
		{"truncated manifest", manifestFile, func(b []byte) []byte { return b[:len(b)/2] }, "manifest.json: "},
		{"empty manifest", manifestFile, func(b []byte) []byte { return nil }, "manifest.json: "},
		{"no schema", manifestFile, func(b []byte) []byte { return []byte("{}") }, "manifest.json has no schema"},
		{"no manifest", manifestFile, nil, "manifest.json is missing"},
		{"no sum", sumFile, nil, "manifest.sha256 is missing"},
		{"other sum", sumFile, func(b []byte) []byte { b[0] ^= 1; return b }, "manifest.json has SHA-256"},
	}
	found := 0
	for _, c := range cases {
		dir := t.TempDir()
		s := openStore(t, dir, Options{})
		older := save(t, s, 1)
		path := filepath.Join(save(t, s, 2), c.file)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if c.damage == nil {
			err = os.Remove(path)
		} else {
			err = os.WriteFile(path, c.damage(b), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = Latest(dir)
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.want) || !strings.HasSuffix(err.Error(), "the one before it is "+older) {
			t.Errorf("%s: error %v", c.name, err)
			continue
		}
		checkLoads(t, older, 1, 64)
		found++
	}
	if found != 12 {
		t.Errorf("%d of 12 kinds of damage found", found)
	}
}

// Every disk operation of a save with pruning fails once; afterwards the latest checkpoint is
// whole, and the failed attempt leaves nothing that reopening does not remove.
func TestEveryDiskOperationMayFail(t *testing.T) {
	fault := errors.New("fault")
	failures, every := 0, longtest.Every(t, 3)
	for n := 1; ; n += every {
		dir := t.TempDir()
		disk := faultdisk.New(atomicfile.OS)
		s, err := OpenStore(dir, Options{KeepLast: 1, Disk: disk})
		if err != nil {
			t.Fatal(err)
		}
		save(t, s, 1)
		disk.FailAt(n, fault)
		_, err = s.Save(Meta{Step: 2}, newCounters(2, 64))
		s.Close()
		failed := disk.Failed()
		if failed != errors.Is(err, fault) {
			t.Errorf("operation %d: error %v", n, err)
		}
		again := openStore(t, dir, Options{})
		c, err := Latest(dir)
		if err != nil {
			t.Fatalf("operation %d failed: %v", n, err)
		}
		c.Close()
		checkLoads(t, c.Path, c.Step, 64)
		for _, name := range listNames(t, dir) {
			if atomicfile.IsTemp(name) {
				t.Errorf("operation %d failed and left %s", n, name)
			}
		}
		save(t, again, 3)
		if !failed {
			break
		}
		failures++
	}
	if failures*every < 15 {
		t.Errorf("only %d operations failed", failures)
	}
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	disk := faultdisk.New(atomicfile.OS)
	s := openStore(t, dir, Options{Disk: disk})
	save(t, s, 1)
	for _, room := range []int64{0, 100, 700, 900} {
		disk.SetRoom(room)
		if _, err := s.Save(Meta{Step: 2}, newCounters(2, 64)); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("room %d: error %v", room, err)
		}
		if names := listNames(t, dir); !reflect.DeepEqual(names, []string{".lock", "ckpt-000000001"}) {
			t.Errorf("room %d: left %v", room, names)
		}
	}
	disk.SetRoom(-1)
	checkLoads(t, save(t, s, 2), 2, 64)
}
