package feed

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/universe"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// IsColumns reports whether a file begins as one of columns does.
func IsColumns(path string) bool {
	path, err := objects.Local(path)
	if err != nil {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(ColumnsMagic))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == ColumnsMagic
}

// OpenColumns maps a file. The market lies in it and is gone with Data.Close; the file must not be
// shortened before.
func OpenColumns(path string) (*trading.Data, error) {
	d, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return d, nil
}

// read returns the index of a file after checking that it fits the file.
func read(f *os.File) (x index, size int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return x, 0, err
	}
	size = info.Size()
	tail := make([]byte, 8+len(ColumnsMagic))
	if size < int64(len(tail)+len(ColumnsMagic)) {
		return x, size, fmt.Errorf("it has %d bytes and is no file of columns", size)
	}
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return x, size, err
	}
	length := binary.LittleEndian.Uint64(tail)
	if string(tail[8:]) != ColumnsMagic || length > uint64(size-int64(len(tail))) {
		return x, size, errors.New("it is no file of columns, or its end is missing")
	}
	end := size - int64(len(tail)) - int64(length)
	text := make([]byte, length)
	if _, err := f.ReadAt(text, end); err != nil {
		return x, size, err
	}
	if err := json.Unmarshal(text, &x); err != nil {
		return x, size, fmt.Errorf("its index is damaged: %w", err)
	}
	if sum, err := x.digest(); err != nil || sum != x.SHA256 {
		return x, size, errors.Join(errors.New("its index is damaged: the SHA-256 does not fit"), err)
	}
	t, n, features := int64(x.Bars), int64(len(x.Assets)), int64(len(x.Features))
	if t < 2 || n < 1 || features < 1 || t > size/n || t*n > size/features {
		return x, size, fmt.Errorf("%d bars of %d assets with %d features are impossible", t, n, features)
	}
	seen := map[string]bool{}
	for _, c := range x.Columns {
		want := t * n * 8
		switch c.Name {
		case "date":
			want = t * 8
		case "x":
			want = t * n * features * 4
		case "tradable", "at_open", "member", "gone":
			want = t * n
		}
		if c.Bytes != want || c.Offset < 0 || c.Offset%page != 0 || c.Offset > end-c.Bytes || seen[c.Name] {
			return x, size, fmt.Errorf("the column %s has %d bytes at %d, expected %d within %d, once", c.Name, c.Bytes, c.Offset, want, end)
		}
		seen[c.Name] = true
	}
	for _, name := range []string{"date", "x", "open", "close", "tradable"} {
		if !seen[name] {
			return x, size, fmt.Errorf("the column %s is missing", name)
		}
	}
	return x, size, nil
}

func open(path string) (_ *trading.Data, err error) {
	if path, err = objects.Local(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	x, size, err := read(f)
	if err != nil {
		return nil, err
	}
	zone, err := time.LoadLocation(x.Zone)
	if err != nil {
		return nil, err
	}
	book, err := prepared.Book(x.Rules)
	if err != nil {
		return nil, err
	}
	b, err := atomicfile.Map(f, int(size))
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", size, err)
	}
	m := &trading.Market{Assets: x.Assets, Features: x.Features, Dates: make([]time.Time, x.Bars), Rules: book, Checked: true, Release: func() { atomicfile.ReleasePages(b) }}
	byName := map[string][]byte{}
	for _, c := range x.Columns {
		byName[c.Name] = b[c.Offset : c.Offset+c.Bytes]
		if strings.HasPrefix(c.Name, "raw.") && m.Raw == nil {
			m.Raw = &trading.RawPrices{}
		}
	}
	for i, ns := range view[int64](byName["date"]) {
		m.Dates[i] = time.Unix(0, ns).In(zone)
	}
	m.X = view[float32](byName["x"])
	for _, c := range numbers(m) {
		*c.values = view[float64](byName[c.name])
	}
	m.Tradable, m.AtOpen = view[trading.Sides](byName["tradable"]), view[trading.Sides](byName["at_open"])
	m.Members = view[universe.Membership](byName["member"])
	m.Gone = view[uint8](byName["gone"])
	d := &trading.Data{
		Market: m, Splits: x.Splits, TrainParts: x.Parts, Scales: x.Scales, LookAhead: x.LookAhead, Digests: map[string]string{}, Adjusted: x.Adjusted, Notes: x.Notes,
		Close: func() error { return atomicfile.Unmap(b) },
	}
	for name, digest := range x.Digests {
		d.Digests[name] = digest
	}
	d.Digests["data_sha256"] = x.SHA256
	for _, r := range slices.Concat(slices.Collect(maps.Values(x.Splits)), x.Parts) {
		if r.First < 0 || r.Last >= x.Bars || r.First >= r.Last {
			return nil, errors.Join(fmt.Errorf("a split is bars %d to %d of %d", r.First, r.Last, x.Bars), d.Close())
		}
	}
	return d, nil
}

// view takes bytes that begin at a page for numbers; none are nil.
func view[T any](b []byte) []T {
	if b == nil {
		return nil
	}
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}

// VerifyColumns reads all columns of a file and reports those that were changed after they were written.
func VerifyColumns(path string) (err error) {
	if path, err = objects.Local(path); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	x, _, err := read(f)
	if err != nil {
		return fmt.Errorf("verify %s: %w", path, err)
	}
	for _, c := range x.Columns {
		h := sha256.New()
		if _, err := io.Copy(h, io.NewSectionReader(f, c.Offset, c.Bytes)); err != nil {
			return fmt.Errorf("verify %s: the column %s: %w", path, c.Name, err)
		}
		if sum := hex.EncodeToString(h.Sum(nil)); sum != c.SHA256 {
			return fmt.Errorf("verify %s: the column %s was changed or is damaged: its SHA-256 is %s, expected %s", path, c.Name, sum[:12], c.SHA256[:min(12, len(c.SHA256))])
		}
	}
	return nil
}
