package progress

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/onnxrl/onnxrl/runtime/printable"
)

// leastBar is how many columns a bar has at least between its brackets.
const leastBar = 5

// drawBar draws in place, by a single write. The caller holds the lock.
func (p *Progress) drawBar(now time.Time) {
	p.rate.observe(now, p.done)
	p.drawn, p.visible = now, true
	// The last column stays free: a cursor behind it may be on the next line already.
	width := max(p.o.Width()-1, 10)
	left, right := p.head(), p.tail(now, false, p.fields)
	room := func() int { return width - utf8.RuneCountInString(left) - utf8.RuneCountInString(right) - 1 }
	least := 0
	if p.o.Total > 0 {
		least = leastBar + len(" []")
	}
	// The bar stays. Fields make room for it, the first ones first, because the last tell most.
	for fields := p.fields; room() < least; fields = fields[1:] {
		if right = p.tail(now, true, fields); len(fields) == 0 {
			break
		}
	}
	if p.o.Total > 0 {
		if left := room() - len(" []"); left >= leastBar {
			right = bar(p.fraction(), min(left, 40)) + " " + right
		}
	}
	io.WriteString(p.out, "\r"+cut(printable.Text(join(left, right)), width)+"\x1b[K")
}

// drawLine writes one plain line. The caller holds the lock.
func (p *Progress) drawLine(now time.Time) {
	p.rate.observe(now, p.done)
	p.drawn = now
	io.WriteString(p.out, join(p.head(), p.tail(now, false, p.fields))+"\n")
}

func (p *Progress) fraction() float64 {
	return min(max(float64(p.done)/float64(p.o.Total), 0), 1)
}

// head is the label and the share.
func (p *Progress) head() string {
	if p.o.Total <= 0 {
		return p.o.Label
	}
	// Rounding down keeps 100 % for the end.
	percent := math.Floor(p.fraction() * 100)
	return join(p.o.Label, fmt.Sprintf("%3.0f%%", percent))
}

// tail is the count, the rate, the time and these fields; short makes numbers round and leaves the
// unit out, so that the fields find room.
func (p *Progress) tail(now time.Time, short bool, fields []field) string {
	count := p.count
	if short {
		count = p.round
	}
	parts := []string{count(p.done)}
	if p.o.Total > 0 {
		parts[0] += "/" + count(p.o.Total)
	}
	if p.o.Unit != Bytes && !short {
		parts = append(parts, p.o.Unit)
	}
	rate := p.rate.perSecond()
	if p.finished {
		rate = 0
		if s := now.Sub(p.started).Seconds(); s > 0 {
			rate = float64(p.done-p.o.Initial) / s
		}
	}
	if shown := cmp.Or(p.told, rate); shown > 0 {
		parts = append(parts, count(int64(math.Round(shown)), shown)+"/s")
	}
	switch {
	case p.finished:
		parts = append(parts, "in "+duration(now.Sub(p.started)))
	case rate > 0 && p.o.Total > p.done:
		left := float64(p.o.Total-p.done) / rate
		if left < float64(math.MaxInt64)/1e9 {
			parts = append(parts, "ETA "+duration(time.Duration(left*1e9)))
		}
	}
	for _, f := range fields {
		value := f.value
		if short {
			value = f.short
		}
		parts = append(parts, f.key+"="+value)
	}
	return strings.Join(parts, " ")
}

// count writes a number of items; exact is given for rates, which may be below one.
func (p *Progress) count(n int64, exact ...float64) string {
	if p.o.Unit == Bytes {
		return byteCount(n)
	}
	if len(exact) > 0 && exact[0] < 100 {
		return fmt.Sprintf("%.3g", exact[0])
	}
	return fmt.Sprint(n)
}

// round is count with three significant digits.
func (p *Progress) round(n int64, exact ...float64) string {
	if p.o.Unit == Bytes || n < 10_000 {
		return p.count(n, exact...)
	}
	v, units := float64(n)/1000, []string{"k", "M", "G", "T"}
	// A number that would be written as 1e+03 belongs to the next unit.
	for len(units) > 1 && v >= 999.5 {
		v /= 1000
		units = units[1:]
	}
	return fmt.Sprintf("%.3g%s", v, units[0])
}

func byteCount(n int64) string {
	v, units := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for len(units) > 1 && v >= 1024 {
		v /= 1024
		units = units[1:]
	}
	if units[0] == "B" {
		return fmt.Sprintf("%.0f B", v)
	}
	return fmt.Sprintf("%.1f %s", v, units[0])
}

// duration rounds to seconds below an hour, and to minutes above.
func duration(d time.Duration) string {
	s := int64(math.Round(d.Seconds()))
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 48*3600:
		return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
	}
	return fmt.Sprintf("%dd%02dh", s/86400, s/3600%24)
}

func bar(fraction float64, width int) string {
	full := int(fraction * float64(width))
	return "[" + strings.Repeat("=", full) + strings.Repeat(" ", width-full) + "]"
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " " + b
}

// cut shortens text to a number of columns, taking every rune for one, and keeps control characters
// out of the line.
func cut(text string, width int) string {
	runes := []rune(text)
	for i, r := range runes {
		if r < ' ' || r == 0x7f {
			runes[i] = ' '
		}
	}
	return string(runes[:min(len(runes), width)])
}
