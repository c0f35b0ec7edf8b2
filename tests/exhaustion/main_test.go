package exhaustion

import (
	"flag"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
)

var (
	attackFor = flag.Duration("exhaustion.for", 45*time.Second, "attack random operations for this long; 0: attack each operation once")
	seed      = flag.Uint64("exhaustion.seed", uint64(time.Now().UnixNano()), "seed of the choices")
)

// program has no race detector: with it, the program needs several times its memory.
var program = sitetest.NewPlainBuild("turnstone-plain")

func TestMain(m *testing.M) { sitetest.RunMain(m) }
