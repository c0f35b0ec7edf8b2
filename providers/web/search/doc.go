// Package search searches the web with the engines that an operator has configured. Each engine is a small client; Engines
// asks them in order until one answers, and says which ones failed and why.
//
// The addresses of the engines are those of the operator, so they are not limited to public ones. What engines return is
// text of strangers: it is cleaned, bounded and never judged here.
package search
