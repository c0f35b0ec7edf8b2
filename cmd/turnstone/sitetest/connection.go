package sitetest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// Connected reports whether an address is the local one of a TCP connection of the program, over IPv4.
func (p *Process) Connected(local net.Addr) bool {
	tcp, is := local.(*net.TCPAddr)
	if !is || tcp.IP.To4() == nil {
		return false
	}
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", p.cmd.Process.Pid))
	if err != nil {
		return false // the program has ended
	}
	ip := tcp.IP.To4()
	address := fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], tcp.Port)
	const addressColumn, inodeColumn = 1, 9
	for line := range strings.Lines(string(table)) {
		columns := strings.Fields(line)
		if len(columns) > inodeColumn && columns[addressColumn] == address && p.hasOpen("socket:["+columns[inodeColumn]+"]") {
			return true
		}
	}
	return false
}

// hasOpen reports whether the program has a file open.
func (p *Process) hasOpen(file string) bool {
	open, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.cmd.Process.Pid)) // the pattern is well formed
	for _, link := range open {
		if target, err := os.Readlink(link); err == nil && target == file {
			return true
		}
	}
	return false
}
