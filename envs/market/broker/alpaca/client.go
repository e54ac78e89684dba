package alpaca

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	api "github.com/alpacahq/alpaca-trade-api-go/v3/alpaca"
	"github.com/shopspring/decimal"

	"github.com/onnxrl/onnxrl/envs/market/broker"
)

// Client is a [broker.Broker].
type Client struct {
	config    Config
	options   api.ClientOpts
	transport http.RoundTripper
	sleep     func(ctx context.Context, d time.Duration) error
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
	if transport == nil {
		transport = http.DefaultTransport
	}
	options := api.ClientOpts{APIKey: key, APISecret: secret, BaseURL: strings.TrimSuffix(c.URL, "/")}
	return &Client{config: c, options: options, transport: transport, sleep: sleep}, nil
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
	api.APIError
	after time.Duration // of Retry-After
}

func (e *statusError) Error() string {
	return fmt.Sprintf("status %d, code %d: %s", e.StatusCode, e.Code, e.Message)
}

// again reports whether what went wrong may be tried again.
func again(err error) bool {
	var s *statusError
	return !errors.As(err, &s) || s.StatusCode == http.StatusTooManyRequests || s.StatusCode >= 500 || s.StatusCode == http.StatusRequestTimeout
}

// call carries one request of the library. It adds the context and the limit of the answer, which
// the library lacks. It returns a *statusError for an answer that is not 2xx: the library would
// sleep after 429, send the body that is read already, and forget Retry-After.
type call struct {
	*Client
	ctx   context.Context
	query url.Values // replaces values of the request's query
	asked string     // the method and the path
}

// RoundTrip implements http.RoundTripper.
func (c *call) RoundTrip(r *http.Request) (*http.Response, error) {
	r, c.asked = r.Clone(c.ctx), r.Method+" "+r.URL.Path
	// A token of the environment (APCA_API_OAUTH) would replace the key.
	r.Header.Del("Authorization")
	r.Header.Set("APCA-API-KEY-ID", c.options.APIKey)
	r.Header.Set("APCA-API-SECRET-KEY", c.options.APISecret)
	if len(c.query) > 0 {
		q := r.URL.Query()
		maps.Copy(q, c.query)
		r.URL.RawQuery = q.Encode()
	}
	resp, err := c.transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	// A redirect is an error, too: another host must not get the key.
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		e := &statusError{}
		if json.Unmarshal(text, &e.APIError) != nil || e.Message == "" {
			e.Message = http.StatusText(resp.StatusCode)
		}
		e.StatusCode = resp.StatusCode
		// An answer that repeats the request must not carry the key into a log.
		e.Message = strings.NewReplacer(c.options.APIKey, "…", c.options.APISecret, "…").Replace(e.Message)
		if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
			e.after = time.Duration(min(s, 3600)) * time.Second
		}
		return nil, e
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return resp, nil
}

// once makes a request of the library.
func once[T any](ctx context.Context, c *Client, query url.Values, ask func(*api.Client) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	t := &call{Client: c, ctx: ctx, query: query}
	options := c.options
	options.HTTPClient = &http.Client{Transport: t}
	x, err := ask(api.NewClient(options))
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without the query
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", t.asked, err)
	}
	return x, err
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
func do[T any](ctx context.Context, c *Client, query url.Values, ask func(*api.Client) (T, error)) (T, error) {
	for try := 1; ; try++ {
		x, err := once(ctx, c, query, ask)
		if err == nil {
			return x, nil
		}
		if ctx.Err() == nil {
			if !again(err) || try == c.config.Attempts {
				return x, fmt.Errorf("alpaca: %w", err)
			}
			if c.pause(ctx, try, err) == nil {
				continue
			}
		}
		return x, fmt.Errorf("alpaca: %w (%v)", ctx.Err(), err)
	}
}

// Account implements [broker.Broker].
func (c *Client) Account(ctx context.Context) (broker.Account, error) {
	a, err := do(ctx, c, nil, (*api.Client).GetAccount)
	if err != nil {
		return broker.Account{}, err
	}
	return broker.Account{
		ID: a.ID, Currency: a.Currency, Cash: a.Cash.InexactFloat64(), BuyingPower: a.BuyingPower.InexactFloat64(),
		Blocked: a.AccountBlocked || a.TradingBlocked || a.TradeSuspendedByUser || a.Status != "ACTIVE",
	}, nil
}

// Positions implements [broker.Broker].
func (c *Client) Positions(ctx context.Context) ([]broker.Position, error) {
	wire, err := do(ctx, c, nil, (*api.Client).GetPositions)
	if err != nil {
		return nil, err
	}
	list := make([]broker.Position, 0, len(wire))
	for _, p := range wire {
		q := p.Qty.InexactFloat64()
		// The quantity of a short position is negative in the examples of the documentation, whose
		// text has it as a number and a side.
		if p.Side == "short" && q > 0 {
			q = -q
		}
		if q != 0 {
			list = append(list, broker.Position{Symbol: p.Symbol, Quantity: q, Entry: p.AvgEntryPrice.InexactFloat64()})
		}
	}
	slices.SortFunc(list, func(a, b broker.Position) int { return strings.Compare(a.Symbol, b.Symbol) })
	return list, nil
}

