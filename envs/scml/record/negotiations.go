package record

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Offer is a quantity at a unit price, to be delivered on a day.
type Offer struct{ Quantity, Time, Price int }

// Made is an offer and who made it.
type Made struct {
	By string
	Offer
}

// Negotiation is one that has ended, as negotiations.csv has it.
type Negotiation struct {
	ID string
	// Day is the one on which it was held, and Ended the one on which it was recorded, which is the
	// next one for what was left over.
	Day, Ended int
	Product    int
	// Caller has asked for it: the buyer or the seller.
	Caller, Buyer, Seller string
	// Quantity, Time and Price are the lowest and highest values that could be offered.
	Quantity, Time, Price [2]int
	// Offers are in the order in which they were made, Rounds the number of rounds, complete or
	// not. The caller begins each round.
	Offers []Made
	Rounds int
	// Agreement is nil where there is none; Broken says that a side ended it, and TimedOut that the
	// rounds were used up.
	Agreement        *Offer
	Broken, TimedOut bool
	// Responder is who accepted, or who ended it: the side whose turn it was.
	Responder string
}

// Partner is the other side of an agent's negotiation.
func (n *Negotiation) Partner(agent string) string {
	if agent == n.Buyer {
		return n.Seller
	}
	return n.Buyer
}

// wanted are the columns that are read.
var wanted = []string{"id", "ended_at", "issues", "agreement", "caller", "product", "buyer", "seller", "sim_step", "broken", "timedout", "history"}

// RowError says what is wrong with a row of a table of a log.
type RowError struct {
	Path string
	// Line is that of the file on which the row begins, from 1.
	Line   int
	Column string
	Err    error
}

func (e *RowError) Error() string {
	return fmt.Sprintf("%s: line %d, column %s: %v", e.Path, e.Line, e.Column, e.Err)
}

func (e *RowError) Unwrap() error { return e.Err }

// ErrCut says that a table ends in the middle of a row: whoever wrote it was stopped.
var ErrCut = errors.New("the file ends within a row")

// EachNegotiation reads a file negotiations.csv row by row. The negotiation is overwritten by the
// next one. An error of do, or a row that is wrong ([*RowError]), ends it. A file whose last row
// was not written to its end gives all the others, and then [ErrCut].
func EachNegotiation(path string, do func(n *Negotiation) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.ReuseRecord = true
	head, err := r.Read()
	if err == io.EOF {
		// A world in which nobody negotiated.
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	at := map[string]int{}
	for i, name := range head {
		at[name] = i
	}
	columns := make([]int, len(wanted))
	for i, name := range wanted {
		k, ok := at[name]
		if !ok {
			return fmt.Errorf("%s: there is no column %s; histories are written by scml 0.7 where the world is not started with no_logs or saves its statistics (log_stats_every=1)", path, name)
		}
		columns[i] = k
	}
	p := negotiationReader{path: path, columns: columns, names: map[string]string{}}
	for {
		row, err := r.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			var parse *csv.ParseError
			if errors.As(err, &parse) && (errors.Is(err, csv.ErrQuote) || errors.Is(err, csv.ErrFieldCount)) && !p.follows(f, r) {
				return fmt.Errorf("%s: line %d: %w", path, parse.StartLine, ErrCut)
			}
			return fmt.Errorf("%s: %w", path, err)
		}
		p.line, _ = r.FieldPos(0)
		if err := p.read(row); err != nil {
			return err
		}
		if err := do(&p.n); err != nil {
			return err
		}
	}
}

// negotiationReader reads rows.
type negotiationReader struct {
	path    string
	line    int
	columns []int
	n       Negotiation
	// names keeps one copy of each agent's identifier.
	names     map[string]string
	agreement Offer
}

// follows reports whether something follows what a reader has read.
func (p *negotiationReader) follows(f *os.File, r *csv.Reader) bool {
	info, err := f.Stat()
	return err == nil && r.InputOffset() < info.Size()
}

func (p *negotiationReader) wrong(column string, err error) error {
	return &RowError{p.path, p.line, column, err}
}

// name returns the kept copy of an identifier.
func (p *negotiationReader) name(text string) string {
	if kept, ok := p.names[text]; ok {
		return kept
	}
	text = strings.Clone(text)
	p.names[text] = text
	return text
}

// read takes a row.
func (p *negotiationReader) read(row []string) error {
	cell := func(i int) string { return row[p.columns[i]] }
	n := &p.n
	*n = Negotiation{ID: strings.Clone(cell(0)), Offers: n.Offers[:0], Caller: p.name(cell(4)), Buyer: p.name(cell(6)), Seller: p.name(cell(7))}
	for _, x := range []struct {
		i  int
		to *int
	}{{1, &n.Ended}, {5, &n.Product}, {8, &n.Day}} {
		v, err := strconv.ParseFloat(cell(x.i), 64)
		if err != nil || v != float64(int(v)) {
			return p.wrong(wanted[x.i], fmt.Errorf("%q is no whole number", cell(x.i)))
		}
		*x.to = int(v)
	}
	if n.Buyer == n.Seller || n.Caller != n.Buyer && n.Caller != n.Seller {
		return p.wrong("caller", fmt.Errorf("%q, and buyer and seller are %q and %q", n.Caller, n.Buyer, n.Seller))
	}
	for _, x := range []struct {
		i  int
		to *bool
	}{{9, &n.Broken}, {10, &n.TimedOut}} {
		if *x.to = cell(x.i) == "True"; !*x.to && cell(x.i) != "False" {
			return p.wrong(wanted[x.i], fmt.Errorf("%q, expected True or False", cell(x.i)))
		}
	}
	if err := p.issues(cell(2)); err != nil {
		return p.wrong("issues", err)
	}
	if text := cell(3); text != "" && text != "None" {
		l := &literal{text: text}
		o, err := l.offer()
		if err != nil {
			return p.wrong("agreement", err)
		}
		p.agreement = o
		n.Agreement = &p.agreement
	}
	if err := p.history(cell(11)); err != nil {
		return p.wrong("history", err)
	}
	return nil
}

