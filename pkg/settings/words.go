package settings

import "strings"

// words splits a value as the server does with a line of its file: at spaces, with
// quotes taken off wherever they stand. Within double quotes a backslash escapes,
// within single quotes it does before a single quote only. It is false for a quote
// that is not closed, which keeps a server from starting.
func words(value string) ([]string, bool) {
	var out []string
	var word strings.Builder
	var open byte
	begun := false
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch {
		case open == 0 && (c == '"' || c == '\''):
			open, begun = c, true
		case open == 0 && (c == ' ' || c == '\t'):
			if begun {
				out = append(out, word.String())
				word.Reset()
				begun = false
			}
		case open != 0 && c == open:
			open = 0
		case open == '"' && c == '\\' && i+1 < len(value):
			text, n := unescape(value[i+1:])
			word.WriteString(text)
			i += n
		case open == '\'' && strings.HasPrefix(value[i:], `\'`):
			word.WriteByte('\'')
			i++
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if begun {
		out = append(out, word.String())
	}
	return out, open == 0
}

// unescape reads what follows a backslash within double quotes, and how many bytes
// that is.
func unescape(rest string) (string, int) {
	if len(rest) >= 3 && rest[0] == 'x' {
		if high, low := hexDigit(rest[1]), hexDigit(rest[2]); high >= 0 && low >= 0 {
			return string([]byte{byte(high<<4 | low)}), 3
		}
	}
	if i := strings.IndexByte("nrtba", rest[0]); i >= 0 {
		return "\n\r\t\b\a"[i : i+1], 1
	}
	return rest[:1], 1
}

func hexDigit(c byte) int {
	if 'A' <= c && c <= 'F' {
		c += 'a' - 'A'
	}
	return strings.IndexByte("0123456789abcdef", c)
}

// Plain is a value as CONFIG SET takes it: it leaves quotes and runs of spaces as they
// are, where a server that starts takes them off its file.
func Plain(value string) string {
	all, _ := words(value)
	return strings.Join(all, " ")
}

// oneWord are directives whose text a running server takes with spaces in it, which
// in its file would be several values: no new server would start.
var oneWord = map[string]bool{
	"availability-zone": true, "bind-source-addr": true, "ignore-warnings": true, "proc-title-template": true,
	"tls-protocols": true, "tls-ciphers": true, "tls-ciphersuites": true,
}
