package timelimit

import (
	"testing"
	"time"
)

func TestALimitIsMultipliedByTheFactor(t *testing.T) {
	defer func(before time.Duration) { multiple = before }(multiple)
	for text, want := range map[string]time.Duration{"1": time.Second, "6": 6 * time.Second} {
		multiple = parse(text)
		if got, short := OfShort(100*time.Millisecond), map[string]time.Duration{"1": 100 * time.Millisecond, "6": 1800 * time.Millisecond}[text]; got != short {
			t.Errorf("with the factor %s a short limit of 100ms is %s", text, got)
		}
		if got := Of(time.Second); got != want {
			t.Errorf("with the factor %s a limit of 1s is %s", text, got)
		}
		if got := Setting(time.Second); got+"ms" != (map[string]string{"1": "1000ms", "6": "6000ms"})[text] {
			t.Errorf("with the factor %s a setting of 1s is %sms", text, got)
		}
	}
}

func TestAnInvalidFactorStopsTheProgram(t *testing.T) {
	for _, text := range []string{"", "0", "-1", "1.5", "six"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("the factor %q is accepted", text)
				}
			}()
			parse(text)
		}()
	}
}
