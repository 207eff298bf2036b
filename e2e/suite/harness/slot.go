//go:build e2e

package harness

// KeySlot is the slot of a key without a hash tag: CRC16 (XMODEM), modulo the slots.
func KeySlot(key string) int {
	var crc uint16
	for _, c := range []byte(key) {
		crc ^= uint16(c) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc % 16384)
}
