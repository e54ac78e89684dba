package assess

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Sources implements [experiment.Judge]: data_sha256 identifies the market's data, beside what the
// data say of the files that they are made of.
func (Judge) Sources(f envs.Factory) map[string]string {
	o := f.(trading.Opened)
	out := maps.Clone(o.Data().Digests)
	if out == nil {
		out = map[string]string{}
	}
	if out["data_sha256"] == "" {
		out["data_sha256"] = marketDigest(o.Source(), o.Data().Splits)
	}
	return out
}

// marketDigest identifies everything that a policy can see or be paid by: names, dates, features,
// prices, what can be traded, and the splits.
func marketDigest(s *trading.Source, splits map[envs.Split]trading.Range) string {
	h, m, c := sha256.New(), s.Market(), s.Config()
	fmt.Fprintf(h, "%q %q\n", m.Assets, m.Features)
	for _, name := range slices.Sorted(maps.Keys(splits)) {
		fmt.Fprintf(h, "%q %v\n", name, splits[name])
	}
	for _, t := range m.Dates {
		fmt.Fprintln(h, t.Unix())
	}
	h.Write(tensor.Of(m.X, len(m.X)).Bytes())
	// Writing to a hash gives no error.
	_ = binary.Write(h, binary.LittleEndian, m.Open)
	_ = binary.Write(h, binary.LittleEndian, m.Close)
	sides := make([]byte, len(m.Tradable))
	for i, s := range m.Tradable {
		// 1 is both sides, as it was when there was one flag for both.
		sides[i] = [...]byte{0: 0, trading.CanBuy: 2, trading.CanSell: 3, trading.Both: 1}[s]
	}
	h.Write(sides)
	_ = binary.Write(h, binary.LittleEndian, m.AtOpen)
	_ = binary.Write(h, binary.LittleEndian, m.Members)
	if m.Factor != nil {
		_ = binary.Write(h, binary.LittleEndian, m.Factor)
	}
	if c.Costs.UsesBars() {
		for _, column := range [][]float64{m.Volume, m.LimitUp, m.LimitDown, m.Spread, m.Depth} {
			_ = binary.Write(h, binary.LittleEndian, column)
		}
	}
	for _, column := range [][]float64{m.Dividend, m.Bonus} {
		_ = binary.Write(h, binary.LittleEndian, column)
	}
	if c.Account.Delisting != nil {
		h.Write(m.Gone)
	}
	if m.Rules != nil {
		fmt.Fprintf(h, "rules %s\n", m.Rules.Name())
	}
	return hex.EncodeToString(h.Sum(nil))
}
