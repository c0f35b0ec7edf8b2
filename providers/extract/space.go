//go:build !race

package extract

// maxSpace limits the address space of a child.
const maxSpace = maxAddresses
