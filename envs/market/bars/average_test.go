package bars

import (
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// Where a file has amounts and no vwap, it is amount/volume in the units of the vendor, adjusted as
// prices are; units that cannot be are refused.
func TestAverage(t *testing.T) {
	cases := 0
	for name, c := range sorted.All(map[string]struct {
		preset, text string
		want         []float64
		err          string
	}{
		"auto":            {"auto", "date,symbol,open,high,low,close,volume,amount,adj_factor\n2020-01-01,A,10,12,9,11,100,1100,1\n2020-01-02,A,5,6,4,5,0,0,2\n2020-01-03,A,5,6,4,5,200,1000,2\n", []float64{11, math.NaN(), 10}, ""},
		"tushare":         {"tushare", "trade_date,ts_code,open,high,low,close,pre_close,vol,amount\n20200101,A,10,12,9,11,10,100,110\n", []float64{11}, ""},
		"akshare":         {"akshare", "日期,股票代码,开盘,收盘,最高,最低,成交量,成交额\n2020-01-01,A,10,11,12,9,1,1050\n", []float64{10.5}, ""},
		"wind":            {"wind", "代码,日期,开盘价(元),最高价(元),最低价(元),收盘价(元),成交量(股),成交额(万元)\nA,2020-01-01,10,12,9,11,10000,11\n", []float64{11}, ""},
		"baostock":        {"baostock", "date,code,open,high,low,close,preclose,volume,amount,tradestatus\n2020-01-01,A,10,12,9,11,10,100,1100,1\n", []float64{11}, ""},
		"a column":        {"auto", "date,symbol,open,high,low,close,volume,amount,vwap,adj_factor\n2020-01-01,A,10,12,9,11,100,1100,10.7,2\n", []float64{10.7}, ""},
		"lots and shares": {"auto", "date,symbol,open,high,low,close,volume,amount\n2020-01-01,A,10,12,9,11,1,1100\n", nil, "symbol A: amount/volume of 1 of 1 rows is not between low and high, first on 2020-01-01 (a.csv, line 2): amount/volume is 1100, low 9 and high 12: the units"},
		"no amount":       {"auto", "date,symbol,open,high,low,close,volume\n2020-01-01,A,10,12,9,11,1\n", nil, `no extra column "vwap"`},
	}) {
		cases++
		d, err := Read(source(write(t, "a.csv", c.text), func(s *Source) { s.Preset, s.Extra = c.preset, []string{"vwap"} }), nil)
		var clean Series
		if err == nil {
			clean, _, err = Clean(d.Series[0], DefaultRules(), "keep")
		}
		if c.err != "" || err != nil {
			if err == nil || c.err == "" || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, expected %q", name, err, c.err)
			}
			continue
		}
		for i, want := range c.want {
			if got := clean.Records[i].Extra[0]; math.Abs(got-want) > 1e-12 || math.IsNaN(got) != math.IsNaN(want) {
				t.Errorf("%s: row %d has %g, expected %g", name, i, got, want)
			}
			if raw := d.Series[0].Records[i].Extra[0]; i == 2 && raw != 5 {
				t.Errorf("%s: the rows that were read have changed to %g", name, raw)
			}
		}
	}
	if cases != 8 {
		t.Errorf("%d cases", cases)
	}
}
