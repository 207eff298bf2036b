package apt

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDeb822ParagraphsBecomeSources(t *testing.T) {
	text := `# the distribution
Types: deb deb-src
URIs: http://mirror.example/debian
 http://second.example/debian
Suites: bookworm
 bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/a.gpg

Types: deb
Enabled: no
URIs: http://off.example/debian
Suites: sid

Types: deb-src
URIs: http://source.example/debian
Suites: sid
`
	suites := []string{"bookworm", "bookworm-updates"}
	want := []Source{
		{URI: "http://mirror.example/debian", Suites: suites, SignedBy: "/usr/share/keyrings/a.gpg"},
		{URI: "http://second.example/debian", Suites: suites, SignedBy: "/usr/share/keyrings/a.gpg"},
	}
	if diff := cmp.Diff(want, ParseDeb822(text)); diff != "" {
		t.Error(diff)
	}
}

func TestOneLineEntriesBecomeSources(t *testing.T) {
	text := `# deb http://commented.example/debian sid main
deb http://plain.example/debian bookworm main contrib # the main one
deb-src http://source.example/debian bookworm main
deb [arch=amd64 signed-by=/k.gpg] http://options.example/debian trixie main
deb [ trusted=yes ] http://spaced.example/debian sid main
deb incomplete
`
	want := []Source{
		{URI: "http://plain.example/debian", Suites: []string{"bookworm"}},
		{URI: "http://options.example/debian", Suites: []string{"trixie"}, SignedBy: "/k.gpg"},
		{URI: "http://spaced.example/debian", Suites: []string{"sid"}},
	}
	if diff := cmp.Diff(want, ParseOneLine(text)); diff != "" {
		t.Error(diff)
	}
}

func TestTheMirrorIsTheMainArchive(t *testing.T) {
	release := []string{"bookworm"}
	for name, test := range map[string]struct {
		sources []Source
		want    string
	}{
		"security archive comes first": {[]Source{
			{URI: "http://m.example/debian-security", Suites: []string{"bookworm-security"}}, {URI: "http://m.example/debian/", Suites: release},
		}, "http://m.example/debian/"},
		"another vendor comes first": {[]Source{
			{URI: "https://vendor.example/apt", Suites: []string{"stable"}}, {URI: "https://m.example/some/path/debian", Suites: release},
		}, "https://m.example/some/path/debian"},
		"updates only":        {[]Source{{URI: "http://m.example/debian", Suites: []string{"bookworm-updates"}}}, ""},
		"not fetched by HTTP": {[]Source{{URI: "cdrom:/debian", Suites: release}}, ""},
		"nothing":             {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := pick(test.sources)
			if got != test.want || (err != nil) != (test.want == "") {
				t.Errorf("got %q, error %v; want %q", got, err, test.want)
			}
		})
	}
}
