package source

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// when is a time: a number since 1970, also as a string, or a text in one of layouts. Another value is the zero time.
type when struct {
	time.Time
	unreadable bool // it is a value, but no time
}

// layouts are the texts that exports have. A time without a zone is taken as UTC.
var layouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04:05.999999999Z0700",
	"2006-01-02 15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999 MST", time.DateOnly,
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (w *when) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	value, err := from.ReadValue()
	if err != nil {
		return err
	}
	w.unreadable = value.Kind() != 'n'
	switch value.Kind() {
	case '0':
		var number float64
		if json.Unmarshal(value, &number) == nil {
			w.Time, w.unreadable = since1970(number), number != 0 // which stands for no time
		}
	case '"':
		var s string
		if json.Unmarshal(value, &s, lenient) == nil {
			s = strings.TrimSpace(s)
			w.Time, w.unreadable = timeOf(s), s != ""
		}
	}
	w.unreadable = w.unreadable && w.IsZero()
	return nil
}

func timeOf(s string) time.Time {
	if number, err := strconv.ParseFloat(s, 64); err == nil {
		return since1970(number)
	}
	for _, layout := range layouts {
		if at, err := time.Parse(layout, s); err == nil {
			return at.UTC()
		}
	}
	return time.Time{}
}

// since1970 returns the time of a number of seconds, milliseconds, microseconds or nanoseconds: a time of these centuries in
// one of them is no time of these centuries in another.
func since1970(number float64) time.Time {
	const (
		mostSeconds = 1e11 // the year 5138; in milliseconds, it is 1973
		thousand    = 1000
		micro       = 1e6 // the precision of a float64 for these times
		units       = 4
	)
	for range units {
		if number < mostSeconds {
			if !(number > 0) { // also what is not a number
				return time.Time{}
			}
			return time.UnixMicro(int64(math.Round(number * micro))).UTC()
		}
		number /= thousand
	}
	return time.Time{}
}
