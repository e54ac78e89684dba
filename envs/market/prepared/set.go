package prepared

import (
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/feature"
	"github.com/onnxrl/onnxrl/envs/market/split"
	"github.com/onnxrl/onnxrl/envs/market/universe"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Set is a prepared data set of T times, N symbols and F features. It is not changed by its methods
// and may be shared by many environments.
type Set struct {
	Manifest Manifest
	Times    []time.Time // T, ascending
	// X holds the features, [T,N,F]: rows of stocks that are not listed or not defined are zero but
	// for the listed flag.
	X *tensor.Tensor
	// Prices in the asset's currency and volumes, at t·N+n, adjusted as Manifest.Adjusted says, not
	// normalised. They are 0 before a stock is listed and carried forward where it has no bar.
	Open, High, Low, Close, Volume []float64
	// Status and Defined are at t·N+n; Defined says that all features have a value.
	Status  []bars.Status
	Defined []bool
	// Extra are the further columns of the source, at (t·N+n)·E+e, in the order of Manifest.Extra;
	// NaN where unknown.
	Extra []float64
	// Quotes are what is known besides, at t·N+n, by [bars.QuoteColumn]: prices before adjustment,
	// factors, limits and so on. Columns that the source lacks are nil.
	Quotes [bars.QuoteColumns][]float64
	// Members, at t·N+n, says which symbols can be bought and which are to be sold; nil without a
	// universe.
	Members []universe.Membership

	x []float32
	// away has the values, without which the set is, but for Times, Status, Defined and Members; nil: the
	// set has them.
	away *valueFile
}

// Manifest describes a set.
type Manifest struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// T, N, F and W are the numbers of times, symbols, features and bars of a window.
	T int `json:"t"`
	N int `json:"n"`
	F int `json:"f"`
	W int `json:"w"`
	// From and To are the first and last time; Timezone is empty where times are as written in the
	// files.
	From     string   `json:"from"`
	To       string   `json:"to"`
	Timezone string   `json:"timezone"`
	Symbols  []string `json:"symbols"`
	// DroppedRows is the number of first times that were left out because no stock had all its
	// features.
	DroppedRows   int                   `json:"dropped_rows"`
	Features      []Feature             `json:"features"`
	Normalization feature.Normalization `json:"normalization"`
	Extra         []string              `json:"extra,omitempty"`
	// Quotes names the columns of Set.Quotes that there are, in order.
	Quotes []string `json:"quotes,omitempty"`
	// Rules is the rule book that limits are from and accounts are kept by; empty is none.
	Rules string `json:"rules,omitempty"`
	// Universe is nil where all symbols can be bought at all times.
	Universe *UniverseInfo `json:"universe,omitempty"`
	Split    split.Splits  `json:"split"`
	// TrainWithout are positions inside of the training range that nothing is learnt from.
	TrainWithout []split.Span `json:"train_without,omitempty"`
	Ranges       []RangeInfo  `json:"ranges"`
	// Adjusted says what prices were multiplied by: none, adj_close, factor or actions. It is the By of
	// Adjustment.
	Adjusted   string          `json:"adjusted"`
	Adjustment bars.Adjustment `json:"price_adjustment"`
	// Anchors are where the factors of the symbols were divided, with source.anchor alone.
	Anchors []bars.Anchor       `json:"anchors,omitempty"`
	Inputs  []bars.File         `json:"inputs"`
	Quality []bars.SymbolReport `json:"quality"`
	// LookAhead says what of the features knows the future, one sentence each; empty where nothing
	// is known to.
	LookAhead []string `json:"look_ahead,omitempty"`
	// Notes are what a user should know, in words.
	Notes []string `json:"notes"`
	// Config is the effective configuration as YAML, ConfigSHA256 its digest.
	Config       string `json:"config"`
	ConfigSHA256 string `json:"config_sha256"`
	Files        Files  `json:"files"`
	// DataSHA256 identifies what is in the set, wherever it was read from.
	DataSHA256 string `json:"data_sha256"`
}

// Feature is a column with the statistics it was scaled by.
type Feature struct {
	feature.Column
	feature.Statistic
}

// RangeInfo says what a range holds.
type RangeInfo struct {
	Name string `json:"name"`
	From string `json:"from"`
	To   string `json:"to"`
	Bars int    `json:"bars"`
	// Tradable is the number of stocks that can be traded at some time in the range.
	Tradable int `json:"tradable"`
	// Members is nil without a universe.
	Members *Crowd `json:"members,omitempty"`
}

// Files are the stored tables.
type Files struct {
	Features FileInfo `json:"features"`
	Prices   FileInfo `json:"prices"`
}

// FileInfo identifies a stored table.
type FileInfo struct {
	Name   string `json:"name"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Window returns the features of the W bars that end at position t, [W,N,F] in one block that
// shares the set's memory. t must be at least W−1.
func (s *Set) Window(t int) []float32 {
	row := s.Manifest.N * s.Manifest.F
	return s.x[(t-s.Manifest.W+1)*row : (t+1)*row : (t+1)*row]
}

// Row returns the features of symbol n at position t, sharing the set's memory.
func (s *Set) Row(t, n int) []float32 {
	f := s.Manifest.F
	i := t*s.Manifest.N + n
	return s.x[i*f : (i+1)*f : (i+1)*f]
}

// Tradable says whether symbol n can be bought and sold at position t: it has a bar with trading
// and all its features are defined.
func (s *Set) Tradable(t, n int) bool {
	i := t*s.Manifest.N + n
	return s.Status[i] == bars.Traded && s.Defined[i]
}
