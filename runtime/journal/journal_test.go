package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// written is a file of frames of so many records each; the body of a frame names its records.
func written(t *testing.T, dir string, first int64, records ...int64) (File, []byte) {
	t.Helper()
	w, err := Create(dir, "j-", first)
	if err != nil {
		t.Fatal(err)
	}
	n := first
	for _, k := range records {
		b := append(make([]byte, FrameHead), bodyOf(n, k)...)
		w.Seal(b, n)
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
		n += k
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(w.Path())
	if err != nil || int64(len(text)) != w.Size() {
		t.Fatal(len(text), err)
	}
	return File{w.Path(), first}, text
}

func bodyOf(n, k int64) string { return fmt.Sprintf("%d records from %d", k, n) }

// took reads a file, and lists what there was and what is lost.
func took(f File, last bool) (list []string, lost []Damage, r Result, err error) {
	r, err = f.Read(last, func(d *Damage) error {
		lost = append(lost, *d)
		return nil
	}, func(n int64, body []byte) (int64, error) {
		var k, from int64
		if _, err := fmt.Sscanf(string(body), "%d records from %d", &k, &from); err != nil || from != n {
			return 0, fmt.Errorf("frame %d: %q (%v)", n, body, err)
		}
		list = append(list, string(body))
		return n + k, nil
	})
	return list, lost, r, err
}

// TestEveryBit flips each bit of a file of which everything was acknowledged. Nothing behind the
// damage is lost, and the loss is reported; only where nothing whole follows it may have been cut
// off.
func TestEveryBit(t *testing.T) {
	f, text := written(t, t.TempDir(), 7, 3, 1, 2, 4)
	all := []string{bodyOf(7, 3), bodyOf(10, 1), bodyOf(11, 2), bodyOf(13, 4)}
	ends := []int{2 * headSize}
	for _, b := range all {
		ends = append(ends, ends[len(ends)-1]+FrameHead+len(b))
	}
	file, err := os.OpenFile(f.Path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for at := range text {
		for bit := range 8 {
			if _, err := file.WriteAt([]byte{text[at] ^ 1<<bit}, int64(at)); err != nil {
				t.Fatal(err)
			}
			list, lost, r, err := took(f, true)
			if err != nil {
				t.Fatalf("byte %d, bit %d: %v", at, bit, err)
			}
			frame, _ := slices.BinarySearch(ends, at+1)
			frame-- // −1 is the head, of which there are two.
			switch {
			case frame < 0:
				if !slices.Equal(list, all) || len(lost) > 0 {
					t.Fatalf("byte %d, bit %d of the heads: %q, lost %v", at, bit, list, lost)
				}
			case frame == len(all)-1:
				if !slices.Equal(list, all[:frame]) || len(lost) > 0 || r.End != int64(ends[frame]) || r.Torn != int64(len(text)-ends[frame]) {
					t.Fatalf("byte %d, bit %d of the last frame: %q, lost %v, %+v", at, bit, list, lost, r)
				}
			default:
				want := slices.Delete(slices.Clone(all), frame, frame+1)
				if !slices.Equal(list, want) || len(lost) != 1 || lost[0].At != int64(ends[frame]) || lost[0].Bytes != int64(ends[frame+1]-ends[frame]) || r.Next != 17 {
					t.Fatalf("byte %d, bit %d of frame %d: %q, lost %+v", at, bit, frame, list, lost)
				}
				var d *Damage
				if _, err := f.Read(true, nil, func(n int64, b []byte) (int64, error) { return n + int64(b[0]-'0'), nil }); !errors.As(err, &d) || !strings.Contains(err.Error(), f.Path) || !strings.Contains(err.Error(), fmt.Sprintf("byte %d", ends[frame])) {
					t.Fatalf("byte %d, bit %d: %v", at, bit, err)
				}
			}
			if frame == len(all)-1 && bit == 0 {
				// Where another file follows nothing was cut off.
				if _, lost, _, err := took(f, false); err != nil || len(lost) != 1 {
					t.Fatalf("byte %d of a file before the last: lost %v, %v", at, lost, err)
				}
			}
		}
		if _, err := file.WriteAt(text[at:at+1], int64(at)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEveryCut cuts a file off after each byte, and goes on behind what is whole.
func TestEveryCut(t *testing.T) {
	f, text := written(t, t.TempDir(), 0, 3, 1, 2)
	for cut := range text {
		if err := os.WriteFile(f.Path, text[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		list, lost, r, err := took(f, true)
		if err != nil || len(lost) > 0 || r.End+r.Torn != int64(cut) {
			t.Fatalf("cut off after %d bytes: %q, lost %v, %+v, %v", cut, list, lost, r, err)
		}
		if r.End == 0 {
			continue // Such a file begins again.
		}
		w, err := f.Continue(r)
		if err != nil {
			t.Fatal(err)
		}
		b := append(make([]byte, FrameHead), bodyOf(r.Next, 1)...)
		w.Seal(b, r.Next)
		if err := errors.Join(w.Write(b), w.Close()); err != nil {
			t.Fatal(err)
		}
		if again, lost, _, err := took(f, true); err != nil || len(lost) > 0 || !slices.Equal(again, append(list, bodyOf(r.Next, 1))) {
			t.Fatalf("cut off after %d bytes and gone on with: %q, lost %v, %v", cut, again, lost, err)
		}
	}
}

// TestForged has a body that looks like frames, of this file's form and later numbers, and is cut
// off: it is not taken for frames.
func TestForged(t *testing.T) {
	dir := t.TempDir()
	_, other := written(t, t.TempDir(), 5, 1, 1)
	w, err := Create(dir, "j-", 0)
	if err != nil {
		t.Fatal(err)
	}
	b := append(make([]byte, FrameHead), other...)
	w.Seal(b, 0)
	if err := errors.Join(w.Write(b[:len(b)-1]), w.Close()); err != nil {
		t.Fatal(err)
	}
	if list, lost, r, err := took(File{w.Path(), 0}, true); err != nil || len(list)+len(lost) > 0 || r.End != 2*headSize {
		t.Errorf("%q, lost %v, %+v, %v", list, lost, r, err)
	}
}

// TestFiles are in the order of their numbers; a name that is none is an error.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for _, first := range []int64{100, 3, 20} {
		written(t, dir, first)
	}
	list, err := Files(dir, "j-")
	if err != nil || len(list) != 3 || list[0].First != 3 || list[2].First != 100 {
		t.Error(list, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "j-x.log"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Files(dir, "j-"); err == nil || !strings.Contains(err.Error(), "j-x.log") {
		t.Error(err)
	}
}

// TestRemoved has somebody remove or replace a file that is written: nothing is acknowledged then.
func TestRemoved(t *testing.T) {
	for what, do := range sorted.All(map[string]func(path string) error{
		"removed": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, nil, 0o644))
		},
	}) {
		w, err := Create(t.TempDir(), "j-", 1)
		if err != nil {
			t.Fatal(err)
		}
		frame := append(make([]byte, FrameHead), bodyOf(1, 1)...)
		w.Seal(frame, 1)
		if err := errors.Join(w.Write(frame), w.Sync(), do(w.Path()), w.Write(frame)); err != nil {
			t.Fatal(err)
		}
		if err := w.Sync(); err == nil || !strings.Contains(err.Error(), w.Path()+" was removed or replaced") {
			t.Errorf("%s: %v", what, err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}
