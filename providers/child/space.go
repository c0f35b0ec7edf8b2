//go:build !race

package child

// MaxAddresses limits the address space of a Go process, which reserves more than half of it without use. A child that lacks
// addresses crashes, so its limit of resident memory has to be well below.
const MaxAddresses = 3 << 30
