package settings

import "testing"

//
func TestSizesAreReadAsTheServerReadsThem(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "7b": 7,
		"1500mb": 1572864000, "1500m": 1500000000,
		"1gb": 1073741824, "1g": 1000000000,
		"1kb": 1024, "1k": 1000,
		"2GB": 2147483648, "3Mb": 3145728, "4K": 4000,
		"9223372036854775807": 9223372036854775807,
	} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "kb", "1.5gb", "-1", "+1", " 1", "1 gb", "2Gib", "512Mi", "1.5Gi", "1tb", "1bk", "1kk", "5%", "0x10", "9223372036854775808", "9007199254740992kb", "99999999999999999999gb"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("ParseBytes(%q) = %d, want an error", text, got)
		}
	}
}
