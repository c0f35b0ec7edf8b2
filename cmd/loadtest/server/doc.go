// Package server has the servers that a measurement needs in addition to the service: a stand-in for the language
// model, and the baselines that the service is compared with. Each runs as a separate process, so that its CPU time can
// be measured separately.
//
// They use as little CPU as possible and have no knowledge of the service.
package server
