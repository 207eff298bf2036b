package settings

import (
	"strings"
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// What a Valkey 9.1.2 answers to CONFIG GET when its file has the line.
func TestAValueIsReadAsTheServerReadsItsFile(t *testing.T) {
	for value, want := range map[string]string{
		`"a"b`: "ab", `'a'b`: "ab", `'a\'b'`: "a'b", `"\x41\n\t\q\\z\"\x4"`: "A\n\tq\\z\"x4", `a"b c"d`: "ab cd", `a\b`: `a\b`, `"a""b"`: "ab",
		`"\u00e9\101"`: "u00e9101", `' x '`: " x ", `'a\nb'`: `a\nb`, `""`: "", ` allkeys-lru `: "allkeys-lru", `'allkeys-lru'`: "allkeys-lru",
		"normal  0\t0 0": "normal 0 0 0", `"\xC3\xa9"`: "é", "é": "é", "": "",
	} {
		if got := Plain(value); got != want {
			t.Errorf("%s is read as %q, want %q", value, got, want)
		}
	}
}

// CONFIG SET takes these, so that servers that run would have them, and no new one
// would start: "wrong number of arguments".
func TestSeveralWordsWhereTheFileTakesOneAreRefused(t *testing.T) {
	for key, value := range map[string]string{
		"tls-protocols": "TLSv1.2 TLSv1.3", "TLS-Ciphers": "DEFAULT !aNULL", "availability-zone": "eu west", "proc-title-template": `{title} "a b"`,
	} {
		problems := Check(Resolved{Valkey: map[string]string{key: value}})
		if len(problems) != 1 || problems[0].Reason != v1alpha1.ReasonSettingRefused || !strings.Contains(problems[0].Message, "double quotes") {
			t.Errorf("%s %s: %v", key, value, problems)
		}
		if text := Render(Server{Settings: map[string]string{key: value}}); strings.Contains(text, value) {
			t.Errorf("%s %s is rendered", key, value)
		}
	}
	for key, value := range map[string]string{
		"tls-protocols": `"TLSv1.2 TLSv1.3"`, "tls-ciphers": "HIGH", "availability-zone": " 'eu west' ", "client-output-buffer-limit": "normal 0 0 0",
		"latency-tracking-info-percentiles": "50 99", "proc-title-template": "",
	} {
		if problems := Check(Resolved{Valkey: map[string]string{key: value}}); len(problems) != 0 {
			t.Errorf("%s %s: %v", key, value, problems)
		}
	}
}
