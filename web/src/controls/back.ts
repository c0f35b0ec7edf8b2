// The history entries of what is in front of the page. Each open dialog has an entry, so that Back leads to the entry before
// it and closes the dialog. An entry is not removed when its dialog is closed otherwise, because the browser removes entries
// only by a traversal, which would meet other navigations: Back and Forward pass over it.
import type { RouterHistory } from "@tanstack/react-router";

/** What of a history is used. */
export type History = Pick<RouterHistory, "location" | "push" | "back" | "forward" | "subscribe">;

const depthOf = ({ location }: Pick<History, "location">): number =>
  (location.state as { inFront?: number }).inFront ?? 0;

/** What is open, the last one in front. */
interface Stack {
  open: { close: () => void }[];
}

const stacks = new WeakMap<History, Stack>();

/** Closes by Back until the returned function is called. */
export function closeOnBack(history: History, close: () => void): () => void {
  const stack = followBack(history);
  const one = { close };
  stack.open.push(one);
  // The current entry may be that of a dialog that is closed.
  if (depthOf(history) < stack.open.length)
    history.push(history.location.href, { ...history.location.state, inFront: stack.open.length } as object);
  return () => void (stack.open = stack.open.filter((other) => other !== one));
}

/** Follows Back and Forward. After a reload, the entries of what was in front before are passed over. */
export function followBack(history: History): Stack {
  const known = stacks.get(history);
  if (known !== undefined) return known;
  const stack: Stack = { open: [] };
  stacks.set(history, stack);
  let before = depthOf(history);
  let passing = false; // Back was called here
  history.subscribe(({ location, action }) => {
    const [depth, previous] = [depthOf({ location }), before];
    before = depth;
    if (action.type === "PUSH" || action.type === "REPLACE") return;
    const stale = depth > stack.open.length;
    if (action.type === "FORWARD" || (action.type === "GO" && action.index > 0)) {
      if (stale) history.forward();
      return;
    }
    const closed = stack.open.splice(depth);
    // From the entry of a closed dialog to the entry before it nothing would change.
    const unchanged = previous > depth && closed.length === 0 && !passing;
    passing = stale || unchanged;
    if (passing) history.back();
    for (const { close } of closed.toReversed()) close();
  });
  return stack;
}
