package ashare

import (
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func TestBoardOf(t *testing.T) {
	cases := 0
	for symbol, want := range sorted.All(map[string]Board{
		"600000.SH": MainSH, "601318.SH": MainSH, "603288.SH": MainSH, "605499.SH": MainSH, "600000.SS": MainSH, "600000.XSHG": MainSH, "SH600000": MainSH, "sh600000": MainSH,
		"sh.600000": MainSH, "SHSE.600000": MainSH, "600000": MainSH,
		"000001.SZ": MainSZ, "001979.SZ": MainSZ, "002594.SZ": MainSZ, "003816.SZ": MainSZ, "000001.XSHE": MainSZ, "SZ000001": MainSZ, "sz.000001": MainSZ, "000001": MainSZ,
		"300750.SZ": ChiNext, "301236.SZ": ChiNext, "302132.SZ": ChiNext, "sz300750": ChiNext, "300750": ChiNext,
		"688981.SH": STAR, "689009.SH": STAR, "SH688981": STAR, "688981": STAR,
		"830799.BJ": BSE, "430047.BJ": BSE, "871981.BJ": BSE, "920002.BJ": BSE, "bj830799": BSE, "BJ.830799": BSE, "830799": BSE,
	}) {
		cases++
		if b, err := BoardOf(symbol); err != nil || b != want {
			t.Errorf("%s: %v, %v, expected %v", symbol, b, err, want)
		}
	}
	for symbol, says := range sorted.All(map[string]string{
		"000300.SH": "is no A share", "399300.SZ": "is no A share", "900901.SH": "main board SH: 600, 601, 603, 605; STAR: 688, 689", "200002.SZ": "is no A share", "510300.SH": "is no A share",
		"300750.SH": "is no A share", "899050.BJ": "is no A share", "AAPL": "expected six digits", "60000.SH": "expected six digits", "600000.HK": "expected six digits", "": "expected six digits",
		"SH600000.SH": "expected six digits", "６00000": "expected six digits",
	}) {
		cases++
		if b, err := BoardOf(symbol); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, error %v, expected %q", symbol, b, err, says)
		}
	}
	if cases != 48 {
		t.Errorf("%d symbols, expected 48", cases)
	}
}
