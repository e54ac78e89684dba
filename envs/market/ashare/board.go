package ashare

import (
	"fmt"
	"slices"
	"strings"
)

// Board is a market with rules of its own.
type Board uint8

// The boards for A shares. MainSZ holds what was the SME board until 2021.
const (
	MainSH Board = iota
	MainSZ
	ChiNext
	STAR
	BSE

	boards
)

// String returns the board's name.
func (b Board) String() string {
	return [...]string{MainSH: "main board SH", MainSZ: "main board SZ", ChiNext: "ChiNext", STAR: "STAR", BSE: "BSE"}[b]
}

// codes are the first digits of each board's A shares.
var codes = [boards][]string{
	MainSH:  {"600", "601", "603", "605"},
	MainSZ:  {"000", "001", "002", "003"},
	ChiNext: {"300", "301", "302"},
	STAR:    {"688", "689"},
	BSE:     {"43", "83", "87", "88", "92"},
}

// exchanges are the boards of an exchange by the spellings that vendors give it.
var exchanges = map[string][]Board{
	"":   {MainSH, MainSZ, ChiNext, STAR, BSE},
	"SH": {MainSH, STAR}, "SS": {MainSH, STAR}, "XSHG": {MainSH, STAR}, "SHSE": {MainSH, STAR},
	"SZ": {MainSZ, ChiNext}, "XSHE": {MainSZ, ChiNext}, "SZSE": {MainSZ, ChiNext},
	"BJ": {BSE}, "XBSE": {BSE}, "BJSE": {BSE},
}

// BoardOf returns the board of a symbol: six digits with the exchange after or before them in any
// case, such as 600000.SH (TuShare, Wind), 600000.SS (Yahoo), 600000.XSHG (JoinQuant, RQAlpha),
// SH600000 (Qlib), sh600000 (AkShare), sh.600000 (Baostock) and SHSE.600000, or without one. What
// is no A share, such as a B share, a fund or an index, is an error.
func BoardOf(symbol string) (Board, error) {
	code := symbol
	exchange := ""
	if i := strings.IndexFunc(symbol, func(r rune) bool { return r >= '0' && r <= '9' }); i > 0 {
		exchange, code = strings.TrimSuffix(symbol[:i], "."), symbol[i:]
	} else if i == 0 && len(symbol) > 6 {
		exchange, code = strings.TrimPrefix(symbol[6:], "."), symbol[:6]
	}
	list, known := exchanges[strings.ToUpper(exchange)]
	if !known || len(code) != 6 || strings.Trim(code, "0123456789") != "" {
		return 0, fmt.Errorf("symbol %q: expected six digits and an exchange, such as 600000.SH or sz000001", symbol)
	}
	var there []string
	for _, b := range list {
		if slices.ContainsFunc(codes[b], func(digits string) bool { return strings.HasPrefix(code, digits) }) {
			return b, nil
		}
		there = append(there, fmt.Sprintf("%s: %s", b, strings.Join(codes[b], ", ")))
	}
	return 0, fmt.Errorf("symbol %q is no A share: their codes begin with (%s)", symbol, strings.Join(there, "; "))
}
