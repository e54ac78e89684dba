package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// maxHeader is the limit of the reference implementation.
const maxHeader = 100_000_000

// Info describes an array of a file.
type Info struct {
	Name       string
	DType      DType
	Shape      []int
	begin, end int // bytes, from the end of the header
}

// Size is the number of bytes.
func (i Info) Size() int { return i.end - i.begin }

// Len is the number of elements.
func (i Info) Len() int { return i.Size() / i.DType.Size() }

// parseHeader reads the JSON strictly: encoding/json alone would accept duplicate and unknown keys.
func parseHeader(text []byte, dataSize int) (infos []Info, metadata map[string]string, err error) {
	if !utf8.Valid(text) {
		return nil, nil, errors.New("header is not valid UTF-8")
	}
	if len(text) == 0 || text[0] != '{' {
		return nil, nil, errors.New("header does not start with {")
	}
	p := headerParser{json.NewDecoder(bytes.NewReader(text))}
	p.UseNumber()
	seen := map[string]bool{}
	err = p.object(func(name string) error {
		if seen[name] {
			return fmt.Errorf("%q given twice", name)
		}
		seen[name] = true
		if name == metadataKey {
			metadata, err = p.strings()
			return err
		}
		info, err := p.info(name)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		infos = append(infos, info)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if _, err := p.Token(); err != io.EOF {
		return nil, nil, errors.New("text follows the header's JSON")
	}
	return infos, metadata, checkRanges(infos, dataSize)
}

// checkRanges requires that the ranges cover the data exactly. Empty arrays may lie at any
// boundary.
func checkRanges(infos []Info, dataSize int) error {
	ordered := slices.Clone(infos)
	slices.SortFunc(ordered, func(a, b Info) int {
		if a.begin != b.begin {
			return a.begin - b.begin
		}
		return a.end - b.end
	})
	at := 0
	for _, i := range ordered {
		switch {
		case i.begin < at:
			return fmt.Errorf("tensor %q: bytes %d to %d overlap another tensor", i.Name, i.begin, i.end)
		case i.begin > at:
			return fmt.Errorf("tensor %q: bytes %d to %d before it belong to no tensor", i.Name, at, i.begin)
		}
		at = i.end
	}
	if at != dataSize {
		return fmt.Errorf("tensors take %d bytes, the file has %d after the header", at, dataSize)
	}
	return nil
}

type headerParser struct{ *json.Decoder }

func (p headerParser) delim(want json.Delim) error {
	tk, err := p.Token()
	if err != nil {
		return tokenError(err)
	}
	if tk != want {
		return fmt.Errorf("expected %v, found %v", want, tk)
	}
	return nil
}

func tokenError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("header ends early")
	}
	return err
}

// object calls value at each value of an object.
func (p headerParser) object(value func(key string) error) error {
	if err := p.delim('{'); err != nil {
		return err
	}
	for p.More() {
		tk, err := p.Token()
		if err != nil {
			return tokenError(err)
		}
		key, ok := tk.(string)
		if !ok {
			return fmt.Errorf("expected a key, found %v", tk)
		}
		if err := value(key); err != nil {
			return err
		}
	}
	return p.delim('}')
}

func (p headerParser) strings() (map[string]string, error) {
	out := map[string]string{}
	err := p.object(func(key string) error {
		if _, dup := out[key]; dup {
			return fmt.Errorf("metadata: %q given twice", key)
		}
		tk, err := p.Token()
		if err != nil {
			return tokenError(err)
		}
		value, ok := tk.(string)
		if !ok {
			return fmt.Errorf("metadata: %q is not a string", key)
		}
		out[key] = value
		return nil
	})
	return out, err
}

func (p headerParser) info(name string) (Info, error) {
	info := Info{Name: name}
	var offsets []int
	var dtype, shape bool
	err := p.object(func(key string) (err error) {
		switch {
		case key == "dtype" && !dtype:
			dtype = true
			tk, err := p.Token()
			if err != nil {
				return tokenError(err)
			}
			text, ok := tk.(string)
			if !ok {
				return fmt.Errorf("dtype is %v, expected a string", tk)
			}
			info.DType = DType(text)
			return nil
		case key == "shape" && !shape:
			shape = true
			info.Shape, err = p.integers()
			return err
		case key == "data_offsets" && offsets == nil:
			offsets, err = p.integers()
			return err
		}
		return fmt.Errorf("key %q is unknown or given twice", key)
	})
	if err != nil {
		return info, err
	}
	if !dtype || !shape || len(offsets) != 2 {
		return info, errors.New("expected dtype, shape and two data_offsets")
	}
	size, err := byteSize(info.DType, info.Shape)
	if err != nil {
		return info, err
	}
	info.begin, info.end = offsets[0], offsets[1]
	if info.end-info.begin != size {
		return info, fmt.Errorf("data_offsets %v span %d bytes, but shape %v of %s takes %d",
			offsets, info.end-info.begin, info.Shape, info.DType, size)
	}
	return info, nil
}

// integers reads a list of numbers that are not negative. It never returns nil without an error.
func (p headerParser) integers() ([]int, error) {
	if err := p.delim('['); err != nil {
		return nil, err
	}
	out := []int{}
	for p.More() {
		tk, err := p.Token()
		if err != nil {
			return nil, tokenError(err)
		}
		text, ok := tk.(json.Number)
		if !ok {
			return nil, fmt.Errorf("expected an integer, found %v", tk)
		}
		v, err := strconv.ParseUint(string(text), 10, 64)
		if err != nil || v > math.MaxInt {
			return nil, fmt.Errorf("expected an integer that is not negative, found %s", text)
		}
		out = append(out, int(v))
	}
	return out, p.delim(']')
}
