// Package figures formats the results of a measurement: samples with their median, numbers, tables, and the description
// of the machine. It measures nothing.
package figures
