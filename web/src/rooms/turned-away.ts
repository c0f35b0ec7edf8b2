// Somebody came back from a provider that did not sign them in. Said once: the address forgets it, so that a reload does not
// say it again.
import { useEffect } from "react";
import { toast } from "../controls/toast";
import { useSpeech } from "../words/speech";
import { turnedAwayIn } from "./refused";

/** Why; null: nothing of the kind. */
export const turnedAway = turnedAwayIn(location.search);
if (turnedAway !== null) history.replaceState(history.state, "", location.pathname);

/** Tells who is signed in all the same. */
export function useTurnedAway(): void {
  const { say } = useSpeech();
  useEffect(() => {
    if (turnedAway !== null) toast(say(turnedAway), { kind: "problem" });
    // Once, whatever language is spoken later.
  }, []);
}
