package brokertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// Transport is the way to a double without a network: answers are those of its handler.
func (d *Double) Transport() http.RoundTripper { return transport{d} }

type transport struct{ d *Double }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p == http.ErrAbortHandler {
			resp, err = nil, errors.New("the connection was closed")
		} else if p != nil {
			panic(p)
		}
	}()
	w := httptest.NewRecorder()
	t.d.ServeHTTP(w, r)
	return w.Result(), nil
}

// answer is what a request leads to.
type answer struct {
	status int
	body   any // nil is none
}

func refuse(status, code int, format string, args ...any) answer {
	return answer{status, map[string]any{"code": code, "message": fmt.Sprintf(format, args...)}}
}

// ServeHTTP implements http.Handler.
func (d *Double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault := None
	if d.Fault != nil {
		fault = d.Fault(r)
	}
	var a answer
	switch fault {
	case Throttle:
		w.Header().Set("Retry-After", "1")
		a = refuse(http.StatusTooManyRequests, 42910000, "rate limit exceeded")
	case Fail:
		a = refuse(http.StatusInternalServerError, 50010000, "internal server error occurred")
	case Lose:
		panic(http.ErrAbortHandler)
	default:
		a = d.serve(r)
	}
	switch fault {
	case FailLate:
		a = refuse(http.StatusInternalServerError, 50010000, "internal server error occurred")
	case LoseLate:
		panic(http.ErrAbortHandler)
	case Hang:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(a.status)
	if a.body != nil {
		_ = json.NewEncoder(w).Encode(a.body) // The client has gone.
	}
}

func (d *Double) serve(r *http.Request) answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Header.Get("APCA-API-KEY-ID") != d.Key || r.Header.Get("APCA-API-SECRET-KEY") != d.Secret {
		return refuse(http.StatusUnauthorized, 40110000, "request is not authorized")
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/v2")
	id, one := strings.CutPrefix(path, "/orders/")
	switch q := r.URL.Query(); {
	case !ok:
	case r.Method == http.MethodGet && path == "/account":
		return answer{http.StatusOK, map[string]any{
			"id": uuid(0, 0), "account_number": "PA0000000000", "status": "ACTIVE", "currency": "USD",
			"cash": show(d.s.Cash, perDollar), "buying_power": show(d.available(), perDollar), "multiplier": "1",
			"account_blocked": false, "trading_blocked": false, "trade_suspended_by_user": false, "shorting_enabled": false,
		}}
	case r.Method == http.MethodGet && path == "/positions":
		list := []any{}
		for symbol, qty := range sorted.All(d.s.Positions) {
			list = append(list, map[string]any{
				"symbol": symbol, "asset_class": "us_equity", "qty": show(qty, perShare), "side": "long",
				"avg_entry_price": show(muldiv(d.s.Costs[symbol], perShare, max(1, qty)), perDollar),
				"current_price":   show(d.s.Prices[symbol], perDollar), "market_value": show(times(max(0, qty), d.s.Prices[symbol]), perDollar),
			})
		}
		return answer{http.StatusOK, list}
	case r.Method == http.MethodGet && path == "/clock":
		next := d.s.Now.Truncate(24 * time.Hour).Add(24 * time.Hour)
		return answer{http.StatusOK, map[string]any{"timestamp": d.s.Now, "is_open": d.s.IsOpen, "next_open": next.Add(14 * time.Hour), "next_close": next.Add(21 * time.Hour)}}
	case r.Method == http.MethodPost && path == "/orders":
		return d.post(r)
	case r.Method == http.MethodGet && path == "/orders":
		return d.list(q.Get("status"), q.Get("after"), q.Get("limit"), q.Get("direction"))
	case r.Method == http.MethodGet && path == "/orders:by_client_order_id":
		for _, o := range d.s.Orders {
			if o.ClientID == q.Get("client_order_id") {
				return answer{http.StatusOK, shown(o)}
			}
		}
		return refuse(http.StatusNotFound, 40410000, "order not found for %s", q.Get("client_order_id"))
	case one && (r.Method == http.MethodGet || r.Method == http.MethodDelete):
		o := d.byID(id)
		switch {
		case o == nil:
			return refuse(http.StatusNotFound, 40410000, "order not found for %s", id)
		case r.Method == http.MethodGet:
			return answer{http.StatusOK, shown(o)}
		case !o.open():
			return refuse(http.StatusUnprocessableEntity, 42210000, "order is already in %q state", o.Status)
		}
		d.end(o, "canceled")
		return answer{http.StatusNoContent, nil}
	case r.Method == http.MethodGet && path == "/account/activities" && q.Get("activity_types") == "FILL":
		return d.activities(q.Get("after"), q.Get("direction"), q.Get("page_size"), q.Get("page_token"))
	}
	return refuse(http.StatusNotFound, 40410000, "endpoint not found")
}

func (d *Double) post(r *http.Request) answer {
	var b struct {
		ClientID string  `json:"client_order_id"`
		Symbol   string  `json:"symbol"`
		Side     string  `json:"side"`
		Qty      string  `json:"qty"`
		Type     string  `json:"type"`
		Limit    *string `json:"limit_price"`
		Force    string  `json:"time_in_force"`
	}
	if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
		return refuse(http.StatusBadRequest, 40010000, "request body format is invalid")
	}
	const malformed = 42210000
	price, known := d.s.Prices[b.Symbol]
	qty, good := decimal(b.Qty, perShare, 9)
	o := &order{
		ID: uuid(1, len(d.s.Orders)), ClientID: b.ClientID, Symbol: b.Symbol, Side: b.Side, Type: b.Type, Force: b.Force,
		Qty: qty, Status: "new", Submitted: d.s.Now.Add(time.Duration(len(d.s.Orders)) * time.Nanosecond),
	}
	if o.ClientID == "" {
		o.ClientID = uuid(3, len(d.s.Orders))
	}
	switch {
	case len(b.ClientID) > 128:
		return refuse(http.StatusUnprocessableEntity, 40010001, "client_order_id must be no more than 128 characters")
	case !known || price <= 0:
		return refuse(http.StatusUnprocessableEntity, malformed, "asset %q not found", b.Symbol)
	case !good || qty <= 0:
		return refuse(http.StatusUnprocessableEntity, 40010001, "qty must be > 0")
	case b.Side != "buy" && b.Side != "sell":
		return refuse(http.StatusUnprocessableEntity, 40010001, "invalid side")
	case b.Force != "day" && b.Force != "opg" && b.Force != "cls":
		return refuse(http.StatusUnprocessableEntity, 40010001, "invalid time_in_force")
	case qty%perShare != 0 && b.Force != "day":
		return refuse(http.StatusUnprocessableEntity, malformed, "fractional orders must be DAY orders")
	case b.Type == "limit" && b.Limit == nil:
		return refuse(http.StatusUnprocessableEntity, 40010001, "limit orders require a limit price")
	case b.Type == "market" && b.Limit != nil:
		return refuse(http.StatusUnprocessableEntity, 40010001, "market orders require no limit price")
	case b.Type != "limit" && b.Type != "market":
		return refuse(http.StatusUnprocessableEntity, 40010001, "invalid order type")
	case b.Type == "limit":
		if o.Limit, good = decimal(*b.Limit, perDollar, 4); !good || o.Limit <= 0 {
			return refuse(http.StatusUnprocessableEntity, malformed, "invalid limit_price %s", *b.Limit)
		}
		if o.Limit >= perDollar && o.Limit%(perDollar/100) != 0 {
			return refuse(http.StatusUnprocessableEntity, malformed, "invalid limit_price %s. sub-penny increment does not fulfill minimum pricing criteria", *b.Limit)
		}
	}
	refused, no := d.funds(o)
	if no && d.FundsFirst {
		return refused
	}
	if slices.ContainsFunc(d.s.Orders, func(x *order) bool { return x.ClientID == o.ClientID }) {
		return refuse(http.StatusUnprocessableEntity, 40010001, "client_order_id must be unique")
	}
	if no {
		return refused
	}
	d.s.Orders = append(d.s.Orders, o)
	return answer{http.StatusOK, shown(o)}
}

