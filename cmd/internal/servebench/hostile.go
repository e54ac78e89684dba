package servebench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/runtime/rng"
)

// hostile is one kind of bad traffic. run sends one piece of it; an error says that the server's
// answer was wrong.
type hostile struct {
	name string
	run  func(ctx context.Context, s *rng.Stream) error
}

// exchange sends bytes on a connection of its own and returns the status of the answer, 0 where the
// server only closed the connection.
func exchange(ctx context.Context, host string, request []byte) (int, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
	if err != nil {
		return 0, nil // the soak has ended
	}
	c := &httpCaller{conn: conn, in: newReader(conn)}
	defer c.close()
	if tcp, ok := conn.(*net.TCPConn); ok {
		// Ports are free again at once.
		_ = tcp.SetLinger(0)
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	// The server may refuse, and close, before it has read everything.
	_, _ = conn.Write(request)
	status, err := c.read()
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return 0, fmt.Errorf("no answer within %v", patience)
	}
	return status, nil
}

// hostilesHTTP are the kinds of bad traffic over HTTP.
func hostilesHTTP(base *url.URL) []hostile {
	inputs := []port{floats(1, policyInputs)}
	path := "v2/models/" + policyName + "/infer"
	header, binary, _ := binaryBody(inputs)
	text, _ := jsonBody(inputs)
	var list []hostile
	// refused expects a status of the client's fault, or a closed connection.
	refused := func(name string, request func(s *rng.Stream) []byte, want ...int) {
		list = append(list, hostile{name, func(ctx context.Context, s *rng.Stream) error {
			status, err := exchange(ctx, base.Host, request(s))
			if err == nil && status != 0 && !slices.Contains(want, status) {
				err = fmt.Errorf("status %d, expected one of %v", status, want)
			}
			return err
		}})
	}
	post := func(path, header string, body []byte) []byte { return httpRequest(base, path, header, body) }
	refused("unknown model", func(*rng.Stream) []byte { return post("v2/models/nobody/infer", jsonHeader, text) }, 404)
	refused("unknown version", func(*rng.Stream) []byte {
		return post("v2/models/"+policyName+"/versions/999999999/infer", jsonHeader, text)
	}, 404)
	refused("path traversal", func(*rng.Stream) []byte {
		return append(fmt.Appendf(nil, "POST /v2/models/..%%2f..%%2fetc%%2fpasswd/infer HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n", base.Host, len(text)), text...)
	}, 400, 404)
	refused("cut JSON", func(s *rng.Stream) []byte { return post(path, jsonHeader, text[:s.IntN(len(text))]) }, 400)
	refused("deep JSON", func(s *rng.Stream) []byte {
		return post(path, jsonHeader, append([]byte(`{"inputs":`), bytes.Repeat([]byte("["), 1+s.IntN(100_000))...))
	}, 400, 413)
	refused("noise", func(s *rng.Stream) []byte {
		noise := make([]byte, 1+s.IntN(4096))
		for i := range noise {
			noise[i] = byte(s.IntN(256))
		}
		return post(path, jsonHeader, noise)
	}, 400)
	refused("flipped bits", func(s *rng.Stream) []byte {
		body := bytes.Clone(binary)
		// Within the JSON: a changed number of the tensor is a good request.
		at := s.IntN(len(body) - 4*policyInputs)
		body[at] ^= 1 << s.IntN(8)
		return post(path, header, body)
	}, 200, 400, 404)
	refused("lying lengths", func(s *rng.Stream) []byte {
		n := []string{"-1", "999999999", "99999999999999999999", "3", "0x10", "", "1e3"}[s.IntN(7)]
		return post(path, "Inference-Header-Content-Length: "+n+"\r\n", binary)
	}, 400)
	refused("huge shapes", func(s *rng.Stream) []byte {
		shape := []string{"[4294967296,4294967296]", "[-1,17]", "[9223372036854775807,9223372036854775807,9]", "[1000000000,17]", "[0,17]", "[1.5,17]"}[s.IntN(6)]
		return post(path, jsonHeader, []byte(`{"inputs":[{"name":"x","datatype":"FP32","shape":`+shape+`,"data":[1,2]}]}`))
	}, 400, 413)
	refused("wrong type", func(*rng.Stream) []byte {
		return post(path, jsonHeader, []byte(`{"inputs":[{"name":"x","datatype":"INT8","shape":[1,17],"data":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}]}`))
	}, 400)
	refused("large body", func(*rng.Stream) []byte {
		return fmt.Appendf(nil, "POST /%s HTTP/1.1\r\nHost: %s\r\nContent-Length: 99999999999\r\n\r\n{", path, base.Host)
	}, 400, 413)
	refused("no HTTP", func(*rng.Stream) []byte { return []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n") }, 400)
	list = append(list,
		hostile{"disconnects", func(ctx context.Context, s *rng.Stream) error {
			// In the middle of the request, or before the answer is read.
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", base.Host)
			if err != nil {
				return nil
			}
			request := post(path, header, binary)
			_, _ = conn.Write(request[:1+s.IntN(len(request))])
			return conn.Close()
		}},
		hostile{"slow clients", func(ctx context.Context, s *rng.Stream) error {
			// A byte at a time, and then nothing more.
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", base.Host)
			if err != nil {
				return nil
			}
			defer conn.Close()
			request := post(path, header, binary)
			for _, b := range request[:1+s.IntN(50)] {
				if _, err := conn.Write([]byte{b}); err != nil {
					return nil
				}
				select {
				case <-ctx.Done():
					return nil
				case <-time.After(10 * time.Millisecond):
				}
			}
			return nil
		}})
	return list
}
