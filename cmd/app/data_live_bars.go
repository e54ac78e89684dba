package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/live"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
)

// liveBars gives the rows of one time after another, in the order of the agent's assets, and io.EOF
// after the last. Rows are valid until the next call.
type liveBars interface {
	Next(ctx context.Context) (time.Time, []live.Row, error)
	// location is the zone that times are in.
	location() *time.Location
	io.Closer
}

// openLiveBars opens what the flags name, to be read and checked as the data of the pipeline were.
func (a *app) openLiveBars(p live.Pipeline, f *liveFlags) (liveBars, error) {
	c, err := liveConfig(p, f.bars)
	if err != nil {
		return nil, err
	}
	if f.follow || f.bars == "-" {
		say := func(text string) { a.say("%s", text) }
		in := a.in
		if f.follow {
			in = nil
		}
		loc := time.UTC
		if zone := c.Source.Timezone; zone != "" {
			if loc, err = time.LoadLocation(zone); err != nil {
				return nil, err
			}
		}
		follower, err := bars.Follow(c.Source, in, c.Quality, c.Calendar.From, p.Assets, p.Adjusted, say)
		if err != nil {
			return nil, err
		}
		follower.Require(p.Needs())
		follower.Anchor(p.Anchors)
		if c.Rules != "" {
			l, err := prepared.Limiter(c.Rules, p.Assets)
			if err != nil {
				return nil, err
			}
			follower.Limit(l.Limit)
		}
		published, err := bars.ReadPublished(c.Series, c.Source.Timezone)
		if err != nil {
			return nil, err
		}
		return &followedBars{follower, make([]live.Row, len(p.Assets)), loc, p.Assets, published, say}, nil
	}
	rows, err := prepared.ReadAnchored(c, p.Anchors)
	if err != nil {
		return nil, err
	}
	h, err := prepared.NewHistory(c, rows)
	if err != nil {
		return nil, err
	}
	if err := bars.Lacking(p.Needs(), h.Panel.Quoted); err != nil {
		return nil, fmt.Errorf("%s: %w", f.bars, err)
	}
	a.tellLiveFile(f.bars, p.Adjusted, rows, h, c.Quality)
	return &panelBars{panel: h.Panel, rows: make([]live.Row, len(h.Panel.Symbols))}, nil
}

// tellLiveFile says what was mended in a file that was read whole, and whether it was cut off.
func (a *app) tellLiveFile(path, adjusted string, rows *bars.Data, h *prepared.History, rules bars.Rules) {
	notes := append([]string{rows.Adjustment.String()}, rows.Notes...)
	if by := rows.Adjustment.By; adjusted != "" && by != adjusted {
		notes = append(notes, bars.OtherAdjustment(adjusted, by))
	}
	notes = append(notes, prepared.Findings(h.Reports, rules)...)
	if cutOff(path) {
		notes = append(notes, fmt.Sprintf("the last line of %s has no end: if it was cut off, its numbers are wrong (--follow waits for the rest)", path))
	}
	tellNotes(a.err, notes)
}

// cutOff says whether a file of text ends within a line.
func cutOff(path string) bool {
	if lower := strings.ToLower(path); !strings.HasSuffix(lower, ".csv") && !strings.HasSuffix(lower, ".txt") && !strings.HasSuffix(lower, ".tsv") {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	last := make([]byte, 1)
	if size, err := f.Seek(0, io.SeekEnd); err != nil || size == 0 {
		return false
	} else if _, err := f.ReadAt(last, size-1); err != nil {
		return false
	}
	return last[0] != '\n'
}

// liveConfig is the configuration of a pipeline's data with other bars.
func liveConfig(p live.Pipeline, path string) (prepared.Config, error) {
	c := prepared.Default()
	doc, err := configs.Parse("features.config", []byte(p.Config))
	if err != nil {
		return c, err
	}
	section, ok := doc.Lookup("data")
	if !ok {
		return c, errors.New("features.config: no data section")
	}
	if err := section.Decode(&c); err != nil {
		return c, err
	}
	c.Source.Path, c.Synthetic, c.Assets = path, configs.Kinded{}, p.Assets
	c.Calendar.To = bars.Date{} // The bars go on after those of the run.
	return c, nil
}

// panelBars gives bars that were read whole.
type panelBars struct {
	panel *bars.Panel
	rows  []live.Row
	at    int
}

func (b *panelBars) Next(context.Context) (time.Time, []live.Row, error) {
	if b.at == len(b.panel.Times) {
		return time.Time{}, nil, io.EOF
	}
	live.RowsAt(b.panel, b.at, b.rows)
	b.at++
	return b.panel.Times[b.at-1], b.rows, nil
}

func (b *panelBars) location() *time.Location { return b.panel.Times[0].Location() }
func (b *panelBars) Close() error             { return nil }

// followedBars gives bars as they are written.
type followedBars struct {
	*bars.Follower
	rows []live.Row
	zone *time.Location
	// published are the values that join the rows' extra columns, as their files are when a row
	// comes.
	assets    []string
	published *bars.Published
	say       func(string)
}

func (b *followedBars) Next(ctx context.Context) (time.Time, []live.Row, error) {
	at, records, valid, err := b.Follower.Next(ctx)
	if err != nil {
		return at, nil, err
	}
	if now, err := b.published.Refresh(); err != nil {
		b.say(fmt.Sprintf("%v; what was read before counts", err))
	} else {
		b.published = now
	}
	for i := range records {
		r := &records[i]
		if valid[i] {
			r.Extra = b.published.At(b.assets[i], at, r.Extra)
		}
		b.rows[i] = live.RowOf(r, valid[i])
	}
	return at, b.rows, nil
}

func (b *followedBars) location() *time.Location { return b.zone }
