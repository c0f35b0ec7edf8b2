package code

import (
	"time"

	"turnstone/protocol/timelimit"
)

// The limits of a task.
const (
	// MaxCode limits the code, in bytes.
	MaxCode = 128 << 10
	// MaxFiles and MaxFileBytes limit the texts that a task reads, all together. In memory, a text has up to twice its size.
	MaxFiles     = 8
	MaxFileBytes = 8 << 20
)

// The limits of a result.
const (
	// maxOutput limits what is printed. With the lines about the artifacts, the model gets it in one piece.
	maxOutput    = 60 << 10
	MaxArtifacts = 8      // of one run
	maxPoints    = 10_000 // of a chart: about 500 kB of SVG
	maxSeries    = 20
	// maxReport is what the child prints, with the longest escapes of JSON.
	maxReport = 6 * (MaxArtifacts*(1<<20) + maxOutput + 16<<10)
)

// The limits of a child process.
const (
	// spareCPU and spareMemory are what a child may have beyond its limits until it is killed: it needs some to end by itself.
	spareCPU    = 2 // seconds
	spareMemory = 256 << 20
	maxStack    = 64 << 20 // of Go: the engine calls itself for nested values and code
	maxCalls    = 2000     // of JavaScript that are open at the same time; deeper recursion ends the code
	// watchInterval is how often a child looks at what it uses.
	watchInterval = 5 * time.Millisecond
	maxDetail     = 1200 // bytes of the text of an exception
	maxFrames     = 5    // of its stack
)

// The limits of a node.
const (
	perAccount = 2 // tasks of an account at the same time
	perNode    = 4 // children at the same time, because of their memory
)

var (
	maxTime = timelimit.Of(30 * time.Second) // of a child, with the wait for a processor
	maxWait = timelimit.Of(10 * time.Second) // for a slot
)

// Budget is what the code of a task may use.
type Budget struct {
	CPU    time.Duration
	Memory int64 // resident, in bytes, with that of the engine
}

// budget is the budget of every task. The heap of Go is collected harder from three quarters of it on.
var budget = Budget{CPU: 10 * time.Second, Memory: 384 << 20}
