package configs

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// The plain scalars of YAML 1.2's core schema (section 10.3.2), plus underscores between digits and
// 0b, which YAML 1.1 has and people use for long step counts.
var (
	intPattern   = regexp.MustCompile(`^[-+]?(0x[0-9a-fA-F]+(_[0-9a-fA-F]+)*|0o[0-7]+|0b[01]+(_[01]+)*|[0-9]+(_[0-9]+)*)$`)
	floatPattern = regexp.MustCompile(`^([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
)

// resolve gives the kind of a plain scalar. Words such as yes and on are strings, as in YAML 1.2.
func resolve(text string) kind {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return kindNull
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return kindBool
	}
	// Every number starts with one of these; the test keeps the patterns off ordinary words.
	if !strings.ContainsRune("+-.0123456789", rune(text[0])) {
		return kindString
	}
	switch {
	case intPattern.MatchString(text):
		return kindInt
	case floatPattern.MatchString(text):
		return kindFloat
	}
	return kindString
}

var (
	errOctal      = errors.New("is 8-based in YAML 1.1 and 10-based in YAML 1.2: drop the leading zero, or write 0o for octal")
	errNotInteger = errors.New("is not an integer")
	errRange      = errors.New("is out of range")
)

// parseInteger reads a number's text as sign and magnitude. Floating-point notation is read when
// its value is an integer.
func parseInteger(text string) (negative bool, magnitude uint64, err error) {
	body := strings.ReplaceAll(strings.TrimLeft(text, "+-"), "_", "")
	negative = strings.HasPrefix(text, "-")
	if resolve(text) == kindInt {
		base := 10
		switch {
		case strings.HasPrefix(body, "0x"):
			base, body = 16, body[2:]
		case strings.HasPrefix(body, "0o"):
			base, body = 8, body[2:]
		case strings.HasPrefix(body, "0b"):
			base, body = 2, body[2:]
		case len(body) > 1 && body[0] == '0':
			return false, 0, errOctal
		}
		magnitude, err = strconv.ParseUint(body, base, 64)
		if err != nil {
			return false, 0, errRange
		}
		return negative && magnitude != 0, magnitude, nil
	}
	v, err := strconv.ParseFloat(body, 64)
	switch {
	case err != nil || math.IsInf(v, 0):
		return false, 0, errRange
	case v != math.Trunc(v) || math.IsNaN(v):
		return false, 0, errNotInteger
	case v > 1<<53:
		// Beyond this the decimal text and its float64 may differ by more than the text shows.
		return false, 0, errRange
	}
	return negative && v != 0, uint64(v), nil
}

// parseFloat reads a number's text as the nearest value with the given number of bits and refuses
// what that changes visibly: overflow, a non-zero that becomes zero, an integer that is not
// representable, and for 32 bits a decimal that is written back differently.
func parseFloat(text string, bits int) (float64, error) {
	lower := strings.ToLower(text)
	switch strings.TrimLeft(lower, "+-") {
	case ".inf":
		return math.Inf(1 - 2*strings.Count(lower, "-")), nil
	case ".nan":
		return math.NaN(), nil
	}
	if resolve(text) == kindInt {
		negative, magnitude, err := parseInteger(text)
		if err != nil {
			return 0, err
		}
		v := float64(magnitude)
		if bits == 32 {
			v = float64(float32(v))
		}
		// 2^64 itself converts back to an overflowing uint64, so it is compared before the
		// conversion.
		if v >= 1<<64 || uint64(v) != magnitude {
			return 0, errors.New("is an integer that float" + strconv.Itoa(bits) + " cannot represent")
		}
		if negative || strings.HasPrefix(text, "-") {
			v = -v
		}
		return v, nil
	}
	wide, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, errRange
	}
	if wide == 0 && strings.ContainsAny(mantissa(text), "123456789") {
		return 0, errRange
	}
	if bits == 64 {
		return wide, nil
	}
	narrow := float32(wide)
	if math.IsInf(float64(narrow), 0) || (narrow == 0 && wide != 0) {
		return 0, errRange
	}
	shortest := strconv.FormatFloat(float64(narrow), 'g', -1, 32)
	if again, _ := strconv.ParseFloat(shortest, 64); again != wide {
		return 0, errors.New("changes in a float32: the nearest value is " + shortest)
	}
	return float64(narrow), nil
}

func mantissa(text string) string {
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		return text[:i]
	}
	return text
}

// formatFloat writes the shortest text that reads back as the same float of that many bits, always
// in a form that is a floating-point number and not an integer.
func formatFloat(v float64, bits int) string {
	switch {
	case math.IsNaN(v):
		return ".nan"
	case math.IsInf(v, 1):
		return ".inf"
	case math.IsInf(v, -1):
		return "-.inf"
	}
	text := strconv.FormatFloat(v, 'g', -1, bits)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}
