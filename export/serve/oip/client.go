package oip

import (
	"fmt"
	"strconv"

	"github.com/onnxrl/onnxrl/export/serve"
)

// Options are how a client asks.
type Options struct {
	// Binary sends the tensors in binary, BinaryOutput asks for the answer so.
	Binary, BinaryOutput bool
}

// AppendRequest appends the body of a request; model and version belong into the URL. jsonLen is
// the length of the JSON, -1 when nothing follows it.
func AppendRequest(dst []byte, req *serve.Request, o Options) (body []byte, jsonLen int, err error) {
	start := len(dst)
	dst = append(dst, '{')
	if req.ID != "" {
		dst = append(AppendString(append(dst, `"id":`...), req.ID), ',')
	}
	dst = append(dst, `"parameters":{"binary_data_output":`...)
	dst = strconv.AppendBool(dst, o.BinaryOutput)
	if q := req.Sequence; q.ID != "" {
		dst = AppendString(append(dst, `,"sequence_id":`...), q.ID)
		dst = strconv.AppendBool(append(dst, `,"sequence_start":`...), q.Start)
		dst = strconv.AppendBool(append(dst, `,"sequence_end":`...), q.End)
		if o := q.Outcome; o != (serve.Outcome{}) {
			if o.Given {
				dst = strconv.AppendFloat(append(dst, `,"reward":`...), o.Reward, 'g', -1, 64)
			}
			dst = strconv.AppendBool(append(dst, `,"terminated":`...), o.Terminated)
			dst = strconv.AppendBool(append(dst, `,"truncated":`...), o.Truncated)
		}
	}
	dst = append(dst, `},"inputs":[`...)
	for i, in := range req.Inputs {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendTensor(dst, in, o.Binary); err != nil {
			return dst[:start], -1, bad("input %q: %w", in.Name, err)
		}
	}
	dst = append(dst, ']')
	for i, name := range req.Outputs {
		if i == 0 {
			dst = append(dst, `,"outputs":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = append(AppendString(append(dst, `{"name":`...), name), '}')
	}
	if len(req.Outputs) > 0 {
		dst = append(dst, ']')
	}
	dst = append(dst, '}')
	if !o.Binary {
		return dst, -1, nil
	}
	jsonLen = len(dst) - start
	for _, in := range req.Inputs {
		dst = AppendBinary(dst, in.Value)
	}
	return dst, jsonLen, nil
}

// Response is a decoded answer. Tensors are views of the body where its alignment allows.
type Response struct {
	serve.Response
}

// Decode reads an answer whose first jsonLen bytes are JSON, all of it when jsonLen is negative.
func (r *Response) Decode(body []byte, jsonLen int) error {
	r.Response = serve.Response{}
	text, rest := body, []byte(nil)
	if jsonLen >= 0 {
		if jsonLen > len(body) {
			return bad("%s is %d, but the body has %d bytes", HeaderLength, jsonLen, len(body))
		}
		text, rest = body[:jsonLen], body[jsonLen:]
	}
	s := scanner{b: text}
	parts, err := r.object(&s)
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return bad("response: %w", err)
	}
	if err := split(parts, "output", rest, jsonLen >= 0); err != nil {
		return err
	}
	for _, p := range parts {
		r.Outputs = append(r.Outputs, serve.Tensor{Name: p.name, Value: p.value})
	}
	return nil
}

func (r *Response) object(s *scanner) (parts []part, err error) {
	if err := s.open('{'); err != nil {
		return nil, err
	}
	for n := 0; ; {
		ok, err := s.more('}', &n)
		if err != nil {
			return nil, err
		}
		if !ok {
			return parts, nil
		}
		key, err := s.key()
		if err != nil {
			return nil, err
		}
		var text []byte
		switch string(key) {
		case "id":
			text, err = s.str()
			r.ID = string(text)
		case "model_name":
			text, err = s.str()
			r.Model = string(text)
		case "model_version":
			text, err = s.str()
			r.Version = string(text)
		case "error":
			if text, err = s.str(); err == nil {
				err = fmt.Errorf("the server answers: %s", text)
			}
		case "outputs":
			if parts != nil {
				return nil, fmt.Errorf("%q is there twice", key)
			}
			parts, err = s.parts(make([]part, 0, 4), "output")
		default:
			_, err = s.skip()
		}
		if err != nil {
			return nil, err
		}
	}
}