// Clock implements [broker.Broker].
func (c *Client) Clock(ctx context.Context) (broker.Clock, error) {
	k, err := do(ctx, c, nil, (*api.Client).GetClock)
	if err != nil {
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
	query := url.Values{}
	ask := func() ([]api.Order, error) {
		return do(ctx, c, query, func(a *api.Client) ([]api.Order, error) {
			return a.GetOrders(api.GetOrdersRequest{Status: "open", Limit: ordersPage, Direction: "asc"})
		})
	}
	return pages(ask, ordersPage, "open orders", func(o *api.Order) string { return o.ID }, orderOf, func(last *api.Order) {
		// Those after a time, without it: some of the same time may be on the next page. The library
		// would cut the time to seconds.
		query.Set("after", last.SubmittedAt.Add(-time.Nanosecond).UTC().Format(time.RFC3339Nano))
	})
}

// pages asks page by page, until one has fewer than size, and leaves out what an earlier page had.
// next has it ask for what comes after the last of a page; a page without anything new is an error.
func pages[W, T any](ask func() ([]W, error), size int, what string, id func(*W) string, value func(*W) (T, error), next func(last *W)) ([]T, error) {
	var list []T
	known := map[string]bool{}
	for {
		wire, err := ask()
		if err != nil {
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
	wire, err := do(ctx, c, nil, func(a *api.Client) (*api.Order, error) { return a.GetOrderByClientOrderID(clientID) })
	var s *statusError
	if errors.As(err, &s) && s.StatusCode == http.StatusNotFound {
		return broker.Order{}, broker.ErrNotFound
	}
	if err != nil {
		return broker.Order{}, err
	}
	o, err := orderOf(wire)
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
	_, err := do(ctx, c, nil, func(a *api.Client) (any, error) { return nil, a.CancelOrder(url.PathEscape(id)) })
	var s *statusError
	if errors.As(err, &s) {
		switch s.StatusCode {
		case http.StatusNotFound:
			return broker.ErrNotFound
		case http.StatusUnprocessableEntity: // It cannot be cancelled any more.
			return nil
		}
	}
	return err
}

// Fills implements [broker.Broker].
func (c *Client) Fills(ctx context.Context, since time.Time) ([]broker.Fill, error) {
	// The broker knows seconds and leaves the time itself out.
	r := api.GetAccountActivitiesRequest{ActivityTypes: []string{"FILL"}, After: since.Truncate(time.Second).Add(-time.Second), Direction: "asc", PageSize: fillsPage}
	ask := func() ([]api.AccountActivity, error) {
		return do(ctx, c, nil, func(a *api.Client) ([]api.AccountActivity, error) { return a.GetAccountActivities(r) })
	}
	return pages(ask, fillsPage, "fills", func(a *api.AccountActivity) string { return a.ID }, fillOf, func(last *api.AccountActivity) { r.PageToken = last.ID })
}

// codeDuplicate is the broker's for a client id that is there.
const codeDuplicate = 40010001

// duplicate reports whether the client id is there already. The code alone is of other malformed
// requests, too.
func (e *statusError) duplicate() bool {
	return e.StatusCode == http.StatusUnprocessableEntity && e.Code == codeDuplicate && strings.Contains(e.Message, "unique")
}

// Submit implements [broker.Broker].
func (c *Client) Submit(ctx context.Context, t broker.Ticket) (broker.Order, error) {
	if err := t.Validate(); err != nil {
		return broker.Order{}, err
	}
	quantity, price := decimal.NewFromFloat(t.Quantity), decimal.NewFromFloat(t.Price)
	body := api.PlaceOrderRequest{
		ClientOrderID: t.ClientID, Symbol: t.Symbol, Side: api.Side(t.Side), Qty: &quantity, Type: api.OrderType(t.Type), TimeInForce: api.TimeInForce(t.Force),
	}
	if t.Type == broker.Limit {
		body.LimitPrice = &price
	}
	lost := func(err error) (broker.Order, error) {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return broker.Order{}, &broker.LostError{ClientID: t.ClientID, Err: err}
	}
	for try := 1; ; try++ {
		wire, err := once(ctx, c, nil, func(a *api.Client) (*api.Order, error) { return a.PlaceOrder(body) })
		var o broker.Order
		if err == nil {
			if o, err = orderOf(wire); err == nil {
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
			return broker.Order{}, &broker.RefusedError{ClientID: t.ClientID, Status: s.StatusCode, Code: s.Code, Message: s.Message}
		}
		if !there {
			if try == c.config.Attempts || ctx.Err() != nil {
				return lost(err)
			}
			if e := c.pause(ctx, try, err); e != nil {
				return lost(e)
			}
			if s != nil && s.StatusCode == http.StatusTooManyRequests {
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
