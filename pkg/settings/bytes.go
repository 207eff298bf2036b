package settings

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// byteUnits are the server's: with a b powers of 1024, without powers of 1000.
// Kubernetes' suffixes mean the opposite and aren't read here.
var byteUnits = map[string]int64{
	"": 1, "b": 1,
	"k": 1000, "kb": 1 << 10,
	"m": 1000 * 1000, "mb": 1 << 20,
	"g": 1000 * 1000 * 1000, "gb": 1 << 30,
}

// ParseBytes reads a size as the server does: a whole number and b, k, kb, m, mb,
// g or gb in any case. The result is in bytes.
func ParseBytes(s string) (int64, error) {
	digits := strings.TrimRight(s, "bBkKmMgG")
	n, err := strconv.ParseUint(digits, 10, 63)
	unit, known := byteUnits[strings.ToLower(s[len(digits):])]
	if err != nil || !known || int64(n) > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is no size: want a whole number of bytes, or one with k, kb, m, mb, g or gb, such as 1500mb", s)
	}
	return int64(n) * unit, nil
}
