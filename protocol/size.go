package protocol

import (
	"math"
	"strconv"
	"strings"
)

// SizeText returns a number of bytes in the largest unit of which it has at least one, with at most one decimal, as the app shows
// it in English (web/src/messages/byte-size.ts).
func SizeText(bytes int64) string {
	units := []string{"bytes", "kB", "MB", "GB"}
	size := float64(bytes)
	for size >= 1024 && len(units) > 1 {
		size, units = size/1024, units[1:]
	}
	size = math.Round(size*10) / 10
	text := strconv.FormatFloat(size, 'f', -1, 64)
	if size >= 1000 {
		whole, decimal, _ := strings.Cut(text, ".")
		text = whole[:len(whole)-3] + "," + whole[len(whole)-3:]
		if decimal != "" {
			text += "." + decimal
		}
	}
	if bytes == 1 {
		return "1 byte"
	}
	return text + " " + units[0]
}
