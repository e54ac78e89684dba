package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/onnxrl/onnxrl/configs"
)

// Validate reports all that contradicts itself: how the world began, as [World.Config] does, and
// days that are not of this world. What follows from what is for [Replay].
func (w *World) Validate() error {
	if _, err := w.Config(); err != nil {
		return err
	}
	var p configs.Problems
	p.Check(len(w.Played) <= w.Days, "days", "%d days, but n_steps is %d", len(w.Played), w.Days)
	products := len(w.Catalog)
	for i := range w.Played {
		d, at := &w.Played[i], fmt.Sprintf("days[%d]", i)
		p.Check(d.Day == i, at+".day", "is %d, expected %d", d.Day, i)
		for _, list := range []struct {
			key string
			n   int
		}{
			{"trading_price_in_force", len(d.InForce)}, {"end.trading_price", len(d.End.Trading)}, {"end.sold_quantity", len(d.End.Quantity)}, {"end.unit_price", len(d.End.UnitPrice)},
		} {
			p.Check(list.n == products, at+"."+list.key, "%d values, expected %d, one for each product", list.n, products)
		}
		// Logs do not say what the issues were.
		p.Check(len(d.Issues) == products || len(d.Issues) == 0, at+".issues_q_t_p_by_product", "%d values, expected %d, one for each product", len(d.Issues), products)
		for id := range w.Agents {
			_, ok := d.End.Agents[id]
			p.Check(ok, at+".end.agents", "there is no %s", id)
		}
		for k := range d.Signed {
			w.validContract(&p, fmt.Sprintf("%s.signed_today[%d]", at, k), &d.Signed[k], i)
		}
	}
	return p.Err()
}

func (w *World) validContract(p *configs.Problems, at string, c *Contract, day int) {
	seller, ok := w.Agents[c.Seller]
	buyer, ok2 := w.Agents[c.Buyer]
	if !ok || !ok2 {
		p.Addf(at, "seller %q or buyer %q is no agent of this world", c.Seller, c.Buyer)
		return
	}
	p.Check(buyer.Level == seller.Level+1, at, "%s of level %d sells to %s of level %d, expected one of level %d", c.Seller, seller.Level, c.Buyer, buyer.Level, seller.Level+1)
	p.AtLeast(at+".quantity", c.Quantity, 1)
	p.InRange(at+".time", c.Time, float64(day), float64(w.Days-1))
	p.AtLeast(at+".unit_price", c.Price, 0)
}

// decodeError says of an error of encoding/json what was expected, and in which line.
func decodeError(text []byte, err error) error {
	line := func(offset int64) int { return 1 + bytes.Count(text[:min(int(offset), len(text))], []byte("\n")) }
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return errors.New("is empty, expected a world")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("ends in line %d, in the middle of the world: it was cut", line(int64(len(text))))
	case errors.As(err, &wrong):
		key := wrong.Field
		if key == "" {
			key = "the world"
		}
		return fmt.Errorf("line %d, %s: is a JSON %s, expected %s", line(wrong.Offset), key, wrong.Value, expected(wrong.Type.Kind().String()))
	case errors.As(err, &syntax):
		return fmt.Errorf("line %d is no JSON: %w", line(syntax.Offset), err)
	}
	if key, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("a world has no key %s", key)
	}
	return err
}

// expected is what JSON calls a kind of Go.
func expected(kind string) string {
	switch {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "a whole number"
	case strings.HasPrefix(kind, "float"):
		return "a finite number"
	case kind == "struct", kind == "map":
		return "an object"
	case kind == "slice", kind == "array":
		return "a list"
	case kind == "bool":
		return "true or false"
	}
	return "a " + kind
}
