package oip

import (
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// AppendResponse appends the answer in the form that the request asked for: JSON, and after it the
// tensors that were asked for in binary. jsonLen is the length of the JSON, -1 when nothing follows
// it. A NaN or an infinity that was asked for in JSON is an InvalidArgument: JSON has no such
// numbers.
func (r *Request) AppendResponse(dst []byte, resp *serve.Response) (body []byte, jsonLen int, err error) {
	start, binary := len(dst), false
	dst = appendHead(append(dst, `{"model_name":`...), resp)
	for i, out := range resp.Outputs {
		if i > 0 {
			dst = append(dst, ',')
		}
		in := r.form(i)
		binary = binary || in
		if dst, err = appendTensor(dst, out, in); err != nil {
			return dst[:start], -1, bad("output %q: %w", out.Name, err)
		}
	}
	dst = append(dst, "]}"...)
	if !binary {
		return dst, -1, nil
	}
	jsonLen = len(dst) - start
	for i, out := range resp.Outputs {
		if r.form(i) {
			dst = AppendBinary(dst, out.Value)
		}
	}
	return dst, jsonLen, nil
}

// form reports whether output i is asked for in binary.
func (r *Request) form(i int) bool {
	if i < len(r.forms) && r.forms[i] != asDefault {
		return r.forms[i] == asBinary
	}
	return r.binary
}

func appendHead(dst []byte, resp *serve.Response) []byte {
	dst = AppendString(dst, resp.Model)
	if resp.Version != "" {
		dst = AppendString(append(dst, `,"model_version":`...), resp.Version)
	}
	if resp.ID != "" {
		dst = AppendString(append(dst, `,"id":`...), resp.ID)
	}
	return append(dst, `,"outputs":[`...)
}

// appendTensor appends the description of a tensor, with its data unless that follows in binary.
func appendTensor(dst []byte, t serve.Tensor, binary bool) ([]byte, error) {
	dst = AppendString(append(dst, `{"name":`...), t.Name)
	dst = append(dst, `,"datatype":"`...)
	dst = append(dst, Datatype(t.Value.DType())...)
	dst = append(dst, `","shape":[`...)
	for i, d := range t.Value.Shape() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(d), 10)
	}
	if binary {
		dst = append(dst, `],"parameters":{"binary_data_size":`...)
		dst = strconv.AppendInt(dst, int64(BinarySize(t.Value)), 10)
		return append(dst, "}}"...), nil
	}
	dst = append(dst, `],"data":[`...)
	dst, err := appendData(dst, t.Value)
	return append(dst, "]}"...), err
}

// appendData appends the elements, flat.
func appendData(dst []byte, t *tensor.Tensor) ([]byte, error) {
	switch t.DType() {
	case tensor.Float32:
		return appendFloats(dst, t.Float32s())
	case tensor.Float64:
		return join(dst, t.Float64s(), func(dst []byte, v float64) ([]byte, error) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return dst, notJSON(v)
			}
			return AppendFloat64(dst, v), nil
		})
	case tensor.Float16:
		return join(dst, tensor.Data[uint16](t), func(dst []byte, v uint16) ([]byte, error) { return appendFinite32(dst, tensor.Float16ToFloat32(v)) })
	case tensor.BFloat16:
		return join(dst, tensor.Data[uint16](t), func(dst []byte, v uint16) ([]byte, error) { return appendFinite32(dst, tensor.BFloat16ToFloat32(v)) })
	case tensor.Bool:
		return join(dst, t.Bools(), func(dst []byte, v bool) ([]byte, error) { return strconv.AppendBool(dst, v), nil })
	case tensor.String:
		return join(dst, t.Strings(), func(dst []byte, v string) ([]byte, error) {
			if !utf8.ValidString(v) {
				return dst, bad("text that is not UTF-8, which JSON cannot carry; ask for binary_data")
			}
			return AppendString(dst, v), nil
		})
	case tensor.Int8:
		return join(dst, tensor.Data[int8](t), appendInt)
	case tensor.Int16:
		return join(dst, tensor.Data[int16](t), appendInt)
	case tensor.Int32:
		return join(dst, t.Int32s(), appendInt)
	case tensor.Int64:
		return join(dst, t.Int64s(), appendInt)
	case tensor.Uint8:
		return join(dst, tensor.Data[uint8](t), appendUint)
	case tensor.Uint16:
		return join(dst, tensor.Data[uint16](t), appendUint)
	case tensor.Uint32:
		return join(dst, tensor.Data[uint32](t), appendUint)
	case tensor.Uint64:
		return join(dst, tensor.Data[uint64](t), appendUint)
	}
	return dst, bad("%v has no JSON form", t.DType())
}

func appendInt[T int8 | int16 | int32 | int64](dst []byte, v T) ([]byte, error) {
	return strconv.AppendInt(dst, int64(v), 10), nil
}

func appendUint[T uint8 | uint16 | uint32 | uint64](dst []byte, v T) ([]byte, error) {
	return strconv.AppendUint(dst, uint64(v), 10), nil
}

// appendFloats is join for what nearly all tensors hold.
func appendFloats(dst []byte, values []float32) ([]byte, error) {
	for i, v := range values {
		if math.Float32bits(v)&0x7f800000 == 0x7f800000 {
			return dst, bad("element %d is %w", i, notJSON(float64(v)))
		}
		n := len(dst)
		if cap(dst)-n < room+1 {
			dst = slices.Grow(dst, room+1)
		}
		buf := dst[n : n+room+1]
		k := putFloat32((*[room]byte)(buf), v)
		buf[k] = ','
		dst = dst[:n+k+1]
	}
	if len(values) > 0 {
		dst = dst[:len(dst)-1]
	}
	return dst, nil
}

func appendFinite32(dst []byte, v float32) ([]byte, error) {
	if math.Float32bits(v)&0x7f800000 == 0x7f800000 {
		return dst, notJSON(float64(v))
	}
	return AppendFloat32(dst, v), nil
}

func notJSON(v float64) error { return bad("%v, which JSON has no number for; ask for binary_data", v) }

func join[T any](dst []byte, values []T, one func([]byte, T) ([]byte, error)) ([]byte, error) {
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = one(dst, v); err != nil {
			return dst, bad("element %d is %w", i, err)
		}
	}
	return dst, nil
}

// AppendString appends a JSON string. What is not UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		case r < utf8.RuneSelf:
			dst = append(dst, byte(r))
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}
