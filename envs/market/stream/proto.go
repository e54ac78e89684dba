package stream

import (
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// The fields of bar.proto.
const (
	protoVersion protowire.Number = iota + 1
	protoSymbol
	protoTime
	protoSuspended
	protoOpen
	protoHigh
	protoLow
	protoClose
	protoVolume
	protoFactor
	protoExtra
	protoAverage
	protoPrice
	protoSize
	// The columns of quotes follow from here on in their order.
	protoQuotes protowire.Number = 16

	protoName  protowire.Number = 1
	protoValue protowire.Number = 2
)

// appendProto writes what decodeProto reads.
func appendProto(to []byte, symbol string, rec *bars.Record, names []string, quoted []bars.QuoteColumn) []byte {
	to = beginProto(to, symbol, rec.Time)
	if rec.Suspended {
		to = protowire.AppendVarint(protowire.AppendTag(to, protoSuspended, protowire.VarintType), 1)
	}
	number := func(n protowire.Number, v float64) { to = appendNumber(to, n, v) }
	number(protoOpen, rec.Open)
	number(protoHigh, rec.High)
	number(protoLow, rec.Low)
	number(protoClose, rec.Close)
	number(protoVolume, rec.Volume)
	number(protoFactor, rec.Factor)
	to = appendColumns(to, names, rec.Extra)
	if i := rec.Average(); i >= 0 && !math.IsNaN(rec.Extra[i]) {
		to = protowire.AppendString(protowire.AppendTag(to, protoAverage, protowire.BytesType), names[i])
	}
	for _, c := range quoted {
		if written(rec, c) {
			number(protoQuotes+protowire.Number(c), rec.Quote[c])
		}
	}
	return to
}

// beginProto begins a message.
func beginProto(to []byte, symbol string, at time.Time) []byte {
	to = protowire.AppendVarint(protowire.AppendTag(to, protoVersion, protowire.VarintType), Version)
	to = protowire.AppendString(protowire.AppendTag(to, protoSymbol, protowire.BytesType), symbol)
	return protowire.AppendVarint(protowire.AppendTag(to, protoTime, protowire.VarintType), protowire.EncodeZigZag(at.UnixNano()))
}

// appendNumber writes a number unless it is none.
func appendNumber(to []byte, n protowire.Number, v float64) []byte {
	if v-v != 0 {
		return to
	}
	return protowire.AppendFixed64(protowire.AppendTag(to, n, protowire.Fixed64Type), math.Float64bits(v))
}

// appendColumns writes further numbers, but for those that are none.
func appendColumns(to []byte, names []string, values []float64) []byte {
	for i, name := range names {
		if v := values[i]; v-v == 0 {
			to = protowire.AppendTag(to, protoExtra, protowire.BytesType)
			to = protowire.AppendVarint(to, uint64(1+protowire.SizeBytes(len(name))+1+8))
			to = protowire.AppendString(protowire.AppendTag(to, protoName, protowire.BytesType), name)
			to = appendNumber(to, protoValue, v)
		}
	}
	return to
}

// appendProtoTick writes a tick.
func appendProtoTick(to []byte, symbol string, t *bars.Tick, names []string) []byte {
	to = beginProto(to, symbol, t.Time)
	to = appendNumber(to, protoPrice, t.Price)
	to = appendNumber(to, protoSize, t.Volume)
	if t.Price == t.Price {
		to = appendNumber(to, protoQuotes+protowire.Number(bars.Amount), t.Amount)
	}
	if len(t.Extra) > 0 {
		to = appendColumns(to, names, t.Extra)
	}
	return to
}

// decodeProto reads a message. Fields that are not known are an error: they would be of another
// schema.
func (m *Message) decodeProto(b []byte) error {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return fmt.Errorf("it is neither JSON nor Protobuf: %w", protowire.ParseError(size))
		}
		b = b[size:]
		var v uint64
		var text []byte
		switch kind {
		case protowire.VarintType:
			v, size = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			v, size = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			text, size = protowire.ConsumeBytes(b)
		default:
			return fmt.Errorf("field %d: its type is not known", n)
		}
		if size < 0 {
			return fmt.Errorf("field %d: %w", n, protowire.ParseError(size))
		}
		b = b[size:]
		if want, ok := protoKind(n); !ok || want != kind {
			return fmt.Errorf("field %d of wire type %d is not one of the schema", n, kind)
		}
		if kind == protowire.BytesType && n != protoExtra && !utf8.Valid(text) {
			return fmt.Errorf("field %d: %q is no UTF-8", n, head(text))
		}
		switch n {
		case protoVersion:
			m.version = int(min(v, math.MaxInt32))
		case protoSymbol:
			m.Symbol = text
		case protoTime:
			m.Time = time.Unix(0, protowire.DecodeZigZag(v)).UTC()
		case protoSuspended:
			m.Suspended = v != 0
		case protoExtra:
			if err := m.decodeColumn(text); err != nil {
				return err
			}
		case protoAverage:
			m.average = m.name(text)
		default:
			*m.protoField(n) = math.Float64frombits(v)
		}
	}
	return nil
}

// protoKind is the wire type of a field.
func protoKind(n protowire.Number) (protowire.Type, bool) {
	switch {
	case n == protoSymbol, n == protoExtra, n == protoAverage:
		return protowire.BytesType, true
	case n >= protoVersion && n <= protoSuspended:
		return protowire.VarintType, true
	case n >= protoOpen && n <= protoFactor, n == protoPrice, n == protoSize, n >= protoQuotes && n < protoQuotes+protowire.Number(bars.QuoteColumns):
		return protowire.Fixed64Type, true
	}
	return 0, false
}

func (m *Message) protoField(n protowire.Number) *float64 {
	switch n {
	case protoOpen:
		return &m.Open
	case protoHigh:
		return &m.High
	case protoLow:
		return &m.Low
	case protoClose:
		return &m.Close
	case protoVolume:
		return &m.Volume
	case protoFactor:
		return &m.Factor
	case protoPrice:
		return &m.Price
	case protoSize:
		return &m.Size
	}
	return &m.Quote[n-protoQuotes]
}

// decodeColumn reads a column of extra.
func (m *Message) decodeColumn(b []byte) error {
	name, value := "", math.NaN()
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return fmt.Errorf("extra: %w", protowire.ParseError(size))
		}
		b = b[size:]
		switch {
		case n == protoName && kind == protowire.BytesType:
			var text []byte
			if text, size = protowire.ConsumeBytes(b); size >= 0 && utf8.Valid(text) {
				name = m.name(text)
			}
		case n == protoValue && kind == protowire.Fixed64Type:
			var v uint64
			v, size = protowire.ConsumeFixed64(b)
			value = math.Float64frombits(v)
		default:
			return fmt.Errorf("extra: field %d of wire type %d is not one of the schema", n, kind)
		}
		if size < 0 {
			return fmt.Errorf("extra: %w", protowire.ParseError(size))
		}
		b = b[size:]
	}
	m.Names, m.values = append(m.Names, name), append(m.values, value)
	return nil
}
