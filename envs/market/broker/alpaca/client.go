package alpaca

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/broker"
)

// Client is a [broker.Broker].
type Client struct {
	config      Config
	base        string
	key, secret string
	http        *http.Client
	sleep       func(ctx context.Context, d time.Duration) error
}

// New returns a client with the key of the environment. It asks nothing yet. transport is nil for
// that of the system.
func New(c Config, transport http.RoundTripper) (*Client, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	key, secret := os.Getenv(KeyVariable), os.Getenv(SecretVariable)
	if key == "" || secret == "" {
		return nil, fmt.Errorf("alpaca: the environment variables %s and %s must be set", KeyVariable, SecretVariable)
	}
	return &Client{
		config: c, base: strings.TrimSuffix(c.URL, "/") + "/v2", key: key, secret: secret, sleep: sleep,
		http: &http.Client{
			Transport: transport,
			// Another host must not get the key.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// maxBody is the largest answer that is read, in bytes.
const maxBody = 16 << 20

// statusError is an answer that is not 2xx.
type statusError struct {
	status int
	problem
	after time.Duration // of Retry-After
}

func (e *statusError) Error() string {
	return fmt.Sprintf("status %d, code %d: %s", e.status, e.Code, e.Message)
}

// again reports whether what went wrong may be tried again.
func again(err error) bool {
	var s *statusError
	return !errors.As(err, &s) || s.status == http.StatusTooManyRequests || s.status >= 500 || s.status == http.StatusRequestTimeout
}

// once makes a request and reads the answer into to, unless that is nil.
func (c *Client) once(ctx context.Context, method, path string, query url.Values, body, to any) error {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	var r io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		r = bytes.NewReader(text)
	}
	address := c.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, r)
	if err != nil {
		return err
	}
	req.Header.Set("APCA-API-KEY-ID", c.key)
	req.Header.Set("APCA-API-SECRET-KEY", c.secret)
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	// net/http sends a request with a body again only where nothing of it was read.
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return fmt.Errorf("read the answer of %s %s: %w", method, path, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		e := &statusError{status: resp.StatusCode}
		if json.Unmarshal(text, &e.problem) != nil || e.Message == "" {
			e.Message = http.StatusText(resp.StatusCode)
		}
		// What repeats the request back must not carry the key into a log.
		e.Message = strings.NewReplacer(c.key, "…", c.secret, "…").Replace(e.Message)
		if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
			e.after = time.Duration(min(s, 3600)) * time.Second
		}
		return e
	}
	if to == nil {
		return nil
	}
	if err := json.Unmarshal(text, to); err != nil {
		return fmt.Errorf("the answer of %s %s: %w", method, path, err)
	}
	return nil
}

// pause waits before the try-th request, the second one being 1: twice as long each time, by
// chance up to half as long, and as long as the broker asks for.
func (c *Client) pause(ctx context.Context, try int, err error) error {
	d := c.config.MaxPause
	if try < 30 {
		d = min(d, c.config.Pause<<(try-1))
	}
	d = d/2 + rand.N(d/2+1)
	var s *statusError
	if errors.As(err, &s) {
		d = max(d, min(s.after, c.config.MaxPause))
	}
	return c.sleep(ctx, d)
}

// do makes a request that changes nothing, or the same each time, until there is an answer.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, to any) error {
	for try := 1; ; try++ {
		err := c.once(ctx, method, path, query, nil, to)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("alpaca: %s %s: %w", method, path, ctx.Err())
		}
		if !again(err) || try == c.config.Attempts {
			return fmt.Errorf("alpaca: %s %s: %w", method, path, err)
		}
		if err := c.pause(ctx, try, err); err != nil {
			return fmt.Errorf("alpaca: %s %s: %w", method, path, err)
		}
	}
}

