package servebench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
)

// Remote is a load on servers in other processes.
type Remote struct {
	// URL is the server to be measured. Against, where it is not empty, is one to compare it with,
	// in turns.
	URL, Against string
	// Model is the name that is asked for; empty is the only one of each server.
	Model string
	// Callers are the numbers of connections, Rows the rows of a request; 0 means 1.
	Callers []int
	Rows    int
	// Transports are http-binary and http-json.
	Transports []string
	// AtLeast is the target of the ratio of requests per second, URL's to Against's.
	AtLeast float64
	Rounds  int
	Round   time.Duration
}

// remote is one model of one server.
type remote struct {
	base   *url.URL
	model  string
	inputs []port
}

// RunRemote measures.
func RunRemote(ctx context.Context, o Remote) (*Report, error) {
	ours, err := openRemote(ctx, o.URL, o.Model, max(o.Rows, 1))
	if err != nil {
		return nil, err
	}
	var theirs *remote
	if o.Against != "" {
		if theirs, err = openRemote(ctx, o.Against, o.Model, max(o.Rows, 1)); err != nil {
			return nil, err
		}
	}
	r := &Report{Machine: benchmark.ThisMachine(), Loads: []*Load{}, Rows: []benchmark.Row{}}
	l := &lab{Options: Options{Rounds: o.Rounds, Round: o.Round}}
	for _, transport := range o.Transports {
		for _, callers := range o.Callers {
			a, done, err := ours.side(ctx, transport, callers)
			if err != nil {
				return nil, err
			}
			if theirs == nil {
				var sum *Load
				for range o.Rounds {
					load, err := a(o.Round)
					if err != nil {
						return nil, errors.Join(err, done())
					}
					sum = sum.join(load)
				}
				r.Loads = append(r.Loads, sum)
				if err := done(); err != nil {
					return nil, err
				}
				continue
			}
			b, undo, err := theirs.side(ctx, transport, callers)
			if err != nil {
				return nil, errors.Join(err, done())
			}
			var loads []*Load
			rows, err := l.contest(contest{a: a, doneA: done, b: b, doneB: undo}, func(d *duel) []benchmark.Row {
				loads = []*Load{d.a, d.b}
				row := d.row(fmt.Sprintf("against/%s-c%d", transport, callers), "requests/s of "+o.URL, o.Against, "requests/s", perSec, benchmark.Target{AtLeast: o.AtLeast})
				if o.AtLeast == 0 {
					row.Target, row.Pass = nil, true
				}
				row.Note = fmt.Sprintf("p50 %.0f against %.0f µs, p99 %.0f against %.0f µs", d.a.P50, d.b.P50, d.a.P99, d.b.P99)
				return []benchmark.Row{row}
			})
			if err != nil {
				return nil, err
			}
			loads[1].Transport += " of " + o.Against
			r.Loads = append(r.Loads, loads...)
			r.add(rows...)
		}
	}
	return r, nil
}

// side keeps callers connected until done is called.
func (m *remote) side(ctx context.Context, transport string, callers int) (s side, done func() error, err error) {
	dial, err := m.dialer(transport)
	if err != nil {
		return nil, nil, err
	}
	c, err := gather(ctx, transport, dial, callers)
	if err != nil {
		return nil, nil, err
	}
	return func(d time.Duration) (*Load, error) {
		load := c.run(ctx, d)
		load.Allocs = nil
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return load, load.failed()
	}, c.close, nil
}

func (m *remote) dialer(transport string) (dialer, error) {
	path := "v2/models/" + url.PathEscape(m.model) + "/infer"
	switch transport {
	case httpJSON:
		body, err := jsonBody(m.inputs)
		if err != nil {
			return nil, err
		}
		return dialHTTP(m.base, httpRequest(m.base, path, jsonHeader, body), nil), nil
	case httpBinary:
		header, body, err := binaryBody(m.inputs)
		if err != nil {
			return nil, err
		}
		return dialHTTP(m.base, httpRequest(m.base, path, header, body), nil), nil
	}
	return nil, fmt.Errorf("transport %q: expected %s or %s", transport, httpBinary, httpJSON)
}

// openRemote asks a server what the model takes.
func openRemote(ctx context.Context, address, model string, rows int) (*remote, error) {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("%q: expected a URL such as http://127.0.0.1:8000", address)
	}
	m := &remote{base: base, model: model}
	if model == "" {
		var index []struct{ Name, State string }
		if err := m.ask(ctx, http.MethodPost, "v2/repository/index", &index); err != nil {
			return nil, err
		}
		for _, e := range index {
			switch {
			case m.model != "" && m.model != e.Name:
				return nil, fmt.Errorf("%s serves %q and %q: name the model", address, m.model, e.Name)
			default:
				m.model = e.Name
			}
		}
		if m.model == "" {
			return nil, fmt.Errorf("%s serves no model", address)
		}
	}
	var metadata struct{ Inputs []port }
	if err := m.ask(ctx, http.MethodGet, "v2/models/"+url.PathEscape(m.model), &metadata); err != nil {
		return nil, err
	}
	for _, p := range metadata.Inputs {
		filled, err := p.filled(rows)
		if err != nil {
			return nil, fmt.Errorf("%s: model %q: %w", address, m.model, err)
		}
		m.inputs = append(m.inputs, filled)
	}
	if len(m.inputs) == 0 {
		return nil, fmt.Errorf("%s: model %q describes no inputs", address, m.model)
	}
	return m, nil
}

func (m *remote) ask(ctx context.Context, method, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader("{}")
	}
	req, err := http.NewRequestWithContext(ctx, method, m.base.JoinPath(path).String(), body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<24))
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, req.URL, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: status %d: %.300s", method, req.URL, resp.StatusCode, text)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s %s: %w", method, req.URL, err)
	}
	return nil
}
