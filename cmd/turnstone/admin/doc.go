// Package admin serves the internal listener: health, metrics, profiles, and the routes behind the operator's commands.
//
// Its routes act for the operator, across accounts. They must not be reachable from the public listener. The wiring of the
// service creates the handler; package operate has the commands that call its routes.
package admin
