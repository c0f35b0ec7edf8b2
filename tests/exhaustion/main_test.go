package exhaustion

import (
	"flag"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
)

var (
	sample = flag.Int("exhaustion.operations", 40, "attack as many operations, chosen at random; 0: attack each operation once")
	seed   = flag.Uint64("exhaustion.seed", uint64(time.Now().UnixNano()), "seed of the choices")
)

func TestMain(m *testing.M) { sitetest.RunMain(m) }