// funds looks whether an order can be paid, or what it sells is there.
func (d *Double) funds(o *order) (answer, bool) {
	const poor = 40310000
	if o.Side == "buy" {
		if d.needs(o, o.Qty) > d.available() {
			return refuse(http.StatusForbidden, poor, "insufficient buying power"), true
		}
		return answer{}, false
	}
	free := d.s.Positions[o.Symbol]
	for _, x := range d.s.Orders {
		if x.open() && x.Side == "sell" && x.Symbol == o.Symbol {
			free -= x.Qty - x.Filled
		}
	}
	if o.Qty > free {
		return refuse(http.StatusForbidden, poor, "insufficient qty available for order (requested: %s, available: %s)", show(o.Qty, perShare), show(free, perShare)), true
	}
	return answer{}, false
}

func shown(o *order) map[string]any {
	m := map[string]any{
		"id": o.ID, "client_order_id": o.ClientID, "created_at": o.Submitted, "submitted_at": o.Submitted, "symbol": o.Symbol,
		"asset_class": "us_equity", "notional": nil, "qty": show(o.Qty, perShare), "filled_qty": show(o.Filled, perShare),
		"filled_avg_price": nil, "order_class": "", "order_type": o.Type, "type": o.Type, "side": o.Side, "time_in_force": o.Force,
		"limit_price": nil, "stop_price": nil, "status": o.Status, "extended_hours": false, "legs": nil,
		"filled_at": nil, "expired_at": nil, "canceled_at": nil, "failed_at": nil,
	}
	if o.Filled > 0 {
		m["filled_avg_price"] = show(muldiv(o.Paid, perShare, o.Filled), perDollar)
	}
	if o.Type == "limit" {
		m["limit_price"] = show(o.Limit, perDollar)
	}
	if o.Ended != nil {
		m[map[string]string{"filled": "filled_at", "expired": "expired_at", "canceled": "canceled_at", "rejected": "failed_at"}[o.Status]] = *o.Ended
	}
	return m
}

