package settings

import "testing"

// E-02
func TestVersionsCompareByNumberNotByText(t *testing.T) {
	for _, tc := range []struct{ older, newer string }{
		{"9.9.0", "9.10.0"}, {"9.0.9", "9.0.10"}, {"8.1.9", "9.0.0"}, {"9", "9.0.1"}, {"9.9", "10"},
	} {
		older, err := ParseVersion(tc.older)
		if err != nil {
			t.Fatal(err)
		}
		newer, err := ParseVersion(tc.newer)
		if err != nil {
			t.Fatal(err)
		}
		if !newer.GreaterThan(older) || older.AtLeast(newer) {
			t.Errorf("%s is not newer than %s", tc.newer, tc.older)
		}
	}
}

func TestTheFloorIsMetByReleasesAndTheirCandidates(t *testing.T) {
	for text, want := range map[string]bool{
		"9": true, "9.0": true, "9.0.0": true, "9.1.2": true, "9.0.0-rc1": true, "9-rc1": true, "10.0.0": true, "9.0.1+build.7": true, "9.1.2~deb13": true,
		"8": false, "8.1.9": false, "8.1.9-rc1": false, "7.2.12": false, "0.9": false,
	} {
		v, err := ParseVersion(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := v.AtLeast(minVersion); got != want {
			t.Errorf("%s at least %s = %v", text, MinVersion, got)
		}
	}
}

func TestWhatIsNoVersionIsAnError(t *testing.T) {
	for _, text := range []string{"", "latest", "v", "-rc1", "99999999999999999999999.1"} {
		if v, err := ParseVersion(text); err == nil {
			t.Errorf("%q is read as %v", text, v)
		}
	}
}
