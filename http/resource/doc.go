// Package resource has the inputs and outputs that the handlers of all resources share: pages of lists and their cursors,
// versions, confirmations, instructions, artifacts as files, and the responses of requests that create a resource.
//
// It has no routes and no state. Package http and the packages of handlers below it use it; embedded inputs are exported
// because the router reads them by reflection.
package resource
