package parquetfile

import (
	"bytes"
	"errors"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
)

var errFull = errors.New("disk full")

// full accepts so many bytes.
type full struct{ left int }

func (f *full) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

// TestWriter writes three row groups and reads them back; a disk that fills at one of a dozen places is an error.
func TestWriter(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Float64}}, nil)
	write := func(out *Writer) error {
		x := 0.0
		for _, rows := range []int{3, 0, 2} {
			for range rows {
				out.Field(0).(*array.Float64Builder).Append(x)
				x++
			}
			if err := out.Flush(); err != nil {
				return errors.Join(err, out.Close())
			}
		}
		out.Field(0).(*array.Float64Builder).Append(x)
		return out.Close()
	}
	var whole bytes.Buffer
	w, err := Create(&whole, schema)
	if err == nil {
		err = write(w)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(bytes.NewReader(whole.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var got []float64
	for g := range f.Groups() {
		a, err := f.Column(g, 0)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, a.(*array.Float64).Float64Values()...)
	}
	if f.Groups() != 3 || len(got) != 6 || got[5] != 5 {
		t.Fatalf("%d groups with %v, expected 3 with 0 to 5", f.Groups(), got)
	}
	tried := 0
	// Each trial makes encoders of several MB for every page.
	for n := 0; n < whole.Len(); n += whole.Len() / 12 {
		tried++
		w, err := Create(&full{n}, schema)
		if err == nil {
			err = write(w)
		}
		if !errors.Is(err, errFull) {
			t.Fatalf("a disk with %d of %d bytes: %v, expected %v", n, whole.Len(), err, errFull)
		}
	}
	if tried < 12 {
		t.Errorf("%d disks were tried, expected at least 12", tried)
	}
}