// issues reads ['quantity: (1, 30)', 'time: (0, 4)', 'unit_price: (14, 17)'].
func (p *negotiationReader) issues(text string) error {
	l := &literal{text: text}
	if err := l.take('['); err != nil {
		return err
	}
	for i := 0; ; {
		ok, err := l.more(']', &i)
		if err != nil {
			return err
		}
		if !ok {
			if i != 3 {
				return fmt.Errorf("%d issues, expected quantity, time and unit_price", i)
			}
			return nil
		}
		s, err := l.str()
		if err != nil {
			return err
		}
		name, of, _ := strings.Cut(s, ":")
		to := map[string]*[2]int{"quantity": &p.n.Quantity, "time": &p.n.Time, "unit_price": &p.n.Price}[name]
		if to == nil {
			return fmt.Errorf("the issue %q, expected quantity, time and unit_price", name)
		}
		if err := (&literal{text: of}).numbers('(', ')', to[:]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}

// numbers takes as many whole numbers as there is room for, between brackets.
func (l *literal) numbers(begin, end byte, to []int) error {
	if err := l.take(begin); err != nil {
		return err
	}
	for i := 0; ; {
		ok, err := l.more(end, &i)
		if err != nil {
			return err
		}
		if !ok {
			if i != len(to) {
				return l.fail("%d numbers, expected %d", i, len(to))
			}
			return nil
		}
		if i > len(to) {
			return l.fail("more than %d numbers", len(to))
		}
		if to[i-1], err = l.whole(); err != nil {
			return err
		}
	}
}

// offer takes (quantity, time, unit price), as a tuple or as a list.
func (l *literal) offer() (Offer, error) {
	var x [3]int
	begin, end := byte('('), byte(')')
	if l.peek() == '[' {
		begin, end = '[', ']'
	}
	err := l.numbers(begin, end, x[:])
	return Offer{x[0], x[1], x[2]}, err
}

// history reads the rounds. What is tagged with an agent was offered to it, so the order counts:
// of two offers of a round the caller's is the first one, and one alone is the caller's.
func (p *negotiationReader) history(text string) error {
	l := &literal{text: text}
	if l.peek() == 0 {
		return errors.New("it is empty: the world was run without histories (no_logs=True)")
	}
	if err := l.take('['); err != nil {
		return err
	}
	n, last := &p.n, 0
	partner := n.Partner(n.Caller)
	for i := 0; ; {
		ok, err := l.more(']', &i)
		if err != nil {
			return err
		}
		if !ok {
			n.Rounds = i
			break
		}
		if last, err = p.round(l, partner); err != nil {
			return fmt.Errorf("round %d: %w", i-1, err)
		}
	}
	// In the last round whoever did not offer has answered instead.
	switch {
	case n.TimedOut || n.Rounds == 0:
	case last == 0:
		n.Responder = n.Caller
	case last == 1:
		n.Responder = partner
	}
	return nil
}

// round reads a round, and returns the number of its offers.
func (p *negotiationReader) round(l *literal, partner string) (offers int, err error) {
	if err := l.take('{'); err != nil {
		return 0, err
	}
	for k := 0; ; {
		ok, err := l.more('}', &k)
		if !ok || err != nil {
			return offers, err
		}
		key, err := l.str()
		if err == nil {
			err = l.take(':')
		}
		if err != nil {
			return 0, err
		}
		if key != "new_offers" {
			if err := l.skip(); err != nil {
				return 0, err
			}
			continue
		}
		if err := l.take('['); err != nil {
			return 0, err
		}
		for {
			ok, err := l.more(']', &offers)
			if err != nil {
				return 0, err
			}
			if !ok {
				break
			}
			if offers > 2 {
				return 0, l.fail("more than two offers in a round")
			}
			by := p.n.Caller
			if offers == 2 {
				by = partner
			}
			if err := p.made(l, by); err != nil {
				return 0, err
			}
		}
	}
}

// made takes ('02Ra@0', (4, 0, 17)), or with None where a side had no offer.
func (p *negotiationReader) made(l *literal, by string) error {
	if err := l.take('('); err != nil {
		return err
	}
	if _, err := l.str(); err != nil {
		return err
	}
	if err := l.take(','); err != nil {
		return err
	}
	if !l.none() {
		o, err := l.offer()
		if err != nil {
			return err
		}
		p.n.Offers = append(p.n.Offers, Made{by, o})
	}
	return l.take(')')
}
