package output

import (
	"os"
	"strings"
	"testing"
)

// screen is a terminal of 100 by 30.
type screen struct{ strings.Builder }

func (*screen) TerminalSize() (width, height int, ok bool) { return 100, 30, true }

func TestColoursAndEscapes(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	tests := []struct {
		name            string
		out             interface{ Write([]byte) (int, error) }
		env             map[string]string
		mode            string
		colour, escapes bool
	}{
		{name: "a terminal has colours", out: &screen{}, mode: ColorAuto, colour: true, escapes: true},
		{name: "a pipe has none", out: &strings.Builder{}, mode: ColorAuto},
		{name: "a file has none", out: file, mode: ColorAuto},
		{name: "NO_COLOR turns them off", out: &screen{}, env: map[string]string{"NO_COLOR": "1"}, mode: ColorAuto},
		{name: "an empty NO_COLOR is none", out: &screen{}, env: map[string]string{"NO_COLOR": ""}, mode: ColorAuto, colour: true, escapes: true},
		{name: "a dumb terminal has none", out: &screen{}, env: map[string]string{"TERM": "dumb"}, mode: ColorAuto},
		{name: "never is never", out: &screen{}, mode: ColorNever},
		{name: "always colours a pipe, but doesn't move its cursor", out: &strings.Builder{}, mode: ColorAlways, colour: true},
		{name: "always wins over NO_COLOR", out: &screen{}, env: map[string]string{"NO_COLOR": "1"}, mode: ColorAlways, colour: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := NewFlags(func(k string) string { return tt.env[k] })
			if err := (*colorValue)(&f.color).Set(tt.mode); err != nil {
				t.Fatal(err)
			}
			if got := f.Palette(tt.out).Enabled(); got != tt.colour {
				t.Errorf("colour = %v, want %v", got, tt.colour)
			}
			if got := f.Terminal(tt.out).Escapes(); got != tt.escapes {
				t.Errorf("escapes = %v, want %v", got, tt.escapes)
			}
		})
	}
}

func TestColorRefusesUnknownModes(t *testing.T) {
	f := NewFlags(os.Getenv)
	err := (*colorValue)(&f.color).Set("sometimes")
	if err == nil || !strings.Contains(err.Error(), "auto, always, never") {
		t.Errorf("error = %v, want one that lists the modes", err)
	}
}

func TestCleanKeepsServersFromDrivingTheTerminal(t *testing.T) {
	if got, want := Clean("a\n b\t\x1b[2Jc\u009b1m"), `a b \x1b[2Jc\x9b1m`; got != want {
		t.Errorf("Clean() = %q, want %q", got, want)
	}
}

func TestShorten(t *testing.T) {
	for _, tt := range []struct {
		text  string
		width int
		want  string
	}{
		{"slots", 5, "slots"},
		{"slots", 4, "slo…"},
		{"größer", 5, "größ…"},
		{"any", 0, "any"},
		{"", 5, ""},
		{"\x1b[31mslots\x1b[0m", 5, "\x1b[31mslots\x1b[0m"},
		{"\x1b[31mslots\x1b[0m", 3, "\x1b[31msl\x1b[0m…"},
	} {
		if got := Shorten(tt.text, tt.width); got != tt.want {
			t.Errorf("Shorten(%q, %d) = %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
}

func TestData(t *testing.T) {
	v := struct {
		Name string `json:"name"`
		N    []int  `json:"n"`
	}{"a", []int{1}}
	for format, want := range map[string]string{
		JSON: "{\n    \"name\": \"a\",\n    \"n\": [\n        1\n    ]\n}\n",
		YAML: "\"n\":\n- 1\nname: a\n",
	} {
		got, err := Data(format, v)
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s = %q, want %q", format, got, want)
		}
	}
	if _, err := Data("xml", v); err == nil {
		t.Error("xml was accepted")
	}
}
