package sitetest

import "turnstone/providers/model/scripted"

// LongTurn is an input whose answer streams for about three seconds, which is longer than a short fault.
const LongTurn = "[[script tokens=150 ttft=0 interval=20ms]]"

// ScriptedText returns the text of the answer to an input with a script.
func ScriptedText(input string) string {
	script, _ := scripted.Parse(input)
	return script.Text()
}
