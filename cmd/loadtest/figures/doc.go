// Package figures formats the results of a measurement: samples with their median, numbers, tables, and the description
// of the host computer. It measures nothing.
package figures
