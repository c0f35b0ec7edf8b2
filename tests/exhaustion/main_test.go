package exhaustion

import (
	"flag"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
)

var (
	sample = flag.Int("exhaustion.operations", 40, "send the requests of as many operations, chosen at random, many times at once; 0: of all operations")
	seed   = flag.Uint64("exhaustion.seed", uint64(time.Now().UnixNano()), "seed of the choices")
)

func TestMain(m *testing.M) { sitetest.RunMain(m) }