// Account implements [broker.Broker].
func (c *Client) Account(ctx context.Context) (broker.Account, error) {
	var a account
	if err := c.do(ctx, http.MethodGet, "/account", nil, &a); err != nil {
		return broker.Account{}, err
	}
	return broker.Account{
		ID: a.ID, Currency: a.Currency, Cash: float64(a.Cash), BuyingPower: float64(a.BuyingPower),
		Blocked: a.Blocked || a.NoTrading || a.Suspended || a.Status != "ACTIVE",
	}, nil
}

// Positions implements [broker.Broker].
func (c *Client) Positions(ctx context.Context) ([]broker.Position, error) {
	var wire []position
	if err := c.do(ctx, http.MethodGet, "/positions", nil, &wire); err != nil {
		return nil, err
	}
	list := make([]broker.Position, 0, len(wire))
	for _, p := range wire {
		q := float64(p.Qty)
		// The quantity of a short position is negative in the examples of the documentation, whose
		// text has it as a number and a side.
		if p.Side == "short" && q > 0 {
			q = -q
		}
		if q != 0 {
			list = append(list, broker.Position{Symbol: p.Symbol, Quantity: q, Entry: float64(p.Entry)})
		}
	}
	slices.SortFunc(list, func(a, b broker.Position) int { return strings.Compare(a.Symbol, b.Symbol) })
	return list, nil
}

// Clock implements [broker.Broker].
func (c *Client) Clock(ctx context.Context) (broker.Clock, error) {
	var k clock
	if err := c.do(ctx, http.MethodGet, "/clock", nil, &k); err != nil {
		return broker.Clock{}, err
	}
	return broker.Clock{Time: k.Timestamp, Open: k.IsOpen, NextOpen: k.NextOpen, NextClose: k.NextClose}, nil
}

// ordersPage and fillsPage are the largest pages that the broker gives.
const (
	ordersPage = 500
	fillsPage  = 100
)

// Open implements [broker.Broker].
func (c *Client) Open(ctx context.Context) ([]broker.Order, error) {
	query := url.Values{"status": {"open"}, "limit": {strconv.Itoa(ordersPage)}, "direction": {"asc"}, "nested": {"false"}}
	return pages(ctx, c, "/orders", query, ordersPage, "open orders", func(o *order) string { return o.ID }, (*order).order, func(last *order) {
		// Those after a time, without it: some of the same time may be on the next page.
		query.Set("after", last.Submitted.Add(-time.Nanosecond).UTC().Format(time.RFC3339Nano))
	})
}

// pages asks for what is at a path page by page, until one has fewer than size, and leaves out what
// an earlier page had. next edits the query to ask for what comes after the last of a page; a page
// without anything new is an error.
func pages[W, T any](ctx context.Context, c *Client, path string, query url.Values, size int, what string, id func(*W) string, value func(*W) (T, error), next func(last *W)) ([]T, error) {
	var list []T
	known := map[string]bool{}
	for {
		var wire []W
		if err := c.do(ctx, http.MethodGet, path, query, &wire); err != nil {
			return nil, err
		}
		fresh := false
		for i := range wire {
			if known[id(&wire[i])] {
				continue
			}
			known[id(&wire[i])], fresh = true, true
			x, err := value(&wire[i])
			if err != nil {
				return nil, fmt.Errorf("alpaca: %s: %w", what, err)
			}
			list = append(list, x)
		}
		if len(wire) < size {
			return list, nil
		}
		if !fresh {
			return nil, fmt.Errorf("alpaca: %s: a page of %d has nothing that was not on one before it", what, size)
		}
		next(&wire[len(wire)-1])
	}
}

// Find implements [broker.Broker].
func (c *Client) Find(ctx context.Context, clientID string) (broker.Order, error) {
	var wire order
	err := c.do(ctx, http.MethodGet, "/orders:by_client_order_id", url.Values{"client_order_id": {clientID}}, &wire)
	var s *statusError
	if errors.As(err, &s) && s.status == http.StatusNotFound {
		return broker.Order{}, broker.ErrNotFound
	}
	if err != nil {
		return broker.Order{}, err
	}
	o, err := wire.order()
	if err != nil {
		return o, fmt.Errorf("alpaca: %w", err)
	}
	if o.ClientID != clientID {
		return o, fmt.Errorf("alpaca: asked for order %s, the broker answers with %s", clientID, o.ClientID)
	}
	return o, nil
}

