package printable

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"golang.org/x/term"
)

// Columns returns the width of the lines that w shows: $COLUMNS where it is a positive number, else
// the width of the terminal that w writes to. It returns 0 where neither says one.
func Columns(w io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if f, ok := Raw(w).(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return 0
}

// Table aligns the cells of lines, which tabs end, as package text/tabwriter does, two spaces apart.
// A table that is wider than [Columns] is folded: long cells are broken between words, and columns
// that find no room follow below, behind the first column again. Errors of writing come from Flush.
type Table struct {
	to    io.Writer
	width int
	right bool
	text  bytes.Buffer
}

// NewTable returns a table whose cells are aligned on the left.
func NewTable(to io.Writer) *Table { return &Table{to: to, width: Columns(to)} }

// NewNumbers returns a table whose cells are aligned on the right.
func NewNumbers(to io.Writer) *Table { return &Table{to: to, width: Columns(to), right: true} }

// Write takes text whose cells end with tabs and whose rows are lines. It returns no error.
func (t *Table) Write(p []byte) (int, error) { return t.text.Write(p) }

// Flush writes the rows since the last Flush.
func (t *Table) Flush() error {
	defer t.text.Reset()
	if t.width <= 0 {
		return t.align(t.to)
	}
	var aligned bytes.Buffer
	// A buffer takes everything.
	_ = t.align(&aligned)
	for line := range strings.Lines(aligned.String()) {
		if columns(strings.TrimRight(line, " \n")) > t.width {
			_, err := io.WriteString(t.to, t.fold())
			return err
		}
	}
	_, err := t.to.Write(aligned.Bytes())
	return err
}

// align writes the rows as they are.
func (t *Table) align(to io.Writer) error {
	var flags uint
	if t.right {
		flags = tabwriter.AlignRight
	}
	w := tabwriter.NewWriter(to, 0, 4, 2, ' ', flags)
	if _, err := w.Write(t.text.Bytes()); err != nil {
		return err
	}
	return w.Flush()
}

// fold lays out every run of lines with cells by itself; lines without are text.
func (t *Table) fold() string {
	var b strings.Builder
	var rows [][]string
	flush := func() {
		t.foldRows(&b, rows)
		rows = nil
	}
	for line := range strings.Lines(t.text.String()) {
		line = strings.TrimSuffix(line, "\n")
		if strings.Contains(line, "\t") {
			rows = append(rows, strings.Split(strings.TrimSuffix(line, "\t"), "\t"))
			continue
		}
		flush()
		for _, part := range broken(line, t.width) {
			b.WriteString(part + "\n")
		}
	}
	flush()
	return b.String()
}

// leastCell is the fewest columns that a cell is broken to.
const leastCell = 20

// foldRows packs columns into blocks that are as wide as there is room, each behind the first.
func (t *Table) foldRows(b *strings.Builder, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for j, cell := range row {
			if j == len(widths) {
				widths = append(widths, 0)
			}
			widths[j] = max(widths[j], columns(cell))
		}
	}
	if len(widths) == 0 {
		return
	}
	widths[0] = min(widths[0], max(1, t.width/2))
	for j, first := 1, true; j < len(widths) || first; first = false {
		block, left := []int{0}, t.width-widths[0]
		for ; j < len(widths); j++ {
			if need := widths[j] + 2; need > left {
				if left-2 < leastCell && len(block) > 1 || len(block) > 1 && widths[j] < leastCell {
					break
				}
				widths[j] = max(1, left-2)
			}
			block, left = append(block, j), left-widths[j]-2
		}
		if !first {
			b.WriteString("\n")
		}
		for _, row := range rows {
			t.foldRow(b, row, block, widths)
		}
	}
}

// foldRow writes the cells of a row that are in a block, unless all but the first are missing.
func (t *Table) foldRow(b *strings.Builder, row []string, block, widths []int) {
	cells, lines := make([][]string, len(block)), 0
	for i, j := range block {
		if j < len(row) {
			cells[i] = broken(row[j], widths[j])
			lines = max(lines, len(cells[i]))
		}
	}
	if len(block) > 1 && block[1] > 1 && block[1] >= len(row) {
		return
	}
	for l := range lines {
		line := ""
		for i, j := range block {
			cell := ""
			if l < len(cells[i]) {
				cell = cells[i][l]
			}
			pad := strings.Repeat(" ", max(0, widths[j]-columns(cell)))
			if i > 0 {
				line += "  "
			}
			if t.right {
				line += pad + cell
			} else {
				line += cell + pad
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

func columns(s string) int { return utf8.RuneCountInString(s) }

// broken breaks text into lines of that many columns, between words where it can. Leading spaces
// stay.
func broken(text string, width int) []string {
	if columns(text) <= width {
		return []string{text}
	}
	rest := strings.TrimLeft(text, " ")
	indent := text[:min(len(text)-len(rest), width/2)]
	now := indent
	var lines []string
	for word := range strings.FieldsSeq(rest) {
		if now != indent && columns(now)+1+columns(word) > width {
			lines, now = append(lines, now), indent
		}
		if now != indent {
			now += " "
		}
		now += word
		for columns(now) > width {
			runes := []rune(now)
			lines, now = append(lines, string(runes[:width])), indent+string(runes[width:])
		}
	}
	if now != indent {
		lines = append(lines, now)
	}
	return lines
}