// size reads the length of a page.
func size(text string, standard, most int) (int, bool) {
	if text == "" {
		return standard, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 1 && n <= most
}

func (d *Double) list(status, after, limit, direction string) answer {
	n, ok := size(limit, 50, 500)
	var from time.Time
	if after != "" {
		var err error
		from, err = time.Parse(time.RFC3339Nano, after)
		ok = ok && err == nil
	}
	if !ok {
		return refuse(http.StatusUnprocessableEntity, 42210000, "invalid query")
	}
	orders := slices.Clone(d.s.Orders)
	if direction != "asc" {
		slices.Reverse(orders)
	}
	list := []any{}
	for _, o := range orders {
		if len(list) < n && o.Submitted.After(from) && (status == "all" || (status == "closed") != o.open()) {
			list = append(list, shown(o))
		}
	}
	return answer{http.StatusOK, list}
}

func (d *Double) activities(after, direction, pageSize, token string) answer {
	n, ok := size(pageSize, 100, 100)
	var from time.Time
	if after != "" {
		var err error
		from, err = time.Parse(time.RFC3339, after)
		ok = ok && err == nil
	}
	if !ok {
		return refuse(http.StatusUnprocessableEntity, 42210000, "invalid query")
	}
	fills := slices.Clone(d.s.Fills)
	if direction != "asc" {
		slices.Reverse(fills)
	}
	if token != "" {
		fills = fills[slices.IndexFunc(fills, func(f fill) bool { return f.ID == token })+1:]
	}
	list := []any{}
	for _, f := range fills {
		if len(list) == n || !f.Time.After(from) {
			continue
		}
		o := d.byID(f.Order)
		kind := "fill"
		if f.Cum < o.Qty {
			kind = "partial_fill"
		}
		list = append(list, map[string]any{
			"id": f.ID, "activity_type": "FILL", "type": kind, "order_id": f.Order, "symbol": o.Symbol, "side": o.Side,
			"qty": show(f.Qty, perShare), "price": show(f.Price, perDollar), "cum_qty": show(f.Cum, perShare),
			"leaves_qty": show(o.Qty-f.Cum, perShare), "transaction_time": f.Time,
		})
	}
	return answer{http.StatusOK, list}
}
