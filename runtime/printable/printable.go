// Package printable keeps what a terminal would obey out of what is printed. Names of a model's
// nodes, of files and of clients may hold control characters: they move the cursor, colour what
// follows, rename the window, or turn the direction of text, and so can make a program seem to say
// what it does not.
//
// It is no promise to other modules.
package printable

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// Text writes control characters as escapes, \u001b for ESC, which JSON reads as the same, and
// bytes that are not UTF-8 as \xff. Ends of lines, CR before LF included, and tabs stay.
func Text(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\n', r == '\t', r == '\r' && i+1 < len(s) && s[i+1] == '\n':
			b.WriteByte(s[i])
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case obeyed(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// Name is Text for what is one cell of a table or a part of a line: ends of lines and tabs are
// escaped too.
func Name(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Text(strings.ReplaceAll(s, "\r\n", `\r\n`)))
}

// plain reports whether there is nothing but printable ASCII, ends of lines and tabs.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' && c != '\n' && c != '\t') || c >= 0x7f {
			return false
		}
	}
	return true
}

// obeyed reports whether a terminal does something at a character other than showing it: C0, DEL,
// C1, marks and embeddings of direction, and the separators of lines and paragraphs.
func obeyed(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x061c || r == 0x200e || r == 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// Writer passes on text as [Text] has it. It is safe for concurrent use.
type Writer struct {
	mu   sync.Mutex
	to   io.Writer
	held []byte // of a character, or a CR, whose rest has not been written
}

// NewWriter returns a writer to another one.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Raw is what a Writer writes to, and otherwise w: for protocols, files, and what moves a terminal's
// cursor.
func Raw(w io.Writer) io.Writer {
	if p, ok := w.(*Writer); ok {
		return p.to
	}
	return w
}

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := string(append(w.held, p...))
	w.held = nil
	if n := rest(text); n > 0 {
		text, w.held = text[:len(text)-n], []byte(text[len(text)-n:])
	}
	if _, err := io.WriteString(w.to, Text(text)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// rest is how many bytes at the end begin a character that is not complete, or are a CR.
func rest(s string) int {
	if strings.HasSuffix(s, "\r") {
		return 1
	}
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		if c := s[len(s)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRuneInString(s[len(s)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