// Cancel implements [broker.Broker].
func (c *Client) Cancel(ctx context.Context, id string) error {
	err := c.do(ctx, http.MethodDelete, "/orders/"+url.PathEscape(id), nil, nil)
	var s *statusError
	if errors.As(err, &s) {
		switch s.status {
		case http.StatusNotFound:
			return broker.ErrNotFound
		case http.StatusUnprocessableEntity: // It cannot be canceled any more.
			return nil
		}
	}
	return err
}

// Fills implements [broker.Broker].
func (c *Client) Fills(ctx context.Context, since time.Time) ([]broker.Fill, error) {
	// The broker knows seconds and leaves the time itself out.
	after := since.Truncate(time.Second).Add(-time.Second).UTC().Format(time.RFC3339)
	query := url.Values{"after": {after}, "direction": {"asc"}, "page_size": {strconv.Itoa(fillsPage)}}
	return pages(ctx, c, "/account/activities/FILL", query, fillsPage, "fills", func(a *activity) string { return a.ID }, (*activity).fill, func(last *activity) { query.Set("page_token", last.ID) })
}

// codeDuplicate is the broker's for a client id that is there.
const codeDuplicate = 40010001

// duplicate reports whether the client id is there already. The code alone is of other malformed
// requests, too.
func (e *statusError) duplicate() bool {
	return e.status == http.StatusUnprocessableEntity && e.Code == codeDuplicate && strings.Contains(e.Message, "unique")
}

// Submit implements [broker.Broker].
func (c *Client) Submit(ctx context.Context, t broker.Ticket) (broker.Order, error) {
	if err := t.Validate(); err != nil {
		return broker.Order{}, err
	}
	body := request{ClientID: t.ClientID, Symbol: t.Symbol, Side: t.Side, Qty: number(t.Quantity), Type: t.Type, Force: t.Force}
	if t.Type == broker.Limit {
		price := number(t.Price)
		body.Limit = &price
	}
	lost := func(err error) (broker.Order, error) {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return broker.Order{}, &broker.LostError{ClientID: t.ClientID, Err: err}
	}
	for try := 1; ; try++ {
		var wire order
		err := c.once(ctx, http.MethodPost, "/orders", nil, &body, &wire)
		var o broker.Order
		if err == nil {
			if o, err = wire.order(); err == nil {
				return check(o, &t)
			}
		}
		var s *statusError
		there := errors.As(err, &s) && s.duplicate()
		if s != nil && !there && !again(s) {
			// An order that was sent before, maybe by a program that ended, may be what the
			// account cannot pay a second time.
			o, e := c.Find(ctx, t.ClientID)
			if e == nil {
				return check(o, &t)
			}
			if !errors.Is(e, broker.ErrNotFound) {
				return lost(e)
			}
			return broker.Order{}, &broker.RefusedError{ClientID: t.ClientID, Status: s.status, Code: s.Code, Message: s.Message}
		}
		if !there {
			if try == c.config.Attempts || ctx.Err() != nil {
				return lost(err)
			}
			if e := c.pause(ctx, try, err); e != nil {
				return lost(e)
			}
			if s != nil && s.status == http.StatusTooManyRequests {
				continue // It was not looked at.
			}
		}
		switch o, e := c.Find(ctx, t.ClientID); {
		case e == nil:
			return check(o, &t)
		case !errors.Is(e, broker.ErrNotFound):
			return lost(e)
		case there:
			// Those who list orders may know later than those who take them.
			if try == c.config.Attempts {
				return lost(err)
			}
			if e := c.pause(ctx, try, err); e != nil {
				return lost(e)
			}
		}
	}
}

// check compares the broker's order with what was wanted.
func check(o broker.Order, t *broker.Ticket) (broker.Order, error) {
	if !o.Is(t) {
		return o, &broker.ConflictError{Want: *t, Have: o}
	}
	return o, nil
}
